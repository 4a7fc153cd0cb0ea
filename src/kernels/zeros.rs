//! Squared distances of sparse rows, whose coordinates are 0 where they are not there, to padded centres.
//!
//! A distance is what it would be from the origin, and a term for each coordinate that is there:
//!
//! $$\sum_j a_j (z_j - \mu_j)^2 = \sum_j a_j \mu_j^2 + \sum_{z_j \ne 0} a_j z_j (z_j - 2 \mu_j)$$
//!
//! With $a_j = 1$ it is $\lVert \mu \rVert^2 + \lVert z \rVert^2 - 2 z^\top \mu$, to whose product only coordinates add that both
//! have: [`NonZeros`] lists those of many centres. Coordinates that [every row](Entries::whole) has are left out of the distance from
//! the origin, and add their squares; and where most of that distance cancels, all squares are added up.
//!
//! All of it is in `f64`, and in the order of the entries, so that the same distance has the same bits wherever it is computed.

use super::sparse::{Entries, Known, at};
use super::stride;
use crate::base::float::Float;
use crate::base::simd::vectorised;

/// Padded centres (k, d), or rather what sparse rows need of them.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a, F> {
    pub(crate) dim: usize,
    pub(crate) centres: &'a [F],
    /// Factors of squared differences (k, d), padded; without them they are 1.
    pub(crate) factors: Option<&'a [F]>,
    pub(crate) origins: &'a [Origin],
}

/// The cost of the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The sum of squares over the coordinates that not every row has.
    squares: f64,
    added: f64,
}

impl Origin {
    /// For each of these padded centres; `added` is what is added to squares.
    pub(crate) fn of_all<F: Float>(
        centres: &[F],
        factors: Option<&[F]>,
        added: impl Fn(usize) -> f64,
        dim: usize,
        whole: &[u32],
    ) -> Vec<Self> {
        let stride = stride(dim);
        let origins = centres.chunks_exact(stride).enumerate().map(|(c, centre)| {
            let values: Vec<F> = whole.iter().map(|j| centre[*j as usize]).collect();
            // None of the differences from itself counts.
            let itself = Known {
                ids: whole,
                values: &values,
            };
            let factors = factors.map(|factors| &factors[c * stride..][..stride]);
            Self {
                squares: over_all(itself, centre, factors),
                added: added(c),
            }
        });
        origins.collect()
    }
}

/// The sum of squared differences over all coordinates.
#[inline(never)]
fn over_all<F: Float>(row: Known<'_, F>, centre: &[F], factors: Option<&[F]>) -> f64 {
    const LANES: usize = 4;
    let mut differences: Vec<f64> = centre.iter().map(|mu| mu.to_f64()).collect();
    for (&j, x) in row.ids.iter().zip(row.values) {
        differences[j as usize] -= x.to_f64();
    }
    let mut sums = [0.0; LANES];
    let (chunks, _) = differences.as_chunks::<LANES>();
    vectorised!({
        for (place, chunk) in chunks.iter().enumerate() {
            let factors = factors.map(|factors| at::<F, LANES>(factors, place * LANES));
            for l in 0..LANES {
                let factor = factors.map_or(1.0, |factors| factors[l].to_f64());
                sums[l] += factor * (chunk[l] * chunk[l]);
            }
        }
    });
    sums.iter().sum()
}

/// An addend of an entry to the sum of a centre: a term of the squared distance with a factor; without, to the product.
#[inline(always)]
fn term<const SCALED: bool, const WHOLE: bool>(x: f64, mu: f64, factor: f64) -> f64 {
    let t = x - mu;
    match (SCALED, WHOLE) {
        (true, true) => t * t * factor,
        (true, false) => x * (t - mu) * factor,
        (false, true) => -0.5 * (t * t),
        (false, false) => x * mu,
    }
}

