//! A sketch of rows of files, which are read once.

use coremix::data::{Sketch, Source};
use coremix::ndarray::ArrayView2;
use coremix::{Cancel, Element, Error, Float, Result};

/// Numbers that are read at a time.
const NUMBERS: usize = 1 << 21;

/// A [`Sketch`] of all rows of a source, with these weights if there are some: `q` coordinates of each, chosen by `seed`.
///
/// The source is read once, in blocks. Memory holds the sketch and one block.
///
/// # Errors
/// As [`Sketch::builder`] and its `push`; [`Error::Stage`] for rows that cannot be read, [`Error::Cancelled`] if the flag is set
/// meanwhile.
///
/// ```
/// use coremix::Cancel;
/// use coremix::data::Data;
/// use coremix_files::{InMemory, sketch};
/// use coremix::ndarray::Array2;
///
/// let rows = InMemory(Array2::from_shape_fn((1_000, 64), |(n, j)| (n * j % 7) as f32));
/// let sketch = sketch(&rows, None, (8, 42), &Cancel::default())?;
/// assert_eq!((sketch.len(), sketch.indices().ncols()), (1_000, 8));
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn sketch<S: Source>(
    source: &S,
    weights: Option<&[f64]>,
    (q, seed): (usize, u64),
    cancel: &Cancel,
) -> Result<Sketch<<S::Element as Element>::Float>> {
    let n = source.len();
    let dim = source.dim();
    let mut builder = Sketch::builder(dim, q, seed);
    let block = (NUMBERS / dim.max(1)).clamp(1, n.max(1));
    let mut values = vec![S::Element::default(); block * dim];
    for first in (0..n).step_by(block) {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let rows = first..n.min(first + block);
        let values = &mut values[..rows.len() * dim];
        source.read(first, values).map_err(|error| Error::Stage {
            stage: source.name(),
            what: error.to_string(),
        })?;
        let block = ArrayView2::from_shape((rows.len(), dim), &*values).expect("n x d numbers");
        match weights {
            Some(weights) => builder.push_weighted(block, weights[rows].into())?,
            None => builder.push(block)?,
        }
    }
    builder.finish()
}

/// Bytes of a sketch with `q` coordinates of each row: the values, and which they are.
#[must_use]
pub fn sketch_bytes<F: Float>(rows: usize, q: usize) -> usize {
    let each = size_of::<F>() + size_of::<u32>();
    rows.saturating_mul(q).saturating_mul(each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coremix::data::Dense;
    use coremix::ndarray::Array2;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rows that count how many of them are read.
    struct Counted(Array2<f32>, AtomicUsize);

    impl Source for Counted {
        type Element = f32;

        fn name(&self) -> &'static str {
            "counted"
        }

        fn len(&self) -> usize {
            self.0.nrows()
        }

        fn dim(&self) -> usize {
            self.0.ncols()
        }

        fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
            let rows = out.len() / self.dim();
            self.1.fetch_add(rows, Ordering::Relaxed);
            let values = self.0.as_slice().expect("row-major");
            out.copy_from_slice(&values[first * self.dim()..][..out.len()]);
            Ok(())
        }
    }

    /// Also where they come in several blocks.
    #[test]
    fn each_row_is_read_once() {
        for (n, dim) in [(700, 10_000), (3, 5)] {
            let x = Array2::from_shape_fn((n, dim), |(n, j)| (n * j % 11) as f32);
            let weights: Vec<f64> = (0..n).map(|n| (n % 3) as f64).collect();
            let rows = Counted(x.clone(), AtomicUsize::new(0));
            let made = sketch(&rows, Some(&weights), (4, 9), &Cancel::default()).unwrap();
            assert_eq!(rows.1.into_inner(), n);
            let whole =
                Sketch::of_dense(&Dense::weighted(x.view(), &weights[..]).unwrap(), 4, 9).unwrap();
            assert_eq!(made.indices(), whole.indices());
            assert_eq!(made.values(), whole.values());
        }
    }

    #[test]
    fn it_is_cancelled() {
        let rows = Counted(Array2::zeros((3, 2)), AtomicUsize::new(0));
        let cancel = Cancel::default();
        cancel.cancel();
        let made = sketch(&rows, None, (1, 1), &cancel);
        assert!(matches!(made, Err(Error::Cancelled)));
    }
}
