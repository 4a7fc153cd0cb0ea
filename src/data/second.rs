//! Which second moments a family needs, and how they are kept.

use super::Moments;
use crate::base::float::Float;

/// Which second moments a component family needs: none, `()`; [`PerComponent`]; [`PerCoordinate`].
pub trait Second: Send + Sized {
    /// Moments with these, by their kind: what is compiled inside the crate cannot be generic.
    #[doc(hidden)]
    fn which(moments: &mut Moments<Self>) -> Which<'_>;
    /// Whether there are any.
    const WANTED: bool;
    /// No rows added yet, for `k` components in rows of `stride` numbers.
    fn zeros(k: usize, stride: usize) -> Self;
    /// Adds the squared differences of a padded row and a centre, times `share`, to component `c`.
    fn add_row<F: Float>(&mut self, c: usize, share: f64, row: &[F], centre: &[F]);
    /// Which of the sums an entry of component `c` belongs to, at `place` among the (k, d) padded numbers.
    fn sum_of(c: usize, place: usize) -> usize;
    /// Adds to component `c`, at `place` among the (k, d) padded numbers.
    fn add_entry(&mut self, c: usize, place: usize, value: f64);
    /// Adds squared distances to component `c`, where there is one sum for all coordinates.
    #[doc(hidden)]
    fn add_squares(&mut self, _c: usize, _squared: f64) {}
    /// The sums, if there is one for every coordinate.
    #[doc(hidden)]
    fn per_coordinate(&mut self) -> &mut [f64] {
        &mut []
    }
    /// All sums.
    fn sums(&self) -> &[f64];
    /// All sums, to be added to.
    fn sums_mut(&mut self) -> &mut [f64];
}

/// Moments of every kind.
#[derive(Debug)]
pub enum Which<'a> {
    /// Without second moments.
    None(&'a mut Moments),
    /// With one per component.
    PerComponent(&'a mut Moments<PerComponent>),
    /// With one per component and coordinate.
    PerCoordinate(&'a mut Moments<PerCoordinate>),
}

impl Second for () {
    fn which(moments: &mut Moments<Self>) -> Which<'_> {
        Which::None(moments)
    }
    const WANTED: bool = false;
    fn zeros(_: usize, _: usize) -> Self {}
    #[inline(always)]
    fn add_row<F: Float>(&mut self, _: usize, _: f64, _: &[F], _: &[F]) {}
    fn sum_of(_: usize, place: usize) -> usize {
        place
    }
    #[inline(always)]
    fn add_entry(&mut self, _: usize, _: usize, _: f64) {}
    fn sums(&self) -> &[f64] {
        &[]
    }
    fn sums_mut(&mut self) -> &mut [f64] {
        &mut []
    }
}

/// One second moment per component (k): $\sum_n w_n q_{nc} \lVert z_n - \mu_c \rVert^2$.
#[derive(Clone, Debug, PartialEq)]
pub struct PerComponent(Vec<f64>);

impl Second for PerComponent {
    fn which(moments: &mut Moments<Self>) -> Which<'_> {
        Which::PerComponent(moments)
    }
    const WANTED: bool = true;
    fn zeros(k: usize, _: usize) -> Self {
        Self(vec![0.0; k])
    }
    #[inline(always)]
    fn add_row<F: Float>(&mut self, c: usize, share: f64, row: &[F], centre: &[F]) {
        // Every stride is a multiple of 4.
        let mut sums = [0.0; 4];
        let (rows, _) = row.as_chunks::<4>();
        let (centres, _) = centre.as_chunks::<4>();
        for (x, mu) in rows.iter().zip(centres) {
            for l in 0..4 {
                let t = x[l].to_f64() - mu[l].to_f64();
                sums[l] += t * t;
            }
        }
        self.0[c] += share * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
    fn add_squares(&mut self, c: usize, squared: f64) {
        self.0[c] += squared;
    }
    #[inline(always)]
    fn sum_of(c: usize, _: usize) -> usize {
        c
    }
    #[inline(always)]
    fn add_entry(&mut self, c: usize, place: usize, value: f64) {
        self.0[Self::sum_of(c, place)] += value;
    }
    fn sums(&self) -> &[f64] {
        &self.0
    }
    fn sums_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

/// One second moment per component and coordinate (k, d): $\sum_n w_n q_{nc} (z_{nj} - \mu_{cj})^2$.
#[derive(Clone, Debug, PartialEq)]
pub struct PerCoordinate(Vec<f64>);

impl Second for PerCoordinate {
    fn which(moments: &mut Moments<Self>) -> Which<'_> {
        Which::PerCoordinate(moments)
    }
    const WANTED: bool = true;
    fn zeros(k: usize, stride: usize) -> Self {
        Self(vec![0.0; k * stride])
    }
    #[inline(always)]
    fn add_row<F: Float>(&mut self, c: usize, share: f64, row: &[F], centre: &[F]) {
        let sums = &mut self.0[c * row.len()..(c + 1) * row.len()];
        for ((sum, &x), &mu) in sums.iter_mut().zip(row).zip(centre) {
            let t = x.to_f64() - mu.to_f64();
            *sum += share * (t * t);
        }
    }
    fn per_coordinate(&mut self) -> &mut [f64] {
        &mut self.0
    }
    #[inline(always)]
    fn sum_of(_: usize, place: usize) -> usize {
        place
    }
    #[inline(always)]
    fn add_entry(&mut self, c: usize, place: usize, value: f64) {
        self.0[Self::sum_of(c, place)] += value;
    }
    fn sums(&self) -> &[f64] {
        &self.0
    }
    fn sums_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}
