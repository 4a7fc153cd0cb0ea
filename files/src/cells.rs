//! Cells that are no numbers, and the numbers that they say: true and false, times, money. Other text can be a category.

use crate::numbers::exact;
use crate::times::{self, Moment};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of numbers that the cells of a column say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// True and false in any capitals: 1 and 0, which may stand among them.
    Truths,
    /// Dates and times, as text of ISO 8601: days since 1970-01-01 in UTC.
    Days,
    /// Amounts with this sign of a currency before or after some of them, negative with a minus or in parentheses.
    Money(char),
}

/// Signs in numbers of text, and texts that stand for a missing value.
#[derive(Clone, Debug)]
pub(crate) struct Signs {
    pub(crate) decimal: char,
    pub(crate) thousands: Option<char>,
    /// Texts that stand for one besides those of programs.
    pub(crate) missing: Vec<String>,
}

/// Signs of currencies.
const CURRENCIES: &str = "$€£¥₹₽₩₺₫₴₦₪₱฿₡₲₵₸₼₾";
/// Signs that stand for a minus.
const MINUS: [char; 2] = ['-', '\u{2212}'];

impl Signs {
    /// Whether a text stands for a missing value.
    pub(crate) fn is_missing(&self, text: &str) -> bool {
        is_missing(text) || self.missing.iter().any(|missing| missing.trim() == text)
    }

    /// A number with a point, and nothing between thousands.
    pub(crate) fn plain<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        self.joined(text, self.thousands)
    }

    fn joined<'a>(&self, text: &'a str, thousands: Option<char>) -> Option<Cow<'a, str>> {
        if self.decimal == '.' && thousands.is_none() {
            return Some(text.into());
        }
        let parts = text.split_once(self.decimal);
        let (whole, part) = parts.map_or((text, None), |(whole, part)| (whole, Some(part)));
        let mut groups = whole.split(|sign| Some(sign) == thousands);
        let mut number = groups.next()?.to_owned();
        for group in groups {
            let three = group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
            if !three || !number.ends_with(|sign: char| sign.is_ascii_digit()) {
                return None;
            }
            number += group;
        }
        // A point that is no decimal sign.
        if number.contains('.') || part.is_some_and(|part| part.contains('.')) {
            return None;
        }
        if let Some(part) = part {
            number = number + "." + part;
        }
        Some(number.into())
    }

    /// An amount as a plain number, and the sign of its currency, if it has one.
    fn amount<'a>(&self, text: &'a str) -> Option<(Cow<'a, str>, Option<char>)> {
        let usual = if self.decimal == ',' { '.' } else { ',' };
        let thousands = self.thousands.or(Some(usual));
        let inner = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'));
        let (mut rest, mut negative) = (inner.unwrap_or(text).trim(), inner.is_some());
        let mut currency = None;
        let (mut signed, mut begins) = (negative, true);
        while begins {
            let sign = rest.chars().next()?;
            begins = if CURRENCIES.contains(sign) && currency.is_none() {
                currency = Some(sign);
                true
            } else if (MINUS.contains(&sign) || sign == '+') && !signed {
                (signed, negative) = (true, sign != '+');
                true
            } else {
                false
            };
            if begins {
                rest = rest[sign.len_utf8()..].trim_start();
            }
        }
        if let Some(last) = rest
            .chars()
            .last()
            .filter(|sign| CURRENCIES.contains(*sign))
        {
            if currency.replace(last).is_some() {
                return None;
            }
            rest = rest[..rest.len() - last.len_utf8()].trim_end();
        }
        let is_own = |sign| sign == self.decimal || Some(sign) == thousands;
        let is_number = rest
            .chars()
            .all(|sign| sign.is_ascii_digit() || is_own(sign));
        if !is_number || !rest.contains(|sign: char| sign.is_ascii_digit()) {
            return None;
        }
        let number = self.joined(rest, thousands)?;
        let number = if negative {
            format!("-{number}").into()
        } else {
            number
        };
        Some((number, currency))
    }
}

