//! Files that are there as a whole or not at all.

use coremix::Result;
use std::fs::{self, DirEntry, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

use crate::fault::fault;

/// A file that gets its name when it is whole. Until then it has another name in the same folder, and it is removed when
/// it is dropped. It has the mode of the file that it replaces. A device or a pipe takes what is written, and stays.
#[derive(Debug)]
pub struct Output {
    file: BufWriter<File>,
    /// The other name.
    temporary: Option<TempPath>,
    path: PathBuf,
}

impl Output {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where nothing can be written to its folder.
    pub fn create(path: &Path) -> Result<Self> {
        let begun = begin(path);
        let (file, temporary) = begun.map_err(|error| fault(&path.display().to_string(), error))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 16, file),
            temporary,
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// An error that names the file.
    pub(super) fn named<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| fault(&self.path(), error))
    }

    /// Writes other bytes at the start.
    pub(super) fn replace_start(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::End(0)).map(|_| ())
    }

    /// Gives the file its name, when all of it is on the disk.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where that is not possible; what was there before stays.
    pub fn finish(mut self) -> Result<()> {
        let path = self.path();
        let finished = self.file.flush().and_then(|()| {
            let Some(temporary) = self.temporary else {
                return Ok(());
            };
            self.file.get_ref().sync_all()?;
            drop(self.file);
            temporary.persist(&self.path)?;
            // The new name outlives a crash of the machine as well, where folders can be synced.
            if let Ok(folder) = File::open(folder_of(&self.path)) {
                folder.sync_all().ok();
            }
            Ok(())
        });
        finished.map_err(|error| fault(&path, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

fn begin(path: &Path) -> io::Result<(File, Option<TempPath>)> {
    let folder = folder_of(path);
    // A path that cannot be asked about has no mode to keep; the folder says why nothing can be written.
    let there = path.metadata().ok();
    if there.as_ref().is_some_and(|there| there.is_dir()) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return Ok((File::options().write(true).open(path)?, None));
    }
    folder.metadata().map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no folder {folder:?}: {error}"),
            _ => format!("its folder {folder:?}: {error}"),
        };
        io::Error::new(error.kind(), what)
    })?;
    let prefix = prefix(path);
    remove_stale(folder, &prefix);
    let mut made = tempfile::Builder::new();
    made.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    #[cfg(unix)]
    // Other users get the rights that they have on new files.
    made.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let (file, temporary) = made.tempfile_in(folder)?.into_parts();
    if let Some(there) = there {
        file.set_permissions(there.permissions())?;
    }
    // Until this process ends; where files have no locks, none is ever removed.
    file.try_lock().ok();
    Ok((file, Some(temporary)))
}

/// How temporary names end: with this number of random signs, and these.
const RANDOM: usize = 6;
const SUFFIX: &str = ".tmp";

/// How the temporary names of a file begin, which are no longer than names may be.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let start: String = name.chars().take(40).collect();
    format!(".{start}.coremix-")
}

/// Removes what killed processes have left: files with such names that nobody has locked.
fn remove_stale(folder: &Path, prefix: &str) {
    let is_stale = |entry: &DirEntry| {
        let name = entry.file_name();
        let random = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|rest| rest.strip_suffix(SUFFIX));
        random.is_some_and(|random| random.len() == RANDOM)
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
    };
    // Nothing depends on it: what cannot be read or removed stays.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(is_stale) {
        fs::remove_file(entry.path()).ok();
    }
}
