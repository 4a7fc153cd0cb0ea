//! `coremix info`

use crate::arguments::Info;
use crate::failure::Result;
use crate::outputs::{item, say};
use crate::{parameters, rows};
use coremix::{BoxedMixture, Error, FileFault, ModelInfo, Save};
use coremix_files::{Options, open};

pub(crate) fn run(info: &Info) -> Result<()> {
    match ModelInfo::of_file(&info.file) {
        Ok(found) => of_model(info, &found),
        // Not a model: rows, perhaps.
        Err(Error::Model {
            fault: FileFault::Foreign,
            ..
        }) if info.parameters.is_none() => of_rows(info),
        Err(_) if info.file.is_dir() && info.parameters.is_none() => of_rows(info),
        Err(error) => Err(error.into()),
    }
}

fn of_model(info: &Info, found: &ModelInfo) -> Result<()> {
    // Only a whole file is a model.
    match &*found.number {
        "f64" => drop(<BoxedMixture<f64> as Save>::load(&info.file)?),
        _ => drop(<BoxedMixture<f32> as Save>::load(&info.file)?),
    }
    if let Some(path) = &info.parameters {
        parameters::write(&info.file, path)?;
    }
    if info.json {
        let notes: serde_json::Map<_, _> = found
            .notes
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        let text = serde_json::json!({
            "family": found.family,
            "number_type": found.number,
            "components": found.components,
            "columns": found.columns,
            "crate_version": found.crate_version,
            "format": found.format,
            "notes": notes,
        });
        say(&text.to_string())?;
        return Ok(());
    }
    item(
        "model",
        format_args!("{}, in {}", found.family, found.number),
    )?;
    item("components", found.components)?;
    let (d, names) = (found.columns, rows::columns_of(found).unwrap_or_default());
    let colon = if names.is_empty() { "" } else { ": " };
    item("columns", format_args!("{d}{colon}{}", names.join(", ")))?;
    item(
        "written by",
        format_args!("coremix {}, format {}", found.crate_version, found.format),
    )?;
    for (name, value) in found.notes.iter().filter(|note| note.0 != rows::COLUMNS) {
        item(name, value)?;
    }
    info.parameters
        .as_ref()
        .map_or(Ok(()), |path| item("parameters", path.display()))
}

fn of_rows(info: &Info) -> Result<()> {
    let opened = open(&info.file, &Options::new())?;
    let (rows, columns, element) = (opened.rows.len(), opened.rows.dim(), opened.rows.element());
    let files = opened.files.len();
    if info.json {
        let element = element.to_string();
        let text = serde_json::json!({
            "rows": rows, "columns": columns, "number_type": element, "files": files,
            "names": opened.columns, "not_used": opened.not_used,
        });
        say(&text.to_string())?;
        return Ok(());
    }
    let s = if files == 1 { "" } else { "s" };
    item("rows", format_args!("{rows}, in {files} file{s}"))?;
    rows::say_columns(&opened)?;
    let bytes = match element {
        coremix_files::ElementType::U8 => 1,
        coremix_files::ElementType::F32 => 4,
        _ => 8,
    };
    let mib = (rows as f64 * columns as f64 * f64::from(bytes)) / f64::from(1 << 20);
    item(
        "memory",
        format_args!("{mib:.1} MiB, if all were read at once, as {element}"),
    )
}
