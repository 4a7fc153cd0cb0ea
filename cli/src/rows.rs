//! Rows of files, opened as the arguments say.

use crate::arguments::{Common, Input, Names, Number};
use crate::failure::{Failure, Result};
use crate::messages::{item, warn};
use crate::progress::Bar;
use coremix::data::{Blocks, Data, Dense, Sketch, Source, Sparse, Summary};
use coremix::{Cancel, Element, Error, FileFault, ModelInfo};
use coremix_files::{
    AnySource, Bytes, ElementType, Format, Found, InMemory, Missing, Opened, Options, ReadAhead,
    Rows, column_texts, files_of, open, open_all, row_names,
};
use indicatif::ProgressBar;
use ndarray::Array2;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs `$body` with the rows of a source, whatever their type is.
macro_rules! with_rows {
    ($source:expr, |$rows:ident| $body:expr) => {
        match $source {
            coremix_files::AnySource::U8($rows) => $body,
            coremix_files::AnySource::I8($rows) => $body,
            coremix_files::AnySource::F16($rows) => $body,
            coremix_files::AnySource::F32($rows) => $body,
            coremix_files::AnySource::F64($rows) => $body,
            _ => Err($crate::failure::Failure::arguments(
                "numbers of an unknown type",
            )),
        }
    };
}
pub(crate) use with_rows;

/// Rows that several read.
pub(crate) type Shared<T> = Arc<Rows<T>>;

/// Rows that are read ahead; a bar counts them.
pub(crate) struct Counted<T: Element> {
    rows: ReadAhead<Shared<T>>,
    bar: ProgressBar,
}

impl<T: Element> Source for Counted<T> {
    type Element = T;

    fn name(&self) -> &'static str {
        self.rows.name()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn may_miss(&self) -> bool {
        self.rows.may_miss()
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        self.rows.read(first, out)?;
        self.bar.inc((out.len() / self.dim().max(1)) as u64);
        Ok(())
    }
}

/// Rows of files: loaded, or read when they are asked for. The fits are the same, bit for bit.
pub(crate) enum FileData<'a, T: Element> {
    Sparse(Sparse<'a, T::Float>),
    Loaded(Dense<'static, T>),
    /// Loaded, and some values are missing.
    Known(Blocks<InMemory<T>>),
    /// A few coordinates of each row are in memory.
    Sketched(Sketch<T::Float>),
    Streamed(Blocks<Counted<T>>),
}

impl<T: Element> FileData<'_, T> {
    pub(crate) fn as_data(&self) -> &dyn Data<T::Float> {
        match self {
            Self::Sparse(rows) => rows,
            Self::Loaded(rows) => rows,
            Self::Known(rows) => rows,
            Self::Sketched(rows) => rows,
            Self::Streamed(rows) => rows,
        }
    }
}

/// Checks all rows, and makes data of them. The bar counts all rows that are read.
pub(crate) fn data<'a, T: Element>(
    rows: &'a Shared<T>,
    weights: Option<Vec<f64>>,
    loaded: bool,
    bar: &Bar,
) -> Result<FileData<'a, T>> {
    /// Rows that are read in one batch.
    const BATCH_ROWS: usize = 1 << 16;
    if let Some((starts, ids, values)) = rows.lists() {
        // These files have no column of weights.
        let rows = Sparse::new(rows.dim(), starts, ids, values)?;
        return Ok(FileData::Sparse(rows));
    }
    let source = Counted {
        bar: bar.of_passes(rows.len()),
        rows: ReadAhead::new(rows.clone()),
    };
    let n = source.len();
    let dim = source.dim();
    if !loaded || n == 0 || dim == 0 {
        return Ok(FileData::Streamed(match weights {
            Some(weights) => Blocks::weighted(source, weights)?,
            None => Blocks::new(source)?,
        }));
    }
    let mut values = vec![T::default(); n * dim];
    for (piece, out) in values.chunks_mut(BATCH_ROWS * dim).enumerate() {
        let first = piece * BATCH_ROWS;
        let read = source.read(first, out);
        read.map_err(|error| Failure::rows(&error))?;
    }
    let values = Array2::from_shape_vec((n, dim), values).expect("n x d numbers");
    if source.may_miss() {
        let values = InMemory(values);
        return Ok(FileData::Known(match weights {
            Some(weights) => Blocks::weighted(values, weights)?,
            None => Blocks::new(values)?,
        }));
    }
    Ok(FileData::Loaded(Dense::owned(values, weights)?))
}

