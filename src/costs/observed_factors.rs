//! Costs of rows that know some of their coordinates, under factor analysers ([E58](crate::equations#e58)): those of the known columns,
//! whose covariance has the rows of the loadings that belong to them.

use super::lanes::{self, GROUP, Lanes};
use super::low_rank::LowRank;
use super::patterns::{Expects, Pattern, Scratch};
use crate::base::float::Float;
use crate::base::simd::kernel;
use crate::kernels::sparse::Known;
use crate::kernels::stride;
use pulp::Simd;

/// Components side by side.
pub(crate) struct Group {
    means: Vec<Lanes>,
    /// $W$ (d, q), column by column.
    loadings: Vec<Lanes>,
    /// The variances besides factors (d), their inverses, and the logarithms of these in the unit of costs.
    noise: Vec<Lanes>,
    precisions: Vec<Lanes>,
    logs: Vec<Lanes>,
    /// [`Factored::map`](super::low_rank::Factored::map) (d, q), column by column.
    map: Vec<Lanes>,
}

/// All that follows from the known columns of a pattern under a group.
#[derive(Default)]
pub(crate) struct KnownFactors {
    /// $L_o$ (q, q), with $L_o L_o^T = I + W_o^T \Psi_o^{-1} W_o$, and the inverses of its pivots.
    lower: Vec<Lanes>,
    inverse: Vec<Lanes>,
    /// $\ln \lvert \Sigma_{oo} \rvert$, in the unit of costs.
    log_dets: Lanes,
    /// The addend of a ridge to forms.
    noise: Lanes,
}

impl Group {
    fn factors(&self) -> usize {
        self.loadings.len() / self.means.len()
    }

    #[inline(always)]
    fn loadings_of(&self, j: u32) -> &[Lanes] {
        let q = self.factors();
        &self.loadings[j as usize * q..][..q]
    }
}

impl KnownFactors {
    /// $L_o^{-1} W_o^T \Psi_o^{-1} u$ of one known column that is apart by 1, into `z`.
    #[inline(always)]
    fn along<S: Simd>(&self, simd: S, group: &Group, j: u32, z: &mut Vec<Lanes>) {
        z.clear();
        for w in group.loadings_of(j) {
            z.push(lanes::times(simd, w, &group.precisions[j as usize]));
        }
        lanes::forward(simd, &self.lower, &self.inverse, z);
    }
}

kernel! {
    fn factor[](group: &Group, pattern: &Pattern<'_>, ridge: &[f64], given: &mut KnownFactors) = factored
}

#[inline(always)]
fn factored<S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    ridge: &[f64],
    given: &mut KnownFactors,
) {
    let q = group.factors();
    for l in 0..q {
        given.lower[l * (q + 1)] = [1.0; GROUP];
    }
    for &j in pattern.known {
        let loadings = group.loadings_of(j);
        for l in 0..q {
            let scaled = lanes::times(simd, &loadings[l], &group.precisions[j as usize]);
            lanes::add(
                simd,
                &mut given.lower[l * q..][..=l],
                &scaled,
                &loadings[..=l],
            );
        }
        for l in 0..GROUP {
            given.log_dets[l] += group.logs[j as usize][l];
        }
    }
    lanes::cholesky(simd, &mut given.lower, &mut given.inverse);
    if ridge.is_empty() {
        return;
    }
    // The trace of a ridge with the precisions of what is known (E59).
    let mut z = Vec::with_capacity(q);
    for &j in pattern.known {
        given.along(simd, group, j, &mut z);
        let own = lanes::left(simd, &group.precisions[j as usize], &z, &z);
        for (sum, own) in given.noise.iter_mut().zip(own) {
            *sum += ridge[j as usize] * own.max(0.0);
        }
    }
}

/// The differences of what is known from the means into `apart`, and the expected factors, $L_o^{-T} L_o^{-1} W_o^T \Psi_o^{-1} u$, into
/// `rest` (q).
#[inline(always)]
fn expect<F: Float, S: Simd>(
    simd: S,
    group: &Group,
    given: &KnownFactors,
    row: Known<'_, F>,
    scratch: &mut Scratch,
) {
    let Scratch { apart, rest } = scratch;
    apart.resize(group.means.len(), [0.0; GROUP]);
    rest.clear();
    rest.resize(group.factors(), [0.0; GROUP]);
    lanes::differences(simd, &group.means, row, apart);
    for &j in row.ids {
        let scaled = lanes::times(simd, &apart[j as usize], &group.precisions[j as usize]);
        lanes::add(simd, rest, &scaled, group.loadings_of(j));
    }
    lanes::forward(simd, &given.lower, &given.inverse, rest);
    lanes::backward(simd, &given.lower, &given.inverse, rest);
}

kernel! {
    fn complete[F: Float](group: &Group, pattern: &Pattern<'_>, given: &KnownFactors, row: Known<'_, F>, scratch: &mut Scratch) = completed
}

