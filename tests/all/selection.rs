//! How many clusters: criteria against scikit-learn and naive formulas, and sweeps.

use crate::common::{read, same_on_threads};
use coremix::Estimator;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::selection::{Criteria, Criterion, Selection, Sweep};
use coremix::stage::Rng;
use ndarray::{Array1, Array2, Axis, s};

type Table = f64;

/// `n` rows, equally many around `k` centres that are far apart.
fn separated(k: usize, n: usize, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    Array2::from_shape_fn((n, 2), |(n, j)| {
        let c = n % k;
        let centre = [c % 3, c / 3][j];
        12.0 * centre as f64 + rng.normal()
    })
}

fn gmm(k: usize) -> Result<coremix::Clusterer<f64>> {
    algorithms::gmm(k).tolerance(1e-6).build()
}

/// The part of a table of the fixtures that belongs to a number of iterations, without its keys.
fn part(table: &Array2<f64>, iterations: f64) -> Array2<f64> {
    let rows: Vec<usize> = (0..table.nrows())
        .filter(|&i| table[[i, 0]] == iterations)
        .collect();
    table.select(Axis(0), &rows).slice(s![.., 2..]).to_owned()
}

fn close(found: f64, expected: f64, within: f64, what: &str) {
    let off = (found - expected).abs();
    let most = within * expected.abs();
    assert!(off <= most, "{what}: {found:e} instead of {expected:e}");
}

#[test]
fn criteria_are_those_of_scikit_learn() {
    let data = read("blobs_data");
    let weights = read("blobs_integer_weights").column(0).to_owned();
    let plain = Dense::new(data.view()).unwrap();
    let weighted = Dense::weighted(data.view(), weights.view()).unwrap();
    let expected = read("blobs_selection");
    assert_eq!(expected.nrows(), 16);
    for row in expected.outer_iter() {
        let (rows, name) = match row[0] as usize {
            0 => (&plain, "blobs_unweighted"),
            _ => (&weighted, "blobs_integer"),
        };
        let family = ["isotropic", "diagonal"][row[1] as usize];
        let table = |what| part(&read(&format!("{name}_{family}_{what}")), row[2]);
        let (means, variances) = (table("means"), table("variances"));
        let proportions = table("proportions").column(0).to_owned();
        let model: Box<dyn Mixture<Table>> = match family {
            "isotropic" => Box::new(
                GaussianMixture::from_parameters(
                    Covariance::Spherical,
                    means.view(),
                    variances.column(0),
                    proportions.view(),
                )
                .unwrap(),
            ),
            _ => Box::new(
                GaussianMixture::from_parameters(
                    Covariance::Diagonal,
                    means.view(),
                    variances.view(),
                    proportions.view(),
                )
                .unwrap(),
            ),
        };
        let criteria = Criteria::of(&*model, rows).unwrap();
        let what = format!("{name} {family} {}", row[2]);
        assert_eq!(criteria.free_parameters, Some(row[3] as usize), "{what}");
        let pairs = [Criterion::Bic, Criterion::Aic, Criterion::Icl];
        for (criterion, expected) in pairs.into_iter().zip(row.iter().skip(4)) {
            close(criteria.value(criterion).unwrap(), *expected, 1e-11, &what);
        }
    }
}