/// A sketch of all rows, which are read once: `q` coordinates of each, chosen by `seed`. The bar counts the rows.
pub(crate) fn sketched<'a, T: Element>(
    rows: &Shared<T>,
    weights: Option<&[f64]>,
    sketch: (usize, u64),
    bar: &Bar,
    cancel: &Cancel,
) -> coremix::Result<FileData<'a, T>> {
    let source = Counted {
        bar: bar.of_passes(rows.len()),
        rows: ReadAhead::new(rows.clone()),
    };
    let made = coremix_files::sketch(&source, weights, sketch, cancel)?;
    Ok(FileData::Sketched(made))
}

/// The files that the arguments name.
pub(crate) fn files(input: &Input) -> Result<Vec<PathBuf>> {
    let options = options(input, &[], None)?;
    let files = input.rows.iter().map(|path| files_of(path, &options));
    Ok(files.collect::<coremix::Result<Vec<_>>>()?.concat())
}

/// Opens the files for a fit.
pub(crate) fn for_fit(input: &Input, common: &Common) -> Result<Opened> {
    /// About a column that is there.
    const NOT_NAMED: &str = "is not among the columns that are read: name it in --columns, too";
    let opened = rows_of(input, &common.categories, None, common.memory)?;
    for (option, given) in [
        ("--counts", &common.counts),
        ("--categories", &common.categories),
    ] {
        for name in names(given) {
            let mut others = opened.not_used.iter();
            let holds = others
                .find(|other| other.0 == name)
                .map(|other| &other.1[..]);
            let named = keys(input).contains(&name) || input.weights.as_ref() == Some(&name);
            let what = match holds {
                _ if opened.columns.contains(&name) => continue,
                None if named => "is one of --key and --weights, which no model sees".to_owned(),
                None if opened.columns.is_empty() => continue,
                None => {
                    let others = opened.not_used.iter().map(|other| &other.0);
                    let existing: Vec<&str> = opened
                        .columns
                        .iter()
                        .chain(others)
                        .map(|name| &**name)
                        .collect();
                    let existing = existing.join(", ");
                    return Err(Failure::arguments(format!(
                        "{option} {name}: no such column; they are {existing}"
                    )));
                }
                Some("text") if option == "--categories" => NOT_NAMED.into(),
                Some("durations" | "times" | "true or false") => NOT_NAMED.into(),
                Some(holds) if holds.starts_with("numbers") || holds.starts_with("amounts") => {
                    NOT_NAMED.into()
                }
                Some(holds) => format!("holds {holds}, and must hold numbers"),
            };
            let message = format!("{option} {name}: this column {what}");
            return Err(Failure::arguments(message));
        }
    }
    if opened.rows.is_empty() {
        Err(Failure::file(&input.rows[0], "there is no row"))
    } else {
        Ok(opened)
    }
}

/// The rows of an input, which may be none, with a count of the missing values.
pub(crate) fn rows_of(
    input: &Input,
    categories: &[Names],
    missing: Option<Missing>,
    memory: Bytes,
) -> Result<Opened> {
    let mut options = options(input, &names(&input.columns), None)?
        .memory(memory)
        .categories(names(categories));
    if let (Some(missing), false) = (missing, input.drop_missing || input.missing.is_some()) {
        options = options.missing(missing);
    }
    let opened = opened(input, options).map_err(|failure| {
        match input
            .rows
            .iter()
            .find(|path| ModelInfo::of_file(path).is_ok())
        {
            Some(path) => Failure::file(path, "is a model, and not rows"),
            None => failure,
        }
    })?;
    let mut names = opened.columns.iter();
    if opened.guessed_header == Some(true)
        && let Some(name) = names.find(|name| name.parse::<f64>().is_ok())
    {
        let what = "names a column: give --no-header if the first line is a row, or --header";
        warn(&format!("{name:?} {what}"));
    }
    Ok(opened)
}

