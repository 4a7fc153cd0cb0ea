//! One pass over the table: a message to the engine, and its work on one batch of rows. The contribution of a row depends on
//! the row alone, never on its neighbours.

use crate::model::Model;
use crate::partial::{Drawn, Found, Partial};
use crate::rows::Rows;
use coremix::Fixed;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::row::{RowConverter, SortField};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// A pass over all rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Whether a key comes before the columns.
    pub(crate) keyed: bool,
    pub(crate) work: Work,
}

/// The quantities that a pass computes from the rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// The range of each coordinate.
    Ranges,
    /// Sums about the middle of each coordinate.
    Moments(Vec<Middle>),
    /// Draws of the coreset.
    Sample(Sample),
    /// Sums of an E-step with supports of this width.
    EStep(Model, usize),
    /// The part of these sums that a score needs.
    Score(Model),
}

/// The middle of the range of a coordinate, and the fixed point of y - middle and of their squares.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Middle {
    pub(crate) at: f64,
    pub(crate) first: Fixed,
    pub(crate) second: Fixed,
}

impl Middle {
    pub(crate) fn of((min, max): (f64, f64)) -> Self {
        let at = 0.5 * min + 0.5 * max;
        let farthest = (min - at).abs().max((max - at).abs());
        Self {
            at,
            first: Fixed::bounding(farthest),
            second: Fixed::bounding(farthest * farthest),
        }
    }
}

/// Which rows are drawn: each by itself, with probability min(1, rate q).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) seed: u64,
    pub(crate) rows: u64,
    pub(crate) rate: f64,
    pub(crate) mean: Vec<f64>,
    /// Sum of all squared distances to the mean.
    pub(crate) spread: f64,
}

const CHANGED: &str =
    "a row that was not there in the first pass: the table must not change during the job";

impl Task {
    /// The result of the task on a batch.
    pub(crate) fn run(&self, columns: &[ArrayRef]) -> Partial {
        let (key, columns) = match columns.split_first() {
            Some((key, columns)) if self.keyed => (Some(key), columns),
            _ => (None, columns),
        };
        let (rows, unusable, found) = match Rows::of(columns) {
            Err(fault) => (0, Vec::new(), Err(fault)),
            Ok(rows) => {
                let found = match rows.unusable.iter().any(|unusable| unusable.any()) {
                    true => Ok(Found::Nothing),
                    false => self.work.find(&rows, key),
                };
                (rows.len as u64, rows.unusable, found)
            }
        };
        Partial {
            rows,
            unusable,
            found: found.unwrap_or_else(Found::Fault),
        }
    }
}

impl Work {
    fn find(&self, rows: &Rows, key: Option<&ArrayRef>) -> Result<Found, String> {
        let of_core = |error: coremix::Error| error.to_string();
        Ok(match self {
            _ if rows.len == 0 => Found::Nothing,
            Self::Ranges => Found::Ranges(ranges(rows)),
            Self::Moments(middles) => Found::Moments(moments(rows, middles).ok_or(CHANGED)?),
            Self::Sample(of) if rows.dim != of.mean.len() => Err(CHANGED)?,
            Self::Sample(of) => Found::Drawn(of.draw(rows, key)?),
            Self::EStep(model, width) => {
                Found::Sums(model.sums(rows, Some(*width)).map_err(of_core)?)
            }
            Self::Score(model) => Found::Sums(model.sums(rows, None).map_err(of_core)?),
        })
    }
}

fn ranges(rows: &Rows) -> Vec<(f64, f64)> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); rows.dim];
    for i in 0..rows.len {
        for (range, y) in ranges.iter_mut().zip(rows.row(i)) {
            *range = (range.0.min(*y), range.1.max(*y));
        }
    }
    ranges
}

/// The sums; `None` for rows that are far outside the ranges, or have other columns.
fn moments(rows: &Rows, middles: &[Middle]) -> Option<Vec<(i128, i128)>> {
    let mut sums = vec![(0i128, 0i128); middles.len()];
    for i in 0..rows.len {
        let row = rows.row(i);
        if row.len() != sums.len() {
            return None;
        }
        for ((sums, middle), y) in sums.iter_mut().zip(middles).zip(row) {
            let x = y - middle.at;
            sums.0 = sums.0.checked_add(middle.first.cut(x)?)?;
            sums.1 = sums.1.checked_add(middle.second.cut(x * x)?)?;
        }
    }
    Some(sums)
}

