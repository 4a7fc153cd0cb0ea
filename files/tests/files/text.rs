//! Text as programs write it: the files of `tests/text`, which `make.py` there makes, and others of their kind.

use crate::common::{all, below, seeded};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use coremix_files::{
    AnySource, CsvFile, ElementType, Format, Missing, Opened, Options, open, open_all,
};
use ndarray::{Array2, array};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/text")
        .join(name)
}

fn rows(opened: Opened) -> Array2<f64> {
    let AnySource::F64(rows) = opened.rows else {
        panic!("text is read as f64");
    };
    all(&*rows, 2).unwrap()
}

fn keys(opened: &mut Opened, rows: usize) -> Vec<Option<String>> {
    let batch = opened.keys.as_mut().unwrap().next(rows).unwrap();
    let keys = batch.column(0).as_string::<i32>().iter();
    keys.map(|key| key.map(str::to_owned)).collect()
}

/// Reads a text: names, rows, and whether names are a guess.
fn of(text: impl AsRef<[u8]>, options: &Options) -> (Vec<String>, Array2<f64>, Option<bool>) {
    let opened = opened(text, options).unwrap();
    let (names, guess) = (opened.columns.clone(), opened.guessed_header);
    (names, rows(opened), guess)
}

fn opened(text: impl AsRef<[u8]>, options: &Options) -> coremix::Result<Opened> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    open(file.path(), &options.clone().format(Format::Csv))
}

fn fails(text: impl AsRef<[u8]>, options: &Options) -> String {
    match opened(text, options) {
        Err(error) => error.to_string(),
        Ok(mut opened) => {
            if let Some(keys) = &mut opened.keys {
                let rows = opened.rows.len();
                return keys.next(rows).unwrap_err().to_string();
            }
            let AnySource::F64(rows) = opened.rows else {
                panic!("text is read as f64");
            };
            all(&*rows, 3).unwrap_err().to_string()
        }
    }
}

#[test]
fn files_of_other_programs() {
    let table = array![[1.5, 2.0, -3.25], [4.0, 5.5, 6.0], [0.125, 8.0, 1e-3]];
    let (xyz, numbers) = (["x", "y", "z"], ["0", "1", "2"]);
    let none = ["column_1", "column_2", "column_3"];
    let plain = Options::new();
    let of = |sign| Options::new().delimiter(sign);
    let blanks = of(b' ').format(Format::Csv);
    for (name, options, columns) in [
        ("pandas.csv", plain.clone(), xyz),
        ("pandas.csv.gz", plain.clone(), xyz),
        ("pandas-index.csv", plain.clone(), xyz),
        ("pandas-array.csv", plain.clone(), numbers),
        ("pandas-array-index.csv", plain.clone(), numbers),
        ("pandas-rows.csv", plain.clone(), none),
        ("pandas-twice.csv", plain.clone(), xyz),
        ("pandas-latin1.csv", plain.clone(), xyz),
        ("pandas-utf16.csv", plain.clone(), xyz),
        ("pandas-excel.csv", plain.clone().decimal(','), xyz),
        ("polars.csv", plain.clone(), xyz),
        ("polars.tsv", plain.clone(), xyz),
        ("duckdb.csv", plain.clone(), xyz),
        ("duckdb-pipe.csv", of(b'|'), xyz),
        ("duckdb-hive", plain.clone(), xyz),
        ("pyarrow.csv", plain.clone(), xyz),
        ("numpy.txt", blanks.clone(), none),
        ("numpy-comment.csv", plain.clone().comment(b'#'), none),
        ("r-write-csv.csv", plain.clone(), xyz),
        ("r-write-csv2.csv", plain.clone().decimal(','), xyz),
        ("r-write-table.txt", blanks.clone(), xyz),
    ] {
        let opened = open(at(name), &options).unwrap();
        assert_eq!(opened.columns, columns, "{name}");
        assert_eq!(rows(opened), table, "{name}");
    }
    let ids = ["Müller", "Möller", "O'Neil, \"Tip\""].map(|id| Some(id.to_owned()));
    let plain = plain.key("id");
    for (name, options) in [
        ("pandas.csv.gz", plain.clone()),
        ("pandas-latin1.csv", plain.clone().encoding("latin1")),
        ("pandas-utf16.csv", plain.clone()),
        ("pandas-excel.csv", plain.clone().decimal(',')),
        ("polars.tsv", plain.clone()),
        ("duckdb-pipe.csv", plain.clone().delimiter(b'|')),
        ("duckdb-hive", plain.clone()),
        ("pyarrow.csv", plain.clone()),
    ] {
        assert_eq!(
            keys(&mut open(at(name), &options).unwrap(), 3),
            ids,
            "{name}"
        );
    }
    let dropped = plain.missing(Missing::Drop);
    for (name, options, expected) in [
        ("pandas-series.csv", Options::new(), array![[1.5], [3.0]]),
        (
            "pandas-missing.csv",
            Options::new().columns(["y"]),
            array![[2.0], [8.0]],
        ),
        (
            "polars-null.csv",
            Options::new().columns(["y"]),
            array![[2.0], [8.0]],
        ),
        (
            "r-missing.txt",
            blanks.columns(["V1"]),
            array![[1.5], [2.0]],
        ),
    ] {
        let opened = open(at(name), &options.missing(Missing::Drop)).unwrap();
        assert_eq!(rows(opened), expected, "{name}");
    }
    let left = keys(&mut open(at("polars-null.csv"), &dropped).unwrap(), 2);
    assert_eq!(left, [ids[0].clone(), ids[2].clone()]);
    // Excel.
    let windows = Options::new()
        .encoding("windows-1252")
        .decimal(',')
        .thousands('.');
    let mut opened = open(at("excel-german.csv"), &windows.key("Name")).unwrap();
    assert_eq!(keys(&mut opened, 2), ids[..2]);
    assert_eq!(rows(opened), array![[1.5, 1234.5], [2.0, -20_000.0]]);
    let unicode = Options::new()
        .delimiter(b'\t')
        .format(Format::Csv)
        .key("Name");
    let mut opened = open(at("excel-unicode.txt"), &unicode).unwrap();
    assert_eq!(keys(&mut opened, 2), ids[..2]);
    assert_eq!(rows(opened), array![[1.5], [2.0]]);
    for name in ["excel-utf8.csv", "excel-mac.csv"] {
        let opened = open(at(name), &Options::new().key("id")).unwrap();
        assert_eq!(opened.columns, ["x"], "{name}");
        assert_eq!(rows(opened), array![[1.5], [2.0]], "{name}");
    }
}

