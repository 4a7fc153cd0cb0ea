//! Columns of a table: which numbers are theirs.

use crate::base::error::{Error, Result, require};
use crate::base::float::Float;
use crate::base::parallel::BLOCK;
use crate::data::Data;
use crate::rows::{Frame, Rows};
use std::collections::BTreeMap;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Column {
    /// Any number: a Gaussian with a mean and a variance.
    Number,
    /// A whole number from 0 to $2^{53}$: a Poisson distribution with a rate.
    Count,
    /// A category, as a code: a whole number from 0 on, below this number unless that is 0, and at most $2^{53}$ ($2^{24}$ in `f32`).
    /// Codes are labels, such as years or ZIP codes: those that occur have a probability each, and any other codes give the same fit.
    /// In a fitted model the number is 0.
    Category(usize),
}

/// The least probability and rate: its logarithm is finite.
pub(super) const LEAST: f64 = f64::MIN_POSITIVE;

/// Counts and codes of 64-bit numbers are whole up to here.
const MOST: f64 = (1u64 << 53) as f64;

/// Most categories of all columns together.
const MOST_CATEGORIES: usize = 1 << 20;

impl Column {
    /// The number of categories that it was given, if its numbers are codes of some, whose differences say nothing.
    pub(crate) fn categories(self) -> Option<usize> {
        match self {
            Self::Category(number) => Some(number),
            Self::Number | Self::Count => None,
        }
    }

    /// All that the column takes, if this number is none of it. Codes that the number type rounds would be one.
    pub(super) fn refused(self, x: f64, epsilon: f64) -> Option<&'static str> {
        let (most, rule) = match self {
            Self::Number => return None,
            Self::Count => (MOST, "a count: 0, 1, 2 and so on, up to 2^53"),
            Self::Category(below) => {
                let most = MOST.min(2.0 / epsilon);
                let most = if below > 0 {
                    most.min(below as f64 - 1.0)
                } else {
                    most
                };
                let rule = "one of the categories of its column: whole numbers from 0 on";
                (most, rule)
            }
        };
        let is_one = (0.0..=most).contains(&x) && x.fract() == 0.0;
        (!is_one).then_some(rule)
    }
}

/// An error for the first number that is none of its column, in rows that have a weight: it gives row and column these numbers.
pub(super) fn check<F: Float>(
    kinds: &[Column],
    rows: &Rows<F>,
    first: usize,
    numbers: impl Fn(usize) -> usize,
) -> Result<()> {
    let mut wrong = None;
    for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
        rows.each_known(i, |j, x| {
            let value = x.to_f64();
            if let Some(kind) = kinds[j].refused(value, F::EPSILON) {
                let row = first + i;
                let column = numbers(j);
                wrong.get_or_insert(Error::NotOfKind {
                    row,
                    column,
                    value,
                    kind,
                });
            }
        });
    }
    wrong.map_or(Ok(()), Err)
}

/// The codes of the categories of a column that occur in the data, in ascending order, and their shares.
pub(super) struct Codes {
    pub(super) codes: Vec<f64>,
    pub(super) shares: Vec<f64>,
}

impl Codes {
    fn of(weights: BTreeMap<u64, f64>) -> Self {
        let total: f64 = weights.values().sum();
        let share = |weight: &f64| (weight / total).max(LEAST);
        Self {
            shares: weights.values().map(share).collect(),
            codes: weights.into_keys().map(|code| code as f64).collect(),
        }
    }
}

/// The place of a code among these, which are in ascending order. Most begin at the first one without gaps.
pub(super) fn place(codes: &[f64], x: f64) -> Option<usize> {
    let at = (x - codes.first()?) as usize;
    match codes.get(at) {
        Some(code) if *code == x => Some(at),
        _ => codes.binary_search_by(|code| code.total_cmp(&x)).ok(),
    }
}

/// The codes of each column: none, unless it has categories. A number that is none of its kind is an error, which gives its column this
/// number.
pub(super) fn codes<F: Float>(
    kinds: &[Column],
    data: &dyn Data<F>,
    numbers: &[usize],
) -> Result<Vec<Codes>> {
    let frame = Frame::raw(data.summary())?;
    let mut weights = vec![BTreeMap::<u64, f64>::new(); kinds.len()];
    let mut rows = Rows::default();
    for first in (0..data.len()).step_by(BLOCK) {
        data.load(first..data.len().min(first + BLOCK), &frame, &mut rows)?;
        check(kinds, &rows, first, |j| numbers[j])?;
        for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
            rows.each_known(i, |j, x| {
                if kinds[j].categories().is_some() {
                    *weights[j].entry(x.to_f64() as u64).or_insert(0.0) += rows.weight(i);
                }
            });
        }
        let number = weights.iter().map(BTreeMap::len).sum::<usize>();
        let rule =
            "must be at most 1,048,576 in all columns together: is one of them an identifier?";
        require(number <= MOST_CATEGORIES, "categories", number, rule)?;
    }
    Ok(weights.into_iter().map(Codes::of).collect())
}
