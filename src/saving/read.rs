//! Bytes as a model again: everything is checked before it is used, and lengths before memory is taken.

use super::checksum::crc64;
use super::info::{ModelInfo, PREFIX, Prefix};
use super::numbers::{Number, size_of_kind};
use super::signs_of;
use crate::data::{Basis, Centres, Frame, Transform};
use crate::file_fault::FileFault;
use crate::float::Float;
use ndarray::{Array2, ArrayView2};

type Result<T> = std::result::Result<T, FileFault>;

/// A section that was not asked for yet.
#[derive(Debug)]
struct Section<'a> {
    name: &'a str,
    kind: u8,
    bytes: &'a [u8],
}

/// The sections of a file whose checksum is right.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    info: ModelInfo,
    sections: Vec<Section<'a>>,
}

/// What all families have.
#[derive(Debug)]
pub(crate) struct Common<F> {
    pub(crate) centres: Centres<F>,
    pub(crate) frame: Frame<F>,
    /// (k, columns), in the data's own unit.
    pub(crate) means: Array2<F>,
}

impl<'a> Reader<'a> {
    /// From a whole file.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let prefix = Prefix::of(bytes)?;
        let found = bytes.len() as u64;
        if found < prefix.length {
            return Err(FileFault::Truncated);
        }
        if found > prefix.length {
            return Err(FileFault::Longer);
        }
        let Some((bytes, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(FileFault::Truncated);
        };
        if crc64(bytes) != u64::from_le_bytes(*sum) {
            return Err(FileFault::Checksum);
        }
        let mut rest = bytes.get(PREFIX..).ok_or(FileFault::Truncated)?;
        let header = take(&mut rest, prefix.header)?;
        let info = ModelInfo::parse(prefix.version, header)?;
        let mut sections: Vec<Section<'a>> = Vec::new();
        while !rest.is_empty() {
            let section = section(&mut rest)?;
            if sections.iter().any(|other| other.name == section.name) {
                return Err(FileFault::content(section.name, "is there twice"));
            }
            sections.push(section);
        }
        Ok(Self { info, sections })
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
        let values = self.finite::<F>("centres", &[k, dim])?;
        let most = Frame::<F>::farthest_centre();
        if values.iter().any(|z| z.to_f64().abs() > most) {
            return Err(FileFault::content("centres", "must be near the frame"));
        }
        let values = ArrayView2::from_shape((k, dim), &values);
        let values = values.map_err(|_| FileFault::content("centres", "must be k times d"))?;
        let centres = Centres::of_coordinates(values);
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

    /// Whether there is such a section.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section.name == name)
    }

    /// The only number of a section.
    pub(crate) fn one<N: Number + Default>(&mut self, name: &str) -> Result<N> {
        let numbers = self.numbers(name, &[1])?;
        Ok(numbers.first().copied().unwrap_or_default())
    }

    /// The numbers of a section, as many as the product of `shape`.
    pub(crate) fn numbers<N: Number>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<N>> {
        let fault = |rule| FileFault::content(name, rule);
        let at = self.sections.iter().position(|s| s.name == name);
        let section = self.sections.swap_remove(at.ok_or(fault("is missing"))?);
        if section.kind != N::KIND {
            return Err(fault("has numbers of another kind"));
        }
        let product = |count: Option<usize>, n: &usize| count?.checked_mul(*n);
        let expected = shape.iter().fold(Some(1), product);
        if expected != Some(section.bytes.len() / N::SIZE) {
            return Err(fault(
                "has another number of numbers than the header asks for",
            ));
        }
        Ok(section.bytes.chunks_exact(N::SIZE).map(N::of).collect())
    }

    /// The same for numbers that are all finite.
    pub(crate) fn finite<N: Float>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<N>> {
        let numbers = self.numbers::<N>(name, shape)?;
        match numbers.iter().all(|x| x.is_finite()) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be finite")),
        }
    }

    /// The same for numbers that are all finite and positive, and not so small that their reciprocals overflow.
    pub(crate) fn positive(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let numbers = self.finite::<f64>(name, shape)?;
        match numbers.iter().all(|x| *x >= f64::MIN_POSITIVE) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be positive")),
        }
    }

    /// The only number of a section, finite and positive.
    pub(crate) fn one_positive(&mut self, name: &str) -> Result<f64> {
        let numbers = self.positive(name, &[1])?;
        Ok(numbers.first().copied().unwrap_or(1.0))
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<()> {
        match self.sections.first() {
            Some(section) => Err(FileFault::content(section.name, "is not known")),
            None => Ok(()),
        }
    }
}

/// The next `length` bytes.
fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8]> {
    let length = usize::try_from(length).map_err(|_| FileFault::Truncated)?;
    let parts = rest.split_at_checked(length);
    let (taken, after) = parts.ok_or(FileFault::Truncated)?;
    *rest = after;
    Ok(taken)
}

fn section<'a>(rest: &mut &'a [u8]) -> Result<Section<'a>> {
    let length = u64::of(take(rest, 8)?);
    let name = std::str::from_utf8(take(rest, length)?);
    let name = name.map_err(|_| FileFault::content("?", "has a name that is not UTF-8"))?;
    let kind = u8::from_le_bytes([take(rest, 1)?[0]]);
    let size = size_of_kind(kind);
    let size = size.ok_or_else(|| FileFault::content(name, "has numbers of an unknown kind"))?;
    let count = u64::of(take(rest, 8)?);
    let length = count.checked_mul(size as u64).ok_or(FileFault::Truncated)?;
    let bytes = take(rest, length)?;
    Ok(Section { name, kind, bytes })
}
