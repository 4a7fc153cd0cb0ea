//! What every kind of file is made of: a header, and sections of numbers by name, checked as a whole.

use super::atomic;
use super::checksum::Crc64;
use super::info::{PREFIX, Prefix};
use super::numbers::{Number, size_of_kind};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

type Result<T> = std::result::Result<T, FileFault>;

/// A kind of file.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// The first bytes. A transfer as text, or of 7 bits, changes them.
    pub(super) magic: [u8; 12],
    /// The format that is written. Those from 1 on are read.
    pub(super) version: u32,
}

impl FileKind {
    /// What comes before the header of a file of this length.
    fn prefix(&self, length: u64, header: &str) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        length.put(&mut bytes);
        (header.len() as u64).put(&mut bytes);
        bytes
    }
}

/// What comes before the numbers of a section.
fn head<N: Number>(name: &str, count: usize, bytes: &mut Vec<u8>) {
    (name.len() as u64).put(bytes);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(N::KIND);
    (count as u64).put(bytes);
}

/// Sections on their way into a file. They are not all in memory, however many numbers they have.
pub(crate) struct Stream<'a> {
    /// `None`: they are only counted.
    to: Option<&'a mut dyn io::Write>,
    buffer: Vec<u8>,
    length: u64,
    sum: Crc64,
    fault: Option<io::Error>,
}

/// Bytes that are written together.
const TOGETHER: usize = 1 << 16;

impl<'a> Stream<'a> {
    fn new(to: Option<&'a mut dyn io::Write>) -> Self {
        Self {
            to,
            buffer: Vec::new(),
            length: 0,
            sum: Crc64::default(),
            fault: None,
        }
    }

    /// Sections as bytes in memory.
    pub(crate) fn collect(fill: impl FnOnce(&mut Stream<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut stream = Stream::new(Some(&mut bytes));
        fill(&mut stream);
        stream.flush();
        bytes
    }

    /// A section of these numbers.
    pub(crate) fn numbers<N: Number>(&mut self, name: &str, numbers: &[N]) {
        self.section(name, numbers.len(), numbers.iter().copied());
    }

    /// A section of `count` numbers.
    pub(crate) fn section<N: Number>(
        &mut self,
        name: &str,
        count: usize,
        numbers: impl Iterator<Item = N>,
    ) {
        head::<N>(name, count, &mut self.buffer);
        if self.to.is_none() {
            self.length += (count * N::SIZE) as u64;
            return self.flush();
        }
        for number in numbers.take(count) {
            number.put(&mut self.buffer);
            if self.buffer.len() >= TOGETHER {
                self.flush();
            }
        }
        self.flush();
    }

    /// Bytes as they are: sections that were collected.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.flush();
        self.put(bytes);
    }

    fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let (Some(to), None) = (&mut self.to, &self.fault) {
            self.sum.add(bytes);
            self.fault = to.write_all(bytes).err();
        }
    }
}

