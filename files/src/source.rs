//! Sources of rows have a name, a shape, and reads that are checked and whose errors name the file.

use crate::fault::rows_asked_for;
use crate::numbers::Number;
use coremix::Element;
use coremix::data::Source;
use coremix::ndarray::Array2;
use std::io;

/// A source of rows of one element type.
pub type Rows<T> = Box<dyn Source<Element = T> + Send + Sync>;

/// Rows that are made of other rows.
pub(crate) struct Made<T> {
    shape: [usize; 2],
    may_miss: bool,
    read: Read<T>,
}

/// Rows (n, d) in memory whose missing values are NaN, for [`Blocks`](coremix::data::Blocks): to borrow them, take
/// [`Dense::with_missing`](coremix::data::Dense::with_missing).
#[derive(Debug)]
pub struct InMemory<T>(pub Array2<T>);

impl<T: Element> Source for InMemory<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.0.nrows()
    }

    fn dim(&self) -> usize {
        self.0.ncols()
    }

    fn may_miss(&self) -> bool {
        true
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let rows = rows_asked_for(first, out.len(), [self.len(), self.dim()])?;
        let rows = self.0.outer_iter().skip(first).take(rows);
        let places = out.chunks_exact_mut(self.dim().max(1));
        for (out, row) in places.zip(rows) {
            out.iter_mut().zip(row).for_each(|(out, x)| *out = *x);
        }
        Ok(())
    }
}

/// Fills some rows from a first one on. They are there.
type Read<T> = Box<dyn Fn(usize, &mut [T]) -> io::Result<()> + Send + Sync>;

impl<T: Number> Made<T> {
    /// Rows of this shape: their number, and the number of columns; and whether values may be missing.
    pub(crate) fn of(
        shape: [usize; 2],
        may_miss: bool,
        read: impl Fn(usize, &mut [T]) -> io::Result<()> + Send + Sync + 'static,
    ) -> Rows<T> {
        let read = Box::new(read);
        Box::new(Self {
            shape,
            may_miss,
            read,
        })
    }
}

impl<T: Number> Source for Made<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.shape[0]
    }

    fn dim(&self) -> usize {
        self.shape[1]
    }

    fn may_miss(&self) -> bool {
        self.may_miss
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        rows_asked_for(first, out.len(), self.shape)?;
        if out.is_empty() {
            Ok(())
        } else {
            (self.read)(first, out)
        }
    }
}

/// The rows before which parts end that have these numbers of rows.
pub(crate) fn ends(rows: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut end = 0usize;
    let ends = rows.into_iter().map(|rows| {
        end = end.saturating_add(rows);
        end
    });
    ends.collect()
}

/// Fills rows that lie in parts, which end before these rows: `read` gets the place of a part, its first row, and the row to begin
/// with.
pub(crate) fn by_parts<T>(
    ends: &[usize],
    dim: usize,
    first: usize,
    out: &mut [T],
    mut read: impl FnMut(usize, usize, usize, &mut [T]) -> io::Result<()>,
) -> io::Result<()> {
    let mut row = first;
    let end = first + out.len() / dim;
    while row < end {
        let part = ends.partition_point(|end| *end <= row);
        let start = part.checked_sub(1).map_or(0, |before| ends[before]);
        let to = end.min(ends[part]);
        let out = &mut out[(row - first) * dim..(to - first) * dim];
        read(part, start, row, out)?;
        row = to;
    }
    Ok(())
}

/// Makes a [`Source`](coremix::data::Source) of what has the fields `path`, `len`, `dim` and `may_miss`, and a method `read_rows` that fills
/// some rows with what it has from the first of them on; or of what has such a thing in one of its fields.
macro_rules! source {
    ($name:ident $(, $($inner:ident).+)?) => {
        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let rows = &self$(.$($inner).+)?;
                f.debug_struct(stringify!($name))
                    .field("path", &rows.path)
                    .field("len", &rows.len)
                    .field("dim", &rows.dim)
                    .finish_non_exhaustive()
            }
        }

        impl<T: $crate::Number> coremix::data::Source for $name<T> {
            type Element = T;

            fn len(&self) -> usize {
                self$(.$($inner).+)?.len
            }

            fn dim(&self) -> usize {
                self$(.$($inner).+)?.dim
            }

            fn may_miss(&self) -> bool {
                self$(.$($inner).+)?.may_miss
            }

            fn read(&self, first: usize, out: &mut [T]) -> std::io::Result<()> {
                use $crate::fault::{guarded, rows_asked_for, unread};
                let rows = &self$(.$($inner).+)?;
                let asked = rows_asked_for(first, out.len(), [rows.len, rows.dim]);
                let read = asked.and_then(|asked| match asked {
                    0 => Ok(()),
                    _ => guarded(|| rows.read_rows(first, out)),
                });
                read.map_err(|error| unread(&rows.path, &error))
            }
        }
    };
}

/// How files whose columns have names are opened: by a method `new` that may panic.
macro_rules! opened {
    ($name:ident) => {
        impl<T: $crate::Number> $name<T> {
            /// Opens a file, and checks what it says about itself. Only text is gone through, to find its rows.
            ///
            /// # Errors
            /// [`Error::File`](coremix::Error::File) for a file that cannot be read, is damaged, or does not have such columns of
            /// numbers.
            pub fn open(
                path: impl AsRef<std::path::Path>,
                options: &$crate::Options,
            ) -> coremix::Result<Self> {
                Self::over($crate::OnDisk::open(path)?, options)
            }

            /// Opens bytes that come from elsewhere.
            ///
            /// # Errors
            /// As [`open`](Self::open).
            pub fn over(
                bytes: impl $crate::ReadAt + 'static,
                options: &$crate::Options,
            ) -> coremix::Result<Self> {
                let path = bytes.name();
                let made =
                    $crate::fault::guarded(|| Self::new(std::sync::Arc::new(bytes), options));
                made.map_err(|error| $crate::fault::fault(&path, error))
            }
        }
    };
}
pub(crate) use {opened, source};
