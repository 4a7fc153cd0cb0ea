//! Frames and centres in files: what all else follows from, checked when it is read.

use super::first::StoredFirst;
use super::{Centres, Frame};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::{all_finite, rule, serde_through};
use ndarray::ArrayView2;

#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(crate) struct StoredFrame<F> {
    /// Text formats read one number type as the other.
    number_type: String,
    exponent: i32,
    offset: Vec<F>,
    mean: Vec<F>,
    /// The factors of columns, if each has its own.
    scale: Option<Vec<F>>,
    first: StoredFirst,
}

#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
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
            exponent: frame.exponent,
            offset: frame.offset[..frame.dim()].to_vec(),
            mean: frame.mean[..frame.dim()].to_vec(),
            scale: frame.own_scale().map(<[F]>::to_vec),
            first: frame.first().stored(),
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
        let mut frame = Self::from_parts(&stored.offset, &stored.mean, stored.exponent);
        if let Some(scale) = &stored.scale {
            all_finite("frame scale", scale, dim)?;
            let least = 2f64.powi(1 - F::MAX_EXPONENT);
            let normal = scale.iter().all(|x| x.to_f64() >= least);
            rule(normal, "frame scale", "must be positive")?;
            frame = frame.with_scale(scale);
        }
        Ok(frame.with_first(stored.first.checked(dim)?))
    }
}

impl<F: Float> From<&Centres<F>> for StoredCentres<F> {
    fn from(centres: &Centres<F>) -> Self {
        let dim = centres.dim();
        let mut values = Vec::with_capacity(centres.len() * dim);
        for c in 0..centres.len() {
            values.extend_from_slice(&centres.row(c)[..dim]);
        }
        Self { dim, values }
    }
}

impl<F: Float> TryFrom<StoredCentres<F>> for Centres<F> {
    type Error = FileFault;

    fn try_from(stored: StoredCentres<F>) -> Result<Self, FileFault> {
        let StoredCentres { dim, values } = stored;
        all_finite("centres", &values, values.len())?;
        let k = values.len().checked_div(dim).unwrap_or_default();
        match ArrayView2::from_shape((k, dim), &values) {
            // A longer slice would pass, too.
            Ok(rows) if k > 0 && values.len() == rows.len() => Ok(Self::of_coordinates(rows)),
            _ => Err(FileFault::content("centres", "must be k times d")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Basis;

    fn stored() -> StoredFrame<f32> {
        let frame = Frame::<f32>::from_parts(&[1.0, 2.0, 3.0], &[0.1, 0.2, 0.3], 2);
        (&frame.with_basis(Basis::new(9, 3))).into()
    }

    /// The section that is wrong after a change of what was stored.
    fn wrong(change: impl FnOnce(&mut StoredFrame<f32>)) -> String {
        let mut stored = stored();
        change(&mut stored);
        match Frame::try_from(stored).map(|_| ()) {
            Err(FileFault::Content { section, .. }) => section,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_that_no_frame_has_are_errors_that_name_the_section() {
        for bad in [f32::NAN, f32::INFINITY] {
            assert_eq!(wrong(|s| s.offset[1] = bad), "frame offset");
            assert_eq!(wrong(|s| s.mean[1] = bad), "frame mean");
            let dim = 2;
            let values = vec![0.5, bad];
            assert!(Centres::try_from(StoredCentres { dim, values }).is_err());
        }
        assert_eq!(wrong(|s| s.mean.push(1.0)), "frame mean");
        for bad in [
            vec![1.0, 2.0],
            vec![0.5, 0.0, 1.0],
            vec![0.5, f32::NAN, 1.0],
            vec![-1.0; 3],
        ] {
            assert_eq!(wrong(|s| s.scale = Some(bad)), "frame scale");
        }
        assert_eq!(wrong(|s| s.offset.clear()), "frame offset");
        for bad in [i32::MIN, -126, 126, i32::MAX] {
            assert_eq!(wrong(|s| s.exponent = bad), "frame exponent");
        }
        // Another seed has other signs, except one in eight.
        let others = (10..60).map(|seed| {
            let mut stored = stored();
            if let StoredFirst::Basis { seed: own, .. } = &mut stored.first {
                *own = seed;
            }
            Frame::try_from(stored)
        });
        assert!(others.filter(Result::is_err).count() > 30);
        for (dim, count) in [(0, 2), (0, 0), (2, 0), (2, 3), (usize::MAX, 2)] {
            let values = vec![0.5f32; count];
            assert!(Centres::try_from(StoredCentres { dim, values }).is_err());
        }
        let mut other = stored();
        other.number_type = "f64".to_string();
        assert!(Frame::try_from(other).is_err());
    }
}
