//! Rows that are not in memory: blocks of them are read when they are asked for.

use super::{Data, Dense, Frame, Rows, Summary, frame_of_sample};
use crate::base::error::{Error, Result, same_length};
use crate::base::float::{Element, Float};
use crate::base::parallel::{self, BLOCK, Spare};
use ndarray::Array2;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Where rows of numbers come from: a file, a table, a partition. [`Blocks`] makes data of it.
///
/// Rows are read several times in a fit, in any order, by several threads, and must be the same each time.
///
/// ```
/// use coremix::data::{Blocks, Source};
/// use coremix::prelude::*;
/// use std::io;
///
/// /// 1000 rows (i, i mod 7).
/// struct Counted;
///
/// impl Source for Counted {
///     type Element = f32;
///
///     fn len(&self) -> usize {
///         1_000
///     }
///     fn dim(&self) -> usize {
///         2
///     }
///     fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
///         for (i, row) in out.chunks_exact_mut(2).enumerate() {
///             row.copy_from_slice(&[(first + i) as f32, ((first + i) % 7) as f32]);
///         }
///         Ok(())
///     }
/// }
///
/// let data = Blocks::new(Counted)?;
/// let fit = algorithms::fast(10).build()?.fit(&data)?;
/// assert_eq!(fit.model.predict(&data)?.len(), 1_000);
/// # Ok::<(), Error>(())
/// ```
pub trait Source: Sync {
    /// How values are stored: `f32`, `f64`, or `u8` (computed in `f32`).
    type Element: Element;

    /// The name of the source in errors: that of its type.
    fn name(&self) -> &'static str {
        crate::base::stage::name::<Self>()
    }
    /// Number of rows, n.
    fn len(&self) -> usize;
    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of columns, d.
    fn dim(&self) -> usize;
    /// Reads consecutive rows from row `first` on, one after the other: as many as `out`, of a multiple of d numbers, has
    /// room for.
    ///
    /// # Errors
    /// What kept the rows from being read: it is in the error of the fit.
    fn read(&self, first: usize, out: &mut [Self::Element]) -> io::Result<()>;
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            type Element = S::Element;

            fn name(&self) -> &'static str {
                (**self).name()
            }
            fn len(&self) -> usize {
                (**self).len()
            }
            fn dim(&self) -> usize {
                (**self).dim()
            }
            fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
                (**self).read(first, out)
            }
        }
    )+};
}
forward!(&S, Box<S>);

/// Data whose rows are read from a [`Source`] block by block, when they are asked for, and checked once before.
///
/// In memory are the weights, if there are any, and for every thread a block of rows, as they are stored and as they are
/// computed with: 512 rows mostly, 4096 at most. A fit adds what it keeps per row, such as labels, and the rows of its
/// coreset. A phase in a principal subspace keeps the few columns of that subspace, for all rows.
///
/// Fits are those of the same rows in memory ([`Dense`]), bit for bit. Rows in any order, such as those of a coreset, are
/// read in the order of the source, neighbours together. Every iteration over all rows reads all of them.
///
/// Rows that cannot be read later, or that are no longer finite, are an error of the fit or the prediction: it names the
/// source, the row, and says why. A source that gives other finite numbers each time is not noticed.
#[derive(Debug)]
pub struct Blocks<S: Source> {
    source: S,
    len: usize,
    dim: usize,
    weights: Option<Vec<f64>>,
    summary: Summary,
    frame: Frame<FloatOf<S>>,
    /// Places to read into.
    buffers: Spare<Vec<S::Element>>,
    faults: Faults,
}

/// What the rows of a source are computed in.
type FloatOf<S> = <<S as Source>::Element as Element>::Float;

/// Rows that could not be read, and why.
#[derive(Debug, Default)]
struct Faults {
    any: AtomicBool,
    known: Mutex<Vec<(Range<usize>, String)>>,
}

impl Faults {
    /// As many as are kept: a fit ends soon after the first one.
    const MOST: usize = 64;

    /// Replaces what is known about these rows.
    fn note(&self, rows: &Range<usize>, what: Option<String>) {
        if what.is_none() && !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| other.end <= rows.start || rows.end <= other.start);
        if let Some(what) = what {
            if known.len() == Self::MOST {
                known.remove(0);
            }
            known.push((rows.clone(), what));
        }
        self.any.store(!known.is_empty(), Ordering::Relaxed);
    }

    fn about(&self, row: usize) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(rows, _)| rows.contains(&row));
        found.map(|(_, what)| what.clone())
    }
}

