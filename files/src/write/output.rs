//! Files that are there as a whole or not at all.

use coremix::Result;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

use crate::fault::fault;

/// A file that gets its name when it is whole. Until then it has another name in the same folder, and it is removed when
/// it is dropped.
#[derive(Debug)]
pub(super) struct Output {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl Output {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let made = match path.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false if !folder_of(path).exists() => {
                let none = io::Error::from_raw_os_error(2);
                let what = format!("there is no folder {:?}: {none}", folder_of(path));
                Err(io::Error::new(none.kind(), what))
            }
            false => create_in(folder_of(path)),
        };
        let file = made.map_err(|error| fault(&path.display().to_string(), error))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 16, file),
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
        self.file.flush()?;
        let file = self.file.get_mut().as_file_mut();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(bytes)?;
        file.seek(SeekFrom::End(0)).map(|_| ())
    }

    /// Gives the file its name, when all of it is on the disk.
    pub(super) fn finish(mut self) -> Result<()> {
        let path = self.path();
        let finished = self.file.flush().and_then(|()| {
            self.file.get_ref().as_file().sync_all()?;
            let (file, _) = self.file.into_parts();
            file.persist(&self.path)?;
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

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new();
    file.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    // Other users get the rights that they have on new files.
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    file.tempfile_in(folder)
}
