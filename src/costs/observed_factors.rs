//! Costs of rows that know some of their coordinates, under factor analysers ([E58](crate::equations#e58)): those of the known columns,
//! whose covariance has the rows of the loadings that belong to them.

use super::lanes::{self, Lanes, ROWS};
use super::low_rank::LowRank;
use super::patterns::{Expects, Group, Pattern, Scale, Sums, Waiting};
use crate::base::float::Float;
use crate::kernels::sparse::Known;
use crate::kernels::stride;
use pulp::Simd;

/// Components side by side.
pub(crate) struct Analysers<'m> {
    ridge: &'m [f64],
    unit: f64,
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
    /// $L_o^T$ (q, q), with $L_o D_o L_o^T = I + W_o^T \Psi_o^{-1} W_o$, and the inverses of $D_o$ (q).
    upper: Vec<Lanes>,
    inverse: Vec<Lanes>,
}

impl Analysers<'_> {
    fn factors(&self) -> usize {
        self.loadings.len() / self.means.len()
    }

    #[inline(always)]
    fn loadings_of(&self, j: u32) -> &[Lanes] {
        let q = self.factors();
        &self.loadings[j as usize * q..][..q]
    }

    /// Completes what is missing, given the expected factors `z` (q).
    #[inline(always)]
    fn fill<S: Simd>(&self, simd: S, missing: &[u32], z: &[Lanes], apart: &mut [Lanes]) {
        for &j in missing {
            apart[j as usize] = lanes::product(simd, self.loadings_of(j), z);
        }
    }

    /// Adds a row to all but first moments; `along` is scratch.
    #[inline(always)]
    fn add_apart<S: Simd>(
        &self,
        simd: S,
        apart: &[Lanes],
        shares: &Lanes,
        sums: &mut Sums,
        along: &mut Vec<Lanes>,
    ) {
        let q = self.factors();
        along.clear();
        along.resize(q, Lanes::default());
        for (u, map) in apart.iter().zip(self.map.chunks_exact(q)) {
            lanes::add(simd, along, u, map);
        }
        for (j, u) in apart.iter().enumerate() {
            let shared = u.times(simd, shares);
            lanes::add(simd, &mut sums.second[j..=j], &shared, &[*u]);
            lanes::add(simd, &mut sums.products[j * q..][..q], &shared, along);
        }
    }
}

impl KnownFactors {
    /// $L_o^{-1} W_o^T \Psi_o^{-1} u$ of one known column that is apart by 1, into `z`.
    #[inline(always)]
    fn along<S: Simd>(&self, simd: S, group: &Analysers<'_>, j: u32, z: &mut Vec<Lanes>) {
        let precision = &group.precisions[j as usize];
        z.clear();
        z.extend(
            group
                .loadings_of(j)
                .iter()
                .map(|w| w.times(simd, precision)),
        );
        lanes::forward(simd, &self.upper, z);
    }

    /// The differences of what is known from the means into `apart`, and the expected factors,
    /// $L_o^{-T} D_o^{-1} L_o^{-1} W_o^T \Psi_o^{-1} u$, into `z` (q).
    #[inline(always)]
    fn expect<S: Simd>(
        &self,
        simd: S,
        group: &Analysers<'_>,
        row: Known<'_, f64>,
        (apart, z): (&mut [Lanes], &mut Vec<Lanes>),
    ) {
        lanes::differences(simd, &group.means, row, apart);
        z.clear();
        z.resize(group.factors(), Lanes::default());
        for &j in row.ids {
            let scaled = apart[j as usize].times(simd, &group.precisions[j as usize]);
            lanes::add(simd, z, &scaled, group.loadings_of(j));
        }
        lanes::forward(simd, &self.upper, z);
        lanes::scale(simd, z, &self.inverse);
        lanes::backward(simd, &self.upper, z);
    }
}

impl<'m, F: Float> Expects for LowRank<'m, F> {
    type Group = Analysers<'m>;

