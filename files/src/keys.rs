//! The columns that name the rows, block by block.

use crate::fault::fault;
use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use coremix::Result;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The key columns of a file, in the order of its rows: they are read once, from the first row on.
pub struct Keys {
    path: String,
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    /// Rows that were read and not taken.
    rest: Option<RecordBatch>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("path", &self.path)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// Batches of these columns.
    pub(crate) fn new(
        path: String,
        schema: &Schema,
        batches: impl Iterator<Item = io::Result<RecordBatch>> + Send + 'static,
    ) -> Self {
        // A column may have nulls in some files only, and each writer adds words of its own.
        let fields = schema.fields().iter();
        let fields: Vec<Field> = fields
            .map(|field| {
                let kind = match field.data_type() {
                    // Batches with dictionaries of their own have more values together than each.
                    DataType::Dictionary(_, values) => {
                        // No writer of Parquet takes views in dictionaries, as polars has them.
                        let values = match **values {
                            DataType::Utf8View => DataType::Utf8,
                            DataType::BinaryView => DataType::Binary,
                            ref values => values.clone(),
                        };
                        DataType::Dictionary(Box::new(DataType::Int32), Box::new(values))
                    }
                    kind => kind.clone(),
                };
                Field::new(field.name(), kind, true)
            })
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let target = Arc::clone(&schema);
        let name = path.clone();
        let batches = batches.map(move |batch| {
            let batch = batch.map_err(|error| fault(&name, error))?;
            let columns = batch
                .columns()
                .iter()
                .zip(target.fields())
                .map(|(column, field)| cast(column, field.data_type()));
            let batch = columns.collect::<std::result::Result<_, _>>();
            let batch =
                batch.and_then(|columns| RecordBatch::try_new(Arc::clone(&target), columns));
            batch.map_err(|error| fault(&name, error))
        });
        Self {
            path,
            schema,
            batches: Box::new(batches),
            rest: None,
        }
    }

    /// The names and types of the columns. All may have nulls.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The keys of the next `rows` rows.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where the file is damaged, or has fewer rows.
    pub fn next(&mut self, rows: usize) -> Result<RecordBatch> {
        let mut parts = Vec::new();
        let mut count = 0;
        while count < rows {
            let next = self.rest.take().map(Ok).or_else(|| self.batches.next());
            let batch = next.ok_or_else(|| fault(&self.path, "has fewer keys than rows"))??;
            let taken = batch.num_rows().min(rows - count);
            if taken < batch.num_rows() {
                self.rest = Some(batch.slice(taken, batch.num_rows() - taken));
            }
            count += taken;
            parts.push(batch.slice(0, taken));
        }
        let whole = concat_batches(&self.schema, &parts);
        whole.map_err(|error| fault(&self.path, error))
    }

    /// The batches that were not read yet.
    pub(crate) fn batches(self) -> impl Iterator<Item = Result<RecordBatch>> {
        self.rest.map(Ok).into_iter().chain(self.batches)
    }

    /// Keys whose batches are changed, to columns of this schema.
    pub(crate) fn map(
        self,
        schema: SchemaRef,
        mut change: impl FnMut(
            RecordBatch,
        ) -> std::result::Result<RecordBatch, arrow_schema::ArrowError>
        + Send
        + 'static,
    ) -> Self {
        let name = self.path.clone();
        let batches = self
            .batches
            .map(move |batch| change(batch?).map_err(|error| fault(&name, error)));
        Self {
            schema,
            batches: Box::new(batches),
            ..self
        }
    }

    /// Without the keys of some rows.
    pub(crate) fn without(self, dropped: Arc<Vec<usize>>) -> Self {
        let schema = Arc::clone(&self.schema);
        let mut row = 0;
        self.map(schema, move |batch| {
            let rows = row..row + batch.num_rows();
            row = rows.end;
            let kept = rows.map(|row| dropped.binary_search(&row).is_err());
            arrow_select::filter::filter_record_batch(&batch, &kept.collect::<Vec<_>>().into())
        })
    }

    /// The keys of one file, followed by those of another.
    pub(crate) fn chain(mut self, other: Self) -> Result<Self> {
        if self.schema != other.schema {
            let what = format!(
                "its key columns have other types than those of {}",
                self.path
            );
            return Err(fault(&other.path, what));
        }
        self.batches = Box::new(self.batches.chain(other.batches));
        Ok(self)
    }
}
