//! The header of a model's file: what it says of its model, and how it is read alone.

use super::container::{MODEL, fields, lines, read_header};
use super::values::rule;
use crate::base::error::{Result, require};
use crate::base::file_fault::FileFault;
use std::io::Read;
use std::path::Path;

/// The header of a model's file: facts about the model.
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
    /// Number of columns of the data, d.
    pub columns: usize,
    /// Notes of whoever saved the model, in their order.
    pub notes: Vec<(String, String)>,
}

impl ModelInfo {
    /// The header of a file. The rest is not read, and the checksum not compared.
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model) if the file cannot be read or is no model.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let read = || Self::of_start(std::fs::File::open(path)?);
        read().map_err(|fault: FileFault| fault.at(path))
    }

    /// The header of a model's [bytes](crate::Save::to_bytes). No more than the header is read.
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model) if they cannot be read or are no model.
    pub fn read_from(from: impl Read) -> Result<Self> {
        Self::of_start(from).map_err(FileFault::of_bytes)
    }

    /// The value of a note; the first of that name.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        let mut notes = self.notes.iter();
        notes.find(|note| note.0 == name).map(|note| &note.1[..])
    }

    /// With notes, whose names and values are text on one line, as the name of the family is.
    pub(crate) fn with_notes(mut self, notes: &[(&str, &str)]) -> Result<Self> {
        let one_line = |text: &str| !text.chars().any(char::is_control);
        let rule = "must be one line without control characters";
        let family = self.family.escape_debug();
        require(one_line(&self.family), "name of the family", family, rule)?;
        for (name, value) in notes {
            let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            let plain = !name.is_empty() && name.chars().all(plain);
            let rule = "must be letters, digits, '_', '-' and '.'";
            require(plain, "name of a note", name, rule)?;
            let rule = "must be one line without control characters";
            let shown = value.escape_debug();
            require(one_line(value), "value of a note", shown, rule)?;
        }
        let owned = notes.iter().map(|(n, v)| (n.to_string(), v.to_string()));
        self.notes = owned.collect();
        Ok(self)
    }

    fn of_start(from: impl Read) -> std::result::Result<Self, FileFault> {
        let (version, header) = read_header(&MODEL, from)?;
        Self::parse(version, &header)
    }

    pub(crate) fn text(&self) -> String {
        let [components, columns] = [self.components, self.columns].map(|size| size.to_string());
        let facts = [
            ("crate_version", &self.crate_version),
            ("family", &self.family),
            ("number", &self.number),
            ("components", &components),
            ("columns", &columns),
        ];
        let facts = facts.map(|(name, value)| (name, &value[..]));
        let notes = self.notes.iter().map(|(n, v)| (&n[..], &v[..]));
        lines(facts.into_iter().chain(notes))
    }

    pub(crate) fn parse(format: u32, header: &str) -> std::result::Result<Self, FileFault> {
        let shape = "must have the fields of a header, each once and in their order";
        let info = Self::of_text(format, header)
            .filter(|info| info.text() == header)
            .ok_or_else(|| FileFault::content("header", shape))?;
        let sizes = [info.components, info.columns];
        let sound = |size: usize| size > 0 && u32::try_from(size).is_ok();
        let positive = "must state positive numbers of components and columns";
        rule(sizes.into_iter().all(sound), "header", positive)?;
        Ok(info)
    }

    /// The facts of a header, whatever its fields are called.
    fn of_text(format: u32, header: &str) -> Option<Self> {
        let fields = fields(header)?;
        let (facts, notes) = fields.split_first_chunk()?;
        let [crate_version, family, number, components, columns] = facts.map(|(_, value)| value);
        let notes = notes.iter().map(|(n, v)| (n.to_string(), v.to_string()));
        Some(Self {
            format,
            crate_version: crate_version.to_string(),
            family: family.to_string(),
            number: number.to_string(),
            components: components.parse().ok()?,
            columns: columns.parse().ok()?,
            notes: notes.collect(),
        })
    }
}
