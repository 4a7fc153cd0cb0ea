//! The container of every file: first bytes, a header of text, values in the format of `postcard`, and a checksum of all.

use super::codec::{self, Hasher};
use crate::base::file_fault::FileFault;
use crate::base::serde::{DeserializeOwned, Serialize};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

type Result<T> = std::result::Result<T, FileFault>;

#[derive(Debug)]
pub(crate) struct FileKind {
    /// The first bytes. A transfer as text, or of 7 bits, changes them.
    magic: [u8; 12],
    /// The format that is written. Versions from 1 on are read.
    pub(crate) version: u32,
}

pub(crate) const MODEL: FileKind = FileKind {
    magic: *b"\x89coremix\r\n\x1a\n",
    version: 1,
};

pub(crate) const CHECKPOINT: FileKind = FileKind {
    magic: *b"\x89coremck\r\n\x1a\n",
    version: 1,
};

pub(crate) const SUMS: FileKind = FileKind {
    magic: *b"\x89coremsu\r\n\x1a\n",
    version: 1,
};

/// Bytes before the header: magic bytes, version, length of the file, length of the header.
const PREFIX: usize = 12 + 4 + 8 + 8;

/// Bytes of the checksum.
const SUM: usize = 4;

struct Prefix {
    version: u32,
    /// The length of the whole file.
    length: u64,
    header: u64,
}

impl Prefix {
    /// From the first bytes of a file, or all if there are fewer.
    fn of(kind: &FileKind, bytes: &[u8]) -> Result<Self> {
        let magic = &kind.magic;
        let start = &bytes[..bytes.len().min(magic.len())];
        if start.is_empty() || !magic.starts_with(start) {
            return Err(FileFault::Foreign);
        }
        let rest = bytes.get(magic.len()..).unwrap_or_default();
        let (version, rest) = rest.split_first_chunk().ok_or(FileFault::Truncated)?;
        let version = u32::from_le_bytes(*version);
        if !(1..=kind.version).contains(&version) {
            return Err(FileFault::Version {
                found: version,
                known: kind.version,
            });
        }
        let (length, rest) = rest.split_first_chunk().ok_or(FileFault::Truncated)?;
        let header = rest.first_chunk().ok_or(FileFault::Truncated)?;
        Ok(Self {
            version,
            length: u64::from_le_bytes(*length),
            header: u64::from_le_bytes(*header),
        })
    }
}

/// A whole file whose checksum is right.
#[derive(Debug)]
pub(crate) struct Contents<'a> {
    pub(crate) version: u32,
    pub(crate) header: &'a str,
    pub(crate) values: &'a [u8],
}

impl<'a> Contents<'a> {
    pub(crate) fn of(kind: &FileKind, bytes: &'a [u8]) -> Result<Self> {
        let prefix = Prefix::of(kind, bytes)?;
        let length = bytes.len() as u64;
        if length < prefix.length {
            return Err(FileFault::Truncated);
        }
        if length > prefix.length {
            return Err(FileFault::Longer);
        }
        let whole = bytes.split_last_chunk::<SUM>();
        let (whole, sum) = whole.ok_or(FileFault::Truncated)?;
        if checksum(whole) != u32::from_le_bytes(*sum) {
            return Err(FileFault::Checksum);
        }
        let rest = whole.get(PREFIX..).ok_or(FileFault::Truncated)?;
        let header = usize::try_from(prefix.header).ok();
        let parts = header.and_then(|length| rest.split_at_checked(length));
        let (header, values) = parts.ok_or(FileFault::Truncated)?;
        Ok(Self {
            version: prefix.version,
            header: text(header)?,
            values,
        })
    }
}

fn text(header: &[u8]) -> Result<&str> {
    std::str::from_utf8(header).map_err(|_| FileFault::content("header", "must be UTF-8"))
}

/// Names with their values as the text of a header, one on each line.
pub(crate) fn lines<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let line = |(name, value)| format!("{name}: {value}\n");
    fields.into_iter().map(line).collect()
}

/// The names with their values in the text of a header, unless it is something else.
pub(crate) fn fields(header: &str) -> Option<Vec<(&str, &str)>> {
    header.lines().map(|line| line.split_once(": ")).collect()
}

