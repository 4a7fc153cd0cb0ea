//! The table of a job, and passes over it: plans that are the same in the process and on a cluster.

use crate::error::{Error, Result};
use crate::functions::Functions;
use crate::model::{Model, Precision};
use crate::partial::{Found, Partial};
use crate::rows::item_of;
use crate::task::{Task, Work};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::dataframe::{DataFrame, DataFrameWriteOptions};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::prelude::{ident, lit};
use serde::Serialize;

/// Whether a column can be read, and in which numbers.
fn precision_of(kind: &DataType) -> Option<Precision> {
    use DataType::{Float16, Float32, Int8, Int16, UInt8, UInt16};
    match kind {
        Float16 | Float32 | Int8 | Int16 | UInt8 | UInt16 => Some(Precision::Single),
        kind => kind.is_numeric().then_some(Precision::Double),
    }
}

/// Some columns of a table, and its key.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    frame: DataFrame,
    names: Vec<String>,
    key: Option<String>,
    precision: Precision,
    is_list: bool,
}

impl Table {
    /// Checks that the columns are there, and of numbers.
    pub(crate) fn of(frame: &DataFrame, names: &[String], key: Option<&str>) -> Result<Self> {
        let schema = frame.schema().as_arrow();
        let known = |name: &str| match schema.field_with_name(name) {
            Ok(field) => Ok(field.data_type()),
            Err(_) => {
                let fields: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
                let what = format!("is not in the table, which has {}", fields.join(", "));
                Err(Error::column(name, what))
            }
        };
        if names.is_empty() {
            return Err(Error::setting("columns", "none", "must name at least one"));
        }
        let mut precision = Precision::Single;
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(Error::column(name, "is named twice"));
            }
            let kind = known(name)?;
            let item = match item_of(kind) {
                Some(item) if names.len() == 1 => item,
                Some(_) => {
                    let what = "a column of lists must be the only column";
                    return Err(Error::column(name, what));
                }
                None => kind,
            };
            match precision_of(item) {
                Some(Precision::Single) => {}
                Some(Precision::Double) => precision = Precision::Double,
                None => {
                    let what = format!(
                        "{kind} is not a type of numbers: cast it, or leave it out; categories and text are for one machine: \
                         the command has --categories"
                    );
                    return Err(Error::column(name, what));
                }
            }
        }
        if let Some(key) = key {
            known(key)?;
        }
        Ok(Self {
            frame: frame.clone(),
            names: names.to_vec(),
            key: key.map(str::to_string),
            precision,
            is_list: item_of(known(&names[0])?).is_some(),
        })
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The name of a coordinate.
    pub(crate) fn name_of(&self, coordinate: usize) -> &str {
        self.names.get(coordinate).unwrap_or(&self.names[0])
    }

    /// Whether a model has as many columns as the rows, as far as that is known: a list says it only when it is read.
    pub(crate) fn fits(&self, model: &Model, dim: Option<usize>) -> Result<()> {
        match dim.unwrap_or(self.names.len()) {
            dim if dim == model.columns() => Ok(()),
            _ if self.is_list && dim.is_none() => Ok(()),
            expected => Err(Error::Core(coremix::Error::DimensionMismatch {
                what: "model",
                expected,
                found: model.columns(),
            })),
        }
    }

    /// Whether a message fits: beyond the limit the engine only says that a connection broke, and no array of the engine
    /// holds more than 2 GiB.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<()> {
        let (state, _) = self.frame.clone().into_parts();
        let limit = crate::message_limit(&state).unwrap_or(i32::MAX as usize);
        // Room for the rest of the plan.
        match bytes.saturating_add(1 << 16) > limit {
            true => Err(Error::MessageSize { bytes, limit }),
            false => Ok(()),
        }
    }

    /// A message that fits.
    fn message(&self, value: &impl Serialize) -> Result<ScalarValue> {
        let message = postcard::to_allocvec(value);
        let message = message.map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.check_size(message.len())?;
        Ok(ScalarValue::Binary(Some(message)))
    }

    /// One pass over all rows. Values that cannot be used are an error, and so are no rows.
    pub(crate) async fn pass(&self, work: Work) -> Result<Partial> {
        let keyed = matches!(work, Work::Sample(_)) && self.key.is_some();
        let key = self.key.iter().filter(|_| keyed);
        let columns = key.chain(&self.names).map(ident);
        // An engine repeats a literal for each row: of a dictionary that is the number of its entry.
        let task = self.message(&Task { keyed, work })?;
        let task = lit(ScalarValue::Dictionary(
            Box::new(DataType::Int32),
            Box::new(task),
        ));
        let arguments = std::iter::once(task).chain(columns).collect();
        let of_all = Functions::new().pass.call(arguments).alias("found");
        let frame = self.frame.clone().aggregate(Vec::new(), vec![of_all])?;
        let found = frame.collect().await?;
        let value = |batch: &RecordBatch| {
            let column = batch.columns().first()?.as_binary_opt::<i32>()?;
            column.iter().flatten().next().map(postcard::from_bytes)
        };
        let found: Partial = match found.iter().find_map(value) {
            None => return Err(Error::Empty),
            Some(found) => found.map_err(|_| Error::other_pass())?,
        };
        for (unusable, name) in found.unusable.iter().zip(&self.names) {
            if unusable.any() {
                let (nulls, not_finite, rows) = (unusable.nulls, unusable.not_finite, found.rows);
                let what = format!(
                    "{nulls} NULL and {not_finite} NaN or infinite values in {rows} rows; every value must be a finite number: \
                     leave such rows out by a filter, or fill them; on one machine the command takes them with --missing"
                );
                return Err(Error::column(name, what));
            }
        }
        match &found.found {
            Found::Fault(fault) => Err(Error::column(&self.names.join("`, `"), fault)),
            _ if found.rows == 0 => Err(Error::Empty),
            _ => Ok(found),
        }
    }

    /// A pass that must find as many rows as the first one did.
    pub(crate) async fn pass_again(&self, rows: u64, work: Work) -> Result<Found> {
        let found = self.pass(work).await?;
        match found.rows == rows {
            true => Ok(found.found),
            false => Err(Error::Changed {
                before: rows,
                after: found.rows,
            }),
        }
    }

    /// Asks whoever runs the plans for its version.
    pub(crate) async fn handshake(&self) -> Result<()> {
        let (state, _) = self.frame.clone().into_parts();
        let plan = LogicalPlanBuilder::empty(true)
            .project([Functions::new().version.call(Vec::new()).alias("version")])?
            .build()?;
        let found = DataFrame::new(state, plan).collect().await?;
        let value = |batch: &RecordBatch| {
            let column = batch.columns().first()?.as_string_opt::<i32>()?;
            column.iter().flatten().next().map(str::to_string)
        };
        match found.iter().find_map(value) {
            Some(version) if version == crate::VERSION => Ok(()),
            Some(version) => Err(Error::version(format!("the cluster runs {version}"))),
            None => Err(Error::version("the cluster does not say which it runs")),
        }
    }

    /// Writes the key and the label of every row as Parquet files below `path`.
    pub(crate) async fn write_labels(&self, model: &Model, path: &str) -> Result<()> {
        let Some(key) = &self.key else {
            return Err(Error::setting(
                "key",
                "none",
                "labels need a column that names the rows: set Job::key",
            ));
        };
        let arguments = std::iter::once(lit(self.message(model)?));
        let columns = self.names.iter().map(ident);
        let label = Functions::new()
            .assign
            .call(arguments.chain(columns).collect());
        let frame = self
            .frame
            .clone()
            .select(vec![ident(key), label.alias("label")])?;
        frame
            .write_parquet(path, DataFrameWriteOptions::new(), None)
            .await?;
        Ok(())
    }
}
