//! Which columns of a table are read, and as what.

use crate::cells::{Cells, Signs};
use crate::keys::Keys;
use crate::numbers::{ElementType, Kind};
use crate::options::Options;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_cast::cast;
use arrow_schema::{DataType, Schema};
use std::collections::{HashMap, HashSet};

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holds {
    Numbers(Kind),
    /// Lists of numbers.
    Lists(Kind),
    /// Numbers that are read if they are asked for: times that passed, the numbers of the rows.
    Asked(Kind),
    /// Text that may be numbers, but was not where it was looked at: read if it is asked for.
    Text,
    /// Values that say numbers: truth values, times, amounts.
    Cells(Cells),
    /// Other text: read as codes of categories.
    Words,
    Other,
}

impl Holds {
    pub(crate) fn of(kind: &DataType) -> Self {
        match Kind::behind(kind) {
            Some(numbers) if matches!(kind, DataType::Duration(_) | DataType::Null) => {
                return Self::Asked(numbers);
            }
            Some(numbers) => return Self::Numbers(numbers),
            None => {}
        }
        if let Some(cells) = Cells::typed(kind) {
            return Self::Cells(cells);
        }
        if words(kind) == "text" {
            return Self::Words;
        }
        let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) =
            kind
        else {
            return Self::Other;
        };
        Kind::behind(item.data_type()).map_or(Self::Other, Self::Lists)
    }

    /// Whether values of such a column are what is read of one that holds `other`.
    pub(crate) fn is_read_as(self, other: Self) -> bool {
        let is_list = |holds| matches!(holds, Self::Lists(_));
        match (self, other) {
            (Self::Words, Self::Cells(_)) => true,
            (Self::Cells(cells), Self::Cells(others)) => cells == others,
            (Self::Cells(_), _) | (_, Self::Cells(_)) => false,
            _ => {
                self.kind().is_some()
                    && self.kind() == other.kind()
                    && is_list(self) == is_list(other)
            }
        }
    }

    /// Whether a column of this name can be read.
    fn is_read(self, name: &str, options: &Options) -> bool {
        match self {
            Self::Words => options.texts.contains_key(name),
            _ => self.kind().is_some(),
        }
    }

    /// The kind of its numbers.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Self::Numbers(kind) | Self::Asked(kind) | Self::Lists(kind) => Some(kind),
            Self::Cells(Cells::Truths) => Some(Kind::U8),
            Self::Text | Self::Words | Self::Cells(_) => Some(Kind::F64),
            Self::Other => None,
        }
    }
}

/// Names in an error, at most.
const SHOWN: usize = 20;
/// Rows that say what columns hold.
pub(crate) const SAMPLE: usize = 100;
/// Rows among which the first value of a column is looked for.
pub(crate) const FAR: usize = 1 << 16;
/// The cure in errors that is a category, which programs call by names of their own.
pub const AS_CATEGORY: &str = ": it can be read as a category";

/// Adds the texts of the first rows of a batch to those of each of its columns, or the first text where there is none yet.
fn see(batch: &RecordBatch, texts: &mut [Vec<String>], rows: usize, signs: &Signs) {
    for (array, texts) in batch.columns().iter().zip(texts) {
        let Ok(array) = cast(array, &DataType::Utf8) else {
            continue;
        };
        for (row, text) in array.as_string::<i32>().iter().enumerate() {
            if row >= rows && !texts.is_empty() {
                break;
            }
            let text = text.map(str::trim).filter(|text| !signs.is_missing(text));
            texts.extend(text.map(str::to_owned));
        }
    }
}

fn shown(names: impl Iterator<Item = String>) -> String {
    names.take(SHOWN).collect::<Vec<_>>().join(", ")
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) holds: Holds,
    /// Its content in words.
    pub(crate) words: String,
    /// The first text that is there.
    pub(crate) first: Option<String>,
    /// No value was seen, so that others may say what it holds.
    pub(crate) is_open: bool,
}

/// Describes the values of a type.
fn words(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Boolean => "true or false".into(),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => "times".into(),
        DataType::Dictionary(_, values) => words(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "lists".into(),
        DataType::Duration(_) => "durations".into(),
        DataType::Null => "no value".into(),
        DataType::Interval(_) => "intervals".into(),
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "bytes".into(),
        kind if Kind::behind(kind).is_some() => "numbers".into(),
        kind => kind.to_string(),
    }
}

/// The columns of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) each: Vec<Column>,
    /// Whether the file says their names.
    pub(crate) named: bool,
    /// Whether there are rows, as far as that is known.
    pub(crate) has_rows: bool,
}

