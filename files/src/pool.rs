//! Decoders that wait at a row, so that whoever reads on from there finds them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Something that reads rows forward.
pub(crate) trait Cursor: Send + 'static {
    /// The row that it reads next.
    fn row(&self) -> usize;
}

/// A few cursors that nobody uses now. Each is used by one thread at a time.
///
/// A cursor holds decoded rows. Therefore only the files that were read last keep theirs: one file for each thread.
pub(crate) struct Pool<C> {
    /// The one that was used last is the last.
    waiting: Arc<Mutex<Vec<C>>>,
}

/// The pools of all files with cursors, the one that was read last at the end.
static READ: Mutex<Vec<Weak<dyn Clear>>> = Mutex::new(Vec::new());

/// Cursors of any type, which can be dropped.
trait Clear: Send + Sync {
    fn clear(&self);
}

impl<C: Send> Clear for Mutex<Vec<C>> {
    fn clear(&self) {
        lock(self).clear();
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl<C: Cursor> Pool<C> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Arc::default(),
        }
    }

    /// The cursor nearest before this row, but not before `from`.
    pub(crate) fn take(&self, from: usize, row: usize) -> Option<C> {
        let mut waiting = lock(&self.waiting);
        let near = |cursor: &C| (from..=row).contains(&cursor.row());
        let nearest = (0..waiting.len()).filter(|i| near(&waiting[*i]));
        let nearest = nearest.max_by_key(|i| waiting[*i].row())?;
        Some(waiting.remove(nearest))
    }

    /// Leaves a cursor where it is: one for each thread that may read, and some more.
    pub(crate) fn give(&self, cursor: C) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= threads() + 2 {
            waiting.remove(0);
        }
        waiting.push(cursor);
        drop(waiting);
        let own = Arc::downgrade(&self.waiting) as Weak<dyn Clear>;
        let mut read = lock(&READ);
        read.retain(|other| !other.ptr_eq(&own) && other.strong_count() > 0);
        read.push(own);
        if read.len() > threads() {
            let oldest = read.remove(0).upgrade();
            oldest.inspect(|cursors| cursors.clear());
        }
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At(usize, #[expect(dead_code, reason = "counts")] Arc<()>);

    impl Cursor for At {
        fn row(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn only_files_that_were_read_last_keep_cursors() {
        let counted = Arc::new(());
        let pools: Vec<Pool<At>> = (0..5 * threads()).map(|_| Pool::new()).collect();
        for (row, pool) in pools.iter().enumerate() {
            pool.give(At(row, Arc::clone(&counted)));
            pool.give(At(row, Arc::clone(&counted)));
        }
        // Other tests read files meanwhile.
        assert!(Arc::strong_count(&counted) <= 1 + 2 * threads());
        assert!(pools[0].take(0, 0).is_none());
    }
}
