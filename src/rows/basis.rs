//! The coordinates of sparsified rows: an orthonormal preconditioner, which spreads the information of a row evenly.

use crate::base::error::{Result, same_columns};
use crate::base::rng::{Purpose, Streams};
use ndarray::{Array2, ArrayView2};
use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt;
use std::sync::Arc;

/// An orthonormal preconditioner ([E27](crate::equations#e27); \[SG\] Section II): random signs, then a Walsh-Hadamard
/// transform of any length.
///
/// $$y \mapsto H D y, \qquad D = \operatorname{diag}(\pm 1), \qquad H^\top H = I$$
///
/// Distances are the same before and after it, and after it no single coordinate matters more than others, so that
/// a few chosen at random stand for all. Computed in `f64`. Two are equal if they have the same seed and number of columns; a
/// clone is cheap.
#[derive(Clone)]
pub struct Basis(pub(super) Arc<Inner>);

pub(super) struct Inner {
    seed: u64,
    /// (P): 1 or -1.
    pub(super) signs: Vec<f64>,
}

impl Basis {
    /// The basis of this seed for rows of `columns` numbers; at least 1, at most 2^31.
    pub(crate) fn new(seed: u64, columns: usize) -> Self {
        let mut rng = Streams::new(seed, 0).at(Purpose::Sketch, 0, 0);
        let signs = (0..columns).map(|_| [1.0, -1.0][rng.below(2)]).collect();
        Self(Arc::new(Inner { seed, signs }))
    }

    /// The seed of the signs.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Number of columns of the data, and of coordinates, P.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.0.signs.len()
    }

    /// Points (n, P) in the coordinates of the basis: (n, P).
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) for another number of columns.
    pub fn forward(&self, points: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.of_all(points, Self::enter)
    }

    /// Points in the coordinates of the basis (n, P) back in the columns of the data: (n, P). Undoes
    /// [`forward`](Self::forward).
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) for another number of coordinates.
    pub(crate) fn inverse(&self, points: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.of_all(points, Self::leave)
    }

    fn of_all(
        &self,
        points: ArrayView2<'_, f64>,
        turn: impl Fn(&Self, &mut [f64]),
    ) -> Result<Array2<f64>> {
        same_columns("points", self.columns(), points.ncols())?;
        let mut out = points.as_standard_layout().into_owned();
        for mut row in out.outer_iter_mut() {
            turn(self, row.as_slice_mut().expect("in standard layout"));
        }
        Ok(out)
    }

    /// Takes a row (P) into the coordinates of the basis, in place.
    pub(crate) fn enter(&self, row: &mut [f64]) {
        self.turn_signs(row);
        mix(row);
    }

    /// Takes coordinates (P) back into the columns of the data, in place.
    pub(crate) fn leave(&self, row: &mut [f64]) {
        unmix(row);
        self.turn_signs(row);
    }

    fn turn_signs(&self, row: &mut [f64]) {
        let pairs = row.iter_mut().zip(&self.0.signs);
        pairs.for_each(|(x, sign)| *x *= sign);
    }
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        let key = |basis: &Self| (basis.seed(), basis.columns());
        key(self) == key(other)
    }
}

impl fmt::Debug for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basis")
            .field("seed", &self.seed())
            .field("columns", &self.columns())
            .finish()
    }
}

/// The Walsh-Hadamard transform of any length, in place: of both halves, and then of pairs of their values.
fn mix(row: &mut [f64]) {
    if row.len() > 1 {
        let (left, right) = row.split_at_mut(row.len() / 2);
        mix(left);
        mix(right);
        mix_pairs(left, right);
    }
}

fn unmix(row: &mut [f64]) {
    if row.len() > 1 {
        let (left, right) = row.split_at_mut(row.len() / 2);
        mix_pairs(left, right);
        unmix(left);
        unmix(right);
    }
}

/// Replaces pairs of values by their sum and difference, over $\sqrt 2$: its own inverse. If there is one more on the right, the
/// first stays as it is. Inside its half it was mixed with as many as any, so no coordinate takes much of one column.
fn mix_pairs(left: &mut [f64], right: &mut [f64]) {
    let alone = right.len() - left.len();
    for (a, b) in left.iter_mut().zip(&mut right[alone..]) {
        (*a, *b) = ((*a + *b) * FRAC_1_SQRT_2, (*a - *b) * FRAC_1_SQRT_2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use ndarray::ArrayView1;

    /// Entry (i, j) of the matrix of the transform of this length, without signs, from its recursion (E27).
    fn naive(len: usize, i: usize, j: usize) -> f64 {
        if len == 1 {
            return 1.0;
        }
        let left = len / 2;
        let right = len - len / 2;
        let alone = right - left;
        // The matrix of a half, or 0 where the column is in the other half.
        let of_left = |i: usize| if j < left { naive(left, i, j) } else { 0.0 };
        let of_right = |i: usize| {
            if j < left {
                0.0
            } else {
                naive(right, i, j - left)
            }
        };
        match i {
            i if i < left => (of_left(i) + of_right(i + alone)) / 2f64.sqrt(),
            i if i < left + alone => of_right(0),
            i => (of_left(i - left - alone) - of_right(i - left)) / 2f64.sqrt(),
        }
    }

    #[test]
    fn the_transform_is_its_matrix_and_undone_by_the_inverse() {
        let mut rng = Rng::from_seed(1);
        for columns in [1, 2, 3, 4, 5, 7, 8, 16, 30, 63, 81, 97, 128, 257, 784] {
            let basis = Basis::new(9, columns);
            let matrix = Array2::from_shape_fn((columns, columns), |(i, j)| naive(columns, i, j));
            let x = Array2::from_shape_fn((2, columns), |_| rng.normal());
            let y = basis.forward(x.view()).unwrap();
            let signed = &x * &ArrayView1::from(&basis.0.signs);
            let near = |a: &Array2<f64>, b: &Array2<f64>| {
                a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-11)
            };
            assert!(near(&y, &signed.dot(&matrix.t())), "{columns}");
            let back = basis.inverse(y.view()).unwrap();
            assert!(near(&back, &x), "{columns}: inverse");
            assert!(
                near(&matrix.t().dot(&matrix), &Array2::eye(columns)),
                "not orthonormal"
            );
            // No coordinate has much of one column: the cosine transform has 2 / P at most, this one 1 / P where P is a
            // power of two.
            let largest = matrix.iter().fold(0.0, |most: f64, h| most.max(h * h));
            let most = if columns.is_power_of_two() { 1.0 } else { 5.1 };
            assert!(
                largest * columns as f64 <= most + 1e-9,
                "{columns}: {largest}"
            );
        }
    }

    #[test]
    fn signs_follow_the_seed_and_are_balanced() {
        let basis = |seed| Basis::new(seed, 10_000);
        assert_eq!(basis(1).0.signs, basis(1).0.signs);
        assert_ne!(basis(1).0.signs, basis(2).0.signs);
        assert!(basis(1).0.signs.iter().sum::<f64>().abs() < 500.0);
        assert!(basis(1) == basis(1) && basis(1) != basis(2));
        assert_ne!(Basis::new(1, 8), Basis::new(1, 7));
        assert!(basis(1).forward(Array2::zeros((1, 9)).view()).is_err());
        assert!(basis(1).inverse(Array2::zeros((1, 9)).view()).is_err());
    }
}
