//! Rows that are read when they are asked for: the fits of rows in memory, files of all kinds, and what is wrong with them.

use crate::common::blobs;
use coremix::data::{Blocks, Rows, Source};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Element, testing};
use ndarray::{Array1, Array2};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

// ---- Sources of one's own -------------------------------------------------------------------------------

/// Rows in memory that are read like others, and counted. Rows can be lost, or change, after some reads.
#[derive(Debug)]
struct Counted<T> {
    rows: Array2<T>,
    reads: AtomicUsize,
    read: AtomicUsize,
    longest: AtomicUsize,
    /// From this read on, row `fault.0` is what `fault.1` says: `None` if it cannot be read.
    from: AtomicUsize,
    fault: (usize, Option<T>),
}

impl<T: Element> Counted<T> {
    fn new(rows: &Array2<T>) -> Self {
        Self {
            rows: rows.clone(),
            reads: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            longest: AtomicUsize::new(0),
            from: AtomicUsize::new(usize::MAX),
            fault: (0, None),
        }
    }

    fn counts(&self) -> [usize; 3] {
        [&self.reads, &self.read, &self.longest].map(|count| count.load(Ordering::Relaxed))
    }
}

impl<T: Element> Source for Counted<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.rows.nrows()
    }

    fn dim(&self) -> usize {
        self.rows.ncols()
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let d = self.dim();
        let rows = first..first + out.len() / d;
        assert_eq!(rows.len() * d, out.len());
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        self.read.fetch_add(rows.len(), Ordering::Relaxed);
        self.longest.fetch_max(rows.len(), Ordering::Relaxed);
        out.copy_from_slice(&self.rows.as_slice().unwrap()[rows.start * d..rows.end * d]);
        let (row, value) = self.fault;
        if rows.contains(&row) && reads >= self.from.load(Ordering::Relaxed) {
            match value {
                Some(value) => out[(row - first) * d + d - 1] = value,
                None => return Err(io::Error::other("the tape is torn")),
            }
        }
        Ok(())
    }
}

fn algorithm(name: &str) -> Algorithm {
    let algorithm = name.parse::<Algorithm>().unwrap().clusters(6);
    let algorithm = match name {
        "k-means-c-prime" | "d-gmm" => algorithm.c_prime(3),
        "var-gmm-s" => algorithm.c_prime(3).neighbors(3),
        "vc-gmm" => algorithm.coreset(300).c_prime(3).neighbors(3),
        "lwcs-k-means" | "dp-gmm" | "fast" => algorithm.coreset(300),
        _ => algorithm,
    };
    algorithm.max_iterations(6)
}

/// Bit for bit the fits and predictions of rows in memory.
fn same_fits<T: Element>(rows: &Array2<T>, dense: &Dense<'_, T>, weights: Option<Vec<f64>>) {
    let data = match weights {
        None => Blocks::new(Counted::new(rows)),
        Some(weights) => Blocks::weighted(Counted::new(rows), weights),
    };
    let data = data.unwrap();
    let read = data.source().counts()[1];
    assert!(
        read < rows.nrows() + 1_100,
        "{read} rows read for the check"
    );
    testing::data(&data, dense).unwrap();
    for name in Algorithm::NAMES {
        let estimator = algorithm(name).boxed::<T::Float>().unwrap();
        let a = estimator.fit(&data).unwrap();
        let b = estimator.fit(dense).unwrap();
        assert_eq!(a.model.means(), b.model.means(), "{name}");
        assert_eq!(a.model.variances(), b.model.variances(), "{name}");
        assert_eq!(a.model.proportions(), b.model.proportions(), "{name}");
        assert_eq!(
            (&a.search_labels, &a.supports),
            (&b.search_labels, &b.supports),
            "{name}"
        );
        assert_eq!(a.coreset, b.coreset, "{name}");
        let energies = [&a, &b].map(|fit| fit.report.free_energies.clone());
        assert_eq!(energies[0], energies[1], "{name}");
        assert_eq!(a.report.evaluations, b.report.evaluations, "{name}");
        let scores = [a.model.score(&data), b.model.score(dense)];
        assert_eq!(scores[0], scores[1], "{name}");
    }
    let [reads, read, longest] = data.source().counts();
    assert!(
        reads > 0 && read > rows.nrows() && longest <= 4_096,
        "{longest} at once"
    );
}

