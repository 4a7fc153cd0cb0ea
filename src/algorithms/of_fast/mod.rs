//! [`fast`] and its phases, which follow from the sizes of the data by the numbers of [`tuning`].

mod random_rows;
mod tuning;

use super::memory::Sizes;
use crate::base::float::Float;
use crate::coreset::Lightweight;
use crate::e_step::Bounded;
use crate::em::{PhaseRows, Rule};
use crate::fit::{Builder, Clusterer, Columns, Phase, Shape};
use crate::seed::HierarchicalKMeansPlusPlus;
use tuning::TUNING;

/// The recommended pipeline for large data: k-means to a quantization error like that of converged k-means++ on all
/// rows, in a fraction of the time.
///
/// Hierarchical k-means++ seeds ([`HierarchicalKMeansPlusPlus`]) on a lightweight coreset of 32 rows per cluster (8,192 at
/// least), then the [phases](fast_phases) of k-means with bounds ([`Bounded`]), and with moves and transfers that leave local
/// optima. The model is that of [`k_means`](super::k_means).
///
/// The stop rule is [`Rule::Remaining`], with at most 100 iterations per phase. The tolerance is 1e-3; below 128 clusters, where
/// an iteration costs little more than reading the rows, it is 1e-4.
#[inline(never)]
pub fn fast<F: Float>(clusters: usize) -> Builder<F> {
    let tolerance = if clusters < TUNING.cheap_clusters {
        TUNING.cheap_tolerance
    } else {
        TUNING.tolerance
    };
    Clusterer::builder()
        .clusters(clusters)
        .coreset(Lightweight::new(rows_for(clusters)))
        .seeder(HierarchicalKMeansPlusPlus)
        .phases(fast_phases)
        .named()
        .stop_rule(Rule::Remaining)
        .tolerance(tolerance)
        .max_iterations(TUNING.most_iterations)
}

/// The phases of [`fast`]: on the coreset, on larger ones, and on all rows. With many columns these phases run in a
/// principal subspace, and a last phase runs on all columns.
///
/// - Each coreset after the first is four times as large as the one before, and at most a quarter of all rows. So few iterations
///   are left for the larger ones, and for all rows.
/// - The subspace has about $2 \sqrt d$ coordinates. It is used if that is at most $d / 2$ and less than $k$. Otherwise
///   comparing rows with all means on all columns costs less than projecting them.
/// - Up to 8 clusters, where split and merge helps little, there are several starts, with up to 32 clusters together. They go
///   through the phase on the first coreset. With up to 8,192 rows there is no coreset, and all starts go through the phase on all rows.
/// - On coresets the tolerance is three times the builder's: a later phase makes the remaining gain as well. On all rows it is
///   half of the builder's, and down to a tenth if these are fewer than 50,000 of at most 128 columns, or as many numbers:
///   iterations take little time there. In the last phase, on all columns, it is twice that of the one before, because an
///   iteration takes several times as long.
/// - The phase on the coreset, or what it found, is [left out](Phase::unless_random_rows_do) where random rows do as well: clusters
///   that are fitted to few rows in many columns are worth no more than an iteration on all rows.
/// - Where the phase on all rows would end, single rows are [transferred](Phase::transfers) to other clusters. On coresets
///   transfers would fit the clusters to the few rows that were drawn.
/// - Centres move [further](Phase::step) than to their means, by half of the way; in the last phase, on all columns, to the means.
/// - In the last phase, on all columns, neighbour lists are a third as long, but have at least 16 centres.
#[must_use]
#[inline(never)]
pub fn fast_phases<F: Float>(shape: Shape) -> Vec<Phase<F>> {
    let d = shape.columns;
    let k = shape.clusters;
    let near = near_for(k);
    let coordinates = ((TUNING.coordinates * (d as f64).sqrt()) as usize).next_multiple_of(8);
    let columns = if coordinates <= (d / 2).min(k - 1) {
        Columns::Principal(coordinates)
    } else {
        Columns::All
    };
    let starts = if (2..=TUNING.few_clusters).contains(&k) {
        (TUNING.start_clusters / k).min(TUNING.most_starts)
    } else {
        1
    };
    let phase = |rows, factor| {
        let phase = Phase::new(Bounded::default().nearest_centres(near)).rows(rows);
        let phase = phase
            .columns(columns)
            .split_and_merge(TUNING.rounds)
            .step(TUNING.step);
        phase.tolerance_factor(factor)
    };
    let shorter = near.div_ceil(TUNING.shorter).max(near.min(TUNING.panel));
    let last = Bounded::default().nearest_centres(shorter);
    // Iterations on few numbers are worth their time.
    let wide = (d as f64 / TUNING.few_columns).max(1.0);
    let many = wide * shape.rows as f64 / TUNING.few_rows;
    let on_all_rows = TUNING.on_all_rows * many.clamp(TUNING.on_few_rows, 1.0);
    let first = phase(PhaseRows::Coreset, TUNING.on_coresets).starts(starts);
    let mut phases = vec![first.unless_random_rows_do()];
    let larger = larger(k, shape.rows / TUNING.larger).map(Lightweight::new);
    phases.extend(larger.map(|larger| phase(PhaseRows::Larger(larger), TUNING.on_coresets)));
    phases.push(phase(PhaseRows::All, on_all_rows).transfers(TUNING.rounds));
    let columns = Phase::new(last)
        .rows(PhaseRows::All)
        .tolerance_factor(TUNING.on_all_columns * on_all_rows);
    phases.push(columns.after_subspace());
    phases
}

