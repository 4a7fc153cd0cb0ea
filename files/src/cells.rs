//! Cells that are no numbers, and the numbers that they say: true and false, times, money. Other text can be a category.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
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
/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

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

    /// An amount and the sign of its currency, if it has one.
    fn amount(&self, text: &str) -> Option<(f64, Option<char>)> {
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
        let digits = rest
            .chars()
            .all(|sign| sign.is_ascii_digit() || is_own(sign));
        if !digits || !rest.contains(|sign: char| sign.is_ascii_digit()) {
            return None;
        }
        let amount: f64 = self.joined(rest, thousands)?.parse().ok()?;
        let amount = if negative { -amount } else { amount };
        amount.is_finite().then_some((amount, currency))
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
        if days(first).is_some() {
            return Some(Self::Days).filter(|days| fits(*days));
        }
        let is_word = |text: &str| truth(text).is_some() && !text.starts_with(['0', '1']);
        if texts.clone().any(is_word) {
            return Some(Self::Truths).filter(|truths| fits(*truths));
        }
        let mut currencies = texts.clone().filter_map(|text| signs.amount(text)?.1);
        Some(Self::Money(currencies.next()?)).filter(|money| fits(*money))
    }

    /// The number that a text says.
    pub(crate) fn number(self, text: &str, signs: &Signs) -> Option<f64> {
        match self {
            Self::Truths => truth(text),
            Self::Days => days(text),
            Self::Money(sign) => {
                let (amount, currency) = signs.amount(text)?;
                currency.is_none_or(|other| other == sign).then_some(amount)
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
        let units = match array.data_type() {
            DataType::Boolean => return cast(&*array, &DataType::UInt8).map_err(wrong),
            DataType::Date32 => Some(1),
            DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => Some(86_400_000),
            DataType::Timestamp(TimeUnit::Second, _) => Some(86_400),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Some(86_400_000_000),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(DAY),
            _ => None,
        };
        if let Some(units) = units {
            let whole = match array.data_type() {
                DataType::Date32 => cast(&*array, &DataType::Int32).map_err(wrong)?,
                _ => array,
            };
            let whole = cast(&*whole, &DataType::Int64).map_err(wrong)?;
            let times = whole.as_primitive::<Int64Type>().iter();
            let in_days = |time: i64| {
                let part = time.rem_euclid(units) * (DAY / units);
                time.div_euclid(units) as f64 + part as f64 / DAY as f64
            };
            let days: Float64Array = times.map(|time| time.map(in_days)).collect();
            return Ok(Arc::new(days));
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
            Self::Money(sign) => format!("an amount such as {sign}1,234.50"),
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

/// A number of some digits.
fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits =
        (least..=most).contains(&text.len()) && text.bytes().all(|sign| sign.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

/// Days from 1970-01-01 to a date, or a date and a time, with its distance from UTC.
fn days(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4, 4)?;
    let month = digits(parts.next()?, 2, 2)?;
    let day = digits(parts.next()?, 2, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    // Years that begin in March, in spans of 400 years.
    let year = if month > 2 { year } else { year - 1 };
    let span = year.div_euclid(400);
    let of_span = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let date = span * 146_097 + of_span * 365 + of_span / 4 - of_span / 100 + of_year - 719_468;
    if rest.is_empty() {
        return Some(date as f64);
    }
    let time = nanoseconds(rest.strip_prefix(['T', 't', ' '])?)?;
    let date = date + time.div_euclid(DAY);
    Some(date as f64 + time.rem_euclid(DAY) as f64 / DAY as f64)
}

/// Nanoseconds from midnight in UTC to a time of the day.
fn nanoseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let zone = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(zone);
    let mut parts = time.trim_end().split(':');
    let hours = digits(parts.next()?, 2, 2).filter(|hours| *hours < 24)?;
    let minutes = digits(parts.next()?, 2, 2).filter(|minutes| *minutes < 60)?;
    let seconds = parts.next().unwrap_or("00");
    let (seconds, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let part = Some(part).filter(|part| !part.is_empty())?;
    let seconds = digits(seconds, 2, 2).filter(|seconds| *seconds < 60)?;
    let part = format!("{part:0<9}");
    let part =
        digits(part.get(..9)?, 9, 9).filter(|_| part.bytes().all(|sign| sign.is_ascii_digit()))?;
    if parts.next().is_some() {
        return None;
    }
    let offset = match zone {
        "" | "Z" | "z" => 0,
        zone => {
            let clock = zone.strip_prefix(['+', '-'])?;
            let hours = digits(clock.get(..2)?, 2, 2).filter(|hours| *hours < 24)?;
            let rest = clock.get(2..)?;
            let minutes = match rest.strip_prefix(':').unwrap_or(rest) {
                "" if rest.is_empty() => 0,
                minutes => digits(minutes, 2, 2).filter(|minutes| *minutes < 60)?,
            };
            let offset = 60 * hours + minutes;
            if zone.starts_with('-') {
                -offset
            } else {
                offset
            }
        }
    };
    let minutes = 60 * hours + minutes - offset;
    Some((60 * minutes + seconds) * 1_000_000_000 + part)
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
    fn dates_are_days() {
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000-02-29", 11_016.0),
            ("1600-02-29", -135_081.0),
            ("0001-01-01", -719_162.0),
            ("9999-12-31", 2_932_896.0),
            ("1970-01-02T12:00", 1.5),
            ("1970-01-02 12:00:00.000", 1.5),
            ("1970-01-02T12:00:00Z", 1.5),
            ("1970-01-02T14:00:00+02:00", 1.5),
            ("1970-01-02 14:00:00+0200", 1.5),
            ("1970-01-02 08:30:00-03:30", 1.5),
            ("1970-01-01T00:00:00+12", -0.5),
        ] {
            assert_eq!(days(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-5-1",
            "2024-13-01",
            "2024-00-10",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-04-00",
            "24-04-2024",
            "2024/04/01",
            "2024-04-01T",
            "2024-04-01T24:00",
            "2024-04-01T12:60",
            "2024-04-01T12:00:61",
            "2024-04-01T12",
            "2024-04-01x12:00",
            "2024-04-01T12:00:00.",
            "2024-04-01T12:00 PM",
            "2024-04-01T12:00+x",
            "2024-04-01T12:00+05:99",
            "2024-04-01T12:00+05:",
            "2024-04-01T12:00+:05",
            "2024-04-01T12:00Z05",
            "２０２４-04-01",
            "2024-04-01T12:00:00.1x",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
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
