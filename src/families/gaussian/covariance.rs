//! Kinds of covariances, as settings: how many numbers each has.

use crate::base::error::{Result, require};
use crate::m_step::sums::moments::Axis;
use crate::m_step::{SecondMoments, Variances};
use ndarray::{Array2, ArrayD};
use std::slice::ChunksExact;

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

impl Covariance {
    /// The second moments of rows that covariances follow from, or the variances besides factors.
    pub(super) const fn second(self) -> SecondMoments {
        match self {
            Self::TiedSpherical => SecondMoments::Total,
            Self::Spherical => SecondMoments::PerComponent,
            Self::Diagonal | Self::Factors(_) => SecondMoments::PerCoordinate,
            Self::Tied => SecondMoments::Pairs,
            Self::Full => SecondMoments::PerPair,
        }
    }

    /// The axes of all covariances: those of these second moments.
    const fn axes(self) -> &'static [Axis] {
        self.second().axes()
    }

    /// Whether there is one variance, so that the likeliest component is the nearest.
    pub(super) const fn is_one_variance(self) -> bool {
        self.axes().is_empty()
    }

    /// Whether there is a covariance for each pair of columns.
    fn has_pairs(self) -> bool {
        self.axes().ends_with(&[Axis::Columns, Axis::Columns])
    }

    /// Whether each column has a variance, so that its unit says nothing.
    pub(in crate::families) fn is_by_column(self) -> bool {
        self.axes().contains(&Axis::Columns)
    }

    /// How many factors there are, if it has any.
    pub(super) fn factors(self) -> Option<usize> {
        match self {
            Self::Factors(factors) => Some(factors),
            Self::TiedSpherical | Self::Spherical | Self::Diagonal | Self::Tied | Self::Full => {
                None
            }
        }
    }

    /// An error unless there are fewer factors than columns.
    pub(super) fn check_columns(self, columns: usize) -> Result<()> {
        let rule = "must be fewer than columns, and at least 1";
        let factors = self.factors().unwrap_or(1);
        let fits = self.factors().is_none() || (1..columns).contains(&factors);
        require(fits, "factors", factors, rule)
    }

    /// The parts that have variances of their own.
    pub(super) fn variances(self) -> Variances {
        if self.is_by_column() || self.factors().is_some() {
            Variances::Columns
        } else if self.is_one_variance() {
            Variances::None
        } else {
            Variances::Components
        }
    }

    /// Whether columns depend on one another, so that what a row lacks follows from what it knows.
    pub(super) fn has_dependent_columns(self) -> bool {
        self.has_pairs() || self.factors().is_some()
    }

    /// About how many numbers a component has for `dim` columns besides a variance of each.
    pub(crate) fn numbers(self, dim: usize) -> usize {
        match self.factors() {
            Some(factors) => dim * factors,
            None => usize::from(self.has_pairs()) * dim * dim,
        }
    }

    /// The kind that some columns have, alone or given others, of a model as it says.
    pub(super) fn of_columns(self, among: Among) -> Self {
        match self {
            // In another basis there are pairs.
            _ if among.has_basis => Self::Full,
            Self::Factors(q) if among.conditioned || q >= among.columns => Self::Full,
            Self::TiedSpherical | Self::Spherical if among.is_standardised => Self::Diagonal,
            Self::TiedSpherical if among.conditioned || !among.equal_proportions => Self::Spherical,
            Self::TiedSpherical
            | Self::Spherical
            | Self::Diagonal
            | Self::Tied
            | Self::Full
            | Self::Factors(_) => self,
        }
    }

    /// The shape of all covariances, for `k` components in `dim` coordinates: of the variances besides factors.
    pub(super) fn shape(self, k: usize, dim: usize) -> Vec<usize> {
        let sizes = self.axes().iter().map(|axis| match axis {
            Axis::Components => k,
            Axis::Columns => dim,
        });
        sizes.collect()
    }

    /// The matrices (d, d) among these covariances: none among variances.
    pub(super) fn matrices(self, covariances: &[f64], dim: usize) -> ChunksExact<'_, f64> {
        let size = usize::from(self.has_pairs()) * covariances.len();
        covariances[..size].chunks_exact(dim * dim)
    }

    /// The variances of the columns among these covariances.
    pub(super) fn diagonals(self, covariances: &[f64], dim: usize) -> impl Iterator<Item = f64> {
        let matrices = self.matrices(covariances, dim);
        let variances = if matrices.len() > 0 { &[] } else { covariances };
        let diagonals = matrices.flat_map(move |matrix| matrix.iter().step_by(dim + 1));
        diagonals.chain(variances).copied()
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

/// A question for the kind of some columns of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Among {
    /// How many columns.
    pub(super) columns: usize,
    /// Whether the others are known.
    pub(super) conditioned: bool,
    pub(super) has_basis: bool,
    pub(super) is_standardised: bool,
    pub(super) equal_proportions: bool,
}
