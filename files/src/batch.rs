//! Record batches in memory, as rows.

use crate::choice::{Features, columns_of, features};
use crate::fault::{at, invalid};
use crate::numbers::{Number, Stored, UNSOUND, put, readable};
use crate::options::Options;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use half::f16;
use std::io;

/// How batches of a schema become rows of numbers of one type.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    features: Features,
    names: Vec<String>,
    /// Columns; `None` for lists until the first batch with rows.
    pub(crate) dim: Option<usize>,
}

impl Conversion {
    pub(crate) fn new<T: Number>(schema: &Schema, options: &Options) -> io::Result<Self> {
        let columns = columns_of(schema);
        let features = features(&columns, options).map_err(invalid)?;
        let mut names = Vec::new();
        for (place, kind) in features.kinds() {
            let name = columns[place].0.clone();
            let readable = readable::<T>(kind, options.rounded);
            readable.map_err(|what| invalid(format!("column {name:?} {what}")))?;
            names.push(name);
        }
        let dim = match features {
            Features::Each(_) => Some(names.len()),
            Features::Lists(..) => None,
        };
        Ok(Self {
            features,
            names,
            dim,
        })
    }

    /// The rows of a batch, whose first one is this row of all: into `out`, which becomes as long as it must.
    pub(crate) fn rows<T: Number>(
        &mut self,
        batch: &RecordBatch,
        first: usize,
        out: &mut Vec<T>,
    ) -> io::Result<()> {
        let rows = batch.num_rows();
        let places = self.features.kinds();
        let wrong = || invalid("a batch whose columns are not those of the first one, and must be");
        let found = places.iter().map(|(place, kind)| {
            let array = batch.columns().get(*place).ok_or_else(wrong)?;
            let kind = Some(*kind);
            let is = columns_of(&Schema::new(vec![batch.schema().field(*place).clone()]));
            let expected = match (&self.features, is[0].1) {
                (Features::Each(_), crate::choice::Holds::Numbers(found))
                | (Features::Lists(..), crate::choice::Holds::Lists(found)) => Some(found) == kind,
                _ => false,
            };
            if expected { Ok(array) } else { Err(wrong()) }
        });
        let arrays = found.collect::<io::Result<Vec<_>>>()?;
        out.clear();
        if rows == 0 {
            return Ok(());
        }
        if let Features::Lists(..) = self.features {
            let name = &self.names[0];
            let (values, each) = lists(arrays[0], self.dim, name, first)?;
            self.dim = Some(each);
            out.resize(rows * each, T::default());
            let filled = fill(&*values, out, 1);
            return filled.map_err(|(place, what)| at(name, first + place / each.max(1), what));
        }
        out.resize(rows * arrays.len(), T::default());
        for (place, (array, name)) in arrays.iter().zip(&self.names).enumerate() {
            let filled = fill(array, &mut out[place..], arrays.len());
            filled.map_err(|(row, what)| at(name, first + row, what))?;
        }
        Ok(())
    }
}

/// The numbers of all lists, and how many each has.
fn lists(
    array: &dyn Array,
    dim: Option<usize>,
    name: &str,
    first: usize,
) -> io::Result<(arrow_array::ArrayRef, usize)> {
    if let Some(null) = (0..array.len()).find(|row| array.is_null(*row)) {
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
        put(array.as_primitive::<P>().values(), out, stride)
    }
    if let Some(nulls) = array.logical_nulls()
        && let Some(null) = (0..array.len()).find(|i| nulls.is_null(*i))
    {
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
            let values: Vec<f32> = values.iter().map(|x: &f16| x.to_f32()).collect();
            put(&values, out, stride)
        }
        DataType::Float32 => of::<Float32Type, T>(array, out, stride),
        DataType::Float64 => of::<Float64Type, T>(array, out, stride),
        _ => return Err((0, "not a number")),
    };
    filled.map_err(|place| (place, UNSOUND))
}
