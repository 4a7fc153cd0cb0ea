//! Record batches as rows.

use crate::cells::Signs;
use crate::choice::{self, Column, Columns, Holds};
use crate::fault::{at, invalid};
use crate::numbers::{Kind, NULL, Number, UNSOUND, nothing, put_bytes, readable};
use crate::options::Options;
use crate::texts::{Texts, not_texts};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::DataType;
use std::io;
use std::sync::Arc;

/// How batches of a table become rows of numbers of one type.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    columns: Vec<Read>,
    /// How cells that are text are read.
    signs: Signs,
    /// A value that is missing is NaN.
    pub(crate) lenient: bool,
    /// Numbers of a row; `None` where rows are lists, until one of them was seen.
    pub(crate) dim: Option<usize>,
}

/// A column that is read.
#[derive(Clone, Debug)]
struct Read {
    /// Its place in a batch.
    place: usize,
    column: Column,
    /// Its texts, where they are categories.
    texts: Option<Texts>,
}

impl Conversion {
    pub(crate) fn new<T: Number>(columns: &Columns, options: &Options) -> io::Result<Self> {
        let each = columns.features(options).map_err(invalid)?.into_iter();
        let each = each.map(|place| {
            let column = columns.each[place].clone();
            let texts = options.texts.get(&column.name).cloned();
            // A column of the type of nulls has no value at all.
            let may_be = matches!(
                column.holds,
                Holds::Words | Holds::Cells(_) | Holds::Asked(Kind::U8)
            );
            if texts.is_some() && !may_be {
                return Err(invalid(not_texts(&column.name, &column.words)));
            }
            let kind = match texts {
                Some(_) => Some(Kind::F64),
                None => column.holds.kind(),
            };
            let kind = kind.ok_or("does not hold numbers".into());
            match kind.and_then(|kind| readable::<T>(kind, options.rounded)) {
                Ok(()) => Ok(Read {
                    place,
                    column,
                    texts,
                }),
                Err(what) => Err(invalid(format!("column {:?} {what}", column.name))),
            }
        });
        let columns = each.collect::<io::Result<Vec<_>>>()?;
        let dim = match columns[0].column.holds {
            Holds::Lists(_) => None,
            _ => Some(columns.len()),
        };
        let lenient = options.lenient::<T>()?;
        Ok(Self {
            columns,
            signs: options.signs(),
            lenient,
            dim,
        })
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
            let array = self.columns[0].of(batch)?;
            let name = &self.columns[0].column.name;
            let valid = (0..array.len()).find(|place| self.lenient && array.is_valid(*place));
            let first = valid.unwrap_or(0);
            self.dim = Some(lists(&array.slice(first, 1), None, name, row + first)?.1);
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
        for (place, read) in self.columns.iter().enumerate() {
            let array = read.of(batch)?;
            let name = &read.column.name;
            let out = &mut out[place..];
            let (values, each) = match read.column.holds {
                Holds::Lists(_) if self.lenient && array.null_count() > 0 => {
                    let each = self.dim.unwrap_or(1).max(1);
                    for (row, out) in out.chunks_exact_mut(each).enumerate() {
                        out.fill(nothing());
                        if array.is_valid(row) {
                            let one = array.slice(row, 1);
                            let values = lists(&one, self.dim, name, first + row)?.0;
                            let filled = fill(&*values, out, stride, true);
                            filled.map_err(|(_, what)| at(name, first + row, what))?;
                        }
                    }
                    continue;
                }
                Holds::Lists(_) => lists(array, self.dim, name, first)?,
                holds => match (&read.texts, holds) {
                    (Some(texts), _) => {
                        let codes = texts.codes(array, &self.signs).map_err(invalid)?;
                        (Arc::new(codes) as ArrayRef, 1)
                    }
                    (None, Holds::Cells(cells)) => {
                        let numbers = cells.numbers(array, &self.signs);
                        let wrong = |(place, what)| at(name, first + place, what);
                        (numbers.map_err(wrong)?, 1)
                    }
                    (None, _) => (ArrayRef::clone(array), 1),
                },
            };
            let filled = fill(&*values, out, stride, self.lenient);
            filled.map_err(|(place, what)| at(name, first + place / each.max(1), what))?;
        }
        Ok(())
    }

