//! Pools of one and of two threads, made once.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

const MOST: usize = 2;

/// Runs the work on a pool of `threads` threads: 1 or 2.
pub(crate) fn on<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    static POOLS: OnceLock<[ThreadPool; MOST]> = OnceLock::new();
    let pools = POOLS.get_or_init(|| {
        std::array::from_fn(|i| {
            let pool = ThreadPoolBuilder::new().num_threads(i + 1).build();
            pool.expect("threads")
        })
    });
    pools[threads - 1].install(work)
}
