//! Columns that are the names of folders, such as `year=2024`.

use crate::choice::{Column, Columns, Holds};
use crate::keys::Keys;
use crate::numbers::{Number, nothing};
use crate::open::Rows;
use crate::options::Options;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coremix::data::Source;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The names of the folders of a file, and their values; none where it is missing.
#[derive(Default)]
pub(crate) struct Folders(Vec<(String, Option<String>)>);

/// How Hive writes that a value is missing.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folders of a file below a path that was asked for: the table gets a column for each name that it does not have.
pub(crate) fn of(file: &Path, below: &Path, columns: &mut Columns) -> Folders {
    // The rest of a pattern is not part of a file's path.
    let mut fixed = below.components();
    while !file.starts_with(fixed.as_path()) && fixed.next_back().is_some() {}
    let rest = file.strip_prefix(fixed.as_path()).unwrap_or(Path::new(""));
    let mut folders = Vec::new();
    for folder in rest.parent().into_iter().flat_map(Path::components) {
        let folder = folder.as_os_str().to_string_lossy();
        let Some((name, value)) = folder.split_once('=') else {
            continue;
        };
        let name = decoded(name);
        if columns.each.iter().any(|column| column.name == name) {
            continue;
        }
        let (holds, words) = (Holds::Folder, "the names of folders".to_owned());
        let column = Column {
            name: name.clone(),
            holds,
            words,
        };
        columns.each.push(column);
        folders.push((name, (value != NULL).then(|| decoded(value))));
    }
    Folders(folders)
}

/// A name in which some signs are written as `%3A`.
fn decoded(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let [first, after @ ..] = rest {
        let sign = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let sign = sign.and_then(|two| u8::from_str_radix(two, 16).ok());
        let (byte, used) = match sign {
            Some(sign) if *first == b'%' => (sign, 3),
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

impl Folders {
    fn find(&self, name: &String) -> Option<&Option<String>> {
        let found = self.0.iter().find(|folder| folder.0 == *name);
        found.map(|folder| &folder.1)
    }

    /// Which columns of the file itself are read, if others are asked for too.
    pub(crate) fn own(&self, options: &Options) -> Option<Options> {
        let mut own = options.clone();
        let names = own.columns.as_mut()?;
        let all = names.len();
        names.retain(|name| self.find(name).is_none());
        let (left, none) = (names.len(), names.is_empty());
        if none {
            // Any columns tell how many rows there are.
            own.columns = None;
        }
        (own.weight, own.keys) = (None, Vec::new());
        (left < all).then_some(own)
    }

    /// Puts the values of folders between the columns of a file.
    pub(crate) fn rows<T: Number>(
        &self,
        rows: Rows<T>,
        options: &Options,
    ) -> Result<Rows<T>, String> {
        let names = options.columns.iter().flatten();
        let values = names.map(|name| match self.find(name) {
            None => Ok(None),
            Some(None) if options.lenient => Ok(Some(nothing())),
            Some(value) => {
                let text = value.as_deref().unwrap_or(NULL);
                let value = T::from_str(text).ok();
                let value = value.filter(|value| coremix::Float::is_finite(value.widen()));
                value.map(Some).ok_or_else(|| {
                    format!(
                        "its folder {name:?} is {text:?}, not a number of type {}",
                        T::TYPE
                    )
                })
            }
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(match values.iter().any(Option::is_some) {
            true => Box::new(Between { rows, values }),
            false => rows,
        })
    }

    /// Which keys of the file itself are read, if others are asked for too.
    pub(crate) fn own_keys(&self, options: &Options, columns: &Option<Columns>) -> Option<Options> {
        let mut own = options.clone();
        own.keys.retain(|name| self.find(name).is_none());
        let changed = own.keys.len() < options.keys.len();
        if own.keys.is_empty() {
            // Any column tells how many rows there are.
            let first = columns.as_ref().and_then(|columns| columns.each.first());
            own.keys.extend(first.map(|column| column.name.clone()));
        }
        changed.then_some(own)
    }

    /// Puts the values of folders between the keys of a file.
    pub(crate) fn keys(&self, keys: Keys, options: &Options) -> Keys {
        let each: Vec<_> = options
            .keys
            .iter()
            .map(|name| self.find(name).cloned())
            .collect();
        if each.iter().all(Option::is_none) {
            return keys;
        }
        let own = Arc::clone(keys.schema());
        let mut places = 0..;
        let fields = options
            .keys
            .iter()
            .zip(&each)
            .map(|(name, value)| match value {
                Some(_) => Field::new(name, DataType::Utf8, true),
                None => own.field(places.next().unwrap_or(0)).clone(),
            });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let of = Arc::clone(&schema);
        keys.map(schema, move |batch| {
            let mut own = batch.columns().iter().cloned();
            let arrays = each.iter().filter_map(|value| match value {
                Some(value) => {
                    let values = vec![value.as_deref(); batch.num_rows()];
                    Some(Arc::new(StringArray::from(values)) as ArrayRef)
                }
                None => own.next(),
            });
            RecordBatch::try_new(Arc::clone(&of), arrays.collect())
        })
    }
}

/// Rows with some columns that are one value each.
struct Between<T> {
    rows: Rows<T>,
    /// What each column is: one of the rows, or a value.
    values: Vec<Option<T>>,
}

impl<T: Number> Source for Between<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.values.len()
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let own = self.rows.dim();
        let rows = crate::fault::rows_asked_for(first, out.len(), [self.len(), self.dim()])?;
        let mut values = vec![T::default(); rows * own];
        self.rows.read(first, &mut values)?;
        for (out, row) in out
            .chunks_exact_mut(self.dim())
            .zip(values.chunks_exact(own))
        {
            let mut row = row.iter();
            for (out, value) in out.iter_mut().zip(&self.values) {
                *out = value.or_else(|| row.next().copied()).unwrap_or_default();
            }
        }
        Ok(())
    }
}
