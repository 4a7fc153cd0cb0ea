//! Rows of the vector files of benchmarks of nearest-neighbour search.

use crate::fault::fault;
use crate::format::VectorFormat;
use crate::numbers::{Kind, Number};
use crate::source::source;
use crate::table::{Layout, OnDisk, ReadAt, Table};
use coremix::Result;
use std::path::Path;
use std::sync::Arc;

/// The rows of a vector file, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// `T` is the type of the numbers in the file, or one that holds all of them exactly: `u8` reads u8; `f32` and `f64` read u8
/// and f32.
pub struct VectorFile<T> {
    pub(crate) table: Table<T>,
}

impl<T: Number> VectorFile<T> {
    /// Opens a file, in the format that its name ends with. No row is read yet.
    ///
    /// # Errors
    /// As [`VectorFormat::of`] and [`open_as`](Self::open_as).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let format = VectorFormat::of(path.as_ref())?;
        Self::open_as(path, format)
    }

    /// Opens a file in this format. The length of an `fvecs` or `bvecs` file is checked here, the number of columns of each
    /// row when the row is read.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a file that cannot be read, or whose length is another one than its first numbers say.
    pub fn open_as(path: impl AsRef<Path>, format: VectorFormat) -> Result<Self> {
        Self::over(OnDisk::open(path)?, format)
    }

    /// Opens bytes that come from elsewhere.
    ///
    /// # Errors
    /// As [`open_as`](Self::open_as).
    pub fn over(file: impl ReadAt + 'static, format: VectorFormat) -> Result<Self> {
        let damaged = |what: String| fault(&file.name(), what);
        let (kind, start) = match format {
            VectorFormat::Fvecs => (Kind::F32, 4),
            VectorFormat::Bvecs => (Kind::U8, 4),
            VectorFormat::Fbin => (Kind::F32, 8),
            VectorFormat::U8bin => (Kind::U8, 8),
        };
        let size = file.len();
        let mut bytes = [0; 8];
        if size < start {
            return Err(damaged(format!(
                "it must start with {start} bytes that say its shape, but has {size}"
            )));
        }
        let read = file.read_at(0, &mut bytes[..start as usize]);
        read.map_err(|error| damaged(error.to_string()))?;
        let [a, b, c, d, e, f, g, h] = bytes;
        let [first, second] = [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes);
        let mut shape = [first as usize, second as usize];
        let mut from = start;
        let mut layout = Layout::Rows;
        if start == 4 {
            let dim = first as i32;
            if dim <= 0 {
                let what = format!("row 0 has {dim} numbers; it must have at least 1");
                return Err(damaged(what));
            }
            let row = start + dim as u64 * kind.size() as u64;
            // A length that is no multiple of that of a row is an error of the table, and so is one beyond this machine.
            let len = usize::try_from(size.div_ceil(row)).unwrap_or(usize::MAX);
            (from, layout, shape) = (0, Layout::Counted, [len, dim as usize]);
        }
        let table = Table::new(Arc::new(file), from, shape, kind, layout, false)?;
        Ok(Self { table })
    }
}

source!(VectorFile, table);
