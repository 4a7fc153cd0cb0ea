//! Files as other programs write them (`tests/made/make.py`): what is to be read of each is in `expected.tsv`.

use crate::common::all;
use arrow_array::Array;
use arrow_cast::display::array_value_to_string;
use coremix_files::{AnySource, ElementType, Options, open};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/made")
}

/// The rows, columns and columns that are not used of a file, and keys if they are asked for.
fn read(path: &Path, key: Option<&str>) -> Result<[String; 4], String> {
    let options = Options::new().element(ElementType::F64);
    let options = key.iter().fold(options, |options, key| options.key(*key));
    let opened = open(path, &options).map_err(|error| error.to_string())?;
    let AnySource::F64(source) = opened.rows else {
        return Err("numbers of another type".into());
    };
    let rows = all(&*source, 3).map_err(|error| error.to_string())?;
    let rows = rows.outer_iter().map(|row| {
        row.iter()
            .map(|x| format!("{x:?}"))
            .collect::<Vec<_>>()
            .join(" ")
    });
    let rows = rows.collect::<Vec<_>>().join(";");
    // A fit refuses it.
    if source.is_empty() {
        return Err(format!("{}: no rows", path.display()));
    }
    let not_used = opened.not_used.iter().filter(|(name, _)| key != Some(name));
    let not_used = not_used.map(|(name, words)| format!("{name} ({words})"));
    let mut keys = String::new();
    if let Some(mut found) = opened.keys {
        let batch = found
            .next(source.len())
            .map_err(|error| error.to_string())?;
        let column = batch.column(0);
        let texts = (0..column.len()).map(|i| array_value_to_string(column, i).unwrap());
        keys = texts.collect::<Vec<_>>().join(",");
    }
    Ok([
        opened.columns.join(","),
        not_used.collect::<Vec<_>>().join(";"),
        rows,
        keys,
    ])
}

#[test]
fn files_as_others_write_them() {
    let folder = folder();
    let table = std::fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let page = std::fs::read_to_string(folder.join("../files-read.txt")).unwrap();
    let (mut known, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in table.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, _, _, columns, not_used, rows, keys, error] = fields[..] else {
            panic!("{line}");
        };
        known.insert(file.to_owned());
        assert!(
            page.contains(&format!("`{file}`")),
            "{file} is not on the page"
        );
        let (name, texts) = keys.split_once('=').unwrap_or_default();
        let plain = read(&folder.join(file), None);
        let of_keys = (!name.is_empty()).then(|| read(&folder.join(file), Some(name)));
        let right = match (&plain, &of_keys) {
            (Err(found), _) => !error.is_empty() && found.contains(error) && found.contains(file),
            (Ok(found), None) => found[..3] == [columns, not_used, rows],
            (Ok(found), Some(keyed)) => {
                let others = not_used
                    .split(';')
                    .filter(|word| !word.starts_with(&format!("{name} (")));
                let others = others.collect::<Vec<_>>().join(";");
                found[..3] == [columns, not_used, rows]
                    && *keyed == Ok([columns, &others, rows, texts].map(str::to_owned))
            }
        };
        if !right {
            wrong.push(format!("{file}: {plain:?}, with keys {of_keys:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.filter_map(|name| name.into_string().ok()).collect();
    let files: BTreeSet<String> = files
        .into_iter()
        .filter(|name| name != "make.py" && name != "expected.tsv")
        .collect();
    assert_eq!(files, known);
}
