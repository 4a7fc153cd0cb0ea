//! Rows of numbers in a file, wherever in it they lie.

use crate::fault::{fault, invalid};
use crate::numbers::{Kind, Number, UNSOUND, put_bytes, readable};
use crate::source::source;
use coremix::Result;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are read at once, where several rows are asked for.
const PIECE: usize = 1 << 18;

/// Bytes that can be read at any place, by several threads: a file, a part of memory, an object in a store.
///
/// They must stay as they are. [`NpyFile::over`](crate::NpyFile::over) and [`VectorFile::over`](crate::VectorFile::over)
/// read rows from them. A `Vec<u8>` is such bytes.
pub trait ReadAt: Send + Sync {
    /// What they are called in errors.
    fn name(&self) -> String;
    /// Number of bytes.
    fn len(&self) -> u64;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `out` with the bytes from this place on.
    ///
    /// # Errors
    /// What kept them from being read, also where there are not as many.
    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for Vec<u8> {
    fn name(&self) -> String {
        "bytes in memory".into()
    }

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        let found = usize::try_from(from)
            .ok()
            .and_then(|from| self.get(from..)?.get(..out.len()));
        let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }
}

impl<B: ReadAt + ?Sized> ReadAt for Arc<B> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        (**self).read_at(from, out)
    }
}

/// Bytes from a place on.
pub(crate) struct ReadFrom {
    pub(crate) bytes: Arc<dyn ReadAt>,
    pub(crate) at: u64,
}

impl io::Read for ReadFrom {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.len().saturating_sub(self.at);
        let some = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.bytes.read_at(self.at, &mut out[..some])?;
        self.at += some as u64;
        Ok(some)
    }
}

/// The bytes of a file on the disk. It must keep the length that it has when it is opened.
#[derive(Debug)]
pub struct OnDisk {
    path: String,
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: Mutex<File>,
    len: u64,
}

impl OnDisk {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for one that cannot be read, and for a folder or a device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let named = |error: io::Error| fault(&name, error);
        let file = File::open(path).map_err(named)?;
        let about = file.metadata().map_err(named)?;
        if !about.is_file() {
            return Err(fault(&name, "not a file: a folder or a device"));
        }
        Ok(Self {
            len: about.len(),
            path: name,
            #[cfg(unix)]
            file,
            #[cfg(not(unix))]
            file: Mutex::new(file),
        })
    }
}

impl ReadAt for OnDisk {
    fn name(&self) -> String {
        self.path.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.file, out, from);
        #[cfg(not(unix))]
        let read = {
            // Where files have no reads at a place.
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            let begun = io::Seek::seek(&mut *file, io::SeekFrom::Start(from));
            begun.and_then(|_| io::Read::read_exact(&mut *file, out))
        };
        read
    }
}

/// How numbers lie in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layout {
    /// Row after row.
    Rows,
    /// Row after row, and before each row the number of its columns, in 4 bytes.
    Counted,
    /// Column after column.
    Columns,
}

impl Layout {
    /// Bytes before the numbers of each row.
    fn before_row(self) -> usize {
        match self {
            Self::Counted => 4,
            Self::Rows | Self::Columns => 0,
        }
    }

    /// Bytes of a row of `dim` numbers, with what comes before it; `None` if they are too many for this machine.
    pub(crate) fn row(self, dim: usize, kind: Kind) -> Option<usize> {
        dim.checked_mul(kind.size())?.checked_add(self.before_row())
    }
}

/// A table of numbers in a file.
pub(crate) struct Table<T> {
    path: String,
    bytes: Arc<dyn ReadAt>,
    /// Where the numbers start.
    from: u64,
    len: usize,
    dim: usize,
    kind: Kind,
    layout: Layout,
    /// Bytes of a row.
    row: usize,
    /// Places for the bytes of some rows.
    spare: Mutex<Vec<Vec<u8>>>,
    of: std::marker::PhantomData<T>,
}