#[inline(always)]
fn completed<F: Float, S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &KnownFactors,
    row: Known<'_, F>,
    scratch: &mut Scratch,
) {
    expect(simd, group, given, row, scratch);
    complete_missing(simd, group, pattern, scratch);
}

#[inline(always)]
fn complete_missing<S: Simd>(simd: S, group: &Group, pattern: &Pattern<'_>, scratch: &mut Scratch) {
    let Scratch { apart, rest } = scratch;
    for &j in &pattern.missing {
        let less = lanes::left(simd, &[0.0; GROUP], group.loadings_of(j), rest);
        apart[j as usize] = lanes::times(simd, &less, &[-1.0; GROUP]);
    }
}

kernel! {
    /// The sum of squares that has no difference of large terms.
    fn forms[F: Float](group: &Group, given: &KnownFactors, row: Known<'_, F>, scratch: &mut Scratch) -> Lanes = formed
}

#[inline(always)]
fn formed<F: Float, S: Simd>(
    simd: S,
    group: &Group,
    given: &KnownFactors,
    row: Known<'_, F>,
    scratch: &mut Scratch,
) -> Lanes {
    expect(simd, group, given, row, scratch);
    let (mut forms, Scratch { apart, rest }) = ([[0.0; GROUP]], scratch);
    for z in &*rest {
        lanes::add(simd, &mut forms, z, &[*z]);
    }
    for &j in row.ids {
        let own = lanes::left(simd, &apart[j as usize], group.loadings_of(j), rest);
        let scaled = lanes::times(simd, &own, &group.precisions[j as usize]);
        lanes::add(simd, &mut forms, &scaled, &[own]);
    }
    forms[0]
}

/// Sums of a group of components, about their means: first and second moments of columns (d), and the products of rows with the
/// coordinates of their expected factors (d, q).
pub(crate) struct GroupSums {
    pub(crate) first: Vec<Lanes>,
    pub(crate) second: Vec<Lanes>,
    pub(crate) products: Vec<Lanes>,
}

impl GroupSums {
    pub(crate) fn new(group: &Group) -> Self {
        Self {
            first: vec![[0.0; GROUP]; group.means.len()],
            second: vec![[0.0; GROUP]; group.means.len()],
            products: vec![[0.0; GROUP]; group.loadings.len()],
        }
    }

    /// All but first moments; `along` is scratch.
    #[inline(always)]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        group: &Group,
        apart: &[Lanes],
        shares: &Lanes,
        along: &mut Vec<Lanes>,
    ) {
        let q = group.factors();
        along.clear();
        along.resize(q, [0.0; GROUP]);
        for (u, map) in apart.iter().zip(group.map.chunks_exact(q)) {
            lanes::add(simd, along, u, map);
        }
        for (j, u) in apart.iter().enumerate() {
            let shared = lanes::times(simd, u, shares);
            lanes::add(simd, &mut self.second[j..=j], &shared, &[*u]);
            lanes::add(simd, &mut self.products[j * q..][..q], &shared, along);
        }
    }
}

kernel! {
    /// Adds a row, given by its differences from the means.
    pub(crate) fn add_row[](group: &Group, shares: &Lanes, scratch: &mut Scratch, sums: &mut GroupSums) = added_row
}

#[inline(always)]
fn added_row<S: Simd>(
    simd: S,
    group: &Group,
    shares: &Lanes,
    scratch: &mut Scratch,
    sums: &mut GroupSums,
) {
    let Scratch { apart, rest } = scratch;
    lanes::add(simd, &mut sums.first, shares, apart);
    sums.add(simd, group, apart, shares, rest);
}

kernel! {
    /// Adds what rows of a pattern with these shares have besides the rows as they are completed. With $V = L_o^{-1} W_m^T$ the missing
    /// columns have the covariance $\Psi_m + V^T V$, given what is known. A ridge stands for a row for each known column that is apart from
    /// the means by its deviation.
    pub(crate) fn add_beside[](
        group: &Group,
        pattern: &Pattern<'_>,
        given: &KnownFactors,
        ridge: &[f64],
        shares: &Lanes,
        sums: &mut GroupSums,
    ) = added_beside
}

