//! What a fit is, in lines of text: the header of its checkpoints. One of another fit is refused.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Data, Rows};
use crate::io::{Crc64, FileFault, Number};
use std::fmt::{Display, Write};

/// Lines `key = value`.
#[derive(Debug, Default)]
pub(crate) struct Fingerprint(String);

/// Rows that are compared, at most.
const ROWS: usize = 64;

impl Fingerprint {
    /// Another line.
    pub(crate) fn add(&mut self, key: impl Display, value: impl Display) {
        let value = value.to_string().replace(char::is_control, " ");
        writeln!(self.0, "{key} = {value}").expect("a string takes any text");
    }

    /// Shape, weight, summary and some rows of the data.
    pub(crate) fn add_data<F: Float>(&mut self, data: &dyn Data<F>) -> Result<()> {
        let summary = data.summary();
        self.add("rows", data.len());
        self.add("columns", data.dim());
        self.add("total weight", format!("{:?}", summary.total_weight));
        let ranges = summary.range.iter().flat_map(|(low, high)| [low, high]);
        let columns = summary.mean.iter().chain(&summary.variance).chain(ranges);
        let mut bytes = Vec::new();
        columns.for_each(|x| x.put(&mut bytes));
        self.add("summary", format!("{:016x}", Crc64::of(&bytes)));
        let step = data.len().div_ceil(ROWS).max(1);
        let some: Vec<usize> = (0..data.len()).step_by(step).collect();
        let mut rows = Rows::default();
        data.gather(&some, &data.frame(), &mut rows)?;
        let mut bytes = Vec::new();
        for (i, &row) in some.iter().enumerate() {
            rows.to_centre(i).iter().for_each(|x| x.put(&mut bytes));
            data.weight(row).put(&mut bytes);
        }
        self.add("some rows", format!("{:016x}", Crc64::of(&bytes)));
        Ok(())
    }

    /// The header.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Whether the header of a checkpoint is that of this fit.
pub(super) fn compare(expected: &str, found: &str) -> std::result::Result<(), FileFault> {
    let lines = |text: &str| -> Vec<(String, String)> {
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        pairs.map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    let (own, others) = (lines(expected), lines(found));
    let of = |lines: &[(String, String)], key: &str| {
        let line = lines.iter().find(|line| line.0 == key);
        line.map_or("not there".to_string(), |line| line.1.clone())
    };
    for (key, _) in own.iter().chain(&others) {
        let (expected, found) = (of(&own, key), of(&others, key));
        if expected != found {
            let what = key.clone();
            return Err(FileFault::OtherFit {
                what,
                expected,
                found,
            });
        }
    }
    match expected == found {
        true => Ok(()),
        false => Err(FileFault::content("header", "must be that of this fit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let other = |found: &str| match compare("a = 1\nb = 2\n", found) {
            Err(FileFault::OtherFit {
                what,
                expected,
                found,
            }) => format!("{what} {expected} {found}"),
            other => format!("{other:?}"),
        };
        assert_eq!(other("a = 1\nb = 2\n"), "Ok(())");
        assert_eq!(other("a = 1\nb = 3\n"), "b 2 3");
        assert_eq!(other("a = 0\nb = 3\n"), "a 1 0");
        assert_eq!(other("a = 1\n"), "b 2 not there");
        assert_eq!(other("a = 1\nb = 2\nc = 3\n"), "c not there 3");
        assert!(compare("a = 1\nb = 2\n", "b = 2\na = 1\n").is_err());
    }
}
