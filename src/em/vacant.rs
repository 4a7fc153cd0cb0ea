//! Rows for components without mass, where there is one variance for all (E54): nothing else says where such a component lies.

use super::pass::shard_rows;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::base::sort;
use crate::data::{Centres, Rows, View};
use std::cmp::Ordering;

/// Components that get a row at once, at most: more of them wait for the next iteration.
const MOST: usize = 1024;

/// Rows to choose from, besides two for each component: enough to leave out copies of few rows far away.
const SPARE: usize = 4096;

/// Gains that differ by less are the same, except by rounding.
const ROUNDING: f64 = 1e-9;

/// A row that is not at the mean of its component.
struct Far {
    row: usize,
    squared: f64,
    /// Its weight times that.
    gain: f64,
}

/// Centres with rows in the places of components without mass, and these rows with their components.
pub(super) struct Filled<F> {
    pub(super) centres: Centres<F>,
    pub(super) rows: Vec<(usize, u32)>,
}

/// Chooses rows for the components without mass, as long as they lower the error: one after the other the row that lowers it most
/// on its own, besides those chosen before. Copies of a row count as one of their weight. The rows have these labels, in this order
/// if there is one, and the centres go `to_means`. `None` if no row lowers it.
pub(super) fn fill<F: Float>(
    view: View<'_, F>,
    centres: &Centres<F>,
    mass: &dyn Fn(usize) -> f64,
    to_means: &dyn Fn(&mut Centres<F>),
    labels: &[u32],
    order: &[usize],
) -> Result<Option<Filled<F>>> {
    let mut centres = centres.clone();
    let mut means = centres.clone();
    to_means(&mut means);
    let empty: Vec<usize> = (0..centres.len())
        .filter(|c| mass(*c) <= 0.0)
        .take(MOST)
        .collect();
    let keep = |far: &mut Vec<Far>| {
        // Rows that gain the same are in their order, so it does not matter who was seen first.
        let best_first = |a: &Far, b: &Far| b.gain.total_cmp(&a.gain).then(a.row.cmp(&b.row));
        far.sort_unstable_by(best_first);
        far.truncate(2 * empty.len() + SPARE);
    };
    let part = shard_rows(view.data, means.len(), 0);
    let parts = parallel::map_blocks(labels.len(), part, |_, range| {
        let mut far = Vec::new();
        let mut rows = Rows::default();
        let mut squared = Vec::new();
        for from in range.clone().step_by(BLOCK) {
            let places = from..range.end.min(from + BLOCK);
            match order.get(places.clone()) {
                Some(order) => view.data.gather(order, view.frame, &mut rows)?,
                None => view.data.load(places.clone(), view.frame, &mut rows)?,
            }
            for (i, place) in places.enumerate() {
                rows.distances_to(i, &means, &labels[place..=place], &mut squared);
                let row = *order.get(place).unwrap_or(&place);
                let squared = squared[0].to_f64();
                let gain = rows.weight(i) * squared;
                if gain > 0.0 {
                    far.push(Far { row, squared, gain });
                }
            }
            keep(&mut far);
        }
        Ok(far)
    });
    let mut far = parallel::joined(parts)?;
    keep(&mut far);
    if far.is_empty() {
        return Ok(None);
    }
    let numbers: Vec<usize> = far.iter().map(|far| far.row).collect();
    let mut rows = Rows::default();
    view.data.gather(&numbers, view.frame, &mut rows)?;
    let (order, weights) = copies(&rows);
    let mut chosen = Vec::new();
    let mut to_centre = vec![F::zero(); rows.len()];
    for c in empty {
        let gain = |i: usize| weights[i] * far[i].squared;
        // By value, so that the order of the rows does not matter.
        let larger = |a: usize, b: usize| gain(b) > (1.0 + ROUNDING) * gain(a);
        let best = |a: usize, b: usize| if larger(a, b) { b } else { a };
        let some = order.iter().copied().filter(|i| gain(*i) > 0.0);
        let Some(best) = some.reduce(best) else {
            break;
        };
        let centre = rows.coordinates(best);
        rows.distances_from(&centre, &mut to_centre);
        for (far, squared) in far.iter_mut().zip(&to_centre) {
            far.squared = far.squared.min(squared.to_f64());
        }
        centres.replace(c, &centre);
        // Its copies go with it.
        let there = (0..far.len()).filter(|i| to_centre[*i] == F::zero());
        chosen.extend(there.map(|i| (numbers[i], c as u32)));
    }
    Ok(Some(Filled {
        centres,
        rows: chosen,
    }))
}

/// The order of rows by their values, and their weights, where the first of several copies has that of all.
fn copies<F: Float>(rows: &Rows<F>) -> (Vec<usize>, Vec<f64>) {
    let mut weights: Vec<f64> = (0..rows.len()).map(|i| rows.weight(i)).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let by_value = |a: usize, b: usize| {
        let a = rows.coordinates(a);
        let b = rows.coordinates(b);
        a.partial_cmp(&b).unwrap_or(Ordering::Equal)
    };
    sort::by(&mut order, &by_value);
    for same in order.chunk_by(|a, b| by_value(*a, *b).is_eq()) {
        for i in &same[1..] {
            weights[same[0]] += std::mem::take(&mut weights[*i]);
        }
    }
    (order, weights)
}
