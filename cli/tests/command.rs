//! The command, run as a user runs it.

use coremix::prelude::*;
use coremix::{BoxedMixture, ModelInfo};
use coremix_files::{AnySource, Options, open};
use ndarray::Array2;
use ndarray_npy::{NpzReader, read_npy, write_npy};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("coremix-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
        command
            .current_dir(&self.0)
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Runs it, and returns what it prints.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it, and returns its exit code and the one line that it says.
    fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), errors)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Rows in six clusters.
fn rows(n: usize) -> Array2<f32> {
    let mut rng = coremix::stage::Rng::from_seed(3);
    Array2::from_shape_fn((n, 3), |(i, j)| {
        ((i % 6) * (j + 1)) as f32 + 0.05 * rng.normal() as f32
    })
}

fn csv(folder: &Folder, rows: &Array2<f32>) {
    let mut text = String::from("id,x,y,z,count\n");
    for (i, row) in rows.outer_iter().enumerate() {
        text += &format!("row-{i},{},{},{},{}\n", row[0], row[1], row[2], 1 + i % 3);
    }
    fs::write(folder.at("rows.csv"), text).unwrap();
}

fn labels(path: &Path) -> Vec<f64> {
    let opened = open(path, &Options::new().columns(["label"]).key("id")).unwrap();
    let AnySource::F64(rows) = opened.rows else {
        panic!("labels of u32 are read as f64");
    };
    let mut labels = vec![0.0; rows.len()];
    rows.read(0, &mut labels).unwrap();
    labels
}

#[test]
fn a_model_is_fitted_saved_and_used() {
    let folder = Folder::new("whole");
    let x = rows(1_200);
    csv(&folder, &x);
    let input = [
        "rows.csv",
        "--key",
        "id",
        "--weights",
        "count",
        "--float",
        "f32",
    ];
    let mut fit = vec![
        "fit",
        "-k",
        "6",
        "-a",
        "k-means",
        "--model",
        "m.coremix",
        "--seed",
        "5",
    ];
    fit.extend(["--labels", "labels.parquet", "--report", "report.json"]);
    fit.extend(input);
    let said = folder.done(&fit);
    assert!(said.contains("model           m.coremix\n"), "{said}");
    assert!(!folder.at("m.coremix.checkpoint").exists());

    // This fit, by the crate itself.
    let weights = ndarray::Array1::from_shape_fn(1_200, |i| (1 + i % 3) as f64);
    let data = Dense::weighted(&x, &weights).unwrap();
    let own = algorithms::k_means(6)
        .seed(5)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let saved: BoxedMixture<f32> = Save::load(folder.at("m.coremix")).unwrap();
    assert_eq!(saved.means(), own.model.means());
    let expected: Vec<f64> = own.search_labels.iter().map(|l| f64::from(*l)).collect();
    assert_eq!(labels(&folder.at("labels.parquet")), expected);
    let report = fs::read_to_string(folder.at("report.json")).unwrap();
    let report: Report = serde_json::from_str(&report).unwrap();
    assert_eq!(report.free_energies, own.report.free_energies);
    let info = ModelInfo::of_file(folder.at("m.coremix")).unwrap();
    assert_eq!(
        (info.note("algorithm"), info.note("seed")),
        (Some("k-means"), Some("5"))
    );

    // Labels with densities, and as .npy from an .npy file.
    let mut assign = vec![
        "assign",
        "m.coremix",
        "--labels",
        "more.parquet",
        "--densities",
    ];
    assign.extend(input);
    folder.done(&assign);
    assert_eq!(labels(&folder.at("more.parquet")), expected);
    write_npy(folder.at("rows.npy"), &x).unwrap();
    folder.done(&["assign", "m.coremix", "rows.npy", "--labels", "labels.npy"]);
    let found: ndarray::Array1<u32> = read_npy(folder.at("labels.npy")).unwrap();
    assert_eq!(found, own.search_labels);
    // Scores, of weighted rows.
    let mut score = vec!["score", "m.coremix", "--json"];
    score.extend(input);
    let said: serde_json::Value = serde_json::from_str(&folder.done(&score)).unwrap();
    let error = own.model.quantization_error(&data).unwrap();
    assert_eq!(said["quantization_error"].as_f64(), Some(error));
    assert_eq!(said["rows"], 1_200);

    // The model that was written.
    let said = folder.done(&["info", "m.coremix", "--parameters", "m.npz"]);
    assert!(
        said.contains("TiedSpherical") && said.contains("k-means"),
        "{said}"
    );
    let mut npz = NpzReader::new(fs::File::open(folder.at("m.npz")).unwrap()).unwrap();
    let means: Array2<f32> = npz.by_name("means").unwrap();
    assert_eq!(means, own.model.means());
    assert!(folder.done(&["info", "rows.csv"]).contains("1200"));
}

#[test]
fn columns_of_the_fit_are_those_of_the_model() {
    let folder = Folder::new("columns");
    csv(&folder, &rows(600));
    folder.done(&[
        "fit",
        "rows.csv",
        "--columns",
        "z,x",
        "-k",
        "6",
        "-m",
        "m",
        "-q",
    ]);
    folder.done(&[
        "assign",
        "m",
        "rows.csv",
        "--labels",
        "all.parquet",
        "--key",
        "id",
    ]);
    assert_eq!(labels(&folder.at("all.parquet")).len(), 600);
    let said = folder.done(&["score", "m", "rows.csv"]);
    assert!(said.contains("log-likelihood"), "{said}");
}

#[test]
fn every_algorithm_runs() {
    let folder = Folder::new("all");
    write_npy(folder.at("rows.npy"), &rows(900)).unwrap();
    for name in Algorithm::NAMES {
        folder.done(&["fit", "rows.npy", "-a", name, "-k", "5", "-m", name, "-q"]);
        folder.done(&["score", name, "rows.npy", "-q"]);
    }
    // The Dirichlet process has more parameters.
    folder.done(&["info", "dp-gmm", "--parameters", "dp.npz"]);
    let mut npz = NpzReader::new(fs::File::open(folder.at("dp.npz")).unwrap()).unwrap();
    assert_eq!(npz.len(), 7);
    let sticks: Array2<f64> = npz.by_name("sticks").unwrap();
    assert_eq!(sticks.dim(), (5, 2));
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = Folder::new("errors");
    csv(&folder, &rows(60));
    fs::write(folder.at("bad.csv"), "x,y\n1,2\n3,oops\n").unwrap();
    fs::write(folder.at("nan.csv"), "x,y\n1,2\n3,nan\n").unwrap();
    fs::write(folder.at("broken.coremix"), b"\x89coremix\r\n\x1a\n\x01").unwrap();
    let fit = |more: &[&str]| {
        let mut arguments = vec!["fit", "-k", "3", "-m", "m"];
        arguments.extend(more);
        folder.fails(&arguments)
    };
    let cases = [
        (fit(&["none.csv"]), 1, "none.csv"),
        (
            fit(&["rows.csv", "-a", "quick"]),
            2,
            "[possible values: k-means, k-means-c",
        ),
        (
            fit(&["rows.csv", "-a", "k-means", "--neighbors", "3"]),
            2,
            "k-means has no --neighbors: take -a var-gmm-s or vc-gmm",
        ),
        (fit(&["rows.csv", "--columns", "x,q"]), 1, "\"q\""),
        (
            fit(&["bad.csv", "--columns", "x,y"]),
            1,
            "bad.csv: column \"y\"",
        ),
        (fit(&["nan.csv"]), 1, "nan.csv"),
        (
            folder.fails(&["fit", "rows.csv", "--columns", "x", "-k", "99", "-m", "m"]),
            1,
            "99 clusters",
        ),
        (
            fit(&["rows.csv", "--labels", "labels.txt"]),
            2,
            "labels.txt",
        ),
        (fit(&["rows.csv", "--labels", "none/l.npy"]), 1, "folder"),
        (
            fit(&["rows.csv", "--report", "rows.csv"]),
            2,
            "is read as an input",
        ),
        (fit(&["rows.csv", "--memory", "1MiB"]), 2, "--memory"),
        (fit(&["rows.csv", "--memory", "lots"]), 2, "4GiB"),
        (
            fit(&["rows.csv", "--checkpoint-every", "nan"]),
            2,
            "--checkpoint-every",
        ),
        (fit(&["rows.csv", "--format", "docx"]), 2, "docx"),
        (fit(&["rows.csv", "--delimiter", "é"]), 2, "one ASCII"),
        (fit(&["rows.csv", "--comment", "§"]), 2, "one ASCII"),
        (fit(&["rows.csv", "--comment", "→"]), 2, "one ASCII"),
        (
            folder.fails(&["score", "rows.csv", "rows.csv"]),
            1,
            "is no model of coremix: give the model first",
        ),
        (folder.fails(&["info", "broken.coremix"]), 1, "truncated"),
        (folder.fails(&["score", "none", "rows.csv"]), 1, "none"),
    ];
    for ((code, said), expected, part) in cases {
        assert!(said.contains(part), "{said}");
        assert_eq!(code, expected, "{said}");
        // Errors of clap on wrong arguments have hints below.
        assert!(code == 2 || said.lines().count() == 1, "{said}");
    }
    assert!(!folder.at("m").exists());
}

#[test]
fn rows_that_do_not_fit_are_streamed() {
    let folder = Folder::new("streamed");
    write_npy(folder.at("rows.npy"), &rows(400_000)).unwrap();
    let fit = [
        "fit", "rows.npy", "-k", "6", "-m", "m", "-q", "--report", "r.json",
    ];
    folder.done(&[&fit[..], &["--memory", "84MiB"]].concat());
    let report = fs::read_to_string(folder.at("r.json")).unwrap();
    let report: Report = serde_json::from_str(&report).unwrap();
    let rows: Vec<usize> = report.phases.iter().map(|phase| phase.rows).collect();
    assert!(
        rows[0] < 200_000 && rows.last() == Some(&400_000),
        "{rows:?}"
    );
    let (code, said) = folder.fails(&[&fit[..], &["--memory", "84MiB", "-a", "d-gmm"]].concat());
    assert!(code == 2 && said.contains("vc-gmm"), "{said}");
}

