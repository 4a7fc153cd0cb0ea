//! Kinds of covariances: how many numbers each has.

use super::SecondMoments;

/// The form of the covariances of Gaussian components.
// Kinds are saved by their place in this list: new ones come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

    pub(super) fn second(self) -> SecondMoments {
        match self {
            Self::TiedSpherical => SecondMoments::Total,
            Self::Spherical => SecondMoments::PerComponent,
            Self::Diagonal => SecondMoments::PerCoordinate,
            Self::Tied => SecondMoments::Pairs,
            Self::Full => SecondMoments::PerPair,
        }
    }

    /// The shape of all covariances, for `k` components in `dim` coordinates.
    pub(super) fn shape(self, k: usize, dim: usize) -> Vec<usize> {
        match self {
            Self::TiedSpherical => Vec::new(),
            Self::Spherical => vec![k],
            Self::Diagonal => vec![k, dim],
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

    /// The free ones among them: matrices are symmetric.
    pub(super) fn free(self, k: usize, dim: usize) -> usize {
        match self.has_pairs() {
            true => self.numbers(k, dim) / dim * (dim + 1) / 2,
            false => self.numbers(k, dim),
        }
    }
}
