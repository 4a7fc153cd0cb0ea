//! Costs of rows that know some of their coordinates, under components with full covariances ([E55](crate::equations#e55)).
//!
//! Under each component, coordinates that are missing are completed with their expectation given the known ones: then the form of the row
//! is that of what is known.

use super::lanes::{self, GROUP, Lanes, ROWS};
use super::patterns::{Expects, Group, Pattern, Scale, Sums, Waiting};
use super::whitening::{Transforms, Whitening};
use crate::base::cached::Cached;
use crate::kernels::sparse::Known;
use pulp::Simd;

/// All that such costs follow from.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'m> {
    /// In units of the variance `unit`.
    pub(crate) transforms: &'m dyn Transforms,
    /// Their precisions (d, d), made when they are first asked for: one for all components, or one for each.
    pub(crate) precisions: &'m [Cached<Vec<f64>>],
    /// (k, d), where one transform is that of all components.
    pub(crate) means: Option<&'m [f64]>,
    /// Added to what determinants add (k).
    pub(crate) penalties: &'m [f64],
    pub(crate) ridge: &'m [f64],
    pub(crate) unit: f64,
}

/// Components side by side.
pub(crate) struct Conditional<'m> {
    ridge: &'m [f64],
    unit: f64,
    means: Vec<Lanes>,
    /// (d, d).
    precisions: Vec<Lanes>,
    /// The inverse roots of their diagonals (d), and the logarithms of the squares of these.
    scales: Vec<Lanes>,
    logs: Vec<Lanes>,
    /// The triangles that whiten, row after row.
    factors: Vec<Lanes>,
    log_dets: Lanes,
}

impl Conditional<'_> {
    /// Row `j` of the precisions.
    #[inline(always)]
    fn precisions_of(&self, j: u32) -> &[Lanes] {
        let dim = self.means.len();
        &self.precisions[j as usize * dim..][..dim]
    }
}

/// The distributions of the missing coordinates of a pattern given the known ones.
#[derive(Default)]
pub(crate) struct Given {
    /// Scales that make the diagonals of the precisions of the missing ones 1 (m): no pivot under- or overflows.
    scales: Vec<Lanes>,
    /// The factors of these, $L^T$ of $L D L^T$ (m, m), and the inverses of $D$ (m).
    factor: Vec<Lanes>,
    inverse: Vec<Lanes>,
}

impl Given {
    /// The products of the inverse precisions with vectors, in place.
    #[inline(always)]
    fn solve<S: Simd>(&self, simd: S, x: &mut [Lanes]) {
        lanes::scale(simd, x, &self.scales);
        lanes::forward(simd, &self.factor, x);
        lanes::scale(simd, x, &self.inverse);
        lanes::backward(simd, &self.factor, x);
        lanes::scale(simd, x, &self.scales);
    }

    /// Factors the precisions of what is missing, whose diagonals are raised by a share of them. Returns the least squares of pivots.
    #[inline(always)]
    fn factor<S: Simd>(
        &mut self,
        simd: S,
        group: &Conditional<'_>,
        missing: &[u32],
        raised: &Lanes,
    ) -> Lanes {
        let m = missing.len();
        for (a, &i) in missing.iter().enumerate() {
            let precisions = group.precisions_of(i);
            let row = &mut self.factor[a * m..][a..m];
            for (b, (x, &j)) in row.iter_mut().zip(&missing[a..]).enumerate() {
                let scaled = precisions[j as usize].times(simd, &self.scales[a]);
                *x = scaled.times(simd, &self.scales[a + b]);
            }
            row[0] = row[0].plus(simd, &row[0].times(simd, raised));
        }
        lanes::factor(simd, &mut self.factor, &mut self.inverse)
    }

    /// The trace of a ridge with the precisions of what is known (E59), each of which is at most that given all other columns.
    #[inline(always)]
    fn trace<S: Simd>(
        &self,
        simd: S,
        group: &Conditional<'_>,
        pattern: Pattern<'_>,
        ridge: &[f64],
    ) -> Lanes {
        let mut sum = Lanes::default();
        let mut column = Vec::new();
        for &j in pattern.known {
            let precisions = group.precisions_of(j);
            column.clear();
            column.extend(pattern.missing.iter().map(|&i| precisions[i as usize]));
            lanes::scale(simd, &mut column, &self.scales);
            lanes::forward(simd, &self.factor, &mut column);
            let less = lanes::sum_of_squares(simd, &column, &self.inverse);
            for (l, sum) in sum.0.iter_mut().enumerate() {
                let precision = precisions[j as usize].0[l] - less.0[l];
                *sum += ridge[j as usize] * precision.max(0.0);
            }
        }
        sum
    }
}

impl Observed<'_> {
    fn transform(&self, c: usize) -> &Whitening {
        self.transforms.transform(c % self.precisions.len())
    }
}

impl<'m> Expects for Observed<'m> {
    type Group = Conditional<'m>;