/// The version and the header of a file, whose rest is not read.
pub(crate) fn read_header(kind: &FileKind, mut from: impl Read) -> Result<(u32, String)> {
    let mut bytes = Vec::new();
    from.by_ref().take(PREFIX as u64).read_to_end(&mut bytes)?;
    let prefix = Prefix::of(kind, &bytes)?;
    let mut header = Vec::new();
    // Memory grows as bytes come, whatever length the file claims.
    from.take(prefix.header).read_to_end(&mut header)?;
    if (header.len() as u64) < prefix.header {
        return Err(FileFault::Truncated);
    }
    Ok((prefix.version, text(&header)?.to_string()))
}

/// The bytes of a whole file of this kind. One of another kind is not read to its end.
pub(crate) fn read_file(kind: &FileKind, path: &Path) -> Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let bytes = read_one(kind, &mut file)?;
    match file.take(1).read_to_end(&mut Vec::new())? {
        0 => Ok(bytes),
        _ => Err(FileFault::Longer),
    }
}

/// The bytes of one file; its start says how many they are. Memory grows as they come.
pub(crate) fn read_one(kind: &FileKind, mut from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(PREFIX as u64).read_to_end(&mut bytes)?;
    let prefix = Prefix::of(kind, &bytes)?;
    let rest = prefix.length.saturating_sub(bytes.len() as u64);
    from.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first value of some bytes, which are left without it. `section` is what errors call it.
pub(crate) fn take<T: DeserializeOwned>(section: &str, bytes: &mut &[u8]) -> Result<T> {
    let rule = "is not valid";
    let (value, rest) = codec::read(bytes).ok_or_else(|| FileFault::content(section, rule))?;
    *bytes = rest;
    Ok(value)
}

pub(crate) fn only<T: DeserializeOwned>(section: &str, mut bytes: &[u8]) -> Result<T> {
    let value = take(section, &mut bytes)?;
    if bytes.is_empty() {
        Ok(value)
    } else {
        Err(FileFault::content(section, "has trailing bytes"))
    }
}

pub(crate) fn put<T: Serialize + ?Sized>(value: &T, to: &mut dyn Write) -> io::Result<()> {
    codec::write(value, to)
}

pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> io::Result<Vec<u8>> {
    // Its length first: a vector that grows would take up to three times the memory.
    let (length, _) = pour(&mut io::sink(), &|to| put(value, to))?;
    let mut bytes = Vec::with_capacity(length as usize);
    put(value, &mut bytes)?;
    Ok(bytes)
}

type Fill<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// Writes a file of this kind. `fill` is called twice: the length of the file comes first in it, and files may be larger
/// than what is to be kept in memory.
pub(crate) fn write_to(
    to: &mut dyn Write,
    kind: &FileKind,
    header: &str,
    fill: Fill<'_>,
) -> io::Result<()> {
    let (length, _) = pour(&mut io::sink(), fill)?;
    let length = (PREFIX + header.len() + SUM) as u64 + length;
    let (_, sum) = pour(to, &|to| {
        to.write_all(&kind.magic)?;
        to.write_all(&kind.version.to_le_bytes())?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&(header.len() as u64).to_le_bytes())?;
        to.write_all(header.as_bytes())?;
        fill(to)
    })?;
    to.write_all(&sum.to_le_bytes())
}

/// Bytes on their way: their number, their checksum, and why they could not be written.
struct Sink<'a> {
    to: &'a mut dyn Write,
    length: u64,
    sum: Hasher,
    fault: Option<io::Error>,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(fault) = self.to.write_all(bytes) {
            let kind = fault.kind();
            self.fault.get_or_insert(fault);
            return Err(kind.into());
        }
        self.length += bytes.len() as u64;
        self.sum.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all that `fill` writes: how many bytes that is, and their checksum.
fn pour(to: &mut dyn Write, fill: Fill<'_>) -> io::Result<(u64, u32)> {
    /// Bytes of the buffer for writing.
    const BUFFER_BYTES: usize = 1 << 16;

    let mut sink = Sink {
        to,
        length: 0,
        sum: Hasher::new(),
        fault: None,
    };
    let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, &mut sink);
    let written = fill(&mut buffer).and_then(|()| buffer.flush());
    drop(buffer);
    // An error that came through serde says no more than that something went wrong.
    match sink.fault {
        Some(fault) => Err(fault),
        None => written.map(|()| (sink.length, sink.sum.finalize())),
    }
}

/// The checksum of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finalize()
}

/// A checksum of numbers, as text: what tells large arrays from others.
pub(crate) fn hash_of(numbers: impl IntoIterator<Item = f64>) -> String {
    let mut hasher = Hasher::new();
    let numbers = numbers.into_iter();
    numbers.for_each(|x| hasher.update(&x.to_le_bytes()));
    format!("{:08x}", hasher.finalize())
}