/// One variance, equal proportions: the naive formulas, in f32 as well.
#[test]
fn criteria_of_the_shared_variance_are_the_naive_ones() {
    let x = separated(3, 90, 1);
    let mut weights = Array1::from_shape_fn(90, |n| (n % 4) as f64);
    weights[1] = 2.5;
    let data = Dense::weighted(x.view(), weights.view()).unwrap();
    let model = gmm(4).unwrap().fit(&data).unwrap().model;
    let (means, v) = (model.means().to_owned(), model.variance());
    let (mut all, mut complete) = (0.0, 0.0);
    for (row, w) in x.outer_iter().zip(&weights) {
        let joint = |mean: ndarray::ArrayView1<'_, f64>| {
            let squared: f64 = (&row - &mean).iter().map(|t| t * t).sum();
            (0.25f64).ln() - (std::f64::consts::TAU * v).ln() - 0.5 * squared / v
        };
        let joints: Vec<f64> = means.outer_iter().map(joint).collect();
        let most = joints.iter().copied().fold(f64::MIN, f64::max);
        complete += w * most;
        all += w * (most + joints.iter().map(|j| (j - most).exp()).sum::<f64>().ln());
    }
    let n = weights.sum();
    let criteria = Criteria::of(&model, &data).unwrap();
    assert_eq!(criteria.free_parameters, Some(4 * 2 + 1));
    let value = |criterion| criteria.value(criterion).unwrap();
    close(
        value(Criterion::Bic),
        -2.0 * all + 9.0 * n.ln(),
        1e-12,
        "BIC",
    );
    close(value(Criterion::Aic), -2.0 * all + 18.0, 1e-12, "AIC");
    close(
        value(Criterion::Icl),
        -2.0 * complete + 9.0 * n.ln(),
        1e-12,
        "ICL",
    );

    let narrow = x.mapv(|x| x as f32);
    let data = Dense::weighted(narrow.view(), weights.view()).unwrap();
    let means = means.mapv(|x| x as f32);
    let fit = algorithms::gmm(4).seeder(Given::new(means.view()));
    let fit = fit.max_iterations(0).build().unwrap().fit(&data).unwrap();
    assert!(Criteria::of(&fit.model, &data).is_ok());
}

#[test]
fn equal_proportions_are_not_counted_and_distributions_are_not_at_all() {
    let x = separated(3, 60, 2);
    let data = Dense::new(x.view()).unwrap();
    let isotropic = |family: Gaussian| {
        let fit = algorithms::gmm(3).m_step(family).build()?.fit(&data)?;
        Ok::<_, Error>(Mixture::<Table>::free_parameters(&fit.model))
    };
    assert_eq!(
        isotropic(Gaussian::new(Covariance::Spherical)).unwrap(),
        Some(3 * 2 + 3 + 2)
    );
    let equal = Gaussian::new(Covariance::Spherical).equal_proportions();
    assert_eq!(isotropic(equal).unwrap(), Some(3 * 2 + 3));
    let process = algorithms::dp_gmm(3, 1.0).build().unwrap();
    let model = process.fit(&data).unwrap().model;
    let criteria = Criteria::of(&model, &data).unwrap();
    assert!(Criterion::ALL.iter().all(|c| criteria.value(*c).is_none()));
}

/// Every criterion finds the number of clusters that are far apart, for soft and hard algorithms and with own variances.
#[test]
fn clusters_that_are_far_apart_are_counted() {
    for (k, seed) in [(1, 3), (4, 4), (6, 5)] {
        let x = separated(k, 600, seed);
        let data = Dense::new(x.view()).unwrap();
        let names = [
            ("gmm", None),
            ("gmm", Some(coremix::families::Covariance::Diagonal)),
            ("k-means", None),
        ];
        for (name, family) in names {
            let build = |k: usize| {
                let algorithm: Algorithm = name.parse()?;
                let algorithm = algorithm.clusters(k).tolerance(1e-6);
                match family {
                    Some(family) => algorithm.covariance(family),
                    None => algorithm,
                }
                .boxed::<Table>()
            };
            let found = Sweep::new(1..=9).held_out(0.3).run(&data, build).unwrap();
            for criterion in [Criterion::Bic, Criterion::Icl, Criterion::HeldOut] {
                // On data of one cluster, two clusters fit held-out rows as well, up to chance.
                if k == 1 && criterion == Criterion::HeldOut {
                    continue;
                }
                let best = found.best(criterion).unwrap().clusters;
                assert_eq!(best, k, "{name} {family:?} {criterion}:\n{found}");
            }
        }
    }
}

