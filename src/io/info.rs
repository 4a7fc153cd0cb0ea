//! The header of a file: what it says of its model, and how it is read alone.

use super::MODEL;
use super::sections::FileKind;
use crate::base::error::{Error, Result};
use crate::base::file_fault::FileFault;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

/// Bytes before the header: magic bytes, version, length of the file, length of the header.
pub(super) const PREFIX: usize = 12 + 4 + 8 + 8;

/// What a file says of its model: its header.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// # let fit = algorithms::gmm(25).build()?.fit(&Dense::new(birch.points.view())?)?;
/// # let path = std::env::temp_dir().join(format!("coremix-info-{}", std::process::id()));
/// fit.model.save_with_notes(&path, &[("algorithm", "gmm"), ("seed", "42")])?;
/// let info = coremix::ModelInfo::of_file(&path)?;
/// assert_eq!((info.family.as_str(), info.number.as_str()), ("TiedSpherical", "f32"));
/// assert_eq!((info.components, info.columns), (25, 2));
/// assert_eq!(info.note("seed"), Some("42"));
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The version of the format.
    pub format: u32,
    /// The version of the crate that wrote the file.
    pub crate_version: String,
    /// The family: the kind of its covariances, such as `TiedSpherical`, or `DirichletProcess`.
    pub family: String,
    /// The number type of the means: `f32` or `f64`.
    pub number: String,
    /// Number of components, k.
    pub components: usize,
    /// Number of coordinates that the model is in, d: as many as columns, unless it was fitted on a padded sketch.
    pub coordinates: usize,
    /// Number of columns of the data.
    pub columns: usize,
    /// Notes of whoever saved the model, in their order.
    pub notes: Vec<(String, String)>,
}

/// What comes before the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    pub(super) version: u32,
    /// Of the whole file.
    pub(super) length: u64,
    pub(super) header: u64,
}

impl Prefix {
    /// From the first bytes of a file, or all if there are fewer.
    pub(super) fn of(kind: &FileKind, bytes: &[u8]) -> std::result::Result<Self, FileFault> {
        let magic = &kind.magic;
        let start = &bytes[..bytes.len().min(magic.len())];
        if start.is_empty() || !magic.starts_with(start) {
            return Err(FileFault::Foreign);
        }
        let rest = bytes.get(magic.len()..).unwrap_or_default();
        let (version, rest) = rest.split_first_chunk().ok_or(FileFault::Truncated)?;
        let version = u32::from_le_bytes(*version);
        if !(1..=kind.version).contains(&version) {
            let (found, known) = (version, kind.version);
            return Err(FileFault::Version { found, known });
        }
        let (length, rest) = rest.split_first_chunk().ok_or(FileFault::Truncated)?;
        let header = rest.first_chunk().ok_or(FileFault::Truncated)?;
        Ok(Self {
            version,
            length: u64::from_le_bytes(*length),
            header: u64::from_le_bytes(*header),
        })
    }
}

impl ModelInfo {
    /// The header of a file. The rest is not read, and the checksum not compared.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be read or is no model.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let read = || Self::of_start(std::fs::File::open(path)?);
        read().map_err(|fault: FileFault| fault.at(path))
    }

    /// The header of bytes that a model was [written to](crate::Save::write_to). No more than the header is read.
    ///
    /// # Errors
    /// [`Error::Model`] if they cannot be read or are no model.
    pub fn read_from(from: impl Read) -> Result<Self> {
        Self::of_start(from).map_err(FileFault::of_bytes)
    }

    /// The value of a note; the first of that name.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        let mut notes = self.notes.iter();
        notes.find(|note| note.0 == name).map(|note| &note.1[..])
    }

    fn of_start(mut from: impl Read) -> std::result::Result<Self, FileFault> {
        let mut bytes = Vec::new();
        from.by_ref().take(PREFIX as u64).read_to_end(&mut bytes)?;
        let prefix = Prefix::of(&MODEL, &bytes)?;
        let mut header = Vec::new();
        // What is read grows as it comes, whatever length the file claims.
        from.take(prefix.header).read_to_end(&mut header)?;
        if (header.len() as u64) < prefix.header {
            return Err(FileFault::Truncated);
        }
        let header = std::str::from_utf8(&header);
        let header = header.map_err(|_| FileFault::content("header", "must be UTF-8"))?;
        Self::parse(prefix.version, header)
    }

    /// The text of the header.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            writeln!(text, "{key} = {value}").expect("a string takes any text");
        };
        line("crate version", &self.crate_version);
        line("family", &self.family);
        line("number type", &self.number);
        line("components", &self.components);
        line("coordinates", &self.coordinates);
        line("columns", &self.columns);
        for (key, value) in &self.notes {
            line(&format!("note {key}"), value);
        }
        text
    }

    /// From the text of the header.
    pub(super) fn parse(format: u32, header: &str) -> std::result::Result<Self, FileFault> {
        let fault = |rule| FileFault::content("header", rule);
        let (mut fields, mut notes) = (Vec::new(), Vec::new());
        for line in header.split_terminator('\n') {
            let pair = line.split_once(" = ");
            let (key, value) = pair.ok_or(fault("must have a key and a value in each line"))?;
            match key.strip_prefix("note ") {
                Some(name) => notes.push((name.to_string(), value.to_string())),
                None => fields.push((key, value)),
            }
        }
        let field = |key: &str, rule| {
            let found = fields.iter().find(|field| field.0 == key);
            found.map(|field| field.1).ok_or(fault(rule))
        };
        let count = |key: &str, rule| {
            let count = field(key, rule)?.parse::<u32>();
            match count.map(|count| count as usize) {
                Ok(count) if count > 0 => Ok(count),
                _ => Err(fault(rule)),
            }
        };
        let info = Self {
            format,
            crate_version: field("crate version", "must name the crate version")?.to_string(),
            family: field("family", "must name the family")?.to_string(),
            number: field("number type", "must name the number type")?.to_string(),
            components: count("components", "must state a positive number of components")?,
            coordinates: count("coordinates", "must state a positive number of coordinates")?,
            columns: count("columns", "must state a positive number of columns")?,
            notes,
        };
        // Nothing twice, in another order or beside it.
        match info.text() == header {
            true => Ok(info),
            false => Err(fault(
                "must have the lines of a header, each once and in their order",
            )),
        }
    }
}

/// Notes that fit into lines of a header.
pub(super) fn check_notes(notes: &[(&str, &str)]) -> Result<Vec<(String, String)>> {
    for (name, value) in notes {
        let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            let rule = "must be letters, digits, '_', '-' and '.'";
            return Err(Error::parameter("name of a note", name, rule));
        }
        if value.chars().any(char::is_control) {
            let rule = "must be one line without control characters";
            let value = value.escape_debug();
            return Err(Error::parameter("value of a note", value, rule));
        }
    }
    let owned = notes.iter().map(|(n, v)| (n.to_string(), v.to_string()));
    Ok(owned.collect())
}
