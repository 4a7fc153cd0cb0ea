//! Columns of a table: which numbers are theirs, and what these cost.

use crate::base::error::{Error, Result, require};
use crate::base::float::Float;
use crate::base::gamma::log_gamma;
use crate::base::parallel::BLOCK;
use crate::data::Data;
use crate::families::variances::RESOLVED;
use crate::rows::{Frame, Rows};
use std::collections::BTreeMap;
use std::f64::consts::TAU;

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

/// Most categories of all columns together.
pub(super) const MOST_CATEGORIES: usize = 1 << 20;

/// The least probability, rate and variance: its logarithm is finite.
pub(super) const LEAST: f64 = f64::MIN_POSITIVE;

/// The least variance of numbers about this mean, in a column of the variance `whole` ([E20](crate::equations#e20)).
pub(super) fn least_variance<F: Float>(mean: f64, whole: f64) -> f64 {
    let resolved = (F::EPSILON.max(RESOLVED) * mean).powi(2);
    resolved.max(RESOLVED.powi(2) * whole).max(LEAST.sqrt())
}

/// Where the categories of each column start among all, and how many there are.
pub(super) fn starts(codes: &[Vec<f64>]) -> (Vec<usize>, usize) {
    let mut all = 0;
    let starts = codes.iter().map(|codes| {
        all += codes.len();
        all - codes.len()
    });
    (starts.collect(), all)
}

/// The place of a code among these, which are in ascending order. Most begin at the first one without gaps.
pub(super) fn place(codes: &[f64], x: f64) -> Option<usize> {
    let at = (x - codes.first()?) as usize;
    match codes.get(at) {
        Some(code) if *code == x => Some(at),
        _ => codes.binary_search_by(|code| code.total_cmp(&x)).ok(),
    }
}

/// All that the column takes, if this number is none of it. Codes that the number type rounds would be one.
pub(super) fn refused<F: Float>(kind: Column, x: f64) -> Option<&'static str> {
    const MOST: f64 = (1u64 << 53) as f64;
    let (most, rule) = match kind {
        Column::Number => return None,
        Column::Count => (MOST, "a count: 0, 1, 2 and so on, up to 2^53"),
        Column::Category(below) => {
            let most = MOST.min(2.0 / F::EPSILON);
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
            if let Some(kind) = refused::<F>(kinds[j], value) {
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

/// The codes of the categories of each column that occur in the data, in ascending order, and their shares, one column after the other.
/// A number that is none of its kind is an error, which gives its column this number.
pub(super) fn categories<F: Float>(
    kinds: &[Column],
    frame: &Frame<F>,
    data: &dyn Data<F>,
    numbers: &[usize],
) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
    let mut weights = vec![BTreeMap::<u64, f64>::new(); kinds.len()];
    let mut rows = Rows::default();
    for first in (0..data.len()).step_by(BLOCK) {
        data.load(first..data.len().min(first + BLOCK), frame, &mut rows)?;
        check(kinds, &rows, first, |j| numbers[j])?;
        for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
            rows.each_known(i, |j, x| {
                if let Column::Category(_) = kinds[j] {
                    *weights[j].entry(x.to_f64() as u64).or_insert(0.0) += rows.weight(i);
                }
            });
        }
        let number = weights.iter().map(BTreeMap::len).sum::<usize>();
        let rule =
            "must be at most 1,048,576 in all columns together: is one of them an identifier?";
        require(number <= MOST_CATEGORIES, "categories", number, rule)?;
    }
    let mut codes = Vec::new();
    let mut shares = Vec::new();
    for weights in weights {
        let total: f64 = weights.values().sum();
        shares.extend(weights.values().map(|weight| (weight / total).max(LEAST)));
        codes.push(weights.into_keys().map(|code| code as f64).collect());
    }
    Ok((codes, shares))
}

/// The divergence, in nats, of a Gaussian of this variance from one whose mean is so far away, squared, and whose variance is
/// `whole`.
pub(in crate::families) fn numbers_apart(squared: f64, variance: f64, whole: f64) -> f64 {
    let ratio = variance / whole;
    0.5 * (squared / whole + ratio - 1.0 - ratio.ln())
}

/// The place of the largest number, the first of several.
pub(super) fn likeliest(probabilities: impl Iterator<Item = f64>) -> Option<usize> {
    let larger = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    probabilities.enumerate().reduce(larger).map(|(l, _)| l)
}

/// The logarithm of y! and, for large y, that of y^y e^-y less: what costs of a count have in common.
pub(super) fn constant_of_count(x: f64) -> f64 {
    if x <= LARGE_COUNT {
        log_gamma(x + 1.0)
    } else {
        0.5 * (TAU * x).ln() + 1.0 / (12.0 * x)
    }
}

/// Terms of larger counts have no digits left where they cancel.
pub(super) const LARGE_COUNT: f64 = 65_536.0;

/// -ln p(y) of a count, less its constant.
pub(super) fn cost_of_count(x: f64, rate: f64, log_rate: f64) -> f64 {
    let apart = (x - rate) / rate;
    if x <= LARGE_COUNT {
        rate - x * log_rate
    } else if apart.abs() < 0.5 {
        rate * ((1.0 + apart) * apart.ln_1p() - apart)
    } else {
        x * (x.ln() - log_rate) + rate - x
    }
}
