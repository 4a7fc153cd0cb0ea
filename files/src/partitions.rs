//! Columns that are the names of folders, such as `year=2024`.

use crate::cells::Cells;
use crate::choice::{Column, Columns, Holds};
use crate::keys::Keys;
use crate::numbers::{Number, exact, nothing};
use crate::options::Options;
use crate::source::{Made, Rows};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coremix::data::Source as _;
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
    let mut fixed = below.ancestors();
    let rest = fixed.find_map(|fixed| file.strip_prefix(fixed).ok());
    let folders = rest.and_then(Path::parent).into_iter().flatten();
    let mut values = Vec::new();
    for folder in folders {
        let folder = folder.to_string_lossy();
        let Some((name, value)) = folder.split_once('=') else {
            continue;
        };
        let name = decoded(name);
        if columns.each.iter().all(|column| column.name != name) {
            columns.each.push(Column {
                name: name.clone(),
                holds: Holds::Text,
                words: "the names of folders".into(),
                first: None,
                is_open: false,
            });
            values.push((name, (value != NULL).then(|| decoded(value))));
        }
    }
    Folders(values)
}

/// A name in which some signs are written as `%3A`.
fn decoded(name: &str) -> String {
    let mut parts = name.split('%').map(str::as_bytes);
    let mut bytes = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let sign = part.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match sign.and_then(|sign| u8::from_str_radix(sign, 16).ok()) {
            Some(sign) => bytes.extend([&[sign], &part[2..]].concat()),
            None => bytes.extend([b"%", part].concat()),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

impl Folders {
    pub(crate) fn find(&self, name: &str) -> Option<&Option<String>> {
        let folder = self.0.iter().find(|folder| folder.0 == name);
        folder.map(|(_, value)| value)
    }

    /// The options for the file itself: any columns tell how many rows there are, if none of its own are asked for.
    pub(crate) fn own(&self, options: &Options, columns: Option<&Columns>) -> Options {
        let mut file_options = options.clone();
        if let (Some(columns), false) = (columns, self.0.is_empty()) {
            let is_in_file = |name: &String| self.find(name).is_none();
            file_options.keys.retain(is_in_file);
            if file_options.keys.is_empty() {
                file_options.keys = vec![columns.each[0].name.clone()];
            }
            if let Some(names) = &mut file_options.columns {
                names.retain(is_in_file);
            }
            file_options.columns = file_options.columns.filter(|names| !names.is_empty());
        }
        file_options
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
                let texts = options.texts.get(name).filter(|_| value.is_some());
                if texts.is_none() {
                    exact(text).map_err(|error| format!("its folder {name:?}: {error}"))?;
                }
                let code = texts.map(|texts| T::nearest(texts.code(text)));
                let said = || {
                    let signs = &options.signs();
                    let cells = Cells::of([text].into_iter(), signs)?;
                    Some(T::nearest(cells.number(text, signs)?))
                };
                let value = code
                    .or_else(|| T::from_str(text).ok())
                    .or_else(said)
                    .filter(|value| coremix::Float::is_finite(value.widen()));
                let rule = format!("not a number of type {}", T::TYPE);
                let wrong = || format!("its folder {name:?} is {text:?}, {rule}");
                value.map(Some).ok_or_else(wrong)
            }
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if values.iter().all(Option::is_none) {
            return Ok(rows);
        }
        let shape = [rows.len(), values.len()];
        let dim = rows.dim();
        Ok(Made::of(shape, options.lenient, move |first, out| {
            let mut read = vec![T::default(); out.len() / values.len() * dim];
            rows.read(first, &mut read)?;
            let lines = out.chunks_exact_mut(values.len());
            for (out, row) in lines.zip(read.chunks_exact(dim)) {
                let mut row = row.iter();
                for (out, value) in out.iter_mut().zip(&values) {
                    *out = value.or_else(|| row.next().copied()).unwrap_or_default();
                }
            }
            Ok(())
        }))
    }

    /// Puts the values of folders between the keys of a file.
    pub(crate) fn keys(&self, keys: Keys, options: &Options) -> Keys {
        if self.0.is_empty() {
            return keys;
        }
        let file_schema = Arc::clone(keys.schema());
        let mut places = 0..;
        let each = options.keys.iter().map(|name| match self.find(name) {
            Some(value) => (Field::new(name, DataType::Utf8, true), Some(value.clone())),
            None => (file_schema.field(places.next().unwrap_or(0)).clone(), None),
        });
        let (fields, each): (Vec<_>, Vec<_>) = each.unzip();
        let schema = Arc::new(Schema::new(fields));
        keys.map(Arc::clone(&schema), move |batch| {
            let mut file_columns = batch.columns().iter().cloned();
            let arrays = each.iter().filter_map(|value| match value {
                Some(value) => {
                    let values = vec![value.as_deref(); batch.num_rows()];
                    Some(Arc::new(StringArray::from(values)) as ArrayRef)
                }
                None => file_columns.next(),
            });
            RecordBatch::try_new(Arc::clone(&schema), arrays.collect())
        })
    }
}
