//! The rows of a record batch, as rows of `f64`: one column of lists, or several columns of numbers.

use coremix::Float;
use coremix::ndarray::Array2;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows of numbers (n, d).
#[derive(Debug)]
pub(crate) struct Rows {
    values: Vec<f64>,
    pub(crate) len: usize,
    pub(crate) dim: usize,
    /// Values that cannot be used, per column of the table: one entry for a column of lists.
    pub(crate) unusable: Vec<Unusable>,
}

/// Values that are no numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unusable {
    pub(crate) nulls: u64,
    /// NaN or infinite.
    pub(crate) not_finite: u64,
}

impl Unusable {
    pub(crate) fn any(&self) -> bool {
        *self != Self::default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.not_finite = self.not_finite.saturating_add(other.not_finite);
    }

    /// A value; 0 in place of one that cannot be used, which is counted.
    fn number(&mut self, value: Option<f64>) -> f64 {
        match value {
            // -0 becomes 0: which of them is the least would depend on the order of the rows.
            Some(x) if x.is_finite() => return x + 0.0,
            Some(_) => self.not_finite += 1,
            None => self.nulls += 1,
        }
        0.0
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

/// The message about lists of different lengths.
pub(crate) fn ragged(a: usize, b: usize) -> String {
    let (less, more) = (a.min(b), a.max(b));
    format!(
        "lists of {less} and of {more} numbers; all must be as long, with their zeros: \
         sparse rows of .npz and svmlight files are for the command, on one machine"
    )
}

impl Rows {
    /// The row number `i`, smaller than `len`.
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// The rows in the numbers of a model.
    pub(crate) fn points<F: Float>(&self) -> Array2<F> {
        let values = self.values.iter().map(|x| F::from_f64(*x)).collect();
        Array2::from_shape_vec((self.len, self.dim), values).expect("n x d numbers")
    }

    pub(crate) fn of(columns: &[ArrayRef]) -> Result<Self, String> {
        match columns {
            [] => Err("no columns".to_string()),
            [list] if item_of(list.data_type()).is_some() => Self::of_lists(list),
            _ => Self::of_columns(columns),
        }
    }

    fn of_columns(columns: &[ArrayRef]) -> Result<Self, String> {
        let (len, dim) = (columns[0].len(), columns.len());
        let mut values = vec![0.0; len * dim];
        let mut unusable = vec![Unusable::default(); dim];
        for (j, (column, unusable)) in columns.iter().zip(&mut unusable).enumerate() {
            let numbers = cast(column, &DataType::Float64).map_err(|e| e.to_string())?;
            let rows = values.chunks_exact_mut(dim);
            for (row, value) in rows.zip(numbers.as_primitive::<Float64Type>()) {
                row[j] = unusable.number(value);
            }
        }
        Ok(Self {
            values,
            len,
            dim,
            unusable,
        })
    }

    fn of_lists(column: &ArrayRef) -> Result<Self, String> {
        let item = Field::new_list_field(DataType::Float64, true);
        let lists = cast(column, &DataType::LargeList(Arc::new(item)));
        let lists = lists.map_err(|e| e.to_string())?;
        let lists = lists.as_list::<i64>();
        let dim = lists.iter().flatten().next().map_or(0, |list| list.len());
        let mut unusable = Unusable::default();
        let mut values = Vec::with_capacity(lists.len() * dim);
        for list in lists.iter() {
            match list {
                None => {
                    unusable.nulls += 1;
                    values.extend(std::iter::repeat_n(0.0, dim));
                }
                Some(list) if list.len() != dim => return Err(ragged(list.len(), dim)),
                Some(list) => {
                    let numbers = list.as_primitive::<Float64Type>().iter();
                    values.extend(numbers.map(|value| unusable.number(value)));
                }
            }
        }
        Ok(Self {
            values,
            len: lists.len(),
            dim,
            unusable: vec![unusable],
        })
    }
}
