//! Reading ahead: the next rows are read and decoded while the ones before are computed with.

use coremix::data::Source;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A [`Source`] whose next rows are read by a thread of its own, where rows are asked for one after the other.
///
/// Several threads can read at once, each from a place of its own: each such sequence is followed. Rows in any other order
/// are read as without. Two pieces are kept ready for each of 16 sequences at most. A piece is as many rows as fit into
/// 512 KiB, so the pieces need 16 MiB at most (more only where one row is larger than a piece).
///
/// The rows are those of the source, bit for bit. A piece that could not be read ahead is read again when it is asked for,
/// so that its error goes where it belongs. Dropping it ends the thread, after the piece that it reads.
///
/// It pays where reading a block takes about as long as computing with it, and a processor is free for the thread.
///
/// ```
/// use coremix::data::Blocks;
/// use coremix::prelude::*;
/// use coremix_files::{NpyFile, ReadAhead};
///
/// # let path = std::env::temp_dir().join(format!("coremix-ahead-{}.npy", std::process::id()));
/// # let mut bytes = b"\x93NUMPY\x01\x00\x38\x00".to_vec();
/// # bytes.extend(b"{'descr':'|u1','fortran_order':False,'shape':(6, 1), } \n");
/// # bytes.extend([1, 2, 3, 41, 42, 43]);
/// # std::fs::write(&path, bytes).expect("a file");
/// let data = Blocks::new(ReadAhead::new(NpyFile::<u8>::open(&path)?))?;
/// # std::fs::remove_file(&path).expect("it is there");
/// let fit = algorithms::k_means(2).build()?.fit(&data)?;
/// assert_eq!(fit.model.predict(&data)?.len(), 6);
/// # Ok::<(), Error>(())
/// ```
pub struct ReadAhead<S: Source> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Source + fmt::Debug> fmt::Debug for ReadAhead<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead")
            .field("source", &self.shared.source)
            .field("piece", &self.shared.piece)
            .finish()
    }
}

/// Bytes of a piece.
const PIECE: usize = 1 << 19;
/// Pieces that are kept ready in each sequence.
const AHEAD: usize = 2;
/// Sequences that are followed.
const SEQUENCES: usize = 16;

struct Shared<S: Source> {
    source: S,
    /// Rows of a piece.
    piece: usize,
    state: Mutex<State<S::Element>>,
    /// There is something to read, or it is the end.
    work: Condvar,
    /// A piece is ready.
    ready: Condvar,
}

struct State<T> {
    sequences: Vec<Sequence<T>>,
    /// Counts the reads, and numbers the sequences.
    clock: u64,
    ended: bool,
    /// Places of pieces that nobody needs any more.
    spare: Vec<Vec<T>>,
}

/// Rows that are read one after the other.
struct Sequence<T> {
    id: u64,
    /// The row after the last one that was asked for.
    next: usize,
    /// When it was last read.
    used: u64,
    /// Neighbours, from row `next` on or before it.
    pieces: Vec<Piece<T>>,
}

struct Piece<T> {
    first: usize,
    rows: usize,
    content: Content<T>,
}

enum Content<T> {
    /// Not begun.
    Wanted,
    /// The thread reads it.
    Reading,
    Ready(Vec<T>),
    /// It could not be read.
    Failed,
}

impl<T> Piece<T> {
    fn end(&self) -> usize {
        self.first + self.rows
    }
}

impl<S: Source> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, State<S::Element>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Source + Send + 'static> ReadAhead<S> {
    /// Starts the thread. It waits until rows are read one after the other.
    ///
    /// Where no thread can be started, rows are read as without.
    pub fn new(source: S) -> Self {
        let row = source.dim().max(1).saturating_mul(size_of::<S::Element>());
        Self::in_pieces(source, (PIECE / row).max(1))
    }

    /// With pieces of so many rows.
    fn in_pieces(source: S, piece: usize) -> Self {
        let shared = Arc::new(Shared {
            source,
            piece,
            state: Mutex::new(State {
                sequences: Vec::new(),
                clock: 0,
                ended: false,
                spare: Vec::new(),
            }),
            work: Condvar::new(),
            ready: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("coremix-read-ahead".into());
        let thread = thread.spawn(move || of_thread.read_ahead()).ok();
        Self { shared, thread }
    }

    /// The source of the rows.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.shared.source
    }
}

impl<S: Source> Drop for ReadAhead<S> {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.take() {
            // What the thread has met was caught.
            thread.join().ok();
        }
    }
}

impl<S: Source> Shared<S> {
    /// What the thread does.
    fn read_ahead(&self) {
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            let Some((id, first, rows)) = state.begin() else {
                let woken = self.work.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let mut values = state.spare.pop().unwrap_or_default();
            drop(state);
            values.resize(rows * self.source.dim(), Default::default());
            let read = || self.source.read(first, &mut values);
            let read = catch_unwind(AssertUnwindSafe(read));
            state = self.lock();
            let content = match read {
                Ok(Ok(())) => Content::Ready(values),
                _ => Content::Failed,
            };
            state.put(id, first, content);
            self.ready.notify_all();
        }
    }

