//! The result of a pass on some rows. Two results merge into that on both sets of rows, in any order and any grouping.

use crate::rows::{Unusable, ragged};
use coremix::families::ExactSums;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of a pass on some rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partial {
    pub(crate) rows: u64,
    /// Per column of the table.
    pub(crate) unusable: Vec<Unusable>,
    pub(crate) found: Found,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Found {
    /// Rows with values that cannot be used are only counted.
    Nothing,
    /// Rows that cannot be used, and why. It is a result: an error would be tried again by the engine.
    Fault(String),
    /// Least and largest of each coordinate; none as long as a column of lists has had no list.
    Ranges(Vec<(f64, f64)>),
    /// For each coordinate, the sums of y - middle and of their squares.
    Moments(Vec<(i128, i128)>),
    /// Rows that were drawn, by their content and key.
    Drawn(BTreeMap<Vec<u8>, Drawn>),
    Sums(ExactSums),
}

/// A row that was drawn: how often it occurs, and its probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Drawn {
    pub(crate) copies: u64,
    pub(crate) probability: f64,
}

impl Partial {
    pub(crate) fn merge(mut self, mut other: Self) -> Self {
        if self.unusable.len() < other.unusable.len() {
            std::mem::swap(&mut self.unusable, &mut other.unusable);
        }
        let columns = self.unusable.iter_mut().zip(other.unusable);
        columns.for_each(|(total, part)| total.add(part));
        Self {
            rows: self.rows.saturating_add(other.rows),
            unusable: self.unusable,
            found: self.found.merge(other.found),
        }
    }
}

impl Found {
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            // The first in the alphabet: the order of the rows must not matter here either.
            (Self::Fault(a), Self::Fault(b)) => Self::Fault(a.min(b)),
            (fault @ Self::Fault(_), _) | (_, fault @ Self::Fault(_)) => fault,
            (Self::Nothing, found) | (found, Self::Nothing) => found,
            (Self::Ranges(mut a), Self::Ranges(b)) => {
                if a.is_empty() || b.is_empty() {
                    return Self::Ranges(if a.is_empty() { b } else { a });
                }
                if a.len() != b.len() {
                    return Self::Fault(ragged(a.len(), b.len()));
                }
                for (range, other) in a.iter_mut().zip(b) {
                    *range = (range.0.min(other.0), range.1.max(other.1));
                }
                Self::Ranges(a)
            }
            (Self::Moments(mut a), Self::Moments(b)) if a.len() == b.len() => {
                for (sums, other) in a.iter_mut().zip(b) {
                    // Sums of a table that changed may leave the range. The number of rows tells.
                    *sums = (sums.0.wrapping_add(other.0), sums.1.wrapping_add(other.1));
                }
                Self::Moments(a)
            }
            (Self::Drawn(mut a), Self::Drawn(b)) => {
                for (row, drawn) in b {
                    let copies = a.get(&row).map_or(0, |known| known.copies);
                    let copies = drawn.copies.saturating_add(copies);
                    a.insert(row, Drawn { copies, ..drawn });
                }
                Self::Drawn(a)
            }
            (Self::Sums(a), Self::Sums(b)) => match a.merge(b) {
                Ok(sums) => Self::Sums(sums),
                Err(error) => Self::Fault(error.to_string()),
            },
            _ => Self::Fault("results of different passes cannot be merged".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coremix::data::Dense;
    use coremix::families::GaussianMixture;
    use coremix::ndarray::array;

    #[test]
    fn merging_has_no_order() {
        let means = array![[0.0], [3.0]];
        let model = GaussianMixture::tied_spherical(means.view(), 1.0).unwrap();
        let sums = |x: f64| {
            let row = array![[x]];
            ExactSums::e_step(&model, &Dense::new(&row).unwrap(), None, 2).unwrap()
        };
        let drawn = |row: &[u8]| {
            let (copies, probability) = (1, 0.5);
            let drawn = Drawn {
                copies,
                probability,
            };
            Found::Drawn([(row.to_vec(), drawn)].into())
        };
        let some = [
            Found::Nothing,
            Found::Fault("a".into()),
            Found::Ranges(vec![(1.0, 2.0)]),
            Found::Ranges(vec![]),
            Found::Ranges(vec![(-7.5, 0.0)]),
            Found::Moments(vec![(i128::MAX, -1)]),
            drawn(b"ab"),
            drawn(b"ac"),
            Found::Sums(sums(0.3)),
            Found::Sums(sums(-9.0)),
        ];
        for a in &some {
            for b in &some {
                let ab = a.clone().merge(b.clone());
                assert_eq!(ab, b.clone().merge(a.clone()));
                for c in &some {
                    let right = a.clone().merge(b.clone().merge(c.clone()));
                    assert_eq!(ab.clone().merge(c.clone()), right, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
