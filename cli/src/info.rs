//! `coremix info`

use crate::arguments::Info;
use crate::failure::{Failure, Result};
use crate::fit::{MEMORY, NUMBERS, SIZES};
use crate::found::range;
use crate::messages::{item, say, short};
use crate::outputs::{self, Output};
use crate::rows::with_rows;
use crate::{parameters, rows};
use coremix::data::{Blocks, Data, Source};
use coremix::{BoxedMixture, Element, Error, FileFault, Float, ModelInfo, Save};
use coremix_files::{AnySource, Bytes, Missing, Rows, column_texts, row_names};
use std::path::Path;

pub(crate) fn run(info: &Info) -> Result<()> {
    let file = &info.input.rows[0];
    // A folder, a pattern or a stream, which can be read once.
    if !file.is_file() && info.parameters.is_none() {
        return of_rows(info);
    }
    match ModelInfo::of_file(file) {
        Ok(_) if info.input.rows.len() > 1 => Err(Failure::arguments(format!(
            "{}: is a model: give it alone, or rows alone",
            file.display()
        ))),
        Ok(model) => of_model(info, file, &model),
        // Not a model: rows, perhaps.
        Err(Error::Model {
            fault: FileFault::Foreign,
            ..
        }) => match info.parameters {
            None => of_rows(info),
            Some(_) => Err(Failure::file(
                file,
                "is no model of coremix: only a model has --parameters",
            )),
        },
        Err(error) => Err(error.into()),
    }
}

fn of_model(info: &Info, file: &Path, model: &ModelInfo) -> Result<()> {
    if let Some(path) = &info.parameters {
        let output = Output::Parameters(path);
        outputs::check(&[output], &info.input.rows, info.over.force)?;
    }
    // Only a whole file is a model.
    let means = match &*model.number {
        "f64" => <BoxedMixture<f64> as Save>::load(file)?.means(),
        _ => <BoxedMixture<f32> as Save>::load(file)?
            .means()
            .mapv(f64::from),
    };
    if let Some(path) = &info.parameters {
        parameters::write(file, path)?;
    }
    if info.json {
        let notes: serde_json::Map<_, _> = model
            .notes
            .iter()
            .map(|(name, value)| (name.clone(), in_json(name, value)))
            .collect();
        let text = serde_json::json!({
            "family": model.family,
            "number_type": model.number,
            "components": model.components,
            "columns": model.columns,
            "crate_version": model.crate_version,
            "format": model.format,
            "notes": notes,
        });
        say(&text.to_string())?;
        return Ok(());
    }
    item(
        "model",
        format_args!("{}, in {}", model.family, model.number),
    )?;
    item("components", model.components)?;
    let d = model.columns;
    let names = rows::column_names(model).unwrap_or_default();
    let named = names.join(", ");
    item(
        "columns",
        match names.len() {
            0 => d.to_string(),
            1 if d > 1 => format!("{d}: lists in {named}"),
            _ => format!("{d}: {named}"),
        },
    )?;
    item(
        "written by",
        format_args!("coremix {}, format {}", model.crate_version, model.format),
    )?;
    for (name, value) in model
        .notes
        .iter()
        .filter(|note| note.0 != rows::COLUMNS && note.0 != rows::TEXTS)
    {
        match name.as_str() {
            SIZES => item(name, in_short(value))?,
            rows::MISSING => {
                let always = ["nulls, NaN, empty fields, NA and the like".to_owned()];
                let given: Vec<String> = serde_json::from_str(value).unwrap_or_default();
                item(name, [&always[..], &given].concat().join(", "))?;
            }
            MEMORY => item(
                name,
                value
                    .parse()
                    .map_or(value.clone(), |n| Bytes(n).to_string()),
            )?,
            _ => item(name, value)?,
        }
    }
    let texts = column_texts(model);
    for (column, texts) in &texts {
        let more = texts.len().saturating_sub(SCREEN_NUMBERS);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        let shown = texts[..texts.len().min(SCREEN_NUMBERS)].join(", ");
        item("categories", format_args!("{column}: {shown}{more}"))?;
    }
    if means.len() <= SCREEN_NUMBERS {
        let value = |(j, code): (usize, &f64)| {
            let texts = names.get(j).and_then(|name| texts.get(name));
            let text = texts.and_then(|texts| texts.get(*code as usize));
            text.cloned().unwrap_or_else(|| short(*code))
        };
        for (c, mean) in means.outer_iter().enumerate() {
            let values: Vec<String> = mean.iter().enumerate().map(value).collect();
            item(&format!("centre {c}"), values.join(", "))?;
        }
    }
    match &info.parameters {
        Some(path) => item("parameters", path.display()),
        None if means.len() > SCREEN_NUMBERS => item("centres", "see --parameters"),
        None => Ok(()),
    }
}

