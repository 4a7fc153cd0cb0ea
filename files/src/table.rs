//! Rows of numbers in a file, wherever in it they lie.

use crate::stored::{Decode, Decoder, Kind};
use coremix::{Error, Result};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The bytes of a file on the disk. It must keep the length that it has when it is opened.
#[derive(Debug)]
pub struct OnDisk {
    path: String,
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: std::sync::Mutex<File>,
    len: u64,
}

impl OnDisk {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::File`] for one that cannot be read, and for a folder or a device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let fault = |error: io::Error| Error::File {
            path: name.clone(),
            what: error.to_string(),
        };
        let file = File::open(path).map_err(fault)?;
        let about = file.metadata().map_err(fault)?;
        if !about.is_file() {
            let what = "not a file: a folder or a device".into();
            return Err(Error::File { path: name, what });
        }
        Ok(Self {
            len: about.len(),
            path: name,
            #[cfg(unix)]
            file,
            #[cfg(not(unix))]
            file: std::sync::Mutex::new(file),
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
            let file = self.file.lock();
            let mut file = file.unwrap_or_else(std::sync::PoisonError::into_inner);
            read_by_seek(&mut file, from, out)
        };
        read
    }
}

/// The same where files have no reads at a place.
#[cfg(any(not(unix), test))]
fn read_by_seek(file: &mut File, from: u64, out: &mut [u8]) -> io::Result<()> {
    use io::{Read, Seek};
    file.seek(io::SeekFrom::Start(from))?;
    file.read_exact(out)
}

/// Bytes of any kind, and their name.
pub(crate) struct Placed {
    path: String,
    bytes: Box<dyn ReadAt>,
}

impl std::fmt::Debug for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placed").field("path", &self.path).finish()
    }
}

impl Placed {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        OnDisk::open(path).map(Self::over)
    }

    pub(crate) fn over(bytes: impl ReadAt + 'static) -> Self {
        Self {
            path: bytes.name(),
            bytes: Box::new(bytes),
        }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len()
    }

    /// An error that names the file.
    pub(crate) fn fault(&self, what: impl ToString) -> Error {
        Error::File {
            path: self.path.clone(),
            what: what.to_string(),
        }
    }

    /// Fills `out` with the bytes from this place on.
    pub(crate) fn read(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read_at(from, out)
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
#[derive(Debug)]
pub(crate) struct Table<T> {
    file: Placed,
    /// Where the numbers start.
    from: u64,
    len: usize,
    dim: usize,
    /// Bytes of a number, and of a row.
    sizes: [usize; 2],
    layout: Layout,
    decoder: Decoder<T>,
    /// Places for the bytes of some rows.
    bytes: Mutex<Vec<Vec<u8>>>,
}

impl<T: Decode> Table<T> {
    /// A table of `len` rows and `dim` columns that is all of the file from this place on.
    pub(crate) fn new(
        file: Placed,
        from: u64,
        [len, dim]: [usize; 2],
        kind: Kind,
        layout: Layout,
    ) -> Result<Self> {
        let Some(decoder) = T::decoder(kind) else {
            let to = std::any::type_name::<T>();
            return Err(file.fault(format!(
                "holds numbers of type {kind}, not all of which {to} holds: read a wider type"
            )));
        };
        let row = layout.row(dim, kind);
        let size = row.and_then(|row| row.checked_mul(len));
        let expected = size.and_then(|size| from.checked_add(u64::try_from(size).ok()?));
        if expected != Some(file.len()) {
            let found = file.len();
            let expected = expected.map_or("more".into(), |expected| expected.to_string());
            return Err(file.fault(format!(
                "{len} rows of {dim} numbers of type {kind} need {expected} bytes, but the file has {found}"
            )));
        }
        Ok(Self {
            file,
            from,
            len,
            dim,
            sizes: [kind.size(), row.unwrap_or(0)],
            layout,
            decoder,
            bytes: Mutex::default(),
        })
    }

    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.len, self.dim]
    }

    /// Reads rows from `first` on, as many as `out` has room for. The error names the file.
    pub(crate) fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let named = |error: io::Error| {
            let what = format!("{}: {error}", self.file.path);
            io::Error::new(error.kind(), what)
        };
        self.read_unnamed(first, out).map_err(named)
    }

    fn read_unnamed(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let rows = out.len().checked_div(self.dim).unwrap_or(0);
        let end = first.checked_add(rows);
        if rows * self.dim != out.len() || end.is_none_or(|end| end > self.len) {
            let (n, d, numbers) = (self.len, self.dim, out.len());
            let what = format!("{numbers} numbers asked for, from row {first} of {n} rows of {d}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if out.is_empty() {
            return Ok(());
        }
        let mut bytes = self.spare().pop().unwrap_or_default();
        let read = match self.layout {
            Layout::Rows | Layout::Counted => self.read_rows(first, out, &mut bytes),
            Layout::Columns => self.read_columns(first, out, &mut bytes),
        };
        self.spare().push(bytes);
        read
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_rows(&self, first: usize, out: &mut [T], bytes: &mut Vec<u8>) -> io::Result<()> {
        let (count, [_, stride]) = (self.layout.before_row(), self.sizes);
        let together = (PIECE / stride).max(1);
        for (piece, out) in out.chunks_mut(together * self.dim).enumerate() {
            let first = first + piece * together;
            bytes.resize(out.len() / self.dim * stride, 0);
            self.file
                .read(self.from + first as u64 * stride as u64, bytes)?;
            if count == 0 {
                (self.decoder)(bytes, out);
                continue;
            }
            let rows = bytes
                .chunks_exact(stride)
                .zip(out.chunks_exact_mut(self.dim));
            for (i, (row, out)) in rows.enumerate() {
                let (found, numbers) = row.split_at(count);
                if found != (self.dim as u32).to_le_bytes() {
                    let found = found.iter().rev().fold(0, |n, &b| n << 8 | i64::from(b));
                    let (row, found) = (first + i, found as i32);
                    let what = format!("row {row} has {found} numbers, but row 0 has {}", self.dim);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                (self.decoder)(numbers, out);
            }
        }
        Ok(())
    }

    /// A read per column.
    fn read_columns(&self, first: usize, out: &mut [T], bytes: &mut Vec<u8>) -> io::Result<()> {
        let [size, _] = self.sizes;
        let together = PIECE / size;
        let mut numbers = vec![T::default(); together.min(out.len() / self.dim)];
        for (piece, out) in out.chunks_mut(together * self.dim).enumerate() {
            let first = first + piece * together;
            let numbers = &mut numbers[..out.len() / self.dim];
            bytes.resize(numbers.len() * size, 0);
            for j in 0..self.dim {
                let place = (j as u64 * self.len as u64 + first as u64) * size as u64;
                self.file.read(self.from + place, bytes)?;
                (self.decoder)(bytes, numbers);
                for (row, x) in out.chunks_exact_mut(self.dim).zip(&*numbers) {
                    row[j] = *x;
                }
            }
        }
        Ok(())
    }
}

/// The methods of [`Source`] for a file that is a table.
macro_rules! table {
    ($name:ident) => {
        impl<T: $crate::stored::Decode> coremix::data::Source for $name<T> {
            type Element = T;

            fn len(&self) -> usize {
                self.table.shape()[0]
            }

            fn dim(&self) -> usize {
                self.table.shape()[1]
            }

            fn read(&self, first: usize, out: &mut [T]) -> std::io::Result<()> {
                self.table.read(first, out)
            }
        }
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_after_a_seek_is_a_read_at_a_place() {
        let path = std::env::temp_dir().join(format!("coremix-placed-{}", std::process::id()));
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(&path, &bytes).unwrap();
        let (placed, mut file) = (Placed::open(&path).unwrap(), File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        for (from, len) in [(0, 256), (17, 5), (255, 1), (256, 0), (255, 2), (300, 1)] {
            let (mut a, mut b) = (vec![0; len], vec![0; len]);
            let read = placed.read(from, &mut a);
            let by_seek = read_by_seek(&mut file, from, &mut b);
            assert_eq!(read.is_ok(), by_seek.is_ok(), "{from} {len}");
            assert!(read.is_err() || a == b, "{from} {len}");
            // Bytes in memory are the same.
            let in_memory = bytes.read_at(from, &mut b);
            assert_eq!(read.is_ok(), in_memory.is_ok(), "{from} {len}");
            assert!(read.is_err() || a == b, "{from} {len}");
        }
    }
}
