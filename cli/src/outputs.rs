//! Files where results go, checked before the work.

use crate::failure::{Failure, Result};
use coremix::{Error, FileFault, ModelInfo, Report};
use coremix_files::{LabelWriter, WholeFile};
use ndarray_npy::NpzReader;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    Model(&'a Path),
    /// Where a fit goes on; it is never begun over a file that is none.
    Checkpoint(&'a Path),
    /// Labels, with these keys.
    Labels(&'a Path, &'a [String]),
    /// Rows that were made.
    Rows(&'a Path),
    /// The report of a fit, as JSON.
    Report(&'a Path),
    /// Arrays for NumPy.
    Parameters(&'a Path),
}

impl<'a> Output<'a> {
    fn path(self) -> &'a Path {
        match self {
            Self::Model(path) | Self::Checkpoint(path) | Self::Labels(path, _) => path,
            Self::Rows(path) | Self::Report(path) | Self::Parameters(path) => path,
        }
    }

    /// Whether the file that is there is an older one of its kind, if it may be replaced without a word; and the kind.
    fn replaces_its_own(self) -> (bool, &'static str) {
        match self {
            Self::Model(path) => {
                let is_model = match ModelInfo::of_file(path) {
                    Err(Error::Model { fault, .. }) => {
                        !matches!(fault, FileFault::Foreign | FileFault::System { .. })
                    }
                    read => read.is_ok(),
                };
                (is_model, "model")
            }
            Self::Checkpoint(_) => (true, "checkpoint"),
            Self::Labels(path, keys) => {
                let mut others: Vec<&str> = keys.iter().map(|key| &**key).collect();
                others.push(LOG_DENSITY);
                (LabelWriter::wrote(path, &others), "file of labels")
            }
            Self::Rows(path) => (LabelWriter::wrote(path, &[]), "file of rows"),
            Self::Report(path) => {
                let file = File::open(path).map(BufReader::new);
                let report = file.map(serde_json::from_reader::<_, Report>);
                (matches!(report, Ok(Ok(_))), "report")
            }
            Self::Parameters(path) => {
                let names = File::open(path)
                    .ok()
                    .and_then(|file| NpzReader::new(file).ok())
                    .and_then(|mut file| file.names().ok());
                let has = |name: &str| {
                    let mut names = names.iter().flatten();
                    names.any(|file| file.trim_end_matches(".npy") == name)
                };
                let has_all = ["means", "variances", "proportions"].into_iter().all(has);
                (has_all, "file of parameters")
            }
        }
    }
}

/// The column of log densities in a file of labels.
pub(crate) const LOG_DENSITY: &str = "log_density";

/// The folder of a file, and its name.
fn parts(path: &Path) -> Result<PathBuf> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let folder = folder.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::file(path, "its folder does not exist: make it"),
        _ => Failure::file(path, format!("its folder: {error}")),
    })?;
    match path.file_name() {
        Some(name) if !path.is_dir() => Ok(folder.join(name)),
        _ => Err(Failure::file(path, "must name a file, not a folder")),
    }
}

/// An error if something cannot be written to its place, or would take the place of an input, of another output or, without
/// `force`, of a file that is no older one of its kind.
pub(crate) fn check(outputs: &[Output<'_>], inputs: &[PathBuf], force: bool) -> Result<()> {
    // A link and the file that it leads to.
    let names = |path: &PathBuf| [path.canonicalize().ok(), parts(path).ok()];
    let read: Vec<PathBuf> = inputs.iter().flat_map(names).flatten().collect();
    let mut taken: Vec<PathBuf> = Vec::new();
    for output in outputs {
        let path = output.path();
        let wrong = |what: &str| Failure::arguments(format!("{}: {what}", path.display()));
        if is_standard_output(path) {
            match output {
                Output::Labels(..) | Output::Rows(_) => continue,
                _ => {
                    return Err(wrong(
                        "only labels and rows can go to the standard output: name a file",
                    ));
                }
            }
        }
        let whole = parts(path)?;
        if read.contains(&whole) {
            return Err(wrong(
                "is read as an input: choose another name for the output",
            ));
        }
        if taken.contains(&whole) {
            return Err(wrong(
                "is named for two outputs: choose another name for one of them",
            ));
        }
        taken.push(whole);
        match fs::metadata(path) {
            Ok(there) if !there.is_file() => {
                return Err(wrong(
                    "is there, and no file that can be replaced: choose another name",
                ));
            }
            Ok(there) if there.len() > 0 && !force => {
                if let (false, kind) = output.replaces_its_own() {
                    return Err(wrong(&format!(
                        "is there, and nothing in it says that it is a {kind} of coremix: choose another name, or replace it with --force"
                    )));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a path names the standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// Writes a file under another name, and then renames it. After an error the old file stays.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut WholeFile) -> Result<()>) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    write(&mut file)?;
    Ok(file.finish()?)
}
