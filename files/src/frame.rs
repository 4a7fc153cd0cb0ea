//! Record batches in memory as columns of numbers, by the rules of files.

use crate::choice::{AS_CATEGORY, Columns, Holds};
use crate::fault::{at, fault};
use crate::numbers::{Kind, UNSOUND};
use crate::options::Options;
use crate::texts::{Distinct, not_texts};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coremix::Result;
use std::sync::Arc;

/// Record batches whose columns are numbers: as they were, or as [`open`](crate::open) reads them of a file. Lists stay lists, and
/// nulls are nulls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Frame {
    /// The names and types of the columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
    /// The texts of the columns whose text is read as codes, in the order of the codes: [`Options::categories`].
    pub texts: Vec<(String, Vec<String>)>,
}

impl Frame {
    /// All columns of these batches, which are called `name` in errors. Only options about categories, missing values and signs in numbers
    /// count.
    ///
    /// ```
    /// use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
    /// use coremix_files::{Frame, Options};
    /// use std::sync::Arc;
    ///
    /// let plan: ArrayRef = Arc::new(StringArray::from(vec!["pro", "free"]));
    /// let paid: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    /// let batch = RecordBatch::try_from_iter([("plan", plan), ("paid", paid)]).expect("two columns");
    /// let frame = Frame::of("plans", &batch.schema(), vec![batch], &Options::new().categories(["plan"]))?;
    /// assert_eq!(frame.texts, [("plan".into(), vec!["free".into(), "pro".into()])]);
    /// # Ok::<(), coremix::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a column that holds no numbers, which names the first value.
    pub fn of(
        name: &str,
        schema: &Schema,
        batches: Vec<RecordBatch>,
        options: &Options,
    ) -> Result<Self> {
        let named = |what: String| fault(name, what);
        let mut columns = Columns::of(schema);
        columns.look_at(options, |places| {
            batches
                .iter()
                .map(move |batch| batch.project(&places))
                .map_while(std::result::Result::ok)
        });
        let signs = options.signs();
        let mut options = options.clone();
        let mut made: Vec<Vec<ArrayRef>> = vec![Vec::new(); batches.len()];
        let mut fields = Vec::new();
        let mut texts = Vec::new();
        for (place, one) in columns.each.iter().enumerate() {
            let field = schema.field(place);
            let is_category = options.categories.contains(&one.name);
            let may_be = matches!(one.holds, Holds::Words | Holds::Cells(_));
            if is_category && may_be && !options.texts.contains_key(&one.name) {
                let mut distinct = Distinct::default();
                distinct.is_text = true;
                for batch in &batches {
                    let is_missing = |text: &str| signs.is_missing(text);
                    distinct.see(batch, place, is_missing, u64::MAX)?;
                }
                let coded = distinct.coded();
                options
                    .texts
                    .extend(coded.map(|texts| (one.name.clone(), texts)));
            }
            let codes = options.texts.get(&one.name);
            // Numbers are no texts; a column without any value may have any type.
            let has_values = |batch: &RecordBatch| {
                let nulls = batch.column(place).logical_nulls();
                nulls.map_or(0, |nulls| nulls.null_count()) < batch.num_rows()
            };
            if codes.is_some() && !may_be && batches.iter().any(has_values) {
                return Err(named(not_texts(&one.name, &one.words)));
            }
            if let Some(codes) = codes {
                texts.push((one.name.clone(), codes.in_order()));
            }
            let is_plain = Kind::of(field.data_type()).is_some();
            let kind = match (codes, one.holds) {
                (Some(_), _) => DataType::Float64,
                (None, Holds::Numbers(kind)) => kind.stored(),
                (None, Holds::Cells(_)) => DataType::Float64,
                (None, Holds::Lists(_)) => field.data_type().clone(),
                (None, Holds::Asked(_)) if *field.data_type() == DataType::Null => DataType::Null,
                (None, holds) => {
                    let first = one
                        .first
                        .as_ref()
                        .map_or(String::new(), |first| format!(" such as {first:?}"));
                    let cure = if holds == Holds::Words {
                        AS_CATEGORY
                    } else {
                        ""
                    };
                    return Err(named(format!(
                        "column {:?} does not hold numbers, but {}{first}{cure}",
                        one.name, one.words
                    )));
                }
            };
            let mut row = 0;
            for (batch, made) in batches.iter().zip(&mut made) {
                let array = batch.column(place);
                let wrong = |(place, what): (usize, String)| {
                    named(at(&one.name, row + place, what).to_string())
                };
                let values: ArrayRef = match (codes, one.holds) {
                    (Some(codes), _) => {
                        let codes = codes.codes(array, &signs);
                        Arc::new(codes.map_err(|error| wrong((0, error.to_string())))?)
                    }
                    (None, Holds::Cells(cells)) => {
                        let numbers = cells.numbers(array, &signs).map_err(wrong)?;
                        cast(&numbers, &kind).map_err(|error| wrong((0, error.to_string())))?
                    }
                    (None, Holds::Numbers(_)) if !is_plain => {
                        let numbers =
                            cast(array, &kind).map_err(|error| wrong((0, error.to_string())))?;
                        let before = array.logical_nulls();
                        let is_lost = |row: &usize| {
                            numbers.is_null(*row)
                                && before.as_ref().is_none_or(|before| before.is_valid(*row))
                        };
                        if let Some(lost) = (0..numbers.len()).find(is_lost) {
                            return Err(wrong((lost, UNSOUND.into())));
                        }
                        numbers
                    }
                    _ => ArrayRef::clone(array),
                };
                made.push(values);
                row += batch.num_rows();
            }
            fields.push(Field::new(field.name(), kind, true));
        }
        let schema = Arc::new(Schema::new(fields));
        let batches = made.into_iter().map(|columns| {
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
            batch.map_err(|error| named(error.to_string()))
        });
        Ok(Self {
            batches: batches.collect::<Result<_>>()?,
            schema,
            texts,
        })
    }
}
