//! The coordinates the crate computes in: near the data, and scaled by a power of two.

use super::{Basis, First};
use crate::base::float::Float;
use crate::kernels::{features, stride};
use std::sync::Arc;

/// Coordinates near the data, scaled by a power of two ([E24](crate::equations#e24)).
///
/// $$z = (y - o) / 2^e$$
///
/// In each column, $o$ is the value of its range that is nearest 0 (0 where the range has it). $2^e$ is the power of two at
/// or above the widest column range. Results map back as
///
/// $$\mu = o + 2^e \mu_z, \qquad \sigma^2 = 4^e \sigma_z^2, \qquad \Phi = 4^e \Phi_z, \qquad F = F_z - W D e \ln 2$$
///
/// Responsibilities and every choice the stages make are the same in both.
///
/// Far-off data come near the origin, and no coordinate becomes larger than it was: every row keeps the digits that it
/// had. (A single outlier would move the mean away from all other rows.) The power of two keeps squares inside the range of
/// the type, and costs no rounding. Rows closer to each other than $10^{-19}$ of the widest range ($10^{-154}$ in `f64`) are
/// taken for equal.
///
/// A [standardised](crate::Builder::standardise) frame has a unit for each column, its deviation times that power of two:
/// $z_j = (y_j - o_j) / (2^e s_j)$. Results leave it column by column, $\sigma_j^2 = 4^e s_j^2 \sigma_{zj}^2$, and squared distances are
/// those of the standardised columns.
///
/// Directions are rows that were brought to length 1 ([E56](crate::equations#e56)): a frame of these has the origin and the unit of
/// the sphere, and results stay on it.
///
/// The frame of a [`Sketch`](crate::data::Sketch) has a [`Basis`]: there $y$ stands for the preconditioned row
/// ([E27](crate::equations#e27)). Rows and centres in the data's own columns enter through the basis and leave through its
/// inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<F> {
    /// Padded with zeros.
    pub(crate) offset: Vec<F>,
    /// The factor of differences from the offset in each column, padded: $2^{-e} / s_j$.
    pub(crate) scale: Vec<F>,
    /// The mean of the data in the frame, padded.
    pub(crate) mean: Arc<[F]>,
    dim: usize,
    first: First,
    pub(crate) exponent: i32,
    /// 2^exponent.
    unit: f64,
    /// The mean of ln(scale) over the columns.
    log_scale: f64,
}

impl<F: Float> Frame<F> {
    /// The frame of directions in `dim` columns.
    pub(crate) fn sphere(dim: usize) -> Self {
        Self::with_exponent(&vec![0.0; dim], 0).with_first(First::Length)
    }

    /// Whether it is that of directions in `dim` columns, for data of any mean.
    pub(crate) fn is_sphere(&self, dim: usize) -> bool {
        let mean = Arc::clone(&self.mean);
        let sphere = Self::sphere(dim);
        *self == Self { mean, ..sphere }
    }

    /// This frame for rows that take this step first.
    pub(super) fn with_first(self, first: First) -> Self {
        Self { first, ..self }
    }

    /// A frame from an offset (d), which is taken for the mean as well, and the width of the widest column.
    pub(crate) fn new(offset: &[f64], widest: f64) -> Self {
        Self::with_exponent(offset, exponent::<F>(widest))
    }

    /// This frame, for data that have this mean (d).
    pub(crate) fn with_mean(mut self, mean: &[f64]) -> Self {
        let mut padded = vec![F::zero(); self.offset.len()];
        self.enter_exact(mean, &mut padded);
        self.mean = padded.into();
        self
    }

    fn with_exponent(offset: &[f64], exponent: i32) -> Self {
        let mut padded = vec![F::zero(); stride(offset.len())];
        for (padded, &x) in padded.iter_mut().zip(offset) {
            *padded = F::from_f64(x);
        }
        Self {
            mean: vec![F::zero(); padded.len()].into(),
            scale: vec![F::from_f64(2f64.powi(-exponent)); padded.len()],
            offset: padded,
            dim: offset.len(),
            first: First::Nothing,
            exponent,
            unit: 2f64.powi(exponent),
            log_scale: -f64::from(exponent) * std::f64::consts::LN_2,
        }
    }

    /// This frame with these factors (d) in place of one for all columns.
    pub(crate) fn with_scale(mut self, scale: &[F]) -> Self {
        self.scale[..self.dim].copy_from_slice(scale);
        let logarithms = scale.iter().map(|scale| scale.to_f64().ln());
        self.log_scale = logarithms.sum::<f64>() / self.dim as f64;
        self
    }