/// A first line of numbers names columns where it is not like the others.
#[test]
fn a_header_of_numbers() {
    let halves: String = (0..12).map(|i| format!("{i}.5,{i}.25\n")).collect();
    for (text, names) in [
        ("0,1,2\n1.5,2.5,3\n4,5,6\n".to_owned(), Some(true)),
        ("0,1,2,3\n5,5,5,5\n".to_owned(), Some(true)),
        ("0,1\n0.5,1.5\n".to_owned(), Some(true)),
        ("0\n0.5\n1.5\n".to_owned(), Some(true)),
        (",2019,2020\n0,1.5,2\n1,3,4\n".to_owned(), Some(true)),
        (",7,8\na,1.5,2\n".to_owned(), Some(true)),
        ("1,2\nann,5\nbob,6\n".to_owned(), Some(true)),
        (format!("2019,2020\n{halves}"), Some(true)),
        // The first lines that follow are rows: edges, labels, years, whole values by chance, and one with a missing value.
        ("0,1\n0,2\n1,2\n".to_owned(), Some(false)),
        ("0\n1\n0\n".to_owned(), Some(false)),
        ("2019,2020\n1,2\n3,4\n".to_owned(), Some(false)),
        ("1,2\n1.5,2.5\n".to_owned(), Some(false)),
        (format!("3,3\n{halves}"), Some(false)),
        ("1,,3\n4,5,6\n7,8,9\n".to_owned(), Some(false)),
        ("NaN,2\n4,5\n".to_owned(), Some(false)),
        ("1,,3\n2,a,4\n5,b,6\n".to_owned(), Some(false)),
        // No number, no doubt.
        ("V1,V2\n1,2\n".to_owned(), None),
        ("x\n1\n".to_owned(), None),
    ] {
        let lines = text.lines().count();
        let file = opened(&text, &Options::new()).unwrap();
        assert_eq!(file.guessed_header, names, "{text}");
        assert_eq!(
            file.rows.len(),
            lines - usize::from(names != Some(false)),
            "{text}"
        );
        // Who says it is right.
        for header in [false, true] {
            let said = opened(&text, &Options::new().header(header));
            let Ok(said) = said else { continue };
            assert_eq!(said.rows.len(), lines - usize::from(header), "{text}");
            assert_eq!(said.guessed_header, None);
        }
    }
}

/// Columns without names are left out with a word, and a header that is one field short does not name the first one.
#[test]
fn columns_without_names() {
    for (text, unnamed) in [
        (",x\n0,5\n1,6\n", ""),
        ("\"\",\"x\"\n\"1\",5\n\"2\",6\n", ""),
        ("Unnamed: 0,x\n7,5\n8,6\n", "Unnamed: 0"),
        ("__index_level_0__,x\n7,5\n8,6\n", "__index_level_0__"),
        ("x\na,5\nb,6\n", ""),
    ] {
        let opened = opened(text, &Options::new()).unwrap();
        let word = if text.starts_with('x') {
            "text"
        } else {
            "numbers of the rows"
        }
        .to_owned();
        assert_eq!(opened.not_used, [(unnamed.to_owned(), word)], "{text}");
        assert_eq!(opened.columns, ["x"], "{text}");
        assert_eq!(rows(opened), array![[5.0], [6.0]], "{text}");
        // They can be keys.
        let mut opened = self::opened(text, &Options::new().key(unnamed)).unwrap();
        assert_eq!(keys(&mut opened, 2).len(), 2);
    }
    // Rows of three fields below a header of one are no table of R.
    for text in [
        "a;b\n1,5;2\n",
        "a|b\n1,5\n2,6\n",
        "x\n1,5\n2,6\n",
        "x\n1,2,3\n4,5,6\n",
        "x,y\n1,2,3\n4,5,6\n7,8\n",
    ] {
        let error = fails(text, &Options::new());
        assert!(error.contains("is the delimiter right?"), "{text}: {error}");
    }
}

