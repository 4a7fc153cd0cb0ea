//! What every kind of file is made of: a header, and sections of numbers by name, checked as a whole.

use super::container::{CHECKPOINT, Contents, write_to};
use super::numbers::{Number, size_of_kind};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

type Result<T> = std::result::Result<T, FileFault>;

/// What comes before the numbers of a section.
fn head<N: Number>(name: &str, count: usize, bytes: &mut Vec<u8>) {
    (name.len() as u64).put(bytes);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(N::KIND);
    (count as u64).put(bytes);
}

/// Sections on their way into a file.
pub(crate) struct Stream<'a> {
    to: &'a mut dyn io::Write,
    written: io::Result<()>,
}

impl<'a> Stream<'a> {
    /// Sections as bytes in memory.
    pub(crate) fn collect(fill: impl FnOnce(&mut Stream<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (to, written) = (&mut bytes as &mut dyn io::Write, Ok(()));
        fill(&mut Stream { to, written });
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
        let mut buffer = Vec::new();
        head::<N>(name, count, &mut buffer);
        for number in numbers.take(count) {
            number.put(&mut buffer);
        }
        self.bytes(&buffer);
    }

    /// Bytes as they are: sections that were collected.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if self.written.is_ok() {
            self.written = self.to.write_all(bytes);
        }
    }
}

/// Writes a file of sections: all of it or nothing.
pub(crate) fn write(path: &Path, header: &str, fill: &dyn Fn(&mut Stream<'_>)) -> Result<()> {
    let sections = |to: &mut dyn io::Write| {
        let written = Ok(());
        let mut stream = Stream { to, written };
        fill(&mut stream);
        stream.written
    };
    super::replace(path, |file| write_to(file, &CHECKPOINT, header, &sections))?;
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
    /// The header and the sections of a whole file.
    pub(crate) fn of_file(bytes: Cow<'a, [u8]>) -> Result<(String, Self)> {
        let contents = Contents::of(&CHECKPOINT, &bytes)?;
        let (header, mut rest) = (contents.header.to_string(), contents.values);
        let (start, all) = (rest.as_ptr() as usize - bytes.as_ptr() as usize, rest.len());
        let mut places = BTreeMap::new();
        while !rest.is_empty() {
            let (name, kind, length) = section(&mut rest)?;
            let end = start + all - rest.len();
            let place = (kind, end - length..end);
            if places.insert(name.to_string(), place).is_some() {
                return Err(FileFault::content(name, "is there twice"));
            }
        }
        Ok((header, Self { bytes, places }))
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
