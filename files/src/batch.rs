//! Record batches as rows.

use crate::choice::{self, Columns, Holds, features};
use crate::fault::{at, invalid};
use crate::numbers::{Number, Stored, UNSOUND, put, readable};
use crate::options::Options;
use crate::pool::Cursor;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};
use std::io;

/// How batches of a table become rows of numbers of one type.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    columns: Vec<Column>,
    /// Numbers of a row; `None` where rows are lists, until one of them was seen.
    pub(crate) dim: Option<usize>,
}

/// A column that is read.
#[derive(Clone, Debug)]
struct Column {
    /// Its place in a batch.
    place: usize,
    name: String,
    holds: Holds,
}

impl Conversion {
    pub(crate) fn new<T: Number>(columns: &Columns, options: &Options) -> io::Result<Self> {
        let each = features(columns, options).map_err(invalid)?.into_iter();
        let each = each.map(|place| {
            let (name, holds) = columns[place].clone();
            let kind = holds.kind().ok_or("does not hold numbers".into());
            match kind.and_then(|kind| readable::<T>(kind, options.rounded)) {
                Ok(()) => Ok(Column { place, name, holds }),
                Err(what) => Err(invalid(format!("column {name:?} {what}"))),
            }
        });
        let columns = each.collect::<io::Result<Vec<_>>>()?;
        let dim = match columns[0].holds {
            Holds::Lists(_) => None,
            _ => Some(columns.len()),
        };
        Ok(Self { columns, dim })
    }

    /// From now on batches have only the columns that are read, in the order of the table: their places in it.
    pub(crate) fn project(&mut self) -> Vec<usize> {
        let places: Vec<usize> = self.columns.iter().map(|column| column.place).collect();
        let (places, order) = choice::in_order(&places);
        for (column, place) in self.columns.iter_mut().zip(order) {
            column.place = place;
        }
        places
    }

    /// Sees how long lists are: as the first one of a batch, which is this row of all.
    pub(crate) fn see(&mut self, batch: &RecordBatch, row: usize) -> io::Result<()> {
        if self.dim.is_none() && batch.num_rows() > 0 {
            let (array, name) = (self.columns[0].of(batch)?, &self.columns[0].name);
            self.dim = Some(lists(&array.slice(0, 1), None, name, row)?.1);
        }
        Ok(())
    }

    /// Makes rows of a batch, whose first one is this row of all.
    pub(crate) fn rows<T: Number>(
        &self,
        batch: &RecordBatch,
        first: usize,
        out: &mut [T],
    ) -> io::Result<()> {
        let stride = self.columns.len();
        for (place, column) in self.columns.iter().enumerate() {
            let (array, name) = (column.of(batch)?, &column.name);
            let (values, each) = match column.holds {
                Holds::Lists(_) => lists(array, self.dim, name, first)?,
                _ => (ArrayRef::clone(array), 1),
            };
            let filled = fill(&*values, &mut out[place..], stride);
            filled.map_err(|(place, what)| at(name, first + place / each.max(1), what))?;
        }
        Ok(())
    }
}

impl Column {
    fn of<'a>(&self, batch: &'a RecordBatch) -> io::Result<&'a ArrayRef> {
        let array = batch.columns().get(self.place);
        let array = array.filter(|array| Holds::of(array.data_type()) == self.holds);
        array.ok_or_else(|| {
            invalid("a batch whose columns are not those of the first one, and must be")
        })
    }
}

/// What makes batches.
pub(crate) type Running = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Batches that are made one after the other, at a row.
pub(crate) struct Sequence {
    batches: Running,
    /// The row that comes next.
    row: usize,
    /// What is left of the batch with that row.
    rest: Option<RecordBatch>,
}

impl Cursor for Sequence {
    fn row(&self) -> usize {
        self.row
    }
}

impl Sequence {
    /// Batches whose first row is this one.
    pub(crate) fn new(batches: Running, row: usize) -> Self {
        let rest = None;
        Self { batches, row, rest }
    }

