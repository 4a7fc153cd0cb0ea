//! Kinds of covariances: how many numbers each has.

use crate::base::error::{Result, require};
use crate::m_step::SecondMoments;

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
    /// Whether there is one variance, so that the likeliest component is the nearest.
    pub(super) fn is_one_variance(self) -> bool {
        self == Self::TiedSpherical
    }

    /// Whether all components have the same.
    pub(super) fn is_tied(self) -> bool {
        matches!(self, Self::TiedSpherical | Self::Tied)
    }

    /// Whether there is a covariance for each pair of columns.
    pub(super) fn has_pairs(self) -> bool {
        matches!(self, Self::Tied | Self::Full)
    }

    /// Whether each column has a variance, so that its unit says nothing.
    pub(in crate::families) fn is_by_column(self) -> bool {
        !matches!(self, Self::TiedSpherical | Self::Spherical)
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
        self.has_pairs() || self.factors() > 0
    }

    pub(super) fn second(self) -> SecondMoments {
        match self {
            Self::TiedSpherical => SecondMoments::Total,
            Self::Spherical => SecondMoments::PerComponent,
            Self::Diagonal | Self::Factors(_) => SecondMoments::PerCoordinate,
            Self::Tied => SecondMoments::Pairs,
            Self::Full => SecondMoments::PerPair,
        }
    }

    /// The shape of all covariances, for `k` components in `dim` coordinates: of the variances besides factors.
    pub(super) fn shape(self, k: usize, dim: usize) -> Vec<usize> {
        match self {
            Self::TiedSpherical => Vec::new(),
            Self::Spherical => vec![k],
            Self::Diagonal | Self::Factors(_) => vec![k, dim],
            Self::Tied => vec![dim, dim],
            Self::Full => vec![k, dim, dim],
        }
    }

    /// How many numbers these are; one component has those of `k = 1`.
    pub(super) fn numbers(self, k: usize, dim: usize) -> usize {
        self.shape(k, dim).iter().product()
    }

    /// How many numbers the diagonals of the matrices have; none, if there are no matrices.
    pub(super) fn columns(self, k: usize, dim: usize) -> usize {
        match self {
            Self::Tied => dim,
            Self::Full => k * dim,
            _ => 0,
        }
    }

    /// The free ones among them, and among loadings: matrices are symmetric, and factors can be turned.
    pub(super) fn free(self, k: usize, dim: usize) -> usize {
        let q = self.factors();
        if self.has_pairs() {
            self.numbers(k, dim) / dim * (dim + 1) / 2
        } else {
            self.numbers(k, dim) + k * (dim * q - q * q.saturating_sub(1) / 2)
        }
    }
}