    /// Fills `out` from what was read ahead, and from the source where there is nothing.
    fn read(&self, first: usize, out: &mut [S::Element], thread: bool) -> io::Result<()> {
        let dim = self.source.dim();
        let rows = out.len().checked_div(dim).unwrap_or(0);
        let end = first
            .checked_add(rows)
            .filter(|end| *end <= self.source.len());
        let whole = rows.checked_mul(dim) == Some(out.len());
        let (true, true, Some(end)) = (thread && rows > 0, whole, end) else {
            return self.source.read(first, out);
        };
        let mut state = self.lock();
        state.clock += 1;
        let Some(id) = state.following(first) else {
            drop(state);
            self.source.read(first, out)?;
            self.lock().follow(end);
            return Ok(());
        };
        let mut at = first;
        while at < end {
            let (from, to) = ((at - first) * dim, (end - first) * dim);
            match state.piece(id, at) {
                Some(Piece {
                    content: Content::Reading,
                    ..
                }) => {
                    let woken = self.ready.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
                Some(Piece {
                    first: piece,
                    rows,
                    content: Content::Ready(values),
                }) => {
                    let rows = at - *piece..(end - *piece).min(*rows);
                    at += rows.len();
                    let values = &values[rows.start * dim..rows.end * dim];
                    out[from..from + values.len()].copy_from_slice(values);
                }
                other => {
                    // Not begun, failed, or more than is read ahead: it takes no longer to read it here.
                    let known = other.map_or(end, |piece| piece.end().min(end));
                    let known = if known > at { known } else { end };
                    let to = to.min((known - first) * dim);
                    state.forget(id, at);
                    drop(state);
                    self.source.read(at, &mut out[from..to])?;
                    at = known;
                    state = self.lock();
                }
            }
        }
        if state.advance(id, end, self.piece, self.source.len()) {
            self.work.notify_one();
        }
        Ok(())
    }
}

impl<T> State<T> {
    fn sequence(&mut self, id: u64) -> Option<&mut Sequence<T>> {
        self.sequences.iter_mut().find(|sequence| sequence.id == id)
    }

    /// The sequence that goes on with this row.
    fn following(&mut self, row: usize) -> Option<u64> {
        let clock = self.clock;
        let found = self.sequences.iter_mut().find(|s| s.next == row)?;
        found.used = clock;
        Some(found.id)
    }

    /// From now on, reads that begin with this row are a sequence.
    fn follow(&mut self, next: usize) {
        if self.sequences.iter().any(|sequence| sequence.next == next) {
            return;
        }
        if self.sequences.len() >= SEQUENCES {
            // Those that were not gone on with come first.
            let used = |i: &usize| {
                let sequence = &self.sequences[*i];
                (!sequence.pieces.is_empty(), sequence.used)
            };
            if let Some(oldest) = (0..self.sequences.len()).min_by_key(used) {
                let oldest = self.sequences.swap_remove(oldest);
                oldest.pieces.into_iter().for_each(|piece| self.keep(piece));
            }
        }
        self.clock += 1;
        self.sequences.push(Sequence {
            id: self.clock,
            next,
            used: self.clock,
            pieces: Vec::new(),
        });
    }

    /// The piece with this row.
    fn piece(&mut self, id: u64, row: usize) -> Option<&Piece<T>> {
        let mut pieces = self.sequence(id)?.pieces.iter();
        pieces.find(|piece| piece.first <= row && row < piece.end())
    }

    /// The piece with this row is not read ahead any more.
    fn forget(&mut self, id: u64, row: usize) {
        if let Some(sequence) = self.sequence(id) {
            sequence
                .pieces
                .retain(|piece| row < piece.first || piece.end() <= row);
        }
    }

    /// Keeps the place of a piece for others.
    fn keep(&mut self, piece: Piece<T>) {
        if let Content::Ready(values) = piece.content
            && self.spare.len() < AHEAD
        {
            self.spare.push(values);
        }
    }

    /// The rows of a sequence were read up to this one: what comes next is wanted. Whether there is something to read.
    fn advance(&mut self, id: u64, next: usize, piece: usize, len: usize) -> bool {
        let Some(sequence) = self.sequence(id) else {
            return false;
        };
        sequence.next = next;
        let (done, pieces) = std::mem::take(&mut sequence.pieces)
            .into_iter()
            .partition(|piece| piece.end() <= next);
        sequence.pieces = pieces;
        let mut wanted = false;
        let mut end = sequence.pieces.last().map_or(next, Piece::end);
        while sequence.pieces.len() < AHEAD && end < len {
            let (first, rows) = (end, piece.min(len - end));
            end += rows;
            wanted = true;
            let content = Content::Wanted;
            sequence.pieces.push(Piece {
                first,
                rows,
                content,
            });
        }
        let done: Vec<_> = done;
        done.into_iter().for_each(|piece| self.keep(piece));
        wanted
    }

    /// Begins the piece that will be asked for next: one of the sequence that has the fewest ready.
    fn begin(&mut self) -> Option<(u64, usize, usize)> {
        let mut found: Option<(usize, u64, &mut Piece<T>)> = None;
        for Sequence { id, pieces, .. } in &mut self.sequences {
            let wanted = |piece: &Piece<T>| matches!(piece.content, Content::Wanted);
            let Some(place) = pieces.iter().position(wanted) else {
                continue;
            };
            if found.as_ref().is_none_or(|(before, ..)| place < *before) {
                found = Some((place, *id, &mut pieces[place]));
            }
        }
        let (_, id, piece) = found?;
        piece.content = Content::Reading;
        Some((id, piece.first, piece.rows))
    }

    /// A piece was read; nothing is done if it was given up meanwhile.
    fn put(&mut self, id: u64, first: usize, content: Content<T>) {
        let piece = self.sequence(id).and_then(|sequence| {
            let mut pieces = sequence.pieces.iter_mut();
            pieces.find(|piece| piece.first == first && matches!(piece.content, Content::Reading))
        });
        if let Some(piece) = piece {
            piece.content = content;
        }
    }
}

impl<S: Source + Send> Source for ReadAhead<S> {
    type Element = S::Element;

    fn name(&self) -> &'static str {
        self.shared.source.name()
    }

    fn len(&self) -> usize {
        self.shared.source.len()
    }

    fn dim(&self) -> usize {
        self.shared.source.dim()
    }

    fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
        self.shared.read(first, out, self.thread.is_some())
    }
}
