//! Reading ahead: the same rows, on time or late, from sources that are slow, fail or panic.

use crate::fits::blobs;
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix_files::ReadAhead;
use ndarray::Array2;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Columns of a row: a piece has 16 rows.
const D: usize = 8_192;

fn value(row: usize, column: usize) -> f32 {
    ((row * 31 + column) % 4_099) as f32
}

/// The behaviour of a source at some of its reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Read,
    Fail,
    Panic,
}

/// Rows that say who read them, and how often.
#[derive(Debug)]
struct Told {
    rows: usize,
    pause: Duration,
    /// The behaviour of reads that contain this row.
    at: (usize, Does),
    reads: AtomicUsize,
    ahead: AtomicUsize,
    dropped: Arc<AtomicBool>,
}

impl Told {
    fn new(rows: usize) -> Self {
        Self {
            rows,
            pause: Duration::ZERO,
            at: (0, Does::Read),
            reads: AtomicUsize::new(0),
            ahead: AtomicUsize::new(0),
            dropped: Arc::default(),
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

impl Source for Told {
    type Element = f32;

    fn len(&self) -> usize {
        self.rows
    }

    fn dim(&self) -> usize {
        D
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        thread::sleep(self.pause);
        let rows = first..first + out.len() / D;
        self.reads.fetch_add(1, Ordering::SeqCst);
        if thread::current().name() == Some("coremix-read-ahead") {
            self.ahead.fetch_add(1, Ordering::SeqCst);
        }
        if rows.end > self.rows {
            return Err(io::Error::other("past the end"));
        }
        if rows.contains(&self.at.0) {
            match self.at.1 {
                Does::Read => {}
                Does::Fail => return Err(io::Error::other("the tape is torn")),
                // Without the message of a panic.
                Does::Panic => std::panic::resume_unwind(Box::new("of the test")),
            }
        }
        for (row, out) in rows.zip(out.chunks_exact_mut(D)) {
            (0..D).for_each(|j| out[j] = value(row, j));
        }
        Ok(())
    }
}

fn check(source: &impl Source<Element = f32>, first: usize, rows: usize) {
    let mut out = vec![-1.0; rows * D];
    source.read(first, &mut out).unwrap();
    for (i, row) in out.chunks_exact(D).enumerate() {
        let right = (0..D).all(|j| row[j] == value(first + i, j));
        assert!(right, "row {} of {first} and {rows} more", first + i);
    }
}

/// Waits until it is so; a limit that no test reaches keeps a fault from being a hang.
fn wait_for(what: &str, so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if so() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("never: {what}");
}

#[test]
fn rows_in_a_row_are_read_ahead_once() {
    let ahead = ReadAhead::new(Told::new(300));
    assert_eq!((ahead.len(), ahead.dim(), ahead.name()), (300, D, "Told"));
    check(&ahead, 0, 4);
    assert_eq!(ahead.source().ahead.load(Ordering::SeqCst), 0);
    check(&ahead, 4, 4);
    // Two pieces, though nobody asks for them.
    let read = || ahead.source().ahead.load(Ordering::SeqCst);
    wait_for("two pieces", || read() == 2);
    (2..10).for_each(|block| check(&ahead, block * 4, 4));
    wait_for("two more", || read() == 4);
    assert_eq!(ahead.source().reads.load(Ordering::SeqCst), 2 + 4);
    // To the end, in steps of other sizes; over more than one piece.
    let mut at = 40;
    for rows in [1, 2, 50, 7, 16, 16, 33, 64, 71] {
        check(&ahead, at, rows);
        at += rows;
    }
    assert_eq!(at, 300);
    let error = ahead.read(at, &mut [0.0; D]).unwrap_err();
    assert_eq!(error.to_string(), "past the end");
}

#[test]
fn several_threads_read_from_places_of_their_own() {
    let mut source = Told::new(2_000);
    source.pause = Duration::from_micros(200);
    let ahead = ReadAhead::new(source);
    thread::scope(|scope| {
        for reader in 0..20 {
            let ahead = &ahead;
            scope.spawn(move || {
                for block in 0..20 {
                    check(ahead, reader * 100 + block * 5, 5);
                }
            });
        }
        // Two of them at the same rows.
        for _ in 0..2 {
            scope.spawn(|| (0..40).for_each(|block| check(&ahead, block * 7, 7)));
        }
    });
    assert!(ahead.source().ahead.load(Ordering::SeqCst) > 0);
}

#[test]
fn rows_in_any_order() {
    let ahead = ReadAhead::new(Told::new(200));
    let mut rng = Rng::from_seed(1);
    let mut below = |n: usize| ((rng.uniform() * n as f64) as usize).min(n - 1);
    for _ in 0..300 {
        let (mut first, steps) = (below(200), below(8));
        for _ in 0..steps {
            let rows = (below(30) + 1).min(200 - first);
            check(&ahead, first, rows);
            first += rows;
            if first == 200 {
                break;
            }
        }
    }
}

#[test]
fn errors_go_where_they_belong() {
    for does in [Does::Fail, Does::Panic] {
        let mut source = Told::new(400);
        source.at = (101, does);
        let ahead = ReadAhead::new(source);
        for block in 0..80 {
            let (first, mut out) = (block * 5, vec![0.0; 5 * D]);
            if block != 20 {
                check(&ahead, first, 5);
                continue;
            }
            // Blocks around the row are read, though a piece with it was not.
            match does {
                Does::Panic => {
                    let read = || ahead.read(first, &mut out);
                    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
                    assert!(read.is_err());
                }
                _ => {
                    let error = ahead.read(first, &mut out).unwrap_err();
                    assert_eq!(error.to_string(), "the tape is torn");
                }
            }
        }
    }
}

#[test]
fn the_thread_ends_with_its_source() {
    for reads in 0..6 {
        let mut source = Told::new(400);
        source.pause = Duration::from_millis(1);
        let dropped = Arc::clone(&source.dropped);
        let ahead = ReadAhead::new(source);
        (0..reads).for_each(|block| check(&ahead, block * 3, 3));
        drop(ahead);
        assert!(dropped.load(Ordering::SeqCst), "after {reads} reads");
    }
}

/// Fits through it are those of the same rows in memory.
#[test]
fn fits_are_those_of_rows_in_memory() {
    struct InMemory(Array2<f32>, Mutex<usize>);
    impl Source for InMemory {
        type Element = f32;
        fn len(&self) -> usize {
            self.0.nrows()
        }
        fn dim(&self) -> usize {
            self.0.ncols()
        }
        fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
            *self.1.lock().unwrap() += 1;
            let from = first * self.dim();
            out.copy_from_slice(&self.0.as_slice().unwrap()[from..from + out.len()]);
            Ok(())
        }
    }
    let rows: Array2<f32> = blobs(3_000, 70);
    let dense = Dense::new(rows.view()).unwrap();
    let source = ReadAhead::new(InMemory(rows.clone(), Mutex::new(0)));
    let data = Blocks::new(source).unwrap();
    for name in ["fast", "vc-gmm", "k-means"] {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(5);
        let estimator = algorithm.boxed().unwrap();
        let a = estimator.fit(&data).unwrap();
        let b = estimator.fit(&dense).unwrap();
        assert_eq!(a.model.means(), b.model.means(), "{name}");
        assert_eq!(a.search_labels, b.search_labels, "{name}");
    }
    assert!(*data.source().source().1.lock().unwrap() > 0);
}
