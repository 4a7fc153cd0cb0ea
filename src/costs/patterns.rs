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

/// All patterns of a block of rows, and the rows. Their numbers are `f64`, so that what follows is compiled once for all types of rows.
pub(crate) struct Patterns<'a> {
    starts: &'a [usize],
    ids: &'a [u32],
    values: Vec<f64>,
    /// For each the known coordinates, the places of the missing ones, and those of its rows.
    each: Vec<(&'a [u32], Range<usize>, Range<usize>)>,
    missing: Vec<u32>,
    rows: Vec<u32>,
}

/// The entries of row `i`, counted from the first one of all rows.
#[inline(always)]
fn places(starts: &[usize], i: u32) -> Range<usize> {
    let i = i as usize;
    starts[i] - starts[0]..starts[i + 1] - starts[0]
}

impl<'a> Patterns<'a> {
    pub(crate) fn of<F: Float>(entries: &Entries<'a, F>, dim: usize) -> Self {
        let Entries { starts, ids, .. } = *entries;
        let places = starts[0]..starts[entries.len()];
        let values = entries.values[places.clone()].iter();
        let values = values.map(|x| x.to_f64()).collect();
        Self::new(starts, &ids[places], values, dim)
    }

    fn new(starts: &'a [usize], all_ids: &'a [u32], values: Vec<f64>, dim: usize) -> Self {
        let ids = |i: u32| &all_ids[places(starts, i)];
        // Rows that differ in their first columns need no other comparison.
        let first = |i: u32| ids(i).iter().take_while(|j| **j < u64::BITS);
        let bits = |i: u32| first(i).fold(0u64, |bits, j| bits | 1 << j);
        let numbers = 0..starts.len() as u32 - 1;
        let mut order: Vec<(u64, u32)> = numbers.map(|i| (bits(i), i)).collect();
        order.sort_unstable_by(|a, b| {
            let by_ids = || ids(a.1).cmp(ids(b.1));
            a.0.cmp(&b.0).then_with(by_ids).then(a.1.cmp(&b.1))
        });
        let mut each = Vec::new();
        let mut missing = Vec::new();
        let mut end = 0;
        for rows in order.chunk_by(|a, b| a.0 == b.0 && ids(a.1) == ids(b.1)) {
            let known = ids(rows[0].1);
            let start = missing.len();
            let mut next = 0;
            for &j in known.iter().chain(&[dim as u32]) {
                missing.extend(next..j);
                next = j + 1;
            }
            let rows = end..end + rows.len();
            end = rows.end;
            each.push((known, start..missing.len(), rows));
        }
        Self {
            starts,
            ids: all_ids,
            values,
            each,
            missing,
            rows: order.iter().map(|row| row.1).collect(),
        }
    }

