//! The functions that an engine runs. They travel by name, so the client, the scheduler and the executors must all have
//! them; their names carry the version.

use crate::partial::Partial;
use crate::pass::{pass, rows_of};
use crate::task::{Task, Work};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray, UInt32Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How all names begin.
pub(crate) const PREFIX: &str = "coremix_";

/// A name with its version, such as `coremix_pass_v0_1_0`.
fn name(what: &str, version: &str) -> String {
    format!("{PREFIX}{what}_v{}", version.replace(['.', '-'], "_"))
}

/// The functions of one version.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// The result of a pass on a batch of rows, in the place of its first row; NULL in all others.
    pub(crate) pass: Arc<ScalarUDF>,
    /// All results together.
    pub(crate) merge: Arc<AggregateUDF>,
    /// The label of each row.
    pub(crate) assign: Arc<ScalarUDF>,
    /// The version of whoever runs it. Its own name has none.
    pub(crate) version: Arc<ScalarUDF>,
}

impl Functions {
    /// Those of this crate.
    pub(crate) fn new() -> Self {
        Self::of_version(crate::VERSION)
    }

    /// Those that are called as in another version: for tests of what happens where versions differ.
    pub(crate) fn of_version(version: &str) -> Self {
        let scalar = |kind, what: &str| {
            // What a function says of a row depends on the batch: an engine must not move or repeat it.
            let volatile = Volatility::Volatile;
            let (name, signature) = match kind {
                Kind::Version => (format!("{PREFIX}{what}"), Signature::nullary(volatile)),
                _ => (name(what, version), Signature::variadic_any(volatile)),
            };
            Arc::new(ScalarUDF::from(OfRows {
                name,
                kind,
                version: version.to_string(),
                signature,
            }))
        };
        Self {
            pass: scalar(Kind::Pass, "pass"),
            assign: scalar(Kind::Assign, "assign"),
            version: scalar(Kind::Version, "version"),
            merge: Arc::new(AggregateUDF::from(Merge {
                name: name("merge", version),
                signature: Signature::exact(vec![DataType::Binary], Volatility::Immutable),
            })),
        }
    }

    /// Makes them known to a session, by name.
    pub(crate) fn register(&self, registry: &mut dyn FunctionRegistry) -> Result<()> {
        for function in [&self.pass, &self.assign, &self.version] {
            registry.register_udf(function.clone())?;
        }
        registry.register_udaf(self.merge.clone())?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Pass,
    Assign,
    Version,
}

/// A function of rows: a task, the key if there is one, and the columns.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfRows {
    name: String,
    kind: Kind,
    version: String,
    signature: Signature,
}

impl ScalarUDFImpl for OfRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Not with the arguments: one of them is a whole model.
    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(self.name.clone())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Pass => DataType::Binary,
            Kind::Assign => DataType::UInt32,
            Kind::Version => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let n = args.number_rows;
        if self.kind == Kind::Version {
            let versions = std::iter::repeat_n(Some(&self.version[..]), n);
            return Ok(array(StringArray::from_iter(versions)));
        }
        let Some(ColumnarValue::Scalar(ScalarValue::Binary(Some(message)))) = args.args.first()
        else {
            return exec_err!("{}: the first argument must be a task", self.name);
        };
        let Some(task) = task_of(message) else {
            return exec_err!("{}: the first argument is no task", self.name);
        };
        let arrays: Result<Vec<ArrayRef>> =
            args.args[1..].iter().map(|arg| arg.to_array(n)).collect();
        let mut columns = arrays?;
        let keyed = task.keyed && !columns.is_empty();
        let key = keyed.then(|| columns.remove(0));
        // One name per column is what everything behind relies on.
        if columns.len() != task.names.len() || columns.iter().any(|column| column.len() != n) {
            return exec_err!("{}: the task is for other columns", self.name);
        }
        match (self.kind, &task.work) {
            (Kind::Assign, Work::Assign(model)) => {
                let labels = rows_of(&task, &columns).and_then(|rows| match n {
                    0 => Ok(Vec::new()),
                    _ => model.supports(&rows, 1).map_err(|e| e.to_string()),
                });
                match labels {
                    Ok(labels) => Ok(array(UInt32Array::from(labels))),
                    Err(fault) => exec_err!("{}: {fault}", self.name),
                }
            }
            (Kind::Pass, _) => {
                let found = (n > 0).then(|| pass(&task, key.as_ref(), &columns).to_bytes());
                let first = std::iter::once(found.as_deref());
                let values = first.chain(std::iter::repeat(None)).take(n);
                Ok(array(BinaryArray::from_iter(values)))
            }
            _ => exec_err!("{}: the task is for another function", self.name),
        }
    }
}

fn array(array: impl Array + 'static) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(array))
}

/// The task of a message. The last ones are kept: every batch of a pass has the same, and a model takes time to read.
fn task_of(message: &[u8]) -> Option<Arc<Task>> {
    type Known = VecDeque<(Vec<u8>, Arc<Task>)>;
    static LAST: Mutex<Known> = Mutex::new(VecDeque::new());
    const KEPT: usize = 2;

    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, task)) = last().iter().find(|known| known.0 == message) {
        return Some(task.clone());
    }
    let task = Arc::new(Task::of_bytes(message)?);
    let mut last = last();
    last.truncate(KEPT - 1);
    last.push_front((message.to_vec(), task.clone()));
    Some(task)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Merge {
    name: String,
    signature: Signature,
}

impl AggregateUDFImpl for Merge {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::<Merged>::default())
    }
}

/// All results so far.
#[derive(Debug, Default)]
struct Merged(Option<Partial>);

impl Merged {
    fn add(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(results) = values.first().and_then(|v| v.as_binary_opt::<i32>()) else {
            return exec_err!("{PREFIX}merge: results are binary");
        };
        for result in results.iter().flatten() {
            let Some(partial) = Partial::of_bytes(result) else {
                return exec_err!("{PREFIX}merge: a value is no result of a pass");
            };
            self.0 = Some(match self.0.take() {
                Some(total) => total.merge(partial),
                None => partial,
            });
        }
        Ok(())
    }
}

impl Accumulator for Merged {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Binary(self.0.as_ref().map(Partial::to_bytes)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.as_ref().map_or(0, Partial::size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_version() {
        assert_eq!(name("pass", "0.1.0-rc.1"), "coremix_pass_v0_1_0_rc_1");
        let functions = Functions::new();
        assert!(functions.pass.name().starts_with("coremix_pass_v"));
        assert_eq!(functions.version.name(), "coremix_version");
    }

    /// Anything may come as an argument: an error, never a panic.
    #[test]
    fn no_message_panics() {
        let mut merged = Merged::default();
        for bytes in [&[][..], &[9], &[4, 1, 2], &[255; 40]] {
            let array: ArrayRef = Arc::new(BinaryArray::from_iter([Some(bytes)]));
            assert!(merged.add(&[array]).is_err());
            assert!(task_of(bytes).is_none());
        }
        let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
        assert!(merged.add(&[numbers]).is_err());
        assert!(merged.add(&[]).is_err());
    }
}
