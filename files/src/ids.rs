//! Columns that name the rows, and names of columns.

use coremix::ModelInfo;
use coremix::data::Summary;
use std::collections::BTreeMap;

/// The names of the columns of a model, if whoever saved it noted them as the command and Python do: the note `columns`, a JSON
/// list. [`Options::columns`](crate::Options::columns) reads these columns, in this order.
///
/// ```
/// use coremix::prelude::*;
/// use coremix::{ModelInfo, Save, families::GaussianMixture};
///
/// let means = ndarray::array![[35.0, 2e3], [50.0, 4e3]];
/// let model = GaussianMixture::tied_spherical(means.view(), 9.0)?;
/// let file = model.to_bytes(&[("columns", r#"["age","income"]"#)])?;
/// let info = ModelInfo::read_from(&file[..])?;
/// assert_eq!(coremix_files::column_names(&info).unwrap(), ["age", "income"]);
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub fn column_names(info: &ModelInfo) -> Option<Vec<String>> {
    let names: Vec<String> = serde_json::from_str(info.note("columns")?).ok()?;
    (names.len() == info.columns).then_some(names)
}

/// The note of a model with the texts of its columns.
const TEXTS: &str = "texts";

/// The texts of the columns of a model that were text, in the order of their codes, if whoever saved it noted them:
/// [`Options::texts`](crate::Options::texts) reads these columns so.
#[must_use]
pub fn column_texts(info: &ModelInfo) -> BTreeMap<String, Vec<String>> {
    let texts = info.note(TEXTS).map(serde_json::from_str);
    texts.and_then(Result::ok).unwrap_or_default()
}

/// The note for the file of a model with texts of columns, its name and its value; `None` where there are none.
#[must_use]
pub fn texts_note(texts: &BTreeMap<String, Vec<String>>) -> Option<(&'static str, String)> {
    let note = || Some((TEXTS, serde_json::to_string(texts).ok()?));
    if texts.is_empty() { None } else { note() }
}

/// Columns of numbers that seem to name the rows, so that clusters should not follow them: the number of each, and the reason.
///
/// They are whole numbers. Either they count the rows, in any order; or the name of the column is that of an id or a key, and
/// the numbers are far enough apart that each row can have its own.
///
/// ```
/// use coremix::data::{Data, Dense};
///
/// let points = ndarray::array![[7.5, 3.0], [1.5, 1.0], [1.5, 2.0], [9.5, 4.0]];
/// let points = Dense::new(&points)?;
/// let names = ["x".into(), "place".into()];
/// let reasons = coremix_files::row_names(&names, points.summary());
/// assert_eq!(reasons, [(1, "numbers the rows")]);
/// # Ok::<(), coremix::Error>(())
/// ```
#[must_use]
pub fn row_names(names: &[String], summary: &Summary) -> Vec<(usize, &'static str)> {
    let n = summary.rows as f64;
    let steps = n - 1.0;
    let expected = (n * n - 1.0) / 12.0;
    let is = |x: f64, expected: f64| (x - expected).abs() <= 1e-9 * expected.abs();
    let reason = |j: usize, name: &String| {
        let (low, high) = summary.range[j];
        if n <= 2.0 || low.fract() != 0.0 || high.fract() != 0.0 {
            return None;
        }
        // No other whole numbers have this range, mean and variance.
        let middle = 0.5 * (low + high);
        if high - low == steps && is(summary.mean[j], middle) && is(summary.variance[j], expected) {
            return Some((j, "numbers the rows"));
        }
        (is_of_ids(name) && high - low >= steps).then_some((j, "seems to name the rows"))
    };
    // The numbers of lists have no names of their own.
    let names = names.iter().filter(|_| names.len() == summary.mean.len());
    names
        .enumerate()
        .filter_map(|(j, name)| reason(j, name))
        .collect()
}

/// Whether ids and keys are called so: the last word of a name says it, as in `customer_id` and `customerId`.
fn is_of_ids(name: &str) -> bool {
    let word = name
        .rsplit(|sign: char| !sign.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let camel = ["Id", "ID", "Key"].iter().any(|ending| {
        let before = word.strip_suffix(ending);
        before.is_some_and(|before| before.ends_with(char::is_lowercase))
    });
    let known = ["id", "ids", "key", "index", "idx", "uid", "pk", "rowid"];
    camel || known.contains(&&*word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coremix::data::{Data, Dense};
    use ndarray::Array2;

    fn reason(name: &str, value: impl Fn(usize) -> f64) -> Option<&'static str> {
        let column = Array2::from_shape_fn((50, 1), |(row, _)| value(row));
        let rows = Dense::new(&column).expect("finite numbers");
        let reasons = row_names(&[name.to_owned()], rows.summary());
        reasons.first().map(|(_, reason)| *reason)
    }

    #[test]
    fn numbers_of_rows_and_ids_are_found() {
        let counts = Some("numbers the rows");
        assert_eq!(reason("x", |row| row as f64), counts);
        assert_eq!(reason("x", |row| 1e6 - row as f64), counts);
        assert_eq!(
            reason("anything", |row| (row * 7 % 50) as f64 + 3.0),
            counts
        );
        let ids = Some("seems to name the rows");
        for name in [
            "id",
            "ID",
            "customer_id",
            "customerId",
            "row key",
            "Index",
            "a.idx",
        ] {
            assert_eq!(reason(name, |row| (1_000 + 17 * row) as f64), ids, "{name}");
        }
    }

    #[test]
    fn other_columns_are_not() {
        let other = |row: usize| (1_000 + 17 * row) as f64;
        for name in [
            "x", "width", "grid", "paid", "COVID", "keyword", "monkey", "valid", "", "id_of_x",
        ] {
            assert_eq!(reason(name, other), None, "{name}");
        }
        // Few numbers, as of groups; numbers with fractions; one number.
        assert_eq!(reason("shop_id", |row| (row % 9) as f64), None);
        assert_eq!(reason("index", |row| 1.3 + row as f64), None);
        assert_eq!(reason("id", |_| 4.0), None);
        assert_eq!(reason("id", |row| (row % 2) as f64 * 48.0), None);
    }
}