#[test]
fn delimiters_and_comments() {
    let two = array![[1.0, 2.0], [3.0, 4.0]];
    let plain = Options::new();
    let blanks = plain.clone().delimiter(b' ');
    let comments = plain.clone().comment(b'#');
    for (text, options) in [
        ("a,b\n1,2,\n3,4,\n", &plain),
        ("a,b,\n1,2,\n3,4,\n", &plain),
        ("1,2,\n3,4,\n", &plain),
        ("a b\n  1   2\n3 4  \n", &blanks),
        ("1 2\n\n   \n 3  4\n", &blanks),
        ("# by hand\n#\na,b\n1,2\n# 9,9\n3,4\n#", &comments),
        ("\u{feff}# by hand\n\n1,2\n3,4\n", &comments),
    ] {
        assert_eq!(of(text, options).1, two, "{text}");
    }
    // A delimiter at the end of some lines only, and without `comment`.
    let error = fails("a,b\n1,2\n3,4,\n", &plain);
    assert!(
        error.contains("line 3 has 3 fields, where others have 2"),
        "{error}"
    );
    let error = fails("a,b\n1,2\n# 9\n", &plain);
    assert!(error.contains("line 3 has 1 fields"), "{error}");
}

/// Lines of Excel, signs of DOS, and a header that ends with a delimiter.
#[test]
fn what_other_programs_add() {
    let two = array![[1.0, 2.0], [3.0, 4.0]];
    let plain = Options::new();
    let given = plain.clone().delimiter(b';');
    let decimal = plain.clone().decimal(',');
    for (text, options) in [
        ("sep=;\nx;y\n1;2\n3;4\n", &plain),
        ("sep=;\r\nx;y\r\n1;2\r\n3;4\r\n", &given),
        ("\u{feff}SEP=;\rx;y\r1;2\r3;4", &plain),
        ("\"sep=|\"\nx|y\n1|2\n3|4\n", &plain),
        ("sep=\t\nx\ty\n1\t2\n3\t4\n", &plain),
        ("sep=,\nx,y\n1,2\n3,4\n", &plain),
        ("sep=;\n1;2\n3;4\n", &plain),
        ("sep=|\nx|y\n1,0|2,0\n3,0|4,0\n", &decimal),
        ("x,y\r\n1,2\r\n3,4\r\n\u{1a}", &plain),
        ("x,y\n1,2\n3,4\u{1a}", &plain),
        ("x,y\n1,2\n3,4\n\u{1a}\n\u{1a}\r\n", &plain),
        ("x,y,\n1,2\n3,4\n", &plain),
        ("sep=;\nx;y;\n1;2\n3;4\n\u{1a}", &plain),
    ] {
        let (names, found, _) = of(text, options);
        assert_eq!(found, two, "{text:?}");
        assert!(
            names == ["x", "y"] || names == ["column_1", "column_2"],
            "{names:?}"
        );
    }
    // The line is counted, and keys are found below it.
    let error = fails("sep=;\nx;y\n1;2\n3;a\n", &plain);
    assert!(error.contains("column \"y\", line 4: \"a\""), "{error}");
    let mut found = opened("sep=;\nid;x;y\na;1;2\nb;3;4\n", &plain.clone().key("id")).unwrap();
    assert_eq!(keys(&mut found, 2), [Some("a".into()), Some("b".into())]);
    // A name is no sign, and a sign within the text is none.
    assert_eq!(of("sep=x\n1\n3\n", &plain).0, ["sep=x"]);
    let error = fails("x,y\n1,2\n\u{1a}3,4\n", &plain);
    assert!(error.contains("line 3"), "{error}");
    // One name too many, and with a delimiter that is not this one.
    let error = fails("x,y,z\n1,2\n3,4\n", &plain);
    assert!(
        error.contains("line 1 has 3 names, and the lines below it 2 fields"),
        "{error}"
    );
    let error = fails("x,y,z\n1;2\n3;4\n", &plain);
    assert!(error.contains("is the delimiter right?"), "{error}");
}

/// Addresses: those of files on this machine are opened.
#[test]
fn addresses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b%.csv");
    std::fs::write(&path, "x,y\n1,2\n3,4\n").unwrap();
    let below = folder.path().display();
    let expected = array![[1.0, 2.0], [3.0, 4.0]];
    for address in [
        format!("file://{below}/a%20b%25.csv"),
        format!("FILE://localhost{below}/a b%25.csv"),
        format!("file://{below}/*.csv"),
        format!("file://{below}"),
    ] {
        assert_eq!(
            rows(open(&address, &Options::new()).unwrap()),
            expected,
            "{address}"
        );
    }
    let both = [format!("file://{below}/a%20b%25.csv").into(), path.clone()];
    let found = open_all(&both, &Options::new()).unwrap();
    assert_eq!(
        (found.rows.len(), &found.files[..]),
        (4, &[path.clone(), path][..])
    );
    for address in [
        "s3://bucket/x.parquet",
        "https://example.org/x.csv",
        "gs://bucket/*.csv",
        "abfss://a@b.dfs.core.windows.net/x",
        "file://elsewhere/x.csv",
        "hf://datasets/a/b",
    ] {
        let one = open(address, &Options::new()).unwrap_err().to_string();
        let both = open_all(&[address.into(), address.into()], &Options::new()).unwrap_err();
        for error in [one, both.to_string()] {
            assert!(
                error.contains("only addresses of files on this machine are read"),
                "{error}"
            );
            assert!(error.contains(address), "{error}");
        }
    }
    // Other names with such signs are names.
    let error = open("no such://file", &Options::new())
        .unwrap_err()
        .to_string();
    assert!(!error.contains("addresses"), "{error}");
}

