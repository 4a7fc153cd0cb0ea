//! One entry for files of all formats.

use crate::cells::Cells;
use crate::choice::{Column, Holds};
use crate::fault::fault;
use crate::format::Format;
use crate::keys::Keys;
use crate::missing::{self, Dropped, Found};
use crate::numbers::{ALLOW, ElementType, NO_NAN, Number};
use crate::options::{Missing, Options};
use crate::part::Part;
use crate::paths::{INPUT, files_of, is_input, local};
use crate::source::{self, Made, Rows, by_parts};
use crate::sparse::SparseRows;
use crate::table::ReadAt;
use crate::texts::{Distinct, Texts};
use coremix::data::Source;
use coremix::{Error, Result};
use half::f16;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rows of files, in the element type that they have.
#[non_exhaustive]
pub enum AnySource {
    /// Rows of `u8`.
    U8(Rows<u8>),
    /// Rows of `i8`.
    I8(Rows<i8>),
    /// Rows of `half::f16`.
    F16(Rows<f16>),
    /// Rows of `f32`.
    F32(Rows<f32>),
    /// Rows of `f64`.
    F64(Rows<f64>),
}

impl fmt::Debug for AnySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySource")
            .field("element", &self.element())
            .field("len", &self.len())
            .field("dim", &self.dim())
            .finish()
    }
}

/// Does the same with rows of each type.
macro_rules! each {
    ($any:expr, $rows:ident => $do:expr) => {
        match $any {
            AnySource::U8($rows) => $do,
            AnySource::I8($rows) => $do,
            AnySource::F16($rows) => $do,
            AnySource::F32($rows) => $do,
            AnySource::F64($rows) => $do,
        }
    };
}

impl AnySource {
    /// The element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::U8(_) => ElementType::U8,
            Self::I8(_) => ElementType::I8,
            Self::F16(_) => ElementType::F16,
            Self::F32(_) => ElementType::F32,
            Self::F64(_) => ElementType::F64,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(self, rows => rows.len())
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    #[must_use]
    pub fn dim(&self) -> usize {
        each!(self, rows => rows.dim())
    }

    /// Number of the values that sparse rows store; `None` for dense rows.
    #[must_use]
    pub fn stored(&self) -> Option<usize> {
        each!(self, rows => rows.lists().map(|(_, ids, _)| ids.len()))
    }
}

/// The rows of files, with their weights, keys and columns.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The rows.
    pub rows: AnySource,
    /// A weight for each row, if a column was named.
    pub weights: Option<Vec<f64>>,
    /// The key columns, if some were named.
    pub keys: Option<Keys>,
    /// These columns, to read them again.
    pub key_columns: KeyColumns,
    /// The files, in the order of their rows.
    pub files: Vec<PathBuf>,
    /// The names of the columns of the rows, in their order; none in formats without names.
    pub columns: Vec<String>,
    /// The columns that are neither of these nor weights or keys: their names, and what they hold, such as `text`.
    pub not_used: Vec<(String, String)>,
    /// The texts of the columns whose text is read as codes, in the order of the codes: [`Options::categories`].
    pub texts: Vec<(String, Vec<String>)>,
    /// The columns whose values say numbers, and which: true and false, times, amounts of money.
    pub read_as: Vec<(String, String)>,
    /// The columns of text that are not used, and the first text of each: [`Options::categories`] reads them.
    pub first_texts: Vec<(String, String)>,
    /// Whether the first line of text was taken for names, where some of it are numbers and [`Options::header`] does not say.
    pub guessed_header: Option<bool>,
    /// The values that are missing, if [`Options::missing`] asks for them.
    pub missing: Option<Found>,
    /// Bytes that a decoder of these files takes while rows are read, at most: see [`Room::decoder`](crate::Room::decoder).
    pub decoder: u64,
}

/// Opens files of any format: one file, a folder of files, or a pattern such as `part-*.parquet`. Several files are read in
/// the order of their names. In a folder, files of known formats are read, but not hidden ones. The first file with rows says
/// which columns are read; they are found by their names in the others.
///
/// Folders in a folder are read if their names are like `year=2024`, as Hive writes them: `year` is a column that can be named.
/// The path `-`, and one that is a pipe, is read once, into a temporary file ([`Options::spool`]).
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix::prelude::*;
/// use coremix_files::{AnySource, ElementType, Options, open};
///
/// let options = Options::new().key("id").element(ElementType::F64);
/// let AnySource::F64(rows) = open("points", &options)?.rows else {
///     unreachable!("numbers were asked for as f64");
/// };
/// let data = Blocks::new(rows)?;
/// let fit = algorithms::fast_within(1_000, 1 << 30).build()?.fit(&data)?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::File`](coremix::Error::File) for a file that cannot be read, is damaged, or does not have such columns; and
/// where files differ in their columns.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Opened> {
    let path = &*local(path.as_ref())?;
    let files = files_of(path, options)?;
    let parts = files.iter().map(|file| Part::open(file, path, options));
    opened(parts.collect::<Result<_>>()?, files.clone(), options)
}

