//! The numbers of a column chunk, one row after the other.

use super::footer::{Chunk, Column};
use crate::ReadAt;
use crate::fault::{at, invalid};
use crate::numbers::{Kind, Number, Stored, UNSOUND, put};
use half::f16;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{DataType, FixedLenByteArray};
use std::io;
use std::sync::Arc;

/// A column chunk that is read forward.
pub(super) struct Values {
    reader: ColumnReader,
    levels: Levels,
}

/// Which of the values are there, and where rows begin.
#[derive(Default)]
struct Levels {
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// The level of a value that is there.
    there: i16,
    /// Numbers of a row, where rows are lists.
    list: Option<usize>,
}

/// Why a row cannot be read: its place among those that were asked for.
type Wrong = (usize, String);

/// What is wrong with all rows.
fn broken(error: impl std::fmt::Display) -> Wrong {
    (0, error.to_string())
}

macro_rules! any {
    ($reader:expr, $r:ident => $do:expr) => {
        match $reader {
            ColumnReader::Int32ColumnReader($r) => $do,
            ColumnReader::Int64ColumnReader($r) => $do,
            ColumnReader::FloatColumnReader($r) => $do,
            ColumnReader::DoubleColumnReader($r) => $do,
            ColumnReader::FixedLenByteArrayColumnReader($r) => $do,
            _ => Err(invalid("a column whose values are no numbers")),
        }
    };
}

impl Values {
    pub(super) fn open(
        bytes: &Arc<dyn ReadAt>,
        column: &Column,
        chunk: &Chunk,
        list: Option<usize>,
    ) -> Self {
        let description = Arc::clone(&column.description);
        let there = description.max_def_level();
        Self {
            reader: get_column_reader(description, Box::new(chunk.pages(bytes))),
            levels: Levels {
                there,
                list,
                ..Levels::default()
            },
        }
    }

    /// Goes past some rows.
    pub(super) fn skip(&mut self, rows: usize, column: &str) -> io::Result<()> {
        let skipped = any!(&mut self.reader, r => r.skip_records(rows).map_err(invalid));
        match skipped {
            Ok(skipped) if skipped == rows => Ok(()),
            Ok(_) => Err(invalid(format!("damaged: column {column:?} ends early"))),
            Err(error) => Err(invalid(format!("column {column:?}: {error}"))),
        }
    }

    /// Reads rows: to every `stride`-th place, or, for lists, one after the other.
    pub(super) fn read<T: Number>(
        &mut self,
        rows: usize,
        first: usize,
        column: &Column,
        out: &mut [T],
        stride: usize,
    ) -> io::Result<()> {
        let read = self.read_unnamed(rows, column.kind, out, stride);
        read.map_err(|(place, what)| at(&column.name, first + place, what))
    }

    fn read_unnamed<T: Number>(
        &mut self,
        rows: usize,
        kind: Kind,
        out: &mut [T],
        stride: usize,
    ) -> Result<(), Wrong> {
        let levels = &mut self.levels;
        let each = levels.list.unwrap_or(1).max(1);
        let unsound = |place: usize| (place / each, UNSOUND.into());
        match (&mut self.reader, kind) {
            (ColumnReader::FloatColumnReader(r), Kind::F32) => {
                put(&levels.read(r, rows)?, out, stride).map_err(unsound)
            }
            (ColumnReader::DoubleColumnReader(r), Kind::F64) => {
                put(&levels.read(r, rows)?, out, stride).map_err(unsound)
            }
            (ColumnReader::Int64ColumnReader(r), Kind::I64) => {
                put(&levels.read(r, rows)?, out, stride).map_err(unsound)
            }
            (ColumnReader::Int64ColumnReader(r), Kind::U64) => {
                let values = map(&levels.read(r, rows)?, |x| x as u64);
                put(&values, out, stride).map_err(unsound)
            }
            (ColumnReader::Int32ColumnReader(r), Kind::U32) => {
                let values = map(&levels.read(r, rows)?, |x| x as u32);
                put(&values, out, stride).map_err(unsound)
            }
            (ColumnReader::Int32ColumnReader(r), kind) => {
                let range = match kind {
                    Kind::I8 => i32::from(i8::MIN)..=i32::from(i8::MAX),
                    Kind::U8 => 0..=i32::from(u8::MAX),
                    Kind::I16 => i32::from(i16::MIN)..=i32::from(i16::MAX),
                    Kind::U16 => 0..=i32::from(u16::MAX),
                    _ => i32::MIN..=i32::MAX,
                };
                let values = levels.read(r, rows)?;
                if let Some(place) = values.iter().position(|x| !range.contains(x)) {
                    let what = format!("damaged: {} is no {kind}", values[place]);
                    return Err((place / each, what));
                }
                put(&values, out, stride).map_err(unsound)
            }
            (ColumnReader::FixedLenByteArrayColumnReader(r), Kind::F16) => {
                let values = levels.read(r, rows)?;
                let values: Vec<f32> = values.iter().map(half).collect();
                put(&values, out, stride).map_err(unsound)
            }
            _ => Err(broken("a column whose values are not as it says")),
        }
    }
}

