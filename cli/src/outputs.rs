//! Where results go: files, checked before the work, and the standard output.

use crate::failure::{Failure, Result};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// An error if something cannot be written to its place, or would take the place of an input or of another output.
pub(crate) fn check<'a>(
    outputs: impl Iterator<Item = &'a PathBuf>,
    inputs: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    let mut taken: Vec<PathBuf> = inputs.filter_map(|path| path.canonicalize().ok()).collect();
    for path in outputs {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        let Ok(folder) = folder else {
            return Err(Failure::file(path, "its folder does not exist: make it"));
        };
        let Some(name) = path.file_name() else {
            return Err(Failure::file(path, "must name a file, not a folder"));
        };
        let whole = folder.join(name);
        if taken.contains(&whole) {
            let what = "it is read as an input, or named for another output: choose another name";
            let what = format!("{}: {what}", path.display());
            return Err(Failure::arguments(what));
        }
        taken.push(whole);
    }
    Ok(())
}

/// Writes a file beside its place, and then puts it there. After an error, what was there before stays.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let fault = |error| Failure::file(path, error);
    let all = || {
        let mut file = BufWriter::new(File::create(&partial).map_err(fault)?);
        write(&mut file)?;
        file.flush().map_err(fault)?;
        fs::rename(&partial, path).map_err(fault)
    };
    all().inspect_err(|_| {
        fs::remove_file(&partial).ok();
    })
}

/// Prints a line, unless nobody reads it any more.
pub(crate) fn say(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::file(Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}
