//! Texts that are categories, and their codes.

use crate::cells::Signs;
use crate::fault::fault;
use crate::times::{self, Moment};
use arrow_array::cast::AsArray;
use arrow_array::{Array, Float64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use coremix::Result;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The texts of a column in the order of their codes.
#[derive(Clone, Debug)]
pub(crate) struct Texts(Arc<HashMap<String, u32>>);

/// A text as categories have it: without blanks around it. Programs write true and false, and the same time, in several ways.
fn plain(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let mut truths = ["true", "false"].into_iter();
    if let Some(truth) = truths.find(|truth| text.eq_ignore_ascii_case(truth)) {
        return truth.into();
    }
    match Moment::of(text) {
        Some(moment) => moment.text().into(),
        None => text.into(),
    }
}

/// The values of a column as text: times as ISO 8601 has them, in UTC.
fn texts_of(array: &dyn Array) -> std::result::Result<StringArray, ArrowError> {
    match times::of_column(array)? {
        Some(moments) => {
            let texts = moments.into_iter().map(|one| one.map(Moment::text));
            Ok(texts.collect())
        }
        None => Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()),
    }
}

/// Says that a column holds no texts, where they are needed.
pub(crate) fn not_texts(name: &str, words: &str) -> String {
    format!("column {name:?} holds {words}, where others, or a model, have texts")
}

impl Texts {
    pub(crate) fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut codes = HashMap::new();
        for text in texts {
            let next = codes.len() as u32;
            codes.entry(plain(&text).into_owned()).or_insert(next);
        }
        Self(Arc::new(codes))
    }

    /// The code of a text; for others the first number that is no code.
    pub(crate) fn code(&self, text: &str) -> f64 {
        let code = self.0.get(&*plain(text)).copied();
        code.map_or(self.0.len() as f64, f64::from)
    }

    /// The codes of a column of text; null where a value is missing.
    pub(crate) fn codes(
        &self,
        array: &dyn Array,
        signs: &Signs,
    ) -> std::result::Result<Float64Array, ArrowError> {
        let texts = texts_of(array)?;
        let code = |text: &str| {
            let is_there = !signs.is_missing(text.trim());
            is_there.then(|| self.code(text))
        };
        Ok(texts.iter().map(|text| code(text?)).collect())
    }

    /// The texts in the order of their codes.
    pub(crate) fn in_order(&self) -> Vec<String> {
        let mut texts: Vec<_> = self.0.iter().collect();
        texts.sort_unstable_by_key(|(_, code)| **code);
        texts.into_iter().map(|(text, _)| text.clone()).collect()
    }
}

/// Distinct texts of a column, at most: as many as a fit takes categories.
const MOST: usize = 1 << 20;
/// Bytes of a text in addition to its letters.
const EACH: u64 = 64;

/// The texts that were found in a column.
#[derive(Default)]
pub(crate) struct Distinct {
    texts: HashSet<String>,
    bytes: u64,
    /// Some of it is no number.
    pub(crate) is_text: bool,
    /// There are more than are kept.
    more: bool,
}

impl Distinct {
    /// Sees the texts of a batch, but those that stand for a missing value.
    pub(crate) fn see(
        &mut self,
        batch: &RecordBatch,
        place: usize,
        is_missing: impl Fn(&str) -> bool,
        memory: u64,
    ) -> Result<()> {
        let field = batch.schema_ref().field(place).name();
        let texts = texts_of(batch.column(place)).map_err(|error| fault(field, error))?;
        for text in texts.iter().flatten() {
            if is_missing(text.trim()) {
                continue;
            }
            let text = plain(text);
            self.is_text |= text.parse::<f64>().is_err();
            if !self.more && !self.texts.contains(&*text) {
                self.bytes += text.len() as u64 + EACH;
                self.texts.insert(text.into_owned());
            }
            if self.texts.len() > MOST || self.bytes > memory {
                self.more = true;
                self.texts = HashSet::new();
            }
            if self.more && self.is_text {
                let what = format!(
                    "the column holds more than {MOST} distinct texts, or more than the memory holds: it is no category"
                );
                return Err(fault(&format!("column {field:?}"), what));
            }
        }
        Ok(())
    }

    /// Their codes, in the order of the texts; none for numbers.
    pub(crate) fn coded(self) -> Option<Texts> {
        let mut texts: Vec<String> = self.texts.into_iter().collect();
        texts.sort_unstable();
        self.is_text.then(|| Texts::new(texts))
    }
}