impl Cells {
    /// The kind of cells of this type, where the type says it.
    pub(crate) fn typed(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Boolean => Some(Self::Truths),
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Some(Self::Days),
            DataType::Dictionary(_, values) => Self::typed(values),
            _ => None,
        }
    }

    /// The kind of all of these texts; `None` where they are of no one kind.
    pub(crate) fn of<'a>(
        texts: impl Iterator<Item = &'a str> + Clone,
        signs: &Signs,
    ) -> Option<Self> {
        let first = texts.clone().next()?;
        let fits = |cells: Self| {
            let mut texts = texts.clone();
            texts.all(|text| cells.number(text, signs).is_some())
        };
        if Moment::of(first).is_some() {
            return Some(Self::Days).filter(|days| fits(*days));
        }
        let is_word = |text: &str| truth(text).is_some() && !text.starts_with(['0', '1']);
        if texts.clone().any(is_word) {
            return Some(Self::Truths).filter(|truths| fits(*truths));
        }
        let mut currencies = texts.clone().filter_map(|text| signs.amount(text)?.1);
        // Too large an amount is one, and refused where it is read.
        let sign = currencies.next()?;
        let are_amounts = texts
            .clone()
            .all(|text| Self::amount_in(sign, text, signs).is_some());
        are_amounts.then_some(Self::Money(sign))
    }

    /// An amount in this currency, or in none, as a plain number.
    fn amount_in<'a>(sign: char, text: &'a str, signs: &Signs) -> Option<Cow<'a, str>> {
        let (number, currency) = signs.amount(text)?;
        currency.is_none_or(|other| other == sign).then_some(number)
    }

    /// The number that a text says.
    pub(crate) fn number(self, text: &str, signs: &Signs) -> Option<f64> {
        match self {
            Self::Truths => truth(text),
            Self::Days => Moment::of(text).map(Moment::days),
            Self::Money(sign) => {
                let number = Self::amount_in(sign, text, signs)?;
                let amount = number
                    .parse()
                    .ok()
                    .filter(|amount: &f64| amount.is_finite())?;
                exact(&number).is_ok().then_some(amount)
            }
        }
    }

    /// The numbers of a column, null where a value is missing; else the place of a cell that says none, and what it is.
    pub(crate) fn numbers(
        self,
        array: &dyn Array,
        signs: &Signs,
    ) -> Result<ArrayRef, (usize, String)> {
        let wrong = |error| (0, format!("{error}"));
        let array = match array.data_type() {
            DataType::Dictionary(_, values) => cast(array, values).map_err(wrong)?,
            _ => array.slice(0, array.len()),
        };
        if *array.data_type() == DataType::Boolean {
            return cast(&*array, &DataType::UInt8).map_err(wrong);
        }
        if let Some(moments) = times::of_column(&*array).map_err(wrong)? {
            let days = moments.iter().map(|moment| moment.map(Moment::days));
            return Ok(Arc::new(days.collect::<Float64Array>()));
        }
        let text = cast(&*array, &DataType::Utf8).map_err(wrong)?;
        let texts = text.as_string::<i32>().iter().enumerate();
        let numbers = texts.map(|(place, text)| {
            let text = text.map(str::trim);
            let Some(text) = text.filter(|text| !signs.is_missing(text)) else {
                return Ok(None);
            };
            let number = self.number(text, signs);
            number.map(Some).ok_or_else(|| (place, self.not(text)))
        });
        let numbers: Float64Array = numbers.collect::<Result<_, _>>()?;
        Ok(Arc::new(numbers))
    }

    /// Says that a text is not what the column holds.
    pub(crate) fn not(self, text: &str) -> String {
        let shown: String = text.chars().take(40).collect();
        let kind = match self {
            Self::Truths => "true or false".to_owned(),
            Self::Days => "a date such as 2024-05-31, or 2024-05-31T08:30:00Z".to_owned(),
            Self::Money(sign) => {
                format!(
                    "an amount such as {sign}1,234.50, and an integer up to 2^53 if it is whole"
                )
            }
        };
        format!(
            "{shown:?} is not {kind}, as others of the column are: mend it, or leave the row or the column out"
        )
    }

    /// Its content in words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Truths => "true or false".into(),
            Self::Days => "times".into(),
            Self::Money(sign) => format!("amounts in {sign}"),
        }
    }

    /// Which numbers its values are.
    pub(crate) fn read_as(self) -> String {
        match self {
            Self::Truths => "true is 1, false 0".into(),
            Self::Days => "days since 1970-01-01".into(),
            Self::Money(_) => self.words(),
        }
    }
}

