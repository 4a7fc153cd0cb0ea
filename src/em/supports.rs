//! Labels and supports of rows between searches, and the order in which rows are searched. Full supports are not stored.

use crate::base::file_fault::FileFault;
use crate::base::parallel;
use crate::base::sort;
use crate::io::rule;
use crate::model::block::UNSET;
use ndarray::{Array1, Array2};

/// Places moved together.
const PLACES: usize = 1 << 13;

/// Labels (n) and truncated supports (n, width); no supports when every support is everything.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Supports {
    /// Indices per row: the width, or 0 when supports are full.
    pub(super) per_row: usize,
    pub(super) supports: Vec<u32>,
    labels: Vec<u32>,
    /// The row at each place; empty as long as all are at their own.
    order: Vec<usize>,
}

/// The part of it that belongs to some consecutive rows.
pub(super) struct SupportRows<'a> {
    per_row: usize,
    pub(super) supports: &'a mut [u32],
    pub(super) labels: &'a mut [u32],
    /// The rows at these places; empty as long as all are at their own.
    pub(super) order: &'a [usize],
}

impl Supports {
    pub(crate) fn unset(n: usize, width: usize, k: usize) -> Self {
        let per_row = if width < k { width } else { 0 };
        Self {
            per_row,
            supports: vec![UNSET; n * per_row],
            labels: vec![0; n],
            ..Self::default()
        }
    }

    pub(crate) fn of_labels(labels: Vec<u32>, k: usize) -> Self {
        let listed = k > 1;
        Self {
            per_row: usize::from(listed),
            supports: if listed { labels.clone() } else { Vec::new() },
            labels,
            ..Self::default()
        }
    }

    /// Checks those of a file, for `n` rows and `k` components.
    pub(crate) fn check(&self, n: usize, k: usize) -> Result<(), FileFault> {
        let known = |c: &u32| (*c as usize) < k;
        let labelled = self.labels.len() == n && self.labels.iter().all(known);
        rule(labelled, "labels", "must be a component for each row")?;
        let width = self.per_row;
        let size = self.supports.len();
        let sized = width < k && Some(size) == n.checked_mul(width);
        let sound = |support: &[u32]| {
            let repeated = |i: usize| support[..i].contains(&support[i]);
            support.iter().all(|c| *c == UNSET)
                || support.iter().all(known) && !(0..support.len()).any(repeated)
        };
        let sound = sized && self.supports.chunks_exact(width.max(1)).all(sound);
        let of_row = "must be different components of each row, or none";
        rule(sound, "supports", of_row)?;
        let ordered = self.order.is_empty() || sort::is_permutation(&self.order, n);
        rule(ordered, "order", "must be all rows, each once")
    }

    /// Gives rows to components, where rows have one each: the next search begins there.
    pub(super) fn give(&mut self, rows: &[(usize, u32)]) {
        let mut places: Vec<usize> = (0..self.labels.len()).collect();
        for (place, row) in self.order.iter().enumerate() {
            places[*row] = place;
        }
        for &(row, c) in rows.iter().filter(|_| self.per_row == 1) {
            (self.supports[places[row]], self.labels[places[row]]) = (c, c);
        }
    }

    /// The labels, and the row at each place: none as long as all are at their own.
    pub(super) fn places(&self) -> (&[u32], &[usize]) {
        (&self.labels, &self.order)
    }

    /// Orders rows by their labels; those with the same label stay in their order.
    pub(super) fn order_by_label(&mut self, k: usize) {
        let n = self.labels.len();
        let (_, mut from) = sort::sorted_apart(k, 0, n, |place| (self.labels[place], place));
        let labels = &self.labels;
        let supports = &self.supports;
        let width = self.per_row;
        let mut new_labels = vec![0; labels.len()];
        let mut new_supports = vec![0; supports.len()];
        parallel::map_chunks(&mut new_labels, PLACES, |_, range, new| {
            for (new, &from) in new.iter_mut().zip(&from[range]) {
                *new = labels[from];
            }
        });
        // Supports of all components are not listed: their width is 0, and there is nothing to copy.
        let places = (PLACES * width).max(1);
        parallel::map_chunks(&mut new_supports, places, |_, range, new| {
            let from = &from[range.start / width..range.end / width];
            for (new, &from) in new.chunks_exact_mut(width).zip(from) {
                new.copy_from_slice(&supports[from * width..(from + 1) * width]);
            }
        });
        if !self.order.is_empty() {
            let order = &self.order;
            parallel::map_chunks(&mut from, PLACES, |_, _, from| {
                from.iter_mut().for_each(|from| *from = order[*from]);
            });
        }
        (self.labels, self.supports, self.order) = (new_labels, new_supports, from);
    }

    pub(super) fn rows(&mut self) -> SupportRows<'_> {
        SupportRows {
            per_row: self.per_row,
            supports: &mut self.supports,
            labels: &mut self.labels,
            order: &self.order,
        }
    }

    pub(crate) fn into_labels(self) -> Vec<u32> {
        self.into_arrays().0.into_raw_vec_and_offset().0
    }

    /// Labels (n), and supports (n, width), best first, unless they are full.
    pub(crate) fn into_arrays(mut self) -> (Array1<u32>, Option<Array2<u32>>) {
        if !self.order.is_empty() {
            let places = self.order.iter().enumerate();
            let width = self.per_row;
            let mut labels = self.labels.clone();
            let mut supports = self.supports.clone();
            for (place, &row) in places {
                labels[row] = self.labels[place];
                supports[row * width..(row + 1) * width]
                    .copy_from_slice(&self.supports[place * width..(place + 1) * width]);
            }
            (self.labels, self.supports) = (labels, supports);
        }
        let shape = (self.labels.len(), self.per_row);
        let supports = (self.per_row > 0)
            .then(|| Array2::from_shape_vec(shape, self.supports).expect("n x width numbers"));
        (self.labels.into(), supports)
    }
}

impl<'a> SupportRows<'a> {
    /// Consecutive parts of `rows` rows each, the last one shorter.
    pub(super) fn into_parts(self, rows: usize) -> Vec<SupportRows<'a>> {
        let per_row = self.per_row;
        let mut rest = self.supports;
        let mut order = self.order;
        let mut parts = Vec::new();
        for labels in self.labels.chunks_mut(rows) {
            let (supports, after) = rest.split_at_mut(labels.len() * per_row);
            rest = after;
            let (places, after) = order.split_at(labels.len().min(order.len()));
            order = after;
            parts.push(SupportRows {
                per_row,
                supports,
                labels,
                order: places,
            });
        }
        parts
    }
}
