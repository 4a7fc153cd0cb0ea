//! The rows of a record batch: one list column, or several columns of numbers, as rows of `f64`.

use crate::model::Precision;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};

/// Rows of numbers (n, d). Values of `f32` are widened, so that all arithmetic here is `f64`.
#[derive(Debug)]
pub(crate) struct Rows {
    values: Vec<f64>,
    len: usize,
    dim: usize,
    /// What cannot be used, per column of the table: one for a list.
    pub(crate) unusable: Vec<Unusable>,
}

/// Values that are no numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) nulls: u64,
    /// NaN or infinite.
    pub(crate) not_finite: u64,
}

impl Unusable {
    pub(crate) fn none(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.not_finite = self.not_finite.saturating_add(other.not_finite);
    }
}

/// Whether a column can be read, and how.
pub(crate) fn precision_of(kind: &DataType) -> Option<Precision> {
    match kind {
        DataType::Float16
        | DataType::Float32
        | DataType::Int8
        | DataType::Int16
        | DataType::UInt8
        | DataType::UInt16 => Some(Precision::Single),
        kind if kind.is_numeric() => Some(Precision::Double),
        _ => None,
    }
}

/// The type of the numbers of a list column.
pub(crate) fn item_of(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

impl Rows {
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// The row number `i`, smaller than [`len`](Self::len).
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// The rows of columns that are `names` in the table.
    pub(crate) fn of(
        columns: &[ArrayRef],
        names: &[String],
        precision: Precision,
    ) -> Result<Self, String> {
        let is_list = |column: &ArrayRef| item_of(column.data_type()).is_some();
        match columns {
            [] => Err("no columns".to_string()),
            [list] if is_list(list) => Self::of_list(list, &names[0], precision),
            _ => Self::of_columns(columns, names, precision),
        }
    }

    fn of_columns(
        columns: &[ArrayRef],
        names: &[String],
        precision: Precision,
    ) -> Result<Self, String> {
        let (len, dim) = (columns[0].len(), columns.len());
        let mut rows = Self {
            values: vec![0.0; len * dim],
            len,
            dim,
            unusable: vec![Unusable::default(); dim],
        };
        for (j, (column, name)) in columns.iter().zip(names).enumerate() {
            let numbers = Numbers::of(column, precision).map_err(|e| at(name, &e))?;
            for i in 0..len {
                rows.values[i * dim + j] = numbers.get(i, &mut rows.unusable[j]);
            }
        }
        Ok(rows)
    }

    fn of_list(column: &ArrayRef, name: &str, precision: Precision) -> Result<Self, String> {
        // Start and end of the list of each row, in the column of all items.
        type Place = Box<dyn Fn(usize) -> (usize, usize)>;
        let (items, place): (ArrayRef, Place) = match column.data_type() {
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or_default();
                let list = column.as_fixed_size_list();
                let place = move |i: usize| (i * size, (i + 1) * size);
                (list.values().clone(), Box::new(place))
            }
            DataType::LargeList(_) => {
                let list = column.as_list::<i64>();
                let offsets = list.offsets().clone();
                let place = move |i: usize| (offsets[i] as usize, offsets[i + 1] as usize);
                (list.values().clone(), Box::new(place))
            }
            _ => {
                let list = column.as_list::<i32>();
                let offsets = list.offsets().clone();
                let place = move |i: usize| (offsets[i] as usize, offsets[i + 1] as usize);
                (list.values().clone(), Box::new(place))
            }
        };
        let numbers = Numbers::of(&items, precision).map_err(|e| at(name, &e))?;
        let len = column.len();
        let present = |i: &usize| column.is_valid(*i);
        let size = |i: usize| place(i).1 - place(i).0;
        let dim = (0..len).find(present).map_or(0, size);
        let mut unusable = Unusable::default();
        let mut values = Vec::with_capacity(len * dim);
        for i in 0..len {
            if column.is_null(i) {
                unusable.nulls += 1;
                values.extend(std::iter::repeat_n(0.0, dim));
                continue;
            }
            let (start, end) = place(i);
            if end - start != dim {
                let what = format!(
                    "lists of {dim} and of {} numbers; all must be as long",
                    end - start
                );
                return Err(at(name, &what));
            }
            values.extend((start..end).map(|at| numbers.get(at, &mut unusable)));
        }
        Ok(Self {
            values,
            len,
            dim,
            unusable: vec![unusable],
        })
    }
}

/// What is wrong with a column.
pub(crate) fn at(name: &str, what: &str) -> String {
    format!("column `{name}`: {what}")
}

/// A column of numbers of one of the two types.
enum Numbers {
    Single(Float32Array),
    Double(Float64Array),
}

impl Numbers {
    fn of(column: &ArrayRef, precision: Precision) -> Result<Self, String> {
        if precision_of(column.data_type()).is_none() {
            return Err(format!("{} is not a type of numbers", column.data_type()));
        }
        let kind = match precision {
            Precision::Single => DataType::Float32,
            Precision::Double => DataType::Float64,
        };
        let numbers = cast(column, &kind).map_err(|e| e.to_string())?;
        Ok(match precision {
            Precision::Single => Self::Single(numbers.as_primitive::<Float32Type>().clone()),
            Precision::Double => Self::Double(numbers.as_primitive::<Float64Type>().clone()),
        })
    }

    /// The number of a row; 0 in place of one that cannot be used, which is counted.
    #[inline(always)]
    fn get(&self, i: usize, unusable: &mut Unusable) -> f64 {
        let (value, null) = match self {
            Self::Single(array) => (f64::from(array.value(i)), array.is_null(i)),
            Self::Double(array) => (array.value(i), array.is_null(i)),
        };
        if null {
            unusable.nulls += 1;
            return 0.0;
        }
        if !value.is_finite() {
            unusable.not_finite += 1;
            return 0.0;
        }
        // -0 becomes 0: which of them is the least would depend on the order of the rows.
        value + 0.0
    }
}
