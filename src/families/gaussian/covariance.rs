//! Kinds of covariances, as settings: how many numbers each has.

use crate::base::error::{Result, require};
use ndarray::{Array2, ArrayD};

/// The form of the covariances of Gaussian components.
// Kinds are saved by their place in this list: new ones come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Covariance {
    /// One variance for all components and columns, and equal mixing proportions: the model behind k-means.
    TiedSpherical,
    /// A variance per component.
    Spherical,
    /// A variance per component and column. On a [`Sketch`](crate::data::Sketch) the columns are the preconditioned ones.
    Diagonal,
    /// One covariance with all pairs of columns, for all components. On dense data, of which values may be missing.
    Tied,
    /// A covariance with all pairs of columns per component. On dense data, of which values may be missing.
    Full,
    /// Factor analysers: a covariance per component of this many factors, fewer than columns, and a variance per column
    /// ([E58](crate::equations#e58)). It has most of what `Full` has, and never a matrix of all pairs of columns. On dense
    /// data, of which values may be missing.
    Factors(usize),
}

/// An axis of the covariances.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Components,
    Columns,
}

impl Covariance {
    /// The axes of all covariances: of the variances besides factors.
    fn axes(self) -> &'static [Axis] {
        match self {
            Self::TiedSpherical => &[],
            Self::Spherical => &[Axis::Components],
            Self::Diagonal | Self::Factors(_) => &[Axis::Components, Axis::Columns],
            Self::Tied => &[Axis::Columns, Axis::Columns],
            Self::Full => &[Axis::Components, Axis::Columns, Axis::Columns],
        }
    }

    /// Whether there is one variance, so that the likeliest component is the nearest.
    pub(super) fn is_one_variance(self) -> bool {
        self.axes().is_empty()
    }

    /// Whether there is a covariance for each pair of columns.
    pub(super) fn has_pairs(self) -> bool {
        self.axes().ends_with(&[Axis::Columns, Axis::Columns])
    }

    /// Whether each column has a variance, so that its unit says nothing.
    pub(in crate::families) fn is_by_column(self) -> bool {
        self.axes().contains(&Axis::Columns)
    }

    /// How many factors there are; 0 for other kinds.
    pub(super) fn factors(self) -> usize {
        match self {
            Self::Factors(factors) => factors,
            _ => 0,
        }
    }

    /// An error unless there are fewer factors than columns.
    pub(super) fn check_columns(self, columns: usize) -> Result<()> {
        let factors = self.factors();
        let rule = "must be fewer than columns, and at least 1";
        let fits = !matches!(self, Self::Factors(_)) || (1..columns).contains(&factors);
        require(fits, "factors", factors, rule)
    }

    /// Whether columns depend on one another, so that what a row lacks follows from what it knows.
    pub(super) fn has_dependent_columns(self) -> bool {
        self.has_pairs() || matches!(self, Self::Factors(_))
    }

    /// The shape of all covariances, for `k` components in `dim` coordinates: of the variances besides factors.
    pub(super) fn shape(self, k: usize, dim: usize) -> Vec<usize> {
        let sizes = self.axes().iter().map(|axis| match axis {
            Axis::Components => k,
            Axis::Columns => dim,
        });
        sizes.collect()
    }

    /// All covariances, of such matrices (dim, dim) of components.
    pub(super) fn of_matrices(
        self,
        k: usize,
        dim: usize,
        matrix: impl Fn(usize) -> Array2<f64>,
    ) -> ArrayD<f64> {
        let each = self.axes().contains(&Axis::Components);
        let mut numbers = Vec::new();
        for c in 0..if each { k } else { 1 } {
            let matrix = matrix(c);
            if self.has_pairs() {
                numbers.extend(&matrix);
            } else if self.is_by_column() {
                numbers.extend(matrix.diag());
            } else {
                numbers.push(matrix[[0, 0]]);
            }
        }
        ArrayD::from_shape_vec(self.shape(k, dim), numbers).expect("as many as the kind has")
    }
}
