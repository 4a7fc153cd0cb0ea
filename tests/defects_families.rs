//! Families at the edges of their arithmetic: shares that are small beside a mass but not beside a variance, numbers near
//! the ends of their type, wide supports, and densities over many components.

use coremix::algorithms;
use coremix::m_step::{DiagonalMixture, IsotropicMixture, SharedIsotropicMixture};
use coremix::prelude::*;
use ndarray::{Array1, Array2, Axis, array};

/// Free energies, variances and means of a few iterations of soft EM, with rows in this order.
macro_rules! soft_em {
    ($family:expr, $x:expr, $w:expr, $seeds:expr, $order:expr, $variances:expr) => {{
        let (x, w) = ($x.select(Axis(0), $order), $w.select(Axis(0), $order));
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = algorithms::gmm($seeds.nrows())
            .m_step($family)
            .seeder(Given::new($seeds.view()))
            .tolerance(0.0)
            .max_iterations(6)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let f = fit.report.free_energies.clone();
        for pair in f.windows(2) {
            let least = pair[0] - 1e-9 * pair[0].abs().max(w.sum());
            assert!(pair[1] >= least, "{:?}: {f:?}", $order);
        }
        let variances: Vec<f64> = $variances(&fit.model);
        let means: Vec<f64> = fit.model.means().iter().copied().collect();
        (f, variances, means)
    }};
}

/// One family, in all these orders of the rows: everything is the same but for rounding.
macro_rules! same_in_all_orders {
    ($family:expr, $x:expr, $w:expr, $seeds:expr, $orders:expr, $variances:expr) => {{
        let mut first = None;
        for order in $orders {
            let (f, variances, means) = soft_em!($family, $x, $w, $seeds, &order[..], $variances);
            let Some((f0, variances0, means0)) = &first else {
                first = Some((f, variances, means));
                continue;
            };
            let near = |a: &[f64], b: &[f64], within: f64| {
                a.iter()
                    .zip(b)
                    .all(|(a, b)| (a - b).abs() <= within * b.abs().max(1e-300))
            };
            assert!(near(&f, f0, 1e-9), "{order:?}: {f:?} {f0:?}");
            assert!(
                near(&variances, variances0, 1e-9),
                "{order:?}: {variances:?} {variances0:?}"
            );
            let scale = variances.iter().fold(0.0f64, |most, v| most.max(*v)).sqrt();
            let off = means.iter().zip(means0).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f64::max);
            assert!(off <= 1e-9 * scale, "{order:?}: {off} {scale}");
        }
    }};
}

/// A row of little weight so far out that the variance is its own.
#[test]
fn a_small_share_far_away_counts_in_any_order() {
    let x = array![[0.0, 1.0], [0.5, 1.5], [1e9, -1e9]];
    let w = array![1e10, 1e10, 1e-7];
    let seeds = array![[0.0, 0.0]];
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]];
    same_in_all_orders!(
        Isotropic::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &IsotropicMixture<f64>| m.variances().to_vec()
    );
    same_in_all_orders!(
        Diagonal::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &DiagonalMixture<f64>| { m.variances().iter().copied().collect() }
    );
    same_in_all_orders!(
        SharedIsotropic::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &SharedIsotropicMixture<f64>| vec![m.variance()]
    );
}

/// Weights over forty powers of ten, and rows the farther out the less they weigh, over several components.
#[test]
fn the_order_of_rows_does_not_matter() {
    let (n, d, k) = (300, 3, 4);
    let mut rng = coremix::Rng::from_seed(8);
    let power: Vec<f64> = (0..n).map(|_| 20.0 * rng.uniform()).collect();
    let x = Array2::from_shape_fn((n, d), |(i, _)| {
        (i % k) as f64 * 3.0 + rng.normal() * (1.0 + 10f64.powf(0.4 * power[i]))
    });
    let w = Array1::from_shape_fn(n, |i| 10f64.powf(10.0 - 2.0 * power[i]));
    let seeds = Array2::from_shape_fn((k, d), |(c, _)| c as f64 * 3.0);
    let forth: Vec<usize> = (0..n).collect();
    let back: Vec<usize> = (0..n).rev().collect();
    let mut heavy_first = forth.clone();
    heavy_first.sort_by(|&a, &b| w[b].total_cmp(&w[a]));
    let light_first: Vec<usize> = heavy_first.iter().rev().copied().collect();
    let orders = [forth, back, heavy_first, light_first];
    same_in_all_orders!(
        Isotropic::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &IsotropicMixture<f64>| m.variances().to_vec()
    );
    same_in_all_orders!(
        Diagonal::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &DiagonalMixture<f64>| { m.variances().iter().copied().collect() }
    );
    same_in_all_orders!(
        SharedIsotropic::new(),
        x,
        w,
        seeds,
        &orders,
        |m: &SharedIsotropicMixture<f64>| vec![m.variance()]
    );
}
