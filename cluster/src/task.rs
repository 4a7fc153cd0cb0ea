//! What one pass over the table does: a message to every batch of rows.

use crate::bytes::{Reader, Writer};
use crate::model::{Model, Precision};

/// A pass over all rows.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The columns of the table: one if it is a column of lists.
    pub(crate) names: Vec<String>,
    pub(crate) precision: Precision,
    /// Whether a key comes before the columns.
    pub(crate) keyed: bool,
    pub(crate) work: Work,
}

/// What is computed of the rows.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Number of rows, range of each column, and what cannot be used.
    Range,
    /// Sums of y - about per column, or of their squares.
    Sums {
        about: Vec<f64>,
        exponents: Vec<i32>,
        squares: bool,
    },
    /// Draws of the coreset.
    Sample(Sample),
    /// Statistics of an E-step.
    Em(Em),
    /// Labels.
    Assign(Model),
}

/// Which rows are drawn: each by itself, with probability min(1, rate q).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) seed: u64,
    pub(crate) rows: u64,
    pub(crate) rate: f64,
    pub(crate) mean: Vec<f64>,
    /// Sum of all squared distances to the mean.
    pub(crate) spread: f64,
}

/// An E-step, and the fixed point of its sums.
#[derive(Clone, Debug)]
pub(crate) struct Em {
    pub(crate) model: Model,
    /// Members of a support; 1 is k-means.
    pub(crate) width: usize,
    /// Sums are of y - offset.
    pub(crate) offsets: Vec<f64>,
    pub(crate) exponents: Vec<i32>,
    /// Bound of squared distances, as an exponent.
    pub(crate) squared: i32,
    /// Whether an M-step follows, which needs the sums of the components.
    pub(crate) sums: bool,
}

fn write_exponents(to: &mut Writer, exponents: &[i32]) {
    to.u64(exponents.len() as u64);
    exponents.iter().for_each(|e| to.u64(i64::from(*e) as u64));
}

fn read_exponents(from: &mut Reader<'_>) -> Option<Vec<i32>> {
    (0..from.count(8)?)
        .map(|_| i32::try_from(from.u64()? as i64).ok())
        .collect()
}

impl Task {
    /// The message.
    pub(crate) fn to_bytes(&self) -> coremix::Result<Vec<u8>> {
        let mut to = Writer::default();
        to.u64(self.names.len() as u64);
        self.names.iter().for_each(|name| to.bytes(name.as_bytes()));
        to.u8(u8::from(self.precision == Precision::Double));
        to.u8(u8::from(self.keyed));
        match &self.work {
            Work::Range => to.u8(0),
            Work::Sums {
                about,
                exponents,
                squares,
            } => {
                to.u8(1);
                to.f64s(about);
                write_exponents(&mut to, exponents);
                to.u8(u8::from(*squares));
            }
            Work::Sample(sample) => {
                to.u8(2);
                to.u64(sample.seed);
                to.u64(sample.rows);
                to.f64(sample.rate);
                to.f64s(&sample.mean);
                to.f64(sample.spread);
            }
            Work::Em(em) => {
                to.u8(3);
                to.bytes(&em.model.to_bytes(&[])?);
                to.u64(em.width as u64);
                to.f64s(&em.offsets);
                write_exponents(&mut to, &em.exponents);
                write_exponents(&mut to, &[em.squared]);
                to.u8(u8::from(em.sums));
            }
            Work::Assign(model) => {
                to.u8(4);
                to.bytes(&model.to_bytes(&[])?);
            }
        }
        Ok(to.finish())
    }

