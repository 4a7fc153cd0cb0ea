//! Costs of rows that know some of their coordinates, under components with full covariances ([E55](crate::equations#e55)).
//!
//! Under each component, coordinates that are missing are completed with their expectation given the known ones: then the form of the row
//! is that of what is known.

use super::scaled::penalised;
use super::whitening::Whitening;
use crate::base::cached::Cached;
use crate::base::cancel::unwatched;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::kernels::quadratic;
use crate::kernels::sparse::{Entries, Known};
use crate::rows::Rows;

/// All that such costs follow from.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'m> {
    /// One transform for all components, or one for each, in units of the variance `unit`.
    pub(crate) whitenings: &'m [Whitening],
    /// Their precisions (d, d), made when they are first asked for.
    pub(crate) precisions: &'m [Cached<Vec<f64>>],
    /// (k, d).
    pub(crate) means: &'m [f64],
    /// Added by proportions (k).
    pub(crate) penalties: &'m [f64],
    pub(crate) unit: f64,
}

/// Rows of a block that know the same coordinates.
pub(crate) struct Pattern<'a> {
    known: &'a [u32],
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
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| ids(a).cmp(ids(b)));
        let alike = order.chunk_by(|&a, &b| ids(a) == ids(b));
        let new = |rows: &[usize]| Self::new(ids(rows[0]), dim, rows.to_vec());
        alike.map(new).collect()
    }
}

/// The distribution of the missing coordinates of a pattern given the known ones.
pub(crate) struct Given {
    /// The lower Cholesky factor of the precision of the missing ones (m, m).
    factor: Vec<f64>,
    log_det: f64,
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
        (u, x): (&mut [f64], &mut Vec<f64>),
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
    fn components(&self) -> usize {
        self.penalties.len()
    }

    pub(crate) fn mean(&self, c: usize) -> &[f64] {
        let dim = self.whitenings[0].mean.len();
        &self.means[c * dim..][..dim]
    }

    /// The distribution of what is missing of a pattern, under component `c`.
    fn given(&self, c: usize, pattern: &Pattern<'_>) -> Given {
        let c = c % self.whitenings.len();
        let precision = self.precisions[c].get(|| self.whitenings[c].precision());
        Given::of(precision, self.whitenings[c].mean.len(), pattern)
    }

    /// As above, in the place of that of another component, which is the same where all have one covariance.
    pub(crate) fn next_given<'g>(
        &self,
        c: usize,
        pattern: &Pattern<'_>,
        given: &'g mut Option<Given>,
    ) -> &'g Given {
        if self.whitenings.len() > 1 {
            *given = None;
        }
        given.get_or_insert_with(|| self.given(c, pattern))
    }

    /// A row that is completed under component `c`, in the coordinates of the frame, into `out` (d); `x` is scratch.
    pub(crate) fn complete<F: Float>(
        &self,
        c: usize,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        (out, x): (&mut [f64], &mut Vec<f64>),
    ) {
        given.complete(pattern, row, self.mean(c), (&mut *out, x));
        out.iter_mut().zip(self.mean(c)).for_each(|(u, m)| *u += m);
    }

    fn cost<F: Float>(
        &self,
        c: usize,
        (pattern, given): (&Pattern<'_>, &Given),
        row: Known<'_, F>,
        (u, x): (&mut [f64], &mut Vec<f64>),
    ) -> F {
        if row.ids.is_empty() {
            return penalised(0.0, self.penalties[c]);
        }
        given.complete(pattern, row, self.mean(c), (&mut *u, x));
        let own = &self.whitenings[c % self.whitenings.len()];
        let log_det = own.log_det() + given.log_det;
        let form = quadratic::form(&own.factor, u);
        // Infinite, or NaN where the row is so far away.
        let cost = form.min(F::LARGEST_COST) + self.unit * log_det;
        penalised(cost, self.penalties[c])
    }

    /// The costs of row `i` under the components `ids`.
    pub(super) fn some<F: Float>(
        &self,
        entries: Entries<'_, F>,
        i: usize,
        ids: &[u32],
        out: &mut Vec<F>,
    ) {
        let (row, dim) = (entries.row(i), self.whitenings[0].mean.len());
        let pattern = Pattern::new(row.ids, dim, vec![i]);
        let (mut u, mut x) = (vec![0.0; dim], Vec::new());
        let mut given = None;
        out.clear();
        out.extend(ids.iter().map(|&c| {
            let given = self.next_given(c as usize, &pattern, &mut given);
            self.cost(c as usize, (&pattern, given), row, (&mut u, &mut x))
        }));
    }

    /// The costs of all rows under all components: (len, k) into `out`, with the bits of [`some`](Self::some).
    pub(super) fn all<F: Float>(&self, entries: Entries<'_, F>, out: &mut Vec<F>) {
        let (k, dim) = (self.components(), self.whitenings[0].mean.len());
        let (mut u, mut x) = (vec![0.0; dim], Vec::new());
        out.clear();
        out.resize(entries.len() * k, F::zero());
        for pattern in Pattern::all(&entries, dim) {
            let mut given = None;
            for c in 0..k {
                let given = self.next_given(c, &pattern, &mut given);
                for &i in &pattern.rows {
                    let scratch = (&mut u[..], &mut x);
                    out[i * k + c] = self.cost(c, (&pattern, given), entries.row(i), scratch);
                }
            }
        }
    }

    /// Row `i` as it is completed under component `c`, in the coordinates of the frame (d).
    pub(super) fn completed<F: Float>(
        &self,
        rows: &Rows<F>,
        i: usize,
        c: usize,
    ) -> Option<Vec<f64>> {
        let row = rows.entries()?.row(i);
        let pattern = Pattern::new(row.ids, rows.dim, vec![i]);
        let (mut out, given) = (vec![0.0; rows.dim], self.given(c, &pattern));
        self.complete(c, (&pattern, &given), row, (&mut out, &mut Vec::new()));
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
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
                whitenings: &whitenings,
                precisions: &vec![Cached::default(); number],
                means: &means,
                penalties: &[0.5, f64::INFINITY, -1.0],
                unit: 0.7,
            };
            let (mut all, mut some) = (Vec::new(), Vec::new());
            observed.all(entries, &mut all);
            for (i, all) in all.chunks_exact(3).enumerate() {
                observed.some(entries, i, &[2, 0, 1], &mut some);
                assert_eq!(all, [some[1], some[2], some[0]], "{i}");
                assert!(all[1].is_finite() && all[1] > 1e35 && all[0] < 1e30);
                if counts[i] == 0 {
                    assert_eq!((all[0], all[2]), (0.5, -1.0));
                }
            }
        }
    }
}
