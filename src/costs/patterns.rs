//! Rows that know some of their coordinates, where these depend on one another: their costs and their sums
//! ([E55](crate::equations#e55)).
//!
//! A component expects values of the others that follow from the known ones, in one way for all rows of a pattern, which is found
//! once for these, and for a group of components at once.

use super::lanes::{GROUP, Lanes, ROWS};
use super::scaled::penalised;
use crate::base::float::Float;
use crate::base::simd::kernel;
use crate::kernels::sparse::{Absent, Entries, Known};
use pulp::Simd;
use std::ops::Range;

/// Rows of a block that know the same coordinates.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'a> {
    pub(crate) known: &'a [u32],
    pub(crate) missing: &'a [u32],
    /// Their numbers in the block.
    rows: &'a [u32],
}

/// All patterns of a block of rows.
pub(crate) struct Patterns<'a> {
    /// For each the known coordinates, the places of the missing ones, and those of its rows.
    each: Vec<(&'a [u32], Range<usize>, Range<usize>)>,
    missing: Vec<u32>,
    rows: Vec<u32>,
}

impl<'a> Patterns<'a> {
    pub(crate) fn of<F>(entries: &Entries<'a, F>, dim: usize) -> Self {
        let ids = |i: u32| &entries.ids[entries.starts[i as usize]..entries.starts[i as usize + 1]];
        // Rows that differ in their first columns need no other comparison.
        let first = |i: u32| ids(i).iter().take_while(|j| **j < u64::BITS);
        let bits = |i: u32| first(i).fold(0u64, |bits, j| bits | 1 << j);
        let mut order: Vec<(u64, u32)> = (0..entries.len() as u32).map(|i| (bits(i), i)).collect();
        order.sort_unstable_by(|a, b| {
            let by_ids = || ids(a.1).cmp(ids(b.1));
            a.0.cmp(&b.0).then_with(by_ids).then(a.1.cmp(&b.1))
        });
        let mut all = Self {
            each: Vec::new(),
            missing: Vec::new(),
            rows: order.iter().map(|row| row.1).collect(),
        };
        let mut end = 0;
        for rows in order.chunk_by(|a, b| a.0 == b.0 && ids(a.1) == ids(b.1)) {
            let known = ids(rows[0].1);
            let start = all.missing.len();
            let mut next = 0;
            for &j in known.iter().chain(&[dim as u32]) {
                all.missing.extend(next..j);
                next = j + 1;
            }
            let rows = end..end + rows.len();
            end = rows.end;
            all.each.push((known, start..all.missing.len(), rows));
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = Pattern<'_>> {
        self.each.iter().map(|(known, missing, rows)| Pattern {
            known,
            missing: &self.missing[missing.clone()],
            rows: &self.rows[rows.clone()],
        })
    }
}

/// Scratch for a few rows, which wait in places of their own until there are [`ROWS`] of them.
pub(crate) struct Waiting {
    /// The differences of completed rows from the means of a group (`ROWS`, d).
    pub(crate) apart: Vec<Lanes>,
    /// Forms (`ROWS`), or parts of them.
    pub(crate) forms: [Lanes; ROWS],
    pub(crate) rest: Vec<Lanes>,
}

impl Waiting {
    fn new(dim: usize) -> Self {
        Self {
            apart: vec![Lanes::default(); ROWS * dim],
            forms: Default::default(),
            rest: Vec::new(),
        }
    }

    /// The differences of the row in a place (d), and further scratch.
    #[inline(always)]
    pub(crate) fn row(&mut self, place: usize) -> (&mut [Lanes], &mut Vec<Lanes>) {
        let dim = self.apart.len() / ROWS;
        (&mut self.apart[place * dim..][..dim], &mut self.rest)
    }
}

/// The numbers that costs of components have besides forms.
pub(crate) struct Scale<'a> {
    /// The number of coordinates.
    pub(crate) dim: usize,
    pub(crate) unit: f64,
    /// Added to the cost of each component (k).
    pub(crate) penalties: &'a [f64],
}

/// Components that expect something of the coordinates that a row lacks.
pub(crate) trait Expects: Sized {
    /// The parameters of a few components, side by side.
    type Group;
    /// All that follows from a pattern under them.
    type Given: Default;
    /// Sums over rows, about the means of a group.
    type Sums;

    fn scale(&self) -> Scale<'_>;

    /// Up to [`GROUP`] components. The last one stands for those that are fewer.
    fn group(&self, ids: &[u32]) -> Self::Group;