/// Zeros after the end of what gzip compressed, or after each of its parts.
#[test]
fn gzip_that_is_filled_up() {
    let packed = |text: &str| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let (one, two) = (packed("x,y\n1,2\n"), packed("3,4\n"));
    let expected = array![[1.0, 2.0], [3.0, 4.0]];
    for zeros in [0, 1, 512, 200_000] {
        let zeros = vec![0; zeros];
        let text = [&one[..], &two, &zeros].concat();
        assert_eq!(of(&text, &Options::new()).1, expected);
        let text = [&one[..], &zeros, &two, &zeros].concat();
        assert_eq!(of(&text, &Options::new()).1, expected);
        let error = fails(
            [&one[..], &zeros, b"no gzip at all"].concat(),
            &Options::new(),
        );
        assert!(error.contains("gzip"), "{error}");
    }
    let error = fails(&one[..one.len() - 3], &Options::new());
    assert!(error.contains("line"), "{error}");
}

/// A decimal comma, and what separates thousands: another point or comma is never read as something else.
#[test]
fn decimal_signs() {
    let comma = Options::new().decimal(',');
    let german = comma.clone().thousands('.');
    let english = Options::new().thousands(',').delimiter(b';');
    let french = comma.clone().thousands('\u{202f}');
    for (field, options, number) in [
        ("1,5", &comma, Some(1.5)),
        ("-,25e-2", &comma, Some(-0.0025)),
        ("1.234", &comma, None),
        ("1,5,2", &comma, None),
        ("1,5.2", &comma, None),
        ("1.234,5", &german, Some(1_234.5)),
        ("-12.345.678", &german, Some(-12_345_678.0)),
        ("1.5", &german, None),
        (".500", &german, None),
        ("1,234.567", &german, None),
        ("1,234.5", &english, Some(1_234.5)),
        ("1,23", &english, None),
        ("1234,567", &english, Some(1_234_567.0)),
        ("1\u{202f}234,5", &french, Some(1_234.5)),
    ] {
        let text = format!("id;x\na;{field}\n");
        let options = options.clone().columns(["x"]);
        match number {
            Some(number) => assert_eq!(of(&text, &options).1, array![[number]], "{field}"),
            None => {
                let error = fails(&text, &options);
                assert!(
                    error.contains("line 2: ") && error.contains("is not a number"),
                    "{error}"
                );
            }
        }
    }
    let error = fails("x\n1\n", &comma.thousands(','));
    assert!(error.contains("cannot separate thousands too"), "{error}");
}

/// In a file of one column a blank line is a missing value; at the end it is none.
#[test]
fn blank_lines() {
    for (text, line) in [
        ("x\n1\n\n3\n", 3),
        ("1\n\n3\n", 2),
        ("\n1\n2\n", 1),
        ("x\r\n1\r\n\r\n3\r\n\r\n", 3),
        ("x\r1\r2\r\r3", 4),
        ("x\n\n2\n", 2),
    ] {
        let error = fails(text, &Options::new());
        assert!(
            error.contains(&format!("line {line}: an empty field")),
            "{text:?}: {error}"
        );
        let kept = of(text, &Options::new().missing(Missing::Drop)).1;
        assert_eq!(
            kept.len(),
            text.bytes().filter(u8::is_ascii_digit).count(),
            "{text:?}"
        );
    }
    for text in [
        "x\n1\n2\n\n\n",
        "1\r\n2\r\n\r\n",
        "\n\nx\n1\n2",
        "a,x\n\nb,1\n\n\nc,2\n",
    ] {
        assert_eq!(
            of(text, &Options::new()).1,
            array![[1.0], [2.0]],
            "{text:?}"
        );
    }
    // Far from the beginning, where reading begins anew.
    let text: String = (0..5_000)
        .map(|i| {
            if i % 7 == 3 {
                "\n".to_owned()
            } else {
                format!("{i}\n")
            }
        })
        .collect();
    let file = CsvFile::<f64>::over(text.into_bytes(), &Options::new()).unwrap();
    let mut out = [0.0];
    for row in [4_999, 2_049, 1_024, 5] {
        coremix::data::Source::read(&file, row, &mut out).unwrap();
        assert_eq!(out, [row as f64]);
    }
    let error = coremix::data::Source::read(&file, 3_503, &mut out).unwrap_err();
    assert!(
        error.to_string().contains("line 3504: an empty field"),
        "{error}"
    );
}

