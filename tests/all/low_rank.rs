//! Full and tied covariances of rows that span few of many directions: the rest of their eigenvalues is rounding of the
//! largest, and raised.

use crate::common::rises;
use coremix::algorithms;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, Axis};

/// Free energies rise, and raised eigenvalues add almost nothing to the variances: the traces of the covariances are those of
/// the rows, by components and shares.
fn check(name: &str, x: &Array2<f64>, k: usize) {
    let data = Dense::new(x).unwrap();
    for kind in [Covariance::Full, Covariance::Tied] {
        let fit = algorithms::gmm(k).covariance(kind).max_iterations(12);
        let fit = fit.tolerance(0.0).build().unwrap().fit(&data).unwrap();
        let what = format!("{name}, {kind:?}");
        rises(what, &fit.report.free_energies, x.nrows() as f64, 1e-9);
        let shares = fit.model.proportions();
        let mean = x.mean_axis(Axis(0)).unwrap();
        let total = x.var_axis(Axis(0), 0.0).sum();
        // Variances within components, and between their means, make up that of the rows.
        let (mut within, mut between) = (0.0, 0.0);
        for (c, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            within += share * fit.model.covariance(c).unwrap().diag().sum();
            let apart = &fit.model.means().row(c) - &mean;
            between += share * apart.dot(&apart);
        }
        let off = (within + between - total).abs();
        assert!(
            off <= 1e-5 * total,
            "{name}, {kind:?}: {within} and {between}, not {total}"
        );
    }
}

/// With one component all is known: covariances have the trace of the rows to all digits but those that were raised.
#[test]
fn one_component_of_rank_one() {
    let mut rng = Rng::from_seed(41);
    for (n, d) in [
        (23, 60),
        (60, 23),
        (40, 60),
        (30, 100),
        (30, 128),
        (20, 200),
    ] {
        for scale in [3.0, 30.0, 1000.0] {
            let along: Vec<f64> = (0..d).map(|_| (scale * rng.normal()).round()).collect();
            let times: Vec<f64> = (0..n).map(|_| (3.0 * rng.normal()).round()).collect();
            let x = Array2::from_shape_fn((n, d), |(i, j)| times[i] * along[j]);
            check(&format!("{n} x {d} of rank 1"), &x, 1);
        }
    }
}

#[test]
fn components_of_two_rows_one_hot_columns_counts_and_pixels() {
    let mut rng = Rng::from_seed(42);
    for d in [60, 100, 128, 200] {
        // Each component has two distinct rows.
        let rows: Vec<f64> = (0..6 * d).map(|_| (9.0 * rng.normal()).round()).collect();
        let x = Array2::from_shape_fn((90, d), |(i, j)| {
            rows[i % 6 * d + j] + 500.0 * (i % 3) as f64
        });
        check(&format!("two rows in {d} columns"), &x, 3);

        let x = Array2::from_shape_fn((80, d), |(i, j)| f64::from((i * i + i / 7) % d == j));
        check(&format!("one-hot in {d} columns"), &x, 2);

        let counts: Vec<f64> = (0..12 * d).map(|_| rng.exponential().floor()).collect();
        let x = Array2::from_shape_fn((96, d), |(i, j)| counts[i % 12 * d + j]);
        check(&format!("counts in {d} columns"), &x, 4);

        // A bright square that moves over a dark border.
        let x = Array2::from_shape_fn((70, d), |(i, j)| {
            let (row, column) = (j / 10, j % 10);
            let lit = (row + i) % 5 < 2 && (2..8).contains(&column) && i % 7 < 5;
            if lit {
                255.0
            } else {
                (i % 2) as f64 * (column == 4) as u8 as f64
            }
        });
        check(&format!("{d} pixels"), &x, 3);
    }
}
