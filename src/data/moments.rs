//! Weighted statistics of components: what a block of rows adds to an M-step.

use super::Centres;
use crate::float::Float;
use crate::kernels::stride;
use crate::parallel;

/// Mass and first moment of every component about its current mean (E5), in `f64`, in the coordinates of
/// the frame.
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} (z_n - \mu_c)$$
///
/// About the mean a component that should stay where it is stays there to the last bit, and nothing cancels
/// in the new variance.
///
/// Moments of disjoint blocks add up ([`merge`](Self::merge)), so they serve blocks of rows, blocks from
/// disk and partitions of a cluster alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    dim: usize,
    /// (k).
    mass: Vec<f64>,
    /// (k, d), padded.
    first: Vec<f64>,
}

impl Moments {
    /// Nothing seen yet, for `k` components in `d` dimensions.
    #[must_use]
    pub fn zeros(k: usize, dim: usize) -> Self {
        let first = vec![0.0; k * stride(dim)];
        Self {
            dim,
            mass: vec![0.0; k],
            first,
        }
    }

    /// Mass $m_c$ of component `c`: the weight of the points it answers for.
    #[must_use]
    pub fn mass(&self, c: usize) -> f64 {
        self.mass[c]
    }

    /// First moment $f_c$ of component `c`: `d` numbers, padded with zeros.
    #[must_use]
    pub fn first(&self, c: usize) -> &[f64] {
        let stride = stride(self.dim);
        &self.first[c * stride..(c + 1) * stride]
    }

    /// Adds a padded row of weight times responsibility `share` to component `c`.
    #[inline(always)]
    pub(super) fn add<F: Float>(&mut self, c: usize, share: f64, row: &[F], centres: &Centres<F>) {
        let stride = row.len();
        self.mass[c] += share;
        let first = &mut self.first[c * stride..(c + 1) * stride];
        for ((first, &x), &mu) in first.iter_mut().zip(row).zip(centres.row(c)) {
            *first += share * (x.to_f64() - mu.to_f64());
        }
    }

    /// Number of components without mass.
    #[must_use]
    pub fn emptied(&self) -> usize {
        self.mass.iter().filter(|mass| **mass <= 0.0).count()
    }

    /// The moments of all rows from the moments of some (at least one of these), added up in their order.
    #[must_use]
    pub fn merge(parts: Vec<Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut total = parts.next().expect("moments of some rows");
        let parts: Vec<Self> = parts.collect();
        add_all(&mut total.mass, &parts, |part| &part.mass);
        add_all(&mut total.first, &parts, |part| &part.first);
        total
    }

    /// Moves every centre to its mean (E6); a component without mass keeps its centre. Returns by how much
    /// sum w q |z - mu|^2 falls (E7), with the means as rounded to the type of the data.
    pub(crate) fn move_centres<F: Float>(&self, centres: &mut Centres<F>) -> f64 {
        let mut gain = 0.0;
        centres.update(|c, centre| {
            let mass = self.mass(c);
            if mass > 0.0 {
                for (mu, &first) in centre.iter_mut().zip(self.first(c)) {
                    let old = mu.to_f64();
                    *mu = F::from_f64(old + first / mass);
                    let step = mu.to_f64() - old;
                    gain += step * (2.0 * first - mass * step);
                }
            }
        });
        gain
    }
}

/// Adds the sums of every part to `total`, element by element in the order of the parts.
fn add_all(total: &mut [f64], parts: &[Moments], of: impl Fn(&Moments) -> &[f64] + Sync) {
    const ELEMENTS: usize = 1 << 13;
    parallel::map_chunks(total, ELEMENTS, |_, range, total| {
        for part in parts {
            for (total, sum) in total.iter_mut().zip(&of(part)[range.clone()]) {
                *total += sum;
            }
        }
    });
}