    /// The factors (d), if they are not one power of two for all columns.
    pub(crate) fn own_scale(&self) -> Option<&[F]> {
        let one = F::from_f64(1.0 / self.unit);
        let scales = &self.scale[..self.dim];
        scales.iter().any(|scale| *scale != one).then_some(scales)
    }

    /// The logarithms of the factors (d), less their mean; none where they are equal.
    pub(crate) fn log_scales(&self) -> Arc<[f64]> {
        let scales = self.own_scale().unwrap_or_default().iter();
        scales
            .map(|scale| scale.to_f64().ln() - self.log_scale)
            .collect()
    }

    /// Whether each column is in a unit of its own, so that all have deviation 1.
    #[must_use]
    pub fn is_standardised(&self) -> bool {
        self.own_scale().is_some()
    }

    /// A frame from what it is made of: offset and mean (d), and the exponent of its unit.
    pub(crate) fn from_parts(offset: &[F], mean: &[F], exponent: i32) -> Self {
        let exact: Vec<f64> = offset.iter().map(|x| x.to_f64()).collect();
        let mut frame = Self::with_exponent(&exact, exponent);
        let mut padded = vec![F::zero(); stride(mean.len())];
        padded[..mean.len()].copy_from_slice(mean);
        frame.mean = padded.into();
        frame
    }

    /// The frame in the same unit whose origin is the mean `mean` (d), rounded, and that origin in this frame, padded.
    pub(crate) fn centred(&self, mean: &[f64]) -> (Self, Vec<F>) {
        let at_mean = Self::with_exponent(mean, self.exponent);
        let centred = Self {
            scale: self.scale.clone(),
            log_scale: self.log_scale,
            first: self.first.clone(),
            ..at_mean
        };
        let mut origin = vec![F::zero(); centred.offset.len()];
        let rounded: Vec<f64> = centred.offset.iter().map(|x| x.to_f64()).collect();
        self.enter_exact(&rounded, &mut origin);
        (centred, origin)
    }

    pub(crate) fn with_basis(self, basis: Basis) -> Self {
        debug_assert_eq!(self.dim, basis.columns());
        self.with_first(First::Basis(basis))
    }

    /// This frame for some of its columns, where all have one unit and none is mixed with others.
    pub(crate) fn of_columns(&self, columns: &[usize]) -> Self {
        let picked = |values: &[F]| columns.iter().map(|j| values[*j]).collect::<Vec<F>>();
        Self::from_parts(&picked(&self.offset), &picked(&self.mean), self.exponent)
    }

    /// The frame of `dim` directions in the coordinates of this one, with its unit and origin.
    pub(crate) fn of_directions(&self, dim: usize) -> Self {
        Self {
            offset: vec![F::zero(); stride(dim)],
            scale: vec![F::from_f64(1.0 / self.unit); stride(dim)],
            mean: vec![F::zero(); stride(dim)].into(),
            dim,
            first: First::Nothing,
            ..*self
        }
    }

    /// Number of coordinates, d: as many as columns of the data.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The basis of the coordinates; `None` where they are the columns of the data.
    #[must_use]
    pub fn basis(&self) -> Option<&Basis> {
        self.first.basis()
    }

    pub(crate) fn first(&self) -> &First {
        &self.first
    }

    /// Whether these are the numbers that the data has.
    pub(crate) fn is_raw(&self) -> bool {
        let one_unit = self.own_scale().is_none() && self.exponent == 0;
        let at_origin = self.offset.iter().all(|offset| *offset == F::zero());
        self.is_plain() && at_origin && one_unit
    }

    /// Whether there is no step before offset and unit.
    pub(crate) fn is_plain(&self) -> bool {
        self.first.is_nothing()
    }

    /// Whether rows are brought to length 1.
    #[must_use]
    pub fn has_directions(&self) -> bool {
        self.first.has_directions()
    }

    /// $2^e$: the length of one unit of the frame in the unit of distances: the data's, or that of its standardised columns.
    #[must_use]
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// The length of one unit of the frame in a column, in the data's unit.
    pub(crate) fn unit_of(&self, column: usize) -> f64 {
        1.0 / self.scale[column].to_f64()
    }

    /// A squared distance from the unit of the frame into that of distances: the square of the unit alone may leave the range
    /// of `f64`.
    #[must_use]
    pub fn leave_square(&self, squared: f64) -> f64 {
        squared * self.unit * self.unit
    }

    /// A covariance of two columns from the data's own unit into that of the frame.
    pub(crate) fn enter_product(&self, i: usize, j: usize, product: f64) -> f64 {
        product * self.scale[i].to_f64() * self.scale[j].to_f64()
    }

    /// A covariance of two columns from the unit of the frame into the data's own.
    #[must_use]
    pub fn leave_product(&self, i: usize, j: usize, product: f64) -> f64 {
        product * self.unit_of(i) * self.unit_of(j)
    }