impl<F: Float> Seen<'_, F> {
    fn own<'v>(&self, values: &'v [F], c: usize) -> &'v [F] {
        let stride = stride(self.dim);
        &values[c * stride..(c + 1) * stride]
    }

    /// The cost under centre `c` of a row whose terms have this sum, and whose own squares this one.
    #[inline(always)]
    fn cost(&self, row: Known<'_, F>, c: usize, own: f64, sum: f64) -> F {
        /// Sums of squares keep all but these digits of `f64`.
        const CANCELS: f64 = 1024.0;
        let origin = self.origins[c];
        let squares = origin.squares
            + match self.factors {
                Some(_) => sum,
                None => own - 2.0 * sum,
            };
        let squares = if squares * CANCELS >= origin.squares {
            squares
        } else {
            let factors = self.factors.map(|factors| self.own(factors, c));
            over_all(row, self.own(self.centres, c), factors)
        };
        F::from_f64(squares + origin.added)
    }

    #[inline(always)]
    fn one<const SCALED: bool>(&self, row: Known<'_, F>, whole: usize, c: usize) -> F {
        let centre = self.own(self.centres, c);
        let factors = self.factors;
        let factors = factors.map_or(centre, |factors| self.own(factors, c));
        let mut squares = 0.0;
        let mut sum = 0.0;
        for (place, (&j, x)) in row.ids.iter().zip(row.values).enumerate() {
            let j = j as usize;
            let x = x.to_f64();
            let mu = centre[j].to_f64();
            let factor = factors[j].to_f64();
            if place < whole {
                sum += term::<SCALED, true>(x, mu, factor);
            } else {
                squares += x * x;
                sum += term::<SCALED, false>(x, mu, factor);
            }
        }
        self.cost(row, c, squares, sum)
    }

    /// Costs of row `i` under the centres `ids`, into `out`.
    pub(crate) fn to_some(self, rows: Entries<'_, F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let row = rows.row(i);
        let whole = rows.whole.len();
        out.clear();
        out.extend(ids.iter().map(|&c| match self.factors {
            Some(_) => self.one::<true>(row, whole, c as usize),
            None => self.one::<false>(row, whole, c as usize),
        }));
    }

    /// Costs of all rows, none of whose coordinates every row has, under centres without factors that have these coordinates, as
    /// [`to_some`](Self::to_some) has them: (n, k) into `out`.
    pub(crate) fn to_lists(self, rows: Entries<'_, F>, lists: &NonZeros<F>, out: &mut Vec<F>) {
        let mut products = vec![0.0; self.origins.len()];
        out.clear();
        for row in rows.rows() {
            products.fill(0.0);
            let mut squares = 0.0;
            for (&j, x) in row.ids.iter().zip(row.values) {
                let j = j as usize;
                let x = x.to_f64();
                squares += x * x;
                let list = lists.starts[j]..lists.starts[j + 1];
                for (c, mu) in lists.of[list.clone()].iter().zip(&lists.values[list]) {
                    products[*c as usize] += x * mu.to_f64();
                }
            }
            let products = products.iter().enumerate();
            out.extend(products.map(|(c, product)| self.cost(row, c, squares, *product)));
        }
    }

    /// Costs of all rows under all centres, which come by coordinate: (n, k) into `out`. `SCALED` ones have factors, which come by
    /// coordinate with terms between them: (d, 2, k). They are the numbers of [`to_some`](Self::to_some).
    pub(crate) fn to_all<const SCALED: bool>(
        self,
        rows: Entries<'_, F>,
        centres: &[F],
        scales: &[F],
        out: &mut Vec<F>,
    ) {
        let stride = stride(self.origins.len());
        let mut sums = vec![0.0; stride];
        out.clear();
        vectorised!({
            for row in rows.rows() {
                sums.fill(0.0);
                let mut squares = 0.0;
                for (place, (&j, x)) in row.ids.iter().zip(row.values).enumerate() {
                    let x = x.to_f64();
                    let first = j as usize * stride;
                    let centres = &centres[first..first + stride];
                    let factors = if SCALED {
                        &scales[2 * first..2 * first + stride]
                    } else {
                        centres
                    };
                    if place < rows.whole.len() {
                        add::<F, SCALED, true>(x, centres, factors, &mut sums);
                    } else {
                        squares += x * x;
                        add::<F, SCALED, false>(x, centres, factors, &mut sums);
                    }
                }
                let costs = (0..self.origins.len()).map(|c| self.cost(row, c, squares, sums[c]));
                out.extend(costs);
            }
        });
    }
}