/// Opens several files of any format: their rows come in the order given.
///
/// # Errors
/// As [`open`].
pub fn open_all(files: &[PathBuf], options: &Options) -> Result<Opened> {
    if files.iter().filter(|file| is_input(file)).count() > 1 {
        return Err(fault(INPUT, "can be read once only"));
    }
    let files: Vec<PathBuf> = files
        .iter()
        .map(|file| local(file).map(Cow::into_owned))
        .collect::<Result<_>>()?;
    let parts = files.iter().map(|file| Part::open(file, file, options));
    opened(parts.collect::<Result<_>>()?, files.clone(), options)
}

/// The rows of bytes in a format that has columns.
pub(crate) fn of_bytes(
    bytes: Arc<dyn ReadAt>,
    format: Format,
    options: &Options,
) -> Result<Opened> {
    let part = Part::of(bytes, format, Path::new(""), Path::new(""), options)?;
    opened(vec![part], Vec::new(), options)
}

fn opened(mut parts: Vec<Part>, files: Vec<PathBuf>, options: &Options) -> Result<Opened> {
    // Text without rows may hold anything.
    if parts.iter().any(Part::has_rows) {
        parts.retain(Part::has_rows);
    }
    let mut guessed_header = None;
    let mut not_used = Vec::new();
    let mut read_as = Vec::new();
    let mut first_texts = Vec::new();
    let (mut options, named) = (options.clone(), options.columns.is_some());
    // Parts have been decoded.
    options.encoding = None;
    for part in &parts {
        let Some((columns, _)) = part.sparse else {
            continue;
        };
        // A value that is not there is 0, so that nothing is counted.
        match options.missing {
            None | Some(Missing::Count) => options.missing = None,
            Some(_) => {
                let what = "sparse rows have no missing values: what is not there is 0";
                return Err(part.fault(what));
            }
        }
        options.width = options.width.max(columns);
    }
    options.texts.extend(texts(&parts, &options)?);
    cells(&mut parts, &mut options)?;
    let mut tables = parts.iter().zip(parts.iter().map(|part| &part.columns));
    if let Some((part, Some(columns))) = tables.find(|table| table.1.is_some()) {
        guessed_header = part.guessed.then_some(columns.named);
        let used = columns
            .features(&options)
            .map_err(|what| part.fault(what))?;
        let name = |place: &usize| columns.each[*place].name.clone();
        let used: Vec<String> = used.iter().map(name).collect();
        not_used = columns.not_used(&used, &options);
        for one in &columns.each {
            let name = one.name.clone();
            let is_left = not_used
                .iter()
                .any(|(other, words)| *other == name && words == "text");
            match (one.holds, &one.first) {
                (Holds::Cells(cells), _)
                    if used.contains(&name) && !options.texts.contains_key(&name) =>
                {
                    read_as.push((name, cells.read_as()));
                }
                (_, Some(first)) if is_left => first_texts.push((name, first.clone())),
                _ => {}
            }
        }
        options.columns = Some(used);
    }
    let (mut missing, dropped) =
        missing::scan(&options, &|options| Ok(rows(&parts, options, &None)?.0))?;
    let keeps = options.missing == Some(Missing::Keep);
    if let (true, false, Some(names), Some(missing)) =
        (keeps, named, &mut options.columns, &mut missing)
        && names.len() == missing.known.len()
        && missing.values > 0
    {
        let mut known = missing.known.iter();
        let none: Vec<_> = names
            .extract_if(.., |_| known.next() == Some(&false))
            .map(|name| (name, "no value".to_owned()))
            .collect();
        missing.count(none.len());
        not_used.extend(none);
        if names.is_empty() {
            return Err(parts[0].fault("has no column of which some value is there"));
        }
    }
    let some = keeps && missing.as_ref().is_some_and(|missing| missing.values > 0);
    options.lenient = dropped.is_some() || some;
    if options.element.is_none() {
        let elements = parts
            .iter()
            .map(|part| part.element(&options))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        options.element = elements
            .reduce(ElementType::with)
            .map(|element| if some { element.with_nan() } else { element });
    }
    let element = options.element.unwrap_or(ElementType::U8);
    if some && element != element.with_nan() {
        return Err(parts[0].fault(NO_NAN));
    }
    let options = &options;
    let dropped = &dropped;
    macro_rules! of {
        ($kind:ident) => {{
            let (rows, decoder) = rows(&parts, options, dropped)?;
            (AnySource::$kind(rows), decoder)
        }};
    }
    let (rows, decoder) = match element {
        ElementType::U8 => of!(U8),
        ElementType::I8 => of!(I8),
        ElementType::F16 => of!(F16),
        ElementType::F32 => of!(F32),
        ElementType::F64 => of!(F64),
    };
    let weights = weights(&parts, options, dropped)?;
    let columns = options.columns.clone().unwrap_or_default();
    let texts = options
        .texts
        .iter()
        .filter(|(column, _)| columns.contains(column))
        .map(|(column, texts)| (column.clone(), texts.in_order()))
        .collect();
    let key_columns = KeyColumns {
        options: options.clone(),
        dropped: dropped.clone(),
        parts,
    };
    Ok(Opened {
        rows,
        weights,
        keys: key_columns.read()?,
        key_columns,
        files,
        texts,
        read_as,
        first_texts,
        guessed_header,
        missing,
        columns,
        not_used,
        decoder,
    })
}

