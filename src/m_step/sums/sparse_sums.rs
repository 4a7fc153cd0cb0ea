//! Sums of sparse rows (E5): their zeros come at last, all together.

use super::moments::Moments;
use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::kernels::sparse::Entries;
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::{Centres, Rows};

impl<F: Float> Rows<F> {
    /// Adds rows whose coordinates are 0 where they are not there about centres. The zeros come [at last](Moments::settle).
    pub(super) fn sum_sparse(
        &self,
        known: Entries<'_, F>,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        moments.sparse.zeros_wait = true;
        let most = 2 * moments.mass.len() * stride(self.dim);
        for (i, row) in known.rows().enumerate() {
            let shares = block.members(i).map(|(c, q)| (c, self.weights[i] * q));
            let shares = shares.filter(|(_, share)| *share > 0.0);
            if !moments.observed.is_empty() {
                shares.for_each(|(c, share)| {
                    moments.add_known(c as usize, share, row.entries(), centres);
                });
            } else if moments.sparse.push(row, shares) > most {
                for waiting in std::mem::take(&mut moments.sparse.waiting) {
                    for (c, share, entries) in &waiting.shares {
                        moments.add_known(*c as usize, *share, waiting.row(entries), centres);
                    }
                }
            }
        }
    }
}

impl Moments {
    /// Adds the rows that wait, and the zeros of all, about these centres.
    ///
    /// The mass of the rows that lack a coordinate is a difference. Where none does, both masses are sums of the same numbers in the
    /// same order, and nothing is left of it.
    pub(crate) fn settle<F: Float>(&mut self, centres: &Centres<F>) {
        if !std::mem::take(&mut self.sparse.zeros_wait) {
            return;
        }
        let stride = stride(self.dim);
        let dim = self.dim;
        let waiting = std::mem::take(&mut self.sparse.waiting);
        let observed = std::mem::take(&mut self.observed);
        let places = || {
            let numbered = (0..).zip(&waiting);
            numbered.flat_map(|(w, rows)| {
                (0..)
                    .zip(&rows.shares)
                    .map(move |(s, share)| (share.0, (w, s)))
            })
        };
        let (starts, shares) = sort::sorted(self.mass.len(), (0_usize, 0_usize), places);
        let width = self.kind.of_component(dim);
        let mut second = self.second.chunks_exact_mut(width.max(1));
        let sums = self
            .mass
            .iter_mut()
            .zip(self.first[stride..].chunks_exact_mut(stride));
        let sums = sums.map(|sums| (sums, second.by_ref().next().filter(|_| width > 0)));
        parallel::map_parts(sums.collect(), |c, ((mass, first), second)| {
            let mut none = [0.0];
            let second = second.unwrap_or(&mut none);
            let last = second.len() - 1;
            let centre = centres.row(c);
            let mut known = vec![0.0; stride];
            if !observed.is_empty() {
                known.copy_from_slice(&observed[c * stride..][..stride]);
            }
            let mut add = |j: usize, share: f64, x: f64| {
                let t = x - centre[j].to_f64();
                first[j] += share * t;
                second[j.min(last)] += share * (t * t);
            };
            for (w, s) in &shares[starts[c]..starts[c + 1]] {
                let (_, share, entries) = &waiting[*w].shares[*s];
                *mass += share;
                for (j, x) in waiting[*w].row(entries) {
                    known[j] += share;
                    add(j, *share, x);
                }
            }
            for j in (0..dim).filter(|j| centre[*j] != F::zero()) {
                add(j, *mass - known[j], 0.0);
            }
        });
    }
}
