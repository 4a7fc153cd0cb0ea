//! The header of a model's file: what it says of its model, and how it is read alone.

use super::container::{MODEL, read_header};
use super::values::rule;
use crate::base::error::{Result, require};
use crate::base::file_fault::FileFault;
use serde::{Deserialize, Serialize};
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The version of the format.
    #[serde(skip)]
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

    /// The names of the columns, if whoever saved the model noted them as the command and Python do: the note `columns`, a JSON
    /// list. `Options::columns` of `coremix-files` reads these columns, in this order.
    #[must_use]
    pub fn column_names(&self) -> Option<Vec<String>> {
        let names: Vec<String> = serde_json::from_str(self.note("columns")?).ok()?;
        (names.len() == self.columns).then_some(names)
    }

    /// With notes, whose names and values are text on one line.
    pub(crate) fn with_notes(mut self, notes: &[(&str, &str)]) -> Result<Self> {
        for (name, value) in notes {
            let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            let plain = !name.is_empty() && name.chars().all(plain);
            let rule = "must be letters, digits, '_', '-' and '.'";
            require(plain, "name of a note", name, rule)?;
            let plain = !value.chars().any(char::is_control);
            let rule = "must be one line without control characters";
            require(plain, "value of a note", value.escape_debug(), rule)?;
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
        serde_json::to_string(self).expect("names and numbers are JSON")
    }

    pub(crate) fn parse(format: u32, header: &str) -> std::result::Result<Self, FileFault> {
        let fields = "must have the fields of a header, each once and in their order";
        let info = serde_json::from_str::<Self>(header).ok();
        let info = info.filter(|info| info.text() == header);
        let info = info.ok_or_else(|| FileFault::content("header", fields))?;
        let sizes = [info.components, info.columns];
        let sound = |size: usize| size > 0 && u32::try_from(size).is_ok();
        let positive = "must state positive numbers of components and columns";
        rule(sizes.into_iter().all(sound), "header", positive)?;
        Ok(Self { format, ..info })
    }
}
