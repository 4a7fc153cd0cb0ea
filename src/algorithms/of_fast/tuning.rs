//! The numbers from which the phases of `fast` follow, and the limits that they set.

/// The fields of [`TUNING`]. The table "`fast`" of docs/decisions.md has the attempts that lost, and its command measures the parts
/// again. A question in brackets is the row of that table.
pub(super) struct Tuning {
    /// Rows of the first coreset per cluster, and at least (On which rows first?).
    pub(super) rows_per_cluster: usize,
    pub(super) least_rows: usize,
    /// Each further coreset is this many times as large as the one before, and all rows are at least this many times as many.
    pub(super) larger: usize,
    /// With fewer clusters an iteration costs little more than reading the rows, and the cheap tolerance is worth its time.
    pub(super) cheap_clusters: usize,
    pub(super) tolerance: f64,
    pub(super) cheap_tolerance: f64,
    /// Most iterations of a phase: where clusters overlap the last ones gain least.
    pub(super) most_iterations: usize,
    /// Factor on the tolerance on coresets (Which tolerance on coresets?).
    pub(super) on_coresets: f64,
    /// The factor on all rows, and the least share of it that few rows in few columns have: iterations are cheap there.
    pub(super) on_all_rows: f64,
    pub(super) on_few_rows: f64,
    /// The factor of the last phase, as a multiple of the one on all rows: on all columns an iteration takes several times as long.
    pub(super) on_all_columns: f64,
    /// Fewer rows are few; with more columns than these, fewer numbers are.
    pub(super) few_rows: f64,
    pub(super) few_columns: f64,
    /// Coordinates of the subspace, in roots of the number of columns (All columns at once?).
    pub(super) coordinates: f64,
    /// Most clusters that have several starts (Up to 8 clusters?), most clusters of all starts together, and most starts.
    pub(super) few_clusters: usize,
    pub(super) start_clusters: usize,
    pub(super) most_starts: usize,
    /// Most rounds of split and merge, and of transfers (Local optima? Few rows per cluster?): they end when they gain little.
    pub(super) rounds: usize,
    /// How far centres move, in distances to their means (How far do centres move?).
    pub(super) step: f64,
    /// Fewest centres on a neighbour list (How long are neighbour lists?).
    pub(super) least_list: usize,
    /// Centres of a panel of the kernel: lists are whole panels, and those of the last phase have one at least.
    pub(super) panel: usize,
    /// Lists of the last phase are shorter by this factor.
    pub(super) shorter: usize,
    pub(super) random: Random,
}

/// When a fit begins at random rows in place of seeds (Embeddings?).
pub(super) struct Random {
    /// With more rows of the coreset for each cluster, the phase on it is worth its time.
    pub(super) few_per_cluster: usize,
    /// With fewer columns, or if all rows are more times those of the coreset, the result of its phase decides.
    pub(super) many_columns: usize,
    pub(super) many_times: usize,
    /// That comparison takes an iteration on as many rows as the coreset has: all rows must be at least this many times as many.
    pub(super) few_times: usize,
    /// Random rows are as good as seeds up to this multiple of their error: an iteration lowers it by more. Where there are clusters for
    /// seeds to find, or rows far out, it is a larger one.
    pub(super) error: f64,
    /// Rows on which they are compared.
    pub(super) judges: usize,
}

pub(super) const TUNING: Tuning = Tuning {
    rows_per_cluster: 32,
    least_rows: 8_192,
    larger: 4,
    cheap_clusters: 128,
    tolerance: 1e-3,
    cheap_tolerance: 1e-4,
    most_iterations: 100,
    on_coresets: 3.0,
    on_all_rows: 0.5,
    on_few_rows: 0.2,
    on_all_columns: 2.0,
    few_rows: 50_000.0,
    few_columns: 128.0,
    coordinates: 2.0,
    few_clusters: 8,
    start_clusters: 32,
    most_starts: 8,
    rounds: 60,
    step: 1.5,
    least_list: 48,
    panel: 16,
    shorter: 3,
    random: Random {
        few_per_cluster: 64,
        many_columns: 128,
        many_times: 8,
        few_times: 4,
        error: 1.1,
        judges: 2048,
    },
};