/// Adds the [`term`]s of an entry to the sums of all centres: as many numbers as a stride of k, which is a multiple of 4.
#[inline(always)]
fn add<F: Float, const SCALED: bool, const WHOLE: bool>(
    x: f64,
    centres: &[F],
    factors: &[F],
    sums: &mut [f64],
) {
    let (sums, _) = sums.as_chunks_mut::<4>();
    let (centres, _) = centres.as_chunks::<4>();
    let (factors, _) = factors.as_chunks::<4>();
    for ((sums, mu), factors) in sums.iter_mut().zip(centres).zip(factors) {
        for l in 0..4 {
            sums[l] += term::<SCALED, WHOLE>(x, mu[l].to_f64(), factors[l].to_f64());
        }
    }
}

/// Lowers each `nearest[i]` to the squared distance from row `i` to `centre`, if that is smaller.
pub(crate) fn lower<F: Float>(rows: Entries<'_, F>, centre: &[F], nearest: &mut [F]) {
    let dim = centre.len();
    let whole = rows.whole;
    let seen = Seen {
        dim,
        centres: centre,
        factors: None,
        origins: &Origin::of_all(centre, None, |_| 0.0, dim, whole),
    };
    for (row, nearest) in rows.rows().zip(nearest) {
        let distance = seen.one::<false>(row, whole.len(), 0);
        if distance < *nearest {
            *nearest = distance;
        }
    }
}

/// The coordinates of centres that are not 0, by coordinate: those of coordinate `j` come from `starts[j]` on.
#[derive(Clone, Debug)]
pub(crate) struct NonZeros<F> {
    starts: Vec<usize>,
    /// Whose coordinates these are, ascending.
    of: Vec<u32>,
    values: Vec<F>,
}

