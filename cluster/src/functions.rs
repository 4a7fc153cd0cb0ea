//! The functions that an engine runs. They travel by name, so the client, the scheduler and the executors must all have
//! them; their names carry the version.

use crate::model::Model;
use crate::partial::Partial;
use crate::rows::Rows;
use crate::task::Task;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr_fn::{SimpleAggregateUDF, SimpleScalarUDF};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, ColumnarValue, ScalarUDF, Signature, Volatility,
};
use std::sync::Arc;

/// How all names begin.
pub(crate) const PREFIX: &str = "coremix_";

/// The functions of one version.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// The result of a task on all rows: of the task in a dictionary of one entry, the key if there is one, and the columns.
    pub(crate) pass: Arc<AggregateUDF>,
    /// The label of each row: of a model, and the columns.
    pub(crate) assign: Arc<ScalarUDF>,
    /// The version of whoever runs it. Its own name has none.
    pub(crate) version: Arc<ScalarUDF>,
}

impl Functions {
    /// The functions of this version.
    pub(crate) fn new() -> Self {
        Self::of_version(crate::VERSION)
    }

    /// Functions with the names of another version: to test jobs whose processes differ in their version.
    pub(crate) fn of_version(version: &str) -> Self {
        let name = |what: &str| format!("{PREFIX}{what}_v{}", version.replace(['.', '-'], "_"));
        // Executors, not the client, must answer questions about themselves.
        let any = || Signature::variadic_any(Volatility::Volatile);
        let state = Field::new("found", DataType::Binary, true);
        let pass = SimpleAggregateUDF::new_with_signature(
            name("pass"),
            any(),
            DataType::Binary,
            Arc::new(|_| Ok(Box::<Pass>::default())),
            vec![Arc::new(state)],
        );
        let assign = SimpleScalarUDF::new_with_signature(
            name("assign"),
            any(),
            DataType::UInt32,
            Arc::new(assign),
        );
        let own = ColumnarValue::from(ScalarValue::from(version));
        let version = SimpleScalarUDF::new(
            format!("{PREFIX}version"),
            Vec::new(),
            DataType::Utf8,
            Volatility::Volatile,
            Arc::new(move |_| Ok(own.clone())),
        );
        Self {
            pass: Arc::new(pass.into()),
            assign: Arc::new(assign.into()),
            version: Arc::new(version.into()),
        }
    }

    /// Makes them known to a session, by name.
    pub(crate) fn register(&self, registry: &mut dyn FunctionRegistry) -> Result<()> {
        registry.register_udaf(self.pass.clone())?;
        registry.register_udf(self.assign.clone())?;
        registry.register_udf(self.version.clone())?;
        Ok(())
    }
}

fn assign(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let Some((ColumnarValue::Scalar(ScalarValue::Binary(Some(model))), columns)) =
        arguments.split_first()
    else {
        return exec_err!("{PREFIX}assign: the first argument must be a model");
    };
    let wrong = |what: String| exec_datafusion_err!("{PREFIX}assign: {what}");
    let model: Model = postcard::from_bytes(model).map_err(|e| wrong(e.to_string()))?;
    let rows = Rows::of(&ColumnarValue::values_to_arrays(columns)?).map_err(wrong)?;
    if rows.unusable.iter().any(|unusable| unusable.any()) {
        return Err(wrong("a value is NULL, NaN or infinite".to_string()));
    }
    let labels = model.labels(&rows).map_err(|e| wrong(e.to_string()))?;
    Ok(ColumnarValue::Array(Arc::new(UInt32Array::from(labels))))
}

/// A pass so far.
#[derive(Debug, Default)]
struct Pass {
    task: Option<Task>,
    found: Option<Partial>,
}

impl Pass {
    fn add(&mut self, partial: Partial) {
        self.found = Some(match self.found.take() {
            Some(found) => found.merge(partial),
            None => partial,
        });
    }
}

impl Accumulator for Pass {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some((task, columns)) = values.split_first() else {
            return exec_err!("{PREFIX}pass: the first argument must be a task");
        };
        if task.is_empty() {
            return Ok(());
        }
        let task = match self.task.take() {
            Some(task) => task,
            None => task_of(task)
                .ok_or_else(|| exec_datafusion_err!("{PREFIX}pass: this is no task"))?,
        };
        self.add(task.run(columns));
        self.task = Some(task);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(states) = states
            .first()
            .and_then(|state| state.as_binary_opt::<i32>())
        else {
            return exec_err!("{PREFIX}pass: results are binary");
        };
        for state in states.iter().flatten() {
            let partial = postcard::from_bytes(state)
                .map_err(|_| exec_datafusion_err!("{PREFIX}pass: this is no result of a pass"))?;
            self.add(partial);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = self.found.as_ref().map(postcard::to_allocvec).transpose();
        let bytes = found.map_err(|e| exec_datafusion_err!("{PREFIX}pass: {e}"))?;
        Ok(ScalarValue::Binary(bytes))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The task that an engine repeats for each row of a batch: in a dictionary, so that there is one.
fn task_of(repeated: &dyn Array) -> Option<Task> {
    let entries = repeated.as_dictionary_opt::<Int32Type>()?.values();
    let tasks = entries.as_binary_opt::<i32>()?;
    let task = tasks.iter().flatten().next()?;
    postcard::from_bytes(task).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::BinaryArray;

    /// Anything may come as an argument: an error, never a panic.
    #[test]
    fn no_argument_panics() {
        let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
        let mut pass = Pass::default();
        for bytes in [&[][..], &[9], &[4, 1, 2], &[255; 40]] {
            let array: ArrayRef = Arc::new(BinaryArray::from_iter([Some(bytes)]));
            assert!(pass.merge_batch(std::slice::from_ref(&array)).is_err());
            assert!(pass.update_batch(&[array, numbers.clone()]).is_err());
            let model = ColumnarValue::Scalar(ScalarValue::Binary(Some(bytes.to_vec())));
            assert!(assign(&[model, numbers.clone().into()]).is_err());
        }
        assert!(pass.merge_batch(std::slice::from_ref(&numbers)).is_err());
        assert!(pass.merge_batch(&[]).is_err() && pass.update_batch(&[]).is_err());
        assert!(assign(&[]).is_err() && assign(&[numbers.into()]).is_err());
    }
}
