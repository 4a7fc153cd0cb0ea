//! Costs of rows that know some of their coordinates, under components with full covariances ([E55](crate::equations#e55)).
//!
//! Under each component, coordinates that are missing are completed with their expectation given the known ones: then the form of the row
//! is that of what is known.

use super::lanes::{self, GROUP, Lanes};
use super::patterns::{Expects, Pattern, Scratch};
use super::whitening::{Transforms, Whitening};
use crate::base::cached::Cached;
use crate::base::float::Float;
use crate::base::simd::kernel;
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
pub(crate) struct Group {
    means: Vec<Lanes>,
    /// (d, d).
    precisions: Vec<Lanes>,
    /// The inverse roots of their diagonals (d), and the logarithms of these.
    scales: Vec<Lanes>,
    logs: Vec<Lanes>,
    /// The triangles that whiten, row after row.
    factors: Vec<Lanes>,
    log_dets: Lanes,
}

impl Group {
    /// Row `j` of the precisions.
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
    /// The lower Cholesky factors of these (m, m), and the inverses of their pivots (m).
    factor: Vec<Lanes>,
    inverse: Vec<Lanes>,
    pub(crate) log_dets: Lanes,
    /// The addend of a ridge to forms.
    noise: Lanes,
}

impl Given {
    #[inline(always)]
    fn scale<S: Simd>(&self, simd: S, x: &mut [Lanes]) {
        for (x, scale) in x.iter_mut().zip(&self.scales) {
            *x = lanes::times(simd, x, scale);
        }
    }

    /// The products of the inverse precisions with vectors, in place.
    #[inline(always)]
    fn solve<S: Simd>(&self, simd: S, x: &mut [Lanes]) {
        self.scale(simd, x);
        lanes::forward(simd, &self.factor, &self.inverse, x);
        lanes::backward(simd, &self.factor, &self.inverse, x);
        self.scale(simd, x);
    }
}

kernel! {
    /// Factors the precisions of what is missing, whose diagonals are raised by a share of them. Returns the least squares of pivots.
    fn factor[](group: &Group, missing: &[u32], raised: &Lanes, given: &mut Given) -> Lanes = factored
}

#[inline(always)]
fn factored<S: Simd>(
    simd: S,
    group: &Group,
    missing: &[u32],
    raised: &Lanes,
    given: &mut Given,
) -> Lanes {
    let m = missing.len();
    for (a, &i) in missing.iter().enumerate() {
        let precisions = group.precisions_of(i);
        for (b, &j) in missing[..=a].iter().enumerate() {
            let scaled = lanes::times(simd, &precisions[j as usize], &given.scales[a]);
            given.factor[a * m + b] = lanes::times(simd, &scaled, &given.scales[b]);
        }
        let diagonal = given.factor[a * (m + 1)].iter_mut();
        diagonal
            .zip(raised)
            .for_each(|(x, raised)| *x *= 1.0 + raised);
    }
    lanes::cholesky(simd, &mut given.factor, &mut given.inverse)
}

kernel! {
    /// The trace of a ridge with the precisions of what is known (E59), each of which is at most that given all other columns.
    fn trace[](group: &Group, pattern: &Pattern<'_>, given: &Given, ridge: &[f64]) -> Lanes = traced
}

#[inline(always)]
fn traced<S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &Given,
    ridge: &[f64],
) -> Lanes {
    let mut sum = [0.0; GROUP];
    let mut column = Vec::new();
    for &j in pattern.known {
        let precisions = group.precisions_of(j);
        column.clear();
        for &i in &pattern.missing {
            column.push(precisions[i as usize]);
        }
        given.scale(simd, &mut column);
        lanes::forward(simd, &given.factor, &given.inverse, &mut column);
        let own = lanes::left(simd, &precisions[j as usize], &column, &column);
        for l in 0..GROUP {
            sum[l] += ridge[j as usize] * own[l].max(0.0);
        }
    }
    sum
}

kernel! {
    fn complete[F: Float](group: &Group, pattern: &Pattern<'_>, given: &Given, row: Known<'_, F>, scratch: &mut Scratch) = completed
}