impl Columns {
    /// Columns of these names. Columns that number the rows are read only if they are asked for, where there are others: data frames
    /// write them as `__index_level_0__`, or as the first columns without a name, which pandas calls `Unnamed: 0` later.
    pub(crate) fn new(mut each: Vec<Column>, named: bool, has_rows: bool) -> Self {
        let unnamed = each.iter().take_while(|one| one.name.is_empty()).count();
        let is_index = |(place, one): (usize, &Column)| {
            let level = one.name.strip_prefix("__index_level_");
            let known = one.name.starts_with("Unnamed: 0");
            named && (place < unnamed || known || level.is_some_and(|rest| rest.ends_with("__")))
        };
        let index: Vec<bool> = each.iter().enumerate().map(is_index).collect();
        let is_read = |one: &Column| {
            matches!(
                one.holds,
                Holds::Numbers(_) | Holds::Lists(_) | Holds::Cells(_)
            )
        };
        if each
            .iter()
            .zip(&index)
            .any(|(one, index)| !index && is_read(one))
        {
            for (one, _) in each.iter_mut().zip(index).filter(|(_, index)| *index) {
                if let Holds::Numbers(kind) = one.holds {
                    (one.holds, one.words) = (Holds::Asked(kind), "numbers of the rows".into());
                }
            }
        }
        Self {
            each,
            named,
            has_rows,
        }
    }

    pub(crate) fn of(schema: &Schema) -> Self {
        let fields = schema.fields().iter();
        let each = fields.map(|field| Column {
            name: field.name().clone(),
            holds: Holds::of(field.data_type()),
            words: words(field.data_type()),
            first: None,
            is_open: false,
        });
        Self::new(each.collect(), true, true)
    }

    /// Finds out what text says that may be read, by its first rows: `keys` opens columns. Damage is met where they are read.
    pub(crate) fn look(&mut self, options: &Options, keys: impl FnOnce(&Options) -> Option<Keys>) {
        let names: Vec<String> = self.each.iter().map(|one| one.name.clone()).collect();
        self.look_at(options, |places| {
            let mut key_options = Options::new();
            key_options.keys = places.iter().map(|place| names[*place].clone()).collect();
            let batches = keys(&key_options).into_iter().flat_map(Keys::batches);
            batches.map_while(Result::ok)
        });
    }

    /// Finds out what text says that may be read, by the first rows of batches that have the columns of some places alone.
    pub(crate) fn look_at<B: Iterator<Item = RecordBatch>>(
        &mut self,
        options: &Options,
        batches: impl FnOnce(Vec<usize>) -> B,
    ) {
        self.told(options);
        let known = self.by_name();
        let is_open = |place: &usize| {
            let name = &self.each[*place].name;
            let asked = options.columns.as_ref();
            self.each[*place].holds == Holds::Words
                && asked.is_none_or(|names| names.contains(name))
                && !options.texts.contains_key(name)
                && known.get(&**name).is_some_and(|places| places.1.is_none())
        };
        let places: Vec<usize> = (0..self.each.len()).filter(is_open).collect();
        if places.is_empty() {
            return;
        }
        let signs = options.signs();
        let mut seen = vec![Vec::new(); places.len()];
        let mut rows = 0;
        for batch in batches(places.clone()) {
            see(&batch, &mut seen, SAMPLE.saturating_sub(rows), &signs);
            rows += batch.num_rows();
            if rows >= FAR || rows >= SAMPLE && seen.iter().all(|texts| !texts.is_empty()) {
                break;
            }
        }
        for (place, texts) in places.into_iter().zip(seen) {
            let one = &mut self.each[place];
            one.first = texts.first().cloned();
            let texts = texts.iter().map(String::as_str);
            if let Some(cells) = Cells::of(texts, &signs) {
                (one.holds, one.words) = (Holds::Cells(cells), cells.words());
            }
        }
    }

    /// Takes it that text says what options know of it.
    pub(crate) fn told(&mut self, options: &Options) {
        for one in &mut self.each {
            let cells = options.cells.get(&one.name).copied();
            let may_be = one.is_open || matches!(one.holds, Holds::Words | Holds::Text);
            if let (Some(cells), true) = (cells, may_be) {
                (one.holds, one.words) = (Holds::Cells(cells), cells.words());
            }
        }
    }

    /// The smallest element type that holds all numbers of the columns at these places exactly.
    pub(crate) fn element(&self, places: &[usize], options: &Options) -> ElementType {
        let kinds = places.iter().filter_map(|place| {
            let one = &self.each[*place];
            let is_coded = options.texts.contains_key(&one.name);
            if is_coded {
                Some(Kind::F64)
            } else {
                one.holds.kind()
            }
        });
        let elements = kinds.map(Kind::element);
        elements
            .reduce(ElementType::with)
            .unwrap_or(ElementType::U8)
    }

    /// The places of each name: the first, and another one.
    fn by_name(&self) -> HashMap<&str, (usize, Option<usize>)> {
        let mut known = HashMap::with_capacity(self.each.len());
        for (place, column) in self.each.iter().enumerate() {
            let places = known.entry(&*column.name).or_insert((place, None));
            if places.0 != place {
                places.1.get_or_insert(place);
            }
        }
        known
    }

