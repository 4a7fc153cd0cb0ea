//! Bytes as a model again: everything is checked before it is used, and lengths before memory is taken.

use super::info::ModelInfo;
use super::sections::Sections;
use super::{MODEL, signs_of};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::data::{Basis, Centres, Frame, Transform};
use crate::model::Mixture;
use ndarray::Array2;
use std::ops::{Deref, DerefMut};

type Result<T> = std::result::Result<T, FileFault>;

/// The header and the sections of a file whose checksum is right.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    info: ModelInfo,
    sections: Sections<'a>,
}

impl<'a> Deref for Reader<'a> {
    type Target = Sections<'a>;

    fn deref(&self) -> &Sections<'a> {
        &self.sections
    }
}

impl<'a> DerefMut for Reader<'a> {
    fn deref_mut(&mut self) -> &mut Sections<'a> {
        &mut self.sections
    }
}

/// What all families have.
#[derive(Debug)]
pub(crate) struct Common<F> {
    pub(crate) centres: Centres<F>,
    pub(crate) frame: Frame<F>,
    /// (k, columns), in the data's own unit.
    pub(crate) means: Array2<F>,
}

/// The model, if all that it says of itself is finite in the data's own unit as well.
pub(crate) fn finite<F: Float, M: Mixture<F>>(model: M) -> Result<M> {
    let rule = "must be finite in the unit of the data";
    if !model.means().iter().all(|x| x.is_finite()) {
        return Err(FileFault::content("centres", rule));
    }
    match model.variances().iter().all(|x| x.is_finite()) {
        true => Ok(model),
        false => Err(FileFault::content("variances", rule)),
    }
}

impl<'a> Reader<'a> {
    /// From a whole file.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let (format, header, sections) = Sections::of_file(&MODEL, bytes.into())?;
        let info = ModelInfo::parse(format, &header)?;
        Ok(Self { info, sections })
    }

    /// The family, as the header says.
    pub(crate) fn family(&self) -> &str {
        &self.info.family
    }

    /// Checks family and number type, and reads what all families have.
    pub(crate) fn common<F: Float>(&mut self, family: &'static str) -> Result<Common<F>> {
        if self.info.family != family {
            return Err(FileFault::Family {
                expected: family,
                found: self.info.family.clone(),
            });
        }
        if self.info.number != F::NAME {
            return Err(FileFault::Number {
                expected: F::NAME,
                found: self.info.number.clone(),
            });
        }
        let frame = self.frame()?;
        let (k, dim, columns) = (self.info.components, self.info.coordinates, frame.columns());
        if self.info.columns != columns {
            let rule = "must have as many columns as the frame";
            return Err(FileFault::content("header", rule));
        }
        let centres = Centres::<F>::read("centres", self, k, dim)?;
        let most = Frame::<F>::farthest_centre();
        if centres.values().iter().any(|z| z.to_f64().abs() > most) {
            return Err(FileFault::content("centres", "must be near the frame"));
        }
        let means = match self.has("means") {
            true => {
                let means = self.finite("means", &[k, columns])?;
                Array2::from_shape_vec((k, columns), means)
                    .map_err(|_| FileFault::content("means", "must be k times columns"))?
            }
            false => centres.leave(&frame),
        };
        Ok(Common {
            centres,
            frame,
            means,
        })
    }

    fn frame<F: Float>(&mut self) -> Result<Frame<F>> {
        let dim = self.info.coordinates;
        let exponent: i64 = self.one("frame exponent")?;
        if exponent.unsigned_abs() > F::MAX_EXPONENT.unsigned_abs().into() {
            let rule = "must be an exponent of the number type";
            return Err(FileFault::content("frame exponent", rule));
        }
        let offset = self.finite::<F>("frame offset", &[dim])?;
        let mean = self.finite::<F>("frame mean", &[dim])?;
        let frame = Frame::from_parts(&offset, &mean, exponent as i32);
        Ok(match self.has("basis") {
            true => frame.with_basis(self.basis()?),
            false => frame,
        })
    }

    fn basis(&mut self) -> Result<Basis> {
        let rule = |rule| FileFault::content("basis", rule);
        let parts = self.numbers::<u64>("basis", &[4])?;
        let &[seed, transform, columns, signs] = &parts[..] else {
            return Err(rule("must have 4 numbers"));
        };
        let transform = match transform {
            0 => Transform::Cosine,
            1 => Transform::Hadamard,
            _ => return Err(rule("must have a known transform")),
        };
        // At most as many columns as coordinates, of which the file holds some numbers each.
        let dim = self.info.coordinates;
        let columns = usize::try_from(columns).unwrap_or(usize::MAX);
        if columns == 0 || columns > dim || transform.coordinates(columns) != dim {
            return Err(rule("must have as many coordinates as the model"));
        }
        let basis = Basis::new(seed, transform, columns);
        if signs_of(&basis) != signs {
            return Err(rule("must have the signs that its seed gives"));
        }
        Ok(basis)
    }
}