/// The most memory that a process has taken so far, as the system says.
#[cfg(target_os = "linux")]
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// Every algorithm on rows that do not fit: none takes more than it may, and those that would are refused.
#[cfg(target_os = "linux")]
#[test]
fn fits_stay_within_their_memory() {
    let folder = Folder::new("memory");
    let x = Array2::from_shape_fn((700_000, 4), |(i, j)| {
        let noise = (i * 7_919 + j * 104_729) % 1_009;
        ((i % 6) * (j + 1)) as f32 + noise as f32 / 1_009.0
    });
    write_npy(folder.at("rows.npy"), &x).unwrap();
    drop(x);
    for name in Algorithm::NAMES {
        let mut arguments = vec!["fit", "rows.npy", "-k", "6", "-m", "m", "-q", "-a", name];
        arguments.extend(["--max-iterations", "2", "--threads", "2"]);
        arguments.extend(["--memory", "100MiB"]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_coremix"));
        let child = child.current_dir(&folder.0).args(arguments);
        let mut child = child.stderr(Stdio::null()).spawn().unwrap();
        let mut most = 0;
        let ended = loop {
            most = most.max(peak(child.id()).unwrap_or(0));
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let refused = matches!(name, "var-gmm-s" | "d-gmm");
        assert_eq!(ended.code(), Some(if refused { 2 } else { 0 }), "{name}");
        assert!(most <= 100 << 20, "{name}: {most} bytes");
        // Not before it began.
        assert!(refused || most > 8 << 20, "{name}: {most} bytes");
    }
}

/// A limit holds for every kind of rows and every family, or the fit is refused before it begins, with what it needs.
#[cfg(target_os = "linux")]
#[test]
fn limits_hold_for_all_kinds_of_rows() {
    let folder = Folder::new("limits");
    let put = |name: &str, text: String| fs::write(folder.at(name), text).unwrap();
    let wide = |columns: usize| {
        let row = |i: usize| format!("1 {}:1 {}:{i}\n", i * 7 % columns, columns - 1);
        (0..99).map(row).collect::<String>()
    };
    put("wide.svmlight", wide(3_960_001));
    put("some.svmlight", wide(20_000));
    // Lines that name columns for which there is no value.
    let missing = |i: usize| match i % 5 {
        0 => format!("{},,{}\n", i % 7, i % 3),
        _ => format!("{},{},{}\n", i % 7, i % 11, i % 3),
    };
    let rows = (0..60_000).map(missing).collect::<String>();
    put("missing.csv", format!("a,b,c\n{rows}"));
    let rows = (0..60_000)
        .map(|i| format!("{i},{}\n", i % 3))
        .collect::<String>();
    put("ids.csv", format!("id,kind\n{rows}"));
    write_npy(
        folder.at("wide.npy"),
        &Array2::<f32>::from_elem((300, 2_500), 1.5),
    )
    .unwrap();
    write_npy(folder.at("long.npy"), &self::rows(200_000)).unwrap();
    // Files, arguments, and whether the limit is enough.
    let table = [
        ("wide.svmlight", "-k 2 -a k-means", false),
        ("wide.svmlight", "-k 2", false),
        ("wide.svmlight", "-k 2 -a gmm", false),
        ("some.svmlight", "-k 2 -a k-means", true),
        ("some.svmlight", "-k 3 -a gmm --covariance spherical", true),
        ("some.svmlight", "-k 3 --metric cosine", true),
        ("missing.csv", "-k 3 -a gmm --missing", true),
        ("missing.csv", "-k 3 -a k-means --missing", true),
        ("wide.npy", "-k 4 -a gmm --covariance full", false),
        ("wide.npy", "-k 2 -a k-means", true),
        ("long.npy", "-k 6 -a gmm --covariance full", true),
        ("long.npy", "-k 6", true),
        (
            "ids.csv",
            "-k 50 -a table --columns id,kind --categories id",
            false,
        ),
        (
            "ids.csv",
            "-k 3 -a table --columns id,kind --categories kind",
            true,
        ),
    ];
    for (file, given, enough) in table {
        let mut arguments = vec![
            "fit",
            file,
            "-m",
            "m",
            "-q",
            "--force",
            "--max-iterations",
            "3",
        ];
        arguments.extend(["--threads", "2", "--memory", "96MiB"]);
        arguments.extend(given.split(' '));
        let mut child = Command::new(env!("CARGO_BIN_EXE_coremix"));
        let child = child.current_dir(&folder.0).args(arguments);
        let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
        let mut most = 0;
        let ended = loop {
            most = most.max(peak(child.id()).unwrap_or(0));
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let said = std::io::read_to_string(child.stderr.unwrap()).unwrap();
        println!("{file:<14} {given:<56} {:>4} MiB  {said}", most >> 20);
        assert_eq!(ended.success(), enough, "{file} {given}: {said}");
        assert!(
            enough || said.contains("--memory") && said.contains("MiB"),
            "{said}"
        );
        assert!(most <= 96 << 20, "{file} {given}: {most} bytes");
    }
}

/// The content of files and arguments commands neither the terminal, nor the machine.
#[test]
fn arguments_and_names_are_only_text() {
    let folder = Folder::new("text");
    fs::write(folder.at("r.csv"), "a\x1b[31m,b\x07\n1,2\n2,3\n9,9\n").unwrap();
    let said = folder.done(&["fit", "r.csv", "-k", "1", "-m", "m"]);
    assert!(said.contains("a\\u{1b}[31m"), "{said}");
    let (_, errors) = folder.fails(&["fit", "r.csv", "-k", "1", "-m", "m", "--columns", "\x1b[2J"]);
    for text in [
        said,
        errors,
        folder.done(&["info", "r.csv"]),
        folder.done(&["info", "m"]),
    ] {
        assert!(
            text.chars().all(|sign| sign == '\n' || !sign.is_control()),
            "{text:?}"
        );
    }
    let many = ["20000", "1000000"];
    for threads in many {
        let (code, said) = folder.fails(&["info", "r.csv", "--threads", threads]);
        assert!(code == 2 && said.contains("--threads"), "{said}");
    }
    fs::write(folder.at("n.csv"), "a,b\n1,1e308\n2,3\n").unwrap();
    let (_, said) = folder.fails(&[
        "fit", "n.csv", "-k", "1", "-m", "m", "-a", "table", "--counts", "b",
    ]);
    assert!(said.len() < 200, "{said}");
}

/// A fit that takes a while, and its state on the disk at any time.
#[cfg(unix)]
fn long_fit(model: &str) -> Vec<&str> {
    let mut fit = vec!["fit", "rows.npy", "-a", "gmm", "-k", "60", "--model", model];
    fit.extend(["--tolerance", "0", "--max-iterations", "40"]);
    fit.extend(["--checkpoint-every", "0.001", "-q"]);
    fit
}

/// Killed at several moments, and run again.
#[cfg(unix)]
#[test]
fn a_killed_fit_goes_on() {
    let folder = Folder::new("killed");
    write_npy(folder.at("rows.npy"), &rows(40_000)).unwrap();
    folder.done(&long_fit("whole"));
    let mut kills = 0;
    for wait in [50, 100, 200, 400, 800] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
        let mut child = command
            .current_dir(&folder.0)
            .args(long_fit("killed"))
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().ok();
        child.wait().unwrap();
    }
    assert!(kills > 0);
    folder.done(&long_fit("killed"));
    let bytes = |name| fs::read(folder.at(name)).unwrap();
    assert!(bytes("whole") == bytes("killed"));
}

/// Ctrl-C: it says that the same command goes on, and so it does.
#[cfg(unix)]
#[test]
fn an_interrupted_fit_goes_on() {
    goes_on_after_an_interrupt("interrupted", &[]);
    goes_on_after_an_interrupt("interrupted-sketch", &["--coordinates", "2"]);
}

#[cfg(unix)]
fn goes_on_after_an_interrupt(name: &str, more: &[&str]) {
    let folder = Folder::new(name);
    write_npy(folder.at("rows.npy"), &rows(4_000)).unwrap();
    let long_fit = |model| [&long_fit(model)[..], more].concat();
    folder.done(&long_fit("whole"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
    let command = command.current_dir(&folder.0).args(long_fit("stopped"));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Once it has begun.
    let checkpoint = folder.at("stopped.checkpoint");
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let signal = ["-INT", &child.id().to_string()].map(str::to_string);
    assert!(
        Command::new("kill")
            .args(signal)
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    let expected = "coremix: interrupted: the same command goes on where it was\n";
    assert_eq!(said, expected);
    assert!(checkpoint.exists() && !folder.at("stopped").exists());
    folder.done(&long_fit("stopped"));
    let bytes = |name| fs::read(folder.at(name)).unwrap();
    assert!(bytes("whole") == bytes("stopped"));
}

#[test]
fn numbers_of_clusters_are_compared() {
    let folder = Folder::new("clusters");
    csv(&folder, &rows(600));
    let with = |rest: &[&'static str]| {
        let mut all = vec!["clusters", "rows.csv", "--key", "id", "--columns", "x,y,z"];
        all.extend(rest);
        all
    };
    let table = folder.done(&with(&["--from", "4", "--to", "8"]));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 9, "{table}");
    assert!(lines[6].trim_start().starts_with('6'), "{table}");
    assert!(lines[6].matches('*').count() >= 2, "{table}");
    assert!(lines.iter().all(|line| line.len() <= 80), "{table}");
    assert_eq!(
        table,
        folder.done(&with(&["--from", "4", "--to", "8", "--threads", "1"]))
    );
    let process = folder.done(&with(&["--from", "4", "--to", "8", "--dirichlet-process"]));
    let (first, last) = process.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(first.trim_end(), table.trim_end());
    assert!(
        last.starts_with("dp-gmm uses 6 of 8 components, held-out "),
        "{last}"
    );
    let coreset = [
        "--to",
        "4",
        "--coreset",
        "300",
        "--memory",
        "80MiB",
        "-a",
        "k-means",
    ];
    assert_eq!(folder.done(&with(&coreset)).lines().count(), 8);
    for wrong in [
        vec!["--from", "5", "--to", "4"],
        vec!["--to", "4", "--held-out", "1"],
        vec!["--to", "4", "-a", "unknown"],
    ] {
        let (code, said) = folder.fails(&with(&wrong));
        assert_eq!(code, 2, "{said}");
    }
}

/// Whether the labels of two files are equal.
fn agree(folder: &Folder, one: &str, other: &str) -> bool {
    labels(&folder.at(one)) == labels(&folder.at(other))
}

#[test]
fn columns_are_found_by_their_names() {
    let folder = Folder::new("names");
    let write = |name: &str, head: &str, row: &dyn Fn(usize) -> String| {
        let rows: String = (0..300).map(row).collect();
        fs::write(folder.at(name), format!("{head}\n{rows}")).unwrap();
    };
    let (x, y) = (|i: usize| (i % 3) as f64, |i: usize| 100.0 * (i % 2) as f64);
    write("xy.csv", "id,city,x,y", &|i| {
        format!("{i},here,{},{}\n", x(i), y(i))
    });
    write("yx.csv", "y,id,x,city", &|i| {
        format!("{},{i},{},here\n", y(i), x(i))
    });
    write("pq.csv", "id,p,q", &|i| format!("{i},{},{}\n", x(i), y(i)));
    let said = folder.done(&["fit", "xy.csv", "--key", "id", "-k", "6", "-m", "m"]);
    let expected = "columns         x, y\nnot used        city (text: \"here\")\n\
                    categories      none; -a table takes text, by --categories city\n";
    assert!(said.starts_with(expected), "{said}");
    for (rows, to) in [("xy.csv", "a.parquet"), ("yx.csv", "b.parquet")] {
        folder.done(&["assign", "m", rows, "--key", "id", "--labels", to]);
    }
    assert!(agree(&folder, "a.parquet", "b.parquet"));
    let assign = |more: &[&str]| {
        let fixed = ["assign", "m", "--key", "id", "--labels", "c.npy"];
        folder.fails(&[&fixed[..], more].concat())
    };
    let (code, said) = assign(&["xy.csv", "--columns", "y,x"]);
    assert!(code == 2 && said.contains("fitted on x, y"), "{said}");
    let (code, said) = assign(&["pq.csv"]);
    assert!(
        code == 1 && said.contains("pq.csv: has no column \"x\""),
        "{said}"
    );
    // Several files: the first one says which columns are read.
    let (both, once) = (["fit", "xy.csv", "yx.csv"], ["fit", "xy.csv", "xy.csv"]);
    for (files, model) in [(both, "two"), (once, "twice")] {
        let more = ["--key", "id", "-k", "6", "-m", model, "-q"];
        folder.done(&[&files[..], &more].concat());
    }
    assert_eq!(
        fs::read(folder.at("two")).unwrap(),
        fs::read(folder.at("twice")).unwrap()
    );
    let (code, said) = folder.fails(&["fit", "xy.csv", "pq.csv", "-k", "6", "-m", "n"]);
    assert!(
        code == 1 && said.contains("pq.csv: has no column"),
        "{said}"
    );
    // Labels alone need no keys.
    folder.done(&["assign", "m", "yx.csv", "--key", "id", "--labels", "l.npy"]);
    // Nor do rows need names, as in a folder of matrices.
    fs::create_dir(folder.at("plain")).unwrap();
    let plain = Array2::from_shape_fn((300, 2), |(i, j)| [x(i), y(i)][j]);
    write_npy(folder.at("plain/xy.npy"), &plain).unwrap();
    folder.done(&["assign", "m", "plain", "--labels", "plain.npy"]);
    let of = |name: &str| read_npy::<_, ndarray::Array1<u32>>(folder.at(name)).unwrap();
    assert_eq!(of("plain.npy"), of("l.npy"));
    // An id that is not named as a key is a feature, and is seen to be one.
    let said = folder.done(&["info", "xy.csv"]);
    assert!(said.contains("columns         id, x, y\n"), "{said}");
    let said = folder.done(&["info", "m"]);
    assert!(said.contains("columns         2: x, y\n"), "{said}");
    let bytes = fs::read(folder.at("m")).unwrap();
    fs::write(folder.at("half"), &bytes[..bytes.len() - 9]).unwrap();
    let (code, said) = folder.fails(&["info", "half"]);
    assert!(code == 1 && said.contains("truncated"), "{said}");
}

#[test]
fn values_that_are_missing_are_told() {
    let folder = Folder::new("missing");
    for (field, place) in [("", 0), ("NA", 7), ("?", 150)] {
        let row = |i: usize| match i == place {
            true => format!("u{i},{field},1\n"),
            false => format!("u{i},{},2\n", i % 5),
        };
        let rows: String = (0..200).map(row).collect();
        fs::write(folder.at("rows.csv"), format!("id,age,income\n{rows}")).unwrap();
        let (code, said) = folder.fails(&["fit", "rows.csv", "--key", "id", "-k", "3", "-m", "m"]);
        let line = place + 2;
        let expected = format!("rows.csv: column \"age\", line {line}:");
        assert!(code == 1 && said.contains(&expected), "{said}");
    }
    // The first line is a row, where all of it are numbers.
    fs::write(folder.at("plain.csv"), "1,2\n3,4\n5,6\n7,8\n").unwrap();
    let said = folder.done(&["info", "plain.csv"]);
    assert!(said.contains("rows            4,"), "{said}");
    assert!(
        said.contains("columns         column_1, column_2"),
        "{said}"
    );
    // In the second file: its name, its row and its column.
    let mut x = rows(50);
    write_npy(folder.at("a.npy"), &x).unwrap();
    x[[7, 1]] = f32::NAN;
    write_npy(folder.at("b.npy"), &x).unwrap();
    write_npy(folder.at("c.npy"), &Array2::<f32>::zeros((5, 2))).unwrap();
    for (second, expected) in [
        ("b.npy", "b.npy: column 1, row 7:"),
        ("c.npy", "c.npy: has 2 columns, where a.npy has 3"),
    ] {
        let (code, said) = folder.fails(&["fit", "a.npy", second, "-k", "3", "-m", "m"]);
        assert!(code == 1 && said.contains(expected), "{said}");
    }
}

/// Rows with missing values are fitted by what is known of them; the model takes such rows without being told again.
#[test]
fn missing_values_are_kept() {
    let folder = Folder::new("kept");
    let mut lines = String::from("id,x,y,spend,none,note\n");
    let mut table = Array2::from_elem((600, 3), f64::NAN);
    for (i, mut row) in table.outer_iter_mut().enumerate() {
        let mut fields = Vec::new();
        for (j, x) in row.iter_mut().enumerate() {
            let missing = (i * 7 + j * 11) % 5 == 0 || j == 2 && i % 3 > 0;
            *x = match missing {
                true => f64::NAN,
                false => (i % 2 * 20 + i % 9 + j) as f64 + 0.25,
            };
            let words = ["", "NA", "-", " ", "-999"];
            fields.push(match missing {
                true => words[(i + j) % 5].to_owned(),
                false => x.to_string(),
            });
        }
        lines += &format!("u{i},{},,some text\n", fields.join(","));
    }
    fs::write(folder.at("t.csv"), lines).unwrap();
    let whole = (0..90).map(|i| format!("{}.5,{}\n", i % 2 * 20 + i % 7, i % 5));
    let whole: String = whole.collect();
    fs::write(folder.at("w.csv"), format!("x,y\n{whole}")).unwrap();
    let (code, said) = folder.fails(&["fit", "t.csv", "--key", "id", "-k", "2", "-m", "m"]);
    assert!(code == 1 && said.ends_with("or give --missing\n"), "{said}");
    let texts = ["--missing=-,-999", "--key", "id"];
    let fit = [
        "fit", "t.csv", "-k", "2", "-a", "k-means", "-m", "m", "-l", "l.npy",
    ];
    let said = folder.done(&[&fit[..], &texts].concat());
    assert_eq!(words(&said, "columns"), "x, y, spend");
    assert_eq!(
        words(&said, "not used"),
        "note (text: \"some text\"), none (no value)"
    );
    let values = table.iter().filter(|x| x.is_nan()).count();
    assert!(
        words(&said, "missing").starts_with(&format!("{values} values, in")),
        "{said}"
    );
    // As in memory.
    let data = Dense::with_missing(&table).unwrap();
    let by_hand = algorithms::k_means::<f64>(2)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    let model: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
    assert_eq!(model.means(), by_hand.means());
    let error = by_hand.quantization_error(&data).unwrap() / 600.0;
    assert!(
        (number(words(&said, "error")) - error).abs() < 1e-4,
        "{said} {error}"
    );
    let labels: ndarray::Array1<u32> = read_npy(folder.at("l.npy")).unwrap();
    assert_eq!(labels, by_hand.predict(&data).unwrap());
    // The model remembers the texts.
    folder.done(&["assign", "m", "t.csv", "-l", "a.npy"]);
    assert_eq!(
        fs::read(folder.at("a.npy")).unwrap(),
        fs::read(folder.at("l.npy")).unwrap()
    );
    let score = folder.done(&["score", "m", "t.csv"]);
    assert!(
        (number(words(&score, "error")) - error).abs() < 1e-4,
        "{score}"
    );
    assert!(
        folder
            .done(&["info", "m", "--json"])
            .contains(r#""missing":["-","-999"]"#)
    );
    let (code, said) = folder.fails(&["score", "m", "t.csv", "--missing"]);
    assert!(
        code == 1 && said.contains("\"-\" is not a number"),
        "{said}"
    );
    // All commands; directions need all columns.
    for more in [
        &["-a", "gmm"][..],
        &["-a", "gmm", "--covariance", "full"],
        &["-a", "gmm", "--factors", "1"],
        &["-a", "dp-gmm"],
        &["-a", "lwcs-k-means"],
        &["--standardise"],
    ] {
        let fit = ["fit", "t.csv", "-k", "2", "-m", "m"];
        folder.done(&[&fit[..], &texts, more].concat());
    }
    let range = ["clusters", "t.csv", "--to", "3"];
    assert!(folder.done(&[&range[..], &texts].concat()).contains('*'));
    let (fit, more) = (
        ["fit", "t.csv", "-k", "2", "-m", "m"],
        ["--metric", "cosine"],
    );
    let (_, said) = folder.fails(&[&fit[..], &texts, &more].concat());
    assert!(said.contains("no missing values for directions"), "{said}");
    // A fit to other rows has labels and scores of whole rows alone.
    folder.done(&[&["fit", "w.csv", "-k", "2", "-m", "w"][..], &more].concat());
    for ask in [
        &["assign", "w", "t.csv", "-l", "w.npy"][..],
        &["score", "w", "t.csv"],
    ] {
        let (_, said) = folder.fails(&[ask, &texts[..1]].concat());
        assert!(said.contains("no missing values for directions"), "{said}");
    }
    let said = folder.done(&[&["info", "t.csv"], &texts[..]].concat());
    assert!(
        words(&said, "missing").starts_with(&format!("{values} values")),
        "{said}"
    );
    let (code, said) = folder.fails(&["fit", "-k", "2", "-m", "n", "--missing", "t.csv", "t.csv"]);
    assert!(code == 2 && said.contains("after the files"), "{said}");
    let (code, _) = folder.fails(&[
        "fit",
        "t.csv",
        "-k",
        "2",
        "-m",
        "m",
        "--missing",
        "--drop-missing",
    ]);
    assert_eq!(code, 2);
    // A weight is never missing.
    let (_, said) = folder.fails(&[
        "fit",
        "t.csv",
        "-k",
        "2",
        "-m",
        "m",
        "--missing=-,-999",
        "--weights",
        "x",
    ]);
    assert!(
        said.contains("weights \"x\"") && !said.contains("--missing"),
        "{said}"
    );
}

/// Sparse rows of files are fitted as such, and asked about: as text, of which a file may name fewer columns.
#[test]
fn sparse_rows_are_fitted() {
    let folder = Folder::new("sparse");
    let mut rng = coremix::stage::Rng::from_seed(4);
    let (mut lines, mut starts, mut ids, mut values) = (String::new(), vec![0], vec![], vec![]);
    for i in 0..600usize {
        lines += "1";
        for j in 0..60u32 {
            let chance = if j as usize % 3 == i % 3 { 0.5 } else { 0.02 };
            if rng.uniform() < chance {
                let x = 0.5 + f64::from(j % 4);
                lines += &format!(" {j}:{x}");
                ids.push(j);
                values.push(x);
            }
        }
        lines += "\n";
        starts.push(ids.len());
    }
    fs::write(folder.at("t.svmlight"), &lines).unwrap();
    let fit = [
        "fit",
        "t.svmlight",
        "-k",
        "3",
        "--seed",
        "2",
        "-m",
        "m",
        "-l",
        "l.npy",
    ];
    let said = folder.done(&[&fit[..], &["--metric", "cosine", "-a", "fast"]].concat());
    assert!(said.contains("clusters"), "{said}");
    let data = coremix::data::Sparse::new(60, starts, ids, values).unwrap();
    let own = "fast".parse::<Algorithm>().unwrap().clusters(3).seed(2);
    let own = own.metric(coremix::Metric::Cosine).boxed::<f64>().unwrap();
    let own = own.fit(&data).unwrap().model;
    let model: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
    assert_eq!(model.means(), own.means());
    let labels: ndarray::Array1<u32> = read_npy(folder.at("l.npy")).unwrap();
    assert_eq!(labels, own.predict(&data).unwrap());
    let first = lines.lines().next().unwrap();
    fs::write(folder.at("one.svm"), format!("{first}\n0 5:1\n")).unwrap();
    folder.done(&["assign", "m", "one.svm", "-l", "one.npy"]);
    let one: ndarray::Array1<u32> = read_npy(folder.at("one.npy")).unwrap();
    assert_eq!((one.len(), one[0]), (2, labels[0]));
    folder.done(&["score", "m", "t.svmlight"]);
    let range = ["clusters", "t.svmlight", "--to", "4", "-a", "gmm"];
    assert!(folder.done(&range).contains('*'));
    let said = folder.done(&["info", "t.svmlight"]);
    assert!(
        words(&said, "memory").ends_with("the others are 0"),
        "{said}"
    );
    fs::write(folder.at("wide.svm"), "0 60:1\n").unwrap();
    let (_, said) = folder.fails(&["assign", "m", "wide.svm", "-l", "one.npy"]);
    assert!(
        said.contains("the model has 60 columns, the rows have 61"),
        "{said}"
    );
    for more in [&["--covariance", "full"][..], &["--factors", "2"]] {
        let (_, said) = folder.fails(
            &[
                &["fit", "t.svmlight", "-k", "2", "-m", "n", "-a", "gmm"],
                more,
            ]
            .concat(),
        );
        assert!(
            said.contains("needs all coordinates of a row, or rows with missing values"),
            "{said}"
        );
    }
}

/// The words after a name, of what a command prints.
fn words<'a>(said: &'a str, name: &str) -> &'a str {
    let mut lines = said.lines().filter(|line| line.starts_with(name));
    lines.next().unwrap_or_else(|| panic!("no {name}: {said}"))[name.len()..].trim()
}

/// The first number among words.
fn number(words: &str) -> f64 {
    let mut numbers = words.split([' ', ',']).filter_map(|word| word.parse().ok());
    numbers.next().unwrap()
}

#[test]
fn a_fit_says_what_it_found() {
    let folder = Folder::new("said");
    csv(&folder, &rows(1_200));
    let input = ["rows.csv", "--key", "id", "--columns", "x,y,z"];
    let fit = |more: &[&str]| folder.done(&[&["fit", "-m", "m"], &input[..], more].concat());
    let score = |name: &str| {
        let said = folder.done(&[&["score", "m", "--json"], &input[..]].concat());
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said[name].as_f64().unwrap() / said["weight"].as_f64().unwrap()
    };
    let labels = ["-k", "6", "--labels", "l.csv"];
    for algorithm in ["fast", "k-means", "lazy-k-means"] {
        let said = fit(&[&labels[..], &["-a", algorithm]].concat());
        assert_eq!(words(&said, "rows"), "1200");
        assert_eq!(words(&said, "clusters"), "6, all with rows");
        assert_eq!(words(&said, "sizes"), "200 to 200, median 200");
        let error = score("quantization_error");
        let found = number(words(&said, "error"));
        assert!(
            (found - error).abs() <= 1e-3 * error,
            "{algorithm}: {found} {error}"
        );
        assert_eq!(
            (words(&said, "model"), words(&said, "labels")),
            ("m", "l.csv")
        );
        assert!(!said.contains("free energy") && words(&said, "time").contains("iterations"));
        assert_eq!(
            words(&folder.done(&["info", "m"]), "sizes"),
            ["200"; 6].join(" ")
        );
    }
    let text = fs::read_to_string(folder.at("l.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (1_201, "id,label"));
    assert!(lines[1].starts_with("row-0,") && lines[1_200].starts_with("row-1199,"));
    for more in [
        &["--covariance", "diagonal"][..],
        &["--covariance", "full"],
        &[],
    ] {
        let said = fit(&[&["-k", "6", "-a", "gmm", "--verbose"], more].concat());
        assert!(
            said.contains("free energy") && said.contains("seeding"),
            "{said}"
        );
        let found = number(words(&said, "log-likelihood"));
        assert!((found - score("log_likelihood")).abs() < 1e-4, "{said}");
    }
    // Bounds and estimates say so.
    let said = fit(&["-k", "6", "-a", "var-gmm-s"]);
    assert!(
        words(&said, "log-likelihood").starts_with("at least"),
        "{said}"
    );
    let said = fit(&["-k", "6", "-a", "vc-gmm", "--coreset", "500"]);
    assert!(said.contains("estimated from a coreset of 500"), "{said}");
    assert_eq!(fit(&["-k", "6", "-q"]), "");
    // Rows that are all their centres have no error, in spite of rounding.
    for (value, float) in [
        ("3.7", "f64"),
        ("-1e-7", "f64"),
        ("123456.7", "f32"),
        ("0", "f32"),
    ] {
        fs::write(
            folder.at("one.csv"),
            format!("x\n{}", format!("{value}\n").repeat(49)),
        )
        .unwrap();
        let one = ["fit", "one.csv", "-k", "1", "-m", "one", "--float", float];
        let said = folder.done(&one);
        assert_eq!(words(&said, "error").split(',').next(), Some("0"), "{said}");
    }
    let several = [0.1, 0.7, 123.45, 1e6 + 0.3, 5e-3, 77.0, 1.5];
    for k in [2, 3, 7] {
        let rows = (0..300).map(|i| format!("{}\n", several[i % k]));
        fs::write(
            folder.at("some.csv"),
            format!("x\n{}", rows.collect::<String>()),
        )
        .unwrap();
        let k = k.to_string();
        let said = folder.done(&["fit", "some.csv", "-k", &k, "-m", "some", "-a", "k-means"]);
        assert_eq!(words(&said, "error").split(',').next(), Some("0"), "{said}");
    }
    // A small error is one.
    let rows = "1\n1.000002\n".repeat(20);
    fs::write(folder.at("near.csv"), format!("x\n{rows}")).unwrap();
    let said = folder.done(&["fit", "near.csv", "-k", "1", "-m", "near"]);
    assert!(
        (number(words(&said, "error")) - 1e-12).abs() < 1e-17,
        "{said}"
    );
    let said = folder.done(&[
        "assign", "m", "rows.csv", "--key", "id", "--labels", "l.csv",
    ]);
    assert_eq!(
        (words(&said, "rows"), words(&said, "labels")),
        ("1200", "l.csv")
    );
}

#[test]
fn lines_are_80_signs_long() {
    let folder = Folder::new("wide");
    let names: Vec<String> = (0..60).map(|j| format!("column-{j}")).collect();
    let row = ["1"; 60].join(",");
    let rows: Vec<String> = (0..40).map(|i| format!("{i}{}", &row[1..])).collect();
    let text = format!("{}\n{}\n", names.join(","), rows.join("\n"));
    fs::write(folder.at("rows.csv"), text).unwrap();
    let mut all = vec![folder.done(&["--help"])];
    let helped = "fit clusters assign score explain impute sample info completions help files csv missing algorithms covariances tables limits criteria";
    all.extend(helped.split(' ').map(|name| folder.done(&["help", name])));
    all.push(folder.done(&["fit", "rows.csv", "-k", "40", "-m", "m", "-v"]));
    all.push(folder.done(&["score", "m", "rows.csv"]));
    all.push(folder.done(&["info", "m"]));
    towns(&folder);
    let warned = folder.run(&["fit", "towns.csv", "-k", "3", "-m", "m"]);
    all.push(String::from_utf8(warned.stderr).unwrap());
    assert!(all[all.len() - 1].contains("warning"));
    all.push(folder.done(&["info", "rows.csv"]));
    for line in all.iter().flat_map(|said| said.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn help_is_a_screen_for_each_command_and_subject() {
    let folder = Folder::new("help");
    let overview = folder.done(&["help"]);
    assert_eq!(folder.done(&["--help"]), overview);
    assert_eq!(folder.done(&["-h"]), overview);
    for command in ["fit", "clusters", "assign", "score", "info", "help"] {
        let screen = folder.done(&["help", command]);
        assert!(screen.lines().count() <= 45, "{screen}");
        assert!(overview.contains(&format!("\n  {command} ")), "{command}");
        for flag in ["-h", "--help"] {
            assert_eq!(folder.done(&[command, flag]), screen);
        }
    }
    let (_, subjects) = overview.split_once("SUBJECT':\n").unwrap();
    let subjects = subjects.lines().take_while(|line| !line.is_empty());
    let subjects: Vec<&str> = subjects
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(subjects.contains(&"covariances"), "{subjects:?}");
    for subject in &subjects {
        let page = folder.done(&["help", subject]);
        assert!(page.lines().count() <= 50, "{page}");
    }
    let fit = folder.done(&["help", "fit"]);
    assert!(
        fit.contains("--columns") && !fit.contains("--covariance"),
        "{fit}"
    );
    let covariances = folder.done(&["help", "covariances"]);
    assert!(covariances.contains("--covariance <NAME>"), "{covariances}");
    let (code, said) = folder.fails(&["help", "covarances"]);
    assert!(code == 2 && said.contains("'covariances'"), "{said}");
    // Options that no screen shows are suggested as the others are.
    let (code, said) = folder.fails(&[
        "fit",
        "rows.csv",
        "-k",
        "3",
        "-m",
        "m",
        "--covariances",
        "full",
    ]);
    assert!(code == 2 && said.contains("'--covariance'"), "{said}");
}

/// The warnings among what a command says.
fn warnings(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let steps = ["coremix: fitting", "coremix: choosing"];
    let is_step = |line: &str| steps.iter().any(|step| line.starts_with(step));
    let warned = said.lines().filter(|line| !is_step(line));
    warned.collect::<Vec<_>>().join("\n")
}

/// Three towns, which two columns of very different units tell.
fn towns(folder: &Folder) -> Vec<u32> {
    let mut rng = coremix::stage::Rng::from_seed(8);
    let mut text = String::from("id,town,age,income,since\n");
    let truth: Vec<u32> = (0..900).map(|i| i * 7 % 3).collect();
    for (i, town) in truth.iter().enumerate() {
        let age = 20.0 + 20.0 * f64::from(*town) + 2.0 * rng.normal();
        let income = 50_000.0 + 15_000.0 * f64::from(*town % 2) + 5_000.0 * rng.normal();
        text += &format!("u{i},town {town},{age},{income},1.1.2020\n");
    }
    fs::write(folder.at("towns.csv"), text).unwrap();
    truth
}

#[test]
fn columns_of_different_units_are_standardised() {
    let folder = Folder::new("units");
    let truth = ndarray::Array1::from(towns(&folder));
    let input = ["towns.csv", "--key", "id", "--float", "f64"];
    let agreement = |more: &[&str]| {
        let fit = ["fit", "-k", "3", "-m", "m", "--labels", "l.npy"];
        let output = folder.run(&[&fit[..], &input, more].concat());
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let warned = warnings(&output);
        let labels: ndarray::Array1<u32> = read_npy(folder.at("l.npy")).unwrap();
        let index = metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap();
        (index, said, warned)
    };
    let (index, said, warned) = agreement(&[]);
    assert!(index < 0.7, "{index}");
    assert_eq!(
        words(&said, "not used"),
        "town (text: \"town 0\"), since (text: \"1.1.2020\")"
    );
    assert!(
        warned.contains("\"income\" varies") && warned.contains("\"age\""),
        "{warned}"
    );
    assert!(warned.contains("--standardise"), "{warned}");
    // Exactly a k-means of scaled rows: so says one by hand.
    let opened = open(folder.at("towns.csv"), &Options::new()).unwrap();
    let AnySource::F64(rows) = opened.rows else {
        panic!("text is read as f64")
    };
    let mut x = Array2::zeros((900, 2));
    rows.read(0, x.as_slice_mut().unwrap()).unwrap();
    let (mean, deviation) = (
        x.mean_axis(ndarray::Axis(0)).unwrap(),
        x.std_axis(ndarray::Axis(0), 0.0),
    );
    let z = (&x - &mean) / &deviation;
    for algorithm in ["fast", "k-means"] {
        let (index, said, warned) = agreement(&["--standardise", "-a", algorithm]);
        assert!(index > 0.95, "{algorithm}: {index}");
        assert_eq!(warned, "");
        let info = ModelInfo::of_file(folder.at("m")).unwrap();
        assert_eq!(
            (&*info.family, info.note("standardised")),
            ("TiedSpherical", Some("yes"))
        );
        let model: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
        let means = (&model.means() - &mean) / &deviation;
        let labels: ndarray::Array1<u32> = read_npy(folder.at("l.npy")).unwrap();
        let mut error = 0.0;
        for (row, label) in z.outer_iter().zip(&labels) {
            let squared = |mean: ndarray::ArrayView1<'_, f64>| (&row - &mean).mapv(|x| x * x).sum();
            let least = means
                .outer_iter()
                .map(squared)
                .fold(f64::INFINITY, f64::min);
            let own = squared(means.row(*label as usize));
            assert!(own <= least * (1.0 + 1e-9), "{own} {least}");
            error += own / 900.0;
        }
        assert!(
            (number(words(&said, "error")) - error).abs() < 1e-4,
            "{said} {error}"
        );
        // Whoever loads the model gives it rows as they are.
        let found = model.predict(&Dense::new(&x).unwrap()).unwrap();
        assert_eq!(found, labels);
        folder.done(&["assign", "m", "towns.csv", "--labels", "a.npy"]);
        assert_eq!(
            read_npy::<_, ndarray::Array1<u32>>(folder.at("a.npy")).unwrap(),
            labels
        );
    }
    // Densities are those of rows as they are, for every kind of covariance.
    for kind in ["tied-spherical", "spherical", "diagonal", "tied", "full"] {
        let (_, said, _) = agreement(&["--standardise", "-a", "gmm", "--covariance", kind]);
        let score = folder.done(&["score", "m", "towns.csv"]);
        let (found, scored) = (
            words(&said, "log-likelihood"),
            words(&score, "log-likelihood"),
        );
        assert!(
            (number(found) - number(scored)).abs() < 1e-4,
            "{kind}: {found} {scored}"
        );
    }
    let (_, _, warned) = agreement(&["-a", "gmm", "--covariance", "diagonal"]);
    assert_eq!(warned, "");
    let (index, said, _) = agreement(&["--standardise", "-a", "dp-gmm"]);
    assert!(index > 0.95, "{index}");
    let score = folder.done(&["score", "m", "towns.csv"]);
    let of = |said: &str| number(words(said, "log-likelihood").trim_start_matches("at least "));
    // The bound of the evidence is below the likelihood.
    assert!(of(&said) < of(&score), "{said} {score}");
    // So that the number of clusters can be chosen, too.
    let clusters = |more: &[&str]| {
        let output =
            folder.run(&[&["clusters", "--from", "2", "--to", "5"], &input[..], more].concat());
        let table = String::from_utf8_lossy(&output.stdout);
        let three = table
            .lines()
            .find(|line| line.trim_start().starts_with("3 "))
            .unwrap();
        (three.matches('*').count(), warnings(&output))
    };
    // Covariances of gmm are diagonal.
    let (stars, warned) = clusters(&["--standardise"]);
    assert!(stars >= 3 && warned.is_empty(), "{stars} {warned}");
    assert!(!clusters(&[]).1.contains("varies"));
    let (_, warned) = clusters(&["--covariance", "tied-spherical"]);
    assert!(warned.contains("\"income\" varies"), "{warned}");
}

/// Rows of any length are clustered by their direction, and the model takes them as they are.
#[test]
fn directions_are_clustered_by_cosine() {
    let folder = Folder::new("cosine");
    let rays = ["1,0.1", "20,1", "0.1,0.02", "0.1,3", "0,0.2", "1,50"];
    fs::write(folder.at("rays.csv"), format!("x,y\n{}\n", rays.join("\n"))).unwrap();
    let fit = [
        "fit", "rays.csv", "-k", "2", "-m", "m", "--labels", "l.npy", "--metric", "cosine",
    ];
    for algorithm in ["fast", "k-means", "gmm", "vc-gmm"] {
        let said = folder.done(&[&fit[..], &["-a", algorithm, "--restarts", "5"]].concat());
        let labels: ndarray::Array1<u32> = read_npy(folder.at("l.npy")).unwrap();
        assert!(
            labels[0] == labels[1] && labels[0] == labels[2],
            "{algorithm}: {labels}"
        );
        assert!(
            labels[3] == labels[4] && labels[3] == labels[5],
            "{algorithm}: {labels}"
        );
        assert!(labels[0] != labels[3], "{algorithm}: {labels}");
        let info = ModelInfo::of_file(folder.at("m")).unwrap();
        assert_eq!(
            (&*info.family, info.note("metric")),
            ("VonMisesFisher", Some("cosine"))
        );
        if algorithm == "fast" {
            let score = folder.done(&["score", "m", "rays.csv"]);
            assert!(said.contains("2 - 2 cos"), "{said}");
            let [found, scored] = [said, score].map(|said| number(words(&said, "error")));
            assert!((found - scored).abs() < 1e-5, "{found} {scored}");
        }
    }
    for (more, what) in [
        (["-a", "dp-gmm"], "dp-gmm has no metric"),
        (["--covariance", "full"], "no --covariance"),
    ] {
        let (code, said) = folder.fails(&[&fit[..], &more].concat());
        assert!(code == 2 && said.contains(what), "{said}");
    }
}

#[test]
fn what_columns_hold_is_told() {
    let folder = Folder::new("holds");
    let fit = |name: &str, text: &str, more: &[&str]| {
        fs::write(folder.at(name), text).unwrap();
        let output = folder.run(&[&["fit", name, "-k", "2", "-m", "m"], more].concat());
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let rows: String = (0..9)
        .map(|i| format!("{};{i},5;;{i}.5\n", i + 3))
        .collect();
    let semicolons = format!("id;x;spend;y\n{rows}");
    let said = fit("a.csv", &semicolons, &["--delimiter", ";"]);
    assert_eq!(
        words(&said, "not used"),
        "x (commas within numbers), spend (empty fields)"
    );
    let warned = "warning: \"id\" numbers the rows: --key leaves it out";
    assert!(said.contains(warned), "{said}");
    let said = fit("a.csv", &semicolons, &["--delimiter", ";", "--standardise"]);
    assert!(said.contains(warned), "{said}");
    let said = fit("a.csv", &semicolons, &["--delimiter", ";", "--key", "id"]);
    assert!(!said.contains("warning"), "{said}");
    // Ids with gaps are told by their name; groups are none.
    for (name, step, warns) in [
        ("userId", 17, true),
        ("spent", 17, false),
        ("shop_id", 0, false),
    ] {
        let lines: String = (0..9).map(|i| format!("{},{i}.5\n", i * step)).collect();
        let said = fit("ids.csv", &format!("{name},y\n{lines}"), &[]);
        let warned = format!("warning: \"{name}\" seems to name the rows: --key leaves it out");
        assert_eq!(said.contains(&warned), warns, "{said}");
        assert!(!said.contains("numbers the rows"), "{said}");
    }
    let said = fit("b.csv", &semicolons.replace(",5", ".5"), &[]);
    let expected = "are its fields separated by \";\"?";
    assert!(said.contains(expected), "{said}");
    let said = fit("c.csv", "a,b\nx,1.1.2020\ny,2.1.2020\n", &[]);
    assert!(
        said.contains("no column of numbers, but a (text), b (text)"),
        "{said}"
    );
    // Names that are numbers must be told.
    let years = "2019,2020\n1,2\n3,4\n5,7\n";
    assert_eq!(words(&fit("d.csv", years, &[]), "rows"), "4");
    let said = fit("d.csv", years, &["--header"]);
    assert_eq!(
        (words(&said, "rows"), words(&said, "columns")),
        ("3", "2019, 2020")
    );
    // Text next to numbers makes a first line look like names.
    let said = fit("e.csv", "ann,41\nbob,42\ncyd,50\ndan,51\n", &[]);
    assert!(
        said.contains("\"41\" names a column: give --no-header"),
        "{said}"
    );
    let shown = folder.done(&["info", "e.csv", "--no-header"]);
    assert_eq!(words(&shown, "rows"), "4, in 1 file");
    // A model of a program may have no names.
    let model: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
    model.save(folder.at("m")).unwrap();
    let output = folder.run(&["score", "m", "e.csv"]);
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.contains("the model names no columns"), "{warned}");
    assert!(folder.done(&["info", "m"]).contains("centre 1       "));
    let said = fit("d.csv", years, &["-a", "kmeans"]);
    assert!(said.contains("a similar value exists: 'k-means'"), "{said}");
}

/// No file is lost: an output replaces only older ones of its kind, unless it is forced, and never an input.
#[test]
fn files_that_are_no_results_are_not_written_over() {
    let folder = Folder::new("over");
    csv(&folder, &rows(60));
    let whole = fs::read(folder.at("rows.csv")).unwrap();
    let put = |name: &str, text: &str| fs::write(folder.at(name), text).unwrap();
    fs::create_dir(folder.at("parts")).unwrap();
    fs::copy(folder.at("rows.csv"), folder.at("parts/a.csv")).unwrap();
    put("data.csv", "x,y\n1,2\n3,4\n");
    put("truth.csv", "x,label\n1,0\n2,1\n");
    put("only.csv", "label\n1\n0\n");
    write_npy(folder.at("only.npy"), &ndarray::Array1::<u32>::zeros(60)).unwrap();
    put("species.csv", "id,label\nrow-0,setosa\n");
    put("notes.json", "{\"stop\": 1}");
    put("empty", "");
    write_npy(folder.at("rows.npy"), &rows(60)).unwrap();
    write_npy(folder.at("truth.npy"), &ndarray::Array1::<i64>::zeros(60)).unwrap();
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(folder.at("mine.npz")).unwrap());
    npz.add_array("means", &rows(6)).unwrap();
    npz.finish().unwrap();
    let fixed = ["fit", "rows.csv", "--key", "id", "-k", "3", "-q"];
    folder.done(
        &[
            &fixed[..],
            &["-m", "m", "-l", "l.parquet", "--report", "r.json"],
        ]
        .concat(),
    );
    folder.done(&[&fixed[..], &["-m", "n", "-l", "l.csv"]].concat());
    folder.done(&[&fixed[..], &["-l", "l.npy"]].concat());
    folder.done(&["info", "m", "--parameters", "p.npz"]);
    // A table of this crate that is none of labels.
    fs::copy(folder.at("l.parquet"), folder.at("mine.parquet")).unwrap();
    let bytes = fs::read(folder.at("mine.parquet")).unwrap();
    let at = bytes
        .windows(7)
        .rposition(|part| part == b"coremix")
        .unwrap();
    let mut other = bytes.clone();
    other[at..at + 7].copy_from_slice(b"foreign");
    fs::write(folder.at("mine.parquet"), other).unwrap();
    let refused: [&[&str]; 14] = [
        &["-l", "only.csv"],
        &["-l", "only.npy"],
        &["-m", "data.csv"],
        &["-m", "rows.npy"],
        &["-m", "l2.csv"],
        &["-m", "m", "--report", "notes.json"],
        &["-m", "m", "--report", "m2"],
        &["-l", "data.csv"],
        &["-l", "truth.csv"],
        &["-l", "species.csv"],
        &["-l", "truth.npy"],
        &["-l", "rows.npy"],
        &["-l", "mine.parquet"],
        &["-m", "l2.parquet"],
    ];
    for (name, copy) in [
        ("m", "m2"),
        ("l.csv", "l2.csv"),
        ("l.parquet", "l2.parquet"),
    ] {
        fs::copy(folder.at(name), folder.at(copy)).unwrap();
    }
    for more in refused {
        let path = folder.at(more[more.len() - 1]);
        let before = fs::read(&path).unwrap();
        let (code, said) = folder.fails(&[&fixed[..], more].concat());
        assert!(
            code == 2 && said.contains("replace it with --force"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(fs::read(&path).unwrap() == before, "{more:?}");
        folder.done(&[&fixed[..], more, &["--force"]].concat());
        assert!(fs::read(&path).unwrap() != before, "{more:?}");
    }
    let (code, said) = folder.fails(&["info", "m", "--parameters", "mine.npz"]);
    assert!(
        code == 2 && said.contains("file of parameters of coremix"),
        "{said}"
    );
    put("data.csv", "x,y\n1,2\n3,4\n");
    let assign = ["assign", "m", "rows.csv", "--key", "id", "-l", "data.csv"];
    assert_eq!(folder.fails(&assign).0, 2);
    folder.done(&[&assign[..], &["--force"]].concat());
    // Older results of their kind, and empty files, make room.
    folder.done(
        &[
            &fixed[..],
            &["-m", "m", "-l", "l.csv", "--report", "r.json"],
        ]
        .concat(),
    );
    folder.done(&[&fixed[..], &["-m", "empty", "-l", "l.npy"]].concat());
    let assign = ["assign", "m", "rows.csv", "--key", "id", "-l", "l.csv"];
    folder.done(&[&assign[..], &["--densities"]].concat());
    folder.done(&assign);
    folder.done(&["info", "m", "--parameters", "p.npz"]);
    // Inputs stay, also those that a folder, a pattern or a link names.
    for (input, more) in [
        ("rows.csv", ["-m", "rows.csv"]),
        ("rows.csv", ["-l", "./rows.csv"]),
        ("parts", ["-m", "parts/a.csv"]),
        ("part*/a.csv", ["-l", "parts/a.csv"]),
        ("parts", ["-m", "parts"]),
        ("rows.csv", ["-m", "/dev/null"]),
        ("rows.csv", ["-m", "-"]),
    ] {
        let fit = ["fit", input, "--key", "id", "-k", "3", "--force"];
        let (code, said) = folder.fails(&[&fit[..], &more].concat());
        assert!(code > 0 && said.lines().count() == 1, "{said}");
    }
    assert!(!fs::metadata("/dev/null").is_ok_and(|null| null.is_file()));
    let (_, said) = folder.fails(&["fit", "rows.csv", "-k", "3", "-m", "x", "--report", "x"]);
    assert!(said.contains("is named for two outputs"), "{said}");
    assert_eq!(
        folder
            .fails(&["info", "m", "--parameters", "m", "--force"])
            .0,
        2
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.at("rows.csv"), folder.at("link.csv")).unwrap();
        let (_, said) = folder.fails(&["fit", "link.csv", "-k", "3", "-l", "link.csv", "--force"]);
        assert!(said.contains("is read as an input"), "{said}");
    }
    for name in ["rows.csv", "parts/a.csv"] {
        assert!(fs::read(folder.at(name)).unwrap() == whole, "{name}");
    }
    // A checkpoint that is none ends the fit, and stays.
    put("c.checkpoint", "mine");
    let (code, said) = folder.fails(&["fit", "rows.csv", "-k", "3", "-m", "c", "--force"]);
    assert!(
        code == 1 && said.contains("not a file of coremix"),
        "{said}"
    );
    assert_eq!(fs::read(folder.at("c.checkpoint")).unwrap(), b"mine");
}

#[test]
fn labels_go_to_the_standard_output() {
    let folder = Folder::new("stdout");
    csv(&folder, &rows(3_000));
    let fixed = ["fit", "rows.csv", "--key", "id", "-k", "6"];
    folder.done(&[&fixed[..], &["-l", "l.csv"]].concat());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    let expected = fs::read_to_string(folder.at("l.csv")).unwrap();
    for name in ["-", "/dev/stdout"] {
        let output = folder.run(&[&fixed[..], &["-l", name, "-m", "m"]].concat());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(words(&said, "model"), "m");
        assert!(
            said.contains("columns  ") && !said.contains("labels "),
            "{said}"
        );
    }
    let quiet = folder.run(&[&fixed[..], &["-l", "-", "-q"]].concat());
    assert_eq!(quiet.stderr, b"");
    assert_eq!(String::from_utf8(quiet.stdout).unwrap(), expected);
    let assign = ["assign", "m", "rows.csv", "--key", "id", "-l", "-"];
    assert_eq!(folder.done(&assign), expected);
    let said = folder.done(&[&assign[..], &["--densities"]].concat());
    assert!(said.starts_with("id,label,log_density\nrow-0,"), "{said}");
    // Nobody reads on.
    let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
    let command = command.current_dir(&folder.0).args(assign);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert!(
        ended.status.success() && ended.stderr.is_empty(),
        "{ended:?}"
    );
    // Something must be asked for.
    let (code, said) = folder.fails(&fixed);
    assert!(code == 2 && said.contains("--labels <FILE>"), "{said}");
}

#[test]
fn a_line_is_not_said_again_and_again() {
    let folder = Folder::new("lines");
    write_npy(folder.at("rows.npy"), &rows(20_000)).unwrap();
    let output = folder.run(&["fit", "rows.npy", "-k", "3", "-m", "m"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("coremix: choosing 3 of "), "{said}");
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{said}");
    assert!(lines.len() <= 4, "{said}");
    // Warnings are no errors: with -q there are none.
    towns(&folder);
    let quiet = folder.run(&["fit", "towns.csv", "-k", "3", "-m", "m", "-q"]);
    assert_eq!(String::from_utf8(quiet.stderr).unwrap(), "");
    assert!(!warnings(&folder.run(&["fit", "towns.csv", "-k", "3", "-m", "m"])).is_empty());
}

/// On a terminal, of the program `script`, where there is one.
#[cfg(target_os = "linux")]
#[test]
fn a_warning_stands_on_lines_of_its_own() {
    let folder = Folder::new("terminal");
    towns(&folder);
    for (more, shown) in [
        ("fit towns.csv -k 3 -m m", "choosing 3 of 900 rows"),
        (
            "clusters towns.csv --to 3 --covariance tied-spherical",
            "fit 1 of 5: 1 clusters",
        ),
    ] {
        let command = format!("{} {more}", env!("CARGO_BIN_EXE_coremix"));
        let mut script = Command::new("script");
        let script = script
            .current_dir(&folder.0)
            .args(["-qec", &command, "/dev/null"]);
        let Ok(output) = script.stdin(Stdio::null()).output() else {
            println!("no program `script`: nothing is tested");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        // Each part is what stands on the line at a time.
        let parts: Vec<&str> = said.split(['\r', '\n']).collect();
        let warned = parts.iter().find(|part| part.contains("warning")).unwrap();
        let warned = warned.trim_start_matches("\u{1b}[2K");
        assert!(
            warned.starts_with("coremix: warning: \"income\" varies"),
            "{warned:?}"
        );
        assert!(said.contains(shown), "{said:?}");
    }
}

/// Ctrl-C before there is anything to save: it says so.
#[cfg(unix)]
#[test]
fn a_fit_that_is_interrupted_while_it_chooses_seeds_says_that_nothing_is_saved() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new("seeding");
    write_npy(folder.at("rows.npy"), &rows(100_000)).unwrap();
    for (to, expected) in [
        (
            ["-m", "m"],
            "nothing was there to save yet, so the same command begins anew",
        ),
        (["-l", "l.npy"], "nothing is saved without --model"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
        let command = command.current_dir(&folder.0);
        let command = command
            .args(["fit", "rows.npy", "-a", "k-means", "-k", "50000"])
            .args(to);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("choosing 50000 of 100000 rows"), "{first}");
        let signal = ["-INT", &child.id().to_string()].map(str::to_string);
        assert!(
            Command::new("kill")
                .args(signal)
                .status()
                .unwrap()
                .success()
        );
        let last = lines.last().unwrap().unwrap();
        assert!(
            last.starts_with("coremix: interrupted: ") && last.contains(expected),
            "{last}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(!folder.at("l.npy").exists() && !folder.at("m").exists());
    }
}

#[test]
fn info_of_a_model_has_units_and_numbers() {
    let folder = Folder::new("info");
    csv(&folder, &rows(60));
    let fit = ["fit", "rows.csv", "--key", "id", "-k", "3", "-m", "m", "-q"];
    for (memory, shown) in [
        ("2GiB", "2 GiB"),
        ("100MB", "95.4 MiB"),
        ("1536MiB", "1.5 GiB"),
    ] {
        folder.done(&[&fit[..], &["--memory", memory, "--tolerance", "0.001"]].concat());
        let said = folder.done(&["info", "m"]);
        assert_eq!(words(&said, "memory"), shown);
    }
    let said: serde_json::Value =
        serde_json::from_str(&folder.done(&["info", "m", "--json"])).unwrap();
    let notes = &said["notes"];
    assert_eq!(
        (&notes["clusters"], &notes["rows"]),
        (&3.into(), &60.into())
    );
    assert_eq!(
        (&notes["memory"], &notes["tolerance"]),
        (&(1536u64 << 20).into(), &0.001.into())
    );
    assert_eq!(notes["columns"][2], "z");
    assert_eq!(notes["sizes"].as_array().unwrap().len(), 3);
    assert_eq!(notes["algorithm"], "fast");
    let said = folder.done(&["info", "rows.csv"]);
    // Four columns of 8 bytes.
    assert!(words(&said, "memory").starts_with("1.9 KiB, if"), "{said}");
}

#[test]
fn more_clusters_are_advised_only_where_they_may_help() {
    let folder = Folder::new("advice");
    let mut rng = coremix::stage::Rng::from_seed(4);
    let mut put = |name: &str, n: usize, row: &dyn Fn(usize, f64, f64) -> String| {
        let rows = (0..n).map(|i| row(i, rng.normal(), rng.normal()));
        fs::write(
            folder.at(name),
            format!("x,y\n{}", rows.collect::<String>()),
        )
        .unwrap();
    };
    let sweep = |arguments: &[&str]| warnings(&folder.run(&[&["clusters"], arguments].concat()));
    put("few.csv", 20, &|_, x, y| format!("{x},{y}\n"));
    put("counts.csv", 600, &|i, x, _| {
        format!("{},{}\n", x + 30.0, [0, 0, 1, 2, 5][i % 5])
    });
    put("blobs.csv", 600, &|i, x, y| {
        format!("{},{}\n", x + 20.0 * (i % 6) as f64, y)
    });
    put("line.csv", 24, &|i, _, _| {
        format!("{},{}\n", i % 12, i % 12)
    });
    for (file, more) in [
        ("few.csv", &["--to", "12"][..]),
        ("counts.csv", &["--to", "4"]),
        (
            "counts.csv",
            &["--from", "3", "--to", "3", "--covariance", "full"],
        ),
        ("line.csv", &["--to", "12", "--held-out", "0"]),
    ] {
        let warned = sweep(&[&[file], more].concat());
        assert!(!warned.contains("raise"), "{file}: {warned}");
        assert!(warned.contains("BIC, AIC and ICL say"), "{file}: {warned}");
    }
    let raise = "coremix: warning: the most clusters are the best by BIC and ICL: raise --to";
    assert_eq!(sweep(&["blobs.csv", "--to", "3"]), raise);
    let kinds = ["tied-spherical", "spherical", "diagonal", "full", "tied"];
    for kind in kinds {
        let covariance = ["--covariance", kind];
        assert_eq!(
            sweep(&[&["blobs.csv", "--to", "3"], &covariance[..]].concat()),
            raise
        );
        assert_eq!(
            sweep(&[&["blobs.csv", "--to", "8"], &covariance[..]].concat()),
            ""
        );
        let one = ["blobs.csv", "--from", "4", "--to", "4"];
        assert_eq!(sweep(&[&one[..], &covariance].concat()), "");
    }
    let all = ["line.csv", "--to", "24", "--held-out", "0", "-a", "k-means"];
    assert!(!sweep(&all).contains("raise"));
}

#[test]
fn a_component_with_too_few_rows_is_told() {
    let folder = Folder::new("few");
    fs::write(folder.at("three.csv"), "a,b,c\n1,2,3\n4,5,7\n7,1,0\n").unwrap();
    write_npy(folder.at("rows.npy"), &rows(600)).unwrap();
    let fit = |file: &str, k: &str, kind: &str| {
        let more = ["-k", k, "-a", "gmm", "--covariance", kind, "-m", "m"];
        warnings(&folder.run(&[&["fit", file], &more[..]].concat()))
    };
    let warned = fit("three.csv", "1", "full");
    assert!(warned.contains("no more rows than columns"), "{warned}");
    for kind in ["diagonal", "spherical"] {
        let warned = fit("three.csv", "3", kind);
        assert!(warned.contains("a component has a single row"), "{warned}");
        assert_eq!(fit("three.csv", "1", kind), "");
    }
    for kind in ["tied", "tied-spherical"] {
        assert_eq!(fit("three.csv", "2", kind), "");
    }
    for kind in ["full", "diagonal"] {
        assert_eq!(fit("rows.npy", "6", kind), "");
    }
}

/// Options of priors are those of the crate, and no component stands at a floor.
#[test]
fn priors_are_options() {
    let folder = Folder::new("priors");
    fs::write(folder.at("few.csv"), "a,b,c\n1,2,3\n4,5,7\n7,1,0\n2,9,4\n").unwrap();
    let gmm = [
        "few.csv",
        "-a",
        "gmm",
        "--covariance",
        "full",
        "--float",
        "f64",
    ];
    let fit = |more: &[&'static str]| {
        let fit = ["fit", "-k", "1", "-m", "m"];
        [&fit[..], &gmm, more].concat()
    };
    for more in [["--prior-rows", "1"], ["--ridge", "0.5"]] {
        assert_eq!(warnings(&folder.run(&fit(&more))), "");
    }
    let all = ["--prior-rows", "2", "--prior-variance", "4"];
    let more = ["--prior-proportions", "1", "--ridge", "0.25"];
    folder.done(&fit(&[&all[..], &more].concat()));
    let saved: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
    let x = ndarray::array![
        [1.0, 2.0, 3.0],
        [4.0, 5.0, 7.0],
        [7.0, 1.0, 0.0],
        [2.0, 9.0, 4.0]
    ];
    let prior = Prior::new(2.0).variance(4.0).proportions(1.0).ridge(0.25);
    let own = "gmm".parse::<Algorithm>().unwrap().clusters(1);
    let own = own.covariance(Covariance::Full).prior(prior);
    let own = own.boxed::<f64>().unwrap().fit(&Dense::new(&x).unwrap());
    let own = own.unwrap().model;
    assert_eq!(saved.variances(), own.variances());
    assert_eq!(saved.prior_terms(), own.prior_terms());
    let info = folder.done(&["info", "m", "--json"]);
    for note in [
        r#""prior-rows":2"#,
        r#""prior-variance":4"#,
        r#""prior-proportions":1"#,
        r#""ridge":0.25"#,
    ] {
        assert!(info.contains(note), "{info}");
    }
    let clusters = [
        "clusters",
        "--to",
        "2",
        "--held-out",
        "0",
        "--prior-rows",
        "1",
    ];
    let output = folder.run(&[&clusters[..], &gmm].concat());
    assert!(output.status.success(), "{output:?}");
    for (more, say) in [
        (&["--prior-variance", "1"][..], "--prior-rows"),
        (
            &["--prior-rows", "1e10"],
            "--prior-rows 10000000000: must be between 0 and 1e9",
        ),
        (
            &["--prior-proportions", "1e10"],
            "--prior-proportions 10000000000: must be between",
        ),
        (
            &["--prior-rows", "1", "--prior-variance", "0"],
            "--prior-variance 0: must be positive",
        ),
        (
            &["--prior-rows", "-1"],
            "must be a finite number, 0 or more",
        ),
        (
            &["--ridge", "1e80"],
            "must be nearer to the variances of the data",
        ),
    ] {
        let (code, said) = folder.fails(&fit(more));
        assert!(code == 2 && said.contains(say), "{more:?}: {said}");
    }
    let process = [
        "fit", "few.csv", "-k", "2", "-a", "dp-gmm", "-m", "m", "--ridge", "1",
    ];
    let (code, said) = folder.fails(&process);
    let say = "dp-gmm has no --prior-rows, --prior-proportions or --ridge: take -a gmm";
    assert!(code == 2 && said.contains(say), "{said}");
}

/// Factor analysers, and tables whose numbers have a covariance, by their options.
#[test]
fn factors_and_tables_are_fitted() {
    let folder = Folder::new("families");
    csv(&folder, &rows(600));
    let input = ["rows.csv", "--key", "id", "--columns", "x,y,z"];
    let fit = |more: &[&'static str]| [&["fit", "-m", "m"][..], &input, more].concat();
    folder.done(&fit(&["-k", "6", "-a", "gmm", "--factors", "1"]));
    let info = ModelInfo::of_file(folder.at("m")).unwrap();
    assert_eq!((&*info.family, info.columns), ("Factors(1)", 3));
    folder.done(&["info", "m", "--parameters", "p.npz"]);
    let mut npz = NpzReader::new(fs::File::open(folder.at("p.npz")).unwrap()).unwrap();
    let loadings: ndarray::Array3<f64> = npz.by_name("loadings").unwrap();
    assert_eq!(loadings.dim(), (6, 3, 1));
    for (more, say) in [
        (
            &["--factors", "3"][..],
            "--factors 3: must be fewer than columns",
        ),
        (&["--factors", "0"], "must be a whole number, 1 or more"),
        (
            &["--factors", "1", "--covariance", "full"],
            "cannot be used with",
        ),
    ] {
        let (code, said) = folder.fails(&fit(&[&["-k", "2", "-a", "gmm"][..], more].concat()));
        assert!(code == 2 && said.contains(say), "{more:?}: {said}");
    }

    let mut rng = coremix::stage::Rng::from_seed(2);
    let x = Array2::from_shape_fn((300, 4), |(n, j)| {
        let of = (n % 2) as f64;
        match j {
            1 => (9.0 * of + 3.0 * rng.uniform()).floor(),
            2 => f64::from(rng.uniform() < 0.2 + 0.6 * of),
            _ => 170.0 + 20.0 * of + rng.normal(),
        }
    });
    let mut text = String::from("height,visits,smokes,weight\n");
    for row in x.outer_iter() {
        text += &format!("{},{},{},{}\n", row[0], row[1], row[2], row[3]);
    }
    fs::write(folder.at("t.csv"), text).unwrap();
    let table = ["t.csv", "-a", "table", "-k", "2", "--float", "f64"];
    let kinds = ["--counts", "visits", "--categories", "smokes"];
    let fit = |more: &[&'static str]| [&["fit", "-m", "m"][..], &table, &kinds, more].concat();
    folder.done(&fit(&["--covariance", "full", "--prior-rows", "1"]));
    let info = ModelInfo::of_file(folder.at("m")).unwrap();
    assert_eq!(info.family, "Product");
    let saved: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
    use coremix::families::Column;
    let columns = vec![
        Column::Number,
        Column::Count,
        Column::Category(0),
        Column::Number,
    ];
    let own = "table"
        .parse::<Algorithm>()
        .unwrap()
        .clusters(2)
        .columns(columns);
    let own = own.covariance(Covariance::Full).prior(Prior::weak());
    let own = own.boxed::<f64>().unwrap().fit(&Dense::new(&x).unwrap());
    let own = own.unwrap().model;
    assert_eq!(saved.means(), own.means());
    assert_eq!(saved.to_bytes(&[]), own.to_bytes(&[]));
    folder.done(&["info", "m", "--parameters", "p.npz"]);
    let mut npz = NpzReader::new(fs::File::open(folder.at("p.npz")).unwrap()).unwrap();
    let covariances: ndarray::Array3<f64> = npz.by_name("covariances").unwrap();
    let probabilities: Array2<f64> = npz.by_name("probabilities").unwrap();
    assert_eq!(
        (covariances.dim(), probabilities.dim()),
        ((2, 2, 2), (2, 2))
    );
    let score = folder.done(&["score", "m", "t.csv"]);
    let found = number(words(&score, "log-likelihood"));
    let expected = own.log_likelihood(&Dense::new(&x).unwrap()).unwrap() / 300.0;
    assert!((found - expected).abs() < 1e-4, "{score} {expected}");
    folder.done(&fit(&["--factors", "1"]));
    let (code, said) = folder.fails(&fit(&["--covariance", "tied-spherical"]));
    assert!(code == 2 && said.contains("use Spherical"), "{said}");
    // A number that is no count is named by its row and the name of its column.
    let text = fs::read_to_string(folder.at("t.csv")).unwrap();
    fs::write(folder.at("t.csv"), text + "170.5,-1,0,170.5\n").unwrap();
    for more in [&[][..], &["--covariance", "full"]] {
        let (code, said) = folder.fails(&fit(more));
        let say = "row 300, column \"visits\" is -1; it must be a count";
        assert!(code == 1 && said.contains(say), "{said}");
    }
}

#[test]
fn wrong_calls_say_what_to_do() {
    let folder = Folder::new("wrong");
    csv(&folder, &rows(60));
    let put = |name: &str, text: &str| fs::write(folder.at(name), text).unwrap();
    put("plain.csv", "1,2,3\n4,5,6\n7,8,10\n");
    put("only.csv", "x,y\n");
    folder.done(&[
        "fit",
        "rows.csv",
        "--columns",
        "x,y,z",
        "-k",
        "3",
        "-m",
        "m",
        "-q",
    ]);
    folder.done(&[
        "fit",
        "plain.csv",
        "--no-header",
        "-k",
        "2",
        "-m",
        "plain",
        "-q",
    ]);
    let fit = ["fit", "rows.csv", "--key", "id", "-k", "3", "-m", "x"];
    let clusters = ["clusters", "rows.csv", "--key", "id"];
    let cases: [(&[&str], &[&str], i32, &str); 15] = [
        (
            &fit,
            &["--covariance", "full"],
            2,
            "fast has no --covariance: take -a gmm, or one of k-means,",
        ),
        (
            &fit,
            &["-a", "dp-gmm", "--covariance", "full"],
            2,
            "dp-gmm has no --covariance: take -a gmm",
        ),
        (
            &fit,
            &["-a", "gmm", "--concentration", "2"],
            2,
            "gmm has no --concentration: take -a dp-gmm\n",
        ),
        (
            &fit,
            &["-a", "dp-gmm", "--concentration", "-2"],
            2,
            "--concentration -2: must",
        ),
        (
            &fit,
            &["--tolerance", "-1"],
            2,
            "'--tolerance <X>': must be a finite number",
        ),
        (
            &fit,
            &["--seed", "-1"],
            2,
            "'--seed <N>': must be a whole number",
        ),
        (
            &clusters,
            &["--from", "5", "--to", "3"],
            2,
            "--from 5 --to 3: --from must not be more",
        ),
        (
            &clusters,
            &["--to", "3", "--step", "0"],
            2,
            "'--step <N>': must be a whole number, 1 or more",
        ),
        (&clusters, &["--to", "3", "--held-out", "2"], 2, "below 1"),
        (
            &clusters,
            &["--to", "3", "-a", "fast", "--covariance", "full"],
            2,
            "fast has no --covariance",
        ),
        (
            &["info"],
            &["m", "rows.csv"],
            2,
            "m: is a model: give it alone",
        ),
        (
            &["info", "rows.csv"],
            &["--parameters", "p.npz"],
            1,
            "rows.csv: is no model of coremix",
        ),
        (
            &["fit", "m", "-k", "3", "-m", "x"],
            &[],
            1,
            "m: is a model, and not rows",
        ),
        (
            &["fit", "only.csv", "-k", "3", "-m", "x"],
            &[],
            1,
            "only.csv: there is no row",
        ),
        (
            &["assign", "m", "plain.csv"],
            &["-l", "l.csv"],
            2,
            "give --no-header, if they are these, in this order",
        ),
    ];
    for (start, more, code, expected) in cases {
        let (found, said) = folder.fails(&[start, more].concat());
        assert!(said.contains(expected), "{said}");
        assert_eq!(found, code, "{said}");
    }
    // So that is what helps.
    folder.done(&["assign", "m", "plain.csv", "-l", "l.csv", "--no-header"]);
    folder.done(&["score", "m", "plain.csv", "--no-header"]);
    // A model without names, and rows that have some.
    let output = folder.run(&["score", "plain", "rows.csv", "--columns", "x,y,z"]);
    assert!(output.status.success(), "{output:?}");
    put("named.csv", "p,q,r\n1,2,3\n");
    let output = folder.run(&["score", "plain", "named.csv"]);
    let warned = warnings(&output);
    assert!(
        output.status.success() && warned.contains("in this order: p, q, r"),
        "{warned}"
    );
    folder.done(&[
        "score",
        "plain",
        "plain.csv",
        "--columns",
        "column_1,column_2,column_3",
    ]);
}

#[test]
fn text_as_other_programs_write_it() {
    let folder = Folder::new("text");
    let write = |name: &str, text: &str| fs::write(folder.at(name), text).unwrap();
    let info = |arguments: &[&str]| {
        let output = folder.run(&[&["info"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    // The tab in two signs, or by the format; a name with a comma.
    write("a.txt", "id\t\"x, in m\"\ty\na\t1\t2\nb\t3\t4\n");
    for how in [
        &["--format", "csv", "--delimiter", r"\t"],
        &["--format", "tsv", "--columns", r#""x, in m",y"#],
    ] {
        let said = info(&[&["a.txt"], &how[..]].concat());
        assert_eq!(words(&said, "columns"), "x, in m, y");
    }
    // Numbers that name columns, or do not.
    write("b.csv", "0,1,2\n1.5,2,3\n4,5,6\n");
    let said = info(&["b.csv"]);
    assert_eq!(words(&said, "rows"), "2, in 1 file");
    assert!(
        said.contains("\"0\" names a column: give --no-header"),
        "{said}"
    );
    write("c.csv", "7,1\n4,5\n");
    let said = info(&["c.csv"]);
    assert_eq!(words(&said, "rows"), "2, in 1 file");
    assert_eq!(
        words(&said, "first line"),
        "a row; with --header it names the columns"
    );
    assert!(!info(&["c.csv", "--no-header"]).contains("first line"));
    // An index; other signs.
    write(
        "d.csv",
        "# by hand\n\"\";\"x\";\"y\"\n\"1\";1,5;1.000\n\"2\";2;3\n",
    );
    let said = info(&[
        "d.csv",
        "--decimal",
        ",",
        "--thousands",
        ".",
        "--comment",
        "#",
    ]);
    assert_eq!(words(&said, "columns"), "x, y");
    assert_eq!(words(&said, "not used"), "unnamed (numbers of the rows)");
    fs::write(folder.at("e.csv"), b"id,x\nM\xfcller,1\nM\xf6ller,2\n").unwrap();
    let fit =
        |more: &[&str]| folder.run(&[&["fit", "-k", "1", "-m", "m", "-l", "l.csv"], more].concat());
    let output = fit(&["e.csv", "--key", "id"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("line 2: not text in UTF-8"),
        "{said}"
    );
    assert!(
        fit(&["e.csv", "--key", "id", "--encoding", "latin1"])
            .status
            .success()
    );
    assert_eq!(
        fs::read_to_string(folder.at("l.csv")).unwrap(),
        "id,label\nMüller,0\nMöller,0\n"
    );
    // Missing values: where, and how many; patterns.
    write("f1.csv", "id,x,y\na,1,2\nb,,NA\nc,5,6\n");
    write("f2.csv", "id,x,y\nd,1,nan\n");
    let said = info(&["f*.csv"]);
    assert_eq!(words(&said, "rows"), "4, in 2 files");
    assert!(
        said.contains("3 of the values, in 2 of 4 rows: see --missing and"),
        "{said}"
    );
    assert!(
        said.replace("\n               ", "")
            .contains("f1.csv: column \"x\", line 3"),
        "{said}"
    );
    let json = folder.done(&["info", "--json", "f*.csv"]);
    assert!(json.contains(r#""missing":{"first":"f1.csv: "#), "{json}");
    let (code, said) = folder.fails(&["fit", "f*.csv", "-k", "1", "-m", "m"]);
    assert!(
        code == 1 && said.contains("line 3: an empty field"),
        "{said}"
    );
    let output = fit(&["f*.csv", "--drop-missing", "--key", "id"]);
    let said = String::from_utf8(output.stderr)
        .unwrap()
        .replace("\n  ", "");
    assert!(
        output.status.success()
            && said.contains("2 of 4 rows have a missing value and are left out"),
        "{said}"
    );
    assert!(!said.contains("--key"), "{said}");
    assert_eq!(
        fs::read_to_string(folder.at("l.csv")).unwrap(),
        "id,label\na,0\nc,0\n"
    );
    // These labels have no key, so they do not replace others.
    fs::remove_file(folder.at("l.csv")).unwrap();
    let output = fit(&["f1.csv", "--drop-missing"]);
    let said = String::from_utf8(output.stderr)
        .unwrap()
        .replace("\n  ", "");
    assert!(
        said.contains("labels are of the others, in their order: --key says which"),
        "{said}"
    );
    write("f3.csv", "");
    let (_, said) = folder.fails(&["fit", "f3.csv", "-k", "1", "-m", "m"]);
    assert_eq!(
        said,
        "coremix: f3.csv: is empty: it has no line, nor a column\n"
    );
    write("g.csv", "x\n1\nabc\n3\n");
    assert!(words(&info(&["g.csv"]), "unreadable").contains("line 3: \"abc\" is not a number"));
    let (_, said) = folder.fails(&["fit", "f1.csv", "-k", "1", "-m", "m", "--delimiter", "ab"]);
    assert!(said.contains("must be one sign"), "{said}");
}

#[cfg(unix)]
#[test]
fn rows_come_from_the_standard_input() {
    let folder = Folder::new("input");
    let table = rows(600);
    csv(&folder, &table);
    let of = |arguments: &[&str], name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coremix"));
        let input = fs::File::open(folder.at(name)).unwrap();
        let mut cat = Command::new("cat")
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = command.current_dir(&folder.0).args(arguments);
        let output = output.stdin(cat.stdout.take().unwrap()).output().unwrap();
        cat.wait().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let fit = ["fit", "-k", "6", "-q", "--key", "id", "-m"];
    folder.done(&[&fit[..], &["a", "rows.csv", "-l", "a.csv"]].concat());
    for (i, path) in ["-", "/dev/stdin"].iter().enumerate() {
        let (model, to) = (format!("m{i}"), format!("{i}.csv"));
        of(&[&fit[..], &[&model, path, "-l", &to]].concat(), "rows.csv");
        assert_eq!(
            fs::read(folder.at("a.csv")).unwrap(),
            fs::read(folder.at(&to)).unwrap()
        );
        assert_eq!(
            words(&of(&["info", path], "rows.csv"), "rows"),
            "600, in 1 file"
        );
    }
    // Other formats are known by how they begin.
    write_npy(folder.at("x.npy"), &table).unwrap();
    assert_eq!(
        words(&of(&["info", "-"], "x.npy"), "rows"),
        "600, in 1 file"
    );
    let (_, said) = folder.fails(&["info", "-", "-"]);
    assert!(
        said.contains("standard input: can be read once only"),
        "{said}"
    );
}

/// Messages speak of what was given: no other options, no advice that was followed.
#[test]
fn messages_are_about_what_was_given() {
    let folder = Folder::new("given");
    fs::write(folder.at("one.csv"), "x\n1\n-1\n2\n3\n").unwrap();
    let fit = ["fit", "one.csv", "-k", "2", "-l", "-", "-q"];
    let (code, said) = folder.fails(&[&fit[..], &["--metric", "cosine"]].concat());
    assert_eq!(code, 2);
    assert!(
        said.contains("number of columns") && said.contains("at least 2"),
        "{said}"
    );
    assert!(!said.contains("--counts"), "{said}");
    let x = ndarray::array![[1.0, 1.0], [f64::INFINITY, 3.0], [3.0, 2.0]];
    write_npy(folder.at("i.npy"), &x).unwrap();
    let (_, said) = folder.fails(&["fit", "i.npy", "-k", "2", "-l", "-", "-q", "--missing"]);
    assert!(said.contains("row 1: a value is infinite"), "{said}");
    assert!(!said.contains("--missing"), "{said}");
    let (_, said) = folder.fails(&["fit", "s3://bucket/x.parquet", "-k", "2", "-l", "-", "-q"]);
    assert!(
        said.contains("only addresses of files on this machine"),
        "{said}"
    );
    let address = format!(
        "file://{}",
        folder.at("one.csv").canonicalize().unwrap().display()
    );
    let found = folder.done(&["fit", &address, "-k", "2", "-l", "-", "-q"]);
    assert_eq!(found, folder.done(&fit));
}

#[test]
fn a_column_that_holds_text_is_not_called_missing() {
    let folder = Folder::new("text-column");
    let rows = (0..30).map(|i| format!("{},{},{}\n", 20 + i % 9, ["r", "g", "b"][i % 3], i % 7));
    fs::write(
        folder.at("t.csv"),
        format!("age,colour,visits\n{}", rows.collect::<String>()),
    )
    .unwrap();
    folder.done(&[
        "fit", "t.csv", "-k", "2", "--key", "colour", "-l", "t.arrow",
    ]);
    let table = ["-a", "table", "-k", "2", "-m", "m"];
    for file in ["t.csv", "t.arrow"] {
        let given = [&["fit", file, "--counts", "colour"], &table[..]].concat();
        let (code, said) = folder.fails(&given);
        assert!(
            code == 2
                && said.contains("--counts colour: this column holds text, and must hold numbers"),
            "{said}"
        );
    }
    let given: [(&[&str], _); 4] = [
        (
            &["--columns", "age", "--categories", "colour"],
            "name it in --columns",
        ),
        (
            &["--columns", "age", "--counts", "label"],
            "--counts label: no such column; they are age, colour, visits",
        ),
        (&["--key", "age", "--counts", "age"], "is one of --key"),
        (
            &["--categories", "colour", "--counts", "colour"],
            "one of --counts already",
        ),
    ];
    for (given, what) in given {
        let (code, said) = folder.fails(&[&["fit", "t.csv"], given, &table].concat());
        assert!(code == 2 && said.contains(what), "{given:?} {said}");
    }
}

/// The lines of labels and densities of a model's rows.
fn assigned(folder: &Folder, model: &str, rows: &str, more: &[&str]) -> Vec<String> {
    let given = [
        &["assign", model, rows, "-l", "-", "--densities", "-q"],
        more,
    ]
    .concat();
    let said = folder.done(&given);
    said.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn categories_that_are_text_are_their_codes() {
    let folder = Folder::new("text-categories");
    let mut rng = coremix::stage::Rng::from_seed(4);
    let texts = ["apple", "10", "crème, \"2\"", "banana"];
    // Their places in the order of the texts.
    let codes = [1, 0, 3, 2];
    let mut rows = Vec::new();
    for i in 0..240 {
        let group = i % 2;
        let draw = (2.0 * rng.uniform()) as usize;
        let age = 30.0 + 9.0 * group as f64 + rng.normal();
        rows.push((age, (2 * group + draw) % 4, rng.uniform() < 0.5));
    }
    let quoted = |place: usize| format!("\"{}\"", texts[place].replace('"', "\"\""));
    let table = |rows: &[(f64, usize, bool)], coded: bool| {
        let mut text = String::from("age,fruit,sold\n");
        for (age, place, sold) in rows {
            text += &match coded {
                true => format!("{age},{},{}\n", codes[*place], u8::from(*sold)),
                // Blanks around a text do not count.
                false => format!("{age},{},{sold} \n", quoted(*place)),
            };
        }
        text
    };
    fs::write(folder.at("t.csv"), table(&rows, false)).unwrap();
    fs::write(folder.at("codes.csv"), table(&rows, true)).unwrap();
    let fit = |rows: &'static str, model: &'static str, more: &[&'static str]| {
        let given = [
            "fit", rows, "-m", model, "-a", "table", "-k", "2", "--float", "f64",
        ];
        folder.done(&[&given, more].concat())
    };
    let kinds = ["--categories", "fruit,sold"];
    fit("codes.csv", "codes", &kinds);
    let said = fit("t.csv", "m", &kinds);
    assert!(said.contains("age, fruit, sold"), "{said}");
    // The model is that of the codes, in all of its parameters.
    let [own, coded] = ["m", "codes"].map(|model| {
        let model: BoxedMixture<f64> = Save::load(folder.at(model)).unwrap();
        model.to_bytes(&[]).unwrap()
    });
    assert!(own == coded);
    let expected = assigned(&folder, "codes", "codes.csv", &[]);
    assert_eq!(assigned(&folder, "m", "t.csv", &[]), expected);
    // So it is for rows in another order, and columns, and of fewer texts.
    let last: Vec<_> = rows[..50]
        .iter()
        .rev()
        .filter(|row| row.1 != 1)
        .copied()
        .collect();
    fs::write(folder.at("last.csv"), table(&last, false)).unwrap();
    fs::write(folder.at("last-codes.csv"), table(&last, true)).unwrap();
    assert_eq!(
        assigned(&folder, "m", "last.csv", &[]),
        assigned(&folder, "codes", "last-codes.csv", &[])
    );
    // Files of columns: keys are text, as they were.
    for to in ["t.parquet", "t.arrow"] {
        let keys = ["--key", "fruit,sold", "--densities", "-l", to];
        folder.done(&[&["assign", "m", "t.csv", "-q"], &keys[..]].concat());
    }
    let given = [
        "--columns",
        "log_density,fruit,sold",
        "--categories",
        "sold,fruit",
    ];
    for file in ["t.parquet", "t.arrow"] {
        fit(file, "p", &given);
        let info = ModelInfo::of_file(folder.at("p")).unwrap();
        let own = ModelInfo::of_file(folder.at("m")).unwrap();
        assert_eq!(info.note("texts"), own.note("texts"));
    }
    assert_eq!(
        assigned(&folder, "p", "t.parquet", &[]),
        assigned(&folder, "p", "t.arrow", &[])
    );
    // Names in place of codes.
    let said = folder.done(&["info", "m"]);
    assert!(
        said.contains("fruit: 10, apple, banana, crème, \"2\""),
        "{said}"
    );
    assert!(said.contains("sold: false, true"), "{said}");
    let centre = words(&said, "centre 0").to_owned();
    assert!(texts.iter().any(|text| centre.contains(text)), "{centre}");
    let said = folder.done(&["info", "m", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["notes"]["texts"]["fruit"][2], "banana");
    // A text that the model does not know is as unlikely under all components: as a code that it does not know.
    fs::write(folder.at("new.csv"), "fruit,sold,age\nkiwi,TRUE,30\n").unwrap();
    fs::write(folder.at("new-codes.csv"), "age,fruit,sold\n30,4,1\n").unwrap();
    assert_eq!(
        assigned(&folder, "m", "new.csv", &[]),
        assigned(&folder, "codes", "new-codes.csv", &[])
    );
    // An empty field is a missing value.
    fs::write(
        folder.at("gap.csv"),
        "age,fruit,sold\n30,,true\n40,apple,NA\n",
    )
    .unwrap();
    fs::write(folder.at("gap-codes.csv"), "age,fruit,sold\n30,,1\n40,1,\n").unwrap();
    let (_, said) = folder.fails(&["assign", "m", "gap.csv", "-l", "-"]);
    assert!(said.contains("column \"fruit\", line 2"), "{said}");
    assert_eq!(
        assigned(&folder, "m", "gap.csv", &["--missing"]),
        assigned(&folder, "codes", "gap-codes.csv", &["--missing"])
    );
    // Numbers with one text among them are text.
    fs::write(
        folder.at("some.csv"),
        "age,ward\n1,3\n2,3\n3,4\n4,12\n5,4\n6,4B\n",
    )
    .unwrap();
    fit("some.csv", "s", &["--categories", "ward"]);
    let said = folder.done(&["info", "s"]);
    assert!(said.contains("ward: 12, 3, 4, 4B"), "{said}");
}

/// The rows of a shop: a key, a plan, whether it is paid, since when, and what was spent.
fn shop(folder: &Folder) {
    let mut text = String::from("key,plan,paid,since,spent,visits\n");
    for i in 0..120 {
        let plan = ["pro", "free", ""][i % 3];
        let (paid, year) = if i % 2 == 0 {
            ("True", 1966)
        } else {
            ("False", 2024)
        };
        let (day, thousands, cents) = (1 + i % 28, i % 2 * 7 + 1, i % 100);
        text += &format!(
            "c{i},{plan},{paid},{year}-05-{day:02},\"${thousands},{:03}.{cents:02}\",{}\n",
            i * 7 % 1_000,
            i % 2 * 9 + i % 3
        );
    }
    fs::write(folder.at("shop.csv"), text).unwrap();
}

#[test]
fn the_table_of_a_shop_gets_in() {
    let folder = Folder::new("shop");
    shop(&folder);
    let read = "paid (true is 1, false 0), since (days since 1970-01-01), spent (amounts in $)";
    let said = folder.done(&["info", "shop.csv", "--key", "key"]);
    assert_eq!(words(&said, "columns"), "paid, since, spent, visits");
    assert_eq!(words(&said, "not used"), "plan (text: \"pro\")");
    assert!(words(&said, "categories").contains("--categories plan"));
    let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(read), "{said}");
    let fit = ["fit", "shop.csv", "--key", "key", "-k", "2", "-m", "m.cmx"];
    folder.done(&[&fit[..], &["-l", "l.csv"]].concat());
    let labels: Vec<String> = fs::read_to_string(folder.at("l.csv"))
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(labels[1].starts_with("c0,") && labels[1][3..] != labels[2][3..]);
    // A category is for tables, and is read as text.
    let (code, said) = folder.fails(&[&fit[..], &["--categories", "plan"]].concat());
    assert!(code == 2 && said.contains("take -a table"), "{said}");
    let table = [
        "-a",
        "table",
        "--categories",
        "plan,paid",
        "--counts",
        "visits",
        "--missing",
    ];
    let said = folder.done(&[&fit[..], &table].concat());
    assert_eq!(words(&said, "columns"), "plan, paid, since, spent, visits");
    let said = folder.done(&["info", "m.cmx"]);
    let categories: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("categories"))
        .collect();
    assert_eq!(categories.len(), 2, "{said}");
    assert!(categories[0].ends_with("paid: false, true"), "{said}");
    assert!(categories[1].ends_with("plan: free, pro"), "{said}");
    // A level that the fit had not is as unlikely everywhere; what is no date says which are.
    let one = |row: &str| {
        let text = format!("key,plan,paid,since,spent,visits\n{row}\n");
        fs::write(folder.at("one.csv"), text).unwrap();
    };
    one("k,gold,TRUE,1966-05-20,\"$1,100\",1");
    assert_eq!(
        assigned(&folder, "m.cmx", "one.csv", &["--key", "key"]).len(),
        1
    );
    one("k,pro,TRUE,20.5.1966,$1100,1");
    let (code, said) = folder.fails(&["assign", "m.cmx", "one.csv", "-l", "-"]);
    assert!(
        code == 1 && said.contains("\"since\"") && said.contains("20.5.1966"),
        "{said}"
    );
    // Asked for as numbers, text says how it is taken.
    folder.done(&[
        "fit",
        "shop.csv",
        "--key",
        "plan",
        "-k",
        "2",
        "-l",
        "plans.parquet",
    ]);
    let (code, said) = folder.fails(&[
        "fit",
        "plans.parquet",
        "--columns",
        "label,plan",
        "-k",
        "2",
        "-m",
        "n",
    ]);
    let told = [
        "column \"plan\" does not hold numbers, but text such as \"pro\"",
        "-a table",
        "--categories",
    ];
    assert!(
        code == 1 && told.iter().all(|part| said.contains(part)),
        "{said}"
    );
}

#[test]
fn clusters_are_explained_and_shared() {
    let folder = Folder::new("explain");
    shop(&folder);
    let fit = |model: &str, more: &[&str]| {
        let fit = ["fit", "shop.csv", "--key", "key", "-k", "2", "-m", model];
        folder.done(&[&fit[..], more].concat());
    };
    // Means of Gaussians, told in standard deviations.
    fit("g.cmx", &["-a", "gmm", "--prior-rows", "1"]);
    let said = folder.done(&["explain", "g.cmx", "--top", "2"]);
    assert_eq!(said.matches("cluster ").count(), 2);
    assert!(
        said.matches("deviations)").count() == 4 && said.matches("(overall").count() == 4,
        "{said}"
    );
    let found: serde_json::Value =
        serde_json::from_str(&folder.done(&["explain", "g.cmx", "--json"])).unwrap();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 8);
    for cluster in found.chunks(4) {
        let by: Vec<f64> = cluster
            .iter()
            .map(|one| one["difference"].as_f64().unwrap().abs())
            .collect();
        assert!(by.is_sorted_by(|one, other| one >= other), "{by:?}");
        assert!(cluster.iter().any(|one| one["column"] == "paid"));
    }
    // The mean of all rows, also where clusters of k-means are of other sizes: 990 rows at 0, and 10 at 100.
    let rows: String = (0..1000)
        .map(|row| format!("{},{}\n", if row < 990 { 0 } else { 100 }, row % 3))
        .collect();
    fs::write(folder.at("sizes.csv"), format!("x,y\n{rows}")).unwrap();
    folder.done(&["fit", "sizes.csv", "-k", "2", "-m", "k.cmx", "-q"]);
    let said = folder.done(&["explain", "k.cmx"]);
    assert_eq!(said.matches("(overall 1.00000, ").count(), 2, "{said}");
    assert!(!said.contains("counts alike"), "{said}");
    // A model that does not say the sizes of its clusters.
    let means = ndarray::array![[0.0, 1.0], [9.0, 2.0]];
    let model = coremix::families::GaussianMixture::tied_spherical(means.view(), 1.0).unwrap();
    fs::write(
        folder.at("p.cmx"),
        coremix::Save::to_bytes(&model, &[]).unwrap(),
    )
    .unwrap();
    let said = folder.done(&["explain", "p.cmx"]);
    assert!(
        said.contains("overall 4.50000") && said.contains("counts alike"),
        "{said}"
    );
    // Tables are told in nats, and categories by their names.
    fit(
        "t.cmx",
        &[
            "-a",
            "table",
            "--categories",
            "plan,paid",
            "--counts",
            "visits",
            "--missing",
        ],
    );
    let said = folder.done(&["explain", "t.cmx"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("paid false (share 1.00, ") && said.contains("paid true (share 1.00, "),
        "{said}"
    );
    assert!(said.contains(" nats)") && said.contains("plan "), "{said}");
    let found: serde_json::Value =
        serde_json::from_str(&folder.done(&["explain", "t.cmx", "--json"])).unwrap();
    let paid = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["column"] == "paid");
    let mut paid: Vec<&str> = paid.map(|one| one["mean"].as_str().unwrap()).collect();
    paid.sort_unstable();
    assert_eq!(paid, ["false", "true"]);
    let (code, said) = folder.fails(&["explain", "shop.csv"]);
    assert!(
        code == 1 && said.contains("is no model of coremix"),
        "{said}"
    );
    // The best clusters of each row, and their shares.
    let assign = |more: &[&str]| {
        folder.done(&[&["assign", "g.cmx", "shop.csv", "--key", "key"], more].concat())
    };
    let said = assign(&["-l", "-", "-q", "--top", "3", "--densities"]);
    let mut lines = said.lines();
    assert_eq!(
        lines.next(),
        Some("key,label,share,label_2,share_2,log_density")
    );
    let plain = assign(&["-l", "-", "-q"]);
    for (line, plain) in lines.zip(plain.lines().skip(1)) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(format!("{},{}", fields[0], fields[1]), plain);
        let [one, other] = [2, 4].map(|place| fields[place].parse::<f64>().unwrap());
        assert!(one >= other && (one + other - 1.0).abs() < 1e-6 && fields[1] != fields[3]);
    }
    // The file is known as an older one.
    assign(&["-l", "top.csv", "--top", "2"]);
    assign(&["-l", "top.csv"]);
    assign(&["-l", "top.parquet", "--top", "1"]);
    let (code, said) =
        folder.fails(&["assign", "g.cmx", "shop.csv", "-l", "top.npy", "--top", "2"]);
    assert!(code == 2 && said.contains("labels alone"), "{said}");
}

#[test]
fn rows_are_filled_in_and_drawn() {
    let folder = Folder::new("made");
    shop(&folder);
    let table = [
        "-a",
        "table",
        "--categories",
        "plan,paid",
        "--counts",
        "visits",
        "--missing",
    ];
    let fit = ["fit", "shop.csv", "--key", "key", "-k", "2", "-m", "m.cmx"];
    folder.done(&[&fit[..], &table].concat());
    let lines = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.at(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let impute = ["impute", "m.cmx", "shop.csv", "--key", "key", "-o"];
    folder.done(&[&impute[..], &["whole.csv"]].concat());
    let whole = lines("whole.csv");
    assert_eq!(whole[0], "key,plan,paid,since,spent,visits");
    assert_eq!(whole.len(), 121);
    for (line, before) in whole.iter().zip(lines("shop.csv")).skip(1) {
        let [now, before] =
            [line, &before].map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(now[0], before[0]);
        assert!(
            ["pro", "free"].contains(&&*now[1]) && (before[1].is_empty() || before[1] == now[1]),
            "{line}"
        );
        assert!(now[2].eq_ignore_ascii_case(&before[2]));
    }
    assert_eq!(
        folder.done(&[&impute[..], &["-", "-q"]].concat()),
        whole.join("\n") + "\n"
    );
    // A table whose holes are filled has no holes: its labels are those of the rows, and it is asked about by its names.
    folder.done(&[&impute[..], &["whole.parquet"]].concat());
    let said = folder.done(&["assign", "m.cmx", "whole.parquet", "-l", "-", "-q"]);
    let own = folder.done(&["assign", "m.cmx", "shop.csv", "-l", "-", "-q"]);
    let agree = said
        .lines()
        .zip(own.lines())
        .filter(|(one, other)| one == other);
    assert!(agree.count() >= 119);
    let (code, said) = folder.fails(&[&impute[..], &["whole.csv"]].concat());
    assert!(
        code == 2 && said.contains("says that it is a file of rows") && said.contains("--force"),
        "{said}"
    );
    folder.done(&[&impute[..], &["whole.parquet"]].concat());
    let (code, said) = folder.fails(&[&impute[..], &["whole.npy"]].concat());
    assert!(
        code != 0 && said.contains(".csv, .csv.gz, .parquet and .arrow"),
        "{said}"
    );
    let sample =
        |more: &[&str]| folder.done(&[&["sample", "m.cmx", "-n", "50", "-q"], more].concat());
    let drawn = sample(&["-o", "-"]);
    assert_eq!(drawn, sample(&["-o", "-", "--seed", "0"]));
    assert_ne!(drawn, sample(&["-o", "-", "--seed", "1"]));
    let mut drawn = drawn.lines();
    assert_eq!(drawn.next(), Some("plan,paid,since,spent,visits,label"));
    for line in drawn.by_ref().take(50) {
        let fields: Vec<&str> = line.split(',').collect();
        assert!(
            ["pro", "free"].contains(&fields[0]) && ["true", "false"].contains(&fields[1]),
            "{line}"
        );
        assert!(
            ["0", "1"].contains(&fields[5]) && fields[4].parse::<f64>().unwrap().fract() == 0.0
        );
    }
    assert_eq!(drawn.next(), None);
    sample(&["-o", "drawn.arrow"]);
    assert!(
        folder
            .done(&["info", "drawn.arrow"])
            .contains("50, in 1 file")
    );
    let (code, said) = folder.fails(&["sample", "shop.csv", "-n", "5", "-o", "-"]);
    assert!(
        code == 1 && said.contains("is no model of coremix"),
        "{said}"
    );
    // A category that the model does not know has no text.
    fs::write(
        folder.at("one.csv"),
        "plan,paid,since,spent,visits\ngold,true,,,\n",
    )
    .unwrap();
    let output = folder.run(&["impute", "m.cmx", "one.csv", "-o", "one.parquet"]);
    assert!(
        output.status.success()
            && warnings(&output).contains("1 values are categories that the model does not know")
    );
}

/// Wrong calls that people make, the exit code, and parts of the answer: the column or the file, the value, and what helps.
const WRONG: [(&str, i32, &[&str]); 40] = [
    (
        "fit shop.csv -k 3",
        2,
        &["--model <FILE>|--labels <FILE>|--report <FILE>"],
    ),
    ("fit shop.csv -m m", 2, &["required", "--clusters <K>"]),
    ("fit -k 3 -m m", 2, &["required", "<ROWS>"]),
    (
        "fit nothere.csv -k 3 -m m",
        1,
        &["nothere.csv", "No such file"],
    ),
    (
        "fit parts/*.parquet -k 3 -m m",
        1,
        &["parts/*.parquet", "no file matches"],
    ),
    (
        "fit shop.csv -k 0 -m m",
        2,
        &["'0'", "--clusters", "1 or more"],
    ),
    (
        "fit shop.csv -k three -m m",
        2,
        &["'three'", "--clusters", "a whole number"],
    ),
    (
        "fit shop.csv -k 3 -a kmeans -m m",
        2,
        &["'kmeans'", "--algorithm", "'k-means'"],
    ),
    (
        "fit shop.csv -k 3 -a vcgmm -m m",
        2,
        &["'vcgmm'", "'vc-gmm'"],
    ),
    (
        "fit shop.csv -k 3 -m m --key customer",
        1,
        &["no column \"customer\"", "key, plan, paid"],
    ),
    (
        "fit shop.csv -k 3 -m m --columns visits,spend",
        1,
        &["no column \"spend\"", "spent"],
    ),
    (
        "fit shop.csv -k 3 -m m --columns visits,plan",
        1,
        &["column \"plan\"", "\"pro\"", "-a table", "--categories"],
    ),
    (
        "fit plans.parquet -k 3 -m m --columns label,plan",
        1,
        &["column \"plan\"", "\"pro\"", "-a table", "--categories"],
    ),
    (
        "fit shop.csv -k 3 -m m --categories plan",
        2,
        &["fast has no --counts or --categories", "-a table"],
    ),
    (
        "fit shop.csv -k 3 -m m -a table --categories plna",
        2,
        &["--categories plna", "plan"],
    ),
    (
        "fit shop.csv -k 3 -m m -a table --counts plan",
        2,
        &["--counts plan", "holds text"],
    ),
    (
        "fit shop.csv -k 3 -m m -a table --categories key --key key",
        2,
        &["--categories key", "--key"],
    ),
    (
        "fit shop.csv -k 3 -m m --weights plan",
        1,
        &["weights \"plan\"", "line 2", "\"pro\""],
    ),
    (
        "fit shop.csv -k 3 -m m --weight visits",
        2,
        &["'--weight'", "'--weights'"],
    ),
    (
        "fit bad.csv -k 2 -m m",
        1,
        &["column \"y\", line 4", "\"oops\"", "mend it"],
    ),
    (
        "fit late.csv -k 2 -m m",
        1,
        &[
            "column \"y\", line 122",
            "\"31.5.2024\"",
            "a date such as 2024-05-31",
        ],
    ),
    (
        "fit semi.csv -k 2 -m m",
        1,
        &["semi.csv", "separated by \";\""],
    ),
    (
        "fit hole.csv -k 2 -m m",
        1,
        &["column \"x\", line 3", "an empty field", "--missing"],
    ),
    ("fit empty.csv -k 2 -m m", 1, &["empty.csv", "is empty"]),
    (
        "fit bad.csv --columns x -k 20 -m m",
        1,
        &["20 clusters", "4 rows"],
    ),
    (
        "fit shop.csv -k 3 -m m --metric cosin",
        2,
        &["'cosin'", "--metric", "'cosine'"],
    ),
    (
        "fit shop.csv -k 3 -m m --covariance full",
        2,
        &["fast has no --covariance", "-a gmm"],
    ),
    (
        "fit shop.csv -k 3 -m m --memory 4XB",
        2,
        &["'4XB'", "--memory", "such as 4GiB"],
    ),
    (
        "fit shop.csv -k 3 -m m --seed 1.5",
        2,
        &["'1.5'", "--seed", "a whole number"],
    ),
    (
        "fit shop.csv -k 3 -m m --delimiter ;;",
        2,
        &["';;'", "--delimiter", "one sign"],
    ),
    (
        "fit shop.csv -k 3 -m nofolder/m",
        1,
        &["nofolder/m", "its folder does not exist: make it"],
    ),
    (
        "fit shop.csv -k 3 -l labels.txt",
        2,
        &["labels.txt", ".csv, .csv.gz, .parquet, .arrow or .npy"],
    ),
    (
        "fit shop.csv -k 3 -l shop.csv",
        2,
        &["shop.csv", "read as an input"],
    ),
    ("fit shop.csv -k 3 -m bad.csv", 2, &["bad.csv", "--force"]),
    (
        "assign shop.csv m.cmx -l l.csv",
        1,
        &["shop.csv: is no model", "give the model first"],
    ),
    ("assign m.cmx shop.csv", 2, &["required", "--labels <FILE>"]),
    (
        "assign m.cmx bad.csv -l l.csv",
        1,
        &["bad.csv", "no column \"paid\""],
    ),
    (
        "assign m.cmx shop.csv -l l.npy --densities",
        2,
        &["l.npy", ".csv, .csv.gz, .parquet and .arrow"],
    ),
    (
        "assign m.cmx shop.csv --columns visits -l l.csv",
        2,
        &[
            "--columns",
            "paid, since, spent, visits",
            "leave --columns out",
        ],
    ),
    ("clusters shop.csv --key key", 2, &["required", "--to <K>"]),
];

#[test]
fn forty_wrong_calls_have_an_answer() {
    let folder = Folder::new("forty");
    shop(&folder);
    let put = |name: &str, text: &str| fs::write(folder.at(name), text).unwrap();
    put("bad.csv", "x,y\n1,2\n3,4\n5,oops\n6,1\n");
    put("semi.csv", "x;y\n1;2\n3;4\n");
    put("hole.csv", "x,y\n1,2\n,4\n5,6\n");
    put("empty.csv", "");
    put(
        "late.csv",
        &("x,y\n".to_owned() + &"1,2024-05-31\n".repeat(120) + "2,31.5.2024\n"),
    );
    folder.done(&["fit", "shop.csv", "--key", "key", "-k", "3", "-m", "m.cmx"]);
    folder.done(&[
        "assign",
        "m.cmx",
        "shop.csv",
        "--key",
        "plan",
        "-l",
        "plans.parquet",
    ]);
    for (call, code, parts) in WRONG {
        let (found, said) = folder.fails(&call.split(' ').collect::<Vec<_>>());
        let told = parts.iter().all(|part| said.contains(part));
        assert!(found == code && told, "coremix {call}\n{found} {said}");
    }
    // By the name that others have for it.
    folder.done(&["predict", "m.cmx", "shop.csv", "-l", "l.csv"]);
}

/// With keys and weights: the model and the labels are those of the crate, and `assign` has these labels.
#[test]
fn a_sketch_is_fitted() {
    let folder = Folder::new("sketch");
    let mut rng = coremix::stage::Rng::from_seed(5);
    let x = Array2::from_shape_fn((900, 24), |(i, j)| {
        ((i % 6) * (j % 5)) as f64 + 0.3 * rng.normal()
    });
    let weights = ndarray::Array1::from_shape_fn(900, |i| 1.0 + (i % 3) as f64);
    let names: Vec<String> = (0..24).map(|j| format!("x{j}")).collect();
    let mut text = format!("id,weight,{}\n", names.join(","));
    for (i, row) in x.outer_iter().enumerate() {
        let row: Vec<String> = row.iter().map(f64::to_string).collect();
        text += &format!("row-{i},{},{}\n", weights[i], row.join(","));
    }
    fs::write(folder.at("rows.csv"), text).unwrap();
    let input = ["rows.csv", "--key", "id", "--weights", "weight"];
    let results = ["-m", "m", "-l", "l.csv", "--report", "r.json"];
    let settings = ["--float", "f64", "-k", "6", "--seed", "2"];
    let fit = |more: &[&'static str]| [&["fit"], &input[..], &results, &settings, more].concat();
    let sketch =
        Sketch::of_dense(&Dense::weighted(x.view(), weights.view()).unwrap(), 8, 2).unwrap();
    let dense = Dense::new(x.view()).unwrap();
    for name in ["sparsified-gmm", "k-means", "var-gmm-s", "vc-gmm", "fast"] {
        let said = folder.done(&fit(&["--coordinates", "8", "-a", name]));
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(6).seed(2);
        let fitted = algorithm.boxed::<f64>().unwrap().fit(&sketch).unwrap();
        let saved: BoxedMixture<f64> = Save::load(folder.at("m")).unwrap();
        assert_eq!(saved.means(), fitted.model.means(), "{name}");
        let expected = fitted.model.predict(&dense).unwrap();
        let expected = expected.mapv(f64::from);
        assert_eq!(labels(&folder.at("l.csv")), expected.to_vec(), "{name}");
        folder.done(&[
            "assign",
            "m",
            "rows.csv",
            "--key",
            "id",
            "-l",
            "again.csv",
            "-q",
        ]);
        let file = |name: &str| fs::read_to_string(folder.at(name)).unwrap();
        assert_eq!(file("l.csv"), file("again.csv"), "{name}");
        let report: serde_json::Value = serde_json::from_str(&file("r.json")).unwrap();
        assert!(report["iterations"].as_u64().unwrap() > 0);
        if name == "sparsified-gmm" {
            let known = words(&said, "log-likelihood");
            assert!(known.ends_with("of 8 coordinates of it"), "{said}");
        }
    }
    assert_eq!(words(&folder.done(&["info", "m"]), "coordinates"), "8");
    fs::write(folder.at("t.svmlight"), "1 0:1\n1 1:2\n").unwrap();
    let sparse = [
        "fit",
        "t.svmlight",
        "-k",
        "1",
        "-m",
        "n",
        "--coordinates",
        "1",
    ];
    let cases: [(&[&str], &str); 13] = [
        (&sparse, "sparse rows"),
        (&fit(&["--coordinates", "0"]), "1 or more"),
        (
            &fit(&["--coordinates", "25"]),
            "at most the number of columns",
        ),
        (&fit(&["--coordinates", "3", "--missing"]), "--missing"),
        (
            &fit(&["--coordinates", "3", "--standardise"]),
            "--standardise",
        ),
        (
            &fit(&["--coordinates", "3", "--metric", "cosine"]),
            "--metric",
        ),
        (&fit(&["--coordinates", "3", "--factors", "2"]), "--factors"),
        (&fit(&["--coordinates", "3", "--counts", "x1"]), "--counts"),
        (
            &fit(&["--coordinates", "3", "--categories", "x1"]),
            "--categories",
        ),
        (&fit(&["--coordinates", "3", "-a", "table"]), "-a table"),
        (&fit(&["--coordinates", "3", "-a", "dp-gmm"]), "-a dp-gmm"),
        (
            &fit(&["--coordinates", "3", "-a", "gmm", "--covariance", "full"]),
            "--covariance full",
        ),
        (
            &fit(&["--coordinates", "3", "--memory", "1MiB"]),
            "the sketch needs",
        ),
    ];
    for (arguments, part) in cases {
        let (code, said) = folder.fails(arguments);
        let named = said.contains("--coordinates") || said.contains("--memory");
        assert!(code == 2 && named && said.contains(part), "{said}");
    }
    fs::write(folder.at("hole.csv"), "x,y\n1,2\n,4\n5,6\n").unwrap();
    let hole = [
        "fit",
        "hole.csv",
        "-k",
        "2",
        "-m",
        "n",
        "--coordinates",
        "1",
    ];
    let (code, said) = folder.fails(&hole);
    assert!(code == 1 && said.contains("hole.csv"), "{said}");
    folder.done(&[&hole[..], &["--drop-missing"]].concat());
}

#[test]
fn shells_complete_the_command_and_man_has_a_page() {
    let folder = Folder::new("completions");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = folder.done(&["completions", shell]);
        let known = ["assign", "explain", "densities", "categories"];
        assert!(
            known.iter().all(|word| said.contains(word)),
            "{shell}: {said}"
        );
    }
    let page = folder.done(&["completions", "man"]);
    assert!(
        page.contains(".TH coremix 1") && page.contains("explain"),
        "{page}"
    );
    let (code, said) = folder.fails(&["completions", "csh"]);
    assert!(
        code == 2 && said.contains("csh: choose from bash, elvish"),
        "{said}"
    );
}

#[test]
fn each_file_of_rows_has_a_file_of_labels() {
    let folder = Folder::new("each");
    fs::create_dir(folder.at("days")).unwrap();
    fs::create_dir(folder.at("out")).unwrap();
    for day in 0..3 {
        let mut text = String::from("id,x,y\n");
        for i in 0..50 + day {
            text += &format!("r{day}-{i},{},{}\n", (i % 2) * 9, i % 7);
        }
        fs::write(folder.at(&format!("days/day-{day}.csv")), text).unwrap();
    }
    folder.done(&["fit", "days", "--key", "id", "-k", "2", "-m", "m", "-q"]);
    let assign = ["assign", "m", "days", "--key", "id", "-l"];
    folder.done(&[&assign[..], &["out/of-*.csv"]].concat());
    folder.done(&[&assign[..], &["whole.csv"]].concat());
    let read = |name: &str| fs::read_to_string(folder.at(name)).unwrap();
    let each = (0..3).map(|day| read(&format!("out/of-day-{day}.csv")));
    let rows = each.flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>());
    let whole = read("whole.csv");
    assert!(rows.eq(whole.lines().skip(1)));

    // Nothing is written where one of them cannot be, or two have one name.
    fs::write(folder.at("out/day-2.csv"), "mine").unwrap();
    let (code, said) = folder.fails(&[&assign[..], &["out/*.csv"]].concat());
    assert!(
        code == 2 && said.contains("day-2.csv") && said.contains("--force"),
        "{said}"
    );
    assert!(!folder.at("out/day-0.csv").exists());
    fs::copy(folder.at("days/day-0.csv"), folder.at("day-0.csv")).unwrap();
    let two = [
        "assign",
        "m",
        "days",
        "day-0.csv",
        "--key",
        "id",
        "-l",
        "out/n-*.csv",
    ];
    let (code, said) = folder.fails(&two);
    assert!(code == 2 && said.contains("two outputs"), "{said}");
    // A fit writes the same files by the model that it saves, compressed if they are called so.
    let fit = ["fit", "days", "--key", "id", "-k", "2", "-q", "-l"];
    folder.done(&[&fit[..], &["out/fit-*.csv.gz", "-m", "m"]].concat());
    for day in 0..3 {
        let [of_fit, of_assign] = ["fit-day-{}.csv.gz", "of-day-{}.csv"]
            .map(|name| labels(&folder.at("out").join(name.replace("{}", &day.to_string()))));
        assert_eq!(of_fit, of_assign);
    }
    // A folder is no name, and without a model nothing labels each file.
    for (arguments, what) in [
        ([&assign[..], &["out"]].concat(), "or 'out/*.csv'"),
        ([&fit[..], &["out/*.csv"]].concat(), "needs --model"),
        (
            [&fit[..], &["out/*.csv", "-m", "m", "-"]].concat(),
            "standard input",
        ),
    ] {
        let (code, said) = folder.fails(&arguments);
        assert!(code == 2 && said.contains(what), "{said}");
    }
}

#[test]
fn info_marks_columns_that_name_the_rows() {
    let folder = Folder::new("marks");
    let mut text = String::from("x,row,customer_id,count\n");
    for i in 0..2_000u64 {
        text += &format!(
            "{},{},{},{}\n",
            i % 7,
            i * 7 % 2_000,
            900 + 3 * i,
            i % 1_500
        );
    }
    fs::write(folder.at("rows.csv"), &text).unwrap();
    let said = folder.done(&["info", "rows.csv"]);
    let marks: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("--key leaves it out"))
        .collect();
    assert_eq!(marks.len(), 2, "{said}");
    assert!(marks[0].contains("row numbers the rows"), "{said}");
    assert!(
        marks[1].contains("customer_id seems to name the rows"),
        "{said}"
    );
    let said = folder.done(&["info", "rows.csv", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        found["row_names"][0],
        serde_json::json!(["row", "numbers the rows"])
    );
    // With the key left out, and of rows with a missing value, whose place is told.
    let said = folder.done(&["info", "rows.csv", "--key", "row,customer_id"]);
    assert!(!said.contains("leaves it out"), "{said}");
    fs::write(folder.at("holes.csv"), text + "1,,5,6\n").unwrap();
    let said = folder.done(&["info", "holes.csv"]);
    assert!(said.contains("missing"), "{said}");
}