impl<F: Float> NonZeros<F> {
    /// Lists those of padded centres. `None` where more than one in `MANY` is not 0: then a table of all is faster.
    pub(crate) fn of(centres: &[F], dim: usize) -> Option<Self> {
        const MANY: usize = 6;
        let stride = stride(dim);
        let mut starts = vec![0_usize; dim + 1];
        let each = |see: &mut dyn FnMut(usize, usize, F)| {
            for (c, centre) in centres.chunks_exact(stride).enumerate() {
                for (j, mu) in centre[..dim].iter().enumerate() {
                    if *mu != F::zero() {
                        see(c, j, *mu);
                    }
                }
            }
        };
        each(&mut |_, j, _| starts[j + 1] += 1);
        for j in 0..dim {
            starts[j + 1] += starts[j];
        }
        let number = starts[dim];
        if number * MANY > centres.len() {
            return None;
        }
        let mut components = vec![0; number];
        let mut values = vec![F::zero(); number];
        let mut next = starts.clone();
        each(&mut |c, j, mu| {
            (components[next[j]], values[next[j]]) = (c as u32, mu);
            next[j] += 1;
        });
        Some(Self {
            starts,
            of: components,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::sparse::{Absent, by_coordinate};

    /// Rows of several lengths, which begin with the coordinates `whole`, near the first centre as far as they are there: `far` from
    /// the origin, so that all digits of terms of entries would cancel.
    #[test]
    fn costs_are_those_of_rows_with_their_zeros() {
        let mut rng = Rng::from_seed(2);
        for (k, d, counts, far, whole) in [
            (1, 5, [0, 5, 2], 0.0, &[][..]),
            (3, 23, [7, 1, 12], 0.0, &[3, 20]),
            (17, 9, [9, 3, 0], 0.0, &[]),
            (3, 23, [7, 23, 12], 1e9, &[3, 20]),
            (2, 9, [9, 9, 8], 1e9, &[]),
        ] {
            let s = stride(d);
            let mut padded = |far: f64| -> Vec<f64> {
                let mut number = |i| if i % s < d { far + rng.normal() } else { 0.0 };
                (0..k * s).map(&mut number).collect()
            };
            let mu = padded(far);
            let factors = padded(3.0);
            let terms = padded(0.0);
            let mut starts = vec![0];
            let mut ids = Vec::new();
            for count in counts {
                let mut others = vec![0; count];
                rng.fill_distinct(&mut others, 0, d);
                others.sort_unstable();
                others.retain(|j| !whole.contains(j));
                ids.extend(whole);
                ids.extend(others);
                starts.push(ids.len());
            }
            let values: Vec<f64> = ids.iter().map(|j| mu[*j as usize] + rng.normal()).collect();
            let rows = Entries {
                starts: &starts,
                ids: &ids,
                values: &values,
                absent: Absent::Zero,
                whole,
            };
            let added = |c: usize| terms[c * s..][..d].iter().sum();
            let origins = Origin::of_all(&mu, None, |_| 0.0, d, whole);
            let scaled_origins = Origin::of_all(&mu, Some(&factors), added, d, whole);
            let plain = Seen {
                dim: d,
                centres: &mu[..],
                factors: None,
                origins: &origins,
            };
            let scaled = Seen {
                factors: Some(&factors[..]),
                origins: &scaled_origins,
                ..plain
            };
            let turned = by_coordinate([&mu], d, k);
            let scales = by_coordinate([&factors, &terms], d, k);
            let mut some = Vec::new();
            let mut costs = Vec::new();
            let mut scaled_costs = Vec::new();
            plain.to_all::<false>(rows, &turned, &[], &mut costs);
            scaled.to_all::<true>(rows, &turned, &scales, &mut scaled_costs);
            // Lists of centres with few coordinates give the same numbers.
            let few = |i: usize, x: &f64| if i % 17 == 3 { *x } else { 0.0 };
            let few: Vec<f64> = mu.iter().enumerate().map(|(i, x)| few(i, x)).collect();
            let few_origins = Origin::of_all(&few, None, |_| 0.0, d, whole);
            let of_few = Seen {
                centres: &few[..],
                origins: &few_origins,
                ..plain
            };
            let lists = NonZeros::of(&few, d).expect("few");
            assert!(k == 1 || NonZeros::of(&mu, d).is_none());
            let mut listed = Vec::new();
            let mut table = Vec::new();
            of_few.to_lists(rows, &lists, &mut listed);
            of_few.to_all::<false>(rows, &by_coordinate([&few], d, k), &[], &mut table);
            assert!(!whole.is_empty() || listed == table);
            let all_ids: Vec<u32> = (0..k as u32).collect();
            let mut nearest = vec![f64::INFINITY; 3];
            lower(rows, &mu[..s], &mut nearest);
            for i in 0..3 {
                let mut row = vec![0.0; d];
                let Known { ids, values } = rows.row(i);
                (ids.iter().zip(values)).for_each(|(j, x)| row[*j as usize] = *x);
                assert_eq!(nearest[i], costs[i * k]);
                plain.to_some(rows, i, &all_ids, &mut some);
                assert_eq!(some, costs[i * k..(i + 1) * k]);
                scaled.to_some(rows, i, &all_ids, &mut some);
                assert_eq!(some, scaled_costs[i * k..(i + 1) * k]);
                for c in 0..k {
                    let squared = |j: usize| (row[j] - mu[c * s + j]).powi(2);
                    let naive: f64 = (0..d).map(squared).sum();
                    let got = costs[i * k + c];
                    assert!(
                        (got - naive).abs() <= 1e-12 * (1.0 + naive),
                        "{got} {naive}"
                    );
                    let cost = |j: usize| factors[c * s + j] * squared(j) + terms[c * s + j];
                    let naive = (0..d).map(cost).sum::<f64>();
                    let got = scaled_costs[i * k + c];
                    assert!(
                        (got - naive).abs() <= 1e-11 * (1.0 + naive.abs()),
                        "{got} {naive}"
                    );
                }
            }
        }
    }
}
