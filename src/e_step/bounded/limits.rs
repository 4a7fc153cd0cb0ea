//! The numbers by which a bounded search chooses its way: sizes from which on one is faster, and gains that are worth a search.

/// The fields of [`LIMITS`]. They were measured on the data of docs/performance.md, and docs/decisions.md has the values that lost. They
/// change how long a search takes, and how early it finds the nearest centres that lists miss.
pub(crate) struct Limits {
    /// Most centres that the first search packs as one list, about the nearest centre of each row: a neighbour list has as many.
    pub(super) one_list: usize,
    /// Fewest rows of a point, on average, for which it packs all centres about each of a few points: packing takes time as well.
    pub(super) packed_rows: usize,
    /// With more columns packed centres do not stay in the nearest cache, and matrix products are faster.
    pub(super) packed_columns: usize,
    /// Distances to all centres that take as long as one to a centre of a packed list, with more columns.
    pub(super) product_rate: f64,
    /// Length of an inverted list of the first search, per centre on a neighbour list (E40).
    pub(super) wider: usize,
    /// Inverted lists that a centre is on, on average: centres between two points are on the lists of both.
    pub(super) overlap: usize,
    /// Where they miss more than this share of the error, all rows are compared with all centres: iterations by lists would find the
    /// rest late, and from worse centres.
    pub(super) missed: f64,
    /// A sample tells that, where there are this many times as many rows: among fewer it takes too large a part of the time.
    pub(super) sampled: usize,
    /// Rows of a sample, at even steps.
    pub(crate) drawn_rows: usize,
    /// A row is far if its squared distance is at least this many times the mean. At most one row in 16 is far, and these gain most.
    pub(super) far: f64,
    /// Candidates per place of a neighbour list, if the candidates are not all centres.
    pub(super) candidates: usize,
    /// Distances that take as long as a row is gathered, and as a centre is packed.
    pub(super) gathered: f64,
    pub(super) packed: f64,
    /// A search beyond lists that lowers the error by this share pays however long it takes, and lists become longer.
    pub(crate) sure_gain: f64,
    /// Before the phase would end, such a search must gain this share of the gain of iterations by lists in its time: a part of that is
    /// on the way to the same centres, and the sooner it finds them, the fewer iterations are needed.
    pub(crate) soon: f64,
    /// The estimate of its gain is made so rarely that it takes at most this part of the time: one in 10.
    pub(crate) estimates: f64,
}

pub(crate) const LIMITS: Limits = Limits {
    one_list: 48,
    packed_rows: 128,
    packed_columns: 128,
    product_rate: 2.5,
    wider: 2,
    overlap: 4,
    missed: 0.04,
    sampled: 8,
    drawn_rows: 1024,
    far: 16.0,
    candidates: 16,
    gathered: 128.0,
    packed: 24.0,
    sure_gain: 1e-2,
    soon: 0.25,
    estimates: 10.0,
};
