//! Squared distances of sparse rows, whose coordinates are 0 where they are not there, to padded centres.
//!
//! A distance is what it would be from the origin, and a term for each coordinate that is there:
//!
//! $$\sum_j a_j (z_j - \mu_j)^2 + b_j = \sum_j \left( a_j \mu_j^2 + b_j \right) + \sum_{z_j \ne 0} a_j z_j (z_j - 2 \mu_j)$$
//!
//! With $a_j = 1$ it is $\lVert \mu \rVert^2 + \lVert z \rVert^2 - 2 z^\top \mu$, to whose product only coordinates add that both
//! have: [`NonZeros`] lists those of many centres.
//!
//! All of it is in `f64`, in which little cancels, and in the order of the coordinates, so that the same distance has the same
//! bits wherever it is computed.

use super::distance::Scaled;
use super::sparse::{Entries, Known, at};
use super::stride;
use crate::base::float::Float;
use crate::base::simd::vectorised;

/// The squared norm of a padded centre: its distance from the origin.
pub(crate) fn norm<F: Float>(centre: &[F]) -> f64 {
    const LANES: usize = 4;
    let mut sums = [0.0; LANES];
    let (chunks, _) = centre.as_chunks::<LANES>();
    vectorised!({
        for chunk in chunks {
            for l in 0..LANES {
                let x = chunk[l].to_f64();
                sums[l] += x * x;
            }
        }
    });
    sums.iter().sum()
}

#[inline(always)]
fn term<F: Float>(x: f64, mu: F) -> f64 {
    x * (x - 2.0 * mu.to_f64())
}

/// Squared distances of one row to the centres `ids`, into `out`; `norms` (k) are those of all centres.
pub(crate) fn to_some<F: Float>(
    row: Known<'_, F>,
    centres: &[F],
    dim: usize,
    norms: &[f64],
    ids: &[u32],
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    out.clear();
    out.extend(ids.iter().map(|&c| {
        let centre = &centres[c as usize * stride..][..stride];
        F::from_f64(squared(row, centre, norms[c as usize]))
    }));
}

#[inline(always)]
fn squared<F: Float>(row: Known<'_, F>, centre: &[F], norm: f64) -> f64 {
    let (mut own, mut product) = (0.0, 0.0);
    for (&j, x) in row.ids.iter().zip(row.values) {
        let x = x.to_f64();
        own += x * x;
        product += x * centre[j as usize].to_f64();
    }
    from_product(norm, own, product)
}

/// The squared distance between points of these squared norms.
#[inline(always)]
fn from_product(norm: f64, own: f64, product: f64) -> f64 {
    (norm + (own - 2.0 * product)).max(0.0)
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
        let (stride, mut starts) = (stride(dim), vec![0_usize; dim + 1]);
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
        let all = starts[dim];
        if all * MANY > centres.len() {
            return None;
        }
        let (mut of, mut values, mut next) = (vec![0; all], vec![F::zero(); all], starts.clone());
        each(&mut |c, j, mu| {
            (of[next[j]], values[next[j]]) = (c as u32, mu);
            next[j] += 1;
        });
        Some(Self { starts, of, values })
    }
}

/// Squared distances of all rows to centres with these coordinates and squared norms (k), as [`to_some`] has them: (n, k) into
/// `out`.
pub(crate) fn to_lists<F: Float>(
    rows: Entries<'_, F>,
    centres: &NonZeros<F>,
    norms: &[f64],
    out: &mut Vec<F>,
) {
    let mut products = vec![0.0; norms.len()];
    out.clear();
    for row in rows.rows() {
        products.fill(0.0);
        let mut own = 0.0;
        for (&j, x) in row.ids.iter().zip(row.values) {
            let (j, x) = (j as usize, x.to_f64());
            own += x * x;
            let list = centres.starts[j]..centres.starts[j + 1];
            for (c, mu) in centres.of[list.clone()].iter().zip(&centres.values[list]) {
                products[*c as usize] += x * mu.to_f64();
            }
        }
        let costs = norms.iter().zip(&products);
        out.extend(costs.map(|(norm, product)| F::from_f64(from_product(*norm, own, *product))));
    }
}