fn with_and_without_weights<T: Element>(rows: &Array2<T>) {
    same_fits(rows, &Dense::new(rows.view()).unwrap(), None);
    let weights = Array1::from_shape_fn(rows.nrows(), |n| ((n + 1) % 4) as f64 * 0.75);
    let dense = Dense::weighted(rows.view(), weights.view()).unwrap();
    same_fits(rows, &dense, Some(weights.to_vec()));
}

#[test]
fn fits_of_f64_are_those_of_rows_in_memory() {
    with_and_without_weights::<f64>(&blobs(1_131, 3, 6, 1));
    with_and_without_weights::<f64>(&blobs(700, 21, 6, 2));
}

#[test]
fn fits_of_f32_are_those_of_rows_in_memory() {
    with_and_without_weights::<f32>(&blobs(1_131, 3, 6, 3));
    with_and_without_weights::<f32>(&blobs(513, 40, 6, 4));
}

#[test]
fn fits_of_u8_are_those_of_rows_in_memory() {
    let bytes = |d, seed| {
        let x: Array2<f64> = blobs(1_131, d, 6, seed);
        x.mapv(|x| (128.0 + 9.0 * x).clamp(0.0, 255.0) as u8)
    };
    with_and_without_weights(&bytes(2, 5));
    with_and_without_weights(&bytes(19, 6));
}

/// More rows than are summed up together when data is checked.
#[test]
fn the_summary_of_many_rows_is_that_of_rows_in_memory() {
    let mut rng = Rng::from_seed(7);
    let rows = Array2::from_shape_fn((150_001, 1), |_| rng.normal() as f32);
    let data = Blocks::new(Counted::new(&rows)).unwrap();
    let dense = Dense::new(rows.view()).unwrap();
    assert_eq!(data.summary(), dense.summary());
    assert_eq!(data.frame(), dense.frame());
    let fit = |data: &dyn Data<f32>| {
        let estimator = algorithm("fast").boxed().unwrap();
        estimator.fit(data).unwrap().model.means()
    };
    assert_eq!(fit(&data), fit(&dense));
}

/// Rows in any order are read in the order of the source, each once, and those near each other together.
#[test]
fn near_rows_are_read_together() {
    let rows: Array2<f64> = blobs(1_000, 3, 4, 8);
    let source = Counted::new(&rows);
    let data = Blocks::new(&source).unwrap();
    let frame = data.frame();
    let before = data.source().counts();
    let list = [7, 999, 5, 6, 500, 6, 900, 8];
    let mut block = Rows::default();
    data.gather(&list, &frame, &mut block).unwrap();
    let after = data.source().counts();
    assert_eq!(after[0] - before[0], 3);
    // 5 to 8, 500, and 900 to 999: 100 rows of 24 bytes are less than a page.
    assert_eq!(after[1] - before[1], 4 + 1 + 100);
    let dense = Dense::new(rows.view()).unwrap();
    let mut expected = Rows::default();
    dense.gather(&list, &frame, &mut expected).unwrap();
    assert_eq!(block.len(), list.len());
    assert!((0..list.len()).all(|i| block.coordinates(i) == expected.coordinates(i)));
    data.gather(&[], &frame, &mut block).unwrap();
    assert!(block.is_empty());
}