/// The names of the keys.
pub(crate) fn keys(input: &Input) -> Vec<String> {
    names(&input.key)
}

/// The header of the file of a model.
pub(crate) fn model(path: &Path) -> Result<ModelInfo> {
    ModelInfo::of_file(path).map_err(|error| match error {
        Error::Model {
            fault: FileFault::Foreign,
            ..
        } => Failure::file(
            path,
            "is no model of coremix: give the model first, then the rows",
        ),
        error => error.into(),
    })
}

/// The names of the columns of a model, also of one column of lists.
pub(crate) fn column_names(info: &ModelInfo) -> Option<Vec<String>> {
    let lists = || serde_json::from_str(info.note(COLUMNS)?).ok();
    let lists = lists().filter(|names: &Vec<String>| names.len() == 1);
    coremix_files::column_names(info).or(lists)
}

/// Whether names are those that columns get which have none.
fn are_numbers(names: &[String]) -> bool {
    names.iter().all(|name| {
        let number = name.strip_prefix("column_");
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    })
}

/// Prints which columns are read, and which are not, with what they hold.
pub(crate) fn say_columns(opened: &Opened) -> Result<()> {
    /// Names that are printed, at most.
    const SHOWN: usize = 50;
    let list = |names: &mut dyn Iterator<Item = String>, number: usize| {
        let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
        if number > SHOWN {
            format!("{shown}, ... ({number} in all)")
        } else {
            shown
        }
    };
    let used = &opened.columns;
    let others = &opened.not_used;
    match used.is_empty() {
        true => item(
            "columns",
            format_args!("{}, without names", opened.rows.dim()),
        )?,
        false if used.len() < opened.rows.dim() => item(
            "columns",
            format_args!(
                "{}, lists of {} numbers",
                used.join(", "),
                opened.rows.dim()
            ),
        )?,
        false => item("columns", list(&mut used.iter().cloned(), used.len()))?,
    }
    let first = |name: &String| {
        let mut texts = opened.first_texts.iter();
        texts.find(|text| text.0 == *name).map(|text| &*text.1)
    };
    let mut named = others.iter().map(|(name, holds)| {
        let first: String = first(name).unwrap_or_default().chars().take(20).collect();
        let first = if first.is_empty() {
            first
        } else {
            format!(": {first:?}")
        };
        let name = if name.is_empty() { "unnamed" } else { name };
        format!("{name} ({holds}{first})")
    });
    if !others.is_empty() {
        item("not used", list(&mut named, others.len()))?;
    }
    let mut texts = opened.first_texts.iter().map(|(name, _)| name.clone());
    if !opened.first_texts.is_empty() {
        let names = list(&mut texts, opened.first_texts.len()).replace(", ", ",");
        item(
            "categories",
            format_args!("none; -a table takes text, by --categories {names}"),
        )?;
    }
    let mut read = opened
        .read_as
        .iter()
        .map(|(name, how)| format!("{name} ({how})"));
    if !opened.read_as.is_empty() {
        item("read as", list(&mut read, opened.read_as.len()))?;
    }
    // If they are kept: others are told with their place.
    let kept = |missing: &&Found| missing.first.is_none() && missing.values > 0;
    if let Some(missing) = opened.missing.as_ref().filter(kept) {
        let values = missing.values;
        let rows = missing.rows;
        item("missing", format_args!("{values} values, in {rows} rows"))?;
    }
    match opened.guessed_header {
        Some(false) => item("first line", "a row; with --header it names the columns"),
        _ => Ok(()),
    }
}