/// With a coreset the number of rows is that of the coreset, not of what it stands for: a BIC that took the latter would
/// choose too many.
#[test]
fn a_coreset_counts_as_few_rows() {
    let x = separated(4, 20_000, 6);
    let data = Dense::new(x.view()).unwrap();
    let sweep = Sweep::new(1..=8).coreset(Lightweight::new(400));
    let found = sweep.run(&data, gmm).unwrap();
    for one in &found.candidates {
        let n = one.criteria.sample_size;
        assert!((100.0..=400.0).contains(&n), "{n}");
    }
    for criterion in [Criterion::Bic, Criterion::HeldOut] {
        let best = found.best(criterion).unwrap().clusters;
        assert_eq!(best, 4, "{criterion}:\n{found}");
    }
    // A coreset of the algorithm's own.
    let own = |k| algorithms::lwcs_k_means(k, 300).build();
    let found = Sweep::new([2, 4]).run(&data, own).unwrap();
    let sizes: Vec<f64> = found
        .candidates
        .iter()
        .map(|c| c.criteria.sample_size)
        .collect();
    assert!(sizes[0] == sizes[1] && sizes[0] <= 300.0, "{sizes:?}");
}

/// All numbers of a table, bit for bit.
fn bits(found: &Selection<Table>) -> Vec<u64> {
    let mut bits = Vec::new();
    for one in &found.candidates {
        bits.push(u64::from(one.warm));
        bits.extend(one.model.means().iter().map(|x| x.to_bits()));
        bits.extend(Criterion::ALL.map(|c| one.value(c).map_or(0, f64::to_bits)));
        bits.push(one.held_out_error.map_or(0, f64::to_bits));
        bits.extend(one.report.free_energies.iter().map(|x| x.to_bits()));
    }
    bits
}

#[test]
fn threads_do_not_matter() {
    let x = separated(5, 700, 7);
    let data = Dense::new(x.view()).unwrap();
    for name in ["gmm", "vc-gmm", "fast", "d-gmm"] {
        same_on_threads(name, &[2, 3, 7], || {
            let algorithm: Algorithm = name.parse().unwrap();
            let build = |k| algorithm.clone().clusters(k).boxed::<Table>();
            bits(&Sweep::new(1..=6).run(&data, build).unwrap())
        });
    }
}

/// The seed of the sweep chooses the held-out rows; a warm start is kept only where it has the larger free energy.
#[test]
fn seeds_and_warm_starts() {
    let x = separated(6, 300, 8);
    let data = Dense::new(x.view()).unwrap();
    let sweep = Sweep::new([6, 3, 3, 2, 5]);
    // From the means of `fast` all are as good as warm ones.
    let gmm = |k| {
        algorithms::gmm(k)
            .seeder(KMeansPlusPlus::default())
            .tolerance(1e-6)
            .build()
    };
    let found = sweep.run(&data, gmm).unwrap();
    let ks: Vec<usize> = found.candidates.iter().map(|c| c.clusters).collect();
    assert_eq!(ks, [2, 3, 5, 6]);
    assert_eq!(bits(&found), bits(&sweep.run(&data, gmm).unwrap()));
    let other = sweep.clone().seed(1).run(&data, gmm).unwrap();
    assert_ne!(bits(&found), bits(&other));

    let cold = sweep.warm_starts(false).run(&data, gmm).unwrap();
    for (warm, cold) in found.candidates.iter().zip(&cold.candidates) {
        let last =
            |one: &coremix::selection::Candidate<Table>| *one.report.free_energies.last().unwrap();
        assert!(!cold.warm && last(warm) >= last(cold));
        assert_eq!(warm.warm, last(warm) > last(cold));
    }
    assert!(found.candidates.iter().any(|one| one.warm));
}

