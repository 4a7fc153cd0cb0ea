//! Promises of every fit and every model, whatever their stages are.

use coremix::data::Data;
use coremix::ndarray::Array2;
use coremix::prelude::*;
use coremix::{BoxedMixture, Float};

/// Asserts that a fit can be used: it is finite everywhere, F never fell within a phase, and the model has answers.
pub(crate) fn fit<F: Float>(fit: &Fit<BoxedMixture<F>>, data: &dyn Data<F>) {
    let (model, report) = (&*fit.model, &fit.report);
    let k = model.components();
    parameters(model);
    let last = report.phases.last().expect("at least one phase");
    assert_eq!(report.free_energies, last.free_energies);
    let iterations: usize = report.phases.iter().map(|p| p.iterations).sum();
    assert_eq!(report.iterations, iterations, "iterations");
    let chosen = fit.coreset.iter().flat_map(|subset| &subset.weights);
    let weight = chosen.sum::<f64>().max(data.summary().total_weight);
    // The Dirichlet process adds what its priors give, which has no weight.
    let of_priors = match model.free_parameters() {
        Some(_) => 0.0,
        None => 1.0,
    };
    // F is a sum of log-densities, of which wide components have negative ones and narrow ones positive.
    let variances = model.variances();
    let widest = variances.iter().map(|v| v.ln().abs());
    let widest = widest.filter(|log| log.is_finite()).fold(0.0, f64::max);
    let of_density = 1.0 + 0.5 * variances.ncols() as f64 * widest;
    for phase in &report.phases {
        assert_eq!(phase.free_energies.len(), phase.iterations + 1, "searches");
        never_falls::<F>(&phase.free_energies, (weight * of_density).max(of_priors));
    }
    assert_eq!(fit.search_labels.len(), last.rows, "labels");
    labels(fit.search_labels.iter(), k);
    if let Some(members) = &fit.supports {
        assert_eq!(members.nrows(), last.rows, "supports");
        supports(members, k);
    }
    if let Some(subset) = &fit.coreset {
        let sound = |w: &f64| w.is_finite() && *w > 0.0;
        assert!(subset.weights.iter().all(sound), "{:?}", subset.weights);
        assert!(subset.rows.iter().all(|n| *n < data.len()), "rows");
    }
    answers(model, data);
}

/// F of the searches of a phase is finite and never falls, except by rounding relative to its size or to the unit of its terms.
fn never_falls<F: Float>(free_energies: &[f64], unit: f64) {
    let tolerance = if F::EPSILON > 1e-10 { 1e-6 } else { 1e-9 };
    let finite = free_energies.iter().all(|f| f.is_finite());
    assert!(finite, "free energies {free_energies:?}");
    for pair in free_energies.windows(2) {
        let slack = tolerance * pair[0].abs().max(unit);
        assert!(pair[1] >= pair[0] - slack, "F fell: {free_energies:?}");
    }
}

/// The numbers that a model is made of.
pub(crate) fn parameters<F: Float>(model: &dyn Mixture<F>) {
    let means = model.means();
    let finite = |x: &F| Float::is_finite(*x);
    assert!(means.iter().all(finite), "means {means:?}");
    assert_eq!(means.nrows(), model.components(), "means");
    let variances = model.variances();
    let sound = |v: &f64| v.is_finite() && *v >= 0.0;
    assert!(variances.iter().all(sound), "variances {variances:?}");
    let proportions = model.proportions();
    assert!(proportions.iter().all(|p| *p >= 0.0), "{proportions:?}");
    let off = (proportions.sum() - 1.0).abs();
    assert!(
        off < 1e-12,
        "proportions {proportions:?} are off by {off:e}"
    );
}

/// Asserts that what a model says of rows is an answer: no NaN, no label out of range.
pub(crate) fn answers<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) {
    let (n, k) = (data.len(), model.components());
    let predicted = model.predict(data).expect("labels");
    assert_eq!(predicted.len(), n, "labels");
    labels(predicted.iter(), k);
    let all = model.responsibilities(data).expect("responsibilities");
    assert_eq!(all.dim(), (n, k), "responsibilities");
    shares(&all);
    for c_prime in [1, 2, k + 7] {
        let (members, some) = model
            .truncated_responsibilities(data, c_prime)
            .expect("truncated responsibilities");
        assert_eq!(
            some.dim(),
            (n, k.min(c_prime)),
            "truncated responsibilities"
        );
        shares(&some);
        supports(&members, k);
    }
    let densities = model.log_densities(data).expect("densities");
    let sound = |p: &f64| !p.is_nan() && *p < f64::INFINITY;
    assert!(densities.iter().all(sound), "densities {densities:?}");
    let likelihood = model.log_likelihood(data).expect("a likelihood");
    assert!(!likelihood.is_nan(), "the likelihood is NaN");
    match (model.quantization_error(data), model.score(data)) {
        (Ok(error), Ok(score)) => {
            assert!(error >= 0.0, "the quantization error is {error}");
            let found = [score.quantization_error, score.log_likelihood];
            assert_eq!(
                found.map(f64::to_bits),
                [error, likelihood].map(f64::to_bits)
            );
            assert_eq!(score.labels, predicted, "labels of the score");
        }
        // A sum that no float holds.
        (Err(Error::Parameter { .. }), Err(Error::Parameter { .. })) => {}
        (error, score) => panic!("{error:?}, {score:?}"),
    }
}

fn labels<'a>(mut labels: impl Iterator<Item = &'a u32>, k: usize) {
    let outside = labels.find(|c| **c as usize >= k);
    assert!(outside.is_none(), "label {outside:?} of {k} components");
}

/// Different components in each row, all of which exist.
fn supports(members: &Array2<u32>, k: usize) {
    for row in members.rows() {
        labels(row.iter(), k);
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), row.len(), "support {row:?}");
    }
}

/// Shares in each row that sum to 1.
fn shares<F: Float>(shares: &Array2<F>) {
    for row in shares.rows() {
        let sum: f64 = row.iter().map(|q| q.to_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "shares {row:?}");
        assert!(row.iter().all(|q| q.to_f64() >= 0.0), "shares {row:?}");
    }
}