/// Why these rows could not be read.
fn unread(rows: &Range<usize>, error: &io::Error) -> String {
    match rows.len() {
        1 => format!("row {} could not be read: {error}", rows.start),
        _ => format!(
            "rows {} to {} could not be read: {error}",
            rows.start,
            rows.end.saturating_sub(1)
        ),
    }
}

impl<S: Source> Blocks<S> {
    /// The rows of a source, each of weight 1. All of them are read once, and some again.
    ///
    /// # Errors
    /// As [`Dense::new`]; [`Error::Stage`] with the name of the source where rows cannot be read.
    pub fn new(source: S) -> Result<Self> {
        Self::checked(source, None)
    }

    /// The rows of a source with weights (n): finite, not negative, not all zero.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for the weights.
    pub fn weighted(source: S, weights: Vec<f64>) -> Result<Self> {
        same_length("weights", source.len(), weights.len())?;
        Self::checked(source, Some(weights))
    }

    /// The source of the rows.
    pub fn source(&self) -> &S {
        &self.source
    }

    fn checked(source: S, weights: Option<Vec<f64>>) -> Result<Self> {
        let (stage, len, dim) = (source.name(), source.len(), source.dim());
        let fault = |what: String| Error::stage(stage, what);
        let numbers = len.max(BLOCK).checked_mul(dim);
        if numbers.is_none_or(|numbers| numbers > isize::MAX as usize / size_of::<f64>()) {
            let what = format!("{len} rows of {dim} numbers are more than can be counted");
            return Err(fault(what));
        }
        let weight = |n: usize| weights.as_ref().map_or(1.0, |weights| weights[n]);
        let summary = Summary::from_blocks(len, dim, weight, |rows, out: &mut [S::Element]| {
            let read = source.read(rows.start, out);
            read.map_err(|error| fault(unread(&rows, &error)))
        })?;
        let mut data = Self {
            source,
            len,
            dim,
            weights,
            summary,
            frame: Frame::new(&vec![0.0; dim], 1.0),
            buffers: Spare::default(),
            faults: Faults::default(),
        };
        // Here, where a row that cannot be read is an error.
        data.frame = frame_of_sample(&data);
        match data.faults.known.lock() {
            Ok(known) if !known.is_empty() => Err(fault(known[0].1.clone())),
            _ => Ok(()),
        }?;
        Ok(data)
    }

    /// Reads consecutive rows. The places of those that could not be read, or are not sound, and why is noted.
    fn read(&self, first: usize, out: &mut [S::Element]) -> Vec<Range<usize>> {
        let rows = first..first + out.len() / self.dim;
        let read = self.source.read(first, out);
        let what = read.as_ref().err().map(|error| unread(&rows, error));
        self.faults.note(&rows, what);
        if read.is_err() {
            return std::iter::once(0..rows.len()).collect();
        }
        let places = out.chunks_exact(self.dim).enumerate();
        let faulty = places.filter(|(_, row)| !sound(row));
        let faulty = faulty.map(|(place, _)| {
            let what =
                "a value is NaN, infinite or too large, but was not when the data was checked";
            let row = first + place;
            self.faults.note(&(row..row + 1), Some(what.into()));
            place..place + 1
        });
        faulty.collect()
    }

    /// Reads rows that are in order, each run of neighbours at once, and returns what [`read`](Self::read) does.
    fn read_sorted(&self, rows: &[usize], out: &mut [S::Element]) -> Vec<Range<usize>> {
        let (mut at, mut faulty) = (0, Vec::new());
        for run in rows.chunk_by(|a, b| a + 1 == *b) {
            let places = at..at + run.len();
            at = places.end;
            let out = &mut out[places.start * self.dim..places.end * self.dim];
            let found = self.read(run[0], out);
            let found = found
                .iter()
                .map(|f| places.start + f.start..places.start + f.end);
            faulty.extend(found);
        }
        faulty
    }

    /// What `work` makes of a place for so many rows.
    fn with_buffer<T>(&self, rows: usize, work: impl FnOnce(&mut [S::Element]) -> T) -> T {
        let mut buffer = self.buffers.take().unwrap_or_default();
        buffer.resize(rows * self.dim, S::Element::ZERO);
        let made = work(&mut buffer);
        self.buffers.give([buffer]);
        made
    }
}

