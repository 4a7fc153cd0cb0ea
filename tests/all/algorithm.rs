//! Algorithms by name, and boxed models.

use coremix::BoxedMixture;
use coremix::families::{Column, DirichletProcessMixture};
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use std::any::Any;

/// 400 rows around 8 centres that overlap.
fn points() -> Array2<f64> {
    let mut rng = Rng::from_seed(5);
    let centres = Array2::from_shape_fn((8, 3), |_| 2.0 * rng.normal());
    Array2::from_shape_fn((400, 3), |(n, j)| centres[[n % 8, j]] + rng.normal())
}

fn named(name: &str) -> Algorithm {
    let algorithm: Algorithm = name.parse().unwrap();
    algorithm.clusters(8).seed(3)
}

fn means_of(algorithm: &Algorithm, data: &Dense<'_, f64>) -> Array2<f64> {
    let estimator = algorithm.boxed::<f64>().unwrap();
    estimator.fit(data).unwrap().model.means()
}

/// Each setting is that of the builder's stage, and not the default.
#[test]
fn settings_of_seeders_and_searches_reach_them() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();

    let greedy = algorithms::k_means(8).seeder(KMeansPlusPlus::greedy());
    let greedy = greedy.seed(3).build().unwrap().fit(&data).unwrap();
    let by_name = means_of(&named("k-means").greedy(true), &data);
    assert_eq!(by_name, greedy.model.means());
    assert_ne!(by_name, means_of(&named("k-means"), &data));

    let chain = algorithms::var_gmm_s(8, 3, 5).seeder(AfkMc2::new(2));
    let chain = chain.seed(3).build().unwrap().fit(&data).unwrap();
    let by_name = means_of(&named("var-gmm-s").chain(2), &data);
    assert_eq!(by_name, chain.model.means());
    assert_ne!(by_name, means_of(&named("var-gmm-s"), &data));

    let rows = x.slice(ndarray::s![..8, ..]);
    let given = algorithms::k_means(8).seeder(Given::new(rows));
    let given = given.seed(3).build().unwrap().fit(&data).unwrap();
    let from_rows = named("k-means").centres(rows.to_owned()).refined(true);
    assert_eq!(means_of(&from_rows, &data), given.model.means());

    let random = algorithms::var_gmm_s(8, 2, 2).e_step(Neighborhood::new(2, 2).random(2));
    let random = random.seed(3).build().unwrap().fit(&data).unwrap();
    let few = named("var-gmm-s").c_prime(2).neighbors(2);
    let by_name = means_of(&few.clone().random(2), &data);
    assert_eq!(by_name, random.model.means());
    assert_ne!(by_name, means_of(&few, &data));
}

#[test]
fn a_setting_that_the_algorithm_does_not_have_is_an_error() {
    type Set = fn(Algorithm) -> Algorithm;
    let settings: [(&str, &str, Set); 15] = [
        (
            "coreset",
            "k-means k-means-c-prime gmm lazy-k-means lwcs-k-means var-gmm-s vc-gmm d-gmm sparsified-gmm dp-gmm table fast",
            |a| a.coreset(9),
        ),
        ("memory", "fast", |a| a.memory(1 << 20)),
        ("c_prime", "k-means-c-prime var-gmm-s vc-gmm d-gmm", |a| {
            a.c_prime(2)
        }),
        ("neighbors", "var-gmm-s vc-gmm", |a| a.neighbors(2)),
        ("random", "var-gmm-s vc-gmm", |a| a.random(2)),
        ("drawn", "d-gmm", |a| a.drawn(2)),
        ("chain", "lwcs-k-means var-gmm-s vc-gmm d-gmm", |a| {
            a.chain(2)
        }),
        (
            "greedy",
            "k-means k-means-c-prime gmm lazy-k-means sparsified-gmm dp-gmm table",
            |a| a.greedy(true),
        ),
        (
            "refined",
            "k-means k-means-c-prime gmm lazy-k-means sparsified-gmm dp-gmm",
            |a| a.refined(true),
        ),
        ("epsilon", "lazy-k-means", |a| a.epsilon(0.5)),
        ("concentration", "dp-gmm", |a| a.concentration(2.0)),
        ("process", "dp-gmm", |a| {
            a.process(DirichletProcess::new(2.0))
        }),
        (
            "covariance",
            "k-means k-means-c-prime gmm lwcs-k-means var-gmm-s vc-gmm d-gmm sparsified-gmm table",
            |a| a.covariance(Covariance::Spherical),
        ),
        ("columns", "table", |a| {
            a.columns(vec![Column::Number, Column::Count])
        }),
        (
            "prior",
            "k-means k-means-c-prime gmm lwcs-k-means var-gmm-s vc-gmm d-gmm sparsified-gmm table",
            |a| a.prior(Prior::weak()),
        ),
    ];
    for (setting, of, set) in settings {
        for algorithm in Algorithm::NAMES {
            let has = of.split(' ').any(|name| name == algorithm);
            assert_eq!(named(algorithm).settings().contains(&setting), has);
            match set(named(algorithm)).boxed::<f64>() {
                Ok(_) => assert!(has, "{algorithm}: {setting}"),
                Err(error) => {
                    assert!(!has, "{algorithm}: {error}");
                    let start = format!("{algorithm} has no setting `{setting}`; it has ");
                    assert!(error.to_string().starts_with(&start), "{error}");
                    let of = of.replace(' ', ", ");
                    let end = format!(". `{setting}` is a setting of {of}");
                    assert!(error.to_string().ends_with(&end), "{error}");
                }
            }
        }
    }
    let unknown = "kmeans".parse::<Algorithm>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("kmeans is no algorithm: choose from k-means, "),
        "{unknown}"
    );
}

