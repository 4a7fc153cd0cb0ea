//! Equal rows as one, in an order of their own: then a fit depends neither on the order of the rows, nor on whether a row is
//! repeated or weighted.

use crate::input::{Number, Rows};
use coremix::data::Dense;
use coremix::ndarray::{Array2, ArrayView1};
use coremix::{Error, Result};
use std::cmp::Ordering;

/// The distinct rows of positive weight in ascending order, with the sums of their weights.
///
/// How many there are comes with them. Where they are fewer than `least`, each is there several times, with its weight in equal parts: seeds need as many rows
/// as there are clusters.
pub(crate) fn distinct<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    least: usize,
) -> Result<(Dense<'static, F>, usize)> {
    let source = F::read(rows);
    let (n, dim) = (source.len(), source.dim());
    let mut values = vec![F::default(); n * dim];
    source.read(0, &mut values).map_err(|error| Error::Stage {
        stage: source.name(),
        what: error.to_string(),
    })?;
    // Before rows are compared, all of them are known to be numbers.
    let view = coremix::ndarray::ArrayView2::from_shape((n, dim), &values).expect("n x d numbers");
    match weights {
        Some(weights) => drop(Dense::weighted(view, weights)?),
        None => drop(Dense::new(view)?),
    }
    // -0 is 0.
    values.iter_mut().for_each(|x| *x += F::default());
    let weight = |n: usize| weights.map_or(1.0, |weights| weights[n]);
    let row = |n: usize| &values[n * dim..(n + 1) * dim];
    let compare = |a: &usize, b: &usize| {
        let rows = row(*a).partial_cmp(row(*b)).unwrap_or(Ordering::Equal);
        // The order of equal rows decides how the sum of their weights is rounded.
        rows.then_with(|| weight(*a).total_cmp(&weight(*b)))
    };
    let mut order: Vec<usize> = (0..n).filter(|n| weight(*n) > 0.0).collect();
    order.sort_unstable_by(compare);
    let groups: Vec<&[usize]> = order.chunk_by(|a, b| row(*a) == row(*b)).collect();
    let found = groups.len();
    let copies = least.div_ceil(found).max(1);
    let mut kept = Vec::with_capacity(found * copies * dim);
    let mut sums = Vec::with_capacity(found * copies);
    for group in groups {
        let sum: f64 = group.iter().map(|n| weight(*n)).sum();
        for _ in 0..copies {
            kept.extend_from_slice(row(group[0]));
            sums.push(sum / copies as f64);
        }
    }
    let kept = Array2::from_shape_vec((sums.len(), dim), kept).expect("n x d numbers");
    Ok((Dense::owned_weighted(kept, sums)?, found))
}
