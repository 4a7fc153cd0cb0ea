//! Equal rows as one, in an order of their own: then a fit depends neither on the order of the rows, nor on whether a row is
//! repeated or weighted.

use crate::input::{Number, Rows};
use coremix::data::{Dense, Source as _};
use coremix::ndarray::{Array2, ArrayView1};
use coremix::{Error, Result};
use std::cmp::Ordering;

/// Distinct rows of positive weight in ascending order. Rows that miss the same values may be equal.
pub(crate) struct Distinct<F> {
    pub(crate) rows: Array2<F>,
    /// The sums of their weights.
    pub(crate) weights: Vec<f64>,
    /// How many are distinct.
    pub(crate) found: usize,
    /// The first of the given rows that each is equal to.
    pub(crate) first: Vec<usize>,
}

/// An error about such rows, with the number of the given one.
pub(crate) fn located(first: &[usize], mut error: Error) -> Error {
    if let Error::NotOfKind { row, .. } | Error::TooFar { row, .. } = &mut error {
        *row = first[*row];
    }
    error
}

/// The distinct rows. Where they are fewer than `least`, each is there several times, with its weight in equal parts: seeds need as
/// many rows as there are clusters.
pub(crate) fn distinct<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    least: usize,
) -> Result<Distinct<F>> {
    let mut values = rows.values::<F>()?;
    let (n, dim) = values.dim();
    // Before rows are compared, all of them are known to be numbers, or missing.
    let checked = match (weights, F::read(rows).may_miss()) {
        (Some(weights), false) => Dense::weighted(&values, weights),
        (None, false) => Dense::new(&values),
        (Some(weights), true) => Dense::weighted_with_missing(&values, weights),
        (None, true) => Dense::with_missing(&values),
    };
    drop(checked?);
    // A zero of either sign becomes 0, and every missing value the same NaN, which comes last.
    let nan = F::from_f64(f64::NAN);
    values.mapv_inplace(|x| {
        if x.to_f64().is_nan() {
            nan
        } else {
            x + F::default()
        }
    });
    let values = values.as_slice().expect("rows in order");
    let weight = |n: usize| weights.map_or(1.0, |weights| weights[n]);
    let row = |n: usize| &values[n * dim..(n + 1) * dim];
    let same = |a: usize, b: usize| {
        let pairs = row(a).iter().zip(row(b));
        let mut orders = pairs.map(|(a, b)| a.to_f64().total_cmp(&b.to_f64()));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    // The order of equal rows decides how the sum of their weights is rounded.
    let compare =
        |a: &usize, b: &usize| same(*a, *b).then_with(|| weight(*a).total_cmp(&weight(*b)));
    let mut order: Vec<usize> = (0..n).filter(|n| weight(*n) > 0.0).collect();
    order.sort_unstable_by(compare);
    let groups: Vec<&[usize]> = order.chunk_by(|a, b| same(*a, *b).is_eq()).collect();
    let found = groups.len();
    let copies = least.div_ceil(found).max(1);
    let mut kept = Vec::with_capacity(found * copies * dim);
    let mut sums = Vec::with_capacity(found * copies);
    let mut first = Vec::with_capacity(found * copies);
    for group in groups {
        let sum: f64 = group.iter().map(|n| weight(*n)).sum();
        for _ in 0..copies {
            kept.extend_from_slice(row(group[0]));
            sums.push(sum / copies as f64);
            first.extend(group.iter().min());
        }
    }
    let kept = Array2::from_shape_vec((sums.len(), dim), kept).expect("n x d numbers");
    Ok(Distinct {
        rows: kept,
        weights: sums,
        found,
        first,
    })
}