/// A weight of w counts as w rows: the same criteria as on repeated rows.
#[test]
fn weights_count_rows() {
    let x = separated(3, 120, 9);
    let w = Array1::from_shape_fn(120, |n| (n % 3) as f64);
    let rows: Vec<usize> = (0..120).flat_map(|n| vec![n; n % 3]).collect();
    let repeated = x.select(Axis(0), &rows);
    let weighted = Dense::weighted(x.view(), w.view()).unwrap();
    let repeated = Dense::new(repeated.view()).unwrap();
    let model = gmm(3).unwrap().fit(&weighted).unwrap().model;
    let one = Criteria::of(&model, &weighted).unwrap();
    let other = Criteria::of(&model, &repeated).unwrap();
    assert_eq!(one.sample_size, other.sample_size);
    for criterion in [Criterion::Bic, Criterion::Aic, Criterion::Icl] {
        let value = |of: &Criteria| of.value(criterion).unwrap();
        close(value(&one), value(&other), 1e-13, "weights");
    }
}

#[test]
fn the_dirichlet_process_beside_it() {
    let x = separated(4, 400, 10);
    let data = Dense::new(x.view()).unwrap();
    let sweep = Sweep::new(3..=5).held_out(0.25);
    let found = sweep.run(&data, gmm).unwrap();
    let process = algorithms::dp_gmm(10, 1.0).build().unwrap();
    let beside = sweep.beside(&data, 10, &process).unwrap();
    assert_eq!((beside.clusters, beside.criteria.in_use), (10, 4));
    let best = found.best(Criterion::HeldOut).unwrap();
    // All models are scored on the same held-out rows. The prior makes components wider than those of the mixture.
    let held_out = |i: usize| found.candidates[i].held_out.unwrap();
    let own = beside.held_out.unwrap();
    assert!(
        own < best.held_out.unwrap() && own > held_out(0),
        "{own}\n{found}"
    );
}

fn table(sweep: &Sweep<Table>, data: &Dense<'_, f64>) -> Result<String> {
    let found = sweep.run(data, gmm)?;
    Ok(found.to_string())
}

#[test]
fn tables_print() {
    let x = separated(3, 90, 11);
    let data = Dense::new(x.view()).unwrap();
    let text = table(&Sweep::new(2..=4), &data).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(
        lines
            .iter()
            .all(|line| line.len() == lines[0].len() || line.ends_with(['*', ' ']))
    );
    assert!(lines[0].trim_end().ends_with("held-out") && lines[2].trim_start().starts_with('3'));
    assert_eq!(text.matches('*').count(), 4);
    let without = table(&Sweep::new(2..=4).held_out(0.0), &data).unwrap();
    assert_eq!(without.matches('*').count(), 3);
}

