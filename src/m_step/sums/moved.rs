//! Means that follow from sums (E6), and second moments about them (E7).

use super::moments::Moments;
use crate::base::float::Float;
use crate::kernels::stride;
use crate::rows::Centres;

impl Moments {
    /// Moves every centre to its mean, and returns the second moments about the new ones (E32, E34).
    pub fn about_new_means<F: Float>(&self, centres: &mut Centres<F>) -> Vec<f64> {
        let stride = stride(self.dim);
        let mut squared = self.second().to_vec();
        self.move_centres(centres, |c, j, fall| {
            squared[self.kind.sum_of(c, c * stride + j).unwrap_or(0)] -= fall;
        });
        // Far seeds: nearly all of the old sum goes, and what is left is its rounding: that of costs, in totals.
        let rounding = if self.has_totals() {
            (self.dim + 8) as f64 * F::EPSILON
        } else {
            8.0 * f64::EPSILON
        };
        for (left, old) in squared.iter_mut().zip(self.second()) {
            *left = left.max(rounding * old);
        }
        squared
    }

    /// The second moment of all coordinates of all components together, about the new means, and the mass that it is over.
    pub(crate) fn squares_of_all(&self, squared: &[f64]) -> (f64, f64) {
        if self.has_totals() {
            return (squared[0], self.second[1]);
        }
        let entries = (0..self.mass.len()).map(|c| self.entries(c)).sum();
        (squared.iter().sum(), entries)
    }

    /// The second moment that coordinate `j` of component `c` has among these, and the mass that it is over.
    pub(crate) fn second_of(&self, squared: &[f64], c: usize, j: usize) -> (f64, f64) {
        let mass = match self.kind.axes() {
            [] => self.second[1],
            [_] => self.entries(c),
            _ => self.observed(c, j),
        };
        let sum = self.kind.sum_of(c, c * stride(self.dim) + j);
        (squared[sum.unwrap_or(0)], mass)
    }

    /// Moves every coordinate of every centre to its mean (E6), or beyond (E62), rounded to the type of the data; one without mass
    /// stays.
    /// Shows `moved` each step: component, coordinate, and by how much the sum of w q |z - mu|^2 falls in it (E7).
    pub(crate) fn move_centres<F: Float>(
        &self,
        centres: &mut Centres<F>,
        mut moved: impl FnMut(usize, usize, f64),
    ) {
        // Coordinates whose squares the type cannot hold are 0: arithmetic on such numbers takes many times as long, and
        // soft supports leave them wherever a column is mostly 0.
        let least = 2f64.powi(-(F::MAX_EXPONENT + 1) / 2);
        let flushed = |mean: f64| if mean.abs() < least { 0.0 } else { mean };
        centres.update(|c, centre| {
            if self.mass(c) <= 0.0 {
                return;
            }
            let both = centre.iter_mut().zip(self.first(c)).enumerate();
            // In sparse rows most columns of a component are 0.
            let some = both.filter(|(_, (mu, first))| **first != 0.0 || **mu != F::zero());
            for (j, (mu, &first)) in some {
                let mass = self.observed(c, j);
                if mass > 0.0 {
                    let old = mu.to_f64();
                    *mu = F::from_f64(flushed(old + self.step * first / mass));
                    let step = mu.to_f64() - old;
                    moved(c, j, step * (2.0 * first - mass * step));
                }
            }
        });
    }
}
