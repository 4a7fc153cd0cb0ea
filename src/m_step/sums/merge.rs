//! Sums of all rows from sums of some.

use super::moments::{Moments, OfKind};
use super::products::Products;
use super::scatter::Scatter;
use crate::base::parallel;
use crate::kernels::stride;

impl Moments {
    pub(super) fn merge_all(mut parts: Vec<&mut Self>) -> Self {
        /// Components added up together.
        const COMPONENTS: usize = 32;

        let first = parts.first().expect("moments of some rows");
        let k = first.mass.len();
        let stride = stride(first.dim);
        let mut total = Self::zeros(k, first.dim, first.kind).with_own(first.own.len());
        if parts.iter().any(|part| !part.observed.is_empty()) {
            total.track_observed();
        }
        add_all(&mut total.mass, &parts, |part| &part.mass);
        add_all(&mut total.observed, &parts, |part| &part.observed);
        add_all(&mut total.second, &parts, |part| &part.second);
        add_all(&mut total.own, &parts, |part| &part.own);
        total.sparse.zeros_wait = parts.iter().any(|part| part.sparse.zeros_wait);
        total.places = (1..=k as u32).collect();
        total.first = vec![0.0; (1 + k) * stride];
        let sums = &mut total.first[stride..];
        parallel::map_chunks(sums, COMPONENTS * stride, |_, range, sums| {
            for (c, sums) in (range.start / stride..).zip(sums.chunks_exact_mut(stride)) {
                for part in parts.iter().filter(|part| part.places[c] > 0) {
                    for (sum, first) in sums.iter_mut().zip(part.first(c)) {
                        *sum += first;
                    }
                }
            }
        });
        for part in &mut parts {
            total.sparse.waiting.append(&mut part.sparse.waiting);
        }
        let further = parts.iter_mut().map(|part| &mut part.of_kind);
        total.of_kind = OfKind::merged(further.collect());
        parallel::map_chunks(&mut parts, 1, |_, _, parts| parts[0].clear());
        total
    }

    /// No rows added, in the memory there is.
    pub(super) fn clear(&mut self) {
        self.mass.fill(0.0);
        self.observed.clear();
        self.places.fill(0);
        self.first.truncate(stride(self.dim));
        self.second.fill(0.0);
        self.sparse.zeros_wait = false;
        self.own.fill(0.0);
        match &mut self.of_kind {
            OfKind::None | OfKind::Parts(_) => (),
            OfKind::Narrow(narrow) => *narrow = false,
            OfKind::Shared(scatter) => *scatter = Scatter::default(),
            OfKind::Products(products) => products.of.iter_mut().for_each(Vec::clear),
        }
    }
}

impl OfKind {
    /// The sums of all rows from the sums of some (at least one).
    fn merged(mut parts: Vec<&mut Self>) -> Self {
        match &*parts[0] {
            Self::None => Self::None,
            Self::Narrow(_) => Self::Narrow(parts.iter().any(|part| **part == Self::Narrow(true))),
            Self::Shared(_) => {
                let scatters = parts.iter_mut().filter_map(|part| part.scatter());
                Self::Shared(Scatter::merged(&scatters.collect::<Vec<_>>()))
            }
            Self::Products(_) => {
                let products = parts.into_iter().filter_map(Self::products);
                Self::Products(Products::merged(products.collect()))
            }
            Self::Parts(first) => {
                let number = first.len();
                let mut merged = |p: usize| {
                    let blocks = parts.iter_mut().filter_map(|part| part.parts().get_mut(p));
                    Moments::merge_all(blocks.collect())
                };
                Self::Parts((0..number).map(&mut merged).collect())
            }
        }
    }
}

/// Adds the sums of every part to `total`, element by element in the order of the parts; a part without sums adds
/// nothing.
fn add_all(total: &mut [f64], parts: &[&mut Moments], of: impl Fn(&Moments) -> &[f64] + Sync) {
    const ELEMENTS: usize = 1 << 13;
    parallel::map_chunks(total, ELEMENTS, |_, range, total| {
        for part in parts.iter().filter(|part| !of(part).is_empty()) {
            for (total, sum) in total.iter_mut().zip(&of(part)[range.clone()]) {
                *total += sum;
            }
        }
    });
}
