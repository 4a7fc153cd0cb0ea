//! Products of differences from means with factors (E58).

use crate::base::parallel;
use crate::kernels::stride;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Products {
    pub(crate) factors: usize,
    /// (k): (q, d), padded, of components met; none for the others.
    pub(crate) of: Vec<Vec<f64>>,
}

impl Products {
    /// No rows added yet.
    pub(crate) fn new(k: usize, factors: usize) -> Self {
        Self {
            factors,
            of: vec![Vec::new(); k],
        }
    }

    /// The products of component `c` (q, d), padded, to be added to.
    pub(super) fn component(&mut self, c: usize, dim: usize) -> &mut [f64] {
        let products = &mut self.of[c];
        products.resize(self.factors * stride(dim), 0.0);
        products
    }

    /// The products of all parts, in the memory of the first that has them: they may take most of all there is.
    pub(super) fn merged(mut parts: Vec<&mut Self>) -> Self {
        let mut total = Self::new(parts[0].of.len(), parts[0].factors);
        let mut first = Vec::with_capacity(total.of.len());
        for (c, products) in total.of.iter_mut().enumerate() {
            let met = parts.iter().position(|part| !part.of[c].is_empty());
            first.push(met.unwrap_or(parts.len()));
            if let Some(met) = met {
                *products = std::mem::take(&mut parts[met].of[c]);
            }
        }
        parallel::map_chunks(&mut total.of, 1, |c, _, products| {
            for part in parts.iter().skip(first[c] + 1) {
                for (sum, x) in products[0].iter_mut().zip(&part.of[c]) {
                    *sum += x;
                }
            }
        });
        total
    }
}
