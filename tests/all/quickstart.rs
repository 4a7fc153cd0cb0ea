//! The quickstart example, run as a program: on generated data, on files, and on everything that is wrong.

use ndarray::{Array1, Array2, Array3, ShapeBuilder};
use ndarray_npy::{WriteNpyExt, write_npy};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ALGORITHMS: [&str; 12] = [
    "k-means",
    "k-means-c-prime",
    "gmm",
    "lazy-k-means",
    "lwcs-k-means",
    "fast",
    "var-gmm-s",
    "vc-gmm",
    "d-gmm",
    "sparsified-k-means",
    "sparsified-gmm",
    "dp-gmm",
];

/// The example, which cargo builds next to the directory of this test.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let name = format!("quickstart{}", std::env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo build --example quickstart`, in the profile of the tests",
        program.display()
    );
    program
}

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("quickstart")
        .join(name);
    // What an earlier run left there would hide what this one does not write.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn run<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Output {
    let mut command = Command::new(program());
    command.current_dir(directory).args(arguments);
    command.output().unwrap()
}

/// Standard output of a run that must succeed.
fn succeed<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> String {
    let output = run(directory, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of a run that must fail with 1; it must name the cause.
fn fail<A: AsRef<OsStr>>(directory: &Path, arguments: &[A], causes: &[&str]) {
    let output = run(directory, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("error: "), "{errors}");
    for cause in causes {
        assert!(errors.contains(cause), "{cause:?} is not in {errors}");
    }
}

/// The number after a name in the output.
fn number(output: &str, name: &str) -> f64 {
    let line = output
        .lines()
        .find_map(|line| line.trim().strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

/// Three far-off clusters of 40 points, with values that u8 can hold.
fn points(d: usize) -> Array2<f64> {
    Array2::from_shape_fn((120, d), |(n, j)| {
        (80 * (n % 3) + (7 * n + 5 * j) % 11) as f64
    })
}

fn text(points: &Array2<f64>, header: &str, line_end: &str) -> String {
    let mut text = header.to_owned();
    for row in points.rows() {
        let row: Vec<String> = row.iter().map(f64::to_string).collect();
        text += &row.join(",");
        text += line_end;
    }
    text
}

fn check_picture(path: &Path) -> String {
    let picture = fs::read_to_string(path).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    assert!(!picture.contains("NaN") && !picture.contains("\"inf"));
    assert!(picture.matches("<circle").count() > 100);
    picture
}

#[test]
fn generated_data_is_clustered_described_and_drawn() {
    let directory = directory("generated");
    let output = succeed::<&str>(&directory, &[]);
    for heading in [
        "Data\n",
        "\nAlgorithm\n  vc-gmm\n",
        "\nIterations\n",
        "\nReport\n",
        "\nScores, on all rows\n",
        "\nPicture\n",
    ] {
        assert!(output.contains(heading), "{heading:?} is not in {output}");
    }
    assert!(output.contains("clusters 25, coreset 1000, c-prime 3, g 5, random 0, chain 20"));
    for title in ["iteration", "free energy", "change", "elapsed / ms"] {
        assert!(output.contains(title), "{title:?} is not in {output}");
    }
    assert!(number(&output, "quantization error") > 4e3);
    assert!(number(&output, "mean log-likelihood per point") < 0.0);
    for score in ["purity", "NMI", "ARI"] {
        let value = number(&output, score);
        assert!((0.7..=1.0).contains(&value), "{score} {value}");
    }
    assert!(number(&output, "matched RMSE of centres") < 4.0);
    let picture = check_picture(&directory.join("out/quickstart.svg"));
    assert!(picture.contains("coreset of"));
}

#[test]
fn every_algorithm_runs_by_name() {
    let directory = directory("algorithms");
    for algorithm in ALGORITHMS {
        let picture = format!("{algorithm}.svg");
        let arguments = ["--algorithm", algorithm, "--picture", &picture];
        let output = succeed(&directory, &arguments);
        assert!(output.contains(&format!("\nAlgorithm\n  {algorithm}\n")));
        assert!(number(&output, "purity") > 0.7, "{output}");
        check_picture(&directory.join(picture));
    }
    // One of them for each option that is not in every algorithm, and for those that are.
    for options in [
        "k-means --greedy --seed 3 --restarts 2",
        "k-means-c-prime --c-prime 2 --greedy",
        "lazy-k-means --epsilon 0.2 --tolerance 1e-3",
        "lwcs-k-means --coreset 500 --chain 5",
        "var-gmm-s --c-prime 4 --g 6 --random 1 --chain 5 --max-iterations 3 --restarts 1",
        "vc-gmm --coreset 500 --c-prime 4 --g 6 --random 1 --chain 5 --clusters 20",
        "d-gmm --h 4 --r 6 --chain 5 --clusters 20",
        "vc-gmm --family isotropic",
        "gmm --family diagonal",
        "sparsified-k-means --q 1 --shared 1 --greedy",
        "sparsified-gmm --q 2 --family isotropic",
        "dp-gmm --concentration 0.5 --coreset 600 --clusters 30 --restarts 2",
    ] {
        let mut arguments = vec!["--no-picture", "--algorithm"];
        arguments.extend(options.split(' '));
        let output = succeed(&directory, &arguments);
        for option in options.split(" --").skip(1) {
            let shown = option
                .replace("greedy", "greedy true")
                .replace("1e-3", "0.001");
            assert!(output.contains(&shown), "{shown:?} is not in {output}");
        }
    }
    assert!(!directory.join("out").exists());
}

#[test]
fn files_of_every_kind_give_the_same_clustering() {
    let directory = directory("files");
    let points = points(3);
    write_npy(directory.join("f64.npy"), &points).unwrap();
    write_npy(directory.join("f32.npy"), &points.mapv(|x| x as f32)).unwrap();
    write_npy(directory.join("u8.npy"), &points.mapv(|x| x as u8)).unwrap();
    let mut columns_first = Array2::zeros(points.raw_dim().f());
    columns_first.assign(&points);
    let file = File::create(directory.join("columns.npy")).unwrap();
    columns_first.write_npy(file).unwrap();
    let header = "width,\"height, in mm\",depth\n";
    fs::write(directory.join("plain.csv"), text(&points, "", "\n")).unwrap();
    fs::write(directory.join("header.CSV"), text(&points, header, "\r\n")).unwrap();

    for (file, stored) in [
        ("f64.npy", "f64"),
        ("f32.npy", "f32"),
        ("u8.npy", "u8"),
        ("columns.npy", "f64"),
        ("plain.csv", "f64"),
        ("header.CSV", "f64"),
    ] {
        let picture = format!("{file}.svg");
        let output = succeed(
            &directory,
            &[file, "--clusters", "3", "--picture", &picture],
        );
        assert!(output.contains(&format!("120 rows, 3 columns, {stored}\n")));
        let error = number(&output, "quantization error");
        let exact = within(&points);
        assert!((error / exact - 1.0).abs() < 1e-5, "{error} {exact}");
        assert!(!output.contains("purity"));
        let picture = check_picture(&directory.join(picture));
        assert!(picture.contains("largest variance of 3 columns"));
        assert_eq!(picture.contains("height, in mm"), file == "header.CSV");
    }
}

/// The quantization error of the three clusters of `points`.
fn within(points: &Array2<f64>) -> f64 {
    let mut sum = 0.0;
    for cluster in 0..3 {
        let rows: Vec<_> = points.rows().into_iter().skip(cluster).step_by(3).collect();
        for j in 0..points.ncols() {
            let mean = rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64;
            sum += rows.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>();
        }
    }
    sum
}

#[test]
fn any_number_of_columns_and_any_scale_can_be_drawn() {
    let directory = directory("scales");
    let one = |value: f64| Array2::from_elem((200, 2), value);
    for (name, points) in [
        ("line", points(1)),
        ("plane", points(2)),
        ("many", points(40)),
        ("constant", one(7.0)),
        ("zero", one(0.0)),
        ("huge", points(2) * 1e145),
        ("tiny", points(3) * 1e-300),
        ("far", points(2) + 1e12),
        ("unlike", points(2) * Array1::from(vec![1e100, 1e-100])),
    ] {
        let file = format!("{name}.npy");
        write_npy(directory.join(&file), &points).unwrap();
        let picture = format!("{name}.svg");
        succeed(
            &directory,
            &[&file, "--clusters", "3", "--picture", &picture],
        );
        check_picture(&directory.join(picture));
    }
}

#[test]
fn bad_files_are_refused_in_one_line_that_names_the_cause() {
    let directory = directory("bad_files");
    let refuse = |file: &str, causes: &[&str]| {
        let arguments = [file, "--clusters", "2", "--no-picture"];
        fail(&directory, &arguments, &[&[file], causes].concat());
    };
    refuse("missing.npy", &["No such file"]);
    refuse("missing.csv", &["No such file"]);
    refuse("points.txt", &["unknown extension", ".npy and .csv"]);
    refuse("points", &["unknown extension"]);
    fs::create_dir(directory.join("folder.csv")).unwrap();
    refuse("folder.csv", &["directory"]);

    for (file, content, causes) in [
        ("ragged.csv", "1,2\n3,4\n5\n", vec!["line 3", "1 fields"]),
        (
            "long.csv",
            "a,b\r\n\r\n1,2\r\n3,4,5\r\n",
            vec!["line 4", "3 fields"],
        ),
        (
            "empty_field.csv",
            "1,2\n3,\n",
            vec!["line 2, column 2", "empty"],
        ),
        (
            "word.csv",
            "a,b\n\n1,2\n\nx,4\n",
            vec!["line 5, column 1", "\"x\""],
        ),
        (
            "nan.csv",
            "1,2\n3,4\n5,NaN\n",
            vec!["line 3, column 2", "not finite"],
        ),
        (
            "large.csv",
            "1,2\n1e999,4\n",
            vec!["line 2, column 1", "not finite"],
        ),
        ("semicolon.csv", "1;2\n3;4\n", vec!["line 2, column 1"]),
        ("header.csv", "a,b\n", vec!["no rows"]),
        ("nothing.csv", "", vec!["no rows"]),
        ("nothing.npy", "", vec!["ends before"]),
        ("text.npy", "1,2\n3,4\n5,6\n", vec!["header"]),
    ] {
        fs::write(directory.join(file), content).unwrap();
        refuse(file, &causes);
    }
    fs::write(directory.join("bytes.csv"), b"1,2\n3,\xff\n").unwrap();
    refuse("bytes.csv", &["line 2, column 2"]);

    let write = |file: &str, points: &Array2<f64>| write_npy(directory.join(file), points).unwrap();
    let mut bad = points(2);
    bad[[17, 1]] = f64::NAN;
    write("nan.npy", &bad);
    refuse("nan.npy", &["row 17, column 1", "NaN"]);
    bad[[17, 1]] = 1e200;
    write("large.npy", &bad);
    refuse("large.npy", &["row 17, column 1", "1e200"]);
    write("empty.npy", &Array2::zeros((0, 3)));
    refuse("empty.npy", &["empty"]);
    write_npy(directory.join("i64.npy"), &bad.mapv(|x| x as i64)).unwrap();
    refuse("i64.npy", &["float32, float64 and uint8"]);
    write_npy(directory.join("line.npy"), &Array1::<f32>::zeros(9)).unwrap();
    refuse("line.npy", &["1 axes"]);
    write_npy(directory.join("cube.npy"), &Array3::<u8>::zeros((2, 2, 2))).unwrap();
    refuse("cube.npy", &["3 axes"]);
    write("whole.npy", &points(2));
    let whole = fs::read(directory.join("whole.npy")).unwrap();
    fs::write(directory.join("half.npy"), &whole[..whole.len() / 2]).unwrap();
    refuse("half.npy", &["ends before"]);
}

#[test]
fn bad_settings_are_refused_in_one_line_that_names_them() {
    let directory = directory("bad_settings");
    write_npy(directory.join("points.npy"), &points(2)).unwrap();
    let refuse = |arguments: &str, causes: &[&str]| {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        fail(&directory, &arguments, causes);
    };
    refuse("points.npy", &["points.npy", "--clusters"]);
    refuse("points.npy --clusters 121", &["121 clusters", "120 rows"]);
    refuse("--clusters 200 --coreset 100", &["200 clusters", "coreset"]);
    refuse("--clusters 0", &["clusters = 0"]);
    refuse("--coreset 0", &["coreset = 0"]);
    refuse("--g 0", &["g = 0"]);
    refuse("--algorithm d-gmm --h 0", &["h = 0"]);
    refuse("--algorithm d-gmm --r 0", &["r = 0"]);
    refuse("--algorithm sparsified-gmm --q 0", &["q = 0"]);
    refuse("--algorithm sparsified-gmm --q 3", &["q = 3"]);
    refuse("--algorithm sparsified-gmm --shared 3", &["shared = 3"]);
    refuse(
        "--algorithm dp-gmm --concentration 0",
        &["concentration = 0"],
    );
    refuse("--restarts 0", &["restarts = 0"]);
    refuse("--tolerance -1", &["tolerance = -1"]);
    refuse("--tolerance nan", &["tolerance = NaN"]);
    refuse(
        "--algorithm lazy-k-means --epsilon -0.5",
        &["epsilon = -0.5"],
    );

    refuse("--picture picture.png", &["picture.png", ".svg"]);
    refuse(
        "--picture points.npy/picture.svg",
        &["points.npy/picture.svg"],
    );
    fs::create_dir(directory.join("folder.svg")).unwrap();
    refuse("--picture folder.svg", &["folder.svg", "directory"]);

    // Options of other algorithms.
    for (algorithm, option) in [
        ("k-means", "--coreset 9"),
        ("k-means", "--c-prime 9"),
        ("gmm", "--g 9"),
        ("k-means-c-prime", "--random 9"),
        ("lazy-k-means", "--chain 9"),
        ("lwcs-k-means", "--epsilon 0.1"),
        ("var-gmm-s", "--coreset 9"),
        ("vc-gmm", "--greedy"),
        ("vc-gmm", "--h 9"),
        ("d-gmm", "--c-prime 9"),
        ("d-gmm", "--coreset 9"),
        ("lazy-k-means", "--family diagonal"),
        ("gmm", "--q 2"),
        ("sparsified-gmm", "--coreset 9"),
        ("dp-gmm", "--family diagonal"),
        ("k-means", "--concentration 2"),
    ] {
        let name = option.split(' ').next().unwrap();
        refuse(
            &format!("--algorithm {algorithm} {option}"),
            &[algorithm, name],
        );
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let directory = directory("usage");
    for arguments in [
        vec!["--algorithm", "d-means"],
        vec!["--cluster-count", "3"],
        vec!["--clusters", "three"],
        vec!["--no-picture", "--picture", "a.svg"],
    ] {
        let output = run(&directory, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    let help = succeed(&directory, &["--help"]);
    for algorithm in ALGORITHMS {
        assert!(help.contains(&format!("- {algorithm}:")), "{help}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let directory = directory("pipe");
    for restarts in ["1", "3"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(program());
        command
            .args(["--restarts", restarts])
            .current_dir(&directory)
            .stdout(writer)
            .stderr(Stdio::piped());
        let output = command.output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
