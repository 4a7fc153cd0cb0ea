//! Frames and centres in files: what all else follows from, checked when it is read.

use super::{Basis, Centres, Frame, Transform};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::{all_finite, hash_of, rule, serde_through};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(bound = "F: Float", deny_unknown_fields)]
pub(crate) struct StoredFrame<F> {
    /// Text formats read one number type as the other.
    number_type: String,
    exponent: i32,
    offset: Vec<F>,
    mean: Vec<F>,
    basis: Option<StoredBasis>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBasis {
    seed: u64,
    transform: Transform,
    columns: usize,
    /// A checksum of the signs, which follow from the seed by a random generator.
    signs: String,
}

/// Centres without their padding.
#[derive(Serialize, Deserialize)]
#[serde(bound = "F: Float", deny_unknown_fields)]
pub(crate) struct StoredCentres<F> {
    dim: usize,
    values: Vec<F>,
}

serde_through! {
    StoredFrame: Frame;
    StoredCentres: Centres;
}

impl<F: Float> From<&Frame<F>> for StoredFrame<F> {
    fn from(frame: &Frame<F>) -> Self {
        Self {
            number_type: F::NAME.to_string(),
            exponent: frame.exponent(),
            offset: frame.offset()[..frame.dim()].to_vec(),
            mean: frame.mean()[..frame.dim()].to_vec(),
            basis: frame.basis().map(|basis| StoredBasis {
                seed: basis.seed(),
                transform: basis.transform(),
                columns: basis.columns(),
                signs: hash_of(basis.signs().iter().copied()),
            }),
        }
    }
}

impl<F: Float> TryFrom<StoredFrame<F>> for Frame<F> {
    type Error = FileFault;

    fn try_from(stored: StoredFrame<F>) -> Result<Self, FileFault> {
        if stored.number_type != F::NAME {
            return Err(FileFault::Number {
                expected: F::NAME,
                found: stored.number_type,
            });
        }
        let dim = stored.offset.len();
        rule(dim > 0, "frame offset", "must have coordinates")?;
        let known = stored.exponent.unsigned_abs() <= F::MAX_EXPONENT.unsigned_abs();
        let of_type = "must be an exponent of the number type";
        rule(known, "frame exponent", of_type)?;
        all_finite("frame offset", &stored.offset, dim)?;
        all_finite("frame mean", &stored.mean, dim)?;
        let frame = Self::from_parts(&stored.offset, &stored.mean, stored.exponent);
        let Some(StoredBasis {
            seed,
            transform,
            columns,
            signs,
        }) = stored.basis
        else {
            return Ok(frame);
        };
        // At most as many columns as coordinates, of which the file holds some numbers each.
        let fits = (1..=dim).contains(&columns) && transform.coordinates(columns) == dim;
        rule(fits, "basis", "must have as many coordinates as the model")?;
        let basis = Basis::new(seed, transform, columns);
        let same = hash_of(basis.signs().iter().copied()) == signs;
        rule(same, "basis", "must have the signs that its seed gives")?;
        Ok(frame.with_basis(basis))
    }
}

impl<F: Float> From<&Centres<F>> for StoredCentres<F> {
    fn from(centres: &Centres<F>) -> Self {
        let dim = centres.dim();
        let rows = (0..centres.len()).flat_map(|c| &centres.row(c)[..dim]);
        Self {
            dim,
            values: rows.copied().collect(),
        }
    }
}

impl<F: Float> TryFrom<StoredCentres<F>> for Centres<F> {
    type Error = FileFault;

    fn try_from(stored: StoredCentres<F>) -> Result<Self, FileFault> {
        let StoredCentres { dim, values } = stored;
        all_finite("centres", &values, values.len())?;
        let k = values.len().checked_div(dim).unwrap_or_default();
        match ArrayView2::from_shape((k, dim), &values) {
            Ok(rows) if k > 0 => Ok(Self::of_coordinates(rows)),
            _ => Err(FileFault::content("centres", "must be k times d")),
        }
    }
}
