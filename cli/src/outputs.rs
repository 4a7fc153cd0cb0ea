//! Where results go: files, checked before the work, and the standard output.

use crate::failure::{Failure, Result};
use std::io::{ErrorKind, Write};
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
            return Err(Failure::file(path, "its folder does not exist"));
        };
        let Some(name) = path.file_name() else {
            return Err(Failure::file(path, "not the name of a file"));
        };
        let whole = folder.join(name);
        if taken.contains(&whole) {
            let what = format!("{}: it is read, or written already", path.display());
            return Err(Failure::arguments(what));
        }
        taken.push(whole);
    }
    Ok(())
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
