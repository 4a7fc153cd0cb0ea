//! Which columns of a table are read, and as what.

use crate::numbers::{ElementType, Kind};
use crate::options::Options;
use arrow_schema::{DataType, Schema};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holds {
    Numbers(Kind),
    /// Lists of numbers.
    Lists(Kind),
    Other,
}

impl Holds {
    pub(crate) fn of(kind: &DataType) -> Self {
        if let Some(kind) = Kind::of(kind) {
            return Self::Numbers(kind);
        }
        let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) =
            kind
        else {
            return Self::Other;
        };
        Kind::of(item.data_type()).map_or(Self::Other, Self::Lists)
    }

    /// What its numbers are.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Self::Numbers(kind) | Self::Lists(kind) => Some(kind),
            Self::Other => None,
        }
    }
}

/// The columns of a table: names and types.
pub(crate) type Columns = Vec<(String, Holds)>;

pub(crate) fn columns_of(schema: &Schema) -> Columns {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), Holds::of(field.data_type())))
        .collect()
}

/// The smallest element type that holds all numbers of the columns at these places exactly.
pub(crate) fn element(columns: &Columns, places: &[usize]) -> ElementType {
    let kinds = places.iter().filter_map(|place| columns[*place].1.kind());
    kinds.map(Kind::element).max().unwrap_or(ElementType::U8)
}

/// The column of this name.
fn find(columns: &Columns, name: &str) -> Result<usize, String> {
    let mut found = columns
        .iter()
        .enumerate()
        .filter(|(_, (other, _))| other == name);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (Some(_), Some(_)) => Err(format!("has several columns {name:?}")),
        _ => {
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
            let shown = names
                .iter()
                .take(20)
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if names.len() > 20 { ", ..." } else { "" };
            Err(format!("has no column {name:?}; it has {shown}{more}"))
        }
    }
}

/// The places of the columns that options name: columns of numbers, or one of lists.
pub(crate) fn features(columns: &Columns, options: &Options) -> Result<Vec<usize>, String> {
    let Some(names) = &options.columns else {
        return default_features(columns, options);
    };
    let found = names.iter().map(|name| {
        let place = find(columns, name)?;
        match columns[place].1 {
            Holds::Lists(_) if names.len() > 1 => Err(format!(
                "column {name:?} holds lists: it must be the only column that is read"
            )),
            Holds::Other => Err(format!("column {name:?} does not hold numbers")),
            _ => Ok(place),
        }
    });
    match names.is_empty() {
        true => Err("no columns were asked for: name at least one".into()),
        false => found.collect(),
    }
}

/// All numbers but weights and keys; or the only lists.
fn default_features(columns: &Columns, options: &Options) -> Result<Vec<usize>, String> {
    let named = options.weight.iter().chain(&options.keys);
    let named = named
        .map(|name| find(columns, name))
        .collect::<Result<Vec<_>, _>>()?;
    let others = (0..columns.len()).filter(|place| !named.contains(place));
    let others = others.filter(|place| columns[*place].1 != Holds::Other);
    let (lists, each): (Vec<usize>, Vec<usize>) =
        others.partition(|place| matches!(columns[*place].1, Holds::Lists(_)));
    match (each.is_empty(), lists.len()) {
        (false, 0) => Ok(each),
        (true, 1) => Ok(lists),
        (true, 0) => Err("has no column of numbers".into()),
        _ => Err("has columns of lists beside others: say which columns to read".into()),
    }
}

/// The places of the key columns.
pub(crate) fn keys(columns: &Columns, options: &Options) -> Result<Vec<usize>, String> {
    let keys = options.keys.iter();
    keys.map(|name| find(columns, name)).collect()
}

/// The same places in the order of the table, each once, and where each of them is among these.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(list: &[(&str, Holds)]) -> Columns {
        let list = list.iter();
        list.map(|(name, holds)| ((*name).into(), *holds)).collect()
    }

    #[test]
    fn columns_by_name_or_all() {
        use Holds::{Lists, Numbers, Other};
        let wide = table(&[
            ("id", Numbers(Kind::I64)),
            ("name", Other),
            ("x", Numbers(Kind::F32)),
            ("w", Numbers(Kind::F64)),
            ("y", Numbers(Kind::U8)),
        ]);
        let all = features(&wide, &Options::new().key("id").weight("w")).unwrap();
        assert_eq!(all, [2, 4]);
        assert_eq!(element(&wide, &all), ElementType::F32);
        let some = features(&wide, &Options::new().columns(["y", "id"])).unwrap();
        assert_eq!(some, [4, 0]);
        assert_eq!(element(&wide, &some), ElementType::F64);
        for (options, part) in [
            (
                Options::new().columns(["z"]),
                "no column \"z\"; it has id, name, x, w, y",
            ),
            (
                Options::new().columns(["x", "name"]),
                "\"name\" does not hold numbers",
            ),
            (Options::new().weight("z"), "no column \"z\""),
            (Options::new().columns::<&str>([]), "no columns"),
        ] {
            assert!(
                features(&wide, &options).unwrap_err().contains(part),
                "{part}"
            );
        }
        let mut lists = table(&[("name", Other), ("v", Lists(Kind::F16))]);
        assert_eq!(features(&lists, &Options::new()).unwrap(), [1]);
        lists.push(("id".into(), Numbers(Kind::I32)));
        let error = features(&lists, &Options::new()).unwrap_err();
        assert!(error.contains("say which columns"), "{error}");
        let found = features(&lists, &Options::new().key("id")).unwrap();
        assert_eq!(found, [1]);
        let found = features(&lists, &Options::new().columns(["v"])).unwrap();
        assert_eq!(found, [1]);
        assert!(features(&lists, &Options::new().columns(["v", "id"])).is_err());
        lists.push(("id".into(), Numbers(Kind::I32)));
        let error = features(&lists, &Options::new().columns(["id"])).unwrap_err();
        assert!(error.contains("several columns"), "{error}");
    }
}
