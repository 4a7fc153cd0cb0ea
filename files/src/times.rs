//! Dates and times: days since 1970-01-01, and one text for each, however it was stored.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// A date and a time of the day in UTC; one without a distance from UTC is taken to be in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 1970-01-01.
    day: i64,
    /// Nanoseconds since midnight.
    time: i64,
}

impl Moment {
    /// That which a text of ISO 8601 says: a date, or a date and a time, with its distance from UTC.
    pub(crate) fn of(text: &str) -> Option<Self> {
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
        let day = span * SPAN + of_span * 365 + of_span / 4 - of_span / 100 + of_year - BEFORE_1970;
        if rest.is_empty() {
            return Some(Self { day, time: 0 });
        }
        let time = nanoseconds(rest.strip_prefix(['T', 't', ' '])?)?;
        Some(Self {
            day: day + time.div_euclid(DAY),
            time: time.rem_euclid(DAY),
        })
    }

    /// Days since 1970-01-01.
    pub(crate) fn days(self) -> f64 {
        self.day as f64 + self.time as f64 / DAY as f64
    }

    /// Its one text: the date alone at midnight, else the date and the time, with a part of a second where there is one.
    pub(crate) fn text(self) -> String {
        let since = self.day + BEFORE_1970;
        let span = since.div_euclid(SPAN);
        let of_span = since.rem_euclid(SPAN);
        let year = (of_span - of_span / 1_460 + of_span / 36_524 - of_span / 146_096) / 365;
        let of_year = of_span - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = (from_march + 2) % 12 + 1;
        let year = year + 400 * span + i64::from(month <= 2);
        let date = format!("{year:04}-{month:02}-{day:02}");
        if self.time == 0 {
            return date;
        }
        let seconds = self.time / SECOND;
        let hours = seconds / 3600;
        let minutes = seconds / 60 % 60;
        let second = seconds % 60;
        let part = match self.time % SECOND {
            0 => String::new(),
            part => format!(".{part:09}").trim_end_matches('0').to_owned(),
        };
        format!("{date}T{hours:02}:{minutes:02}:{second:02}{part}")
    }
}

/// Days of 400 years.
const SPAN: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970-01-01.
const BEFORE_1970: i64 = 719_468;

/// The moments of a column whose type is one of dates or times; `None` for others.
pub(crate) fn of_column(array: &dyn Array) -> Result<Option<Vec<Option<Moment>>>, ArrowError> {
    if let DataType::Dictionary(_, values) = array.data_type() {
        return match **values {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                of_column(&*cast(array, values)?)
            }
            _ => Ok(None),
        };
    }
    let units = match array.data_type() {
        DataType::Date32 => 1,
        DataType::Timestamp(TimeUnit::Second, _) => 86_400,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 86_400_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 86_400_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => DAY,
        _ => return Ok(None),
    };
    let whole = match array.data_type() {
        DataType::Date32 => cast(&*cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(array, &DataType::Int64)?,
    };
    let times = whole.as_primitive::<Int64Type>().iter();
    let moment = |time: i64| Moment {
        day: time.div_euclid(units),
        time: time.rem_euclid(units) * (DAY / units),
    };
    Ok(Some(times.map(|time| time.map(moment)).collect()))
}

/// A number of some digits.
fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits =
        (least..=most).contains(&text.len()) && text.bytes().all(|sign| sign.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
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
    Some((60 * minutes + seconds) * SECOND + part)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Moment::of(text).map(Moment::days), Some(expected), "{text}");
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
            assert_eq!(Moment::of(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_has_one_text() {
        for (text, expected) in [
            ("2024-01-01", "2024-01-01"),
            ("2024-01-01 00:00", "2024-01-01"),
            ("2024-01-01T00:00:00.000", "2024-01-01"),
            ("2024-02-29t10:05", "2024-02-29T10:05:00"),
            ("2024-02-29 10:05:00.500", "2024-02-29T10:05:00.5"),
            ("2024-01-01 00:00:00+01:00", "2023-12-31T23:00:00"),
            ("2024-01-01T00:00:00Z", "2024-01-01"),
            ("0001-01-01", "0001-01-01"),
            (
                "1969-12-31T23:59:59.000000001",
                "1969-12-31T23:59:59.000000001",
            ),
            ("9999-12-31", "9999-12-31"),
        ] {
            let moment = Moment::of(text).expect("a date");
            assert_eq!(moment.text(), expected, "{text}");
            assert_eq!(Moment::of(expected), Some(moment), "{text}");
        }
        // Each day of 800 years has a text of its own that says it.
        for day in -292_194..292_194 {
            let moment = Moment { day, time: 0 };
            assert_eq!(Moment::of(&moment.text()), Some(moment));
        }
    }
}
