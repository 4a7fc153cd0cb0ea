//! The only file that knows about the threads that compute.
//!
//! Work is cut by the shape of the data, never by the number of threads, and results come back in order:
//! that is all it takes for the same bits on any pool. The caller's rayon pool is used.

use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Rows in a block where the number of components does not matter.
pub(crate) const BLOCK: usize = 512;

/// `f(0), .., f(n - 1)`, in any order: the one place where work spreads over threads. Not generic, so that rayon is compiled
/// once, and not for every closure of the crate. One part wakes no other thread.
fn each(n: usize, f: &(dyn Fn(usize) + Sync)) {
    if n == 1 || ALONE.get() {
        (0..n).for_each(f)
    } else {
        (0..n).into_par_iter().for_each(f)
    }
}

/// As above, of whole tasks: each is worked on by one thread alone.
fn tasks(n: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().for_each(|i| alone(|| f(i)));
}

/// A task that this thread does alone, as one must that others may wait for.
pub(crate) fn alone<T>(task: impl FnOnce() -> T) -> T {
    let before = ALONE.replace(true);
    let done = task();
    ALONE.set(before);
    done
}

thread_local! {
    /// Whether this thread works alone on a whole task.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Rows from which on a pass over them keeps several threads busy.
const MANY_ROWS: usize = 1 << 16;

/// Whether each of `n` fits of this many rows gets a thread of its own. On few rows a pass is too short to be worth sharing.
/// On many rows, or with fewer fits than threads, one fit after the other has all threads, and takes the memory of one fit.
pub(crate) fn fits_apart(n: usize, rows: usize) -> bool {
    n > 1 && n >= rayon::current_num_threads() && rows < MANY_ROWS && !ALONE.get()
}

/// How many of `n` fits of this many rows run at the same time.
pub(crate) fn fits_beside(n: usize, rows: usize) -> usize {
    if fits_apart(n, rows) { threads() } else { 1 }
}

/// `f(0), .., f(n - 1)` in order, where each is a whole fit of this many rows.
pub(crate) fn map_fits<T: Send>(n: usize, rows: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if !fits_apart(n, rows) {
        return (0..n).map(f).collect();
    }
    let results = slots(n);
    tasks(n, &|i| put(&results[i], f(i)));
    taken(&results)
}

/// A place that one thread fills or empties.
type Slot<T> = Mutex<Option<T>>;

fn put<T>(slot: &Slot<T>, value: T) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn take<T>(slot: &Slot<T>) -> T {
    let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.expect("filled once, and taken once")
}

fn slots<T>(n: usize) -> Vec<Slot<T>> {
    let mut slots = Vec::new();
    slots.resize_with(n, Slot::default);
    slots
}

fn taken<T>(slots: &[Slot<T>]) -> Vec<T> {
    let mut values = Vec::with_capacity(slots.len());
    for slot in slots {
        values.push(take(slot));
    }
    values
}

/// The results of all parts, or the first error in their order.
pub(crate) fn all<T, E>(parts: Vec<Result<T, E>>) -> Result<Vec<T>, E> {
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        values.push(part?);
    }
    Ok(values)
}

/// The results of all parts as one list, or the first error in their order.
pub(crate) fn joined<T, E>(parts: Vec<Result<Vec<T>, E>>) -> Result<Vec<T>, E> {
    let mut values = Vec::new();
    for part in parts {
        values.append(&mut part?);
    }
    Ok(values)
}

/// `f(0), .., f(n - 1)` in order.
pub(crate) fn map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_numbers(n, &|numbers, results| {
        for i in numbers {
            results.push(f(i));
        }
    })
}

/// Some numbers, and the results of which they are those of the next.
type Fill<'a, T> = &'a (dyn Fn(Range<usize>, &mut Vec<T>) + Sync);

/// As [`map`]: all of it that does not depend on the function, compiled once for each type of results.
fn map_numbers<T: Send>(n: usize, fill: Fill<'_, T>) -> Vec<T> {
    /// Parts, at most: a place of its own for each of very many numbers would cost more than the work.
    const PARTS: usize = 256;
    let size = n.div_ceil(PARTS).max(1);
    let parts = slots(n.div_ceil(size));
    each(parts.len(), &|part| {
        let numbers = part * size..n.min((part + 1) * size);
        let mut results = Vec::with_capacity(numbers.len());
        fill(numbers, &mut results);
        put(&parts[part], results);
    });
    let mut joined = Vec::with_capacity(n);
    for part in &parts {
        joined.append(&mut take(part));
    }
    joined
}

/// `f(i, part)` for every part, results in order.
pub(crate) fn map_parts<P: Send, T: Send>(
    parts: Vec<P>,
    f: impl Fn(usize, P) -> T + Sync,
) -> Vec<T> {
    map_slots(parts, &f)
}

/// As [`map_parts`]: compiled once for each type of parts and results.
fn map_slots<P: Send, T: Send>(parts: Vec<P>, f: &(dyn Fn(usize, P) -> T + Sync)) -> Vec<T> {
    let waiting = slots(parts.len());
    for (slot, part) in waiting.iter().zip(parts) {
        put(slot, part);
    }
    let results = slots(waiting.len());
    each(waiting.len(), &|i| {
        put(&results[i], f(i, take(&waiting[i])))
    });
    taken(&results)
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
    map_parts(out.chunks_mut(size).collect(), |b, chunk| {
        f(b, b * size..b * size + chunk.len(), chunk)
    })
}

/// Sorts items by numbers, all of them different.
pub(crate) fn sort_by_key<T: Send>(items: &mut [T], number: impl Fn(&T) -> usize + Sync) {
    if ALONE.get() {
        items.sort_unstable_by_key(number)
    } else {
        items.par_sort_unstable_by_key(number)
    }
}

/// Threads of the pool that work runs on here.
pub(crate) fn threads() -> usize {
    rayon::current_num_threads()
}

/// The result of `work` on a pool of this many threads.
pub(crate) fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Things that are made once and reused: what they contain must not matter.
#[derive(Debug)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> Spare<T> {
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().ok()?.pop()
    }

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
        fn visit(folder: &std::path::Path, names: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    visit(&path, names);
                } else if std::fs::read_to_string(&path).unwrap().contains("rayon::") {
                    names.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut names = Vec::new();
        visit(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut names,
        );
        assert_eq!(names, ["parallel.rs"]);
    }
}