/// Sizes of the coresets after the first one, up to `most`.
fn larger(clusters: usize, most: usize) -> impl Iterator<Item = usize> {
    let next = |size: &usize| size.checked_mul(TUNING.larger);
    let sizes = std::iter::successors(Some(rows_for(clusters)), next);
    sizes.skip(1).take_while(move |&size| size <= most)
}

/// [`fast`] for rows that are not in memory: the whole fit takes at most about `bytes` bytes besides the rows and a block of
/// rows for every thread.
///
/// [`fast`] itself reads rows in the order of their components, which is slow in files. This one reads them in the order of the
/// file. Where all rows fit in `bytes`, it is [`fast`]. Otherwise the phases with bounds and moves run on coresets, the last
/// on the largest that fits, of a quarter of the rows at most. Then k-means reads all rows in every iteration, compares each
/// with all means, and keeps nothing of them but their labels. Labels, sums and the first coreset are there whatever `bytes` is:
/// [`Algorithm::peak_memory`](crate::Algorithm::peak_memory) says how much a fit takes.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(4_000).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 100,000 points
/// let fit = algorithms::fast_within(25, 4_000_000).build()?.fit(&data)?;
/// let rows: Vec<usize> = fit.report.phases.iter().map(|phase| phase.rows).collect();
/// assert_eq!(rows, [8_192, 18_457, 100_000]);
/// # Ok::<(), Error>(())
/// ```
#[inline(never)]
pub fn fast_within<F: Float>(clusters: usize, bytes: usize) -> Builder<F> {
    fast(clusters).phases(phases_within(bytes, 0.0)).named()
}

/// The phases of [`fast_within`], where `per_row` bytes of each row are kept as well.
pub(super) fn phases_within<F: Float>(
    bytes: usize,
    per_row: f64,
) -> impl Fn(Shape) -> Vec<Phase<F>> {
    move |shape| fast_phases_within(shape, bytes as f64 - per_row * shape.rows as f64)
}

fn fast_phases_within<F: Float>(shape: Shape, bytes: f64) -> Vec<Phase<F>> {
    let phases = fast_phases(shape);
    let sizes = Sizes::of::<F>(shape);
    let first = rows_for(shape.clusters);
    let within = |phases: &[Phase<F>]| sizes.phases(phases, first);
    if sizes.rows() + within(&phases) <= bytes {
        return phases;
    }
    let streaming = Bounded::default()
        .nearest_centres(near_for(shape.clusters))
        .streaming();
    let on = |rows| phases[0].clone().starts(1).rows(rows);
    let on_larger = |draws| on(PhaseRows::Larger(Lightweight::new(draws)));
    let with_largest = |largest: usize| {
        let mut list = vec![phases[0].clone()];
        // The largest one follows, as many times as large at least.
        list.extend(larger(shape.clusters, largest / TUNING.larger).map(on_larger));
        if first < largest {
            list.push(on_larger(largest).tolerance_factor(1.0));
        }
        list.push(
            Phase::new(streaming)
                .rows(PhaseRows::All)
                .tolerance_factor(TUNING.on_coresets),
        );
        list
    };
    let mut largest = first;
    let mut most = shape.rows / TUNING.larger;
    while largest < most {
        let middle = most - (most - largest) / 2;
        if within(&with_largest(middle)) <= bytes {
            largest = middle
        } else {
            most = middle - 1
        }
    }
    with_largest(largest)
}

/// Length of the neighbour lists, in whole panels of the kernel: 48, and 16 more for every eight times as many clusters,
/// from about 1,500 on. With more clusters, the nearest centre of a row is less often on the list of its component.
fn near_for(clusters: usize) -> usize {
    let least = (TUNING.least_list / TUNING.panel) as f64;
    TUNING.panel * ((clusters as f64).log2() / 3.0).round().max(least) as usize
}

/// Rows of the first coreset of [`fast`].
pub(super) fn rows_for(clusters: usize) -> usize {
    let rows = clusters.saturating_mul(TUNING.rows_per_cluster);
    rows.max(TUNING.least_rows)
}