/// Says what is wrong with the columns of a model of one variance for all of them, or of an id, if anything seems to be.
pub(crate) fn warn_of_columns(names: &[String], summary: &Summary, one_variance: bool) {
    let name = |j: usize| {
        // The numbers of lists have no names of their own.
        let name = names.get(j).filter(|_| names.len() == summary.mean.len());
        name.map_or(format!("column {j}"), |name| format!("{name:?}"))
    };
    for (j, reason) in row_names(names, summary) {
        warn(&format!("{} {reason}: --key leaves it out", name(j)));
    }
    let deviations = summary.variance.iter().map(|variance| variance.sqrt());
    let varying = deviations
        .enumerate()
        .filter(|(_, deviation)| *deviation > 0.0);
    let by = |one: &(usize, f64), other: &(usize, f64)| one.1.total_cmp(&other.1);
    let narrow = varying.clone().min_by(by);
    let wide = varying.max_by(by);
    // Pixels and the like have one unit, also where some hardly vary.
    if let (true, 2..=100, Some((i, narrow)), Some((j, wide))) =
        (one_variance, summary.mean.len(), narrow, wide)
        && wide > 100.0 * narrow
    {
        warn(&format!(
            "{} varies {:.0} times as much as {}, so that it decides alone: see --standardise",
            name(j),
            wide / narrow,
            name(i),
        ));
    }
}

/// The format of the files, or of files in the folder.
fn format_of(input: &Input) -> Option<Format> {
    if let Some(name) = &input.format {
        return Format::named(name);
    }
    let path = input.rows.first()?;
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut formats = inside.filter_map(|entry| Format::of(entry.path()));
    Format::of(path).or_else(|| formats.next())
}

/// Opens the files for a model: the columns are those it was fitted on, by their names where both have them.
pub(crate) fn for_model(input: &Input, info: &ModelInfo) -> Result<Opened> {
    let asked = names(&input.columns);
    let fitted = column_names(info);
    let numbered = fitted.as_deref().is_some_and(are_numbers);
    let has_names = match format_of(input) {
        Some(Format::Npy | Format::Npz | Format::Svmlight | Format::Vectors(_)) => false,
        _ => numbered || !input.no_header,
    };
    let columns = match &fitted {
        Some(fitted) if !asked.is_empty() && asked != *fitted && has_names && !numbered => {
            let fitted = fitted.join(", ");
            return Err(Failure::arguments(format!(
                "--columns: the model was fitted on {fitted}, in this order: leave --columns out"
            )));
        }
        Some(fitted) if has_names && asked.is_empty() => fitted.clone(),
        _ => asked.clone(),
    };
    let with = |columns: &[String]| {
        let mut options = options(input, columns, info.note(MISSING))?.width(info.columns);
        for (column, texts) in column_texts(info) {
            options = options.texts(column, texts);
        }
        Ok::<_, Failure>(if info.number == "f64" && input.float.is_none() {
            options.element(ElementType::F64)
        } else {
            options
        })
    };
    let mut in_order = fitted.is_none();
    let opened = match opened(input, with(&columns)?) {
        Err(failure) if asked.is_empty() && has_names => {
            // Names on one side alone.
            let Ok(others) = opened(input, with(&[])?) else {
                return Err(failure);
            };
            match (&fitted, are_numbers(&others.columns)) {
                (Some(fitted), true) if !numbered => {
                    return Err(Failure::arguments(format!(
                        "{}: its columns have no names, and the model was fitted on {}: give --no-header, if they are these, in this order",
                        others.files[0].display(),
                        fitted.join(", ")
                    )));
                }
                (Some(_), false) if numbered => in_order = true,
                _ => return Err(failure),
            }
            others
        }
        opened => opened?,
    };
    if in_order && asked.is_empty() && !opened.columns.is_empty() {
        let names = opened.columns.join(", ");
        warn(&format!(
            "the model names no columns: the rows of these are given to it, in this order: {names}"
        ));
    }
    let is_f64 = matches!(opened.rows, AnySource::F64(_));
    if is_f64 != (info.number == "f64") {
        let hint = if is_f64 {
            "these rows hold numbers that need f64; --float f32 rounds them"
        } else {
            "leave --float out"
        };
        let number = &info.number;
        return Err(Failure::arguments(format!(
            "the model is in {number}: {hint}"
        )));
    }
    Ok(opened)
}