    #[inline(always)]
    fn row(&self, i: u32) -> Known<'_, f64> {
        let places = places(self.starts, i);
        Known {
            ids: &self.ids[places.clone()],
            values: &self.values[places],
        }
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

/// Sums over rows, side by side: about the means of a group, or points of its components.
pub(crate) struct Sums {
    /// The differences of the means from these points (d); none where sums are about the means.
    pub(crate) steps: Vec<Lanes>,
    /// (d).
    pub(crate) first: Vec<Lanes>,
    /// The squares of columns (d), or the lower halves of the products of pairs (d, d).
    pub(crate) second: Vec<Lanes>,
    /// The products of rows with the coordinates of their expected factors (d, q), if there are any.
    pub(crate) products: Vec<Lanes>,
}

impl Sums {
    /// As many numbers of each kind, all 0.
    pub(super) fn zeros(first: usize, second: usize, products: usize) -> Self {
        Self {
            steps: Vec::new(),
            first: vec![Lanes::default(); first],
            second: vec![Lanes::default(); second],
            products: vec![Lanes::default(); products],
        }
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

/// A few components that expect something of the coordinates that a row lacks, side by side.
pub(crate) trait Group {
    /// All that follows from a pattern under them.
    type Given: Default;

    /// Into `given`, whatever it was.
    fn give<S: Simd>(&self, simd: S, pattern: Pattern<'_>, given: &mut Self::Given);

    /// The logarithms of the determinants of the covariances of what is known, and the addends of a ridge to forms (E59).
    fn of_pattern<S: Simd>(
        &self,
        simd: S,
        pattern: Pattern<'_>,
        given: &Self::Given,
    ) -> (Lanes, Lanes);

    /// The means in the coordinates of the frame (d).
    fn means(&self) -> &[Lanes];

    /// The differences of a row from the means, of which what is missing is completed, into a place.
    fn complete<S: Simd>(
        &self,
        simd: S,
        given: (Pattern<'_>, &Self::Given),
        row: Known<'_, f64>,
        to: (&mut Waiting, usize),
    );

    /// Writes into a place the numbers of a row that [`forms`](Self::forms) needs: by default the completed row.
    #[inline(always)]
    fn enter<S: Simd>(
        &self,
        simd: S,
        given: (Pattern<'_>, &Self::Given),
        row: Known<'_, f64>,
        to: (&mut Waiting, usize),
    ) {
        self.complete(simd, given, row, to);
    }

    /// Completes the row that [`enter`](Self::enter) wrote last, in the first place.
    fn finish(&self, _pattern: Pattern<'_>, _waiting: &mut Waiting) {}

    /// The squared Mahalanobis distances of what is known of the rows that wait, in the unit of costs.
    fn forms<S: Simd>(&self, simd: S, waiting: &Waiting) -> [Lanes; ROWS];

    /// Sums of no rows.
    fn sums(&self) -> Sums;

    /// Adds the rows that wait.
    fn add_rows<S: Simd>(
        &self,
        simd: S,
        waiting: &mut Waiting,
        shares: &[Lanes; ROWS],
        sums: &mut Sums,
    );

    /// Adds what rows of a pattern with these shares have besides the rows as they are completed: the covariance of what is missing
    /// given what is known, and what is known with a ridge, less the ridge of all columns, which the M-step adds.
    fn add_beside<S: Simd>(
        &self,
        simd: S,
        given: (Pattern<'_>, &Self::Given),
        shares: &Lanes,
        sums: &mut Sums,
        scratch: &mut Vec<Lanes>,
    );
}

/// Components that expect something of the coordinates that a row lacks.
pub(crate) trait Expects: Sized {
    type Group: Group;

    fn scale(&self) -> Scale<'_>;

    /// Up to [`GROUP`] components. The last one stands for those that are fewer.
    fn group(&self, ids: &[u32]) -> Self::Group;

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
        forms_of_group(&group, &patterns, &mut waiting, &mut |_, _, _| ());
        for pattern in patterns.iter() {
            group.finish(pattern, &mut waiting);
        }
        let means = group.means().iter();
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
        forms_of_group(&group, &patterns, &mut waiting, tell);
    }
}

type Tell<'a> = dyn FnMut(usize, usize, &Lanes, &Lanes) + 'a;

kernel! {
    #[inline(never)]
    fn forms_of_group[G: Group](
        group: &G,
        patterns: &Patterns<'_>,
        waiting: &mut Waiting,
        tell: &mut dyn FnMut(usize, &Lanes, &Lanes),
    ) = forms_of
}

#[inline(always)]
fn forms_of<G: Group, S: Simd>(
    simd: S,
    group: &G,
    patterns: &Patterns<'_>,
    waiting: &mut Waiting,
    tell: &mut dyn FnMut(usize, &Lanes, &Lanes),
) {
    let zero = Lanes::default();
    let mut given = G::Given::default();
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
        group.give(simd, pattern, &mut given);
        let (log_dets, addends) = group.of_pattern(simd, pattern, &given);
        for &i in pattern.rows {
            rows[count] = (i as usize, log_dets);
            waiting.forms[count] = addends;
            group.enter(simd, (pattern, &given), patterns.row(i), (waiting, count));
            count += 1;
            if count == ROWS {
                tell_of(&rows, &group.forms(simd, waiting), tell);
                count = 0;
            }
        }
    }
    if count > 0 {
        tell_of(&rows[..count], &group.forms(simd, waiting), tell);
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
    #[inline(never)]
    /// Adds rows, shared out by their shares in a group of components (len), to sums about the means of these: under each, rows are
    /// completed, and what is missing adds its covariance given what is known (E55).
    pub(crate) fn add_shared[G: Group](
        group: &G,
        patterns: &Patterns<'_>,
        shares: &[Lanes],
        sums: &mut Sums,
    ) = shared_out
}

#[inline(always)]
fn shared_out<G: Group, S: Simd>(
    simd: S,
    group: &G,
    patterns: &Patterns<'_>,
    shares: &[Lanes],
    sums: &mut Sums,
) {
    let zero = Lanes::default();
    let waiting = &mut Waiting::new(group.means().len());
    let mut given = G::Given::default();
    let mut row_shares = [zero; ROWS];
    let mut count = 0;
    for pattern in patterns.iter() {
        let mut total = zero;
        for &i in pattern.rows.iter().filter(|i| shares[**i as usize] != zero) {
            if total == zero {
                group.give(simd, pattern, &mut given);
            }
            let share = shares[i as usize];
            total = total.plus(simd, &share);
            row_shares[count] = share;
            group.complete(simd, (pattern, &given), patterns.row(i), (waiting, count));
            count += 1;
            if count == ROWS {
                group.add_rows(simd, waiting, &row_shares, sums);
                count = 0;
            }
        }
        if total != zero {
            let scratch = &mut waiting.rest;
            group.add_beside(simd, (pattern, &given), &total, sums, scratch);
        }
    }
    if count > 0 {
        // Places without a row.
        row_shares[count..].fill(zero);
        for place in count..ROWS {
            waiting.row(place).0.fill(zero);
        }
        group.add_rows(simd, waiting, &row_shares, sums);
    }
}