/// Scaled squared distances of one row to the centres `ids`; `at_zero` (k) are those from the origin.
pub(crate) fn scaled_to_some<F: Float>(
    row: Known<'_, F>,
    centres: &[F],
    dim: usize,
    factors: &[F],
    at_zero: &[f64],
    ids: &[u32],
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    out.clear();
    out.extend(ids.iter().map(|&c| {
        let (known, first) = (row.ids.iter().zip(row.values), c as usize * stride);
        let sum = known.fold(0.0, |sum, (&j, x)| {
            let place = first + j as usize;
            sum + term(x.to_f64(), centres[place]) * factors[place].to_f64()
        });
        F::from_f64(at_zero[c as usize] + sum)
    }));
}

/// The scaled squared distances of the origin (k), with factors and terms (k, d), padded.
pub(crate) fn at_zero<F: Float>(centres: &[F], dim: usize, scales: Scaled<'_, F>) -> Vec<f64> {
    let stride = stride(dim);
    let factors = scales.factors.chunks_exact(stride);
    let all = centres
        .chunks_exact(stride)
        .zip(factors)
        .zip(scales.terms.chunks_exact(stride));
    all.map(|((centre, factors), terms)| {
        let columns = centre.iter().zip(factors).zip(terms);
        let terms = columns.map(|((mu, factor), term)| {
            factor.to_f64() * mu.to_f64() * mu.to_f64() + term.to_f64()
        });
        terms.sum()
    })
    .collect()
}

/// Lowers each `nearest[i]` to the squared distance from row `i` to `centre`, if that is smaller.
pub(crate) fn lower<F: Float>(rows: Entries<'_, F>, centre: &[F], nearest: &mut [F]) {
    let norm = norm(centre);
    for (row, nearest) in rows.rows().zip(nearest) {
        let distance = F::from_f64(squared(row, centre, norm));
        if distance < *nearest {
            *nearest = distance;
        }
    }
}