#[inline(always)]
fn completed<F: Float, S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &Given,
    row: Known<'_, F>,
    scratch: &mut Scratch,
) {
    let Scratch { apart, rest } = scratch;
    apart.resize(group.means.len(), [0.0; GROUP]);
    lanes::differences(simd, &group.means, row, apart);
    rest.clear();
    for &i in &pattern.missing {
        let precisions = group.precisions_of(i);
        rest.push(lanes::left_at(
            simd,
            &[0.0; GROUP],
            precisions,
            apart,
            row.ids,
        ));
    }
    given.solve(simd, rest);
    for (&j, x) in pattern.missing.iter().zip(&*rest) {
        apart[j as usize] = *x;
    }
}

kernel! {
    fn forms[F: Float](group: &Group, pattern: &Pattern<'_>, given: &Given, row: Known<'_, F>, scratch: &mut Scratch) -> Lanes = formed
}

#[inline(always)]
fn formed<F: Float, S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &Given,
    row: Known<'_, F>,
    scratch: &mut Scratch,
) -> Lanes {
    completed(simd, group, pattern, given, row, scratch);
    lanes::squares(simd, &group.factors, &scratch.apart)
}

kernel! {
    /// Adds to the lower halves of second moments (d, d) what rows of a pattern with these shares have besides the rows as they are
    /// completed: the covariance of what is missing given what is known, in this unit, and what is known with a ridge, less the ridge of
    /// all columns, which the M-step adds. `columns` is scratch.
    pub(crate) fn add_beside[](
        group: &Group,
        pattern: &Pattern<'_>,
        given: &Given,
        unit: f64,
        ridge: &[f64],
        shares: &Lanes,
        second: &mut [Lanes],
        columns: &mut Vec<Lanes>,
    ) = added_beside
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn added_beside<S: Simd>(
    simd: S,
    group: &Group,
    pattern: &Pattern<'_>,
    given: &Given,
    unit: f64,
    ridge: &[f64],
    shares: &Lanes,
    second: &mut [Lanes],
    columns: &mut Vec<Lanes>,
) {
    let dim = group.means.len();
    let missing = &pattern.missing;
    let m = pattern.missing.len();
    // The columns of the inverses of the factors.
    columns.clear();
    columns.resize(m * m, [0.0; GROUP]);
    for j in 0..m {
        let column = &mut columns[j * m..][..m];
        column[j] = given.scales[j];
        lanes::forward(simd, &given.factor, &given.inverse, column);
    }
    let less = lanes::times(simd, shares, &[-unit; GROUP]);
    for (a, &i) in missing.iter().enumerate() {
        let own = &columns[a * m + a..][..m - a];
        for (b, &j) in missing[..=a].iter().enumerate() {
            let place = i as usize * dim + j as usize;
            let rest = lanes::left(simd, &[0.0; GROUP], own, &columns[b * m + a..]);
            lanes::add(simd, &mut second[place..=place], &less, &[rest]);
        }
    }
    for (j, ridge) in ridge.iter().enumerate() {
        let own = lanes::times(simd, shares, &[*ridge; GROUP]);
        if pattern.known.binary_search(&(j as u32)).is_err() {
            let place = j * (dim + 1);
            lanes::subtract(simd, &mut second[place..=place], &own, &[[1.0; GROUP]]);
            continue;
        }
        // Known apart by 1, all others as they are expected then.
        let mut apart = Vec::with_capacity(m);
        for &i in missing {
            let precision = &group.precisions_of(i)[j];
            apart.push(lanes::times(simd, precision, &[-1.0; GROUP]));
        }
        given.solve(simd, &mut apart);
        for (a, &i) in missing.iter().enumerate() {
            let i = i as usize;
            let shared = lanes::times(simd, &own, &apart[a]);
            let place = i.max(j) * dim + i.min(j);
            lanes::add(simd, &mut second[place..=place], &shared, &[[1.0; GROUP]]);
            for (&other, x) in missing[..=a].iter().zip(&apart) {
                let place = i * dim + other as usize;
                lanes::add(simd, &mut second[place..=place], &shared, &[*x]);
            }
        }
    }
}

impl Observed<'_> {
    fn transform(&self, c: usize) -> &Whitening {
        self.transforms.transform(c % self.precisions.len())
    }
}