#[test]
fn hostile_sweeps() {
    let x = separated(3, 30, 12);
    let data = Dense::new(x.view()).unwrap();
    let parameter = |sweep: &Sweep<Table>, setting: &str| {
        let error = table(sweep, &data).unwrap_err();
        match &error {
            Error::Parameter { name, .. } => assert_eq!(*name, setting, "{error}"),
            _ => panic!("{error}"),
        }
    };
    let none: [usize; 0] = [];
    parameter(&Sweep::new(none), "clusters of a sweep");
    parameter(&Sweep::new(0..3), "clusters of a sweep");
    for fraction in [1.0, -0.1, 1.5, f64::NAN, f64::INFINITY, 1e-9, 0.999_999] {
        parameter(&Sweep::new(1..3).held_out(fraction), "held_out");
    }
    for (k, of) in [(31, "data"), (28, "data without the held-out rows")] {
        match table(&Sweep::new([2, k]), &data).unwrap_err() {
            Error::TooManyClusters { rows_of, .. } => assert_eq!(rows_of, of),
            error => panic!("{error}"),
        }
    }
    // A coreset of one row, and one without any.
    assert!(table(&Sweep::new([1]).coreset(Lightweight::new(0)), &data).is_err());
    assert!(table(&Sweep::new([1, 2]).coreset(Lightweight::new(1)), &data).is_err());

    // Rows without weight are never held out; all others are the data.
    let mut w = Array1::zeros(30);
    w.slice_mut(s![..6]).fill(1.0);
    let few = Dense::weighted(x.view(), w.view()).unwrap();
    let found = Sweep::new([1, 2, 3]).held_out(0.5).run(&few, gmm).unwrap();
    assert_eq!(found.candidates[2].criteria.sample_size, 3.0);
    assert!(
        found
            .candidates
            .iter()
            .all(|c| c.held_out.unwrap().is_finite())
    );

    // Weights that are no counts: no BIC, but a table.
    let w = Array1::from_elem(30, 1e-3);
    let tiny = Dense::weighted(x.view(), w.view()).unwrap();
    let found = Sweep::new([1, 2]).run(&tiny, gmm).unwrap();
    assert!(found.best(Criterion::Bic).is_none() && found.best(Criterion::Icl).is_none());
    assert!(found.best(Criterion::HeldOut).is_some());

    // Errors of a builder come before any fit.
    let build = |_| algorithms::gmm(0).build();
    assert!(Sweep::new(1..3).run(&data, build).is_err());
    // All rows the same: some table, and no NaN where there is a value.
    let same = Array2::from_elem((40, 2), 1.5);
    let same = Dense::new(same.view()).unwrap();
    let found = Sweep::new(1..=3).run(&same, gmm).unwrap();
    for one in &found.candidates {
        assert!(
            Criterion::ALL
                .iter()
                .all(|c| one.value(*c).is_some_and(f64::is_finite))
        );
    }
    let boxed: Box<dyn Estimator<Table>> = Box::new(gmm(2).unwrap());
    assert!(Sweep::new([2]).beside(&data, 0, &*boxed).is_err());
}

/// It counts clusters that overlap a little. Without merges too many components are left, and the held-out rows show it.
#[test]
fn the_dirichlet_process_counts_clusters() {
    let mut rng = Rng::from_seed(1);
    let x = Array2::from_shape_fn((3_000, 2), |(n, j)| {
        let angle = (n % 6) as f64 / 6.0 * std::f64::consts::TAU;
        5.0 * [angle.cos(), angle.sin()][j] + rng.normal()
    });
    let data = Dense::new(x.view()).unwrap();
    let sweep = Sweep::new([12]).held_out(0.2);
    let found = |merges: bool| {
        let family = DirichletProcess::new(1.0).merges(merges);
        let process = algorithms::dp_gmm(12, 1.0).m_step(family).tolerance(1e-3);
        let process = process.build().unwrap();
        sweep.beside(&data, 12, &process).unwrap()
    };
    let (merged, plain) = (found(true), found(false));
    assert_eq!(merged.criteria.in_use, 6);
    assert!(plain.criteria.in_use > 6);
    assert!(merged.held_out > plain.held_out);
}

/// Symmetric matrices have d (d + 1) / 2 free numbers each, whatever d and k.
#[test]
fn free_parameters_of_matrices() {
    for (k, dim) in [(1, 1), (1, 3), (3, 3), (2, 4), (5, 2)] {
        let means = Array2::from_shape_fn((k, dim), |(c, j)| (c * dim + j) as f64);
        let eye = Array2::<f64>::eye(dim);
        let stacked = eye.broadcast((k, dim, dim)).unwrap();
        let shares = Array1::from_elem(k, 1.0 / k as f64);
        let (means, shares) = (means.view(), shares.view());
        let tied = GaussianMixture::from_parameters(Covariance::Tied, means, eye.view(), shares);
        let full = GaussianMixture::from_parameters(Covariance::Full, means, stacked, shares);
        let triangle = dim * (dim + 1) / 2;
        for (model, matrices) in [(tied.unwrap(), 1), (full.unwrap(), k)] {
            let known = k * dim + matrices * triangle + (k - 1);
            assert_eq!(model.free_parameters(), Some(known), "{k} {dim}");
        }
    }
}
