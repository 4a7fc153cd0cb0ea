//! Rows of numbers in a file, wherever in it they lie.

use crate::fault::{fault, invalid};
use crate::numbers::{Kind, Number, put_bytes, readable};
use coremix::{Cancel, Result};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
#[cfg(not(unix))]
use std::sync::{Mutex, PoisonError};

/// Bytes that are read at once, where several rows are asked for.
const PIECE: usize = 1 << 18;

/// Bytes that can be read at any place, by several threads: a file, a part of memory, an object in a store.
///
/// They must stay as they are. [`NpyFile::over`](crate::NpyFile::over) and [`VectorFile::over`](crate::VectorFile::over)
/// read rows from them. A `Vec<u8>` is such bytes.
pub trait ReadAt: Send + Sync {
    /// Their name in errors.
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
    /// An error where they cannot be read, also where there are fewer.
    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()>;
}

/// An error for a file without any bytes.
pub(crate) fn not_empty(bytes: &dyn ReadAt) -> io::Result<()> {
    if bytes.is_empty() {
        Err(invalid("an empty file: it has no bytes at all"))
    } else {
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn name(&self) -> String {
        "bytes in memory".into()
    }

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(from).ok();
        let mut rest = from.and_then(|from| self.get(from..)).unwrap_or_default();
        io::Read::read_exact(&mut rest, out)
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

/// Bytes that are there until a flag is set.
pub(crate) struct Until(pub(crate) Arc<dyn ReadAt>, pub(crate) Cancel);

impl ReadAt for Until {
    fn name(&self) -> String {
        self.0.name()
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        if self.1.is_cancelled() {
            Err(io::Error::other("cancelled"))
        } else {
            self.0.read_at(from, out)
        }
    }
}

/// Bytes from a place on.
pub(crate) struct ReadFrom {
    pub(crate) bytes: Arc<dyn ReadAt>,
    pub(crate) at: u64,
}

impl ReadFrom {
    pub(crate) fn start(bytes: &Arc<dyn ReadAt>) -> Self {
        let bytes = Arc::clone(bytes);
        let at = 0;
        Self { bytes, at }
    }
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

impl io::Seek for ReadFrom {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let place = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.bytes.len().checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "before the first byte");
        self.at = place.ok_or_else(before)?;
        Ok(self.at)
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
        if about.is_file() {
            Self::of(file, name.clone()).map_err(named)
        } else {
            Err(fault(&name, "not a file: a folder or a device"))
        }
    }

    /// A file that is open.
    pub(crate) fn of(file: File, path: String) -> io::Result<Self> {
        Ok(Self {
            len: file.metadata()?.len(),
            path,
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

/// A table of numbers in a file.
pub(crate) struct Table<T> {
    pub(crate) path: String,
    bytes: Arc<dyn ReadAt>,
    /// Where the numbers start.
    from: u64,
    pub(crate) len: usize,
    pub(crate) dim: usize,
    kind: Kind,
    layout: Layout,
    /// Bytes of a row, with what comes before its numbers.
    row: usize,
    /// A value that is NaN is read.
    pub(crate) may_miss: bool,
    of: std::marker::PhantomData<T>,
}

/// Bytes before the numbers of a row that are their count.
const COUNT: usize = 4;

impl<T: Number> Table<T> {
    /// A table of `len` rows and `dim` columns that is all of the file from this place on. All of its numbers must be of type
    /// `T`, or may be rounded to it.
    pub(crate) fn new(
        bytes: Arc<dyn ReadAt>,
        from: u64,
        [len, dim]: [usize; 2],
        kind: Kind,
        layout: Layout,
        rounded: bool,
    ) -> Result<Self> {
        let path = bytes.name();
        let before = if layout == Layout::Counted { COUNT } else { 0 };
        let row = dim
            .checked_mul(kind.size())
            .and_then(|row| row.checked_add(before));
        let size = row.and_then(|row| row.checked_mul(len));
        let expected = size.and_then(|size| from.checked_add(u64::try_from(size).ok()?));
        if expected != Some(bytes.len()) {
            let actual = bytes.len();
            let expected = expected.map_or("more".into(), |expected| expected.to_string());
            let what = format!(
                "{len} rows of {dim} numbers of type {kind} need {expected} bytes, but the file has {actual}"
            );
            return Err(fault(&path, what));
        }
        readable::<T>(kind, rounded).map_err(|what| fault(&path, what))?;
        Ok(Self {
            path,
            bytes,
            from,
            len,
            dim,
            kind,
            layout,
            row: row.unwrap_or(0),
            may_miss: false,
            of: std::marker::PhantomData,
        })
    }

    pub(crate) fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        // A read gets some rows of all columns, or of one.
        let (columns, row) = match self.layout {
            Layout::Columns => (self.dim, self.kind.size()),
            _ => (1, self.row),
        };
        let together = (PIECE / row).max(1);
        let each = self.dim / columns;
        let mut bytes = Vec::new();
        for (piece, out) in out.chunks_mut(together * self.dim).enumerate() {
            let first = first + piece * together;
            bytes.resize(out.len() / self.dim * row, 0);
            for column in 0..columns {
                let place = (column as u64 * self.len as u64 + first as u64) * row as u64;
                self.bytes.read_at(self.from + place, &mut bytes)?;
                let out = &mut out[column..];
                if self.layout == Layout::Counted {
                    self.put_counted(&bytes, first, out)?;
                    continue;
                }
                put_bytes(self.kind, &bytes, out, columns, self.may_miss)
                    .map_err(|(i, what)| unsound(first + i / each, column + i % each, what))?;
            }
        }
        Ok(())
    }

    /// Makes numbers of the bytes of some rows that begin with their count.
    fn put_counted(&self, bytes: &[u8], first: usize, out: &mut [T]) -> io::Result<()> {
        let dim = self.dim;
        let rows = bytes.chunks_exact(self.row).zip(out.chunks_exact_mut(dim));
        for (row, (bytes, out)) in (first..).zip(rows) {
            let (count, numbers) = bytes.split_first_chunk().unwrap_or((&[0; COUNT], &[]));
            let count = i32::from_le_bytes(*count);
            if count as u32 as usize != dim {
                let what = format!("row {row} has {count} numbers, but row 0 has {dim}");
                return Err(invalid(what));
            }
            put_bytes(self.kind, numbers, out, 1, self.may_miss)
                .map_err(|(column, what)| unsound(row, column, what))?;
        }
        Ok(())
    }
}

fn unsound(row: usize, column: usize, what: &str) -> io::Error {
    invalid(format!("column {column}, row {row}: {what}"))
}
