//! Decoders that wait at a row, so that whoever reads on from there finds them.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that reads rows forward.
pub(crate) trait Cursor: Send + 'static {
    /// The row that it reads next.
    fn row(&self) -> usize;
}

/// The cursors of a file. Each is used by one thread at a time.
///
/// A cursor holds decoded rows. Therefore those of all files are counted together: they take [`MOST`] bytes, or there are
/// [`few`] of them.
pub(crate) struct Pool<C> {
    /// Its number among all pools.
    id: u64,
    /// Bytes of a cursor, at most.
    bytes: u64,
    of: PhantomData<fn() -> C>,
}

/// The cursors of all files.
struct Cursors {
    /// The one that was used last is the last.
    waiting: VecDeque<Waiting>,
    /// Number and bytes of those that are used now.
    used: usize,
    bytes: u64,
}

struct Waiting {
    pool: u64,
    row: usize,
    bytes: u64,
    cursor: Box<dyn Any + Send>,
}

/// Bytes that cursors may take together, however many there are.
const MOST: u64 = 32 << 20;

static CURSORS: Mutex<Cursors> = Mutex::new(Cursors {
    waiting: VecDeque::new(),
    used: 0,
    bytes: 0,
});

/// The number of cursors that may wait whatever they take: each thread goes on from one, as far as
/// [`ReadAhead`](crate::ReadAhead) follows them, and one more is read ahead.
fn few() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get().min(16)) + 1
}

/// The threads that may be asked for: more than this machine can use take memory, and minutes to start.
#[doc(hidden)]
#[must_use]
pub fn most_threads() -> usize {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    threads.saturating_mul(8).max(256)
}

/// Bytes that cursors take where one takes this number: while rows are read once, one after the other, or by all threads. For
/// each thread the allocator keeps some of what was freed: of 40 files it was up to one and a half times what is used.
pub(crate) fn bytes_of_cursors(each: u64, once: bool) -> u64 {
    let number = if once { 1 } else { few() as u64 };
    each.saturating_mul(5 * number).div_ceil(2).max(MOST)
}

/// Drops the decoders of all files that wait for whoever reads on. Rows can be read as before: a read that would have gone on
/// with one of them begins anew.
pub fn drop_decoders() {
    let waiting = std::mem::take(&mut cursors().waiting);
    drop(waiting);
}

fn cursors() -> MutexGuard<'static, Cursors> {
    CURSORS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cursors {
    /// Takes out those that were used longest ago, where all together are too many. They are dropped elsewhere.
    #[must_use]
    fn surplus(&mut self) -> Vec<Waiting> {
        let waiting: u64 = self.waiting.iter().map(|one| one.bytes).sum();
        let mut bytes = self.bytes + waiting;
        let mut count = self.used + self.waiting.len();
        let mut surplus = Vec::new();
        while count > few() && (bytes > MOST || count > 4 * few()) {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            (bytes, count) = (bytes - oldest.bytes, count - 1);
            surplus.push(oldest);
        }
        surplus
    }
}

/// A cursor that is used counts until this is dropped.
struct Used(u64);

impl Used {
    fn begin(cursors: &mut Cursors, bytes: u64) -> Self {
        (cursors.used, cursors.bytes) = (cursors.used + 1, cursors.bytes + bytes);
        Self(bytes)
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        let mut cursors = cursors();
        (cursors.used, cursors.bytes) = (cursors.used - 1, cursors.bytes - self.0);
    }
}

impl<C: Cursor> Pool<C> {
    /// A pool of cursors that take this number of bytes each, at most.
    pub(crate) fn new(bytes: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Relaxed),
            // A damaged file can say anything.
            bytes: bytes.min(1 << 40),
            of: PhantomData,
        }
    }

    /// Works with the cursor nearest before this row, but not before `from`, or else with a new one. It waits where the work
    /// leaves it, if the work says that rows follow.
    pub(crate) fn read(
        &self,
        from: usize,
        row: usize,
        make: impl FnOnce() -> io::Result<C>,
        work: impl FnOnce(&mut C) -> io::Result<bool>,
    ) -> io::Result<()> {
        let (taken, used, surplus) = {
            let mut cursors = cursors();
            let taken = cursors.take(self.id, from..=row);
            let used = Used::begin(&mut cursors, self.bytes);
            (taken, used, cursors.surplus())
        };
        drop(surplus);
        let taken = taken.and_then(|cursor| cursor.downcast::<C>().ok());
        let mut cursor = match taken {
            Some(cursor) => cursor,
            None => Box::new(make()?),
        };
        let waits = work(&mut cursor)?;
        drop(used);
        if waits {
            self.give(cursor);
        }
        Ok(())
    }

    /// Leaves a cursor where it is.
    fn give(&self, cursor: Box<C>) {
        let surplus = self.push(&mut cursors(), cursor);
        drop(surplus);
    }

    #[must_use]
    fn push(&self, cursors: &mut Cursors, cursor: Box<C>) -> Vec<Waiting> {
        cursors.waiting.push_back(Waiting {
            pool: self.id,
            row: cursor.row(),
            bytes: self.bytes,
            cursor,
        });
        cursors.surplus()
    }
}