/// Lines are counted as an editor counts them, whatever ends them.
#[test]
fn lines_are_counted() {
    for end in ["\n", "\r\n", "\r"] {
        let good: String = (0..1_500).map(|i| format!("\"k{end}\",{i}{end}")).collect();
        let text = format!("id,x{end}{end}{good}# note{end}k,oops{end}");
        // The header, a blank line, two lines for each row, a comment.
        let error = fails(&text, &Options::new().comment(b'#'));
        assert!(error.contains("line 3004: \"oops\""), "{end:?}: {error}");
        let error = fails(text.replace("oops", "1,1"), &Options::new().comment(b'#'));
        assert!(error.contains("line 3004 has 3 fields"), "{end:?}: {error}");
    }
    let error = fails("id,x\na,1\n\"b,2\nc,3\n", &Options::new());
    assert!(error.contains("line 3: a quote is never closed"), "{error}");
    // It holds no more of the file than a record may have.
    let long = format!("id,x\na,1\n\"b,2\n{}", "c,3\n".repeat(5 << 20));
    let error = fails(long, &Options::new());
    assert!(
        error.contains("line 3: its record is longer than 16 MiB"),
        "{error}"
    );
    assert_eq!(
        of("x,id\n1,5\" pipe\n2,b\n", &Options::new()).1,
        array![[1.0], [2.0]]
    );
}

/// Keys and names that are not UTF-8 are an error with the line; text in another encoding is decoded.
#[test]
fn encodings() {
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|sign| sign as u8).collect() };
    let text = "id,x\nMüller,1\nMöller,2\n";
    let error = fails(latin(text), &Options::new().key("id"));
    assert!(
        error.contains("column \"id\", line 2: not text in UTF-8: give its encoding"),
        "{error}"
    );
    let error = fails(latin("größe,x\n1,2\n"), &Options::new());
    assert!(error.contains("line 1: not text in UTF-8"), "{error}");
    let error = fails(latin("a,x\nb,1\nc,2ÿ\n"), &Options::new().columns(["x"]));
    assert!(
        error.contains("column \"x\", line 3: not text in UTF-8"),
        "{error}"
    );
    // Columns that are not read may be anything.
    let not_used = opened(latin(text), &Options::new()).unwrap().not_used;
    assert_eq!(not_used, [("id".to_owned(), "text".to_owned())]);
    assert_eq!(of(latin(text), &Options::new()).1, array![[1.0], [2.0]]);
    for name in ["latin1", "windows-1252", "ISO-8859-1"] {
        let mut opened = opened(latin(text), &Options::new().key("id").encoding(name)).unwrap();
        assert_eq!(
            keys(&mut opened, 2),
            [Some("Müller".into()), Some("Möller".into())]
        );
    }
    let utf16 = |big: bool, mark: bool| -> Vec<u8> {
        let mark = if mark { "\u{feff}" } else { "" };
        let units = format!("{mark}{text}");
        let units = units.encode_utf16();
        units
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    for (big, mark, name) in [
        (false, true, None),
        (true, true, None),
        (false, true, Some("utf-16")),
        (true, true, Some("utf-16")),
        (false, false, Some("utf-16le")),
        (true, false, Some("utf-16be")),
    ] {
        let mut options = Options::new().key("id");
        options = name.map_or(options.clone(), |name| options.encoding(name));
        let mut opened = opened(utf16(big, mark), &options).unwrap();
        assert_eq!(
            keys(&mut opened, 2),
            [Some("Müller".into()), Some("Möller".into())]
        );
        assert_eq!(rows(opened), array![[1.0], [2.0]]);
    }
    let error = fails(utf16(false, false), &Options::new());
    assert!(
        error.contains("give its encoding, such as utf-16"),
        "{error}"
    );
    let error = fails(text, &Options::new().encoding("utf-17"));
    assert!(error.contains("\"utf-17\" is not known"), "{error}");
    let mut cut = utf16(false, true);
    cut.pop();
    assert!(fails(cut, &Options::new()).contains("line 3: not text in UTF-16LE"));
}

/// The error for a file that is no text says what it is, whatever its name is.
#[test]
fn other_files() {
    for (bytes, word) in [
        (
            &b"PK\x03\x04rest"[..],
            "a zip archive, as .xlsx is, not text",
        ),
        (b"\xd0\xcf\x11\xe0rest", "Excel (.xls)"),
        (b"\x28\xb5\x2f\xfdrest", "compressed by zstd"),
        (b"\xfd7zXZ\0rest", "compressed by xz"),
        (b"PAR1rest", "a Parquet file, not text"),
        (b"ARROW1\0\0", "an Arrow file"),
        (b"\x93NUMPY\x01\0", "an .npy file"),
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
    ] {
        let error = fails(bytes, &Options::new());
        assert!(error.contains(word), "{error}");
    }
    // A header alone is no row.
    assert_eq!(of("x,y\n", &Options::new()).1.dim(), (0, 2));
    assert_eq!(of("x,y", &Options::new()).1.dim(), (0, 2));
    // Text that is compressed needs no name that says so.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"x\n1\n2\n").unwrap();
    assert_eq!(
        of(packed.finish().unwrap(), &Options::new()).1,
        array![[1.0], [2.0]]
    );
}

