//! A table: batches whose columns are numbers, or one column of lists of numbers.

use super::capsule::batches;
use super::columns::{NULL, fault, fill, needs_double};
use crate::errors::{ALLOW, raise};
use crate::fitted::Texts;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use coremix::data::Source;
use coremix::{Element, Float};
use coremix_files::{Frame, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of an Arrow table, stream of batches or batch, whose memory is read as it is.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Table {
    parts: Vec<Part>,
    /// The first row of each part, and the number of all rows.
    starts: Vec<usize>,
    columns: usize,
    pub(crate) names: Option<Vec<String>>,
    double: bool,
    /// Whether nulls and NaN are missing values.
    may_miss: bool,
    /// The texts of the columns that are categories, in the order of their codes.
    pub(crate) texts: Texts,
}

/// A column by its number or its name.
#[derive(FromPyObject)]
enum Named {
    Place(usize),
    Name(String),
}

/// A batch: its columns, or the numbers of its lists one after the other.
struct Part {
    arrays: Vec<ArrayRef>,
    /// Numbers of a list, for lists.
    each: Option<usize>,
}

#[pymethods]
impl Table {
    /// The columns of these names alone, in this order, where columns have names. `missing`: nulls and NaN are missing values.
    /// `categories`: columns, by number or name, whose text is read as codes; `texts`: those that are known, in their order.
    #[new]
    #[pyo3(signature = (of, columns=None, missing=false, categories=Vec::new(), texts=Texts::new()))]
    fn new(
        of: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        missing: bool,
        categories: Vec<Named>,
        texts: Texts,
    ) -> PyResult<Self> {
        let (mut schema, mut batches) = batches(of)?;
        if let Some(columns) = columns {
            let chosen = chosen(&schema, batches, &columns);
            (schema, batches) = chosen.map_err(PyValueError::new_err)?;
        }
        let name = |named: Named| match named {
            Named::Place(place) => schema.fields().get(place).map(|field| field.name().clone()),
            Named::Name(name) => Some(name),
        };
        let mut options = Options::new().categories(categories.into_iter().filter_map(name));
        for (column, texts) in texts {
            options = options.texts(column, texts);
        }
        // Text that stands for a missing value is one, as in files.
        let frame = Frame::of("X", &schema, batches, &options).map_err(raise)?;
        let mut table =
            Self::of(&frame.schema, &frame.batches, missing).map_err(PyValueError::new_err)?;
        table.texts = frame.texts.into_iter().collect();
        Ok(table)
    }

    /// The texts of the columns that are categories, in the order of their codes.
    #[getter]
    fn texts(&self) -> Texts {
        self.texts.clone()
    }

    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.len()
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// Number of columns, or of the numbers of a list.
    #[getter]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The names of the columns; None for lists.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }
}

impl Table {
    fn of(schema: &Schema, batches: &[RecordBatch], may_miss: bool) -> Result<Self, String> {
        let fields = schema.fields();
        let mut double = false;
        let mut note = |name: &str, kind: &DataType| match needs_double(kind) {
            Some(own) => {
                double |= own;
                Ok(())
            }
            None => Err(format!(
                "column {name:?} is of type {kind}, not of numbers: select the columns of numbers"
            )),
        };
        let list = list(schema);
        let lists = list.is_some();
        match list {
            Some(item) => note(fields[0].name(), item)?,
            None => fields
                .iter()
                .try_for_each(|field| note(field.name(), field.data_type()))?,
        }
        let mut table = Self {
            parts: Vec::new(),
            starts: vec![0],
            columns: if lists { fixed(schema) } else { fields.len() },
            names: if lists {
                None
            } else {
                Some(fields.iter().map(|field| field.name().clone()).collect())
            },
            double,
            may_miss,
            texts: Texts::new(),
        };
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            let first = table.len();
            let part = if lists {
                table.lists(batch.column(0), first)
            } else {
                Ok(Part {
                    arrays: batch.columns().to_vec(),
                    each: None,
                })
            }?;
            for (place, array) in part.arrays.iter().enumerate() {
                if let Some((row, what)) = fault(array, may_miss) {
                    let name = fields[place].name();
                    let row = first + row / part.each.unwrap_or(1);
                    let cure = if what == NULL { ALLOW } else { "" };
                    return Err(format!(
                        "row {row}, column {name:?} {what}; rows count from 0{cure}"
                    ));
                }
            }
            table.starts.push(first + batch.num_rows());
            table.parts.push(part);
        }
        if table.columns == 0 && !table.parts.is_empty() {
            return Err("the table has no columns of numbers".into());
        }
        Ok(table)
    }

    /// The numbers of lists that are as long as those before.
    fn lists(&mut self, array: &ArrayRef, first: usize) -> Result<Part, String> {
        if let Some(row) = (0..array.len()).find(|row| array.is_null(*row)) {
            return Err(format!("row {} is null", first + row));
        }
        let list = |row: usize| match array.data_type() {
            DataType::FixedSizeList(_, _) => array.as_fixed_size_list().value(row),
            DataType::List(_) => array.as_list::<i32>().value(row),
            _ => array.as_list::<i64>().value(row),
        };
        let offset = |row: usize| match array.data_type() {
            DataType::FixedSizeList(_, each) => {
                // 32 bits would not hold the place of every number.
                row * usize::try_from(*each).unwrap_or(0)
            }
            DataType::List(_) => array.as_list::<i32>().value_offsets()[row] as usize,
            _ => array.as_list::<i64>().value_offsets()[row] as usize,
        };
        if self.columns == 0 {
            self.columns = list(0).len();
        }
        let each = self.columns;
        for row in 0..array.len() {
            let found = offset(row + 1) - offset(row);
            if found != each {
                let row = first + row;
                return Err(format!(
                    "row {row} is a list of {found} numbers, where others have {each}"
                ));
            }
        }
        let values = match array.data_type() {
            DataType::FixedSizeList(_, _) => array.as_fixed_size_list().values(),
            DataType::List(_) => array.as_list::<i32>().values(),
            _ => array.as_list::<i64>().values(),
        };
        Ok(Part {
            arrays: vec![values.slice(offset(0), array.len() * each)],
            each: Some(each),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    pub(crate) fn is_double(&self) -> bool {
        self.double
    }

    /// Some of the rows as numbers of this type.
    pub(crate) fn source<F>(&self, range: Range<usize>) -> TableRows<'_, F> {
        TableRows {
            table: self,
            range,
            number: PhantomData,
        }
    }
}

/// The type of the numbers, where rows are lists.
fn list(schema: &Schema) -> Option<&DataType> {
    match (schema.fields().len(), schema.fields().first()?.data_type()) {
        (
            1,
            DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item),
        ) => Some(item.data_type()),
        _ => None,
    }
}

/// The columns of these names in this order; all of a table of lists, which have none.
fn chosen(
    schema: &Schema,
    batches: Vec<RecordBatch>,
    columns: &[String],
) -> Result<(Schema, Vec<RecordBatch>), String> {
    let own: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
    if list(schema).is_some() || own.iter().copied().eq(columns) {
        return Ok((schema.clone(), batches));
    }
    let place = |name: &String| {
        let mut places = (0..own.len()).filter(|place| own[*place] == name);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (None, _) => Err(format!(
                "X has no column {name:?}: the model was fitted to {columns:?}"
            )),
            _ => Err(format!(
                "X has several columns {name:?}: the model was fitted to {columns:?}"
            )),
        }
    };
    let places = columns.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let fault = |error: ArrowError| format!("Arrow: {error}");
    let project = |batch: RecordBatch| batch.project(&places);
    let batches: Result<_, _> = batches.into_iter().map(project).collect();
    let schema = schema.project(&places).map_err(fault)?;
    Ok((schema, batches.map_err(fault)?))
}

