//! The table of a shop, as people have it: text, true and false, dates, money, holes and a key. It is the same rows in every format.

use crate::common::{all, seeded};
use crate::samples::{Arrow, Parquet};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray,
};
use arrow_cast::display::array_value_to_string;
use arrow_schema::DataType;
use coremix_files::{AnySource, Batches, Frame, Missing, Opened, Options, open};
use ndarray::Array2;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// Rows of the shop.
const ROWS: i64 = 250;

fn money(row: i64) -> String {
    let cents = 123_456 * row - 900_000;
    let sign = if cents < 0 { "-" } else { "" };
    let thousands = cents.abs() / 100_000;
    let rest = cents.abs() / 100 % 1_000;
    let part = cents.abs() % 100;
    match thousands {
        0 => format!("{sign}${rest}.{part:02}"),
        _ => format!("{sign}${thousands},{rest:03}.{part:02}"),
    }
}

/// The columns in one of the ways in which programs have them.
fn shop(other: bool) -> RecordBatch {
    let some = |row: &i64, of: i64| row % of != 0;
    let rows = 0..ROWS;
    let key = StringArray::from_iter_values(rows.clone().map(|row| format!("c{row}")));
    let plans = ["pro", "free", "crème"];
    let plan = rows
        .clone()
        .map(|row| some(&row, 7).then(|| plans[row as usize % 3]));
    let plan: ArrayRef = if other {
        Arc::new(plan.collect::<DictionaryArray<Int32Type>>())
    } else {
        Arc::new(plan.collect::<StringArray>())
    };
    let paid = rows
        .clone()
        .map(|row| some(&row, 11).then_some(row % 2 == 0));
    let paid: BooleanArray = paid.collect();
    let day = |row: i64| some(&row, 13).then_some(-2_000 + 37 * row);
    let since: ArrayRef = if other {
        let of = rows
            .clone()
            .map(|row| day(row).map(|day| day * 86_400_000_000_000));
        Arc::new(of.collect::<TimestampNanosecondArray>())
    } else {
        let of = rows.clone().map(|row| day(row).map(|day| day as i32));
        Arc::new(of.collect::<Date32Array>())
    };
    let seen = rows.clone().map(|row| Some(7_000_001 * row * 1_000));
    let seen: ArrayRef = if other {
        let of = seen.collect::<TimestampMicrosecondArray>();
        Arc::new(of.with_timezone("+00:00"))
    } else {
        let of = seen.map(|time| time.map(|time| time * 1_000));
        Arc::new(of.collect::<TimestampNanosecondArray>())
    };
    let price = rows.clone().map(|row| Some(i128::from(row) * 37 - 999));
    let price = price.collect::<Decimal128Array>();
    let price = price.with_precision_and_scale(9, 2).unwrap();
    let spent = rows.clone().map(|row| some(&row, 17).then(|| money(row)));
    let spent: ArrayRef = if other {
        Arc::new(spent.collect::<StringViewArray>())
    } else {
        Arc::new(spent.collect::<StringArray>())
    };
    let visits = Int64Array::from_iter(rows.clone().map(|row| some(&row, 19).then_some(row % 9)));
    let age = rows.map(|row| some(&row, 5).then_some(20.5 + (row % 40) as f64));
    let age: Float64Array = age.collect();
    let columns: [(&str, ArrayRef); 9] = [
        ("key", Arc::new(key)),
        ("plan", plan),
        ("paid", Arc::new(paid)),
        ("since", since),
        ("seen", seen),
        ("price", Arc::new(price)),
        ("spent", spent),
        ("visits", Arc::new(visits)),
        ("age", Arc::new(age)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A table as text, each field in quotes; holes are empty, or what a program writes for one.
fn text(table: &RecordBatch, hole: &str) -> String {
    let fields = table.schema_ref().fields().iter();
    let names: Vec<&str> = fields.map(|field| &**field.name()).collect();
    let mut lines = names.join(",") + "\n";
    for row in 0..table.num_rows() {
        let fields = table.columns().iter().map(|column| {
            if column.is_null(row)
                || column
                    .logical_nulls()
                    .is_some_and(|nulls| nulls.is_null(row))
            {
                return hole.to_owned();
            }
            format!("\"{}\"", array_value_to_string(column, row).unwrap())
        });
        lines += &(fields.collect::<Vec<_>>().join(",") + "\n");
    }
    lines
}

fn rows(opened: Opened) -> Array2<f64> {
    match opened.rows {
        AnySource::F64(rows) => all(&*rows, 7).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The bits of rows, where all NaN are one.
fn bits(rows: &Array2<f64>) -> Vec<u64> {
    let bits = |x: &f64| if x.is_nan() { 1 } else { x.to_bits() };
    rows.iter().map(bits).collect()
}

fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_shop_is_the_same_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut paths = Vec::new();
    for other in [false, true] {
        let table = shop(other);
        for seed in 0..4 {
            let name = |ending: &str| format!("{other}{seed}.{ending}");
            let parquet = Parquet::any(&mut seeded(seed)).write(&table);
            paths.push(put(folder, &name("parquet"), parquet));
            let arrow = Arrow::any(&mut seeded(seed)).write(&table);
            paths.push(put(folder, &name("arrow"), arrow));
        }
        for (place, hole) in ["", "NA", "null", "NaT", "None"].iter().enumerate() {
            let name = format!("{other}{place}.csv");
            paths.push(put(folder, &name, text(&table, hole)));
        }
    }
    let options = Options::new()
        .key("key")
        .missing(Missing::Keep)
        .categories(["plan"]);
    let first: OnceCell<Vec<u64>> = OnceCell::new();
    let check = |name: &str, opened: Opened| {
        let columns = [
            "plan", "paid", "since", "seen", "price", "spent", "visits", "age",
        ];
        assert_eq!(opened.columns, columns, "{name}");
        let plans = ["crème", "free", "pro"].map(str::to_owned).to_vec();
        assert_eq!(opened.texts, [("plan".to_owned(), plans)], "{name}");
        let read_as = [
            ("paid", "true is 1, false 0"),
            ("since", "days since 1970-01-01"),
            ("seen", "days since 1970-01-01"),
            ("spent", "amounts in $"),
        ];
        let read_as = read_as.map(|(name, how)| (name.to_owned(), how.to_owned()));
        assert_eq!(opened.read_as, read_as, "{name}");
        let found = rows(opened);
        assert_eq!(found[[1, 0]], 1.0, "{name}");
        assert_eq!(found[[1, 2]], -1_963.0, "{name}");
        assert_eq!(found[[3, 5]], -5_296.32, "{name}");
        let bits = bits(&found);
        assert!(*first.get_or_init(|| bits.clone()) == bits, "{name}");
    };
    for path in &paths {
        check(&path.display().to_string(), open(path, &options).unwrap());
    }
    for other in [false, true] {
        let table = shop(other);
        let batches = [table.slice(0, 100), table.slice(100, 150)];
        let written = Batches::write(table.schema_ref(), batches.map(Ok), &options);
        check("batches", written.unwrap().open(&options).unwrap());
        // In memory.
        let places: Vec<usize> = (1..9).collect();
        let own = table.project(&places).unwrap();
        let batches = vec![own.slice(0, 3), own.slice(3, 247)];
        let frame = Frame::of("X", own.schema_ref(), batches, &options).unwrap();
        let written = Batches::write(
            &frame.schema,
            frame.batches.into_iter().map(Ok),
            &Options::new(),
        );
        let found = written
            .unwrap()
            .open(&Options::new().missing(Missing::Keep));
        assert!(bits(&rows(found.unwrap())) == *first.get().unwrap());
    }
    // Without the name of a category, it is left out, and what it holds is told.
    for path in &paths {
        let opened = open(path, &Options::new().key("key").missing(Missing::Keep)).unwrap();
        assert_eq!(
            opened.not_used,
            [("plan".into(), "text".into())],
            "{path:?}"
        );
        assert_eq!(
            opened.first_texts,
            [("plan".into(), "free".into())],
            "{path:?}"
        );
        assert_eq!(opened.columns.len(), 7);
        let asked = open(
            path,
            &Options::new()
                .columns(["age", "plan"])
                .missing(Missing::Keep),
        );
        let error = asked.err().map(|error| error.to_string());
        if path.extension().is_some_and(|ending| ending != "csv") {
            let error = error.unwrap();
            assert!(
                error.contains("column \"plan\" does not hold numbers, but text such as \"free\""),
                "{error}"
            );
        }
    }
    // Files of several formats are rows of one table, also where one has no such value in its first rows.
    let head = "key,plan,paid,since,seen,price,spent,visits,age\n";
    let holes = head.to_owned()
        + &"k,,,,,,,,\n".repeat(150)
        + "k,pro,TRUE,1969-12-31,1970-01-01T12:00+12:00,1,($5.50),,\n";
    let all = tempfile::tempdir().unwrap();
    put(all.path(), "1.csv", holes);
    std::fs::copy(&paths[0], all.path().join("2.parquet")).unwrap();
    let found = rows(open(all.path(), &options).unwrap());
    let row = found.row(150).to_vec();
    assert_eq!(row[..6], [2.0, 1.0, -1.0, 0.0, 1.0, -5.5]);
    assert_eq!(
        bits(&found.slice(ndarray::s![151.., ..]).to_owned()),
        first.into_inner().unwrap()
    );
}

/// The names of the columns, and the values of the last one.
type Column = (Vec<String>, Vec<f64>);

/// The rows of one column as CSV, as Parquet and as Arrow, or the error of each.
fn of_column(cells: &[Option<&str>], options: &Options) -> [Result<Column, String>; 3] {
    let folder = tempfile::tempdir().unwrap();
    let x: Float64Array = (0..cells.len()).map(|row| Some(row as f64)).collect();
    let cells: StringArray = cells.iter().copied().collect();
    let columns: [(&str, ArrayRef); 2] = [("x", Arc::new(x)), ("c", Arc::new(cells))];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let text = put(folder.path(), "t.csv", text(&table, ""));
    let parquet = Parquet::any(&mut seeded(1)).write(&table);
    let parquet = put(folder.path(), "t.parquet", parquet);
    let arrow = Arrow::any(&mut seeded(1)).write(&table);
    let arrow = put(folder.path(), "t.arrow", arrow);
    [text, parquet, arrow].map(|path| {
        let opened = open(path, options).map_err(|error| error.to_string())?;
        let columns = opened.columns.clone();
        let AnySource::F64(rows) = opened.rows else {
            return Err("other numbers".into());
        };
        let found = all(&*rows, 3).map_err(|error| error.to_string())?;
        let last = found.ncols() - 1;
        Ok((columns, found.column(last).to_vec()))
    })
}

#[test]
fn columns_that_are_no_numbers_stay_out() {
    let keep = Options::new().missing(Missing::Keep);
    for cells in [
        &["$", "$5", "$6"][..],
        &["$1", "€2", "$3"],
        &["1,2,3", "$5", "$6"],
        &["$1e400", "$5", "$6"],
        &["yes", "no", "yes"],
        &["True", "2", "x"],
        &["2024-02-30", "2024-02-28", "2024-02-01"],
        &["01.02.2024", "02.02.2024", "03.02.2024"],
        &["true", "maybe", "false"],
        &["5 apples", "6 apples", "7 apples"],
        &["true", "2024-01-01", "$5"],
        &["12:30", "13:30", "14:30"],
    ] {
        let cells: Vec<_> = cells.iter().map(|cell| Some(*cell)).collect();
        for found in of_column(&cells, &keep) {
            let (columns, _) = found.unwrap();
            assert_eq!(columns, ["x"], "{cells:?}");
        }
        // As a category, each text is a level.
        let own = keep.clone().categories(["c"]);
        let mut sorted = cells.clone();
        sorted.sort();
        sorted.dedup();
        for found in of_column(&cells, &own) {
            let (columns, codes) = found.unwrap();
            assert_eq!(columns, ["x", "c"]);
            let own = |cell: &Option<&str>| sorted.iter().position(|other| other == cell);
            let expected: Vec<f64> = cells.iter().map(|cell| own(cell).unwrap() as f64).collect();
            assert_eq!(codes, expected, "{cells:?}");
        }
    }
}

#[test]
fn columns_that_say_numbers_are_read_as_such() {
    let keep = Options::new().missing(Missing::Keep);
    let gap = f64::NAN;
    let same = |found: &[f64], expected: &[f64]| {
        let pairs = found.iter().zip(expected);
        found.len() == expected.len()
            && pairs
                .clone()
                .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
    };
    for (cells, expected) in [
        (
            &["$1,234.50", "", "NA", "-$2"][..],
            [1234.5, gap, gap, -2.0],
        ),
        (&["($1)", "2", "$3.25", "$0"], [-1.0, 2.0, 3.25, 0.0]),
        (&["TRUE", "false", "0", "1"], [1.0, 0.0, 0.0, 1.0]),
        (
            &["1969-12-31", "NaT", "1970-01-01T06:00Z", "0001-01-01"],
            [-1.0, gap, 0.25, -719_162.0],
        ),
        (&["€ 5", "6 €", " 7€ ", "€8"], [5.0, 6.0, 7.0, 8.0]),
    ] {
        let cells: Vec<_> = cells.iter().map(|cell| Some(*cell)).collect();
        for found in of_column(&cells, &keep) {
            let (columns, found) = found.unwrap();
            assert_eq!(columns, ["x", "c"], "{cells:?}");
            assert!(same(&found, &expected), "{cells:?}: {found:?}");
        }
    }
    // A cell after the first hundred is an error that names the column, what it is, and what others are.
    for (first, last, rule) in [
        ("$5", "€6", "an amount such as $1,234.50"),
        ("true", "yes", "true or false"),
        ("2024-05-31", "31.5.2024", "a date such as 2024-05-31"),
    ] {
        let mut cells = vec![Some(first); 120];
        cells.push(Some(last));
        for found in of_column(&cells, &Options::new()) {
            let error = found.unwrap_err();
            let told =
                error.contains("column \"c\"") && error.contains(rule) && error.contains(last);
            assert!(
                told && (error.contains("line 122") || error.contains("row 120")),
                "{error}"
            );
        }
    }
    // A hole is an error that says so, unless missing values are allowed.
    for found in of_column(&[Some("$5"), None, Some("$6")], &Options::new()) {
        let error = found.unwrap_err();
        assert!(
            error.contains("column \"c\"") && error.contains("allow missing"),
            "{error}"
        );
    }
}

#[test]
fn files_that_differ_in_what_a_column_says_are_told() {
    for (first, second) in [
        ("$5", "€6"),
        ("2024-05-31", "19874"),
        ("19874", "2024-05-31"),
        ("true", "$5"),
        ("2024-05-31", "true"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = |cell: &str| format!("x,c\n1,{cell}\n2,{cell}\n");
        put(folder.path(), "1.csv", text(first));
        put(folder.path(), "2.csv", text(second));
        let error = open(folder.path(), &Options::new())
            .unwrap_err()
            .to_string();
        let told = error.contains("2.csv")
            && error.contains("1.csv")
            && error.contains("column \"c\" holds");
        assert!(told, "{error}");
        // Where nobody reads it, nobody minds.
        open(folder.path(), &Options::new().columns(["x"])).unwrap();
        let categories = Options::new().categories(["c"]);
        assert_eq!(
            open(folder.path(), &categories).unwrap().texts[0].1.len(),
            2
        );
    }
}

#[test]
fn categories_of_any_kind() {
    let keep = Options::new().missing(Missing::Keep).categories(["c"]);
    // One level; no value at all; an empty text is a hole in every format.
    for found in of_column(&[Some("a"), Some(" a "), Some("")], &keep) {
        let (_, codes) = found.unwrap();
        assert!(codes[0] == 0.0 && codes[1] == 0.0 && codes[2].is_nan());
    }
    for found in of_column(&[None, None], &keep) {
        assert_eq!(found.unwrap().0, ["x"]);
    }
    // Very many, in an order that does not depend on that of the rows.
    let names = (0..100_000).map(|row| format!("{:06}x", row * 7 % 100_000));
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let table = RecordBatch::try_from_iter([("c", column)]).unwrap();
    let arrow = Arrow {
        compression: None,
        stream: false,
        batch: 100_000,
    };
    let folder = tempfile::tempdir().unwrap();
    let csv = put(folder.path(), "t.csv", text(&table, ""));
    for path in [put(folder.path(), "t.arrow", arrow.write(&table)), csv] {
        let codes = rows(open(path, &keep).unwrap());
        let expected = (0..100_000).map(|row| f64::from(row * 7 % 100_000));
        assert!(codes.iter().copied().eq(expected));
    }
    // Text that is not UTF-8, and two columns of one name.
    let folder = tempfile::tempdir().unwrap();
    let latin = put(folder.path(), "l.csv", b"x,c\n1,caf\xe9\n2,tea\n");
    let error = open(&latin, &keep).unwrap_err().to_string();
    assert!(
        error.contains("line 2") && error.contains("not text in UTF-8"),
        "{error}"
    );
    let twice = put(folder.path(), "d.csv", "x,c,c\n1,a,b\n2,b,a\n");
    let error = open(&twice, &keep).unwrap_err().to_string();
    assert!(error.contains("both called \"c\""), "{error}");
}

/// A date or a time is one category, whatever the format and the type that it is stored in.
#[test]
fn times_have_one_text_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let midnight = 1_704_067_200;
    let times = [midnight, midnight + 36_000, midnight];
    let in_units = |unit: i64| times.map(|time| time * unit).to_vec();
    let zone = "Europe/Berlin";
    let days = Date32Array::from(vec![19_723, 19_724, 19_723]);
    let arrays: [ArrayRef; 6] = [
        Arc::new(TimestampSecondArray::from(in_units(1))),
        Arc::new(TimestampMillisecondArray::from(in_units(1_000)).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from(in_units(1_000_000)).with_timezone(zone)),
        Arc::new(TimestampNanosecondArray::from(in_units(1_000_000_000))),
        Arc::new(StringArray::from(vec![
            "2024-01-01 00:00:00",
            "2024-01-01T11:00+01:00",
            " 2024-01-01",
        ])),
        Arc::new(days),
    ];
    let options = Options::new().columns(["c"]).categories(["c"]);
    for array in arrays {
        let second = match array.data_type() {
            DataType::Date32 => "2024-01-02",
            _ => "2024-01-01T10:00:00",
        };
        let texts = [("c".to_owned(), vec!["2024-01-01".into(), second.into()])];
        let table = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let arrow = Arrow {
            compression: None,
            stream: false,
            batch: 100,
        };
        let mut paths = vec![put(folder.path(), "t.arrow", arrow.write(&table))];
        let with_zone = matches!(table.column(0).data_type(), DataType::Timestamp(_, Some(_)));
        if !with_zone {
            paths.push(put(folder.path(), "t.csv", text(&table, "")));
        }
        for path in paths {
            let opened = open(&path, &options).unwrap();
            assert_eq!(opened.texts, texts, "{path:?}: {table:?}");
            assert_eq!(rows(opened).into_raw_vec_and_offset().0, [0.0, 1.0, 0.0]);
        }
        let frame = Frame::of("X", &table.schema(), vec![table.clone()], &options).unwrap();
        assert_eq!(frame.texts, texts, "{table:?}");
        // Texts of a model that was written before they were one.
        let own = Options::new().texts("c", ["2024-01-01T00:00:00", "2024-01-09"]);
        let frame = Frame::of("X", &table.schema(), vec![table], &own).unwrap();
        let codes = frame.batches[0].column(0).as_primitive::<Float64Type>();
        assert_eq!(codes.values()[..], [0.0, 2.0, 0.0]);
    }
}

/// Numbers are no texts, in memory as in files; a column without any value may be of any type.
#[test]
fn numbers_are_no_texts() {
    let known = Options::new().texts("c", ["1", "2"]);
    let of = |array: ArrayRef| {
        let table = RecordBatch::try_from_iter([("c", array)]).unwrap();
        Frame::of("X", &table.schema(), vec![table], &known)
    };
    let coded = DictionaryArray::new(
        Int32Array::from(vec![0, 1]),
        Arc::new(Int64Array::from(vec![1, 2])),
    );
    let columns: [ArrayRef; 3] = [
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(Float64Array::from(vec![Some(1.0), None])),
        Arc::new(coded),
    ];
    for column in columns {
        let error = of(column).unwrap_err().to_string();
        let told = "column \"c\" holds numbers, where others, or a model, have texts";
        assert!(error.contains(told), "{error}");
    }
    let none: [ArrayRef; 2] = [
        Arc::new(Float64Array::from(vec![None, None])),
        Arc::new(NullArray::new(2)),
    ];
    for column in none {
        let frame = of(column).unwrap();
        assert_eq!(frame.batches[0].column(0).null_count(), 2);
    }
}