    fn scale(&self) -> Scale<'_> {
        Scale {
            dim: self.dim(),
            unit: self.factored.unit(),
            penalties: self.penalties,
        }
    }

    fn group(&self, ids: &[u32]) -> Analysers<'m> {
        let dim = self.dim();
        let unit = self.factored.unit();
        let wide = stride(self.dim());
        let q = self.factored.map(0).len() / wide;
        let side_by_side = |numbers: usize, number_of: &dyn Fn(usize, usize) -> f64| {
            let of_place = |place: usize| {
                let lane = |l: usize| number_of(ids[l.min(ids.len() - 1)] as usize, place);
                Lanes(std::array::from_fn(lane))
            };
            (0..numbers).map(of_place).collect::<Vec<Lanes>>()
        };
        let noise = |c: usize, j: usize| self.noise[c * dim + j];
        // Column by column, from padded rows.
        let column = |place: usize| place % q * wide + place / q;
        Analysers {
            ridge: self.ridge,
            unit,
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
}

impl Group for Analysers<'_> {
    type Given = KnownFactors;

    #[inline(always)]
    fn give<S: Simd>(&self, simd: S, pattern: Pattern<'_>, given: &mut KnownFactors) {
        let q = self.factors();
        given.upper.clear();
        given.upper.resize(q * q, Lanes::default());
        given.inverse.resize(q, Lanes::default());
        for l in 0..q {
            given.upper[l * (q + 1)] = Lanes::all(1.0);
        }
        for &j in pattern.known {
            let loadings = self.loadings_of(j);
            for l in 0..q {
                let scaled = loadings[l].times(simd, &self.precisions[j as usize]);
                let row = &mut given.upper[l * q..][l..q];
                lanes::add(simd, row, &scaled, &loadings[l..]);
            }
        }
        lanes::factor(simd, &mut given.upper, &mut given.inverse);
    }

    #[inline(always)]
    fn of_pattern<S: Simd>(
        &self,
        simd: S,
        pattern: Pattern<'_>,
        given: &KnownFactors,
    ) -> (Lanes, Lanes) {
        let mut log_dets = Lanes::default();
        for &j in pattern.known {
            log_dets = log_dets.plus(simd, &self.logs[j as usize]);
        }
        let logs = lanes::log_product(&given.inverse);
        log_dets = log_dets.minus(simd, &logs);
        let unit = self.unit;
        let mut noise = Lanes::default();
        if self.ridge.is_empty() {
            return (log_dets, noise);
        }
        // The trace of a ridge with the precisions of what is known (E59).
        let mut z = Vec::with_capacity(self.factors());
        for &j in pattern.known {
            given.along(simd, self, j, &mut z);
            let less = lanes::sum_of_squares(simd, &z, &given.inverse);
            let left = self.precisions[j as usize].minus(simd, &less);
            for (sum, left) in noise.0.iter_mut().zip(left.0) {
                *sum += unit * self.ridge[j as usize] * left.max(0.0);
            }
        }
        (log_dets, noise)
    }

    fn means(&self) -> &[Lanes] {
        &self.means
    }

    #[inline(always)]
    fn complete<S: Simd>(
        &self,
        simd: S,
        (pattern, given): (Pattern<'_>, &KnownFactors),
        row: Known<'_, f64>,
        (waiting, place): (&mut Waiting, usize),
    ) {
        let (differences, z) = waiting.row(place);
        given.expect(simd, self, row, (&mut *differences, &mut *z));
        self.fill(simd, pattern.missing, z, differences);
    }

    /// The sum of squares that has no difference of large terms.
    #[inline(always)]
    fn enter<S: Simd>(
        &self,
        simd: S,
        (_, given): (Pattern<'_>, &KnownFactors),
        row: Known<'_, f64>,
        (waiting, place): (&mut Waiting, usize),
    ) {
        let (differences, z) = waiting.row(place);
        given.expect(simd, self, row, (&mut *differences, &mut *z));
        let mut form = [lanes::product(simd, z, z)];
        for &j in row.ids {
            let along = lanes::product(simd, self.loadings_of(j), z);
            let residual = differences[j as usize].minus(simd, &along);
            let scaled = residual.times(simd, &self.precisions[j as usize]);
            lanes::add(simd, &mut form, &scaled, &[residual]);
        }
        let unit = Lanes::all(self.unit);
        lanes::add(simd, &mut waiting.forms[place..=place], &unit, &form);
    }

    fn finish(&self, pattern: Pattern<'_>, waiting: &mut Waiting) {
        let (differences, z) = waiting.row(0);
        self.fill(pulp::Scalar::new(), pattern.missing, z, differences);
    }

    fn forms<S: Simd>(&self, _: S, waiting: &Waiting) -> [Lanes; ROWS] {
        waiting.forms
    }

    fn sums(&self) -> Sums {
        let dim = self.means.len();
        Sums::zeros(dim, dim, self.loadings.len())
    }

    #[inline(always)]
    fn add_rows<S: Simd>(
        &self,
        simd: S,
        waiting: &mut Waiting,
        shares: &[Lanes; ROWS],
        sums: &mut Sums,
    ) {
        let rows = waiting.apart.chunks_exact(self.means.len());
        for (differences, share) in rows.zip(shares) {
            lanes::add(simd, &mut sums.first, share, differences);
            self.add_apart(simd, differences, share, sums, &mut waiting.rest);
        }
    }

    /// With $V = L_o^{-1} W_m^T$ the missing columns have the covariance $\Psi_m + V^T D_o^{-1} V$, given what is known. A ridge stands for a row
    /// for each known column that is apart from the means by its deviation.
    #[inline(always)]
    fn add_beside<S: Simd>(
        &self,
        simd: S,
        (pattern, given): (Pattern<'_>, &KnownFactors),
        shares: &Lanes,
        sums: &mut Sums,
        scratch: &mut Vec<Lanes>,
    ) {
        let q = self.factors();
        let mut z = Vec::new();
        let mut differences = Vec::new();
        for &j in pattern.known.iter().filter(|_| !self.ridge.is_empty()) {
            let deviation = Lanes::all(self.ridge[j as usize].sqrt());
            given.along(simd, self, j, &mut z);
            lanes::scale(simd, &mut z, &given.inverse);
            lanes::backward(simd, &given.upper, &mut z);
            for z in &mut z {
                *z = z.times(simd, &deviation);
            }
            differences.clear();
            differences.resize(self.means.len(), Lanes::default());
            self.fill(simd, pattern.missing, &z, &mut differences);
            differences[j as usize] = deviation;
            self.add_apart(simd, &differences, shares, sums, scratch);
        }
        // The products of the rows of V, over D, with those of the map (q, q), then the products of a column.
        scratch.clear();
        scratch.resize(q * (q + 1), Lanes::default());
        let (across, products) = scratch.split_at_mut(q * q);
        let columns = &mut differences;
        columns.clear();
        for &j in pattern.missing {
            let start = columns.len();
            columns.extend_from_slice(self.loadings_of(j));
            let column = &mut columns[start..];
            lanes::forward(simd, &given.upper, column);
            let map = &self.map[j as usize * q..][..q];
            for (l, (v, inverse)) in column.iter().zip(&given.inverse).enumerate() {
                let scaled = v.times(simd, inverse);
                lanes::add(simd, &mut across[l * q..][..q], &scaled, map);
            }
        }
        for (&j, column) in pattern.missing.iter().zip(columns.chunks_exact(q)) {
            let place = j as usize;
            let noise = self.noise[place];
            let variance = noise.plus(simd, &lanes::sum_of_squares(simd, column, &given.inverse));
            products.fill(Lanes::default());
            lanes::add(simd, products, &noise, &self.map[place * q..][..q]);
            for (l, v) in column.iter().enumerate() {
                lanes::add(simd, products, v, &across[l * q..][..q]);
            }
            lanes::add(simd, &mut sums.second[place..=place], shares, &[variance]);
            let to = &mut sums.products[place * q..][..q];
            lanes::add(simd, to, shares, products);
        }
    }
}
