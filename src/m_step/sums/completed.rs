//! Sums of rows that know some of their coordinates, completed under each component (E55).

use super::members::groups;
use super::moments::Moments;
use crate::base::float::Float;
use crate::costs::lanes::Lanes;
use crate::costs::patterns::{Expects, Group, Patterns, add_shared};
use crate::kernels::sparse::Entries;
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::Rows;

impl Moments {
    /// Adds a block of rows that know some of their coordinates, shared out by its responsibilities: under each component, rows are
    /// completed, and what is missing adds its covariance given what is known (E55). Sums are about `points` (k, d), or about the means
    /// that rows are completed with if there are none.
    pub(super) fn sum_completed<F: Float>(
        &mut self,
        rows: &Rows<F>,
        entries: Entries<'_, F>,
        block: &Block<F>,
        expects: &impl Expects,
        points: &[f64],
    ) {
        let dim = self.dim;
        self.begin_scatter(true);
        let patterns = Patterns::of(&entries, dim);
        groups(rows, block, |ids, shares| {
            let group = expects.group(ids);
            let mut sums = group.sums();
            if !points.is_empty() {
                let steps = group.means().iter().enumerate().map(|(j, mean)| {
                    let point = |c: u32| points[c as usize * dim + j];
                    let step = |l: usize| ids.get(l).map_or(0.0, |&c| mean.0[l] - point(c));
                    Lanes(std::array::from_fn(step))
                });
                sums.steps = steps.collect();
            }
            add_shared(&group, &patterns, shares, &mut sums);
            for (l, &c) in ids.iter().enumerate() {
                let c = c as usize;
                self.mass[c] += shares.iter().map(|shares| shares.0[l]).sum::<f64>();
                let first = self.first_mut(c).iter_mut().zip(&sums.first);
                first.for_each(|(to, x)| *to += x.0[l]);
                let second = self.second_mut(c).iter_mut().zip(&sums.second);
                second.for_each(|(to, x)| *to += x.0[l]);
                let rows = self.products_mut(c).chunks_exact_mut(stride(dim));
                let q = rows.len();
                for (row, to) in rows.enumerate() {
                    let column = sums.products[row..].iter().step_by(q);
                    to.iter_mut().zip(column).for_each(|(to, x)| *to += x.0[l]);
                }
            }
        });
    }
}