    /// The task of a message; `None` if it is none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let names: Option<Vec<String>> = (0..from.count(8)?).map(|_| from.text()).collect();
        let names = names.filter(|names| !names.is_empty())?;
        let precision = match from.u8()? {
            0 => Precision::Single,
            _ => Precision::Double,
        };
        let keyed = from.u8()? != 0;
        let work = match from.u8()? {
            0 => Work::Range,
            1 => Work::Sums {
                about: from.f64s()?,
                exponents: read_exponents(&mut from)?,
                squares: from.u8()? != 0,
            },
            2 => Work::Sample(Sample {
                seed: from.u64()?,
                rows: from.u64()?,
                rate: from.f64()?,
                mean: from.f64s()?,
                spread: from.f64()?,
            }),
            3 => Work::Em(Em {
                model: Model::from_bytes(from.bytes()?).ok()?,
                width: usize::try_from(from.u64()?).ok()?,
                offsets: from.f64s()?,
                exponents: read_exponents(&mut from)?,
                squared: *read_exponents(&mut from)?.first()?,
                sums: from.u8()? != 0,
            }),
            4 => Work::Assign(Model::from_bytes(from.bytes()?).ok()?),
            _ => return None,
        };
        let agree = match &work {
            Work::Sums {
                about, exponents, ..
            } => about.len() == exponents.len(),
            Work::Em(em) => {
                let d = em.model.columns();
                em.offsets.len() == d && em.exponents.len() == d
            }
            _ => true,
        };
        let task = Self {
            names,
            precision,
            keyed,
            work,
        };
        from.end(task).filter(|_| agree)
    }

    /// Number of columns that the work is for, if it says so.
    pub(crate) fn dim(&self) -> Option<usize> {
        match &self.work {
            Work::Range => None,
            Work::Sums { about, .. } => Some(about.len()),
            Work::Sample(sample) => Some(sample.mean.len()),
            Work::Em(em) => Some(em.model.columns()),
            Work::Assign(model) => Some(model.columns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::pass;
    use coremix::ndarray::array;
    use datafusion::arrow::array::{ArrayRef, Float32Array};
    use std::sync::Arc;

    fn tasks() -> Vec<Task> {
        let means = array![[0.0, 1.0], [2.0, 3.0], [4.0, 4.0]];
        let model = || Model::from_parameters(Precision::Single, means.view(), 0.5).unwrap();
        let em = |width| {
            Work::Em(Em {
                model: model(),
                width,
                offsets: vec![1.0, 2.0],
                exponents: vec![3, 3],
                squared: 6,
                sums: width != 2,
            })
        };
        let works = [
            Work::Range,
            Work::Sums {
                about: vec![0.0, 1.0],
                exponents: vec![3, 4],
                squares: true,
            },
            Work::Sample(Sample {
                seed: 3,
                rows: 4,
                rate: 2.5,
                mean: vec![1.0, 1.0],
                spread: 9.0,
            }),
            em(1),
            em(2),
            em(3),
            Work::Assign(model()),
        ];
        let task = |work| Task {
            names: vec!["x".into(), "y".into()],
            precision: Precision::Single,
            keyed: false,
            work,
        };
        works.map(task).into()
    }

    #[test]
    fn messages_come_back_and_damaged_ones_never_panic() {
        let column = |x: f32| Arc::new(Float32Array::from(vec![x, 1.0, 2.5])) as ArrayRef;
        let columns = [column(0.5), column(3.0)];
        for task in tasks() {
            let bytes = task.to_bytes().unwrap();
            let back = Task::of_bytes(&bytes).unwrap();
            assert_eq!(back.to_bytes().unwrap(), bytes);
            let found = pass(&back, None, &columns);
            assert_eq!(found, pass(&task, None, &columns));
            for end in 0..bytes.len() {
                assert!(Task::of_bytes(&bytes[..end]).is_none());
            }
            for at in 0..bytes.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    let task = Task::of_bytes(&damaged);
                    if let Some(task) = task.filter(|task| task.names.len() == 2) {
                        let _ = pass(&task, None, &columns);
                    }
                }
            }
        }
    }

    /// Columns that are not those of the task.
    #[test]
    fn other_columns_are_a_fault() {
        let column: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
        for task in tasks() {
            let three = [column.clone(), column.clone(), column.clone()];
            let found = pass(&task, None, &three);
            let is_fault = matches!(found, crate::partial::Partial::Fault(_));
            assert!(is_fault || matches!(task.work, Work::Range), "{found:?}");
        }
    }
}
