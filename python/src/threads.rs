//! Thread pools by their size.

use pyo3::PyResult;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Pools by process and size. A forked process has no threads of its parent, so it makes its own.
static POOLS: Mutex<BTreeMap<(u32, usize), Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// A pool of this number of threads; 0 means one per processor, or `RAYON_NUM_THREADS`.
pub(crate) fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    // A callback runs on a thread of its pool: a fit that it starts must not wait for that thread.
    if rayon::current_thread_index().is_some() {
        return new(threads);
    }
    let key = (std::process::id(), threads);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&key) {
        return Ok(pool.clone());
    }
    let pool = new(threads)?;
    pools.insert(key, pool.clone());
    Ok(pool)
}

fn new(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let most = coremix_files::most_threads();
    if threads > most {
        let what = format!("n_jobs = {threads}: this machine takes {most} threads at most");
        return Err(PyValueError::new_err(what));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(format!("no threads could start: {e}")))?;
    Ok(Arc::new(pool))
}
