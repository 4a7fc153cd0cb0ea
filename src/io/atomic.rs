//! Files that exist as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file in the folder of `path`, and renames it when all of it is on the disk: it has the mode of the one it replaces. A
/// device or a pipe takes what is written, and stays.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    if is_special(path) {
        return fill(&mut File::options().write(true).open(path)?);
    }
    let (mut file, temporary) = create_temporary(path)?;
    let mode = fs::metadata(path).map(|there| there.permissions());
    let kept = mode.map_or(Ok(()), |mode| file.set_permissions(mode));
    let written = kept.and_then(|()| fill(&mut file));
    let written = written.and_then(|()| file.sync_all());
    drop(file);
    let written = written.and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Nothing more can be done if that fails too.
        fs::remove_file(&temporary).ok();
    }
    written?;
    sync_folder(path);
    Ok(())
}

/// Whether a file can be written there. Removes files that killed processes have left in its folder.
pub(crate) fn prepare(path: &Path) -> Result<()> {
    if is_special(path) {
        return Ok(());
    }
    let (file, temporary) = create_temporary(path)?;
    drop(file);
    fs::remove_file(&temporary)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let left = |file: &str| {
        let middle = file
            .strip_prefix(&format!(".{name}."))
            .and_then(|rest| rest.strip_suffix(".tmp"));
        middle.is_some_and(|m| m.contains('.') && m.chars().all(|c| c == '.' || c.is_ascii_digit()))
    };
    // Nothing depends on it: what cannot be read or removed stays.
    let entries = fs::read_dir(folder_of(path)).into_iter().flatten();
    for entry in entries.flatten() {
        if left(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path()).ok();
        }
    }
    Ok(())
}

/// Whether it is a device, a pipe or the like.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// A new file in the same folder, with a name that nobody else has: not another process, not another thread.
fn create_temporary(path: &Path) -> Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if path.is_dir() {
        return Err(Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    let no_name = || Error::new(ErrorKind::InvalidInput, "the path names no file");
    let name = path.file_name().ok_or_else(no_name)?;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.{count}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        match File::create_new(&temporary) {
            // Left by a process of this number that was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((file?, temporary)),
        }
    }
}

/// The new name outlives a crash of the machine as well, where folders can be synced.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        folder.sync_all().ok();
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}