/// Squared distances of all rows to all `k` centres, which come by coordinate: (n, k) into `out`; `at_zero` (k) are those of the
/// origin. `SCALED` ones have factors, which come by coordinate with terms between them: (d, 2, k). They are the numbers of
/// [`to_some`] and [`scaled_to_some`].
pub(crate) fn to_all<F: Float, const SCALED: bool>(
    rows: Entries<'_, F>,
    centres: &[F],
    scales: &[F],
    at_zero: &[f64],
    out: &mut Vec<F>,
) {
    let stride = stride(at_zero.len());
    let mut sums = vec![0.0; stride];
    out.clear();
    vectorised!({
        for row in rows.rows() {
            sums.fill(0.0);
            let mut own = 0.0;
            for (&j, x) in row.ids.iter().zip(row.values) {
                let (x, j) = (x.to_f64(), j as usize);
                own += x * x;
                let (whole, _) = sums.as_chunks_mut::<4>();
                // Every stride is a multiple of 4.
                for (chunk, sums) in whole.iter_mut().enumerate() {
                    let mu = at::<F, 4>(centres, j * stride + chunk * 4);
                    if SCALED {
                        let factors = at::<F, 4>(scales, 2 * j * stride + chunk * 4);
                        for l in 0..4 {
                            sums[l] += term(x, mu[l]) * factors[l].to_f64();
                        }
                    } else {
                        for l in 0..4 {
                            sums[l] += x * mu[l].to_f64();
                        }
                    }
                }
            }
            let costs = sums.iter().zip(at_zero);
            out.extend(costs.map(|(sum, zero)| {
                F::from_f64(match SCALED {
                    true => zero + sum,
                    false => from_product(*zero, own, *sum),
                })
            }));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::sparse::by_coordinate;
    use approx::assert_abs_diff_eq;

    #[test]
    fn costs_are_those_of_rows_with_their_zeros() {
        let mut rng = Rng::from_seed(2);
        for (k, d, counts) in [(1, 5, [0, 5, 2]), (3, 23, [7, 1, 12]), (17, 9, [9, 3, 0])] {
            let s = stride(d);
            let mut padded = || -> Vec<f64> {
                let number = |i| if i % s < d { rng.normal() } else { 0.0 };
                (0..k * s).map(number).collect()
            };
            let (mu, factors, terms) = (padded(), padded(), padded());
            let (mut starts, mut ids) = (vec![0], Vec::new());
            for count in counts {
                let mut own = vec![0; count];
                rng.fill_distinct(&mut own, 0, d);
                own.sort_unstable();
                ids.extend(own);
                starts.push(ids.len());
            }
            let values: Vec<f64> = ids.iter().map(|_| rng.normal()).collect();
            let rows = Entries {
                starts: &starts,
                ids: &ids,
                values: &values,
                others_are_zero: true,
            };
            let norms: Vec<f64> = mu.chunks_exact(s).map(norm).collect();
            let scales = Scaled {
                factors: &factors[..],
                terms: &terms[..],
            };
            let zero = at_zero(&mu, d, scales);
            let (turned, both) = (
                by_coordinate([&mu], d, k),
                by_coordinate([&factors, &terms], d, k),
            );
            let (mut plain, mut scaled, mut some) = (Vec::new(), Vec::new(), Vec::new());
            to_all::<f64, false>(rows, &turned, &[], &norms, &mut plain);
            to_all::<f64, true>(rows, &turned, &both, &zero, &mut scaled);
            // Lists of centres with few coordinates give the same numbers.
            let few = |i: usize, x: &f64| if i % 7 == 3 { *x } else { 0.0 };
            let few: Vec<f64> = mu.iter().enumerate().map(|(i, x)| few(i, x)).collect();
            let few_norms: Vec<f64> = few.chunks_exact(s).map(norm).collect();
            let lists = NonZeros::of(&few, d).expect("few");
            assert!(k == 1 || NonZeros::of(&mu, d).is_none());
            let (mut listed, mut table) = (Vec::new(), Vec::new());
            to_lists(rows, &lists, &few_norms, &mut listed);
            let few_turned = by_coordinate([&few], d, k);
            to_all::<f64, false>(rows, &few_turned, &[], &few_norms, &mut table);
            assert_eq!(listed, table);
            let all: Vec<u32> = (0..k as u32).collect();
            let mut nearest = vec![f64::INFINITY; 3];
            lower(rows, &mu[..s], &mut nearest);
            for i in 0..3 {
                let mut whole = vec![0.0; d];
                let Known { ids, values } = rows.row(i);
                (ids.iter().zip(values)).for_each(|(j, x)| whole[*j as usize] = *x);
                assert_eq!(nearest[i], plain[i * k]);
                to_some(rows.row(i), &mu, d, &norms, &all, &mut some);
                assert_eq!(some, plain[i * k..(i + 1) * k]);
                scaled_to_some(rows.row(i), &mu, d, &factors, &zero, &all, &mut some);
                assert_eq!(some, scaled[i * k..(i + 1) * k]);
                for c in 0..k {
                    let squared = |j: usize| (whole[j] - mu[c * s + j]).powi(2);
                    let naive: f64 = (0..d).map(squared).sum();
                    assert_abs_diff_eq!(plain[i * k + c], naive, epsilon = 1e-12);
                    let cost = |j: usize| factors[c * s + j] * squared(j) + terms[c * s + j];
                    let naive: f64 = (0..d).map(cost).sum();
                    assert_abs_diff_eq!(scaled[i * k + c], naive, epsilon = 1e-11);
                }
            }
        }
    }
}
