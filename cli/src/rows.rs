//! Rows of files, opened as the arguments say.

use crate::arguments::{Input, Number};
use crate::failure::{Failure, Result};
use crate::progress::Bar;
use coremix::data::{Blocks, Data, Dense, Source};
use coremix::{Element, ModelInfo};
use coremix_files::ReadAhead;
use coremix_files::{AnySource, ElementType, Format, Opened, Options, Rows, open, open_all};
use indicatif::ProgressBar;
use ndarray::Array2;
use std::io;
use std::path::Path;

/// Runs `$body` with the rows of a source, whatever their type is.
macro_rules! with_rows {
    ($source:expr, |$rows:ident| $body:expr) => {
        match $source {
            coremix_files::AnySource::U8($rows) => $body,
            coremix_files::AnySource::F32($rows) => $body,
            coremix_files::AnySource::F64($rows) => $body,
            _ => Err($crate::failure::Failure::arguments(
                "numbers of an unknown type",
            )),
        }
    };
}
pub(crate) use with_rows;

/// Rows that are read ahead; a bar counts them.
pub(crate) struct Counted<T: Element> {
    rows: ReadAhead<Rows<T>>,
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

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        self.rows.read(first, out)?;
        self.bar.inc((out.len() / self.dim().max(1)) as u64);
        Ok(())
    }
}

/// Rows of files: loaded, or read when they are asked for. The fits are the same, bit for bit.
pub(crate) enum FileData<T: Element> {
    Loaded(Dense<'static, T>, Counted<T>),
    Streamed(Blocks<Counted<T>>),
}

impl<T: Element> FileData<T> {
    pub(crate) fn as_data(&self) -> &dyn Data<T::Float> {
        match self {
            Self::Loaded(rows, _) => rows,
            Self::Streamed(rows) => rows,
        }
    }

    /// The rows of the files.
    pub(crate) fn source(&self) -> &Counted<T> {
        match self {
            Self::Loaded(_, source) => source,
            Self::Streamed(rows) => rows.source(),
        }
    }
}

/// Checks all rows, and makes data of them. The bar counts all rows that are read.
pub(crate) fn data<T: Element>(
    rows: Rows<T>,
    weights: Option<Vec<f64>>,
    loaded: bool,
    bar: &Bar,
) -> Result<FileData<T>> {
    /// Rows that are read at once.
    const PIECE: usize = 1 << 16;
    let source = Counted {
        bar: bar.of_passes(rows.len()),
        rows: ReadAhead::new(rows),
    };
    let (n, dim) = (source.len(), source.dim());
    if !loaded || n == 0 || dim == 0 {
        return Ok(FileData::Streamed(match weights {
            Some(weights) => Blocks::weighted(source, weights)?,
            None => Blocks::new(source)?,
        }));
    }
    let mut values = vec![T::default(); n * dim];
    for (piece, out) in values.chunks_mut(PIECE * dim).enumerate() {
        let first = piece * PIECE;
        let read = source.read(first, out);
        read.map_err(|error| Failure::rows(&error))?;
    }
    let values = Array2::from_shape_vec((n, dim), values).expect("n x d numbers");
    let dense = match weights {
        Some(weights) => Dense::owned_weighted(values, weights)?,
        None => Dense::owned(values)?,
    };
    Ok(FileData::Loaded(dense, source))
}

/// Opens the files for a fit.
pub(crate) fn for_fit(input: &Input) -> Result<Opened> {
    opened(input, options(input, &input.columns)?)
}

/// Which columns are read, in one line; none where they have no names.
pub(crate) fn columns_of(opened: &Opened) -> Option<String> {
    const SHOWN: usize = 20;
    let list = |names: &[String]| {
        let shown = names[..names.len().min(SHOWN)].join(", ");
        match names.len() > SHOWN {
            true => format!("{shown}, ... ({} in all)", names.len()),
            false => shown,
        }
    };
    let not_used = match opened.not_used.is_empty() {
        true => String::new(),
        false => format!(" (not used: {})", list(&opened.not_used)),
    };
    let named = !opened.columns.is_empty();
    named.then(|| format!("columns: {}{not_used}", list(&opened.columns)))
}

/// The format of a file, or of files in a folder.
fn format_of(path: &Path) -> Option<Format> {
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    let formats = inside.filter_map(|entry| Format::of(entry.path()));
    Format::of(path).or_else(|| formats.into_iter().next())
}

/// Opens the files for a model: the columns are those it was fitted on, by their names where both have them.
pub(crate) fn for_model(input: &Input, info: &ModelInfo) -> Result<Opened> {
    let fitted = info
        .note(COLUMNS)
        .and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let named = input.format.as_ref().map_or_else(
        || input.rows.first().and_then(|path| format_of(path)),
        |name| Format::named(name),
    );
    let has_names = !matches!(named, Some(Format::Npy | Format::Vectors(_)));
    let columns = match fitted {
        Some(fitted) if !input.columns.is_empty() && input.columns != fitted => {
            let fitted = fitted.join(", ");
            return Err(Failure::arguments(format!(
                "--columns: the model was fitted on {fitted}, in this order: leave --columns out"
            )));
        }
        Some(fitted) if has_names => fitted,
        _ => input.columns.clone(),
    };
    let mut options = options(input, &columns)?;
    if info.number == "f64" && input.float.is_none() {
        options = options.element(ElementType::F64);
    }
    let opened = opened(input, options)?;
    let is_f64 = matches!(opened.rows, AnySource::F64(_));
    if is_f64 != (info.number == "f64") {
        let hint = match is_f64 {
            true => "these rows hold numbers that need f64; --float f32 rounds them",
            false => "leave --float out",
        };
        let number = &info.number;
        return Err(Failure::arguments(format!(
            "the model is in {number}: {hint}"
        )));
    }
    Ok(opened)
}

/// The note of a model that names its columns.
pub(crate) const COLUMNS: &str = "columns";

fn options(input: &Input, columns: &[String]) -> Result<Options> {
    let mut options = Options::new();
    if input.no_header {
        options = options.header(false);
    }
    if !columns.is_empty() {
        options = options.columns(columns);
    }
    if let Some(weights) = &input.weights {
        options = options.weight(weights);
    }
    for key in &input.key {
        options = options.key(key);
    }
    if let Some(name) = &input.format {
        let format = Format::named(name);
        let known = "must be parquet, arrow, csv, tsv, csv.gz, npy, fvecs, bvecs, fbin or u8bin";
        let unknown = || Failure::arguments(format!("--format {name}: {known}"));
        options = options.format(format.ok_or_else(unknown)?);
    }
    if let Some(delimiter) = input.delimiter {
        let rule = "must be one ASCII character";
        let wide = |_| Failure::arguments(format!("--delimiter {delimiter}: {rule}"));
        options = options.delimiter(u8::try_from(delimiter).map_err(wide)?);
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
    Ok(match &input.rows[..] {
        [one] => open(one, &options)?,
        several => open_all(several, &options)?,
    })
}
