//! The coordinates of sparsified rows: an orthonormal preconditioner, which spreads the information of a row evenly.

use crate::base::error::{Result, same_columns};
use crate::base::rng::{Purpose, Streams};
use crate::base::simd::vectorised;
use ndarray::{Array2, ArrayView1, ArrayView2};
use rustdct::{DctPlanner, TransformType2And3};
use std::fmt;
use std::sync::Arc;

/// The orthonormal transform that follows the random signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Transform {
    /// The discrete cosine transform of type II, for any number of columns. The default: nothing is padded.
    #[default]
    Cosine,
    /// The Walsh-Hadamard transform, on rows padded with zeros to a power of two. Where that pads anything, models live
    /// in all P' coordinates, and so do their densities and distances, of dense rows as well. A mean fitted to a few
    /// coordinates per row can differ a little from 0 in the padding, which `means()` leaves out.
    Hadamard,
}

/// An orthonormal preconditioner ([E27](crate::equations#e27); \[SG\] Section II): random signs, then a fixed [`Transform`].
///
/// $$y \mapsto H D y, \qquad D = \operatorname{diag}(\pm 1), \qquad H^\top H = I$$
///
/// Distances are the same before and after it, and after it no single coordinate matters more than others, so that
/// a few chosen at random stand for all. Computed in `f64`. Two are equal if they have the same seed, transform and
/// number of columns; a clone is cheap.
#[derive(Clone)]
pub struct Basis(Arc<Inner>);

struct Inner {
    seed: u64,
    transform: Transform,
    columns: usize,
    coordinates: usize,
    /// (columns): 1 or -1.
    signs: Vec<f64>,
    /// Of the cosine transform.
    plan: Option<Arc<dyn TransformType2And3<f64>>>,
}

impl Basis {
    /// The basis of this seed for rows of `columns` numbers; at least 1, at most 2^31.
    pub(crate) fn new(seed: u64, transform: Transform, columns: usize) -> Self {
        let coordinates = transform.coordinates(columns);
        let mut rng = Streams::new(seed, 0).at(Purpose::Sketch, 0, 0);
        let signs = (0..columns).map(|_| [1.0, -1.0][rng.below(2)]).collect();
        let plan = match transform {
            Transform::Cosine => Some(DctPlanner::new().plan_dct2(columns)),
            Transform::Hadamard => None,
        };
        Self(Arc::new(Inner {
            seed,
            transform,
            columns,
            coordinates,
            signs,
            plan,
        }))
    }

    /// The seed of the signs.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// What follows the signs.
    #[must_use]
    pub fn transform(&self) -> Transform {
        self.0.transform
    }

    /// Number of columns of the data, P.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.0.columns
    }

    /// Number of coordinates, P': as many as columns, or the next power of two.
    #[must_use]
    pub fn coordinates(&self) -> usize {
        self.0.coordinates
    }

    /// The signs (P): 1 or -1.
    pub(crate) fn signs(&self) -> &[f64] {
        &self.0.signs
    }

    /// Points (n, P) in the coordinates of the basis: (n, P').
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) for another number of columns.
    pub fn forward(&self, points: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        same_columns("points", self.columns(), points.ncols())?;
        let mut workspace = self.workspace();
        let mut out = Array2::zeros((points.nrows(), self.coordinates()));
        for (point, mut out) in points.outer_iter().zip(out.outer_iter_mut()) {
            out.assign(&ArrayView1::from(workspace.forward(point.iter().copied())));
        }
        Ok(out)
    }

    /// Points in the coordinates of the basis (n, P') back in the columns of the data: (n, P). Undoes
    /// [`forward`](Self::forward).
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) for another number of coordinates.
    pub fn inverse(&self, points: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        same_columns("points", self.coordinates(), points.ncols())?;
        let mut workspace = self.workspace();
        let mut out = Array2::zeros((points.nrows(), self.columns()));
        for (point, mut out) in points.outer_iter().zip(out.outer_iter_mut()) {
            out.assign(&ArrayView1::from(workspace.inverse(point.iter().copied())));
        }
        Ok(out)
    }

    /// Room to transform one row at a time.
    pub(crate) fn workspace(&self) -> Workspace<'_> {
        let plan = self.0.plan.as_ref();
        let scratch = plan.map_or(0, |plan| plan.get_scratch_len());
        Workspace {
            basis: &self.0,
            values: vec![0.0; self.0.coordinates],
            scratch: vec![0.0; scratch],
        }
    }
}

impl Transform {
    /// Number of coordinates of rows of `columns` numbers.
    pub(crate) fn coordinates(self, columns: usize) -> usize {
        match self {
            Self::Cosine => columns,
            Self::Hadamard => columns.next_power_of_two(),
        }
    }
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        let key = |basis: &Self| (basis.seed(), basis.transform(), basis.columns());
        key(self) == key(other)
    }
}

impl fmt::Debug for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basis")
            .field("seed", &self.seed())
            .field("transform", &self.transform())
            .field("columns", &self.columns())
            .finish()
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transform, seed) = (self.transform(), self.seed());
        write!(f, "a sketch with transform {transform:?} and seed {seed}")
    }
}

/// One row at a time, there or back.
pub(crate) struct Workspace<'a> {
    basis: &'a Inner,
    values: Vec<f64>,
    scratch: Vec<f64>,
}