fn map<A: Copy, B: Stored>(values: &[A], of: impl Fn(A) -> B) -> Vec<B> {
    values.iter().map(|x| of(*x)).collect()
}

/// NaN, which is an error, for bytes that are not two.
fn half(bytes: &FixedLenByteArray) -> f32 {
    match bytes.data() {
        [a, b] => f16::from_le_bytes([*a, *b]).to_f32(),
        _ => f32::NAN,
    }
}

impl Levels {
    /// The values of so many rows: all are there, and lists have the length of all others.
    fn read<D: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<D>,
        rows: usize,
    ) -> Result<Vec<D::T>, Wrong> {
        self.definition.clear();
        self.repetition.clear();
        let mut values = Vec::with_capacity(rows * self.list.unwrap_or(1));
        let mut found = 0;
        while found < rows {
            let (records, _, _) = reader
                .read_records(
                    rows - found,
                    Some(&mut self.definition),
                    Some(&mut self.repetition),
                    &mut values,
                )
                .map_err(broken)?;
            found += records;
            if records == 0 {
                return Err((found, "damaged: the column ends early".into()));
            }
        }
        let expected = rows * self.list.unwrap_or(1);
        let regular = match self.list {
            None => true,
            Some(each) => self.is_regular(each, expected),
        };
        match values.len() == expected && regular {
            true => Ok(values),
            false => Err(self.fault(values.len())),
        }
    }

    /// Whether each row is a list of so many values.
    fn is_regular(&self, each: usize, expected: usize) -> bool {
        let begins = |row: &[i16]| {
            let after = row
                .iter()
                .skip(1)
                .fold(true, |all, level| all & (*level == 1));
            row.first() == Some(&0) && after
        };
        let (there, each) = (self.there, each.max(1));
        self.repetition.len() == expected
            && self
                .definition
                .iter()
                .fold(true, |all, level| all & (*level == there))
            && self.repetition.chunks(each).all(begins)
    }

    /// The first row that is not as it must be.
    fn fault(&self, values: usize) -> Wrong {
        let null = self
            .definition
            .iter()
            .position(|level| *level != self.there);
        let Some(each) = self.list else {
            return match null {
                Some(row) => (row, "a null".into()),
                None => (0, format!("damaged: {values} values")),
            };
        };
        let starts: Vec<usize> = (0..self.repetition.len())
            .filter(|i| self.repetition[*i] == 0)
            .chain([self.repetition.len()])
            .collect();
        for (row, list) in starts.windows(2).enumerate() {
            if let Some(null) = null
                && (list[0]..list[1]).contains(&null)
            {
                let what = match list[1] - list[0] {
                    1 => "a null, or an empty list",
                    _ => "a null in a list",
                };
                return (row, what.into());
            }
            let len = list[1] - list[0];
            if len != each {
                let what = format!("a list of {len} numbers, where others have {each}");
                return (row, what);
            }
        }
        (0, format!("damaged: {values} values"))
    }
}
