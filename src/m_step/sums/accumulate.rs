//! Sums of a block of rows; for rows that know some of their coordinates, all of it.

use super::moments::Moments;
use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::kernels::sparse::{self, Entries, Known};
use crate::kernels::stride;
use crate::model::block::Block;
use crate::model::posterior::expected_total;
use crate::rows::{Centres, Rows};

impl Moments {
    /// Adds a block of rows, shared out by its responsibilities, about `centres` (E5); to
    /// [totals](crate::m_step::SecondMoments::Total) the costs as well, as squared distances.
    #[inline(never)]
    pub fn add<F: Float>(&mut self, rows: &Rows<F>, block: &Block<F>, centres: &Centres<F>) {
        if self.has_totals() {
            let (weight, squared) = expected_total(rows, block);
            self.add_total(squared, rows.weight_known(weight));
        }
        let Some(known) = rows.entries() else {
            let listed = self.has_totals() && !block.is_full();
            return match stride(rows.dim) {
                4 if listed => rows.accumulate_short::<4>(block, centres, self),
                8 if listed => rows.accumulate_short::<8>(block, centres, self),
                _ if listed && block.components() <= 16 * rows.len() => {
                    rows.accumulate_by_component(block, centres, self);
                }
                _ => rows.add_each(block, centres, self),
            };
        };
        if !known.absent.is_unknown() {
            for (i, row) in known.rows().enumerate() {
                let shares = block.members(i).map(|(c, q)| (c, rows.weights[i] * q));
                let shares = shares.filter(|(_, share)| *share > 0.0);
                self.add_sparse(row, shares, centres);
            }
            return;
        }
        // Sums of their own pay where they are looked at more often than they are coordinates.
        if block.is_full() && rows.values.len() >= rows.dim {
            return if block.components() <= 4 {
                rows.accumulate_full::<4>(known, block, centres, self)
            } else {
                rows.accumulate_full::<8>(known, block, centres, self)
            };
        }
        for (i, row) in known.rows().enumerate() {
            for (c, q) in block.members(i) {
                let share = rows.weights[i] * q;
                if share > 0.0 {
                    self.add_known(c as usize, share, row.entries(), centres);
                }
            }
        }
    }
}

impl<F: Float> Rows<F> {
    /// Adds all rows to all components: few sums are looked at per coordinate, `L` components at a time.
    fn accumulate_full<const L: usize>(
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
