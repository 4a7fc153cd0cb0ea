//! Short rows side by side: a loop over rows becomes vectors, and nothing is added up across lanes.

use crate::base::float::Float;

/// Rows side by side.
pub(crate) const ROWS: usize = 64;

/// The rows that are loaded, or compared, at once.
pub(crate) const PIECE: usize = 16;

/// Some rows of `D` numbers by coordinate. Vectors that lie across two lines of the cache take twice as long to read.
#[repr(align(64))]
pub(crate) struct Columns<F, const D: usize>(pub(crate) [[F; ROWS]; D]);

impl<F: Float, const D: usize> Columns<F, D> {
    pub(crate) fn new() -> Self {
        Self([[F::zero(); ROWS]; D])
    }

    /// Takes up to [`ROWS`] rows, each number as `of` makes it from its column and itself. Places without a row stay as they
    /// are.
    #[inline(always)]
    pub(crate) fn take(&mut self, rows: &[[F; D]], of: impl Fn(usize, F) -> F) {
        let Self(columns) = self;
        // A constant number of rows, where there are as many: such loops become vectors. It is small, for they are written out.
        let (pieces, rest) = rows.as_chunks::<PIECE>();
        for (piece, rows) in pieces.iter().enumerate() {
            for j in 0..D {
                let column = &mut columns[j].as_chunks_mut::<PIECE>().0[piece];
                for r in 0..PIECE {
                    column[r] = of(j, rows[r][j]);
                }
            }
        }
        let first = pieces.len() * PIECE;
        for (r, row) in rest.iter().enumerate() {
            for j in 0..D {
                columns[j][first + r] = of(j, row[j]);
            }
        }
    }
}