impl Workspace<'_> {
    /// A row (P) in the coordinates of the basis (P').
    pub(crate) fn forward(&mut self, row: impl Iterator<Item = f64>) -> &[f64] {
        let (values, padding) = self.values.split_at_mut(self.basis.columns);
        for ((value, x), sign) in values.iter_mut().zip(row).zip(&self.basis.signs) {
            *value = sign * x;
        }
        padding.fill(0.0);
        match &self.basis.plan {
            Some(plan) => {
                plan.process_dct2_with_scratch(&mut self.values, &mut self.scratch);
                // The crate's transform is the plain sum of cosines.
                let scale = (2.0 / self.values.len() as f64).sqrt();
                self.values[0] *= std::f64::consts::FRAC_1_SQRT_2;
                self.values.iter_mut().for_each(|value| *value *= scale);
            }
            None => hadamard(&mut self.values),
        }
        &self.values
    }

    /// Coordinates (P') back in the columns of the data (P).
    pub(crate) fn inverse(&mut self, coordinates: impl Iterator<Item = f64>) -> &[f64] {
        for (value, x) in self.values.iter_mut().zip(coordinates) {
            *value = x;
        }
        match &self.basis.plan {
            Some(plan) => {
                let scale = (2.0 / self.values.len() as f64).sqrt();
                self.values.iter_mut().for_each(|value| *value *= scale);
                // The crate's inverse halves the first coordinate.
                self.values[0] *= std::f64::consts::SQRT_2;
                plan.process_dct3_with_scratch(&mut self.values, &mut self.scratch);
            }
            // Symmetric and orthonormal: its own inverse.
            None => hadamard(&mut self.values),
        }
        for (value, sign) in self.values.iter_mut().zip(&self.basis.signs) {
            *value *= sign;
        }
        &self.values[..self.basis.columns]
    }
}

/// The orthonormal Walsh-Hadamard transform of a power of two of numbers, in place.
fn hadamard(values: &mut [f64]) {
    vectorised!({
        let mut half = 1;
        while half < values.len() {
            for pair in values.chunks_exact_mut(2 * half) {
                let (left, right) = pair.split_at_mut(half);
                for (a, b) in left.iter_mut().zip(right) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        let scale = 1.0 / (values.len() as f64).sqrt();
        values.iter_mut().for_each(|value| *value *= scale);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use std::f64::consts::PI;

    /// The matrix of the transform (P', P), without signs, from its definition.
    fn naive(transform: Transform, columns: usize) -> Array2<f64> {
        let rows = transform.coordinates(columns);
        Array2::from_shape_fn((rows, columns), |(i, j)| match transform {
            Transform::Cosine => {
                let norm = if i == 0 { 1.0 } else { 2.0 } / columns as f64;
                norm.sqrt() * (PI / columns as f64 * (j as f64 + 0.5) * i as f64).cos()
            }
            Transform::Hadamard => recursive(rows, i, j) / (rows as f64).sqrt(),
        })
    }

    /// Entry (i, j) of the Hadamard matrix of this size: four blocks of half the size, the last one negative.
    fn recursive(size: usize, i: usize, j: usize) -> f64 {
        if size == 1 {
            return 1.0;
        }
        let half = size / 2;
        let sign = if i >= half && j >= half { -1.0 } else { 1.0 };
        sign * recursive(half, i % half, j % half)
    }

    #[test]
    fn both_transforms_are_their_matrices_and_undone_by_the_inverse() {
        let mut rng = Rng::from_seed(1);
        for transform in [Transform::Cosine, Transform::Hadamard] {
            for columns in [1, 2, 3, 4, 5, 7, 8, 16, 30, 63, 97, 128, 784] {
                let basis = Basis::new(9, transform, columns);
                let (matrix, signs) = (naive(transform, columns), &basis.0.signs);
                let x = Array2::from_shape_fn((2, columns), |_| rng.normal());
                let y = basis.forward(x.view()).unwrap();
                let signed = &x * &ArrayView1::from(signs);
                let expected = signed.dot(&matrix.t());
                assert_eq!(y.ncols(), basis.coordinates());
                let near = |a: &Array2<f64>, b: &Array2<f64>| {
                    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-11)
                };
                assert!(near(&y, &expected), "{transform:?} {columns}");
                let back = basis.inverse(y.view()).unwrap();
                assert!(near(&back, &x), "{transform:?} {columns}: inverse");
                let gram = matrix.t().dot(&matrix);
                assert!(near(&gram, &Array2::eye(columns)), "not orthonormal");
            }
        }
    }

    #[test]
    fn signs_follow_the_seed_and_are_balanced() {
        let basis = |seed| Basis::new(seed, Transform::Cosine, 10_000);
        assert_eq!(basis(1).0.signs, basis(1).0.signs);
        assert_ne!(basis(1).0.signs, basis(2).0.signs);
        assert!(basis(1).0.signs.iter().sum::<f64>().abs() < 500.0);
        assert!(basis(1) == basis(1) && basis(1) != basis(2));
        assert_ne!(
            Basis::new(1, Transform::Cosine, 8),
            Basis::new(1, Transform::Hadamard, 8)
        );
        assert!(basis(1).forward(Array2::zeros((1, 9)).view()).is_err());
        assert!(basis(1).inverse(Array2::zeros((1, 9)).view()).is_err());
    }
}