impl<C: Cursor + Clone> Pool<C> {
    /// The cursor at this row, which several threads use, or else a new one.
    pub(crate) fn share(&self, row: usize, make: impl FnOnce() -> C) -> C {
        let mut cursors = cursors();
        let cursor = cursors
            .take(self.id, row..=row)
            .and_then(|cursor| cursor.downcast::<C>().ok())
            .unwrap_or_else(|| Box::new(make()));
        let shared = C::clone(&cursor);
        let surplus = self.push(&mut cursors, cursor);
        drop(cursors);
        drop(surplus);
        shared
    }
}

impl Cursors {
    /// The cursor of a pool that is nearest to the end of these rows.
    fn take(
        &mut self,
        pool: u64,
        rows: std::ops::RangeInclusive<usize>,
    ) -> Option<Box<dyn Any + Send>> {
        let near = |one: &Waiting| one.pool == pool && rows.contains(&one.row);
        let nearest = (0..self.waiting.len()).filter(|i| near(&self.waiting[*i]));
        let nearest = nearest.max_by_key(|i| self.waiting[*i].row)?;
        self.waiting.remove(nearest).map(|one| one.cursor)
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        let is_of_this = |one: &Waiting| one.pool == self.id;
        let mut cursors = cursors();
        let waiting = cursors.waiting.drain(..);
        let (gone, others) = waiting.partition::<VecDeque<_>, _>(is_of_this);
        cursors.waiting = others;
        drop(cursors);
        drop(gone);
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
    use std::sync::Arc;

    #[derive(Clone)]
    struct At(usize, #[expect(dead_code, reason = "counts")] Arc<()>);

    impl Cursor for At {
        fn row(&self) -> usize {
            self.0
        }
    }

    /// Other tests read files meanwhile: they may take places, not make any.
    fn kept(bytes: u64, pools: usize, each: usize) -> (usize, Vec<Pool<At>>) {
        let counted = Arc::new(());
        let pools: Vec<Pool<At>> = (0..pools).map(|_| Pool::new(bytes)).collect();
        for pool in &pools {
            for row in 0..each {
                let make = || Ok(At(row, Arc::clone(&counted)));
                pool.read(row, row, make, |_| Ok(true)).unwrap();
            }
        }
        (Arc::strong_count(&counted) - 1, pools)
    }

    #[test]
    fn large_cursors_are_few_however_many_files_there_are() {
        for (files, each) in [(1, 40), (10, 4), (40, 1), (40, 3)] {
            let (count, _pools) = kept(MOST, files, each);
            assert!(count <= few(), "{count} of {files} files");
        }
    }

    #[test]
    fn small_cursors_wait_in_several_files() {
        let (count, _pools) = kept(1 << 10, 40, 3);
        assert!((1..=4 * few()).contains(&count), "{count}");
    }

    #[test]
    fn cursors_in_use_count() {
        let pool: Pool<At> = Pool::new(MOST);
        let row = Pool::<At>::new(MOST);
        let counted = Arc::new(());
        for at in 0..few() {
            row.give(Box::new(At(at, Arc::clone(&counted))));
        }
        let make = || Ok(At(0, Arc::default()));
        let work = |_: &mut At| {
            // One that waited made room.
            assert!(Arc::strong_count(&counted) - 1 < few());
            Ok(false)
        };
        pool.read(0, 0, make, work).unwrap();
    }

    #[test]
    fn errors_and_panics_give_the_place_back() {
        let pool: Pool<At> = Pool::new(1);
        let make = || Ok(At(0, Arc::default()));
        for _ in 0..100 {
            let wrong = io::Error::other("wrong");
            assert!(pool.read(0, 0, make, |_| Err(wrong)).is_err());
            let work = || pool.read(0, 0, make, |_| panic!("of a decoder"));
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            assert!(caught.is_err());
        }
        assert!(cursors().used < 100);
    }

    #[test]
    fn a_pool_that_is_dropped_leaves_no_cursor() {
        let counted = Arc::new(());
        let pool = Pool::new(1);
        pool.give(Box::new(At(3, Arc::clone(&counted))));
        drop(pool);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn sizes_that_no_file_has_are_no_overflow() {
        let (count, _pools) = kept(u64::MAX, 10, 2);
        assert!(count <= few());
        assert_eq!(bytes_of_cursors(u64::MAX, false), u64::MAX.div_ceil(2));
        assert_eq!(bytes_of_cursors(1, true), MOST);
    }
}