impl Expects for Observed<'_> {
    type Group = Group;
    type Given = Given;

    fn shape(&self) -> (usize, usize) {
        (self.penalties.len(), self.transform(0).mean.len())
    }

    fn added(&self) -> (f64, &[f64]) {
        (self.unit, self.penalties)
    }

    fn group(&self, ids: &[u32]) -> Group {
        let dim = self.shape().1;
        let side_by_side = |numbers: usize, of: &dyn Fn(usize, &Whitening) -> Vec<f64>| {
            let mut out = vec![[0.0; GROUP]; numbers];
            for l in 0..GROUP {
                let c = ids[l.min(ids.len() - 1)] as usize;
                let numbers = of(c, self.transform(c));
                out.iter_mut().zip(numbers).for_each(|(to, x)| to[l] = x);
            }
            out
        };
        let means = side_by_side(dim, &|c, own| match self.means {
            Some(all) => all[c * dim..][..dim].to_vec(),
            None => own.mean.clone(),
        });
        let precisions = side_by_side(dim * dim, &|c, own| {
            let cached = &self.precisions[c % self.precisions.len()];
            cached.get(|| own.precision()).clone()
        });
        let diagonal = precisions.iter().step_by(dim + 1);
        let scales: Vec<Lanes> = diagonal.map(|p| p.map(|p| 1.0 / p.sqrt())).collect();
        Group {
            logs: scales.iter().map(|scale| scale.map(f64::ln)).collect(),
            scales,
            means,
            precisions,
            factors: side_by_side(dim * (dim + 1) / 2, &|_, own| own.factor.clone()),
            log_dets: side_by_side(1, &|_, own| vec![own.log_det()])[0],
        }
    }

    fn give(&self, group: &Group, pattern: &Pattern<'_>, given: &mut Given) {
        /// Where columns determine one another, a precision may have no digits: then its diagonal is raised by such a share.
        const RAISED: [f64; 4] = [1e-12, 1e-8, 1e-4, 1.0];
        let missing = &pattern.missing;
        let m = pattern.missing.len();
        let scales = missing.iter().map(|&j| group.scales[j as usize]);
        given.scales.clear();
        given.scales.extend(scales);
        given.factor.resize(m * m, [0.0; GROUP]);
        given.inverse.resize(m, [0.0; GROUP]);
        (given.log_dets, given.noise) = ([0.0; GROUP], [0.0; GROUP]);
        let mut raised = [0.0; GROUP];
        loop {
            let least = factor(group, missing, &raised, given);
            let mut is_raised = false;
            for (share, least) in raised.iter_mut().zip(least) {
                let next = RAISED.into_iter().find(|next| *next > *share);
                if let Some(next) = next.filter(|_| least.is_nan() || least <= 0.0) {
                    (*share, is_raised) = (next, true);
                }
            }
            if !is_raised {
                break;
            }
        }
        let logs = lanes::log_product(&given.inverse);
        for (l, log) in logs.into_iter().enumerate() {
            let of_scales = missing.iter().map(|&j| group.logs[j as usize][l]);
            let log_det = -2.0 * (log + of_scales.sum::<f64>());
            if log_det.is_finite() {
                given.log_dets[l] = log_det;
            }
        }
        if !self.ridge.is_empty() {
            given.noise = trace(group, pattern, given, self.ridge);
        }
    }

    fn log_dets(&self, group: &Group, given: &Given) -> Lanes {
        std::array::from_fn(|l| group.log_dets[l] + given.log_dets[l])
    }

    fn means(group: &Group) -> &[Lanes] {
        &group.means
    }

    fn complete<F: Float>(
        &self,
        group: &Group,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        scratch: &mut Scratch,
    ) {
        complete(group, pattern, given, row, scratch);
    }

    fn forms<F: Float>(
        &self,
        group: &Group,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        scratch: &mut Scratch,
    ) -> Lanes {
        let mut forms = forms(group, pattern, given, row, scratch);
        (0..GROUP).for_each(|l| forms[l] += given.noise[l]);
        forms
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
            let mut all = Vec::new();
            let mut some = Vec::new();
            observed.all(entries, &mut all);
            for (i, all) in all.chunks_exact(3).enumerate() {
                observed.some(entries.row(i), &[2, 0, 1], &mut some);
                assert_eq!(all, [some[1], some[2], some[0]], "{i}");
                assert!(all[1].is_finite() && all[1] > 1e35 && all[0] < 1e30);
                if counts[i] == 0 {
                    assert_eq!((all[0], all[2]), (0.5, -1.0));
                }
            }
        }
    }
}