/// Tells all files which columns say numbers, as the first that knows it does: others may have no value in their first rows. Files that
/// differ in it are an error.
fn cells(parts: &mut [Part], options: &mut Options) -> Result<()> {
    let is_read = |options: &Options, name: &String| {
        let columns = options.columns.as_ref();
        columns.is_none_or(|columns| columns.contains(name)) && !options.texts.contains_key(name)
    };
    let mut known: BTreeMap<String, (&Column, &Part)> = BTreeMap::new();
    for part in &*parts {
        for one in part.columns.iter().flat_map(|columns| &columns.each) {
            let says = matches!(one.holds, Holds::Numbers(_) | Holds::Cells(_));
            if one.is_open || !says {
                continue;
            }
            let (first, other) = *known.entry(one.name.clone()).or_insert((one, part));
            let differs = match (first.holds, one.holds) {
                (Holds::Cells(cells), Holds::Cells(others)) => cells != others,
                (Holds::Cells(cells), _) | (_, Holds::Cells(cells)) => cells == Cells::Days,
                _ => false,
            };
            if differs && is_read(options, &one.name) {
                let what = format!(
                    "column {:?} holds {}, where {} has {}",
                    one.name,
                    one.words,
                    other.bytes.name(),
                    first.words
                );
                return Err(part.fault(what));
            }
            if let (Holds::Numbers(_), Holds::Cells(_)) = (first.holds, one.holds) {
                known.insert(one.name.clone(), (one, part));
            }
        }
    }
    let known: Vec<_> = known
        .into_iter()
        .map(|(name, (one, _))| (name, one.holds))
        .collect();
    for (name, holds) in known {
        if let (Holds::Cells(cells), true) = (holds, is_read(options, &name)) {
            options.cells.insert(name, cells);
        }
    }
    let each = parts.iter_mut().filter_map(|part| part.columns.as_mut());
    each.for_each(|columns| columns.told(options));
    Ok(())
}

/// The texts of the columns that are categories, if some of what they hold is no number.
fn texts(parts: &[Part], options: &Options) -> Result<Vec<(String, Texts)>> {
    let is_csv = |part: &Part| matches!(part.format, Format::Csv | Format::CsvGz);
    let may_be = |part: &Part, name: &str| match part.holds(name) {
        Some(Holds::Words | Holds::Text | Holds::Cells(_)) => true,
        holds => holds.is_some() && is_csv(part),
    };
    let mut as_keys = options.clone();
    as_keys.keys.clone_from(&options.categories);
    as_keys.keys.retain(|name| {
        let is_read = options
            .columns
            .as_ref()
            .is_none_or(|columns| columns.contains(name));
        let known = options.texts.contains_key(name);
        is_read && !known && parts.iter().any(|part| may_be(part, name))
    });
    if as_keys.keys.is_empty() {
        return Ok(Vec::new());
    }
    let signs = options.signs();
    let mut distinct_texts: Vec<Distinct> =
        as_keys.keys.iter().map(|_| Distinct::default()).collect();
    for part in parts.iter().filter(|part| part.columns.is_some()) {
        for batch in part.keys(&as_keys)?.batches() {
            let batch = batch?;
            let columns = as_keys.keys.iter().zip(&mut distinct_texts);
            for (place, (name, distinct)) in columns.enumerate() {
                let of_folder = part.folders.find(name).is_some();
                let is_missing = |text: &str| !of_folder && signs.is_missing(text);
                // Text of a file whose columns have types is text, whatever it says.
                let typed = matches!(part.holds(name), Some(Holds::Words | Holds::Cells(_)));
                distinct.is_text |= typed && !is_csv(part);
                distinct.see(
                    &batch,
                    place,
                    is_missing,
                    options.memory.unwrap_or(u64::MAX),
                )?;
            }
        }
    }
    let columns = as_keys.keys.into_iter().zip(distinct_texts);
    Ok(columns
        .filter_map(|(name, distinct)| Some((name, distinct.coded()?)))
        .collect())
}