    /// Goes on to a row, and reads from there as many as there is room for.
    pub(crate) fn read<T: Number>(
        &mut self,
        row: usize,
        out: &mut [T],
        conversion: &Conversion,
    ) -> io::Result<()> {
        let dim = conversion.dim.unwrap_or(0);
        let end = row + out.len().checked_div(dim).unwrap_or(0);
        while self.row < end {
            let next = self.rest.take().map(Ok).or_else(|| self.batches.next());
            let none = || {
                invalid(format!(
                    "damaged, or has changed: ends before row {}",
                    self.row
                ))
            };
            let batch = next.ok_or_else(none)?.map_err(invalid)?;
            let len = batch.num_rows();
            let from = row.saturating_sub(self.row).min(len);
            let to = len.min(end - self.row);
            if from < to {
                let first = self.row + from;
                let out = &mut out[(first - row) * dim..][..(to - from) * dim];
                conversion.rows(&batch.slice(from, to - from), first, out)?;
            }
            if to < len {
                self.rest = Some(batch.slice(to, len - to));
            }
            self.row += to;
        }
        Ok(())
    }
}

fn first_null(nulls: Option<&NullBuffer>) -> Option<usize> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    (0..nulls.len()).find(|place| nulls.is_null(*place))
}

/// The numbers of all lists, and how many each has.
fn lists(
    array: &dyn Array,
    dim: Option<usize>,
    name: &str,
    first: usize,
) -> io::Result<(ArrayRef, usize)> {
    if let Some(null) = first_null(array.nulls()) {
        return Err(at(name, first + null, "a null"));
    }
    fn of_offsets<O: Into<i64> + Copy>(offsets: &[O]) -> Vec<i64> {
        offsets.iter().map(|offset| (*offset).into()).collect()
    }
    let (offsets, values) = match array.data_type() {
        DataType::FixedSizeList(_, each) => {
            let list = array.as_fixed_size_list();
            let each = usize::try_from(*each).map_err(invalid)?;
            // A part of an array keeps all values.
            let from = list.value_offset(0) as usize;
            let values = list.values().slice(from, array.len() * each);
            return match dim.is_none_or(|dim| dim == each) {
                true => Ok((values, each)),
                false => Err(at(name, first, format!("a list of {each} numbers"))),
            };
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (of_offsets(list.value_offsets()), list.values().clone())
        }
        _ => {
            let list = array.as_list::<i64>();
            (of_offsets(list.value_offsets()), list.values().clone())
        }
    };
    let each = dim.unwrap_or_else(|| (offsets[1] - offsets[0]) as usize);
    let other = |pair: &[i64]| pair[1] - pair[0] != each as i64;
    if let Some(row) = offsets.windows(2).position(other) {
        let found = offsets[row + 1] - offsets[row];
        let what = format!("a list of {found} numbers, where others have {each}");
        return Err(at(name, first + row, what));
    }
    let values = values.slice(offsets[0] as usize, array.len() * each);
    Ok((values, each))
}

/// Puts numbers to every `stride`-th place; where the first one is that cannot be read, and why.
fn fill<T: Number>(
    array: &dyn Array,
    out: &mut [T],
    stride: usize,
) -> Result<(), (usize, &'static str)> {
    fn of<P: ArrowPrimitiveType, T: Number>(
        array: &dyn Array,
        out: &mut [T],
        stride: usize,
    ) -> Result<(), usize>
    where
        P::Native: Stored,
    {
        put(
            array.as_primitive::<P>().values().iter().copied(),
            out,
            stride,
        )
    }
    if let Some(null) = first_null(array.nulls()) {
        return Err((null, "a null"));
    }
    let filled = match array.data_type() {
        DataType::Int8 => of::<Int8Type, T>(array, out, stride),
        DataType::UInt8 => of::<UInt8Type, T>(array, out, stride),
        DataType::Int16 => of::<Int16Type, T>(array, out, stride),
        DataType::UInt16 => of::<UInt16Type, T>(array, out, stride),
        DataType::Int32 => of::<Int32Type, T>(array, out, stride),
        DataType::UInt32 => of::<UInt32Type, T>(array, out, stride),
        DataType::Int64 => of::<Int64Type, T>(array, out, stride),
        DataType::UInt64 => of::<UInt64Type, T>(array, out, stride),
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            put(values.iter().map(|x| x.to_f32()), out, stride)
        }
        DataType::Float32 => of::<Float32Type, T>(array, out, stride),
        DataType::Float64 => of::<Float64Type, T>(array, out, stride),
        _ => return Err((0, "not a number")),
    };
    filled.map_err(|place| (place, UNSOUND))
}
