//! Costs of rows that know some of their coordinates, where these depend on one another ([E55](crate::equations#e55)).
//!
//! A component expects values of the others that follow from the known ones, in one way for all rows of a pattern, which is found
//! once for these, and for a group of components at once.

use super::lanes::{GROUP, Lanes};
use super::scaled::penalised;
use crate::base::float::Float;
use crate::kernels::sparse::{Entries, Known};

/// Rows of a block that know the same coordinates.
pub(crate) struct Pattern<'a> {
    pub(crate) known: &'a [u32],
    pub(crate) missing: Vec<u32>,
    /// Their numbers in the block.
    pub(crate) rows: Vec<usize>,
}

impl<'a> Pattern<'a> {
    fn new(known: &'a [u32], dim: usize, rows: Vec<usize>) -> Self {
        let mut rest = known.iter().peekable();
        let missing = (0..dim as u32).filter(|j| rest.next_if_eq(&j).is_none());
        Self {
            known,
            missing: missing.collect(),
            rows,
        }
    }

    /// All patterns of a block of rows.
    pub(crate) fn all<F>(entries: &Entries<'a, F>, dim: usize) -> Vec<Self> {
        let ids = |i: usize| &entries.ids[entries.starts[i]..entries.starts[i + 1]];
        // Rows that differ in their first columns need no other comparison.
        let first = |i: usize| ids(i).iter().take_while(|j| **j < u64::BITS);
        let bits = |i: usize| first(i).fold(0u64, |bits, j| bits | 1 << j);
        let mut order: Vec<(u64, usize)> = (0..entries.len()).map(|i| (bits(i), i)).collect();
        order.sort_unstable_by(|a, b| {
            let by_ids = || ids(a.1).cmp(ids(b.1));
            a.0.cmp(&b.0).then_with(by_ids).then(a.1.cmp(&b.1))
        });
        let alike = order.chunk_by(|a, b| a.0 == b.0 && ids(a.1) == ids(b.1));
        alike
            .map(|rows| {
                let numbers = rows.iter().map(|row| row.1).collect();
                Self::new(ids(rows[0].1), dim, numbers)
            })
            .collect()
    }
}

/// Scratch: the differences of a completed row from the means of a group (d), and numbers on the way to them.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) apart: Vec<Lanes>,
    pub(crate) rest: Vec<Lanes>,
}

/// Components that expect something of the coordinates that a row lacks.
pub(crate) trait Expects {
    /// The parameters of a few components, side by side.
    type Group;
    /// All that follows from a pattern under them.
    type Given: Default;

    /// Numbers of components and of coordinates.
    fn shape(&self) -> (usize, usize);

    /// The unit of costs, and what is added to the cost of each component (k).
    fn added(&self) -> (f64, &[f64]);

    /// Up to [`GROUP`] components. The last one stands for those that are fewer.
    fn group(&self, ids: &[u32]) -> Self::Group;

    /// Into `given`, whatever it was.
    fn give(&self, group: &Self::Group, pattern: &Pattern<'_>, given: &mut Self::Given);

    /// The logarithms of the determinants of the covariances of what is known.
    fn log_dets(&self, group: &Self::Group, given: &Self::Given) -> Lanes;

    /// The means of a group in the coordinates of the frame (d).
    fn means(group: &Self::Group) -> &[Lanes];

    /// The differences of a row from the means, of which what is missing is completed, into `scratch.apart` (d).
    fn complete<F: Float>(
        &self,
        group: &Self::Group,
        given: (&Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        scratch: &mut Scratch,
    );

    /// The squared Mahalanobis distances of what is known, in the unit of costs, with the addend of a ridge (E59).
    fn forms<F: Float>(
        &self,
        group: &Self::Group,
        given: (&Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        scratch: &mut Scratch,
    ) -> Lanes;

    /// Shows `see` the forms of all rows under all components: those of the rows of a pattern under a group, with what is given.
    fn all_forms<F: Float>(
        &self,
        entries: Entries<'_, F>,
        mut see: impl FnMut(&[u32], &Pattern<'_>, (&Self::Group, &Self::Given), &[Lanes]),
    ) {
        let (k, dim) = self.shape();
        let patterns = Pattern::all(&entries, dim);
        let ids: Vec<u32> = (0..k as u32).collect();
        let mut scratch = Scratch::default();
        let mut forms = Vec::new();
        let mut given = Self::Given::default();
        for ids in ids.chunks(GROUP) {
            let group = self.group(ids);
            for pattern in &patterns {
                self.give(&group, pattern, &mut given);
                forms.clear();
                for &i in &pattern.rows {
                    let row = entries.row(i);
                    forms.push(self.forms(&group, (pattern, &given), row, &mut scratch));
                }
                see(ids, pattern, (&group, &given), &forms);
            }
        }
    }

    /// The cost of a row under component `c`, with its form and the logarithm of a determinant.
    fn cost<F: Float>(&self, c: usize, pattern: &Pattern<'_>, form: f64, log_det: f64) -> F {
        let (unit, penalties) = self.added();
        if pattern.known.is_empty() {
            return penalised(0.0, penalties[c]);
        }
        // Infinite, or NaN where the row is so far away.
        let cost = form.min(F::LARGEST_COST) + unit * log_det;
        penalised(cost, penalties[c])
    }

    /// The costs of a row under the components `ids`.
    fn some<F: Float>(&self, row: Known<'_, F>, ids: &[u32], out: &mut Vec<F>) {
        let pattern = Pattern::new(row.ids, self.shape().1, Vec::new());
        let mut scratch = Scratch::default();
        let mut given = Self::Given::default();
        out.clear();
        for ids in ids.chunks(GROUP) {
            let group = self.group(ids);
            self.give(&group, &pattern, &mut given);
            let forms = self.forms(&group, (&pattern, &given), row, &mut scratch);
            let log_dets = self.log_dets(&group, &given);
            for ((&c, form), log_det) in ids.iter().zip(forms).zip(log_dets) {
                out.push(self.cost(c as usize, &pattern, form, log_det));
            }
        }
    }

    /// The costs of all rows under all components: (len, k) into `out`, with the bits of [`some`](Self::some).
    fn all<F: Float>(&self, entries: Entries<'_, F>, out: &mut Vec<F>) {
        let (k, _) = self.shape();
        out.clear();
        out.resize(entries.len() * k, F::zero());
        self.all_forms(entries, |ids, pattern, (group, given), forms| {
            let log_dets = self.log_dets(group, given);
            for (i, forms) in pattern.rows.iter().zip(forms) {
                for ((&c, form), log_det) in ids.iter().zip(forms).zip(log_dets) {
                    out[i * k + c as usize] = self.cost(c as usize, pattern, *form, log_det);
                }
            }
        });
    }

    /// A row as it is completed under component `c`, in the coordinates of the frame (d).
    fn completed<F: Float>(&self, row: Known<'_, F>, c: usize) -> Vec<f64> {
        let pattern = Pattern::new(row.ids, self.shape().1, Vec::new());
        let group = self.group(&[c as u32]);
        let mut scratch = Scratch::default();
        let mut given = Self::Given::default();
        self.give(&group, &pattern, &mut given);
        self.complete(&group, (&pattern, &given), row, &mut scratch);
        let apart = scratch.apart.iter().zip(Self::means(&group));
        apart.map(|(u, m)| u[0] + m[0]).collect()
    }
}
