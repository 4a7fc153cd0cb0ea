//! Parameters that Gaussian mixtures with any kind of covariances have.

use super::floors::Floors;
use super::prior::Advance;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::families::proportions::Proportions;
use crate::io::{all_finite, all_positive, rule};
use crate::rows::{Centres, Frame};

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Common<F> {
    pub(in crate::families) frame: Frame<F>,
    pub(in crate::families) centres: Centres<F>,
    /// The means in the data's own unit (k, columns), if they were given and not fitted.
    pub(in crate::families) means: Option<Vec<F>>,
    /// The variance that costs are in units of.
    pub(in crate::families) unit: f64,
    pub(in crate::families) proportions: Proportions,
    pub(in crate::families) floors: Floors,
    pub(in crate::families) prior: Advance,
}

impl<F: Float> Common<F> {
    pub(in crate::families) fn k(&self) -> usize {
        self.centres.len()
    }

    pub(super) fn dim(&self) -> usize {
        self.centres.dim()
    }

    /// The centre of component `c`.
    pub(super) fn centre(&self, c: usize) -> impl Iterator<Item = f64> {
        let row = &self.centres.row(c)[..self.dim()];
        row.iter().map(|z| z.to_f64())
    }

    /// The mean (d) of the data.
    pub(super) fn origin(&self) -> Vec<f64> {
        let mean = &self.frame.mean[..self.dim()];
        mean.iter().map(|m| m.to_f64()).collect()
    }

    /// Costs are in units of the variance that all would share. It is none of variances that are all clamped above it: costs would be
    /// rounded next to their logarithm.
    pub(super) fn set_unit(&mut self, shared: f64, variances: &[f64]) {
        let narrowest = variances.iter().copied().fold(f64::INFINITY, f64::min);
        self.unit = shared.max(narrowest);
    }

    /// The addends to costs by proportions (k).
    pub(super) fn penalties(&self) -> Vec<f64> {
        let penalty = |c| self.proportions.penalty(c, self.unit);
        (0..self.k()).map(penalty).collect()
    }

    /// The factor that a variance gives the square of a difference in coordinate `j`, and the term that it adds. A square is larger by
    /// what it is known with (E59).
    pub(super) fn relative(&self, variance: f64, j: usize) -> (f64, f64) {
        let factor = self.unit / variance;
        let of_ridge = factor * self.prior.ridge_of(j);
        (factor, self.unit * (variance / self.unit).ln() + of_ridge)
    }

    /// An error of the section that holds what no model has.
    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
        let dim = self.dim();
        rule(dim == self.frame.dim(), "centres", "must be in the frame")?;
        let most = Frame::<F>::farthest_centre();
        let near = self.centres.coordinates().all(|z| z.abs() <= most);
        rule(near, "centres", "must be near the frame")?;
        if let Some(means) = &self.means {
            all_finite("means", means, self.k() * dim)?;
        }
        self.floors.check(dim)?;
        all_positive("unit of costs", &[self.unit], 1)?;
        self.proportions.check_stored(self.k())
    }
}