    fn scale(&self) -> Scale<'_> {
        Scale {
            dim: self.transform(0).mean.len(),
            unit: self.unit,
            penalties: self.penalties,
        }
    }

    fn group(&self, ids: &[u32]) -> Conditional<'m> {
        let dim = self.scale().dim;
        let side_by_side = |numbers: usize, numbers_of: &dyn Fn(usize, &Whitening) -> Vec<f64>| {
            let mut out = vec![Lanes::default(); numbers];
            for l in 0..GROUP {
                let c = ids[l.min(ids.len() - 1)] as usize;
                let numbers = numbers_of(c, self.transform(c));
                out.iter_mut().zip(numbers).for_each(|(to, x)| to.0[l] = x);
            }
            out
        };
        let means = side_by_side(dim, &|c, whitening| match self.means {
            Some(means) => means[c * dim..][..dim].to_vec(),
            None => whitening.mean.clone(),
        });
        let precisions = side_by_side(dim * dim, &|c, whitening| {
            let cached = &self.precisions[c % self.precisions.len()];
            cached.get(|| whitening.precision()).clone()
        });
        let diagonal = precisions.iter().step_by(dim + 1);
        let scales: Vec<Lanes> = diagonal
            .map(|p| Lanes(p.0.map(|p| 1.0 / p.sqrt())))
            .collect();
        Conditional {
            ridge: self.ridge,
            unit: self.unit,
            logs: scales
                .iter()
                .map(|s| Lanes(s.0.map(|s| 2.0 * s.ln())))
                .collect(),
            scales,
            means,
            precisions,
            factors: side_by_side(dim * (dim + 1) / 2, &|_, whitening| {
                whitening.factor.clone()
            }),
            log_dets: side_by_side(1, &|_, whitening| vec![whitening.log_det()])[0],
        }
    }
}