#[inline(always)]
fn added_beside<S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &KnownFactors,
    ridge: &[f64],
    shares: &Lanes,
    sums: &mut GroupSums,
) {
    let q = group.factors();
    let mut scratch = Scratch::default();
    let mut along = Vec::new();
    for &j in pattern.known.iter().filter(|_| !ridge.is_empty()) {
        let deviation = [ridge[j as usize].sqrt(); GROUP];
        given.along(simd, group, j, &mut scratch.rest);
        lanes::backward(simd, &given.lower, &given.inverse, &mut scratch.rest);
        for z in &mut scratch.rest {
            *z = lanes::times(simd, z, &deviation);
        }
        scratch.apart.clear();
        scratch.apart.resize(group.means.len(), [0.0; GROUP]);
        complete_missing(simd, group, pattern, &mut scratch);
        scratch.apart[j as usize] = deviation;
        sums.add(simd, group, &scratch.apart, shares, &mut along);
    }
    // The products of the rows of V with those of the map (q, q).
    let mut across = vec![[0.0; GROUP]; q * q];
    let mut columns = Vec::with_capacity(pattern.missing.len() * q);
    for &j in &pattern.missing {
        let start = columns.len();
        columns.extend_from_slice(group.loadings_of(j));
        let column = &mut columns[start..];
        lanes::forward(simd, &given.lower, &given.inverse, column);
        let map = &group.map[j as usize * q..][..q];
        for (l, v) in column.iter().enumerate() {
            lanes::add(simd, &mut across[l * q..][..q], v, map);
        }
    }
    let mut products = vec![[0.0; GROUP]; q];
    for (&j, column) in pattern.missing.iter().zip(columns.chunks_exact(q)) {
        let place = j as usize;
        let mut variance = [group.noise[j as usize]];
        products.fill([0.0; GROUP]);
        let map = &group.map[place * q..][..q];
        lanes::add(simd, &mut products, &group.noise[place], map);
        for (l, v) in column.iter().enumerate() {
            lanes::add(simd, &mut variance, v, &[*v]);
            lanes::add(simd, &mut products, v, &across[l * q..][..q]);
        }
        lanes::add(simd, &mut sums.second[place..=place], shares, &variance);
        lanes::add(
            simd,
            &mut sums.products[place * q..][..q],
            shares,
            &products,
        );
    }
}

impl<F: Float> Expects for LowRank<'_, F> {
    type Group = Group;
    type Given = KnownFactors;

    fn shape(&self) -> (usize, usize) {
        (self.components(), self.dim())
    }

    fn added(&self) -> (f64, &[f64]) {
        (self.factored.unit(), self.penalties)
    }

    fn group(&self, ids: &[u32]) -> Group {
        let dim = self.dim();
        let unit = self.factored.unit();
        let wide = stride(self.dim());
        let q = self.factored.map(0).len() / wide;
        let side_by_side = |numbers: usize, of: &dyn Fn(usize, usize) -> f64| {
            let of_place = |place: usize| {
                std::array::from_fn(|l| of(ids[l.min(ids.len() - 1)] as usize, place))
            };
            (0..numbers).map(of_place).collect::<Vec<Lanes>>()
        };
        let noise = |c: usize, j: usize| self.noise[c * dim + j];
        // Column by column, from padded rows.
        let column = |place: usize| place % q * wide + place / q;
        Group {
            means: side_by_side(dim, &|c, j| self.centres.row(c)[j].to_f64()),
            loadings: side_by_side(dim * q, &|c, place| {
                self.loadings[c * q * wide + column(place)].to_f64()
            }),
            noise: side_by_side(dim, &noise),
            precisions: side_by_side(dim, &|c, j| 1.0 / noise(c, j)),
            logs: side_by_side(dim, &|c, j| (noise(c, j) / unit).ln()),
            map: side_by_side(dim * q, &|c, place| {
                self.factored.map(c)[column(place)].to_f64()
            }),
        }
    }

    fn give(&self, group: &Group, pattern: &Pattern<'_>, given: &mut KnownFactors) {
        let q = group.factors();
        given.lower.clear();
        given.lower.resize(q * q, [0.0; GROUP]);
        given.inverse.resize(q, [0.0; GROUP]);
        (given.log_dets, given.noise) = ([0.0; GROUP], [0.0; GROUP]);
        factor(group, pattern, self.ridge, given);
        let logs = lanes::log_product(&given.inverse);
        (0..GROUP).for_each(|l| given.log_dets[l] -= 2.0 * logs[l]);
    }

    fn log_dets(&self, _: &Group, given: &KnownFactors) -> Lanes {
        given.log_dets
    }

    fn means(group: &Group) -> &[Lanes] {
        &group.means
    }

    fn complete<T: Float>(
        &self,
        group: &Group,
        (pattern, given): (&Pattern<'_>, &KnownFactors),
        row: Known<'_, T>,
        scratch: &mut Scratch,
    ) {
        complete(group, pattern, given, row, scratch);
    }

    fn forms<T: Float>(
        &self,
        group: &Group,
        (_, given): (&Pattern<'_>, &KnownFactors),
        row: Known<'_, T>,
        scratch: &mut Scratch,
    ) -> Lanes {
        let unit = self.factored.unit();
        let mut forms = forms(group, given, row, scratch);
        for (form, noise) in forms.iter_mut().zip(given.noise) {
            *form = unit * (*form + noise);
        }
        forms
    }
}
