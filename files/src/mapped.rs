//! Files that are mapped into memory.

use crate::ReadAt;
use crate::fault::fault;
use coremix::Result;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::path::Path;

/// A file that is mapped into memory, as bytes: [`NpyFile::over`](crate::NpyFile::over),
/// [`ParquetFile::over`](crate::ParquetFile::over) and their like read rows from it.
///
/// It spares the calls that read parts of a file. What is mapped counts as memory of the process, and the system takes it
/// back when it needs it.
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix_files::NpyFile;
/// use coremix_files::Mapped;
///
/// // SAFETY: nobody changes the file meanwhile.
/// let bytes = unsafe { Mapped::open("points.npy")? };
/// let data = Blocks::new(NpyFile::<f32>::over(bytes)?)?;
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Debug)]
pub struct Mapped {
    path: String,
    bytes: Mmap,
}

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for one that cannot be read or mapped, and for a folder.
    ///
    /// # Safety
    /// Nobody may change or shorten the file while it is mapped, in this process or in another one. A file that becomes
    /// shorter ends the process where a page is read that it no longer has.
    #[allow(unsafe_code)]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let name = path.as_ref().display().to_string();
        let named = |error: io::Error| fault(&name, error);
        let file = File::open(&path).map_err(named)?;
        if !file.metadata().map_err(named)?.is_file() {
            return Err(fault(&name, "not a file: a folder or a device"));
        }
        // SAFETY: the caller promises that the file stays as it is.
        let bytes = unsafe { Mmap::map(&file) }.map_err(named)?;
        Ok(Self { path: name, bytes })
    }
}

impl ReadAt for Mapped {
    fn name(&self) -> String {
        self.path.clone()
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(from).ok();
        let found = from.and_then(|from| self.bytes.get(from..)?.get(..out.len()));
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