impl<T: Number> Table<T> {
    /// A table of `len` rows and `dim` columns that is all of the file from this place on.
    pub(crate) fn new(
        bytes: Arc<dyn ReadAt>,
        from: u64,
        [len, dim]: [usize; 2],
        kind: Kind,
        layout: Layout,
    ) -> Result<Self> {
        let row = layout.row(dim, kind);
        let size = row.and_then(|row| row.checked_mul(len));
        let expected = size.and_then(|size| from.checked_add(u64::try_from(size).ok()?));
        let path = bytes.name();
        if expected != Some(bytes.len()) {
            let found = bytes.len();
            let expected = expected.map_or("more".into(), |expected| expected.to_string());
            let what = format!(
                "{len} rows of {dim} numbers of type {kind} need {expected} bytes, but the file has {found}"
            );
            return Err(fault(&path, what));
        }
        Ok(Self {
            path,
            bytes,
            from,
            len,
            dim,
            kind,
            layout,
            row: row.unwrap_or(0),
            spare: Mutex::default(),
            of: std::marker::PhantomData,
        })
    }

    /// The same, where all numbers of the file are of type `T`, or may be rounded to it.
    pub(crate) fn readable(self, rounded: bool) -> Result<Self> {
        let readable = readable::<T>(self.kind, rounded);
        readable
            .map_err(|what| fault(&self.path, what))
            .map(|()| self)
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        match self.layout {
            Layout::Columns => self.read_by_column(first, out),
            Layout::Rows | Layout::Counted => self.read_by_row(first, out),
        }
    }

    /// Reads some bytes, and does something with them.
    fn with_bytes(
        &self,
        place: u64,
        len: usize,
        work: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = spare().pop().unwrap_or_default();
        bytes.resize(len, 0);
        let read = self.bytes.read_at(self.from + place, &mut bytes);
        let read = read.and_then(|()| work(&bytes));
        spare().push(bytes);
        read
    }

    fn read_by_row(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let (count, stride) = (self.layout.before_row(), self.row);
        let together = (PIECE / stride).max(1);
        for (piece, out) in out.chunks_mut(together * self.dim).enumerate() {
            let first = first + piece * together;
            let (place, len) = (first as u64 * stride as u64, out.len() / self.dim * stride);
            self.with_bytes(place, len, |bytes| {
                if count == 0 {
                    let put = put_bytes(self.kind, bytes, out, 1);
                    return put.map_err(|i| unsound(first + i / self.dim, i % self.dim));
                }
                let rows = bytes
                    .chunks_exact(stride)
                    .zip(out.chunks_exact_mut(self.dim));
                for (row, (bytes, out)) in (first..).zip(rows) {
                    let (found, numbers) = bytes.split_at(count);
                    if found != (self.dim as u32).to_le_bytes() {
                        let found = found.iter().rev().fold(0, |n, &b| n << 8 | i64::from(b));
                        let (found, dim) = (found as i32, self.dim);
                        let what = format!("row {row} has {found} numbers, but row 0 has {dim}");
                        return Err(invalid(what));
                    }
                    let put = put_bytes(self.kind, numbers, out, 1);
                    put.map_err(|column| unsound(row, column))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// A read per column.
    fn read_by_column(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let size = self.kind.size();
        let together = PIECE / size;
        for (piece, out) in out.chunks_mut(together * self.dim).enumerate() {
            let (first, rows) = (first + piece * together, out.len() / self.dim);
            for column in 0..self.dim {
                let place = (column as u64 * self.len as u64 + first as u64) * size as u64;
                self.with_bytes(place, rows * size, |bytes| {
                    let put = put_bytes(self.kind, bytes, &mut out[column..], self.dim);
                    put.map_err(|row| unsound(first + row, column))
                })?;
            }
        }
        Ok(())
    }
}

fn unsound(row: usize, column: usize) -> io::Error {
    invalid(format!("column {column}, row {row}: {UNSOUND}"))
}

source!(Table);

/// Makes a source of a file that is a table.
macro_rules! table {
    ($name:ident) => {
        impl<T: $crate::Number> coremix::data::Source for $name<T> {
            type Element = T;

            fn len(&self) -> usize {
                self.table.len()
            }

            fn dim(&self) -> usize {
                self.table.dim()
            }

            fn read(&self, first: usize, out: &mut [T]) -> std::io::Result<()> {
                self.table.read(first, out)
            }
        }
    };
}
pub(crate) use table;
