//! What a pass finds on some rows. Two of them merge into what it finds on both: the same in any order and any grouping.

use crate::bytes::{Reader, Writer};
use crate::rows::Unusable;
use std::collections::BTreeMap;

/// The result of a pass on some rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Partial {
    /// Rows that cannot be used, and why. It is a result: an error would be tried again by the engine.
    Fault(String),
    Range(Range),
    Sums {
        rows: u64,
        sums: Vec<i128>,
    },
    Sample(Drawn),
    Em(Statistics),
}

/// Number of rows, and the range of each coordinate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) rows: u64,
    /// Least and largest; empty as long as a column of lists has had none.
    pub(crate) ranges: Vec<(f64, f64)>,
    /// Per column of the table.
    pub(crate) unusable: Vec<Unusable>,
}

/// Rows that were drawn: the content and the key of a row, how often it occurs, and its probability.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) rows: u64,
    pub(crate) drawn: BTreeMap<Vec<u8>, (u64, f64)>,
}

/// Sums of an E-step, in units of fixed point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) rows: u64,
    /// Squared distances to the nearest mean of the support.
    pub(crate) best: i128,
    /// Squared distances to all means of the support, by responsibility.
    pub(crate) squared: i128,
    /// What the free energy has beside the nearest ones.
    pub(crate) spread: i128,
    /// Per component its mass and its sums (1 + d); empty for a component without mass.
    pub(crate) components: Vec<Vec<i128>>,
}

/// Wrapping: sums of a table that changed under the job may leave the range. The number of rows tells.
fn add(total: &mut i128, part: i128) {
    *total = total.wrapping_add(part);
}

fn add_all(total: &mut [i128], part: &[i128]) {
    total.iter_mut().zip(part).for_each(|(t, p)| add(t, *p));
}

impl Partial {
    /// Both together.
    pub(crate) fn merge(self, other: Self) -> Self {
        match (self, other) {
            // The first in the alphabet: the order of the rows must not matter here either.
            (Self::Fault(a), Self::Fault(b)) => Self::Fault(a.min(b)),
            (Self::Fault(fault), _) | (_, Self::Fault(fault)) => Self::Fault(fault),
            (Self::Range(a), Self::Range(b)) => a.merge(b),
            (
                Self::Sums { rows, mut sums },
                Self::Sums {
                    rows: more,
                    sums: part,
                },
            ) if sums.len() == part.len() => {
                add_all(&mut sums, &part);
                Self::Sums {
                    rows: rows.saturating_add(more),
                    sums,
                }
            }
            (Self::Sample(a), Self::Sample(b)) => Self::Sample(a.merge(b)),
            (Self::Em(a), Self::Em(b)) if a.components.len() == b.components.len() => {
                Self::Em(a.merge(b))
            }
            _ => Self::Fault("results of different passes cannot be merged".to_string()),
        }
    }

    /// The message.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Fault(fault) => {
                to.u8(0);
                to.bytes(fault.as_bytes());
            }
            Self::Range(range) => {
                to.u8(1);
                to.u64(range.rows);
                to.u64(range.ranges.len() as u64);
                for (least, largest) in &range.ranges {
                    to.f64(*least);
                    to.f64(*largest);
                }
                to.u64(range.unusable.len() as u64);
                for unusable in &range.unusable {
                    to.u64(unusable.nulls);
                    to.u64(unusable.not_finite);
                }
            }
            Self::Sums { rows, sums } => {
                to.u8(2);
                to.u64(*rows);
                to.i128s(sums);
            }
            Self::Sample(drawn) => {
                to.u8(3);
                to.u64(drawn.rows);
                to.u64(drawn.drawn.len() as u64);
                for (row, (copies, probability)) in &drawn.drawn {
                    to.bytes(row);
                    to.u64(*copies);
                    to.f64(*probability);
                }
            }
            Self::Em(statistics) => {
                to.u8(4);
                to.u64(statistics.rows);
                to.i128(statistics.best);
                to.i128(statistics.squared);
                to.i128(statistics.spread);
                to.u64(statistics.components.len() as u64);
                statistics.components.iter().for_each(|sums| to.i128s(sums));
            }
        }
        to.finish()
    }

    /// The result of a message; `None` if it is none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let partial = match from.u8()? {
            0 => Self::Fault(from.text()?),
            1 => {
                let rows = from.u64()?;
                let ranges: Option<_> = (0..from.count(16)?)
                    .map(|_| Some((from.f64()?, from.f64()?)))
                    .collect();
                let unusable: Option<_> = (0..from.count(16)?)
                    .map(|_| {
                        Some(Unusable {
                            nulls: from.u64()?,
                            not_finite: from.u64()?,
                        })
                    })
                    .collect();
                Self::Range(Range {
                    rows,
                    ranges: ranges?,
                    unusable: unusable?,
                })
            }
            2 => Self::Sums {
                rows: from.u64()?,
                sums: from.i128s()?,
            },
            3 => {
                let rows = from.u64()?;
                let drawn: Option<_> = (0..from.count(24)?)
                    .map(|_| Some((from.bytes()?.to_vec(), (from.u64()?, from.f64()?))))
                    .collect();
                Self::Sample(Drawn {
                    rows,
                    drawn: drawn?,
                })
            }
            4 => Self::Em(Statistics {
                rows: from.u64()?,
                best: from.i128()?,
                squared: from.i128()?,
                spread: from.i128()?,
                components: (0..from.count(8)?)
                    .map(|_| from.i128s())
                    .collect::<Option<_>>()?,
            }),
            _ => return None,
        };
        from.end(partial)
    }

    /// Memory that it takes, roughly.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Fault(fault) => fault.len(),
            Self::Range(range) => 16 * (range.ranges.len() + range.unusable.len()),
            Self::Sums { sums, .. } => 16 * sums.len(),
            Self::Sample(drawn) => drawn.drawn.keys().map(|row| row.len() + 64).sum(),
            Self::Em(statistics) => {
                let sums = |sums: &Vec<i128>| 24 + 16 * sums.len();
                statistics.components.iter().map(sums).sum()
            }
        }
    }
}