    /// The place of this name among those of all names.
    fn find(
        &self,
        known: &HashMap<&str, (usize, Option<usize>)>,
        name: &str,
    ) -> Result<usize, String> {
        match known.get(name) {
            Some((place, None)) => Ok(*place),
            Some((first, Some(second))) => Err(format!(
                "its columns {} and {} are both called {name:?}: rename one, or say which others to read",
                first + 1,
                second + 1
            )),
            _ if self.each.is_empty() => Err(format!(
                "is empty: it has no columns, and so no column {name:?}"
            )),
            _ if !self.named => Err(format!(
                "has no column {name:?}, for its first line does not name its {} columns: put a line with their names before it",
                self.each.len()
            )),
            _ => {
                let shown = shown(self.each.iter().map(|column| column.name.clone()));
                let more = if self.each.len() > SHOWN { ", ..." } else { "" };
                Err(format!("has no column {name:?}; it has {shown}{more}"))
            }
        }
    }

    /// The places of the columns that options name: columns of numbers, or one of lists.
    pub(crate) fn features(&self, options: &Options) -> Result<Vec<usize>, String> {
        let Some(names) = &options.columns else {
            return self.default_features(options);
        };
        let known = self.by_name();
        let places = names.iter().map(|name| {
            let place = self.find(&known, name)?;
            match self.each[place].holds {
                Holds::Lists(_) if names.len() > 1 => Err(format!(
                    "column {name:?} holds lists: it must be the only column that is read"
                )),
                holds if !holds.is_read(name, options) => {
                    let one = &self.each[place];
                    let words = &one.words;
                    let first = one
                        .first
                        .as_ref()
                        .map_or(String::new(), |first| format!(" such as {first:?}"));
                    let hint = if holds == Holds::Words {
                        AS_CATEGORY
                    } else {
                        ""
                    };
                    Err(format!(
                        "column {name:?} does not hold numbers, but {words}{first}{hint}"
                    ))
                }
                _ => Ok(place),
            }
        });
        if names.is_empty() {
            Err("no columns were asked for: name at least one".into())
        } else {
            places.collect()
        }
    }

    /// All numbers but weights and keys; or the only lists.
    fn default_features(&self, options: &Options) -> Result<Vec<usize>, String> {
        let named = self.places(options.weight.iter().chain(&options.keys))?;
        let mut each = Vec::new();
        let mut lists = Vec::new();
        for place in (0..self.each.len()).filter(|place| !named.contains(place)) {
            match self.each[place].holds {
                Holds::Numbers(_) | Holds::Cells(_) => each.push(place),
                _ if options.texts.contains_key(&self.each[place].name) => each.push(place),
                Holds::Lists(_) => lists.push(place),
                _ => {}
            }
        }
        match (each.is_empty(), lists.len()) {
            (false, 0) => Ok(each),
            (true, 1) => Ok(lists),
            (true, 0) => Err(self.no_numbers()),
            _ => {
                let name = |place: &usize| format!("{:?}", self.each[*place].name);
                let names = shown(lists.iter().map(name));
                Err(format!(
                    "has columns of lists ({names}) and others: say which columns to read"
                ))
            }
        }
    }

    /// Says that there are none, and what there is instead.
    fn no_numbers(&self) -> String {
        if self.each.is_empty() {
            return "is empty: it has no line, nor a column".into();
        }
        let alone = self.each.first().filter(|_| self.each.len() == 1);
        if let Some(sign) = alone.and_then(|one| {
            one.name
                .find([';', '\t', '|', ' '])
                .map(|at| &one.name[at..][..1])
        }) {
            return format!(
                "has a single column, and no numbers: are its fields separated by {sign:?}?"
            );
        }
        let each = self.each.iter();
        let shown = shown(each.map(|one| format!("{} ({})", one.name, one.words)));
        format!("has no column of numbers, but {shown}")
    }

    /// The places of the key columns.
    pub(crate) fn keys(&self, options: &Options) -> Result<Vec<usize>, String> {
        self.places(&options.keys)
    }

    /// The columns that are neither used, nor weights or keys: their names, and what they hold.
    pub(crate) fn not_used(&self, used: &[String], options: &Options) -> Vec<(String, String)> {
        let named = options.weight.iter().chain(&options.keys);
        let known: HashSet<&String> = used.iter().chain(named).collect();
        let others = self
            .each
            .iter()
            .filter(|one| !known.contains(&one.name))
            .map(|one| (one.name.clone(), one.words.clone()));
        others.collect()
    }

    /// The places of the columns of these names.
    pub(crate) fn places<'n>(
        &self,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Result<Vec<usize>, String> {
        let known = self.by_name();
        let places = names.into_iter().map(|name| self.find(&known, name));
        places.collect()
    }
}

/// Sorts places, each once, and finds where each of them is after that.
pub(crate) fn in_order(places: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let order = places
        .iter()
        .map(|place| sorted.partition_point(|other| other < place));
    let order = order.collect();
    (sorted, order)
}
