//! Variances of the data where a model starts, and the least ones that a fit tells from 0.

use crate::base::cancel::unwatched;
use crate::base::float::Float;
use crate::base::linalg::Cholesky;
use crate::data::Summary;
use crate::rows::Frame;

/// The least variances (d) that a prior leaves to columns, in the unit of the frame, squared: a constant column has that of the mean
/// variance of all.
pub(super) fn variance_floors<F: Float>(frame: &Frame<F>, data: &Summary) -> Vec<f64> {
    let relative = relative_variances(frame, data).into_iter().zip(&data.range);
    let mean = variance_of(frame, data);
    let of_column = |(j, (relative, (low, high))): (usize, (f64, &(f64, f64)))| {
        let farthest = F::EPSILON * low.abs().max(high.abs());
        let by_rounding = frame.enter_length(j, farthest).powi(2);
        (1e-12 * mean * relative)
            .max(by_rounding)
            .max(resolved_beside::<F>(0.0))
    };
    relative.enumerate().map(of_column).collect()
}

/// The variances of the columns (d) as shares of their mean, at most 1; 1 for constant columns.
pub(super) fn relative_variances<F: Float>(frame: &Frame<F>, data: &Summary) -> Vec<f64> {
    let mean = variance_of(frame, data);
    let share = |v: f64| if v > 0.0 { (v / mean).min(1.0) } else { 1.0 };
    variances_of(frame, data).map(share).collect()
}

/// The least variance that is told from 0 where this one is ([E20](crate::equations#e20)), in the unit of the frame, squared.
pub(super) fn resolved_beside<F: Float>(variance: f64) -> f64 {
    // Costs are in units of a variance: rounded to this type, they still show different proportions.
    let smallest = 2f64.powi(-F::MAX_EXPONENT) / F::EPSILON;
    (RESOLVED.powi(2) * variance).max(smallest)
}

/// A deviation that is told from 0 among numbers of size 1, or as many as the number type tells apart: means and sums are
/// rounded by less, so densities at a floor have digits.
pub(super) const RESOLVED: f64 = 1.0 / (1u64 << 40) as f64;

/// The mean variance of the columns, in the unit of the frame, squared.
pub(super) fn variance_of<F: Float>(frame: &Frame<F>, data: &Summary) -> f64 {
    variances_of(frame, data).sum::<f64>() / data.variance.len() as f64
}

/// The variances of the columns (d), in the unit of the frame, squared.
pub(super) fn variances_of<F: Float>(
    frame: &Frame<F>,
    data: &Summary,
) -> impl Iterator<Item = f64> {
    /// Squares of smaller differences have lost some or all of their digits.
    const LOST: f64 = 1e-145;
    let columns = data.variance.iter().zip(&data.range).enumerate();
    columns.map(|(j, (&variance, (low, high)))| {
        if high - low > LOST {
            return frame.enter_product(j, j, variance);
        }
        // An estimate is enough for the start and the floor of the variance: the variance of a uniform distribution.
        frame.enter_length(j, high - low).powi(2) / 12.0
    })
}

/// M-steps of truncated searches that keep to one variance (E32), as published.
pub(super) const STEPS_WITH_ONE_VARIANCE: usize = 2;

/// Below this part of the second moment about a mean before it moved, the rest has too few digits.
pub(super) const ROUNDING: f64 = 1e-9;

/// Whether a matrix (d, d) is symmetric, up to rounding, and positive definite.
pub(super) fn is_proper(matrix: &[f64], dim: usize) -> bool {
    let at = |i: usize, j: usize| matrix[i * dim + j];
    let near = |i, j| (at(i, j) - at(j, i)).abs() <= 1e-9 * (at(i, i) * at(j, j)).sqrt();
    let symmetric = (0..dim).all(|i| (0..i).all(|j| near(i, j)));
    symmetric && unwatched(Cholesky::of(matrix, dim, None)).is_some()
}