impl Range {
    fn merge(mut self, other: Self) -> Partial {
        if self.ranges.is_empty() {
            self.ranges = other.ranges;
        } else if !other.ranges.is_empty() {
            if self.ranges.len() != other.ranges.len() {
                let (a, b) = (self.ranges.len(), other.ranges.len());
                let what = format!(
                    "lists of {} and of {} numbers; all must be as long",
                    a.min(b),
                    a.max(b)
                );
                return Partial::Fault(what);
            }
            for (range, other) in self.ranges.iter_mut().zip(other.ranges) {
                *range = (range.0.min(other.0), range.1.max(other.1));
            }
        }
        self.rows = self.rows.saturating_add(other.rows);
        let unusable = self.unusable.iter_mut().zip(other.unusable);
        unusable.for_each(|(total, part)| total.add(part));
        Partial::Range(self)
    }
}

impl Drawn {
    fn merge(mut self, other: Self) -> Self {
        self.rows = self.rows.saturating_add(other.rows);
        for (row, (copies, probability)) in other.drawn {
            let known = self.drawn.entry(row).or_insert((0, probability));
            known.0 = known.0.saturating_add(copies);
        }
        self
    }
}

impl Statistics {
    fn merge(mut self, other: Self) -> Self {
        self.rows = self.rows.saturating_add(other.rows);
        add(&mut self.best, other.best);
        add(&mut self.squared, other.squared);
        add(&mut self.spread, other.spread);
        for (sums, part) in self.components.iter_mut().zip(other.components) {
            match sums.is_empty() {
                true => *sums = part,
                false => add_all(sums, &part),
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Partial> {
        let ranges = |x: f64| {
            Partial::Range(Range {
                rows: 2,
                ranges: vec![(x, x + 1.0)],
                unusable: vec![Unusable::default()],
            })
        };
        let drawn = |row: &[u8]| {
            Partial::Sample(Drawn {
                rows: 5,
                drawn: [(row.to_vec(), (1, 0.5))].into(),
            })
        };
        let em = |sums: Vec<Vec<i128>>| {
            Partial::Em(Statistics {
                rows: 1,
                best: 3,
                squared: -4,
                spread: 5,
                components: sums,
            })
        };
        vec![
            Partial::Fault("a".into()),
            ranges(1.0),
            ranges(-7.5),
            Partial::Sums {
                rows: 3,
                sums: vec![i128::MAX, -1],
            },
            drawn(b"ab"),
            drawn(b"ac"),
            em(vec![vec![], vec![1, 2]]),
            em(vec![vec![7, 8], vec![10, 20]]),
        ]
    }

    #[test]
    fn messages_come_back_and_damaged_ones_are_refused() {
        for partial in some() {
            let bytes = partial.to_bytes();
            assert_eq!(Partial::of_bytes(&bytes), Some(partial));
            for end in 0..bytes.len() {
                assert_eq!(Partial::of_bytes(&bytes[..end]), None);
            }
            // No claim of a length may take memory that is not there.
            for at in 1..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] = 0xff;
                let _ = Partial::of_bytes(&damaged);
            }
        }
    }

    #[test]
    fn merging_has_no_order() {
        for a in some() {
            for b in some() {
                let ab = a.clone().merge(b.clone());
                assert_eq!(ab, b.clone().merge(a.clone()));
                for c in some() {
                    let left = ab.clone().merge(c.clone());
                    let right = a.clone().merge(b.clone().merge(c.clone()));
                    assert_eq!(left, right, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
