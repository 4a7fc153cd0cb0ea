//! The only file that knows about threads.
//!
//! Work is cut by the shape of the data, never by the number of threads, and results come back in order:
//! that is all it takes for the same bits on any pool. The caller's rayon pool is used.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Rows in a block where the number of components does not matter.
pub(crate) const BLOCK: usize = 512;

/// `f(0), .., f(n - 1)` in order.
pub(crate) fn map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    (0..n).into_par_iter().map(&f).collect()
}

/// `f(i, part)` for every part, results in order.
pub(crate) fn map_parts<P: Send, T: Send>(
    parts: Vec<P>,
    f: impl Fn(usize, P) -> T + Sync,
) -> Vec<T> {
    parts
        .into_par_iter()
        .enumerate()
        .map(|(i, part)| f(i, part))
        .collect()
}

/// `f(block, range)` for every block of `size` consecutive items out of `n`, results in order.
pub(crate) fn map_blocks<T: Send>(
    n: usize,
    size: usize,
    f: impl Fn(usize, Range<usize>) -> T + Sync,
) -> Vec<T> {
    map(n.div_ceil(size), |b| {
        f(b, b * size..((b + 1) * size).min(n))
    })
}

/// `f(block, range, chunk)` for every block of `size` items of `out`, results in order.
pub(crate) fn map_chunks<U: Send, T: Send>(
    out: &mut [U],
    size: usize,
    f: impl Fn(usize, Range<usize>, &mut [U]) -> T + Sync,
) -> Vec<T> {
    out.par_chunks_mut(size)
        .enumerate()
        .map(|(b, chunk)| f(b, b * size..b * size + chunk.len(), chunk))
        .collect()
}

/// What `work` returns on a pool of so many threads.
pub(crate) fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Things that are made once and used again, by whoever needs one next: what is in them must not matter.
#[derive(Debug)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> Spare<T> {
    /// One of them, if there is any.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().ok()?.pop()
    }

    /// Gives some back.
    pub(crate) fn give(&self, things: impl IntoIterator<Item = T>) {
        if let Ok(mut spare) = self.0.lock() {
            spare.extend(things);
        }
    }
}

#[cfg(test)]
mod tests {
    /// Determinism rests on this file alone: no other one may name the thread pool.
    #[test]
    fn only_this_file_names_rayon() {
        fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    visit(&path, found);
                } else if std::fs::read_to_string(&path).unwrap().contains("rayon::") {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        visit(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut found,
        );
        assert_eq!(found, ["parallel.rs"]);
    }
}
