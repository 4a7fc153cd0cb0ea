//! Rows for components without mass, where there is one variance for all (E54): nothing else says where such a component lies.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Centres, Rows, View};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Components that get a row at once, at most: more of them wait for the next iteration.
const MOST: usize = 1024;

/// Rows to choose from, besides two for each component.
const SPARE: usize = 64;

/// A row that is not at the mean of its component.
#[derive(Clone, Copy, Debug)]
struct Far {
    row: usize,
    squared: f64,
    /// Its weight times that.
    gain: f64,
}

/// The rows with the largest weighted squared distances to the means of their components.
#[derive(Debug)]
pub(super) struct FarRows {
    components: usize,
    rows: Vec<Far>,
    /// Below this, a row is none of them.
    least: f64,
}

/// A row that becomes the centre of a component: its number, and its coordinates in the phase, padded.
pub(super) struct NewCentre<F> {
    row: usize,
    centre: Vec<F>,
}

/// Puts rows in the places of the components without mass. Returns which component each of these rows has now.
pub(super) fn fill<F: Float>(
    vacant: Vec<NewCentre<F>>,
    mass: impl Fn(usize) -> f64,
    centres: &mut Centres<F>,
) -> BTreeMap<usize, u32> {
    let empty = (0..centres.len()).filter(|c| mass(*c) <= 0.0);
    let pairs = empty.zip(vacant).map(|(c, new)| {
        centres.replace(c, &new.centre);
        (new.row, c as u32)
    });
    pairs.collect()
}

impl FarRows {
    /// No rows yet, for so many components.
    pub(super) fn new(components: usize) -> Self {
        Self {
            components: components.min(MOST),
            rows: Vec::new(),
            least: 0.0,
        }
    }

    fn most(&self) -> usize {
        2 * self.components + SPARE
    }

    /// Sees the row of this number, at a squared distance from the mean of its component.
    pub(super) fn see(&mut self, row: usize, weight: f64, squared: f64) {
        let gain = weight * squared;
        if gain > 0.0 && gain >= self.least {
            self.rows.push(Far { row, squared, gain });
            if self.rows.len() >= 2 * self.most() {
                self.cut();
            }
        }
    }

    /// Leaves the best ones. Rows that gain the same are in their order, so it does not matter who was seen first.
    pub(super) fn cut(&mut self) {
        let best_first = |a: &Far, b: &Far| b.gain.total_cmp(&a.gain).then(a.row.cmp(&b.row));
        self.rows.sort_unstable_by(best_first);
        if self.rows.len() >= self.most() {
            self.rows.truncate(self.most());
            self.least = self.rows.last().map_or(0.0, |far| far.gain);
        }
    }

    /// A row for each of the components, as long as that lowers the error: one after the other the row that lowers it most on
    /// its own, beside those chosen before. Copies of a row count as one of their weight.
    pub(super) fn choose<F: Float>(
        parts: Vec<Self>,
        view: View<'_, F>,
    ) -> Result<Vec<NewCentre<F>>> {
        let all = parts.into_iter().reduce(|mut all, part| {
            all.rows.extend(part.rows);
            all.cut();
            all
        });
        let Some(all) = all else {
            return Ok(Vec::new());
        };
        let numbers: Vec<usize> = all.rows.iter().map(|far| far.row).collect();
        let mut rows = Rows::default();
        view.data.gather(&numbers, view.frame, &mut rows)?;
        let mut weights = copies(&rows);
        let mut squared: Vec<f64> = all.rows.iter().map(|far| far.squared).collect();
        let (mut chosen, mut apart) = (Vec::new(), vec![F::zero(); rows.len()]);
        while chosen.len() < all.components {
            let gain = |i: usize| weights[i] * squared[i];
            let best = |a: usize, b: usize| if gain(b) > gain(a) { b } else { a };
            let Some(best) = (0..rows.len()).filter(|i| gain(*i) > 0.0).reduce(best) else {
                break;
            };
            let centre = rows.coordinates(best).into_owned();
            rows.distances_from(&centre, &mut apart);
            for (squared, apart) in squared.iter_mut().zip(&apart) {
                *squared = squared.min(apart.to_f64());
            }
            // Its distance from itself is 0, and that is certain.
            weights[best] = 0.0;
            let row = numbers[best];
            chosen.push(NewCentre { row, centre });
        }
        Ok(chosen)
    }
}

/// The weights of rows, where the first of several copies has that of all.
fn copies<F: Float>(rows: &Rows<F>) -> Vec<f64> {
    let mut weights: Vec<f64> = (0..rows.len()).map(|i| rows.weight(i)).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let by_value = |a: &usize, b: &usize| {
        let (a, b) = (rows.coordinates(*a), rows.coordinates(*b));
        a.partial_cmp(&b).unwrap_or(Ordering::Equal)
    };
    order.sort_by(by_value);
    for same in order.chunk_by(|a, b| by_value(a, b).is_eq()) {
        let total = same.iter().map(|i| weights[*i]).sum();
        same.iter().for_each(|i| weights[*i] = 0.0);
        weights[same[0]] = total;
    }
    weights
}
