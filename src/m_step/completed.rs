//! Sums of rows that know some of their coordinates, completed under each component (E55).

use crate::base::float::Float;
use crate::base::sort;
use crate::costs::observed::Observed;
use crate::costs::patterns::{Expects, Pattern, patterns};
use crate::kernels::sparse::{Entries, Known};
use crate::kernels::stride;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;

/// A row of a component: its pattern, its number in the block, and its weight times its responsibility.
pub(super) type Member = (usize, usize, f64);

/// Where the members of each component are, and all members: those of a component by pattern.
pub(super) fn members<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    patterns: &[Pattern<'_>],
) -> (Vec<usize>, Vec<Member>) {
    sort::sorted(block.components(), (0, 0, 0.0), || {
        let of_row = |(pattern, i): (usize, usize)| {
            let weight = rows.weight(i);
            let members = block.members(i);
            let members = members.map(move |(c, q)| (c, (pattern, i, weight * q)));
            members.filter(|(_, (_, _, share))| *share > 0.0)
        };
        let all = patterns.iter().enumerate();
        let all = all.flat_map(|(pattern, own)| own.rows.iter().map(move |&i| (pattern, i)));
        all.flat_map(of_row)
    })
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
        let (dim, size) = (self.dim, self.dim * self.dim);
        let one = self.kind == SecondMoments::Pairs;
        (self.about_means, self.scatter_known) = (one, false);
        let patterns = patterns(rows);
        let (starts, members) = members(rows, block, &patterns);
        let mut givens: Vec<_> = patterns.iter().map(|_| None).collect();
        let mut x = Vec::new();
        for (c, places) in sort::among(&starts, 0..members.len()) {
            let members = &members[places];
            let mut values = vec![0.0; members.len() * stride(dim)];
            let mut out = values.chunks_exact_mut(stride(dim));
            let place = if one { 0 } else { c };
            for alike in members.chunk_by(|a, b| a.0 == b.0) {
                let (pattern, given) = (&patterns[alike[0].0], &mut givens[alike[0].0]);
                let given = observed.next_given(c, pattern, given);
                for ((_, i, _), out) in alike.iter().zip(&mut out) {
                    let (out, row) = (&mut out[..dim], entries.row(*i));
                    observed.complete(c, (pattern, given), row, (&mut *out, &mut x));
                    let mean = observed.mean(c);
                    out.iter_mut().zip(mean).for_each(|(u, m)| *u += m);
                }
                let share: f64 = alike.iter().map(|member| member.2).sum();
                let (missing, second) =
                    (&pattern.missing, &mut self.second[place * size..][..size]);
                for values in observed.noise(c, pattern) {
                    let (mut u, row) = (
                        vec![0.0; dim],
                        Known {
                            ids: pattern.known,
                            values: &values[..],
                        },
                    );
                    observed.complete(c, (pattern, given), row, (&mut u, &mut x));
                    for (i, row) in second.chunks_exact_mut(dim).enumerate() {
                        let pairs = row.iter_mut().zip(&u[..=i]);
                        pairs.for_each(|(sum, x)| *sum += share * u[i] * x);
                    }
                }
                // The M-step adds the ridge to all columns of all rows.
                let columns = second.iter_mut().step_by(dim + 1).zip(observed.ridge);
                columns.for_each(|(sum, ridge)| *sum -= share * ridge);
                let (rest, share) = (given.rest(missing.len()), observed.unit * share);
                for (&a, row) in missing.iter().zip(rest.chunks_exact(missing.len().max(1))) {
                    let lower = missing.iter().zip(row).take_while(|(b, _)| **b <= a);
                    lower.for_each(|(&b, x)| second[a as usize * dim + b as usize] += share * x);
                }
            }
            let completed = Rows::of_padded(&values, dim);
            let shares = members.iter().map(|member| member.2).enumerate();
            self.add_members(c, about(c), None, &completed, shares);
        }
    }
}