#[test]
fn what_is_wrong_when_the_data_is_made() {
    let rows: Array2<f32> = blobs(600, 3, 4, 9);
    let new = |rows: &Array2<f32>| Blocks::new(Counted::new(rows)).map(|_| ()).unwrap_err();
    let empty = Error::Empty { what: "data" };
    assert_eq!(new(&Array2::zeros((0, 3))), empty);
    assert_eq!(new(&Array2::zeros((3, 0))), empty);
    let mut bad = rows.clone();
    bad[[555, 1]] = f32::INFINITY;
    let (what, row, column) = ("data", 555, 1);
    assert_eq!(new(&bad), Error::NotFinite { what, row, column });
    bad[[555, 1]] = f32::MAX;
    assert!(matches!(
        new(&bad),
        Error::TooLarge {
            row: 555,
            column: 1,
            ..
        }
    ));

    let weighted = |weights| Blocks::weighted(Counted::new(&rows), weights).map(|_| ());
    let error = weighted(vec![1.0; 599]).unwrap_err();
    assert!(matches!(
        error,
        Error::LengthMismatch {
            expected: 600,
            found: 599,
            ..
        }
    ));
    let mut weights = vec![1.0; 600];
    weights[7] = -1.0;
    let (row, value) = (7, -1.0);
    assert_eq!(weighted(weights).unwrap_err(), Error::Weight { row, value });
    assert_eq!(
        weighted(vec![0.0; 600]).unwrap_err(),
        Error::TotalWeight { total: 0.0 }
    );

    // A row that cannot be read in any of the reads of the check.
    for from in 0..4 {
        let mut source = Counted::new(&rows);
        source.fault.0 = 512;
        source.from = AtomicUsize::new(from);
        let Err(error) = Blocks::new(source) else {
            assert!(from > 1);
            continue;
        };
        let shown = error.to_string();
        assert!(
            matches!(
                error,
                Error::Stage {
                    stage: "Counted",
                    ..
                }
            ),
            "{shown}"
        );
        assert!(
            shown.contains("512") && shown.contains("the tape is torn"),
            "{shown}"
        );
    }

    /// It says that it has more rows than there can be.
    struct Endless(usize, usize);
    impl Source for Endless {
        type Element = u8;
        fn len(&self) -> usize {
            self.0
        }
        fn dim(&self) -> usize {
            self.1
        }
        fn read(&self, _: usize, _: &mut [u8]) -> io::Result<()> {
            Err(io::Error::other("nothing there"))
        }
    }
    for (n, d) in [
        (usize::MAX, 2),
        (2, usize::MAX),
        (usize::MAX, usize::MAX),
        (1, usize::MAX / 8),
    ] {
        let error = Blocks::new(Endless(n, d))
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("Endless: ") && error.contains("can be counted"),
            "{error}"
        );
    }
    assert!(Blocks::new(Endless(9, 2)).is_err());
}

/// Asserts that a result is an error that names the source and the row, and says this; returns whether it is one.
fn lost<T>(result: Result<T>, name: &str, text: &str) -> bool {
    let Err(error) = result else { return false };
    let shown = error.to_string();
    assert!(
        matches!(
            error,
            Error::Stage {
                stage: "Counted",
                ..
            }
        ),
        "{name}: {shown}"
    );
    assert!(
        shown.contains("row ") && shown.contains("700"),
        "{name}: {shown}"
    );
    assert!(shown.contains(text), "{name}: {shown}");
    true
}

fn losing<T: Element>(rows: &Array2<T>, value: Option<T>, text: &str) {
    for name in Algorithm::NAMES {
        let estimator = algorithm(name).boxed::<T::Float>().unwrap();
        let mut source = Counted::new(rows);
        // The last row: it is read alone, so that the error is about no other.
        source.fault = (700, value);
        let data = Blocks::new(source).unwrap();
        let whole = estimator.fit(&data).unwrap();
        let reads = |data: &Blocks<Counted<T>>| data.source().counts()[0];
        let now = reads(&data);
        let of_fit = {
            let model = estimator.fit(&data).unwrap().model;
            assert_eq!(model.means(), whole.model.means());
            reads(&data) - now
        };
        let mut errors = 0;
        for part in 0..5 {
            let now = reads(&data);
            data.source()
                .from
                .store(now + of_fit * part / 5, Ordering::Relaxed);
            let result = estimator.fit(&data);
            // A fit on a coreset may not need the row again.
            if let Ok(fit) = &result {
                assert_eq!(fit.model.means(), whole.model.means(), "{name}");
            }
            errors += usize::from(lost(result, name, text));
            data.source().from.store(0, Ordering::Relaxed);
            assert!(lost(whole.model.predict(&data), name, text), "{name}");
            assert!(lost(whole.model.score(&data), name, text), "{name}");
            // Once rows can be read again, the model answers as before.
            data.source().from.store(usize::MAX, Ordering::Relaxed);
            assert!(whole.model.predict(&data).is_ok());
        }
        assert!(errors > 0, "{name}");
        assert_eq!(
            estimator.fit(&data).unwrap().model.means(),
            whole.model.means()
        );
    }
}

#[test]
fn rows_that_are_lost_later_are_errors() {
    let x: Array2<f32> = blobs(701, 3, 6, 10);
    losing(&x, None, "the tape is torn");
    losing(
        &x.mapv(|x| (128.0 + 9.0 * x).clamp(0.0, 255.0) as u8),
        None,
        "the tape is torn",
    );
}

#[test]
fn rows_that_become_nan_are_errors() {
    let x: Array2<f32> = blobs(701, 3, 6, 11);
    losing(&x, Some(f32::NAN), "a value is NaN");
    losing(&x, Some(f32::MAX), "too large");
    losing(&x.mapv(f64::from), Some(f64::INFINITY), "infinite");
}