/// All answers of a model about itself and data, through the trait alone.
fn answers(model: &impl Mixture<f64>, data: &Dense<'_, f64>) -> Vec<f64> {
    let labels = model.predict(data).unwrap();
    let (members, shares) = model.truncated_responsibilities(data, 2).unwrap();
    let score = model.score(data).unwrap();
    let mut numbers = vec![
        model.components() as f64,
        model.prior_terms(),
        model.log_likelihood(data).unwrap(),
        model.quantization_error(data).unwrap(),
        score.log_likelihood,
        score.quantization_error,
    ];
    numbers.extend(model.means());
    numbers.extend(model.proportions());
    numbers.extend(model.variances());
    numbers.extend(model.responsibilities(data).unwrap());
    numbers.extend(model.log_densities(data).unwrap());
    numbers.extend(shares);
    numbers.extend(labels.iter().chain(&score.labels).map(|&c| f64::from(c)));
    numbers.extend(members.iter().map(|&c| f64::from(c)));
    numbers
}

#[test]
fn a_boxed_model_answers_as_the_model() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    fn check<M: Mixture<f64>>(fit: Fit<M>, data: &Dense<'_, f64>) {
        let mut own = fit;
        let expected = answers(&own.model, data);
        let scored = own.score(data).unwrap();
        let evaluations = own.report.evaluations.scoring;
        let mut boxed: Fit<BoxedMixture<f64>> =
            own.map(|model| -> BoxedMixture<f64> { Box::new(model) });
        assert_eq!(answers(&boxed.model, data), expected);
        assert_eq!(boxed.score(data).unwrap(), scored);
        // Scoring cost as much again.
        assert_eq!(boxed.report.evaluations.scoring, 2 * evaluations);
        let model: &dyn Any = &*boxed.model;
        assert!(model.downcast_ref::<M>().is_some());
    }
    let gmm = || algorithms::gmm(8).seed(3);
    let fit = gmm().build().unwrap().fit(&data);
    check(fit.unwrap(), &data);
    let fit = gmm()
        .covariance(Covariance::Spherical)
        .build()
        .unwrap()
        .fit(&data);
    check(fit.unwrap(), &data);
    let fit = gmm()
        .covariance(Covariance::Diagonal)
        .build()
        .unwrap()
        .fit(&data);
    check(fit.unwrap(), &data);
    let fit = algorithms::dp_gmm(8, 1.0).build().unwrap().fit(&data);
    check(fit.unwrap(), &data);
}

/// The rows of a coreset have the labels that they have among all rows; what is particular to a family is found by its type.
#[test]
fn a_boxed_fit_labels_its_coreset_and_is_mapped() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    let vc = named("vc-gmm").c_prime(1).neighbors(1);
    let vc = vc.coreset(100).boxed::<f64>().unwrap();
    let fit = vc.fit(&data).unwrap();
    let all = fit.model.predict(&data).unwrap();
    let subset = fit.coreset.as_ref().unwrap();
    assert_eq!(subset.rows.len(), fit.search_labels.len());
    let drawn = data.select(&subset.rows, subset.weights.clone());
    let labels = fit.model.predict(&*drawn.unwrap()).unwrap();
    for (&row, &label) in subset.rows.iter().zip(&labels) {
        assert_eq!(label, all[row]);
    }

    let fit = named("dp-gmm").boxed::<f64>().unwrap().fit(&data).unwrap();
    let fit = fit.map(|model| {
        let model: Box<dyn Any> = model;
        *model.downcast::<DirichletProcessMixture<f64>>().unwrap()
    });
    assert_eq!(fit.model.sticks().nrows(), 8);
}

/// Every name is the function of that name with its defaults: the same bits, and so the same stop rule.
#[test]
fn every_name_is_its_function() {
    use coremix::{Estimator, algorithms};
    type Boxed = Box<dyn Estimator<f64>>;

    let x = points();
    let data = Dense::new(x.view()).unwrap();
    macro_rules! boxed {
        ($builder:expr) => {
            Box::new($builder.seed(3).build().unwrap()) as Boxed
        };
    }
    for name in Algorithm::NAMES {
        let function = match name {
            "k-means" => boxed!(algorithms::k_means(8)),
            "k-means-c-prime" => boxed!(algorithms::k_means_c_prime(8, 3)),
            "gmm" => boxed!(algorithms::gmm(8)),
            "lazy-k-means" => boxed!(algorithms::lazy_k_means(8, 0.1)),
            "lwcs-k-means" => boxed!(algorithms::lwcs_k_means(8, 8_192)),
            "var-gmm-s" => boxed!(algorithms::var_gmm_s(8, 3, 5)),
            "vc-gmm" => boxed!(algorithms::vc_gmm(8, 8_192, 3, 5)),
            "d-gmm" => boxed!(algorithms::d_gmm(8, 3, 5)),
            "sparsified-gmm" => boxed!(algorithms::sparsified_gmm(8)),
            "dp-gmm" => boxed!(algorithms::dp_gmm(8, 1.0)),
            "table" => boxed!(algorithms::table(8, Vec::new())),
            "fast" => boxed!(algorithms::fast(8)),
            other => panic!("{other} has no function here"),
        };
        let function = function.fit(&data).unwrap();
        let by_name = named(name).boxed::<f64>().unwrap().fit(&data).unwrap();
        assert_eq!(by_name.model.means(), function.model.means(), "{name}");
        let (found, expected) = (by_name.report, function.report);
        assert_eq!(found.free_energies, expected.free_energies, "{name}");
        assert_eq!(found.stop, expected.stop, "{name}");
    }
}