/// Rows with a value that is missing are left out, with their weights and keys.
#[test]
fn rows_left_out() {
    let line = |i: usize| {
        let word = ["", "NA", "nan", "NULL", "?", "#N/A", r"\N", " n/a "][i / 5 % 8];
        match i % 5 {
            1 => format!("k{i},{word},1,1\n"),
            2 => format!("k{i},{i},{i}.5,{word}\n"),
            _ => format!("k{i},{i},{i}.5,{}\n", 1 + i % 2),
        }
    };
    const N: usize = 9_000;
    let text = format!("id,x,y,w\n{}", (0..N).map(line).collect::<String>());
    let kept: Vec<usize> = (0..N).filter(|i| ![1, 2].contains(&(i % 5))).collect();
    let options = Options::new().key("id").weight("w");
    let mut opened = opened(&text, &options.clone().missing(Missing::Drop)).unwrap();
    let found = opened.missing.clone().unwrap();
    assert_eq!((found.rows, found.values), (N - kept.len(), N - kept.len()));
    assert!(
        found
            .first
            .unwrap()
            .ends_with("column \"x\", line 3: an empty field: fill it in, or take the row out, or allow missing values")
    );
    let weights = opened.weights.clone().unwrap();
    assert_eq!(weights.len(), kept.len());
    assert!(
        weights
            .iter()
            .zip(&kept)
            .all(|(w, i)| *w == (1 + i % 2) as f64)
    );
    let names = keys(&mut opened, kept.len());
    assert!(
        names
            .iter()
            .zip(&kept)
            .all(|(key, i)| *key == Some(format!("k{i}")))
    );
    let expected = Array2::from_shape_fn((kept.len(), 2), |(i, j)| kept[i] as f64 + [0.0, 0.5][j]);
    let AnySource::F64(source) = opened.rows else {
        panic!("text is read as f64");
    };
    crate::common::same_rows(&*source, &expected);
    // Counted, they stay.
    let counted = self::opened(&text, &options.missing(Missing::Count));
    assert!(counted.unwrap_err().to_string().contains("weights"));
    let counted = self::opened(
        &text,
        &Options::new().columns(["x", "y"]).missing(Missing::Count),
    )
    .unwrap();
    assert_eq!(
        (counted.rows.len(), counted.missing.unwrap().rows),
        (N, N / 5)
    );
    // A word that is no number is not a missing value.
    let error = fails(
        "x\n1\nNA\nabc\n",
        &Options::new().columns(["x"]).missing(Missing::Drop),
    );
    assert!(error.contains("line 4: \"abc\" is not a number"), "{error}");
    let error = fails("x\n1\ninf\n", &Options::new().missing(Missing::Drop));
    assert!(
        error.contains("line 3: a value is NaN or infinite"),
        "{error}"
    );
}

/// Rows with nulls and NaN are left out of Parquet, Arrow and `.npy`, and across files.
#[test]
fn nulls_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let x: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(1.0),
        None,
        Some(f64::NAN),
        Some(4.0),
    ]));
    let y: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![
        Some(1),
        Some(2),
        Some(3),
        None,
    ]));
    let z: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![7, 6, 5, 4]));
    let batch = RecordBatch::try_from_iter([("x", x), ("y", y), ("z", z)]).unwrap();
    let file = std::fs::File::create(path("a.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = std::fs::File::create(path("b.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    std::fs::write(path("c.csv"), "x,y,z\n1,1,7\n,2,6\nnan,3,5\n4,NA,4\n").unwrap();
    let drop = Options::new().missing(Missing::Drop);
    for name in ["a.parquet", "b.arrow", "c.csv"] {
        let opened = open(path(name), &drop.clone().key("z")).unwrap();
        assert_eq!(opened.missing.clone().unwrap().values, 3, "{name}");
        assert_eq!(rows(opened), array![[1.0, 1.0]], "{name}");
    }
    // Small integers have no NaN.
    let opened = open(path("a.parquet"), &drop.clone().columns(["y", "z"])).unwrap();
    let AnySource::U8(source) = opened.rows else {
        panic!("u8");
    };
    assert_eq!(all(&*source, 2).unwrap(), array![[1, 7], [2, 6], [3, 5]]);
    let opened = open(folder.path(), &drop).unwrap();
    assert_eq!(opened.missing.clone().unwrap().rows, 9);
    assert_eq!(rows(opened).dim(), (3, 3));
    ndarray_npy::write_npy(path("d.npy"), &array![[1.0, f64::NAN], [2.0, 3.0]]).unwrap();
    let opened = open(path("d.npy"), &drop).unwrap();
    assert_eq!(rows(opened), array![[2.0, 3.0]]);
    let counted = Options::new().missing(Missing::Count);
    let found = open(path("a.parquet"), &counted).unwrap().missing.unwrap();
    assert!(found.first.unwrap().contains("column \"x\", row 1: a null"));
}

/// The names of folders are columns that can be named.
#[test]
fn folders_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("year=2023/land=a%2Fb/1.csv", "x\n1\n2\n");
    write("year=2023/land=__HIVE_DEFAULT_PARTITION__/1.csv", "x\n3\n");
    write("year=2024/land=c/1.csv", "x\n4\n");
    // Not read.
    write("other/1.csv", "x\n9\n");
    write("_year=1/1.csv", "x\n9\n");
    let plain = open(folder.path(), &Options::new()).unwrap();
    assert_eq!(plain.columns, ["x"]);
    assert_eq!(plain.not_used.len(), 2);
    assert_eq!(rows(plain), array![[3.0], [1.0], [2.0], [4.0]]);
    let options = Options::new().columns(["year", "x"]).key("land");
    for path in [
        folder.path().to_owned(),
        folder.path().join("year=*/*/*.csv"),
    ] {
        let mut opened = open(path, &options).unwrap();
        let slash = Some("a/b".to_owned());
        assert_eq!(
            keys(&mut opened, 4),
            [None, slash.clone(), slash, Some("c".into())]
        );
        let expected = array![[2023.0, 3.0], [2023.0, 1.0], [2023.0, 2.0], [2024.0, 4.0]];
        assert_eq!(rows(opened), expected);
    }
    let year = open(
        folder.path(),
        &Options::new().columns(["year"]).weight("year"),
    )
    .unwrap();
    assert_eq!(
        year.weights.clone().unwrap(),
        [2023.0, 2023.0, 2023.0, 2024.0]
    );
    assert_eq!(rows(year).dim(), (4, 1));
    let error = open(folder.path(), &Options::new().columns(["land", "x"])).unwrap_err();
    assert!(
        error.to_string().contains("its folder \"land\" is"),
        "{error}"
    );
    // A file that is named has no folders, and its own column comes first.
    let alone = folder.path().join("year=2024/land=c/1.csv");
    assert!(open(&alone, &Options::new().columns(["year"])).is_err());
    assert!(open_all(&[alone], &Options::new().key("land")).is_err());
    write("year=2024/land=c/1.csv", "x,year\n4,7\n");
    let opened = open(folder.path(), &Options::new().columns(["year"])).unwrap();
    assert_eq!(rows(opened)[(3, 0)], 7.0);
}