/// The note of a model that names its columns, that with the texts of its categories, and that with those of missing values.
pub(crate) const COLUMNS: &str = "columns";
pub(crate) const TEXTS: &str = "texts";
pub(crate) const MISSING: &str = "missing";

/// The texts that stand for missing values, if rows may have some.
pub(crate) fn missing(input: &Input) -> Option<Vec<String>> {
    let texts = input.missing.as_ref()?;
    Some(texts.clone().map_or_else(Vec::new, |texts| texts.0))
}

/// The names of some lists of them.
fn names(lists: &[Names]) -> Vec<String> {
    lists.iter().flat_map(|list| list.0.clone()).collect()
}

/// A sign of one byte.
fn byte(option: &str, sign: char) -> Result<u8> {
    let wide = || Failure::arguments(format!("{option} {sign}: must be one ASCII character"));
    // Some other signs are one byte in Latin-1, but not in the files.
    let byte = u8::try_from(sign).ok().filter(u8::is_ascii);
    byte.ok_or_else(wide)
}

/// Options for these columns, and for the missing values of this note of a model, unless the arguments say others.
fn options(input: &Input, columns: &[String], note: Option<&str>) -> Result<Options> {
    let mut options = Options::new();
    if input.no_header || input.header {
        options = options.header(input.header);
    }
    if !columns.is_empty() {
        options = options.columns(columns);
    }
    if let Some(weights) = &input.weights {
        options = options.weight(weights);
    }
    for key in names(&input.key) {
        options = options.key(key);
    }
    if let Some(name) = &input.format {
        let format = Format::named(name);
        let known = "must be parquet, arrow, csv, tsv, csv.gz, npy, npz, svmlight, fvecs, bvecs, fbin or u8bin";
        let unknown = || Failure::arguments(format!("--format {name}: {known}"));
        options = options.format(format.ok_or_else(unknown)?);
        if name.starts_with("tsv") {
            options = options.delimiter(b'\t');
        }
    }
    if let Some(sign) = input.delimiter {
        options = options.delimiter(byte("--delimiter", sign)?);
    }
    if let Some(sign) = input.comment {
        options = options.comment(byte("--comment", sign)?);
    }
    if let Some(sign) = input.decimal {
        options = options.decimal(sign);
    }
    if let Some(sign) = input.thousands {
        options = options.thousands(sign);
    }
    if let Some(name) = &input.encoding {
        options = options.encoding(name);
    }
    let noted = || serde_json::from_str(note?).ok();
    if input.drop_missing {
        options = options.missing(Missing::Drop);
    } else if let Some(texts) = missing(input).or_else(noted) {
        if let Some(path) = texts.iter().find(|text| Path::new(text).is_file()) {
            return Err(Failure::arguments(format!(
                "--missing {path}: is a file, and no text of a missing value: give --missing after the files"
            )));
        }
        options = options.missing(Missing::Keep).missing_texts(texts);
    }
    if let Some(folder) = &input.spool {
        options = options.spool(folder);
    }
    Ok(match input.float {
        Some(Number::F32) => options.element(ElementType::F32).rounded(),
        Some(Number::F64) => options.element(ElementType::F64),
        None => options,
    })
}

fn opened(input: &Input, options: Options) -> Result<Opened> {
    let opened = match &input.rows[..] {
        [one] => open(one, &options)?,
        several => open_all(several, &options)?,
    };
    if let (true, Some(missing)) = (input.drop_missing, &opened.missing)
        && missing.rows > 0
    {
        let total = opened.rows.len() + missing.rows;
        let labels = if input.key.is_empty() {
            "; any labels are of the others, in their order: --key says which"
        } else {
            ""
        };
        let rows = missing.rows;
        warn(&format!(
            "{rows} of {total} rows have a missing value and are left out{labels}"
        ));
    }
    Ok(opened)
}