    /// Difference between a log-density in the data's own unit and in the frame, per coordinate: the mean of the logarithms of
    /// what columns were multiplied by.
    #[must_use]
    pub fn log_density_shift(&self) -> f64 {
        self.log_scale
    }

    /// One row in the columns of the data into the frame, through the basis, or onto the sphere; `out` is padded, with zeros.
    ///
    /// Coordinates beyond 2^54 times the range of the data (2^502 in `f64`) are clamped there: their squares
    /// would overflow. Only rows and centres that are no part of the data can be as far out.
    pub(crate) fn enter(&self, row: impl Iterator<Item = F>, out: &mut [F]) {
        if let Some(basis) = self.basis() {
            let mut columns: Vec<f64> = row.map(Float::to_f64).collect();
            basis.enter(&mut columns);
            return self.enter_exact(&columns, out);
        }
        out.iter_mut().zip(row).for_each(|(out, x)| *out = x);
        self.first.enter(out, out.len());
        features::enter(out, &self.offset, &self.scale, Self::most());
    }

    /// How a coordinate of a row of `D` enters the frame, by its column, as in [`enter`](Self::enter).
    #[inline(always)]
    pub(crate) fn entry<const D: usize>(&self) -> impl Fn(usize, F) -> F + use<F, D> {
        let mut offset = [F::zero(); D];
        let mut scale = [F::zero(); D];
        offset.copy_from_slice(&self.offset[..D]);
        scale.copy_from_slice(&self.scale[..D]);
        let most = Self::most();
        #[inline(always)]
        move |column, x| clamped((x - offset[column]) * scale[column], most)
    }

    /// One row after the first step into the frame, from `f64`.
    pub(crate) fn enter_exact(&self, row: &[f64], out: &mut [F]) {
        let most = Self::most().to_f64();
        for (j, (out, x)) in out.iter_mut().zip(row).enumerate() {
            let z = self.enter_length(j, x - self.offset[j].to_f64());
            *out = F::from_f64(z.clamp(-most, most));
        }
    }

    /// A difference in a column from the data's own unit into that of the frame.
    pub(crate) fn enter_length(&self, column: usize, length: f64) -> f64 {
        length * self.scale[column].to_f64()
    }

    /// Coordinates are clamped to this size.
    #[inline(always)]
    pub(crate) fn most() -> F {
        F::from_f64(2f64.powi(F::MAX_EXPONENT / 2 - 8))
    }

    /// No coordinate of a centre is larger: centres of clamped rows are near these rows.
    pub(crate) fn farthest_centre() -> f64 {
        64.0 * Self::most().to_f64()
    }

    /// One coordinate back to the data's own unit.
    pub(crate) fn leave(&self, column: usize, z: F) -> F {
        F::from_f64(self.leave_exact(column, z))
    }

    /// As [`leave`](Self::leave), not rounded.
    pub(crate) fn leave_exact(&self, column: usize, z: F) -> f64 {
        self.leave_wide(column, z.to_f64())
    }

    /// As above, from `f64`.
    pub(crate) fn leave_wide(&self, column: usize, z: f64) -> f64 {
        self.offset[column].to_f64() + z * self.unit_of(column)
    }
}

/// The exponent of the power of two at or above the widest range.
fn exponent<F: Float>(widest: f64) -> i32 {
    let limit = F::MAX_EXPONENT - 1;
    if widest > 0.0 {
        (widest.log2().ceil() as i32).clamp(-limit, limit)
    } else {
        0
    }
}

/// `z` clamped between `-most` and `most`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamped<F: Float>(z: F, most: F) -> F {
    let z = if z > most { most } else { z };
    if z < -most { -most } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_exact_for_values_the_frame_can_hold() {
        let frame = Frame::<f64>::new(&[8.0, -3.0], 6.0);
        assert_eq!(frame.unit(), 8.0);
        let mut z = [0.0; 4];
        frame.enter([9.5, -3.25].into_iter(), &mut z);
        assert_eq!(z, [1.5 / 8.0, -0.25 / 8.0, 0.0, 0.0]);
        assert_eq!((frame.leave(0, z[0]), frame.leave(1, z[1])), (9.5, -3.25));
        assert!((frame.log_density_shift() + 8f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn extreme_ranges_stay_normal_numbers() {
        for widest in [0.0, 1e-45, 1e-30, 1e30, 1.6e38] {
            let frame = Frame::<f32>::new(&[0.0], widest);
            let up = frame.unit() as f32;
            let down = frame.scale[0];
            assert!(up.is_normal() && down.is_normal() && up * down == 1.0);
        }
    }
}
