//! Sums of rows that know some of their coordinates, completed under each component (E55).

use crate::base::float::Float;
use crate::base::simd::kernel;
use crate::base::sort;
use crate::costs::lanes::{self, GROUP, Lanes};
use crate::costs::observed::{Observed, add_beside};
use crate::costs::patterns::{Expects, Pattern, Scratch};
use crate::kernels::sparse::Entries;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;
use pulp::Simd;

/// A row of a component: its number in the block, and its weight times its responsibility.
pub(super) type Member = (usize, f64);

/// Where the members of each component are, and all members in their order.
pub(super) fn members<F: Float>(rows: &Rows<F>, block: &Block<F>) -> (Vec<usize>, Vec<Member>) {
    sort::sorted(block.components(), (0, 0.0), || {
        (0..rows.len()).flat_map(|i| {
            let weight = rows.weight(i);
            let members = block.members(i).map(move |(c, q)| (c, (i, weight * q)));
            members.filter(|(_, (_, share))| *share > 0.0)
        })
    })
}

/// Shows `see` the components of a block in groups, each with the shares of all rows in it: those that have any.
pub(super) fn groups<F: Float>(
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
        shares.resize(rows.len(), [0.0; GROUP]);
        for (l, &c) in ids.iter().enumerate() {
            for &(i, share) in &members[places(c)] {
                shares[i][l] = share;
            }
        }
        see(ids, &shares);
    }
}

/// The rows of a pattern that have a share in a component of a group, and all their shares.
pub(super) fn sharing(pattern: &Pattern<'_>, shares: &[Lanes]) -> (Vec<usize>, Lanes) {
    let has_share = |i: &usize| shares[*i] != [0.0; GROUP];
    let rows: Vec<usize> = pattern.rows.iter().copied().filter(has_share).collect();
    let mut all = [0.0; GROUP];
    for &i in &rows {
        for l in 0..GROUP {
            all[l] += shares[i][l];
        }
    }
    (rows, all)
}

/// Sums of a group about the means of its components.
struct Sums {
    /// (d).
    first: Vec<Lanes>,
    /// The lower halves of (d, d).
    second: Vec<Lanes>,
}

kernel! {
    /// A row, given by its differences from the means, which are apart from the points that sums are about by `steps`.
    fn add_row[](sums: &mut Sums, apart: &mut [Lanes], steps: &[Lanes], shares: &Lanes) = added_row
}

#[inline(always)]
fn added_row<S: Simd>(
    simd: S,
    sums: &mut Sums,
    apart: &mut [Lanes],
    steps: &[Lanes],
    shares: &Lanes,
) {
    let dim = apart.len();
    lanes::add(simd, apart, &[1.0; GROUP], steps);
    lanes::add(simd, &mut sums.first, shares, apart);
    for i in 0..dim {
        let shared = lanes::times(simd, &apart[i], shares);
        lanes::add(
            simd,
            &mut sums.second[i * dim..][..=i],
            &shared,
            &apart[..=i],
        );
    }
}

impl Moments {
    /// Adds a block of rows that know some of their coordinates, shared out by its responsibilities, about a point for each component:
    /// under each, rows are completed, and what is missing adds its covariance given what is known (E55).
    pub(super) fn add_completed<'a, F: Float>(
        &mut self,
        rows: &Rows<F>,
        entries: Entries<'_, F>,
        block: &Block<F>,
        observed: &Observed<'_>,
        about: impl Fn(usize) -> &'a [f64],
    ) {
        let dim = self.dim;
        let size = self.dim * self.dim;
        let one = self.kind == SecondMoments::Pairs;
        (self.about_means, self.scatter_known) = (one, false);
        let patterns = Pattern::all(&entries, dim);
        let mut scratch = Scratch::default();
        let mut given = Default::default();
        groups(rows, block, |ids, shares| {
            let group = observed.group(ids);
            let mut sums = Sums {
                first: vec![[0.0; GROUP]; dim],
                second: vec![[0.0; GROUP]; size],
            };
            // Sums are about points that may be apart from the means.
            let steps: Vec<Lanes> = (Observed::means(&group).iter().enumerate())
                .map(|(j, mean)| {
                    let of = |l: usize| ids.get(l).map_or(0.0, |&c| mean[l] - about(c as usize)[j]);
                    std::array::from_fn(of)
                })
                .collect();
            for pattern in &patterns {
                let (members, all) = sharing(pattern, shares);
                if members.is_empty() {
                    continue;
                }
                observed.give(&group, pattern, &mut given);
                for i in members {
                    let row = entries.row(i);
                    observed.complete(&group, (pattern, &given), row, &mut scratch);
                    add_row(&mut sums, &mut scratch.apart, &steps, &shares[i]);
                }
                let unit = observed.unit;
                let ridge = observed.ridge;
                let second = &mut sums.second;
                let columns = &mut scratch.rest;
                add_beside(&group, pattern, &given, unit, ridge, &all, second, columns);
            }
            for (l, &c) in ids.iter().enumerate() {
                let c = c as usize;
                self.mass[c] += shares.iter().map(|shares| shares[l]).sum::<f64>();
                let first = self.first_mut(c).iter_mut().zip(&sums.first);
                first.for_each(|(to, x)| *to += x[l]);
                let place = if one { 0 } else { c };
                let second = self.second[place * size..][..size].iter_mut();
                second.zip(&sums.second).for_each(|(to, x)| *to += x[l]);
            }
        });
    }
}