/// Writes what a file of this kind is made of. `fill` is called twice: the length of the file comes first in it.
pub(super) fn write_to(
    to: &mut dyn io::Write,
    (kind, header): (&FileKind, &str),
    fill: &dyn Fn(&mut Stream<'_>),
) -> io::Result<()> {
    let mut counted = Stream::new(None);
    fill(&mut counted);
    let length = (PREFIX + header.len() + 8) as u64 + counted.length;
    let mut stream = Stream::new(Some(to));
    stream.bytes(&kind.prefix(length, header));
    stream.bytes(header.as_bytes());
    fill(&mut stream);
    let sum = stream.sum.value();
    stream.bytes(&sum.to_le_bytes());
    match stream.fault {
        Some(fault) => Err(fault),
        None if stream.length == length => Ok(()),
        None => Err(io::Error::other("sections of another length than counted")),
    }
}

/// The same into a file: all of it or nothing.
pub(crate) fn write(
    kind: &FileKind,
    path: &Path,
    header: &str,
    fill: &dyn Fn(&mut Stream<'_>),
) -> Result<()> {
    atomic::write_with(path, |file| write_to(file, (kind, header), fill))?;
    Ok(())
}

/// The sections of a file whose checksum is right, by name.
#[derive(Debug, Default)]
pub(crate) struct Sections<'a> {
    bytes: Cow<'a, [u8]>,
    /// The kind of the numbers of each, and where they are.
    places: BTreeMap<String, (u8, Range<usize>)>,
}

impl<'a> Sections<'a> {
    /// The format, the header and the sections of a whole file.
    pub(crate) fn of_file(kind: &FileKind, bytes: Cow<'a, [u8]>) -> Result<(u32, String, Self)> {
        let prefix = Prefix::of(kind, &bytes)?;
        let found = bytes.len() as u64;
        if found < prefix.length {
            return Err(FileFault::Truncated);
        }
        if found > prefix.length {
            return Err(FileFault::Longer);
        }
        let Some((whole, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(FileFault::Truncated);
        };
        if Crc64::of(whole) != u64::from_le_bytes(*sum) {
            return Err(FileFault::Checksum);
        }
        let mut rest = whole.get(PREFIX..).ok_or(FileFault::Truncated)?;
        let header = std::str::from_utf8(take(&mut rest, prefix.header)?);
        let header = header.map_err(|_| FileFault::content("header", "must be UTF-8"))?;
        let header = header.to_string();
        let mut places = BTreeMap::new();
        while !rest.is_empty() {
            let (name, kind, length) = section(&mut rest)?;
            let end = whole.len() - rest.len();
            let place = (kind, end - length..end);
            if places.insert(name.to_string(), place).is_some() {
                return Err(FileFault::content(name, "is there twice"));
            }
        }
        Ok((prefix.version, header, Self { bytes, places }))
    }

    /// Whether there is such a section.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// All numbers of a section.
    pub(crate) fn all<N: Number>(&mut self, name: &str) -> Result<Vec<N>> {
        let fault = |rule| FileFault::content(name, rule);
        let (kind, place) = self.places.remove(name).ok_or(fault("is missing"))?;
        if kind != N::KIND {
            return Err(fault("has numbers of another kind"));
        }
        let numbers = self.bytes[place].chunks_exact(N::SIZE);
        Ok(numbers.map(N::of).collect())
    }

    /// The only number of a section.
    pub(crate) fn one<N: Number + Default>(&mut self, name: &str) -> Result<N> {
        let numbers = self.numbers(name, &[1])?;
        Ok(numbers.first().copied().unwrap_or_default())
    }

    /// The numbers of a section, as many as the product of `shape`.
    pub(crate) fn numbers<N: Number>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<N>> {
        let product = |count: Option<usize>, n: &usize| count?.checked_mul(*n);
        let expected = shape.iter().fold(Some(1), product);
        let other = |(kind, place): &(u8, Range<usize>)| {
            *kind == N::KIND && expected != Some(place.len() / N::SIZE)
        };
        if self.places.get(name).is_some_and(other) {
            let rule = "must have as many numbers as the header says";
            return Err(FileFault::content(name, rule));
        }
        self.all(name)
    }

    /// The same for numbers that are all finite.
    pub(crate) fn finite<N: Float>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<N>> {
        let numbers = self.numbers::<N>(name, shape)?;
        match numbers.iter().all(|x| x.is_finite()) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be finite")),
        }
    }

    /// The same for numbers that are all finite and positive, and not so small that their reciprocals overflow.
    pub(crate) fn positive(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let numbers = self.finite::<f64>(name, shape)?;
        match numbers.iter().all(|x| *x >= f64::MIN_POSITIVE) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be positive")),
        }
    }

    /// The only number of a section, finite and positive.
    pub(crate) fn one_positive(&mut self, name: &str) -> Result<f64> {
        let numbers = self.positive(name, &[1])?;
        Ok(numbers.first().copied().unwrap_or(1.0))
    }

    /// Numbers below a limit, such as rows or components.
    pub(crate) fn below(&mut self, name: &str, shape: &[usize], limit: usize) -> Result<Vec<u32>> {
        let numbers = self.numbers::<u32>(name, shape)?;
        match numbers.iter().all(|x| (*x as usize) < limit) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be below its limit")),
        }
    }

    /// The numbers below `n`, each once.
    pub(crate) fn permutation(&mut self, name: &str, n: usize) -> Result<Vec<u32>> {
        let numbers = self.below(name, &[n], n)?;
        let mut seen = vec![false; n];
        let first_time = |x: &u32| !std::mem::replace(&mut seen[*x as usize], true);
        match numbers.iter().all(first_time) {
            true => Ok(numbers),
            false => Err(FileFault::content(name, "must be different numbers")),
        }
    }

    /// Counts, `N` of them: no fit comes near 2^60, and sums of a few do not overflow.
    pub(crate) fn counts<const N: usize>(&mut self, name: &str) -> Result<[u64; N]> {
        let counts = <[u64; N]>::try_from(self.numbers::<u64>(name, &[N])?);
        let below = |counts: &[u64; N]| counts.iter().all(|count| *count < 1 << 60);
        let counts = counts.ok().filter(below);
        counts.ok_or_else(|| FileFault::content(name, "must be counts below 2^60"))
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<()> {
        match self.places.keys().next() {
            Some(name) => Err(FileFault::content(name, "is not known")),
            None => Ok(()),
        }
    }
}

/// The next `length` bytes.
fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8]> {
    let length = usize::try_from(length).map_err(|_| FileFault::Truncated)?;
    let parts = rest.split_at_checked(length);
    let (taken, after) = parts.ok_or(FileFault::Truncated)?;
    *rest = after;
    Ok(taken)
}

/// The name of the next section, the kind of its numbers, and how many bytes they are.
fn section<'a>(rest: &mut &'a [u8]) -> Result<(&'a str, u8, usize)> {
    let length = u64::of(take(rest, 8)?);
    let name = std::str::from_utf8(take(rest, length)?);
    let name = name.map_err(|_| FileFault::content("?", "has a name that is not UTF-8"))?;
    let kind = u8::from_le_bytes([take(rest, 1)?[0]]);
    let size = size_of_kind(kind);
    let size = size.ok_or_else(|| FileFault::content(name, "has numbers of an unknown kind"))?;
    let count = u64::of(take(rest, 8)?);
    let length = count.checked_mul(size as u64).ok_or(FileFault::Truncated)?;
    Ok((name, kind, take(rest, length)?.len()))
}