    /// Makes rows of numbers that lie as they are stored, column by column: their bytes, and what they are.
    pub(crate) fn numbers<T: Number>(
        &self,
        first: usize,
        out: &mut [T],
        mut bytes_of: impl FnMut(usize) -> io::Result<(Kind, Vec<u8>)>,
    ) -> io::Result<()> {
        let stride = self.columns.len();
        let each = (self.dim.unwrap_or(1) / stride).max(1);
        for (place, read) in self.columns.iter().enumerate() {
            let (kind, bytes) = bytes_of(read.place)?;
            put_bytes(kind, &bytes, &mut out[place..], stride, self.lenient)
                .map_err(|(i, what)| at(&read.column.name, first + i / each, what))?;
        }
        Ok(())
    }
}

impl Read {
    fn of<'a>(&self, batch: &'a RecordBatch) -> io::Result<&'a ArrayRef> {
        let array = batch.columns().get(self.place);
        let array =
            array.filter(|array| Holds::of(array.data_type()).is_read_as(self.column.holds));
        array.ok_or_else(|| {
            invalid("a batch whose columns are not those of the first one, and must be")
        })
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
        return Err(at(name, first + null, NULL));
    }
    fn of_lists<O: OffsetSizeTrait>(array: &dyn Array) -> (Vec<usize>, &ArrayRef) {
        let list = array.as_list::<O>();
        let ends = list.value_offsets().iter();
        (ends.map(|end| end.as_usize()).collect(), list.values())
    }
    let (ends, values) = match array.data_type() {
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            // A part of an array keeps all values.
            let from = list.value_offset(0) as usize;
            let each = list.value_length() as usize;
            let ends = (0..=array.len()).map(|i| from + i * each);
            (ends.collect(), list.values())
        }
        DataType::List(_) => of_lists::<i32>(array),
        _ => of_lists::<i64>(array),
    };
    let each = dim.unwrap_or_else(|| ends[1] - ends[0]);
    let other = |pair: &[usize]| pair[1] - pair[0] != each;
    if let Some(row) = ends.windows(2).position(other) {
        let numbers = ends[row + 1] - ends[row];
        let what = format!("a list of {numbers} numbers, where others have {each}");
        return Err(at(name, first + row, what));
    }
    Ok((values.slice(ends[0], array.len() * each), each))
}

/// Puts numbers to every `stride`-th place; where the first one is that cannot be read, and why.
fn fill<T: Number>(
    array: &dyn Array,
    out: &mut [T],
    stride: usize,
    lenient: bool,
) -> Result<(), (usize, &'static str)> {
    if let Some(nulls) = array
        .logical_nulls()
        .filter(|nulls| lenient && nulls.null_count() > 0)
    {
        out.iter_mut().step_by(stride).for_each(|x| *x = nothing());
        for (from, to) in nulls.valid_slices() {
            let part = array.slice(from, to - from);
            let out = &mut out[from * stride..];
            let filled = fill(&*part, out, stride, true);
            filled.map_err(|(place, what)| (from + place, what))?;
        }
        return Ok(());
    }
    if let Some(null) = first_null(array.logical_nulls().as_ref()) {
        return Err((null, NULL));
    }
    let kind = Kind::behind(array.data_type()).ok_or((0, "not a number"))?;
    // Decimals become numbers, and what a dictionary codes comes to its places; too large an integer becomes a null.
    let plain = match Kind::of(array.data_type()) {
        Some(_) => None,
        None => Some(cast(array, &kind.stored()).map_err(|_| (0, "not a number"))?),
    };
    let array = plain.as_deref().unwrap_or(array);
    if let Some(null) = first_null(array.nulls()) {
        return Err((null, UNSOUND));
    }
    let data = array.to_data();
    let bytes = &data.buffers()[0][data.offset() * kind.size()..][..data.len() * kind.size()];
    put_bytes(kind, bytes, out, stride, lenient)
}
