//! Where results go: files, checked before the work, and the standard output.

use crate::failure::{Failure, Result};
use std::fmt::Display;
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

/// Prints what something is: its name, and as many lines as its words need.
pub(crate) fn item(name: &str, text: impl Display) -> Result<()> {
    /// Where the words begin, without the blank before each.
    const AT: usize = 15;
    say(&wrapped(&format!("{name:<AT$}"), AT, &text.to_string()))
}

/// Says on the standard error what may be wrong.
pub(crate) fn warn(what: &str) {
    eprintln!("{}", wrapped("coremix: warning:", 2, what));
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
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::file(Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}
