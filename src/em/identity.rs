//! The identity of a fit: the header of its checkpoints. A checkpoint of another fit is refused.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Data, Rows};
use crate::io::{FileFault, fields, hash_of, lines};
use std::fmt::Display;

/// Settings and data by name.
#[derive(Debug, Default)]
pub(crate) struct Identity(Vec<(String, String)>);

/// Rows that are compared, at most.
const ROWS: usize = 64;

impl Identity {
    /// Something else that must be the same. Its text is kept on one line.
    pub(crate) fn push(&mut self, name: impl Display, value: impl Display) {
        let value = value.to_string();
        let value = value.split(char::is_control).collect::<Vec<_>>().join(" ");
        self.0.push((name.to_string(), value));
    }

    /// Shape, weight, summary and some rows of the data.
    pub(crate) fn push_data<F: Float>(&mut self, data: &dyn Data<F>) -> Result<()> {
        let summary = data.summary();
        self.push("rows", data.len());
        self.push("columns", data.dim());
        self.push("total weight", summary.total_weight);
        let ranges = summary.range.iter().flat_map(|(low, high)| [low, high]);
        let columns = summary.mean.iter().chain(&summary.variance).chain(ranges);
        self.push("summary", hash_of(columns.copied()));
        let step = data.len().div_ceil(ROWS).max(1);
        let some: Vec<usize> = (0..data.len()).step_by(step).collect();
        let mut rows = Rows::default();
        data.gather(&some, &data.frame(), &mut rows)?;
        let mut numbers = Vec::new();
        for (i, &row) in some.iter().enumerate() {
            numbers.extend(rows.coordinates(i).iter().map(|x| x.to_f64()));
            numbers.push(data.weight(row));
        }
        self.push("some rows", hash_of(numbers));
        Ok(())
    }

    pub(super) fn text(&self) -> String {
        lines(self.own())
    }

    fn own(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// Whether the header of a checkpoint is that of this fit. The error names the first difference.
    pub(super) fn check(&self, header: &str) -> std::result::Result<(), FileFault> {
        let whole = || FileFault::content("header", "must be names with values");
        let entries: Vec<_> = self.own().collect();
        let others = fields(header).ok_or_else(whole)?;
        let value_of = |list: &[(&str, &str)], name: &str| {
            let entry = list.iter().find(|entry| entry.0 == name);
            entry.map_or("not there", |entry| entry.1).to_string()
        };
        for (name, _) in entries.iter().chain(&others) {
            let expected = value_of(&entries, name);
            let found = value_of(&others, name);
            if expected != found {
                let what = name.to_string();
                return Err(FileFault::OtherFit {
                    what,
                    expected,
                    found,
                });
            }
        }
        if entries == others {
            Ok(())
        } else {
            Err(FileFault::content("header", "must be that of this fit"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let mut identity = Identity::default();
        identity.push("a", 1);
        identity.push("b", 2);
        let other = |header: &str| match identity.check(header) {
            Err(FileFault::OtherFit {
                what,
                expected,
                found,
            }) => format!("{what} {expected} {found}"),
            other => format!("{other:?}"),
        };
        assert_eq!(other(&identity.text()), "Ok(())");
        assert_eq!(other("a: 1\nb: 3\n"), "b 2 3");
        assert_eq!(other("a: 0\nb: 3\n"), "a 1 0");
        assert_eq!(other("a: 1\n"), "b 2 not there");
        assert_eq!(other("a: 1\nb: 2\nc: 3\n"), "c not there 3");
        assert!(identity.check("b: 2\na: 1\n").is_err());
        assert!(identity.check("{}").is_err());
        identity.push("text", "of several\r\nlines");
        assert_eq!(identity.check(&identity.text()), Ok(()));
    }
}
