//! Tables of rows that were made, with the keys of others.

use super::labels::LabelWriter;
use crate::fault::fault;
use crate::keys::Keys;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field};
use coremix::Result;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Values of a column of some rows.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Labels of components.
    Labels(Vec<u32>),
    /// Texts, where they are known.
    Texts(Vec<Option<String>>),
}

impl Values {
    fn array(self) -> ArrayRef {
        match self {
            Self::Numbers(values) => Arc::new(Float64Array::from(values)),
            Self::Labels(values) => Arc::new(UInt32Array::from(values)),
            Self::Texts(values) => Arc::new(StringArray::from(values)),
        }
    }
}

/// Writes rows, block by block, as `.parquet`, `.arrow`, `.csv` or `.csv.gz`: the keys of the rows, and the columns that are named. It treats files as
/// [`LabelWriter`] does.
///
/// ```
/// use coremix_files::{RowWriter, Values};
///
/// let path = std::env::temp_dir().join(format!("coremix-rows-{}.csv", std::process::id()));
/// let mut rows = RowWriter::create(&path, None, &[("x", Values::Numbers(Vec::new()))])?;
/// rows.write(vec![Values::Numbers(vec![0.5, 1.0])])?;
/// rows.finish()?;
/// # std::fs::remove_file(path).expect("it is there");
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Debug)]
pub struct RowWriter(LabelWriter);

/// The fields of columns whose values are like these.
fn fields(columns: &[(&str, Values)]) -> Vec<Field> {
    let fields = columns.iter().map(|(name, like)| {
        let kind = match like {
            Values::Numbers(_) => DataType::Float64,
            Values::Labels(_) => DataType::UInt32,
            Values::Texts(_) => DataType::Utf8,
        };
        Field::new(*name, kind, true)
    });
    fields.collect()
}

impl RowWriter {
    /// Begins a file. The values that come with the names say of which type each column is.
    ///
    /// # Errors
    /// As [`LabelWriter::create`].
    pub fn create(
        path: impl AsRef<Path>,
        keys: Option<Keys>,
        columns: &[(&str, Values)],
    ) -> Result<Self> {
        // A matrix has no room for text, nor for keys.
        LabelWriter::check(&path, &["columns"])?;
        LabelWriter::of_fields(path, keys, fields(columns)).map(Self)
    }

    /// Begins CSV that goes elsewhere, for instance to the standard output: `name` tells where in errors.
    ///
    /// # Errors
    /// As [`LabelWriter::to_stream`].
    pub fn to_stream(
        to: impl Write + Send + 'static,
        name: &str,
        keys: Option<Keys>,
        columns: &[(&str, Values)],
    ) -> Result<Self> {
        LabelWriter::of_fields_to_stream(to, name, keys, fields(columns)).map(Self)
    }

    /// Writes the rows that follow.
    ///
    /// # Errors
    /// As [`LabelWriter::write`].
    pub fn write(&mut self, columns: Vec<Values>) -> Result<()> {
        let arrays: Vec<ArrayRef> = columns.into_iter().map(Values::array).collect();
        let rows = arrays.first().map_or(0, |first| first.len());
        if arrays.iter().any(|array| array.len() != rows) {
            return Err(fault("rows", "columns of several lengths"));
        }
        self.0.put(rows, arrays)
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// As [`LabelWriter::finish`].
    pub fn finish(self) -> Result<()> {
        self.0.finish()
    }
}
