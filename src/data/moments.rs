//! Weighted statistics of components: what a block of rows adds to an M-step.

use super::Centres;
use crate::float::Float;
use crate::kernels::stride;
use crate::parallel;

/// Mass and first moment of every component (E5), in `f64`, in the coordinates of the frame.
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad \sum_n w_n q_{nc} z_n = f_c + m_c \mu_c$$
///
/// The first moment is kept about the origin of the frame, the mean of the data; (E5) takes it about the mean of
/// the component.
///
/// Moments of disjoint blocks add up ([`merge`](Self::merge)), so they serve blocks of rows, blocks from
/// disk and partitions of a cluster alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments<F> {
    pub(super) dim: usize,
    /// sum_n w_n q_nc (k).
    pub(super) mass: Vec<f64>,
    /// sum_n w_n q_nc z_n (k, d), padded.
    pub(super) first: Vec<f64>,
    /// Scratch for sums of one block in the data's type (k, d).
    pub(super) product: Vec<F>,
}

impl<F: Float> Moments<F> {
    /// Nothing seen yet, for `k` components in `d` dimensions.
    #[must_use]
    pub fn zeros(k: usize, dim: usize) -> Self {
        let first = vec![0.0; k * stride(dim)];
        Self {
            dim,
            mass: vec![0.0; k],
            first,
            product: Vec::new(),
        }
    }

    /// Mass $m_c$ of component `c`: the weight of the points it answers for.
    #[must_use]
    pub fn mass(&self, c: usize) -> f64 {
        self.mass[c]
    }

    /// First moment $\sum_n w_n q_{nc} z_n$ of component `c`: `d` numbers, padded with zeros.
    #[must_use]
    pub fn first(&self, c: usize) -> &[f64] {
        let stride = stride(self.dim);
        &self.first[c * stride..(c + 1) * stride]
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
    pub(crate) fn move_centres(&self, centres: &mut Centres<F>) -> f64 {
        let mut gain = 0.0;
        centres.update(|c, centre| {
            let mass = self.mass(c);
            if mass > 0.0 {
                for (mu, &first) in centre.iter_mut().zip(self.first(c)) {
                    let old = mu.to_f64();
                    *mu = F::from_f64(first / mass);
                    let step = mu.to_f64() - old;
                    // About the old centre: sum w q (z - old) = first - mass * old.
                    gain += step * (2.0 * (first - mass * old) - mass * step);
                }
            }
        });
        gain
    }
}

/// Adds the sums of every part to `total`, element by element in the order of the parts.
fn add_all<F: Float>(
    total: &mut [f64],
    parts: &[Moments<F>],
    of: impl Fn(&Moments<F>) -> &[f64] + Sync,
) {
    const ELEMENTS: usize = 1 << 13;
    parallel::map_chunks(total, ELEMENTS, |_, range, total| {
        for part in parts {
            for (total, sum) in total.iter_mut().zip(&of(part)[range.clone()]) {
                *total += sum;
            }
        }
    });
}
