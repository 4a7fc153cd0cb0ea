//! A block of rows that know some of their coordinates, and the arithmetic on it.

use super::{Centres, Frame, Linear, Moments, Rows, Scales, Second};
use crate::block::Block;
use crate::float::Float;
use crate::kernels::sparse::{self, Entries};
use crate::kernels::{stride, vectorised};
use std::borrow::Cow;
use std::sync::Arc;

/// A block of rows of a [`Sketch`](super::Sketch) in the coordinates of a frame, with weights.
#[derive(Clone, Debug, Default)]
pub struct SketchRows<F> {
    pub(super) dim: usize,
    pub(super) entries: usize,
    /// The mean of the data, in the frame, padded.
    pub(super) mean: Arc<[F]>,
    pub(super) ids: Vec<u32>,
    pub(super) values: Vec<F>,
    pub(super) weights: Vec<f64>,
}

impl<F: Float> SketchRows<F> {
    pub(super) fn reset(&mut self, dim: usize, entries: usize) {
        (self.dim, self.entries) = (dim, entries);
        self.ids.clear();
        self.values.clear();
        self.weights.clear();
    }

    /// Makes it so many rows at the origin of a frame, of weight 1.
    pub(crate) fn blank(&mut self, n: usize, frame: &Frame<F>) {
        let entries = self.entries.clamp(1, frame.dim());
        self.reset(frame.dim(), entries);
        self.mean = frame.mean().clone();
        self.ids.extend((0..n).flat_map(|_| 0..entries as u32));
        self.values.resize(n * entries, F::zero());
        self.weights.resize(n, 1.0);
    }

    /// The first row that is not sound, and what is wrong with it.
    pub(crate) fn unsound(&self, frame: &Frame<F>) -> Option<(usize, String)> {
        if self.dim != frame.dim() {
            let (found, expected) = (self.dim, frame.dim());
            return Some((0, format!("{found} coordinates, but {expected} expected")));
        }
        let place = self.values.iter().position(|x| !x.is_finite())?;
        Some((
            place / self.entries.max(1),
            "a value is NaN or infinite".into(),
        ))
    }

    #[inline(always)]
    pub(super) fn all(&self) -> Entries<'_, F> {
        Entries {
            entries: self.entries,
            ids: &self.ids,
            values: &self.values,
        }
    }

    /// Adds all rows to all components: few sums are looked at per coordinate, `L` components at a time.
    fn accumulate_full<S: Second, const L: usize>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments<S>,
    ) {
        let (k, stride) = (block.components(), stride(block.components()));
        let table = centres.by_coordinate();
        // Mass, first and second moments.
        let mut sums = vec![[[0.0; L]; 3]; self.dim];
        for first in (0..k).step_by(L) {
            let components = first..k.min(first + L);
            vectorised!({
                for (i, (ids, values)) in self.all().rows().enumerate() {
                    let mut shares = [0.0; L];
                    let responsibilities = &block.responsibilities(i)[components.clone()];
                    for (l, q) in responsibilities.iter().enumerate() {
                        shares[l] = self.weights[i] * q;
                        moments.add_mass(first + l, shares[l]);
                    }
                    if self.weights[i] <= 0.0 {
                        continue;
                    }
                    for (&j, x) in ids.iter().zip(values) {
                        let j = j as usize;
                        let mu = *sparse::at::<F, L>(table, j * stride + first);
                        // A copy and back: the compiler sees that nothing overlaps, and takes whole vectors.
                        let [mut observed, mut firsts, mut seconds] = sums[j];
                        for l in 0..L {
                            let t = x.to_f64() - mu[l].to_f64();
                            let part = shares[l] * t;
                            observed[l] += shares[l];
                            firsts[l] += part;
                            if S::WANTED {
                                seconds[l] += part * t;
                            }
                        }
                        sums[j] = [observed, firsts, seconds];
                    }
                }
            });
            for (j, sums) in sums.iter_mut().enumerate() {
                for (l, c) in components.clone().enumerate() {
                    moments.add_coordinate(c, j, [sums[0][l], sums[1][l], sums[2][l]]);
                }
                *sums = [[0.0; L]; 3];
            }
        }
    }
}

impl<F: Float> Rows for SketchRows<F> {
    type Float = F;

    #[inline(always)]
    fn len(&self) -> usize {
        self.weights.len()
    }

    #[inline(always)]
    fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn to_centre(&self, i: usize) -> Cow<'_, [F]> {
        let mut centre = self.mean.to_vec();
        let (ids, values) = self.all().row(i);
        for (&j, &x) in ids.iter().zip(values) {
            centre[j as usize] = x;
        }
        Cow::Owned(centre)
    }

    super::compiled_loops!(F);
}

impl<F: Float> super::Arithmetic for SketchRows<F> {
    fn distances(&self, centres: &Centres<F>, out: &mut Vec<F>) {
        sparse::to_all(self.all(), centres.by_coordinate(), centres.len(), out);
    }

    fn margin(&self, _: usize, _: &Centres<F>, _: F) -> F {
        // All distances are computed directly, and in the same order.
        F::zero()
    }

    fn distances_to(&self, i: usize, centres: &Centres<F>, ids: &[u32], out: &mut Vec<F>) {
        let centres = (centres.values(), self.dim);
        sparse::to_some(self.all().row(i), centres, ids, out);
    }

    fn scaled_distances(&self, centres: &Centres<F>, scales: &Scales<F>, out: &mut Vec<F>) {
        let (k, scales) = (centres.len(), scales.by_coordinate());
        sparse::scaled_to_all(self.all(), centres.by_coordinate(), scales, k, out);
    }

    fn scaled_distances_to(
        &self,
        i: usize,
        centres: &Centres<F>,
        scales: &Scales<F>,
        ids: &[u32],
        out: &mut Vec<F>,
    ) {
        let (row, centres) = (self.all().row(i), (centres.values(), self.dim));
        sparse::scaled_to_some(row, centres, scales.of_entries(), ids, out);
    }

    fn lower(&self, first: usize, centre: &[F], nearest: &mut [F]) {
        let places = first * self.entries..;
        let rows = Entries {
            entries: self.entries,
            ids: &self.ids[places.clone()],
            values: &self.values[places],
        };
        sparse::lower(rows, centre, nearest);
    }

    fn accumulate<S: Second>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments<S>,
    ) {
        // Sums of their own pay where they are looked at more often than they are coordinates.
        if block.is_full() && self.values.len() >= self.dim {
            if block.components() <= 4 {
                self.accumulate_full::<S, 4>(block, centres, moments);
            } else {
                self.accumulate_full::<S, 8>(block, centres, moments);
            }
            return;
        }
        let all: Vec<u32> = (0..block.components() as u32).collect();
        for (i, row) in self.all().rows().enumerate() {
            let support = if block.is_full() {
                &all[..]
            } else {
                block.support(i)
            };
            for (&c, &q) in support.iter().zip(block.responsibilities(i)) {
                let share = self.weights[i] * q;
                if share > 0.0 {
                    moments.add_entries(c as usize, share, row, centres);
                }
            }
        }
    }

    /// All distances are computed directly: there is no faster way to the nearest.
    fn nearest(&self, _: &Centres<F>, _: &mut [u32], _: &mut [F]) -> bool {
        false
    }

    fn distances_from(&self, centre: &[F], out: &mut [F]) {
        out.fill(F::INFINITY);
        Rows::lower(self, 0, centre, out);
    }

    fn typical(&self) -> Option<f64> {
        None
    }
}