/// An integer that no f64 is, is an error in text as in other formats, unless it is written as a number with digits after the point.
#[test]
fn large_integers_are_not_rounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let read = |number: &str, options: &Options| {
        std::fs::write(&path, format!("x,y\n1,2\n{number},3\n")).unwrap();
        match open(&path, options).unwrap().rows {
            AnySource::F64(rows) => all(&*rows, 2),
            other => panic!("{other:?}"),
        }
    };
    let options = Options::new();
    for wrong in [
        "9007199254740993",
        "-9007199254740993",
        "+1152921504606846977",
        "0010000000000000000000001",
    ] {
        let error = read(wrong, &options).unwrap_err().to_string();
        let told =
            error.contains("column \"x\", line 3") && error.contains("is an integer beyond 2^53");
        assert!(told, "{error}");
    }
    // Amounts of money, values of sparse rows, and names of folders.
    let plain = Options::new();
    for (name, text, options) in [
        (
            "money.csv",
            "x,y\n$1,2\n\"$9,007,199,254,740,993\",3\n",
            &plain,
        ),
        ("sparse.svm", "0 1:1\n0 2:9007199254740993\n", &plain),
        (
            "x=9007199254740993/folder.csv",
            "y\n2\n",
            &plain.clone().columns(["x", "y"]),
        ),
    ] {
        let part = folder.path().join("large");
        let path = part.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let error = match open(&part, options).map(|opened| opened.rows) {
            Ok(AnySource::F64(rows)) => all(&*rows, 2).unwrap_err().to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("2^53"), "{name}: {error}");
        std::fs::remove_file(path).unwrap();
    }
    for right in [
        "9007199254740992",
        "-1152921504606846976",
        "9007199254740993.0",
        "9007199254740993e0",
        "0000000000000000000000",
        "100000000000000000000",
    ] {
        let expected: f64 = right.parse().unwrap();
        assert_eq!(read(right, &options).unwrap()[(1, 0)], expected);
    }
    // One that stands for a missing value is none.
    let missing = "-9223372036854775807";
    let keep = Options::new()
        .missing(Missing::Keep)
        .missing_texts([missing]);
    assert!(read(missing, &keep).unwrap()[(1, 0)].is_nan());
}