    /// Into `given`, whatever it was.
    fn give<S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        pattern: Pattern<'_>,
        given: &mut Self::Given,
    );

    /// The logarithms of the determinants of the covariances of what is known, and the addends of a ridge to forms (E59).
    fn of_pattern<S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        pattern: Pattern<'_>,
        given: &Self::Given,
    ) -> (Lanes, Lanes);

    /// The means of a group in the coordinates of the frame (d).
    fn means(group: &Self::Group) -> &[Lanes];

    /// The differences of a row from the means, of which what is missing is completed, into a place.
    fn complete<F: Float, S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        given: (Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        to: (&mut Waiting, usize),
    );

    /// Writes into a place the numbers of a row that [`forms`](Self::forms) needs: by default the completed row.
    #[inline(always)]
    fn enter<F: Float, S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        given: (Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        to: (&mut Waiting, usize),
    ) {
        self.complete(simd, group, given, row, to);
    }

    /// The squared Mahalanobis distances of what is known of the rows that wait, in the unit of costs.
    fn forms<S: Simd>(&self, simd: S, group: &Self::Group, waiting: &Waiting) -> [Lanes; ROWS];

    /// Adds the rows that wait.
    fn add_rows<S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        waiting: &mut Waiting,
        shares: &[Lanes; ROWS],
        sums: &mut Self::Sums,
    );

    /// Adds what rows of a pattern with these shares have besides the rows as they are completed: the covariance of what is missing
    /// given what is known, and what is known with a ridge, less the ridge of all columns, which the M-step adds.
    fn add_beside<S: Simd>(
        &self,
        simd: S,
        group: &Self::Group,
        given: (Pattern<'_>, &Self::Given),
        shares: &Lanes,
        sums: &mut Self::Sums,
        scratch: &mut Vec<Lanes>,
    );

    /// The costs of a row under the components `ids`.
    fn some<F: Float>(&self, row: Known<'_, F>, ids: &[u32], out: &mut Vec<F>) {
        out.clear();
        out.resize(ids.len(), F::zero());
        costs_of_rows(self, alone(row, &[0, row.ids.len()]), ids, out);
    }

    /// The costs of all rows under all components: (len, k) into `out`, with the bits of [`some`](Self::some).
    fn all<F: Float>(&self, entries: Entries<'_, F>, out: &mut Vec<F>) {
        let ids: Vec<u32> = (0..self.scale().penalties.len() as u32).collect();
        out.clear();
        out.resize(entries.len() * ids.len(), F::zero());
        costs_of_rows(self, entries, &ids, out);
    }

    /// A row as it is completed under component `c`, in the coordinates of the frame (d).
    fn completed<F: Float>(&self, row: Known<'_, F>, c: usize) -> Vec<f64> {
        let starts = [0, row.ids.len()];
        let patterns = Patterns::of(&alone(row, &starts), self.scale().dim);
        let group = self.group(&[c as u32]);
        let mut waiting = Waiting::new(self.scale().dim);
        complete_one(self, &group, &patterns, row, &mut waiting);
        let means = Self::means(&group).iter();
        means
            .zip(&waiting.apart)
            .map(|(m, u)| m.0[0] + u.0[0])
            .collect()
    }
}

/// One row that knows some of its coordinates.
fn alone<'a, F>(row: Known<'a, F>, starts: &'a [usize; 2]) -> Entries<'a, F> {
    Entries {
        starts,
        ids: row.ids,
        values: row.values,
        absent: Absent::Unknown,
        whole: &[],
    }
}

/// Costs of rows under the components `ids`: (len, ids).
fn costs_of_rows<E: Expects, F: Float>(
    expects: &E,
    entries: Entries<'_, F>,
    ids: &[u32],
    out: &mut [F],
) {
    let Scale {
        unit, penalties, ..
    } = expects.scale();
    all_forms(expects, entries, ids, &mut |i, first, forms, log_dets| {
        let costs = out[i * ids.len()..][..ids.len()].iter_mut().zip(ids);
        let numbers = forms.0.iter().zip(log_dets.0);
        for ((cost, &c), (form, log_det)) in costs.skip(first).zip(numbers) {
            // Infinite, or NaN where the row is so far away.
            let form = form.min(F::LARGEST_COST) + unit * log_det;
            *cost = penalised(form, penalties[c as usize]);
        }
    });
}

/// Tells, for each row and each group of the components `ids`, the row's number, the place where the group begins, the forms of what is
/// known of the row, and the logarithms of the determinants of its covariances. Both are 0 where nothing is known.
pub(crate) fn all_forms<E: Expects, F: Float>(
    expects: &E,
    entries: Entries<'_, F>,
    ids: &[u32],
    tell: &mut Tell<'_>,
) {
    let dim = expects.scale().dim;
    let patterns = Patterns::of(&entries, dim);
    let mut waiting = Waiting::new(dim);
    for (place, group) in ids.chunks(GROUP).enumerate() {
        let group = expects.group(group);
        let tell = &mut |i: usize, forms: &Lanes, log_dets: &Lanes| {
            tell(i, place * GROUP, forms, log_dets);
        };
        forms_of_group(expects, &group, &patterns, entries, &mut waiting, tell);
    }
}