/// The value of a note in JSON: a number or a list, where the command writes one as text.
fn in_json(name: &str, value: &str) -> serde_json::Value {
    let list = || format!("[{}]", value.replace(' ', ", "));
    let parsed = match name {
        SIZES => serde_json::from_str(&list()).ok(),
        rows::COLUMNS | rows::MISSING | rows::TEXTS => serde_json::from_str(value).ok(),
        _ if NUMBERS.contains(&name) => serde_json::from_str(value).ok(),
        _ => None,
    };
    parsed.unwrap_or_else(|| value.into())
}

/// Memory for rows that are read at once: the default of fits.
const MOST: Bytes = Bytes(2 << 30);

/// Most numbers that are printed on the screen.
const SCREEN_NUMBERS: usize = 100;

/// Some sizes as they are, many by their range.
fn in_short(sizes: &str) -> String {
    let mut numbers: Vec<&str> = sizes.split(' ').collect();
    if numbers.len() <= SCREEN_NUMBERS / 5 {
        return sizes.to_owned();
    }
    numbers.sort_by(|a, b| {
        let number = |size: &str| size.parse().unwrap_or(f64::NAN);
        number(a).total_cmp(&number(b))
    });
    range(&numbers)
}

fn of_rows(info: &Info) -> Result<()> {
    let opened = rows::rows_of(&info.input, &[], Some(Missing::Count), MOST)?;
    let missing = opened
        .missing
        .as_ref()
        .filter(|missing| missing.first.is_some() || missing.values > 0);
    let rows = opened.rows.len();
    let columns = opened.rows.dim();
    let element = opened.rows.element();
    let files = opened.files.len();
    if info.json {
        let marked = naming_rows(opened.rows, &opened.columns)?;
        let element = element.to_string();
        let text = serde_json::json!({
            "rows": rows, "columns": columns, "number_type": element, "files": files,
            "names": opened.columns, "not_used": opened.not_used,
            "read_as": opened.read_as, "first_texts": opened.first_texts, "row_names": marked,
            "missing": missing.map(|missing| serde_json::json!({
                "rows": missing.rows, "values": missing.values, "first": missing.first,
            })),
        });
        say(&text.to_string())?;
        return Ok(());
    }
    let s = if files == 1 { "" } else { "s" };
    item("rows", format_args!("{rows}, in {files} file{s}"))?;
    rows::say_columns(&opened)?;
    if let Some(missing) = missing.filter(|missing| missing.first.is_some()) {
        let bad = missing.rows;
        let values = missing.values;
        let first = missing
            .first
            .as_deref()
            .unwrap_or_default()
            .replace(coremix_files::ALLOW, "");
        match missing.values {
            0 => item("unreadable", first)?,
            _ => item(
                "missing",
                format_args!(
                    "{values} of the values, in {bad} of {rows} rows: see --missing and --drop-missing; the first: {first}"
                ),
            )?,
        }
    }
    if let Some(values) = opened.rows.stored() {
        let lists = Bytes((values as u64).saturating_mul(4 + element.size() as u64));
        let what = "values that are stored; the others are 0";
        return item("memory", format_args!("{lists}, for {values} {what}"));
    }
    let total = Bytes(
        (rows as u64)
            .saturating_mul(columns as u64)
            .saturating_mul(element.size() as u64),
    );
    item(
        "memory",
        format_args!("{total}, if all were read at once, as {element}"),
    )?;
    for (name, reason) in naming_rows(opened.rows, &opened.columns)? {
        item(
            "not for a fit",
            format_args!("{name} {reason}: --key leaves it out"),
        )?;
    }
    Ok(())
}

/// The columns that seem to name the rows, and why: all rows are read, if the first ones let it be.
fn naming_rows(rows: AnySource, names: &[String]) -> Result<Vec<(String, &'static str)>> {
    with_rows!(rows, |rows| Ok(naming_rows_of(rows, names)))
}

fn naming_rows_of<T: Element>(rows: Rows<T>, names: &[String]) -> Vec<(String, &'static str)> {
    /// The rows that are looked at first.
    const FIRST: usize = 1_000;
    let dim = rows.dim();
    let mut first = vec![T::default(); rows.len().min(FIRST) * dim];
    if names.len() != dim || rows.lists().is_some() || rows.read(0, &mut first).is_err() {
        return Vec::new();
    }
    let may_name = |j: usize| {
        let column = first.chunks_exact(dim).map(|row| row[j].widen().to_f64());
        let mut values: Vec<f64> = column.collect();
        values.sort_by(f64::total_cmp);
        let distinct = values.windows(2).all(|pair| pair[0] < pair[1]);
        distinct && values.iter().all(|x| x.fract() == 0.0)
    };
    if !(0..dim).any(may_name) {
        return Vec::new();
    }
    // Rows with errors are told already.
    let Ok(data) = Blocks::new(rows) else {
        return Vec::new();
    };
    row_names(names, data.summary())
        .into_iter()
        .map(|(j, reason)| (names[j].clone(), reason))
        .collect()
}