/// 1 for true and 0 for false, in any capitals, or as they are.
fn truth(text: &str) -> Option<f64> {
    match text {
        "1" => Some(1.0),
        "0" => Some(0.0),
        _ if text.eq_ignore_ascii_case("true") => Some(1.0),
        _ if text.eq_ignore_ascii_case("false") => Some(0.0),
        _ => None,
    }
}

/// Whether this is how a program writes a value that is missing.
fn is_missing(text: &str) -> bool {
    const WORDS: [&str; 11] = [
        "", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "?",
    ];
    text == r"\N" || text == "NaT" || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(decimal: char) -> Signs {
        Signs {
            decimal,
            thousands: None,
            missing: Vec::new(),
        }
    }

    fn of(texts: &[&str]) -> Option<Cells> {
        Cells::of(texts.iter().copied(), &signs('.'))
    }

    fn money(text: &str) -> Option<f64> {
        Cells::Money('$').number(text, &signs('.'))
    }

    #[test]
    fn amounts_are_read() {
        for (text, amount) in [
            ("$1,234.50", 1234.5),
            ("-$1,234.50", -1234.5),
            ("$-5", -5.0),
            ("($5.25)", -5.25),
            ("$ 7", 7.0),
            ("7 $", 7.0),
            ("12", 12.0),
            ("$.5", 0.5),
            ("$1234567.1", 1_234_567.1),
            ("+$1,234,567", 1_234_567.0),
            ("\u{2212}$3", -3.0),
        ] {
            assert_eq!(money(text), Some(amount), "{text}");
        }
        for text in [
            "$",
            "",
            "$$5",
            "--$5",
            "$5$",
            "€5",
            "$1,2,3",
            "1,2,3",
            "$12,34",
            "$1e5",
            "1e400",
            "$abc",
            "5 apples",
            "$1.2.3",
            "NaN",
            "$inf",
            "()",
            "(-$5)",
            "$,5",
            "$-",
            "1,234.50 kr",
        ] {
            assert_eq!(money(text), None, "{text}");
        }
        let comma = signs(',');
        let euros = Cells::Money('€');
        assert_eq!(euros.number("1.234,50 €", &comma), Some(1234.5));
        assert_eq!(euros.number("1,234.50 €", &comma), None);
        assert_eq!(money(&format!("${}", "9".repeat(400))), None);
    }

    #[test]
    fn columns_are_of_one_kind() {
        assert_eq!(of(&["True", "false", "TRUE"]), Some(Cells::Truths));
        assert_eq!(of(&["1", "false"]), Some(Cells::Truths));
        assert_eq!(of(&["2024-01-01", "1950-01-01 12:00"]), Some(Cells::Days));
        assert_eq!(of(&["$1", "2", "-$3"]), Some(Cells::Money('$')));
        for other in [
            &["1", "0"][..],
            &[],
            &["True", "2"],
            &["True", "yes"],
            &["yes", "no"],
            &["2024-01-01", "soon"],
            &["2024-01-01", "19000"],
            &["$1", "€2"],
            &["$1", "free"],
            &["1,234", "5"],
            &["1.5", "2"],
            &["$"],
        ] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
