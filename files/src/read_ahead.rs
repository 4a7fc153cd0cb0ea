//! Reading ahead: the next rows are read and decoded while the ones before are computed with.

use crate::fault::rows_asked_for;
use coremix::data::Source;
use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A [`Source`] whose next rows are read by a thread of its own, where rows are asked for one after the other.
///
/// Several threads can read at once, each from a place of its own: 16 such sequences are followed. Rows in any other order are
/// read as without. Two pieces are kept ready for each sequence. A piece is as many rows as fit into 512 KiB, so the pieces
/// need 16 MiB at most (more only where one row is larger than a piece).
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
/// Pieces that are kept ready for each sequence.
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
    /// The row after the last one that was asked for, of each sequence: the one that was read last is the last.
    ends: Vec<usize>,
    /// Pieces that will be asked for, or were and could not be read: the newest is the last.
    pieces: Vec<Piece<T>>,
    ended: bool,
    /// Places of pieces that nobody needs any more.
    spare: Vec<Vec<T>>,
}

struct Piece<T> {
    rows: Range<usize>,
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

impl<S: Source + Send + 'static> ReadAhead<S> {
    /// Starts the thread. It waits until rows are read one after the other.
    ///
    /// Where no thread can be started, rows are read as without.
    pub fn new(source: S) -> Self {
        let row = source.dim().max(1).saturating_mul(size_of::<S::Element>());
        let shared = Arc::new(Shared {
            source,
            piece: (PIECE / row).max(1),
            state: Mutex::new(State {
                ends: Vec::new(),
                pieces: Vec::new(),
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
    fn lock(&self) -> MutexGuard<'_, State<S::Element>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does.
    fn read_ahead(&self) {
        let mut state = self.lock();
        while !state.ended {
            let Some(piece) = state.next() else {
                let woken = self.work.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            piece.content = Content::Reading;
            let rows = piece.rows.clone();
            let mut values = state.spare.pop().unwrap_or_default();
            drop(state);
            values.resize(rows.len() * self.source.dim(), Default::default());
            let read = || self.source.read(rows.start, &mut values);
            let read = catch_unwind(AssertUnwindSafe(read));
            state = self.lock();
            // Nobody needs it if it was given up meanwhile.
            let same = |piece: &&mut Piece<_>| piece.rows == rows;
            if let Some(piece) = state.pieces.iter_mut().find(same) {
                piece.content = match read {
                    Ok(Ok(())) => Content::Ready(values),
                    _ => Content::Failed,
                };
            }
            self.ready.notify_all();
        }
    }

    /// Fills `out` from what was read ahead, and from the source where there is nothing.
    fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
        let (len, dim) = (self.source.len(), self.source.dim());
        let rows = match rows_asked_for(first, out.len(), [len, dim]) {
            Ok(rows) if rows > 0 => first..first + rows,
            _ => return self.source.read(first, out),
        };
        let mut state = self.lock();
        let known = state.ends.iter().position(|end| *end == first);
        let Some(known) = known else {
            drop(state);
            self.source.read(first, out)?;
            self.lock().follow(rows.end);
            return Ok(());
        };
        state.ends.remove(known);
        let mut at = first;
        while at < rows.end {
            let place = |row: usize| (row - first) * dim;
            let found = state
                .pieces
                .iter()
                .position(|piece| piece.rows.contains(&at));
            let to = match found.map(|found| &state.pieces[found]) {
                Some(Piece {
                    rows: piece,
                    content,
                }) => match content {
                    Content::Reading => {
                        let woken = self.ready.wait(state);
                        state = woken.unwrap_or_else(PoisonError::into_inner);
                        continue;
                    }
                    Content::Ready(values) => {
                        let to = piece.end.min(rows.end);
                        let values = &values[(at - piece.start) * dim..(to - piece.start) * dim];
                        out[place(at)..place(to)].copy_from_slice(values);
                        at = to;
                        continue;
                    }
                    Content::Wanted | Content::Failed => piece.end,
                },
                None => {
                    let next = state.pieces.iter().map(|piece| piece.rows.start);
                    next.filter(|next| *next > at).min().unwrap_or(rows.end)
                }
            };
            // It takes no longer to read it here.
            let to = to.min(rows.end);
            let wanted = |piece: &Piece<_>| matches!(piece.content, Content::Wanted);
            if let Some(found) = found.filter(|found| wanted(&state.pieces[*found])) {
                state.pieces.remove(found);
            }
            drop(state);
            self.source.read(at, &mut out[place(at)..place(to)])?;
            at = to;
            state = self.lock();
        }
        state.follow(rows.end);
        state.pass(&rows);
        state.want(rows.end, self.piece, len);
        if state.next().is_some() {
            self.work.notify_one();
        }
        Ok(())
    }
}

impl<T> State<T> {
    /// From now on, reads that begin with this row are a sequence.
    fn follow(&mut self, end: usize) {
        if !self.ends.contains(&end) {
            self.ends.push(end);
        }
        if self.ends.len() > SEQUENCES {
            self.ends.remove(0);
        }
    }

    /// The piece that is read next: one that a sequence has come to, if there is any.
    fn next(&mut self) -> Option<&mut Piece<T>> {
        let ends = &self.ends;
        let wanted = self.pieces.iter_mut();
        let wanted = wanted.filter(|piece| matches!(piece.content, Content::Wanted));
        wanted.min_by_key(|piece| !ends.iter().any(|end| piece.rows.contains(end)))
    }

    /// Drops the pieces that end within these rows.
    fn pass(&mut self, rows: &Range<usize>) {
        let passed = |piece: &Piece<T>| rows.start < piece.rows.end && piece.rows.end <= rows.end;
        while let Some(passed) = self.pieces.iter().position(passed) {
            self.drop(passed);
        }
    }

    fn drop(&mut self, place: usize) {
        if let Content::Ready(values) = self.pieces.remove(place).content
            && self.spare.len() < AHEAD
        {
            self.spare.push(values);
        }
    }

    /// The pieces from this row on are wanted.
    fn want(&mut self, mut row: usize, piece: usize, len: usize) {
        for _ in 0..AHEAD {
            let known = self.pieces.iter().find(|piece| piece.rows.contains(&row));
            let end = match known {
                Some(known) => known.rows.end,
                None if row == len => return,
                None => {
                    let (end, content) = (len.min(row + piece), Content::Wanted);
                    let rows = row..end;
                    self.pieces.push(Piece { rows, content });
                    end
                }
            };
            row = end;
        }
        // Those of sequences that were not gone on with.
        let is_reading = |piece: &Piece<T>| matches!(piece.content, Content::Reading);
        while self.pieces.len() > AHEAD * SEQUENCES {
            match self.pieces.iter().position(|piece| !is_reading(piece)) {
                Some(oldest) => self.drop(oldest),
                None => return,
            }
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
        match self.thread {
            Some(_) => self.shared.read(first, out),
            None => self.shared.source.read(first, out),
        }
    }
}
