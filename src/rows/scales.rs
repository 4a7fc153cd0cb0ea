//! Factors per component and coordinate: what turns squared distances into scores where variances differ.

use crate::base::cached::Cached;
use crate::base::float::Float;
use crate::kernels::distance::Scaled;
use crate::kernels::{sparse, stride};

/// For `k` components in `d` coordinates, a factor of the squared difference, and what is added (E31).
///
/// $$s_c(z) = \sum_j \left( a_{cj} (z_j - \mu_{cj})^2 + b_{cj} \right)$$
#[derive(Clone, Debug, PartialEq)]
pub struct Scales<F> {
    dim: usize,
    /// (k, d), padded with zeros.
    factors: Vec<F>,
    /// (k, d), padded with zeros.
    terms: Vec<F>,
    /// (k): the terms of all coordinates together.
    totals: Vec<F>,
    by_coordinate: Cached<Vec<F>>,
}

impl<F: Float> Scales<F> {
    /// Scales whose factors and terms `of` gives for each component and coordinate.
    pub(crate) fn new(k: usize, dim: usize, of: impl Fn(usize, usize) -> (f64, f64)) -> Self {
        let stride = stride(dim);
        let (mut factors, mut terms) = (vec![F::zero(); k * stride], vec![F::zero(); k * stride]);
        let totals = (0..k)
            .map(|c| {
                let mut total = 0.0;
                for j in 0..dim {
                    let (factor, term) = of(c, j);
                    factors[c * stride + j] = F::from_f64(factor);
                    terms[c * stride + j] = F::from_f64(term);
                    total += term;
                }
                F::from_f64(total)
            })
            .collect();
        Self {
            dim,
            factors,
            terms,
            totals,
            by_coordinate: Cached::default(),
        }
    }

    /// Factors (k, d), padded, and the totals (k): what rows that know every coordinate need.
    pub(crate) fn of_rows(&self) -> Scaled<'_, F> {
        let (factors, terms) = (&self.factors, &self.totals);
        Scaled { factors, terms }
    }

    /// Factors and terms (k, d), padded: what rows that know only some coordinates need.
    pub(crate) fn of_entries(&self) -> Scaled<'_, F> {
        let (factors, terms) = (&self.factors, &self.terms);
        Scaled { factors, terms }
    }

    /// Factors and terms by coordinate: (d, 2, k), padded with zeros to a [`stride`] of `k`. Made when first asked for.
    pub(crate) fn by_coordinate(&self) -> &[F] {
        self.by_coordinate.get(|| {
            sparse::by_coordinate([&self.factors, &self.terms], self.dim, self.totals.len())
        })
    }
}