/// The key columns of files that are open, or none.
pub struct KeyColumns {
    parts: Vec<Part>,
    options: Options,
    dropped: Dropped,
}

impl fmt::Debug for KeyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.options.keys).finish()
    }
}

impl KeyColumns {
    /// The keys from the first row on, if some were named.
    ///
    /// # Errors
    /// [`Error::File`] where they cannot be read.
    pub fn read(&self) -> Result<Option<Keys>> {
        keys(&self.parts, &self.options, &self.dropped)
    }
}

/// The rows of all files, without those that are dropped, and the bytes of the largest decoder.
fn rows<T: Number>(parts: &[Part], options: &Options, dropped: &Dropped) -> Result<(Rows<T>, u64)> {
    let rows = parts.iter().map(|part| part.rows(options));
    let (rows, decoders): (_, Vec<u64>) = rows.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let rows = joined(parts, rows)?;
    let rows = match dropped {
        Some(dropped) => missing::kept(rows, dropped),
        None => rows,
    };
    Ok((rows, decoders.into_iter().max().unwrap_or(0)))
}

fn joined<T: Number>(parts: &[Part], mut rows: Vec<Rows<T>>) -> Result<Rows<T>> {
    if rows.len() == 1 {
        return Ok(rows.remove(0));
    }
    // Parts without rows may have any number of columns.
    let with_rows = || (0..rows.len()).filter(|part| !rows[*part].is_empty());
    let first = with_rows().next().unwrap_or(0);
    let dim = rows.get(first).ok_or(Error::Empty { what: "data" })?.dim();
    if let Some(other) = with_rows().find(|part| rows[*part].dim() != dim) {
        let columns = rows[other].dim();
        let name = parts[first].bytes.name();
        return Err(parts[other].fault(format!("has {columns} columns, where {name} has {dim}")));
    }
    if let Some(sparse) = SparseRows::join(dim, &rows) {
        return Ok(Box::new(sparse));
    }
    let ends = source::ends(rows.iter().map(|rows| rows.len()));
    let len = ends.last().copied().unwrap_or(0);
    let may_miss = rows.iter().any(|rows| rows.may_miss());
    Ok(Made::of([len, dim], may_miss, move |first, out| {
        let read = |part: usize, start, row, out: &mut [T]| rows[part].read(row - start, out);
        by_parts(&ends, dim, first, out, read)
    }))
}

/// The column of the weights, of all files.
fn weights(parts: &[Part], options: &Options, dropped: &Dropped) -> Result<Option<Vec<f64>>> {
    /// Rows that are read at once.
    const PIECE: usize = 1 << 16;
    let Some(column) = &options.weight else {
        return Ok(None);
    };
    let mut weight_options = options.only(column);
    weight_options.lenient = dropped.is_some();
    let (rows, _): (Rows<f64>, _) = rows(parts, &weight_options, dropped)?;
    if rows.dim() != 1 && !rows.is_empty() {
        let what = format!("column {column:?} holds lists, not weights");
        return Err(parts[0].fault(what));
    }
    // A file can say that it has more rows than there is memory for.
    let mut weights = Vec::new();
    while weights.len() < rows.len() {
        let first = weights.len();
        weights.resize(rows.len().min(first + PIECE), 0.0);
        let read = rows.read(first, &mut weights[first..]);
        read.map_err(|error| {
            let what = error.to_string().replace(ALLOW, "");
            fault(&format!("weights {column:?}"), what)
        })?;
    }
    Ok(Some(weights))
}

/// The key columns of all files.
fn keys(parts: &[Part], options: &Options, dropped: &Dropped) -> Result<Option<Keys>> {
    if options.keys.is_empty() {
        return Ok(None);
    }
    let mut keys: Option<Keys> = None;
    for part in parts.iter().filter(|part| part.columns.is_some()) {
        let part_keys = part.keys(options)?;
        keys = Some(match keys {
            Some(before) => before.chain(part_keys)?,
            None => part_keys,
        });
    }
    Ok(match dropped {
        Some(dropped) => keys.map(|keys| keys.without(Arc::clone(dropped))),
        None => keys,
    })
}
