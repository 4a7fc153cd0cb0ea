//! The M-step from sums: the parameters that follow (E6, E7, E32, E34).

use super::exact;
use super::plain::{Kind, Plain};
use super::sums::Sums;
use crate::input::Number;
use crate::model::{Model, OfType};
use coremix::BoxedMixture;
use coremix::m_step::{Covariance, GaussianMixture};
use coremix::ndarray::{Array1, Array2, Axis};

/// The model after the M-step. A component without mass keeps its mean and variance; where proportions are learned, its
/// proportion becomes 0.
pub(super) fn update(model: &Model, sums: &Sums) -> Result<Model, String> {
    Ok(Model(match &model.0 {
        OfType::Single(model) => OfType::Single(of_number(model, sums)?),
        OfType::Double(model) => OfType::Double(of_number(model, sums)?),
    }))
}

fn of_number<F: Number>(model: &BoxedMixture<F>, sums: &Sums) -> Result<BoxedMixture<F>, String> {
    let old = Plain::of(&**model).map_err(|error| error.to_string())?;
    if sums.model != old.mark() {
        return Err("statistics: they are of another model than the one to update".into());
    }
    let total = exact::weight(sums.weight);
    if total <= 0.0 {
        return Err("statistics: no row has positive weight; at least one must".into());
    }
    let new = new_parameters::<F>(&old, sums);
    let (means, proportions) = (new.means.view(), new.proportions.view());
    let found = match old.kind {
        Kind::Shared => GaussianMixture::tied_spherical(means, new.shared),
        Kind::Isotropic => {
            let variances = new.variances.mean_axis(Axis(1)).unwrap_or_default();
            let kind = Covariance::Spherical;
            GaussianMixture::from_parameters(kind, means, variances.view(), proportions)
        }
        Kind::Diagonal => {
            let (kind, variances) = (Covariance::Diagonal, new.variances.view());
            GaussianMixture::from_parameters(kind, means, variances, proportions)
        }
    };
    let model = found.map_err(|error| error.to_string())?;
    Ok(Box::new(model))
}

struct Parameters<F> {
    means: Array2<F>,
    variances: Array2<f64>,
    shared: f64,
    proportions: Array1<f64>,
}

fn new_parameters<F: Number>(old: &Plain, sums: &Sums) -> Parameters<F> {
    let (k, d) = old.means.dim();
    let mut means = old.means.mapv(F::from_f64);
    let mut variances = old.variances.clone();
    let mut squared = 0.0;
    let mut proportions = Array1::zeros(k);
    let total: f64 = (0..k).map(|c| sums.mass(c)).sum();
    for c in (0..k).filter(|c| sums.mass(*c) > 0.0) {
        proportions[c] = sums.mass(c) / total;
        for j in 0..d {
            let (first, second) = sums.moments(c, j);
            means[[c, j]] = F::from_f64(old.means[[c, j]] + first);
            variances[[c, j]] = (second - first * first).max(0.0);
            squared += proportions[c] * variances[[c, j]];
        }
    }
    // Clamped from below (E20), as in the core: by the variance of all rows, and by the rounding of the largest numbers.
    let largest = old.means.iter().fold(0.0f64, |a, m| a.max(m.abs()));
    let floor =
        (1e-12 * spread(&means, &proportions, squared, d)).max((F::EPSILON * largest).powi(2));
    let floor = floor.max(f64::MIN_POSITIVE / F::EPSILON.powi(2));
    variances.mapv_inplace(|v| v.max(floor));
    Parameters {
        means,
        variances,
        shared: (squared / d as f64).max(floor),
        proportions,
    }
}

/// The mean variance of the columns: that within components, and that of their means.
fn spread<F: Number>(means: &Array2<F>, shares: &Array1<f64>, within: f64, d: usize) -> f64 {
    let means = means.mapv(|m| m.to_f64());
    let centre = shares.dot(&means);
    let apart = (&means - &centre).mapv(|x| x * x).sum_axis(Axis(1));
    (within + shares.dot(&apart)) / d as f64
}
