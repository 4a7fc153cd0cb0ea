//! Work runs on the thread pool of the caller, and nowhere else.

use crate::common::blobs;
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use ndarray::Array2;
use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Rows that know which threads have read them.
struct Told {
    rows: Array2<f32>,
    readers: Mutex<BTreeSet<String>>,
    reads: AtomicUsize,
}

impl Source for Told {
    type Element = f32;

    fn len(&self) -> usize {
        self.rows.nrows()
    }

    fn dim(&self) -> usize {
        self.rows.ncols()
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        let name = thread::current().name().unwrap_or("no name").to_string();
        self.readers.lock().unwrap().insert(name);
        // Long enough for the other threads to take their share.
        if self.reads.fetch_add(1, Ordering::Relaxed) < 100 {
            thread::sleep(Duration::from_micros(50));
        }
        let from = first * self.dim();
        out.copy_from_slice(&self.rows.as_slice().unwrap()[from..from + out.len()]);
        Ok(())
    }
}

/// Runs `work` on a pool of three threads with names.
fn on_own_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3);
    let pool = pool.thread_name(|i| format!("caller-{i}"));
    pool.build().unwrap().install(work)
}

/// Fits, with restarts one after the other and at the same time, and all questions to the model.
#[test]
fn rows_are_read_by_the_threads_of_the_caller() {
    let rows = blobs::<f32>(3_000, 4, 6, 8);
    let mut busy = 0;
    for name in Algorithm::NAMES {
        let source = Told {
            rows: rows.clone(),
            readers: Mutex::default(),
            reads: AtomicUsize::new(0),
        };
        let data = on_own_pool(|| {
            let data = Blocks::new(source).unwrap();
            for restarts in [1, 4] {
                let algorithm = name.parse::<Algorithm>().unwrap().clusters(6);
                let algorithm = algorithm.coreset(500).max_iterations(3);
                let estimator = algorithm.restarts(restarts);
                let estimator = estimator.boxed::<f32>().unwrap();
                let model = estimator.fit(&data).unwrap().model;
                model.predict(&data).unwrap();
                model.score(&data).unwrap();
                model.log_densities(&data).unwrap();
                model.responsibilities(&data).unwrap();
                model.truncated_responsibilities(&data, 2).unwrap();
                model.quantization_error(&data).unwrap();
                model.log_likelihood(&data).unwrap();
            }
            data
        });
        let readers = data.source().readers.lock().unwrap();
        let own = readers.iter().all(|reader| reader.starts_with("caller-"));
        assert!(own && !readers.is_empty(), "{name}: {readers:?}");
        busy += usize::from(readers.len() > 1);
    }
    assert!(busy > 0, "one thread did all of the work");
}