/// Rows in order, each once, and the place of each of the given ones among them.
fn in_order(rows: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |row: &usize| sorted.partition_point(|other| other < row);
    let places = rows.iter().map(place).collect();
    (sorted, places)
}

/// Whether all numbers of a row are as [`Dense`] takes them.
fn sound<T: Element>(row: &[T]) -> bool {
    let within = |x: &T| x.widen().to_f64().abs() <= T::Float::LIMIT;
    // No branch for each number.
    row.iter().fold(true, |sound, x| sound & within(x))
}

impl<S: Source> Data<FloatOf<S>> for Blocks<S> {
    fn name(&self) -> &'static str {
        self.source.name()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn weight(&self, n: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[n])
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn frame(&self) -> Frame<FloatOf<S>> {
        self.frame.clone()
    }

    fn fault(&self, row: usize) -> Option<String> {
        self.faults.about(row)
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<FloatOf<S>>, into: &mut Rows<FloatOf<S>>) {
        self.with_buffer(rows.len(), |values| {
            let faulty = self.read(rows.start, values);
            let weights = self.weights.as_ref().map(|all| &all[rows.clone()]);
            let block = Dense::of_block(values, self.dim, weights);
            block.load(0..rows.len(), frame, into);
            into.spoil(faulty.into_iter().flatten());
        });
    }

    fn gather(&self, rows: &[usize], frame: &Frame<FloatOf<S>>, into: &mut Rows<FloatOf<S>>) {
        let (sorted, places) = in_order(rows);
        self.with_buffer(sorted.len(), |values| {
            let faulty = self.read_sorted(&sorted, values);
            let weights = self.weights.as_ref();
            let weights: Option<Vec<f64>> =
                weights.map(|all| sorted.iter().map(|&n| all[n]).collect());
            let block = Dense::of_block(values, self.dim, weights.as_deref());
            block.gather(&places, frame, into);
            if !faulty.is_empty() {
                let faulty = |i: &usize| faulty.iter().any(|f| f.contains(&places[*i]));
                into.spoil((0..places.len()).filter(faulty));
            }
        });
    }

    fn distances_from(
        &self,
        rows: Range<usize>,
        frame: &Frame<FloatOf<S>>,
        centre: &[FloatOf<S>],
        out: &mut [FloatOf<S>],
    ) {
        let nan = <FloatOf<S>>::from_f64(f64::NAN);
        self.with_buffer(rows.len(), |values| {
            let faulty = self.read(rows.start, values);
            let block = Dense::of_block(values, self.dim, None);
            block.distances_from(0..rows.len(), frame, centre, out);
            // What was read of such a row may be any number.
            faulty.into_iter().for_each(|faulty| out[faulty].fill(nan));
        });
    }

    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Box<dyn Data<FloatOf<S>> + '_> {
        let dim = self.dim;
        let mut values = vec![S::Element::ZERO; rows.len() * dim];
        let failed = parallel::map_chunks(&mut values, BLOCK * dim, |block, _, out| {
            let from = block * BLOCK;
            let (sorted, places) = in_order(&rows[from..from + out.len() / dim]);
            self.with_buffer(sorted.len(), |values| {
                let faulty = self.read_sorted(&sorted, values);
                let mut failed = Vec::new();
                for (i, (&place, out)) in places.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
                    if faulty.iter().any(|faulty| faulty.contains(&place)) {
                        failed.push(from + i);
                    }
                    out.copy_from_slice(&values[place * dim..][..dim]);
                }
                failed
            })
        });
        let failed: Vec<usize> = failed.into_iter().flatten().collect();
        let shape = (rows.len(), dim);
        if failed.is_empty() {
            let values = Array2::from_shape_vec(shape, values).expect("n x d numbers");
            return Box::new(Dense::part_of(&self.summary, values, weights));
        }
        // Numbers that can be NaN.
        let mut values: Vec<_> = values.iter().map(|x| x.widen()).collect();
        for place in failed {
            values[place * dim..][..dim].fill(Float::from_f64(f64::NAN));
        }
        let values = Array2::from_shape_vec(shape, values).expect("n x d numbers");
        Box::new(Dense::part_of(&self.summary, values, weights))
    }
}
