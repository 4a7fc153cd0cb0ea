//! The table of a job, and passes over it: plans that are the same in the process and on a cluster.

use crate::error::{Error, Result};
use crate::functions::Functions;
use crate::model::{Model, Precision};
use crate::partial::Partial;
use crate::rows::{item_of, precision_of};
use crate::task::{Task, Work};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::dataframe::{DataFrame, DataFrameWriteOptions};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::{ident, lit};

/// Some columns of a table, and its key.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    frame: DataFrame,
    names: Vec<String>,
    key: Option<String>,
    precision: Precision,
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
                    let what = format!("{kind} is not a type of numbers: cast it, or leave it out");
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
        })
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The columns, for messages.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a coordinate.
    pub(crate) fn name_of(&self, coordinate: usize) -> &str {
        self.names.get(coordinate).unwrap_or(&self.names[0])
    }

    /// The arguments of a function of rows: a task, the key, the columns.
    fn arguments(&self, work: Work) -> Result<Vec<Expr>> {
        let keyed = matches!(work, Work::Sample(_)) && self.key.is_some();
        let task = Task {
            names: self.names.clone(),
            precision: self.precision,
            keyed,
            work,
        };
        let message = task.to_bytes()?;
        self.check_size(message.len())?;
        let key = self.key.iter().filter(|_| keyed);
        let columns = key.chain(&self.names).map(ident);
        let task = lit(ScalarValue::Binary(Some(message)));
        Ok(std::iter::once(task).chain(columns).collect())
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

    /// One pass over all rows.
    pub(crate) async fn pass(&self, work: Work) -> Result<Partial> {
        let functions = Functions::new();
        let of_batch = functions.pass.call(self.arguments(work)?);
        let of_all = functions.merge.call(vec![of_batch]).alias("found");
        let frame = self.frame.clone().aggregate(Vec::new(), vec![of_all])?;
        let found = frame.collect().await?;
        let value = |batch: &RecordBatch| {
            let column = batch.columns().first()?.as_binary_opt::<i32>()?.clone();
            column.iter().flatten().next().map(<[u8]>::to_vec)
        };
        let Some(bytes) = found.iter().find_map(value) else {
            return Err(Error::Empty);
        };
        match Partial::of_bytes(&bytes) {
            Some(Partial::Fault(fault)) => Err(Error::Rows(fault)),
            Some(partial) => Ok(partial),
            None => Err(Error::version("but what came back is no result of it")),
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
            Some(version) => Err(Error::version(format!("but the cluster runs {version}"))),
            None => Err(Error::version("but the cluster does not say which it runs")),
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
        let label = Functions::new()
            .assign
            .call(self.arguments(Work::Assign(model.clone()))?);
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