impl Sample {
    /// Probability of a row at this squared distance from the mean: at most 1.
    fn probability(&self, squared: f64) -> f64 {
        let rows = self.rows as f64;
        let share = match self.spread > 0.0 {
            true => 0.5 / rows + 0.5 * squared / self.spread,
            false => 1.0 / rows,
        };
        (self.rate * share).min(1.0)
    }

    /// The rows whose content and key have a hash, as a number in [0, 1), that is below their probability.
    fn draw(
        &self,
        rows: &Rows,
        key: Option<&ArrayRef>,
    ) -> Result<BTreeMap<Vec<u8>, Drawn>, String> {
        let in_bytes = |key: &ArrayRef| {
            let field = SortField::new(key.data_type().clone());
            let converter = RowConverter::new(vec![field])?;
            converter.convert_columns(std::slice::from_ref(key))
        };
        let keys = key.map(in_bytes).transpose();
        let keys = keys.map_err(|error| format!("the key: {error}"))?;
        let (mut drawn, mut identity) = (BTreeMap::new(), Vec::new());
        for i in 0..rows.len {
            let row = rows.row(i);
            let squares = row
                .iter()
                .zip(&self.mean)
                .map(|(y, mean)| (y - mean).powi(2));
            let probability = self.probability(squares.sum());
            identity.clear();
            identity.extend(row.iter().flat_map(|y| y.to_bits().to_le_bytes()));
            if let Some(keys) = &keys {
                identity.extend(keys.row(i).data());
            }
            let hash = XxHash3_64::oneshot_with_seed(self.seed, &identity);
            let uniform = (hash >> 11) as f64 / (1u64 << 53) as f64;
            if uniform < probability {
                let copies = 0;
                let first = Drawn {
                    copies,
                    probability,
                };
                drawn.entry(identity.clone()).or_insert(first).copies += 1;
            }
        }
        Ok(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use coremix::ndarray::array;
    use datafusion::arrow::array::Float32Array;
    use std::sync::Arc;

    /// Half of the rate by number, half by squared distance; all rows where the rate allows it.
    #[test]
    fn probabilities_follow_the_coreset() {
        let mut of = Sample {
            seed: 0,
            rows: 100,
            rate: 10.0,
            mean: vec![0.0],
            spread: 50.0,
        };
        assert_eq!(of.probability(0.0), 0.05);
        assert!((of.probability(1.0) - 0.15).abs() < 1e-15);
        of.spread = 0.0;
        assert_eq!(of.probability(0.0), 0.1);
        of.rate = f64::INFINITY;
        assert_eq!(of.probability(0.0), 1.0);
    }

    /// Anything may come as a message: an error, never a panic.
    #[test]
    fn damaged_messages_and_other_columns_never_panic() {
        let means = array![[0.0, 1.0], [2.0, 3.0], [4.0, 4.0]];
        let model = || Model::from_parameters(Precision::Single, means.view(), 0.5).unwrap();
        let works = [
            Work::Ranges,
            Work::Moments(vec![Middle::of((-2.0, 2.0)), Middle::of((0.0, 9.0))]),
            Work::Sample(Sample {
                seed: 3,
                rows: 4,
                rate: 2.5,
                mean: vec![1.0, 1.0],
                spread: 9.0,
            }),
            Work::EStep(model(), 1),
            Work::EStep(model(), 2),
            Work::EStep(model(), 3),
            Work::Score(model()),
        ];
        let column = |x: f32| Arc::new(Float32Array::from(vec![x, 1.0, 2.5])) as ArrayRef;
        let columns = [column(0.5), column(3.0)];
        for work in works {
            let keyed = false;
            let task = Task { keyed, work };
            let bytes = postcard::to_allocvec(&task).unwrap();
            let found = task.run(&columns);
            let back: Task = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(found, back.run(&columns));
            assert!(!matches!(found.found, Found::Fault(_)), "{found:?}");
            let three = [column(1.0), column(1.0), column(2.0)];
            let other = matches!(task.run(&three).found, Found::Fault(_));
            assert!(other || matches!(task.work, Work::Ranges));
            for at in 0..bytes.len() {
                assert!(postcard::from_bytes::<Task>(&bytes[..at]).is_err());
                for flip in [1, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    if let Ok(task) = postcard::from_bytes::<Task>(&damaged) {
                        let found = task.run(&columns);
                        let _ = found.clone().merge(back.run(&columns));
                    }
                }
            }
        }
    }
}
