//! The identity of a fit: the header of its checkpoints. A checkpoint of another fit is refused.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Data, Rows};
use crate::io::{FileFault, hash_of};
use std::fmt::Display;

/// Settings and data by name.
#[derive(Debug, Default)]
pub(crate) struct Identity(Vec<(String, String)>);

/// Rows that are compared, at most.
const ROWS: usize = 64;

impl Identity {
    /// Something else that must be the same.
    pub(crate) fn add(&mut self, name: impl Display, value: impl Display) {
        self.0.push((name.to_string(), value.to_string()));
    }

    /// Shape, weight, summary and some rows of the data.
    pub(crate) fn add_data<F: Float>(&mut self, data: &dyn Data<F>) -> Result<()> {
        let summary = data.summary();
        self.add("rows", data.len());
        self.add("columns", data.dim());
        self.add("total weight", summary.total_weight);
        let ranges = summary.range.iter().flat_map(|(low, high)| [low, high]);
        let columns = summary.mean.iter().chain(&summary.variance).chain(ranges);
        self.add("summary", hash_of(columns.copied()));
        let step = data.len().div_ceil(ROWS).max(1);
        let some: Vec<usize> = (0..data.len()).step_by(step).collect();
        let mut rows = Rows::default();
        data.gather(&some, &data.frame(), &mut rows)?;
        let mut numbers = Vec::new();
        for (i, &row) in some.iter().enumerate() {
            numbers.extend(rows.coordinates(i).iter().map(|x| x.to_f64()));
            numbers.push(data.weight(row));
        }
        self.add("some rows", hash_of(numbers));
        Ok(())
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(&self.0).expect("texts are JSON")
    }

    /// Whether the header of a checkpoint is that of this fit. The error names the first difference.
    pub(super) fn check(&self, header: &str) -> std::result::Result<(), FileFault> {
        let others = serde_json::from_str::<Vec<(String, String)>>(header);
        let whole = |_| FileFault::content("header", "must be names with values");
        let others = others.map_err(whole)?;
        let of = |list: &[(String, String)], name: &str| {
            let found = list.iter().find(|own| own.0 == name);
            found.map_or("not there".to_string(), |own| own.1.clone())
        };
        for (name, _) in self.0.iter().chain(&others) {
            let (expected, found) = (of(&self.0, name), of(&others, name));
            if expected != found {
                let what = name.clone();
                return Err(FileFault::OtherFit {
                    what,
                    expected,
                    found,
                });
            }
        }
        match self.0 == others {
            true => Ok(()),
            false => Err(FileFault::content("header", "must be that of this fit")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let mut own = Identity::default();
        own.add("a", 1);
        own.add("b", 2);
        let other = |found: &str| match own.check(found) {
            Err(FileFault::OtherFit {
                what,
                expected,
                found,
            }) => format!("{what} {expected} {found}"),
            other => format!("{other:?}"),
        };
        assert_eq!(other(&own.text()), "Ok(())");
        assert_eq!(other(r#"[["a","1"],["b","3"]]"#), "b 2 3");
        assert_eq!(other(r#"[["a","0"],["b","3"]]"#), "a 1 0");
        assert_eq!(other(r#"[["a","1"]]"#), "b 2 not there");
        assert_eq!(other(r#"[["a","1"],["b","2"],["c","3"]]"#), "c not there 3");
        assert!(own.check(r#"[["b","2"],["a","1"]]"#).is_err());
        assert!(own.check("{}").is_err());
    }
}
