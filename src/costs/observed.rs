//! Costs of rows that know some of their coordinates, under components with full covariances ([E55](crate::equations#e55)).
//!
//! Under each component, coordinates that are missing are completed with their expectation given the known ones: then the form of the row
//! is that of what is known.

use super::patterns::{Expects, Pattern, Scratch};
use super::scaled::penalised;
use super::whitening::{Transforms, Whitening};
use crate::base::cached::Cached;
use crate::base::cancel::unwatched;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::kernels::quadratic;
use crate::kernels::sparse::Known;

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

/// The distribution of the missing coordinates of a pattern given the known ones.
pub(crate) struct Given {
    /// The lower Cholesky factor of the precision of the missing ones (m, m).
    factor: Vec<f64>,
    pub(crate) log_det: f64,
    /// The precisions between known and missing ones, coordinate by known coordinate.
    across: Vec<f64>,
    rest: Cached<Vec<f64>>,
}

impl Given {
    fn of(precision: &[f64], dim: usize, pattern: &Pattern<'_>) -> Self {
        /// Where columns determine one another, a precision may have no digits: then its diagonal is raised by such a share.
        const RAISED: [f64; 5] = [0.0, 1e-12, 1e-8, 1e-4, 1.0];
        let missing = &pattern.missing;
        let among = |rows: &[u32]| -> Vec<f64> {
            let of_row = |&i: &u32| {
                let row = &precision[i as usize * dim..][..dim];
                missing.iter().map(|&j| row[j as usize])
            };
            rows.iter().flat_map(of_row).collect()
        };
        let (own, m) = (among(missing), missing.len());
        let found = RAISED.into_iter().find_map(|share| {
            let mut own = own.clone();
            let diagonal = own.iter_mut().step_by(m + 1);
            diagonal.for_each(|x| *x *= 1.0 + share);
            unwatched(Cholesky::of(&own, m, None))
        });
        let (factor, log_det) =
            found.map_or_else(Default::default, |own| (own.factor, own.log_det));
        Self {
            factor,
            log_det,
            across: among(pattern.known),
            rest: Cached::default(),
        }
    }

    /// The lower half of the covariance (m, m) of what is missing, given what is known, in the unit of costs.
    pub(crate) fn rest(&self, m: usize) -> &[f64] {
        self.rest.get(|| {
            let (mut rest, inverse) = (
                vec![0.0; m * m],
                linalg::inverse_of_lower(&self.factor, m, None),
            );
            for row in unwatched(inverse).chunks_exact(m.max(1)) {
                for (a, sums) in rest.chunks_exact_mut(m).enumerate() {
                    let terms = sums[..=a].iter_mut().zip(row);
                    terms.for_each(|(sum, x)| *sum += row[a] * x);
                }
            }
            rest
        })
    }

    /// The difference of a row from a mean, of which what is missing is completed, into `u` (d); `x` is scratch.
    fn complete<F: Float>(
        &self,
        pattern: &Pattern<'_>,
        row: Known<'_, F>,
        mean: &[f64],
        (u, x): Scratch<'_>,
    ) {
        let m = pattern.missing.len();
        x.clear();
        x.resize(m, 0.0);
        for (place, (&j, z)) in row.ids.iter().zip(row.values).enumerate() {
            let apart = z.to_f64() - mean[j as usize];
            u[j as usize] = apart;
            let across = &self.across[place * m..][..m];
            x.iter_mut().zip(across).for_each(|(x, p)| *x -= p * apart);
        }
        for (a, row) in self.factor.chunks_exact(m.max(1)).enumerate() {
            let (before, rest) = x.split_at_mut(a);
            let terms = row.iter().zip(before).map(|(l, x)| l * *x);
            rest[0] = (rest[0] - terms.sum::<f64>()) / row[a];
        }
        for (a, row) in self.factor.chunks_exact(m.max(1)).enumerate().rev() {
            let (before, rest) = x.split_at_mut(a);
            rest[0] /= row[a];
            let pairs = before.iter_mut().zip(row);
            pairs.for_each(|(x, l)| *x -= l * rest[0]);
        }
        for (&j, x) in pattern.missing.iter().zip(x) {
            u[j as usize] = *x;
        }
    }
}

impl Observed<'_> {
    fn transform(&self, c: usize) -> &Whitening {
        self.transforms.transform(c % self.precisions.len())
    }

    fn mean_of(&self, c: usize) -> &[f64] {
        let own: &[f64] = &self.transform(c).mean;
        self.means
            .map_or(own, |all| &all[c * own.len()..][..own.len()])
    }
}

impl Expects for Observed<'_> {
    type Given = Given;

    fn shape(&self) -> (usize, usize) {
        (self.penalties.len(), self.transform(0).mean.len())
    }

    fn ridge(&self) -> &[f64] {
        self.ridge
    }

    fn given(&self, c: usize, pattern: &Pattern<'_>) -> Given {
        let own = self.transform(c);
        let precision = self.precisions[c % self.precisions.len()].get(|| own.precision());
        Given::of(precision, own.mean.len(), pattern)
    }

    /// One for all components where these have one covariance.
    fn next_given<'g>(
        &self,
        c: usize,
        pattern: &Pattern<'_>,
        given: &'g mut Option<Given>,
    ) -> &'g Given {
        if self.precisions.len() > 1 {
            *given = None;
        }
        given.get_or_insert_with(|| self.given(c, pattern))
    }

    fn mean(&self, c: usize) -> impl Iterator<Item = f64> {
        self.mean_of(c).iter().copied()
    }

    fn complete<F: Float>(
        &self,
        c: usize,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        scratch: Scratch<'_>,
    ) {
        given.complete(pattern, row, self.mean_of(c), scratch);
    }

    fn form<F: Float>(
        &self,
        c: usize,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        (u, x): Scratch<'_>,
    ) -> f64 {
        given.complete(pattern, row, self.mean_of(c), (&mut *u, x));
        quadratic::form(&self.transform(c).factor, u)
    }

    fn cost<F: Float>(&self, c: usize, (pattern, given): (&Pattern<'_>, &Given), form: f64) -> F {
        if pattern.known.is_empty() {
            return penalised(0.0, self.penalties[c]);
        }
        let log_det = self.transform(c).log_det() + given.log_det;
        // Infinite, or NaN where the row is so far away.
        let cost = form.min(F::LARGEST_COST) + self.unit * log_det;
        penalised(cost, self.penalties[c])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::rows::Rows;
    use ndarray::Array2;

    /// Costs of all components at once have the bits of those that are asked for one by one, with any number of missing values.
    #[test]
    fn costs_of_all_are_those_of_some() {
        let mut rng = Rng::from_seed(2);
        let x = Array2::from_shape_fn((90, 6), |(i, j)| match (i * 7 + j * j) % 6 < i % 7 {
            true => f32::NAN,
            false => rng.normal() as f32,
        });
        let (data, mut rows) = (Dense::with_missing(&x).unwrap(), Rows::default());
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
            let (mut all, mut some) = (Vec::new(), Vec::new());
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
