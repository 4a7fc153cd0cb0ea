//! Sums of rows that know some of their coordinates (E28).

use super::moments::Moments;
use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::kernels::sparse::{self, Entries, Known};
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::{Centres, Rows};

impl<F: Float> Rows<F> {
    /// Adds rows that know some of their coordinates about centres.
    pub(super) fn sum_known(
        &self,
        known: Entries<'_, F>,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        // Sums of their own pay where they are looked at more often than they are coordinates.
        if block.is_full() && self.values.len() >= self.dim {
            return if block.components() <= 4 {
                self.sum_full::<4>(known, block, centres, moments)
            } else {
                self.sum_full::<8>(known, block, centres, moments)
            };
        }
        for (i, row) in known.rows().enumerate() {
            for (c, q) in block.members(i) {
                let share = self.weights[i] * q;
                if share > 0.0 {
                    moments.add_known(c as usize, share, row.entries(), centres);
                }
            }
        }
    }

    /// Adds all rows to all components: few sums are looked at per coordinate, `L` components at a time.
    fn sum_full<const L: usize>(
        &self,
        known: Entries<'_, F>,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        let k = block.components();
        let lines = stride(k);
        moments.track_observed();
        let table = centres.by_coordinate();
        // Mass, first and second moments.
        let mut sums = vec![[[0.0; L]; 3]; self.dim];
        for first in (0..k).step_by(L) {
            let components = first..k.min(first + L);
            vectorised!({
                for (i, Known { ids, values }) in known.rows().enumerate() {
                    let mut shares = [0.0; L];
                    let responsibilities = &block.responsibilities(i)[components.clone()];
                    for (l, q) in responsibilities.iter().enumerate() {
                        shares[l] = self.weights[i] * q.to_f64();
                        moments.mass[first + l] += shares[l];
                    }
                    if self.weights[i] <= 0.0 {
                        continue;
                    }
                    for (&j, x) in ids.iter().zip(values) {
                        let j = j as usize;
                        let mu = *sparse::at::<F, L>(table, j * lines + first);
                        // A copy and back: the compiler sees that nothing overlaps, and takes whole vectors.
                        let [mut observed, mut firsts, mut seconds] = sums[j];
                        for l in 0..L {
                            let t = x.to_f64() - mu[l].to_f64();
                            let part = shares[l] * t;
                            observed[l] += shares[l];
                            firsts[l] += part;
                            seconds[l] += part * t;
                        }
                        sums[j] = [observed, firsts, seconds];
                    }
                }
            });
            for (j, sums) in sums.iter_mut().enumerate() {
                for (l, c) in components.clone().enumerate() {
                    let place = c * stride(self.dim) + j;
                    let of_first = moments.place(c) + j;
                    moments.observed[place] += sums[0][l];
                    moments.first[of_first] += sums[1][l];
                    if let Some(sum) = moments.kind.sum_of(c, place) {
                        moments.second[sum] += sums[2][l];
                    }
                }
                *sums = [[0.0; L]; 3];
            }
        }
    }
}
