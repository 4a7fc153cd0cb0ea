//! Sums of rows that know some of their coordinates, completed under each component (E55).

use super::moments::Moments;
use crate::base::float::Float;
use crate::base::sort;
use crate::costs::lanes::{GROUP, Lanes};
use crate::costs::observed::{Observed, Sums};
use crate::costs::patterns::{Expects, Group, Patterns, add_shared};
use crate::kernels::sparse::Entries;
use crate::model::block::Block;
use crate::rows::Rows;

/// A row of a component: its number in the block, and its weight times its responsibility.
pub(crate) type Member = (usize, f64);

/// Where the members of each component are, and all members in their order.
pub(crate) fn members<F: Float>(rows: &Rows<F>, block: &Block<F>) -> (Vec<usize>, Vec<Member>) {
    sort::sorted(block.components(), (0, 0.0), || {
        (0..rows.len()).flat_map(|i| {
            let weight = rows.weight(i);
            let members = block.members(i).map(move |(c, q)| (c, (i, weight * q)));
            members.filter(|(_, (_, share))| *share > 0.0)
        })
    })
}

/// Shows `see` the components of a block in groups, each with the shares of all rows in it: those that have any.
pub(crate) fn groups<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    mut see: impl FnMut(&[u32], &[Lanes]),
) {
    let (starts, members) = members(rows, block);
    let places = |c: u32| starts[c as usize]..starts[c as usize + 1];
    let present: Vec<u32> = (0..block.components() as u32)
        .filter(|c| !places(*c).is_empty())
        .collect();
    let mut shares = Vec::new();
    for ids in present.chunks(GROUP) {
        shares.clear();
        shares.resize(rows.len(), Lanes::default());
        for (l, &c) in ids.iter().enumerate() {
            for &(i, share) in &members[places(c)] {
                shares[i].0[l] = share;
            }
        }
        see(ids, &shares);
    }
}

impl Moments {
    /// Adds a block of rows that know some of their coordinates, shared out by its responsibilities, about a point for each component:
    /// under each, rows are completed, and what is missing adds its covariance given what is known (E55).
    pub(crate) fn add_completed<'a, F: Float>(
        &mut self,
        rows: &Rows<F>,
        entries: Entries<'_, F>,
        block: &Block<F>,
        observed: &Observed<'_>,
        about: impl Fn(usize) -> &'a [f64],
    ) {
        let dim = self.dim;
        self.begin_scatter(true);
        let patterns = Patterns::of(&entries, dim);
        groups(rows, block, |ids, shares| {
            let group = observed.group(ids);
            let steps = group.means().iter().enumerate().map(|(j, mean)| {
                let of = |l: usize| {
                    ids.get(l)
                        .map_or(0.0, |&c| mean.0[l] - about(c as usize)[j])
                };
                Lanes(std::array::from_fn(of))
            });
            let mut sums = Sums {
                steps: steps.collect(),
                first: vec![Lanes::default(); dim],
                second: vec![Lanes::default(); dim * dim],
            };
            add_shared(&group, &patterns, shares, &mut sums);
            for (l, &c) in ids.iter().enumerate() {
                let c = c as usize;
                self.mass[c] += shares.iter().map(|shares| shares.0[l]).sum::<f64>();
                let first = self.first_mut(c).iter_mut().zip(&sums.first);
                first.for_each(|(to, x)| *to += x.0[l]);
                let second = self.pairs_mut(c).iter_mut().zip(&sums.second);
                second.for_each(|(to, x)| *to += x.0[l]);
            }
        });
    }
}