type Tell<'a> = dyn FnMut(usize, usize, &Lanes, &Lanes) + 'a;

kernel! {
    fn forms_of_group[E: Expects, F: Float](
        expects: &E,
        group: &E::Group,
        patterns: &Patterns<'_>,
        entries: Entries<'_, F>,
        waiting: &mut Waiting,
        tell: &mut dyn FnMut(usize, &Lanes, &Lanes),
    ) = forms_of
}

#[inline(always)]
fn forms_of<E: Expects, F: Float, S: Simd>(
    simd: S,
    expects: &E,
    group: &E::Group,
    patterns: &Patterns<'_>,
    entries: Entries<'_, F>,
    waiting: &mut Waiting,
    tell: &mut dyn FnMut(usize, &Lanes, &Lanes),
) {
    let zero = Lanes::default();
    let mut given = E::Given::default();
    let mut rows = [(0, zero); ROWS];
    let mut count = 0;
    for pattern in patterns.iter() {
        if pattern.known.is_empty() {
            pattern
                .rows
                .iter()
                .for_each(|i| tell(*i as usize, &zero, &zero));
            continue;
        }
        expects.give(simd, group, pattern, &mut given);
        let (log_dets, addends) = expects.of_pattern(simd, group, pattern, &given);
        for &i in pattern.rows {
            let i = i as usize;
            rows[count] = (i, log_dets);
            waiting.forms[count] = addends;
            expects.enter(
                simd,
                group,
                (pattern, &given),
                entries.row(i),
                (waiting, count),
            );
            count += 1;
            if count == ROWS {
                tell_of(&rows, &expects.forms(simd, group, waiting), tell);
                count = 0;
            }
        }
    }
    if count > 0 {
        tell_of(&rows[..count], &expects.forms(simd, group, waiting), tell);
    }
}

fn tell_of(
    rows: &[(usize, Lanes)],
    forms: &[Lanes; ROWS],
    tell: &mut dyn FnMut(usize, &Lanes, &Lanes),
) {
    for ((i, log_dets), forms) in rows.iter().zip(forms) {
        tell(*i, forms, log_dets);
    }
}

kernel! {
    /// The first row of the patterns, completed.
    fn complete_one[E: Expects, F: Float](
        expects: &E,
        group: &E::Group,
        patterns: &Patterns<'_>,
        row: Known<'_, F>,
        waiting: &mut Waiting,
    ) = completed_one
}

#[inline(always)]
fn completed_one<E: Expects, F: Float, S: Simd>(
    simd: S,
    expects: &E,
    group: &E::Group,
    patterns: &Patterns<'_>,
    row: Known<'_, F>,
    waiting: &mut Waiting,
) {
    let mut given = E::Given::default();
    for pattern in patterns.iter() {
        expects.give(simd, group, pattern, &mut given);
        expects.complete(simd, group, (pattern, &given), row, (waiting, 0));
    }
}

kernel! {
    /// Adds rows, shared out by their shares in a group of components (len), to sums about the means of these: under each, rows are
    /// completed, and what is missing adds its covariance given what is known (E55).
    pub(crate) fn add_shared[E: Expects, F: Float](
        expects: &E,
        group: &E::Group,
        patterns: &Patterns<'_>,
        entries: Entries<'_, F>,
        shares: &[Lanes],
        sums: &mut E::Sums,
    ) = added_to
}

#[inline(always)]
fn added_to<E: Expects, F: Float, S: Simd>(
    simd: S,
    expects: &E,
    group: &E::Group,
    patterns: &Patterns<'_>,
    entries: Entries<'_, F>,
    shares: &[Lanes],
    sums: &mut E::Sums,
) {
    let zero = Lanes::default();
    let waiting = &mut Waiting::new(expects.scale().dim);
    let mut given = E::Given::default();
    let mut own = [zero; ROWS];
    let mut count = 0;
    for pattern in patterns.iter() {
        let mut all = zero;
        for &i in pattern.rows.iter().filter(|i| shares[**i as usize] != zero) {
            if all == zero {
                expects.give(simd, group, pattern, &mut given);
            }
            let share = shares[i as usize];
            all = all.plus(simd, &share);
            own[count] = share;
            let row = entries.row(i as usize);
            expects.complete(simd, group, (pattern, &given), row, (waiting, count));
            count += 1;
            if count == ROWS {
                expects.add_rows(simd, group, waiting, &own, sums);
                count = 0;
            }
        }
        if all != zero {
            expects.add_beside(
                simd,
                group,
                (pattern, &given),
                &all,
                sums,
                &mut waiting.rest,
            );
        }
    }
    if count > 0 {
        // Places without a row.
        own[count..].fill(zero);
        for place in count..ROWS {
            waiting.row(place).0.fill(zero);
        }
        expects.add_rows(simd, group, waiting, &own, sums);
    }
}