/// Numbers of a list, where the schema says it.
fn fixed(schema: &Schema) -> usize {
    match schema.field(0).data_type() {
        DataType::FixedSizeList(_, each) => usize::try_from(*each).unwrap_or(0),
        _ => 0,
    }
}

/// The rows of a table as numbers of one type.
pub(crate) struct TableRows<'a, F> {
    table: &'a Table,
    range: Range<usize>,
    number: PhantomData<F>,
}

impl<F: Float + Element> Source for TableRows<'_, F> {
    type Element = F;

    fn name(&self) -> &'static str {
        "table"
    }

    fn len(&self) -> usize {
        self.range.len()
    }

    fn dim(&self) -> usize {
        self.table.columns
    }

    fn may_miss(&self) -> bool {
        self.table.may_miss
    }

    fn read(&self, first: usize, mut out: &mut [F]) -> io::Result<()> {
        let table = self.table;
        let dim = self.table.columns;
        let mut first = self.range.start + first;
        while !out.is_empty() {
            let place = table.starts.partition_point(|start| *start <= first) - 1;
            let rows = (table.starts[place + 1] - first).min(out.len() / dim);
            let (own, rest) = out.split_at_mut(rows * dim);
            let part = &table.parts[place];
            let from = first - table.starts[place];
            match part.each {
                Some(each) => fill(&part.arrays[0], from * each, own, 1),
                None => {
                    for (j, array) in part.arrays.iter().enumerate() {
                        fill(array, from, &mut own[j..], dim);
                    }
                }
            }
            (first, out) = (first + rows, rest);
        }
        Ok(())
    }
}
