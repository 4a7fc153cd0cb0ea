//! `.npy` files, written block by block.

use super::output::Output;
use arrow_buffer::ToByteSlice;
use coremix::Result;
use std::io::{self, Read, Write};
use std::path::Path;

/// Numbers that are written to `.npy` files. Sealed.
pub trait NpyNumber: sealed::Named {}

mod sealed {
    /// A number with its name in `NumPy`.
    pub trait Named: arrow_buffer::ArrowNativeType {
        const NAME: &'static str;
    }
}

macro_rules! number {
    ($($t:ty: $name:literal),+) => {$(
        impl sealed::Named for $t {
            const NAME: &'static str = $name;
        }
        impl NpyNumber for $t {}
    )+};
}
number!(u8: "|u1", u32: "<u4", i64: "<i8", u64: "<u8", f32: "<f4", f64: "<f8");

/// Writes an `.npy` file of `NumPy`, block by block: labels, or rows. The number of rows need not be known before.
///
/// The file gets its name in [`finish`](Self::finish), when all of it is on the disk. Until then, and after an error, what
/// was there before stays as it was.
///
/// ```
/// use coremix::data::Source;
/// use coremix_files::NpyFile;
/// use coremix_files::NpyWriter;
///
/// let path = std::env::temp_dir().join(format!("coremix-rows-{}.npy", std::process::id()));
/// let mut rows = NpyWriter::<f32>::rows(&path, 2)?;
/// rows.write(&[1.0, 2.0])?;
/// rows.write(&[3.0, 4.0, 5.0, 6.0])?;
/// rows.finish()?;
/// let rows = NpyFile::<f32>::open(&path)?;
/// assert_eq!((rows.len(), rows.dim()), (3, 2));
/// # std::fs::remove_file(path).expect("it is there");
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Debug)]
pub struct NpyWriter<T> {
    output: Output,
    /// Columns; `None` for an array of one axis.
    dim: Option<usize>,
    numbers: u64,
    of: std::marker::PhantomData<T>,
}

/// Bytes of the header: room for every number of rows.
const HEADER: usize = 128;
/// The last bytes of the header. Other writers have a blank for the tab, so it tells whose a file is.
const END: &[u8] = b"\t\n";

fn header(name: &str, rows: u64, dim: Option<usize>) -> Vec<u8> {
    let shape = match dim {
        None => format!("({rows},)"),
        Some(dim) => format!("({rows}, {dim})"),
    };
    let text = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(((HEADER - 10) as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(HEADER - END.len(), b' ');
    header.extend(END);
    header
}

/// Whether a file begins as one that was written here, of one such number for each row.
pub(super) fn is_of_numbers<T: NpyNumber>(file: &mut impl Read) -> bool {
    let mut start = [0; HEADER];
    let text = file
        .read_exact(&mut start)
        .ok()
        .and_then(|()| str::from_utf8(&start[10..]).ok());
    let rows = text.and_then(|text| text.split(['(', ',']).find_map(|part| part.parse().ok()));
    rows.is_some_and(|rows| start == *header(T::NAME, rows, None))
}

impl<T: NpyNumber> NpyWriter<T> {
    /// Begins a file of one number for each row, such as labels.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where nothing can be written to its folder.
    pub fn numbers(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(Output::create(path.as_ref())?, None)
    }

    /// Begins a file of rows of `dim` numbers.
    ///
    /// # Errors
    /// As [`numbers`](Self::numbers).
    pub fn rows(path: impl AsRef<Path>, dim: usize) -> Result<Self> {
        Self::new(Output::create(path.as_ref())?, Some(dim))
    }

    pub(super) fn new(output: Output, dim: Option<usize>) -> Result<Self> {
        let mut writer = Self {
            output,
            dim,
            numbers: 0,
            of: std::marker::PhantomData,
        };
        let written = writer.output.write_all(&header(T::NAME, 0, dim));
        writer.output.named(written)?;
        Ok(writer)
    }

    /// Writes the numbers that follow: those of whole rows, one after the other.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a part of a row, and where it cannot be written: a disk is full.
    pub fn write(&mut self, numbers: &[T]) -> Result<()> {
        if self
            .dim
            .is_some_and(|dim| !numbers.len().is_multiple_of(dim.max(1)))
        {
            let what = format!("{} numbers are not whole rows", numbers.len());
            let error = io::Error::new(io::ErrorKind::InvalidInput, what);
            return self.output.named(Err(error));
        }
        let written = self.output.write_all(numbers.to_byte_slice());
        self.output.named(written)?;
        self.numbers += numbers.len() as u64;
        Ok(())
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where that is not possible; what was there before stays.
    pub fn finish(mut self) -> Result<()> {
        let rows = self.numbers / self.dim.unwrap_or(1).max(1) as u64;
        let header = header(T::NAME, rows, self.dim);
        let replaced = self.output.replace_start(&header);
        self.output.named(replaced)?;
        self.output.finish()
    }
}
