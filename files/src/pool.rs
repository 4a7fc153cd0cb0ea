//! Decoders that wait at a row, so that whoever reads on from there finds them.

use std::sync::{Mutex, PoisonError};

/// Something that reads rows forward.
pub(crate) trait Cursor {
    /// The row that it reads next.
    fn row(&self) -> usize;
}

/// A few cursors that nobody uses now. Each is used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    /// The one that was used last is the last.
    waiting: Mutex<Vec<C>>,
    most: usize,
}

impl<C: Cursor> Pool<C> {
    /// One for each thread that may read, and some more.
    pub(crate) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: Mutex::new(Vec::new()),
            most: threads + 2,
        }
    }

    /// The cursor nearest before this row, but not before `from`.
    pub(crate) fn take(&self, from: usize, row: usize) -> Option<C> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let near = |cursor: &C| (from..=row).contains(&cursor.row());
        let nearest = (0..waiting.len()).filter(|i| near(&waiting[*i]));
        let nearest = nearest.max_by_key(|i| waiting[*i].row())?;
        Some(waiting.remove(nearest))
    }

    /// Leaves a cursor where it is.
    pub(crate) fn give(&self, cursor: C) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.most {
            waiting.remove(0);
        }
        waiting.push(cursor);
    }
}
