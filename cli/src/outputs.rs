//! Where results go: files, checked before the work, and the standard output.

use crate::failure::{Failure, Result};
use crate::progress;
use coremix::{Error, FileFault, ModelInfo, Report};
use coremix_files::{LabelWriter, WholeFile};
use ndarray_npy::NpzReader;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    Model(&'a Path),
    /// Where a fit goes on; it is never begun over a file that is none.
    Checkpoint(&'a Path),
    /// Labels, with these keys.
    Labels(&'a Path, &'a [String]),
    /// The report of a fit, as JSON.
    Report(&'a Path),
    /// Arrays for NumPy.
    Parameters(&'a Path),
}

impl<'a> Output<'a> {
    fn path(self) -> &'a Path {
        match self {
            Self::Model(path) | Self::Checkpoint(path) | Self::Labels(path, _) => path,
            Self::Report(path) | Self::Parameters(path) => path,
        }
    }

    /// Whether the file that is there is an older one of its kind, if it may be replaced without a word; and the kind.
    fn replaces_its_own(self) -> (bool, &'static str) {
        match self {
            Self::Model(path) => {
                let own = match ModelInfo::of_file(path) {
                    Err(Error::Model { fault, .. }) => {
                        !matches!(fault, FileFault::Foreign | FileFault::System { .. })
                    }
                    found => found.is_ok(),
                };
                (own, "model")
            }
            Self::Checkpoint(_) => (true, "checkpoint"),
            Self::Labels(path, keys) => {
                let mut others: Vec<&str> = keys.iter().map(|key| &**key).collect();
                others.push(LOG_DENSITY);
                (LabelWriter::wrote(path, &others), "file of labels")
            }
            Self::Report(path) => {
                let file = File::open(path).map(BufReader::new);
                let report = file.map(serde_json::from_reader::<_, Report>);
                (matches!(report, Ok(Ok(_))), "report")
            }
            Self::Parameters(path) => {
                let names = File::open(path)
                    .ok()
                    .and_then(|file| NpzReader::new(file).ok());
                let names = names.and_then(|mut file| file.names().ok());
                let has = |name: &str| {
                    let mut names = names.iter().flatten();
                    names.any(|found| found.trim_end_matches(".npy") == name)
                };
                let own = ["means", "variances", "proportions"].into_iter().all(has);
                (own, "file of parameters")
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
                Output::Labels(..) => continue,
                _ => {
                    return Err(wrong(
                        "only --labels can go to the standard output: name a file",
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
                        "is there, and is no {kind} of coremix: choose another name, or replace it with --force"
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

/// Whether messages are printed, and where: set once, by the arguments.
static QUIET: AtomicBool = AtomicBool::new(false);
static OUTPUT_IS_TAKEN: AtomicBool = AtomicBool::new(false);
static OUTPUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// From now on nothing but results and errors is said.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing but results and errors is said.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// From now on the standard output is for labels alone: whatever else is said goes to the standard error.
pub(crate) fn leave_output_to_labels() {
    OUTPUT_IS_TAKEN.store(true, Ordering::Relaxed);
}

/// The standard output, for labels.
pub(crate) struct StandardOutput(BufWriter<io::Stdout>);

impl StandardOutput {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    /// Whether nobody reads it any more, as after `| head`.
    pub(crate) fn is_closed() -> bool {
        OUTPUT_IS_CLOSED.load(Ordering::Relaxed)
    }
}

/// The result, or nothing where nobody reads any more.
fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            OUTPUT_IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(otherwise)
        }
        result => result,
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Writes a file under another name, and then renames it. After an error the old file stays.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut WholeFile) -> Result<()>) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    write(&mut file)?;
    Ok(file.finish()?)
}

/// Prints what something is: its name, and as many lines as its words need.
pub(crate) fn item(name: &str, text: impl Display) -> Result<()> {
    /// Where the words begin, without the blank before each.
    const AT: usize = 15;
    say(&wrapped(&format!("{name:<AT$}"), AT, &text.to_string()))
}

/// Says on the standard error what may be wrong.
pub(crate) fn warn(what: &str) {
    if !is_quiet() {
        note(&wrapped("coremix: warning:", 2, what));
    }
}

/// Text as it is shown: names from files may hold signs that a terminal takes for commands.
pub(crate) fn seen(text: &str) -> String {
    let show = |sign: char| match sign.is_control() && sign != '\n' {
        true => sign.escape_default().collect::<String>(),
        false => sign.into(),
    };
    text.chars().map(show).collect()
}

/// Prints a line on the standard error, on a line of its own.
pub(crate) fn note(line: &str) {
    let line = seen(line);
    progress::aside(|| eprintln!("{line}"));
}

/// Words after the first ones, in lines of 80 signs: those after the first have blanks before them.
fn wrapped(first: &str, blanks: usize, text: &str) -> String {
    const WIDTH: usize = 80;
    let (mut lines, mut line) = (String::new(), first.to_string());
    let mut begun = false;
    for word in text.split(' ') {
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{line}\n");
            line = " ".repeat(blanks);
        }
        line += " ";
        line += word;
        begun = true;
    }
    lines + &line
}

/// A number of six digits that count.
pub(crate) fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size @ 1e-3..1e9 => format!("{x:.0$}", (5 - size.log10().floor() as i32).max(0) as usize),
        _ => format!("{x:.5e}"),
    }
}

/// Prints a line, unless nobody reads it any more.
pub(crate) fn say(text: &str) -> Result<()> {
    if OUTPUT_IS_TAKEN.load(Ordering::Relaxed) {
        note(text);
        return Ok(());
    }
    let text = seen(text);
    let said = progress::aside(|| writeln!(io::stdout().lock(), "{text}"));
    unless_closed(said, ()).map_err(|error| Failure::file(Path::new("standard output"), error))
}

/// Whether labels are seen on the terminal, where a bar would stand among them.
pub(crate) fn labels_are_shown() -> bool {
    OUTPUT_IS_TAKEN.load(Ordering::Relaxed) && io::stdout().is_terminal()
}