impl Group for Conditional<'_> {
    type Given = Given;

    #[inline(always)]
    fn give<S: Simd>(&self, simd: S, pattern: Pattern<'_>, given: &mut Given) {
        /// Where columns determine one another, a precision may have no digits: then its diagonal is raised by such a share.
        const RAISED: [f64; 4] = [1e-12, 1e-8, 1e-4, 1.0];
        let missing = pattern.missing;
        let m = missing.len();
        given.scales.clear();
        given
            .scales
            .extend(missing.iter().map(|&j| self.scales[j as usize]));
        given.factor.resize(m * m, Lanes::default());
        given.inverse.resize(m, Lanes::default());
        let mut raised = Lanes::default();
        loop {
            let least = given.factor(simd, self, missing, &raised);
            let mut is_raised = false;
            for (share, least) in raised.0.iter_mut().zip(least.0) {
                if least > 0.0 {
                    continue;
                }
                if let Some(next) = RAISED.into_iter().find(|next| *next > *share) {
                    (*share, is_raised) = (next, true);
                }
            }
            if !is_raised {
                break;
            }
        }
    }

    #[inline(always)]
    fn of_pattern<S: Simd>(&self, simd: S, pattern: Pattern<'_>, given: &Given) -> (Lanes, Lanes) {
        let mut logs = lanes::log_product(&given.inverse);
        for &j in pattern.missing {
            logs = logs.plus(simd, &self.logs[j as usize]);
        }
        let mut log_dets = self.log_dets;
        for (log_det, log) in log_dets.0.iter_mut().zip(logs.0) {
            if log.is_finite() {
                *log_det -= log;
            }
        }
        if self.ridge.is_empty() {
            return (log_dets, Lanes::default());
        }
        (log_dets, given.trace(simd, self, pattern, self.ridge))
    }

    fn means(&self) -> &[Lanes] {
        &self.means
    }

    #[inline(always)]
    fn complete<S: Simd>(
        &self,
        simd: S,

        (pattern, given): (Pattern<'_>, &Given),
        row: Known<'_, f64>,
        (waiting, place): (&mut Waiting, usize),
    ) {
        /// Products that are summed up side by side.
        const SUMS: usize = 4;
        let (differences, products) = waiting.row(place);
        lanes::differences(simd, &self.means, row, differences);
        products.clear();
        for some in pattern.missing.chunks(SUMS) {
            let mut precisions = [self.precisions_of(some[0]); SUMS];
            for (precisions, &j) in precisions.iter_mut().zip(some) {
                *precisions = self.precisions_of(j);
            }
            let sums = lanes::products_at(simd, precisions, differences, row.ids);
            products.extend_from_slice(&sums[..some.len()]);
        }
        given.solve(simd, products);
        for (&j, x) in pattern.missing.iter().zip(&*products) {
            differences[j as usize] = x.negative(simd);
        }
    }

    #[inline(always)]
    fn forms<S: Simd>(&self, simd: S, waiting: &Waiting) -> [Lanes; ROWS] {
        let mut forms = lanes::squares(simd, &self.factors, &waiting.apart);
        for (form, noise) in forms.iter_mut().zip(&waiting.forms) {
            *form = form.plus(simd, noise);
        }
        forms
    }

    fn sums(&self) -> Sums {
        let dim = self.means.len();
        Sums::zeros(dim, dim * dim, 0)
    }

    #[inline(always)]
    fn add_rows<S: Simd>(
        &self,
        simd: S,
        waiting: &mut Waiting,
        shares: &[Lanes; ROWS],
        sums: &mut Sums,
    ) {
        for row in waiting.apart.chunks_exact_mut(self.means.len()) {
            for (u, step) in row.iter_mut().zip(&sums.steps) {
                *u = u.plus(simd, step);
            }
        }
        let first = &mut sums.first;
        let second = &mut sums.second;
        lanes::add_rows(simd, &waiting.apart, shares, first, second);
    }

    #[inline(always)]
    fn add_beside<S: Simd>(
        &self,
        simd: S,

        (pattern, given): (Pattern<'_>, &Given),
        shares: &Lanes,
        sums: &mut Sums,
        scratch: &mut Vec<Lanes>,
    ) {
        let dim = self.means.len();
        let missing = pattern.missing;
        let m = missing.len();
        let unit = shares.times(simd, &Lanes::all(self.unit));
        // $L^{-1}$ in the columns' own units, then a row of their covariances.
        lanes::inverse_of_factor(simd, &given.factor, &given.scales, scratch);
        scratch.resize(m * (m + 1), Lanes::default());
        let (inverses, covariances) = scratch.split_at_mut(m * m);
        for (a, &i) in missing.iter().enumerate() {
            let covariances = &mut covariances[..=a];
            covariances.fill(Lanes::default());
            for (row, inverse) in inverses.chunks_exact(m.max(1)).zip(&given.inverse).skip(a) {
                lanes::add(simd, covariances, &row[a].times(simd, inverse), row);
            }
            let second = &mut sums.second[i as usize * dim..][..dim];
            for (&j, covariance) in missing.iter().zip(&*covariances) {
                let place = &mut second[j as usize..=j as usize];
                lanes::add(simd, place, &unit, &[*covariance]);
            }
        }
        for (j, ridge) in self.ridge.iter().enumerate() {
            let weighted = shares.times(simd, &Lanes::all(*ridge));
            if pattern.known.binary_search(&(j as u32)).is_err() {
                let place = &mut sums.second[j * (dim + 1)];
                *place = place.minus(simd, &weighted);
                continue;
            }
            // Known apart by 1, all others as they are expected then.
            scratch.clear();
            scratch.extend(missing.iter().map(|&i| self.precisions_of(i)[j]));
            given.solve(simd, scratch);
            for x in scratch.iter_mut() {
                *x = x.negative(simd);
            }
            for (a, &i) in missing.iter().enumerate() {
                let i = i as usize;
                let shared = weighted.times(simd, &scratch[a]);
                let place = &mut sums.second[i.max(j) * dim + i.min(j)];
                *place = place.plus(simd, &shared);
                for (&other, x) in missing[..=a].iter().zip(&*scratch) {
                    let place = i * dim + other as usize;
                    lanes::add(simd, &mut sums.second[place..=place], &shared, &[*x]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::unwatched;
    use crate::base::linalg;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::rows::Rows;
    use ndarray::Array2;

    /// Costs of all components at once have the bits of those that are asked for one by one, with any number of missing values.
    #[test]
    fn costs_of_all_are_those_of_some() {
        let mut rng = Rng::from_seed(2);
        let x = Array2::from_shape_fn((90, 6), |(i, j)| {
            if (i * 7 + j * j) % 6 < i % 7 {
                f32::NAN
            } else {
                rng.normal() as f32
            }
        });
        let data = Dense::with_missing(&x).unwrap();
        let mut rows = Rows::default();
        data.load(0..90, &data.frame(), &mut rows).unwrap();
        let entries = rows.entries().unwrap();
        let counts: Vec<usize> = (0..90).map(|i| rows.known(i)).collect();
        assert!(counts.contains(&0) && counts.contains(&6));
        let factor = |rng: &mut Rng| {
            let numbers = (0..36).map(|place| match place % 7 {
                0 => 0.5 + rng.uniform(),
                _ => rng.normal(),
            });
            numbers.collect::<Vec<f64>>()
        };
        let means: Vec<f64> = (0..18).map(|_| rng.normal()).collect();
        for number in [1, 3] {
            let whitenings: Vec<Whitening> = (0..number)
                .map(|_| {
                    let factor = linalg::unpacked(&linalg::packed(&factor(&mut rng), 6), 6);
                    unwatched(Whitening::of_factor(means[..6].to_vec(), &factor, None))
                })
                .collect();
            let observed = Observed {
                transforms: &whitenings,
                precisions: &vec![Cached::default(); number],
                means: (number == 1).then_some(&means[..]),
                penalties: &[0.5, f64::INFINITY, -1.0],
                ridge: &[0.1; 6],
                unit: 0.7,
            };
            let mut table = Vec::new();
            let mut some = Vec::new();
            observed.all(entries, &mut table);
            for (i, costs) in table.chunks_exact(3).enumerate() {
                observed.some(entries.row(i), &[2, 0, 1], &mut some);
                assert_eq!(costs, [some[1], some[2], some[0]], "{i}");
                assert!(costs[1].is_finite() && costs[1] > 1e35 && costs[0] < 1e30);
                if counts[i] == 0 {
                    assert_eq!((costs[0], costs[2]), (0.5, -1.0));
                }
            }
        }
    }
}
