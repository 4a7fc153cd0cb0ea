//! Reading ahead: the next rows are read and decoded while the ones before are computed with.

use crate::fault::rows_asked_for;
use coremix::data::{Lists, Source};
use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
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
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix_files::{NpyFile, ReadAhead};
///
/// let data = Blocks::new(ReadAhead::new(NpyFile::<u8>::open("points.npy")?))?;
/// # Ok::<(), coremix::Error>(())
/// ```
pub struct ReadAhead<S: Source> {
    source: Arc<S>,
    /// Rows of a piece.
    piece: usize,
    state: Mutex<State<S::Element>>,
    /// Pieces for the thread, which ends when this is dropped.
    wanted: Option<Sender<Weak<Piece<S::Element>>>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Source + fmt::Debug> fmt::Debug for ReadAhead<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead")
            .field("source", &self.source)
            .field("piece", &self.piece)
            .finish()
    }
}

/// Bytes of a piece.
const PIECE: usize = 1 << 19;
/// Pieces that are kept ready for each sequence.
const AHEAD: usize = 2;
/// Sequences that are followed.
const SEQUENCES: usize = 16;

struct State<T> {
    /// The row after the last one that was asked for, of each sequence: the one that was read last is the last.
    ends: Vec<usize>,
    /// Pieces that will be asked for: the newest is the last.
    pieces: Vec<Arc<Piece<T>>>,
}

struct Piece<T> {
    rows: Range<usize>,
    /// Read by whoever comes first, while others wait; `None` if it could not be read.
    values: OnceLock<Option<Vec<T>>>,
}

impl<T: coremix::Element> Piece<T> {
    fn values(&self, source: &impl Source<Element = T>) -> Option<&[T]> {
        let read = || {
            let mut values = vec![T::default(); self.rows.len() * source.dim()];
            let read = catch_unwind(AssertUnwindSafe(|| {
                source.read(self.rows.start, &mut values)
            }));
            matches!(read, Ok(Ok(()))).then_some(values)
        };
        self.values.get_or_init(read).as_deref()
    }
}

impl<S: Source + Send + 'static> ReadAhead<S> {
    /// Starts the thread. It waits until rows are read one after the other.
    ///
    /// Where no thread can be started, rows are read by those who ask for them.
    pub fn new(source: S) -> Self {
        let row = source.dim().max(1).saturating_mul(size_of::<S::Element>());
        let source = Arc::new(source);
        let (wanted, pieces): (_, Receiver<Weak<Piece<_>>>) = mpsc::channel();
        let of_thread = Arc::clone(&source);
        let work = move || {
            // Pieces that were given up meanwhile are gone.
            for piece in pieces.iter().filter_map(|piece| piece.upgrade()) {
                piece.values(&*of_thread);
            }
        };
        let thread = thread::Builder::new().name("coremix-read-ahead".into());
        Self {
            source,
            piece: (PIECE / row).max(1),
            state: Mutex::new(State {
                ends: Vec::new(),
                pieces: Vec::new(),
            }),
            wanted: Some(wanted),
            thread: thread.spawn(work).ok(),
        }
    }

    /// The source of the rows.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for ReadAhead<S> {
    fn drop(&mut self) {
        self.state().pieces.clear();
        self.wanted = None;
        if let Some(thread) = self.thread.take() {
            // The thread has caught all panics.
            thread.join().ok();
        }
    }
}

impl<S: Source> ReadAhead<S> {
    fn state(&self) -> MutexGuard<'_, State<S::Element>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the rows of a sequence: from pieces, where there are some.
    fn read_next(&self, rows: &Range<usize>, out: &mut [S::Element]) -> io::Result<()> {
        let mut at = rows.start;
        let dim = self.source.dim();
        while at < rows.end {
            let piece = self.state().find(at);
            let to = piece
                .as_ref()
                .map_or(rows.end, |piece| piece.rows.end)
                .min(rows.end);
            let out = &mut out[(at - rows.start) * dim..(to - rows.start) * dim];
            let ready = piece.as_ref();
            match ready.and_then(|piece| Some((piece.rows.start, piece.values(&*self.source)?))) {
                Some((start, values)) => {
                    out.copy_from_slice(&values[(at - start) * dim..][..out.len()])
                }
                // An error is that of the rows that were asked for.
                None => self.source.read(at, out)?,
            }
            at = to;
        }
        Ok(())
    }

    /// Gives up the pieces that end within these rows, and wants those that follow.
    fn want(&self, rows: &Range<usize>) {
        let mut state = self.state();
        let mut row = rows.end;
        let passed = rows.start + 1..=rows.end;
        state
            .pieces
            .retain(|piece| !passed.contains(&piece.rows.end));
        for _ in 0..AHEAD {
            if let Some(known) = state.find(row) {
                row = known.rows.end;
            } else if row < self.source.len() {
                let rows = row..self.source.len().min(row + self.piece);
                let values = OnceLock::new();
                row = rows.end;
                let piece = Arc::new(Piece { rows, values });
                if let Some(wanted) = &self.wanted {
                    wanted.send(Arc::downgrade(&piece)).ok();
                }
                state.pieces.push(piece);
            }
        }
        // Sequences that were not gone on with.
        let most = AHEAD * SEQUENCES;
        let left = state.pieces.len().saturating_sub(most);
        state.pieces.drain(..left);
    }
}

impl<T> State<T> {
    /// The piece with this row.
    fn find(&self, row: usize) -> Option<Arc<Piece<T>>> {
        let mut pieces = self.pieces.iter();
        pieces.find(|piece| piece.rows.contains(&row)).cloned()
    }

    /// Whether a sequence goes on at this row. It is followed from there no longer.
    fn goes_on_at(&mut self, row: usize) -> bool {
        let known = self.ends.iter().position(|end| *end == row);
        known.map(|known| self.ends.remove(known)).is_some()
    }

    /// From now on, reads that begin with this row are a sequence.
    fn follow(&mut self, end: usize) {
        self.ends.retain(|other| *other != end);
        self.ends.push(end);
        if self.ends.len() > SEQUENCES {
            self.ends.remove(0);
        }
    }
}

impl<S: Source + Send> Source for ReadAhead<S> {
    type Element = S::Element;

    fn name(&self) -> &'static str {
        self.source.name()
    }

    fn len(&self) -> usize {
        self.source.len()
    }

    fn dim(&self) -> usize {
        self.source.dim()
    }

    fn may_miss(&self) -> bool {
        self.source.may_miss()
    }

    fn lists(&self) -> Option<Lists<'_, S::Element>> {
        self.source.lists()
    }

    fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
        let rows = rows_asked_for(first, out.len(), [self.len(), self.dim()]);
        let rows = match rows {
            Ok(rows) if rows > 0 => first..first + rows,
            _ => return self.source.read(first, out),
        };
        let known = self.state().goes_on_at(first);
        if known {
            self.read_next(&rows, out)?
        } else {
            self.source.read(first, out)?
        }
        self.state().follow(rows.end);
        if known {
            self.want(&rows);
        }
        Ok(())
    }
}
