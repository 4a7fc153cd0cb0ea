//! Amounts of memory as people write them: `4GiB`, `500MB`, `1073741824`.

use std::fmt;
use std::str::FromStr;

/// An amount of memory: read from text such as `4GiB`, `500MB` or `1073741824`, printed in the largest unit of which there is at
/// least one.
///
/// ```
/// use coremix_files::Bytes;
///
/// assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
/// assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let unit = unit.trim().to_ascii_lowercase();
        // A letter alone is a power of two, as in many other programs.
        let unit = match &*unit {
            "k" | "m" | "g" => format!("{unit}ib"),
            _ => unit,
        };
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let bytes = number
            .parse::<f64>()
            .ok()
            .zip(unit)
            .map(|(x, (_, u))| x * *u as f64);
        match bytes {
            Some(bytes) if (1.0..=1e18).contains(&bytes) => Ok(Self(bytes as u64)),
            _ => Err("an amount of memory is a number with a unit, such as 4GiB or 500MB".into()),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.iter().find(|(_, bits)| self.0 >> bits > 0) {
            Some((name, bits)) => {
                let number = format!("{:.1}", self.0 as f64 / (1u64 << bits) as f64);
                write!(f, "{} {name}", number.trim_end_matches(".0"))
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn amounts_as_people_write_them() {
        for (text, bytes) in [
            ("1", 1),
            ("4GiB", 4 << 30),
            ("4g", 4 << 30),
            ("1.5 MiB", 3 << 19),
            ("500MB", 500_000_000),
            ("2 kb", 2_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1 << 10, "1 KiB"),
            (500_000_000, "476.8 MiB"),
            (2 << 30, "2 GiB"),
            (3 << 29, "1.5 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        for text in ["", "GiB", "-1", "4 apples", "1e99", "0", "nan", "1.2.3"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
