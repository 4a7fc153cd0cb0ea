//! The step of rows before they enter a frame. All that depends on it is here, so the compiler names every place of another one.

use super::Basis;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::{hash_of, rule};
use crate::kernels::features;

/// The step of rows before differences from the offset are taken. Results leave the frame through the inverse of a basis; what another
/// step makes stays as it is. A step that mixes columns is a kind of [`Basis`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum First {
    /// Nothing.
    #[default]
    Nothing,
    /// They go through a basis.
    Basis(Basis),
    /// They are brought to length 1. A row of zeros stays.
    Length,
}

impl First {
    pub(super) fn basis(&self) -> Option<&Basis> {
        match self {
            Self::Basis(basis) => Some(basis),
            Self::Nothing | Self::Length => None,
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Basis(_) | Self::Length => false,
        }
    }

    pub(super) fn has_directions(&self) -> bool {
        match self {
            Self::Length => true,
            Self::Nothing | Self::Basis(_) => false,
        }
    }

    /// Takes padded rows of this stride through any step but a basis: through that they go alone, in `f64`.
    #[inline(always)]
    pub(crate) fn enter<F: Float>(&self, rows: &mut [F], stride: usize) {
        match self {
            Self::Nothing | Self::Basis(_) => (),
            Self::Length => features::to_length_one(rows, stride),
        }
    }

    /// Whether it multiplies the values of a row by a [factor](Self::factor), so that zeros stay. Others make sparse rows dense.
    pub(crate) fn has_factors(&self) -> bool {
        match self {
            Self::Nothing | Self::Length => true,
            Self::Basis(_) => false,
        }
    }

    /// The factor of a row with these values, and zeros.
    pub(crate) fn factor<F: Float>(&self, values: &[F]) -> f64 {
        match self {
            Self::Nothing | Self::Basis(_) => 1.0,
            Self::Length => to_length_one(values),
        }
    }

    pub(super) fn stored(&self) -> StoredFirst {
        match self {
            Self::Nothing => StoredFirst::Nothing,
            Self::Basis(basis) => StoredFirst::Basis {
                seed: basis.seed(),
                signs: hash_of(basis.0.signs.iter().copied()),
            },
            Self::Length => StoredFirst::Length,
        }
    }
}

/// The factor that brings a row to length 1; 1 for a row of zeros.
fn to_length_one<F: Float>(values: &[F]) -> f64 {
    let largest = values
        .iter()
        .fold(0.0, |largest: f64, x| largest.max(x.to_f64().abs()));
    let squares = values.iter().map(|x| (x.to_f64() / largest).powi(2));
    if largest > 0.0 {
        1.0 / squares.sum::<f64>().sqrt() / largest
    } else {
        1.0
    }
}

#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(super) enum StoredFirst {
    Nothing,
    Basis {
        seed: u64,
        /// A checksum of the signs, which follow from the seed by a random generator.
        signs: String,
    },
    Length,
}

impl StoredFirst {
    /// The step of rows of `dim` columns.
    pub(super) fn checked(self, dim: usize) -> Result<First, FileFault> {
        Ok(match self {
            Self::Nothing => First::Nothing,
            Self::Basis { seed, signs } => {
                let basis = Basis::new(seed, dim);
                let same = hash_of(basis.0.signs.iter().copied()) == signs;
                rule(same, "basis", "must have the signs that its seed gives")?;
                First::Basis(basis)
            }
            Self::Length => First::Length,
        })
    }
}
