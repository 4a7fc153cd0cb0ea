//! The least variances of Gaussian components (E20).

use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::families::variances::{RESOLVED, resolved_beside};
use crate::io::all_positive;
use crate::rows::Frame;

/// The least variance of a full covariance in any direction, as a share of those of its columns: below, sums of products have
/// too few digits left in it.
pub(super) const LEAST_SHARE: f64 = 1e-8;

/// In the unit of the frame, squared.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(in crate::families) struct Floors {
    /// The least variance of all.
    pub(in crate::families) least: f64,
    /// Factors by which those of columns (d) differ; none where they do not.
    pub(super) relative: Vec<f64>,
}

impl Floors {
    /// The least variance of column `j`, whatever its numbers are.
    pub(super) fn of_column<F: Float>(&self, j: usize) -> f64 {
        let relative = self.relative.get(j).copied().unwrap_or(1.0);
        (self.least * relative).max(resolved_beside::<F>(0.0).min(self.least))
    }

    /// The floors of the variances of columns (d) about a mean, or of their mean alone. Coordinates of a basis are sums over all
    /// columns, with the rounding of the largest.
    pub(super) fn about<F: Float>(
        &self,
        frame: &Frame<F>,
        mean: impl Iterator<Item = f64>,
        of_all: bool,
    ) -> Vec<f64> {
        let resolved = |(j, coordinate): (usize, f64)| {
            let value = frame.enter_length(j, frame.offset[j].to_f64()) + coordinate;
            (F::EPSILON.max(RESOLVED) * value).powi(2)
        };
        let mut floors: Vec<f64> = mean.enumerate().map(resolved).collect();
        if frame.basis().is_some() {
            let most = floors.iter().copied().fold(0.0, f64::max);
            floors.fill(most);
        }
        if of_all {
            floors = vec![floors.iter().sum::<f64>() / floors.len() as f64];
        }
        let columns = floors.into_iter().enumerate();
        columns
            .map(|(j, v)| v.max(self.of_column::<F>(j)))
            .collect()
    }

    /// An error of the section that holds what no floors are.
    pub(super) fn check(&self, dim: usize) -> std::result::Result<(), FileFault> {
        let columns = if self.relative.is_empty() { 0 } else { dim };
        all_positive("relative variances", &self.relative, columns)?;
        all_positive("least variance", &[self.least], 1)
    }
}