/// Text of categories becomes the place of each text among all of them in order, in files and folders alike.
#[test]
fn texts_are_codes() {
    use arrow_array::{BooleanArray, DictionaryArray, StringArray, types::Int8Type};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("land=b")).unwrap();
    std::fs::create_dir(at("land=a")).unwrap();
    let text = "x,kind,sold,ward\n1,red,True,3\n2, blue ,FALSE,4\n3,10,true,3\n4,NA,,4\n";
    std::fs::write(at("land=b/1.csv"), text).unwrap();
    let words = StringArray::from(vec!["never", "blue", "zinc"]);
    let kind =
        DictionaryArray::<Int8Type>::new(vec![Some(2), None, Some(1)].into(), Arc::new(words));
    let sold = BooleanArray::from(vec![Some(false), Some(true), None]);
    let columns: [(&str, ArrayRef); 4] = [
        ("x", Arc::new(Float64Array::from(vec![5.0, 6.0, 7.0]))),
        ("kind", Arc::new(kind)),
        ("sold", Arc::new(sold)),
        ("ward", Arc::new(Float64Array::from(vec![4.0, 4.0, 9.0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(at("land=a/2.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let names = ["x", "kind", "sold", "ward", "land"];
    let options = Options::new().missing(Missing::Keep).columns(names);
    let opened = open(
        folder.path(),
        &options.clone().categories(["kind", "sold", "ward", "land"]),
    )
    .unwrap();
    let texts = [
        ("kind", vec!["10", "blue", "red", "zinc"]),
        ("land", vec!["a", "b"]),
        ("sold", vec!["false", "true"]),
    ];
    let texts = texts.map(|(name, texts)| {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        (name.to_owned(), texts)
    });
    assert_eq!(opened.texts, texts);
    let gap = f64::NAN;
    let expected = array![
        [5.0, 3.0, 0.0, 4.0, 0.0],
        [6.0, gap, 1.0, 4.0, 0.0],
        [7.0, 1.0, gap, 9.0, 0.0],
        [1.0, 2.0, 1.0, 3.0, 1.0],
        [2.0, 1.0, 0.0, 4.0, 1.0],
        [3.0, 0.0, 1.0, 3.0, 1.0],
        [4.0, gap, gap, 4.0, 1.0],
    ];
    let same = |a: &Array2<f64>, b: &Array2<f64>| {
        a.dim() == b.dim()
            && a.iter()
                .zip(b)
                .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
    };
    assert!(same(&rows(opened), &expected));
    // Texts that are known already, in an order of their own, and one that is not.
    let options = options
        .texts("kind", ["zinc", "blue", "red"])
        .categories(["sold", "land"]);
    let found = rows(open(folder.path(), &options).unwrap());
    let own = [0.0, gap, 1.0, 2.0, 1.0, 3.0, gap];
    let own = Array2::from_shape_vec((7, 1), own.to_vec()).unwrap();
    assert!(
        same(&found.slice(ndarray::s![.., 1..2]).to_owned(), &own),
        "{found}"
    );
    // Numbers are no texts, and missing values an error unless they are allowed.
    let error = open(folder.path(), &Options::new().texts("ward", ["3"])).unwrap_err();
    assert!(
        error.to_string().contains("column \"ward\" holds numbers"),
        "{error}"
    );
    let strict = Options::new().categories(["kind"]);
    let AnySource::F64(read) = open(at("land=b/1.csv"), &strict).unwrap().rows else {
        panic!("text is read as f64");
    };
    let error = all(&*read, 2).unwrap_err().to_string();
    assert!(
        error.contains("column \"kind\", line 5: \"NA\", a missing value"),
        "{error}"
    );
    // A type that does not hold all codes.
    let bytes = Options::new()
        .columns(["kind"])
        .categories(["kind"])
        .element(ElementType::U8);
    assert!(open(at("land=b/1.csv"), &bytes).is_err());
}

/// A pipe is read once, into a temporary file.
#[cfg(unix)]
#[test]
fn pipes() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let long: Vec<u8> = (0..60_000)
        .flat_map(|i| format!("{i},0.5\n").into_bytes())
        .collect();
    let to = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(to, long).unwrap());
    let opened = open(&pipe, &Options::new()).unwrap();
    writer.join().unwrap();
    assert_eq!(opened.rows.len(), 60_000);
    // A device may have no end.
    let zero = Options::new().format(Format::Csv);
    assert!(open("/dev/zero", &zero).is_err());
    let error = open_all(&["-".into(), "-".into()], &Options::new()).unwrap_err();
    assert!(
        error.to_string().contains("can be read once only"),
        "{error}"
    );
}

/// Any bytes are rows or an error, never a panic, and reads in pieces are those of the whole.
#[test]
fn any_bytes() {
    const SIGNS: &[u8] = b"01,,;\t  \"\n\n\r#.a-\xfc\0";
    let mut rng = seeded(9);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let (mut read, mut without) = (0, 0);
    for _ in 0..1_000 {
        let signs = 3 + below(&mut rng, SIGNS.len() - 3);
        let text: Vec<u8> = (0..below(&mut rng, 40))
            .map(|_| SIGNS[below(&mut rng, signs + 1)])
            .collect();
        std::fs::write(&path, &text).unwrap();
        let mut options = Options::new();
        let mut any = |options: &mut Options, set: fn(Options) -> Options| {
            if below(&mut rng, 4) == 0 {
                *options = set(options.clone());
            }
        };
        any(&mut options, |options| options.delimiter(b' '));
        any(&mut options, |options| options.decimal(','));
        any(&mut options, |options| options.thousands('.'));
        any(&mut options, |options| options.comment(b'#'));
        any(&mut options, |options| options.header(false));
        any(&mut options, |options| options.header(true));
        any(&mut options, |options| options.missing(Missing::Drop));
        any(&mut options, |options| {
            options.missing(Missing::Keep).missing_texts(["0", "."])
        });
        any(&mut options, |options| options.encoding("latin1"));
        match open(&path, &options) {
            Err(error) => {
                let error = error.to_string();
                assert!(!error.contains("the decoder stopped"), "{text:?}: {error}");
                without += 1;
            }
            Ok(opened) => {
                let AnySource::F64(source) = &opened.rows else {
                    panic!("text is read as f64");
                };
                if let Ok(whole) = all(&**source, 100) {
                    let bits = |rows: &Array2<f64>| rows.mapv(f64::to_bits);
                    let single = all(&**source, 1).unwrap();
                    assert!(bits(&single) == bits(&whole), "{text:?}");
                    let has_nan = whole.iter().any(|x| x.is_nan());
                    assert_eq!(has_nan, source.may_miss(), "{text:?}");
                    read += 1;
                }
            }
        }
    }
    assert!(read > 100 && without > 100, "{read}, {without}");
}
