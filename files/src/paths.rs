//! Files by their paths: addresses, folders, patterns, streams.

use crate::fault::fault;
use crate::format::Format;
use crate::options::Options;
use coremix::Result;
use std::borrow::Cow;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The path of an address such as `file:///data/points.csv`; other paths as they are.
///
/// # Errors
/// [`Error::File`] for an address of another kind.
pub(crate) fn local(path: &Path) -> Result<Cow<'_, Path>> {
    let text = path.to_string_lossy();
    let Some((scheme, place)) = text.split_once("://").filter(|_| !path.exists()) else {
        return Ok(path.into());
    };
    let sign = |sign: char| sign.is_ascii_alphanumeric() || "+-.".contains(sign);
    if scheme.is_empty() || !scheme.chars().all(sign) {
        return Ok(path.into());
    }
    let place = place.strip_prefix("localhost").unwrap_or(place);
    if !scheme.eq_ignore_ascii_case("file") || !place.starts_with('/') {
        let what = "only addresses of files on this machine are read, such as file:///data/points.csv: copy it here, or pipe it, as \
                    `curl ADDRESS | coremix fit -`";
        return Err(fault(&text, what));
    }
    let mut bytes = Vec::new();
    let mut rest = place.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| byte == b'%');
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        rest = if code.is_some() { &after[2..] } else { after };
        bytes.push(code.unwrap_or(byte));
    }
    let place = String::from_utf8(bytes).map_err(|_| fault(&text, "is not text in UTF-8"))?;
    Ok(PathBuf::from(place).into())
}

/// The files that a path names, as [`open`](crate::open) reads them: itself, those of a folder or of a pattern, in the order of
/// their names.
///
/// # Errors
/// [`Error::File`](coremix::Error::File) where there is none.
pub fn files_of(path: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let name = path.display().to_string();
    let (pattern, none) = match (path.is_dir(), path.exists()) {
        (true, _) => (
            format!("{}/*", glob::Pattern::escape(&name)),
            "a folder without files of a known format: check the path, or give one",
        ),
        (_, false) if name.contains(['*', '?', '[']) => {
            (name.clone(), "no file matches this pattern")
        }
        _ => return Ok(vec![path.to_owned()]),
    };
    let mut found = Vec::new();
    let mut patterns = vec![pattern];
    while let Some(pattern) = patterns.pop() {
        for file in glob::glob(&pattern).map_err(|error| fault(&name, error))? {
            let file = file.map_err(|error| fault(&name, error))?;
            let own = file.file_name().unwrap_or_default().to_string_lossy();
            let known = options.format.is_some() || Format::of(&file).is_some();
            let hidden = path.is_dir() && own.starts_with(['.', '_']);
            if file.is_dir() && !hidden && own.contains('=') {
                let inside = glob::Pattern::escape(&file.display().to_string());
                patterns.push(format!("{inside}/*"));
            } else if file.is_file() && !hidden && (known || !path.is_dir()) {
                found.push(file);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        Err(fault(&name, none))
    } else {
        Ok(found)
    }
}

/// The name of the standard input in errors.
pub(crate) const INPUT: &str = "standard input";

pub(crate) fn is_input(path: &Path) -> bool {
    path == Path::new("-")
}

pub(crate) fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    let is = |about: Metadata| std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type());
    #[cfg(not(unix))]
    let is = |_: Metadata| false;
    path.metadata().is_ok_and(is)
}
