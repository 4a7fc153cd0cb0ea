//! Each named algorithm as its stages. All return the builder, so every setting can still be changed.
//!
//! The M-step is [`Gaussian`](crate::families::Gaussian), except in [`spherical_k_means`], [`table`] and [`dp_gmm`]. The tolerance is
//! 1e-3 with at most 200 iterations, except in [`fast`], [`spherical_k_means`] and [`dp_gmm`]. There is one restart, except in
//! [`table`], and the seed is 0. Nothing is checked before [`build`](crate::Builder::build). The table of stages is on the [page of the
//! crate](crate#algorithms).
//!
//! Costs are distance evaluations per iteration, for $n$ rows and $k$ clusters.

pub(crate) mod by_name;
mod memory;
use crate::base::float::Float;
use crate::coreset::Lightweight;
use crate::e_step::{Bounded, Exhaustive, Lazy, Neighborhood, SimilaritySampling};
use crate::em::{PhaseRows, Rule};
use crate::families::{Column, Covariance, DirichletProcess, Table, VonMisesFisher};
use crate::fit::{Builder, Clusterer, Columns, MeansOf, Phase, Shape};
use crate::m_step::MStep;
use crate::seed::{AfkMc2, HierarchicalKMeansPlusPlus, InColumns, KMeansPlusPlus};
use memory::Sizes;

/// k-means (Lloyd) from k-means++ seeds.
///
/// Supports of width 1: what raises $F$ lowers the weighted squared distance of the points to their means
/// ([E9](crate::equations#e9); \[KM\] Prop. 3). Cost $nk$ at most.
///
/// It chooses its search by what it sees in the first ones: rows that bounds settle are not read again, and with very many clusters
/// a row is compared with those of a few cells ([`Exhaustive::nearest`]). Labels are those of all $nk$ distances, which
/// `.e_step(Exhaustive::truncated(1))` computes in every iteration.
#[inline(never)]
pub fn k_means<F: Float>(clusters: usize) -> Builder<F> {
    Clusterer::builder().clusters(clusters)
}

/// k-means-C' (\[KM\] Alg. 3): each point is shared by its `c_prime` nearest components.
///
/// Between k-means (`c_prime` 1) and [`gmm`] (`c_prime` $k$); a larger `c_prime` means $k$. Cost $nk$.
#[inline(never)]
pub fn k_means_c_prime<F: Float>(clusters: usize, c_prime: usize) -> Builder<F> {
    k_means(clusters)
        .e_step(Exhaustive::truncated(c_prime))
        .named()
}

/// EM for the Gaussian mixture with one shared isotropic variance and equal mixing proportions.
///
/// Supports of all components, so $F$ is the log-likelihood ([E3](crate::equations#e3)). Cost $nk$ and as many exponentials.
#[inline(never)]
pub fn gmm<F: Float>(clusters: usize) -> Builder<F> {
    k_means(clusters).e_step(Exhaustive::all()).named()
}

/// lazy-k-means: a point changes its component only for one nearer by a factor 1 + `epsilon` (\[KM\] Eq. 21).
///
/// See [`Lazy`] ([E11](crate::equations#e11)); `epsilon` 0 is [`k_means`], except for ties. Cost $nk$.
#[inline(never)]
pub fn lazy_k_means<F: Float>(clusters: usize, epsilon: f64) -> Builder<F> {
    k_means(clusters).e_step(Lazy::new(epsilon)).named()
}

/// k-means on a lightweight coreset of `coreset` draws, from AFK-MC^2 seeds.
///
/// Two passes over all rows draw the coreset ([`Lightweight`], E15); after it, $n$ is the coreset's size. Chains
/// have the default length of [`AfkMc2`]. Cost $nk$.
#[inline(never)]
pub fn lwcs_k_means<F: Float>(clusters: usize, coreset: usize) -> Builder<F> {
    k_means(clusters)
        .coreset(Lightweight::new(coreset))
        .seeder(AfkMc2::default())
}

/// var-GMM-S: truncated EM on all rows, supports of `c_prime` components, `g` neighbors of each.
///
/// \[VC\] Alg. 2; see [`Neighborhood`] ([E12](crate::equations#e12) to [E14](crate::equations#e14)) for the settings that
/// keep their defaults. Cost at most $n C' G$, whatever $k$ is.
#[inline(never)]
pub fn var_gmm_s<F: Float>(clusters: usize, c_prime: usize, g: usize) -> Builder<F> {
    k_means(clusters)
        .seeder(AfkMc2::default())
        .e_step(Neighborhood::new(c_prime, g))
        .named()
}

/// vc-GMM (\[VC\] Alg. 1): truncated EM on a lightweight coreset of `coreset` draws.
///
/// [`var_gmm_s`] on the rows of [`Lightweight`] ([E15](crate::equations#e15)): cost at most $C' G$ times the size of the
/// coreset, whatever $n$ and $k$ are.
#[inline(never)]
pub fn vc_gmm<F: Float>(clusters: usize, coreset: usize, c_prime: usize, g: usize) -> Builder<F> {
    var_gmm_s(clusters, c_prime, g).coreset(Lightweight::new(coreset))
}

/// D-GMM (\[DG\] Alg. 1): truncated EM on all rows, supports of `h` components, `r` others drawn by similarity.
///
/// See [`SimilaritySampling`] ([E25](crate::equations#e25), [E26](crate::equations#e26)). On a coreset:
/// `.coreset(Lightweight::new(size))`. Cost at most $n (H + R)$, whatever $k$ is.
#[inline(never)]
pub fn d_gmm<F: Float>(clusters: usize, h: usize, r: usize) -> Builder<F> {
    k_means(clusters)
        .seeder(AfkMc2::default())
        .e_step(SimilaritySampling::new(h, r))
        .named()
}

/// The recommended pipeline for large data: k-means to a quantization error like that of converged k-means++ on all
/// rows, in a fraction of the time.
///
/// Hierarchical k-means++ seeds ([`HierarchicalKMeansPlusPlus`]) on a lightweight coreset of 32 rows per cluster (8,192 at
/// least), then the [phases](fast_phases) of k-means with bounds ([`Bounded`]), and with moves and transfers that leave local
/// optima. The model is that of [`k_means`].
///
/// The stop rule is [`Rule::Remaining`], with at most 100 iterations per phase. The tolerance is 1e-3; below 128 clusters, where
/// an iteration costs little more than reading the rows, it is 1e-4.
#[inline(never)]
pub fn fast<F: Float>(clusters: usize) -> Builder<F> {
    let tolerance = if clusters < CHEAP_CLUSTERS {
        1e-4
    } else {
        1e-3
    };
    k_means(clusters)
        .coreset(Lightweight::new(rows_for(clusters)))
        .seeder(HierarchicalKMeansPlusPlus::new())
        .phases(fast_phases)
        .named()
        .stop_rule(Rule::Remaining)
        .tolerance(tolerance)
        .max_iterations(100)
}

/// Spherical k-means, for rows whose direction counts and whose length does not, such as text and embeddings: it maximises the
/// cosines of the rows with the unit means of their clusters ([`VonMisesFisher::tied`]; [E56](crate::equations#e56)).
///
/// Seeds are the means of [`fast`] on directions: rows of length 1, and means inside the sphere. Then each row is compared with all
/// unit means until little changes. Other algorithms, such as [`k_means`], do so from their own seeds:
/// `.m_step(VonMisesFisher::tied())`. Cost $nk$ after that of `fast`.
///
/// ```
/// use coremix::prelude::*;
/// use ndarray::array;
///
/// let x = array![[1.0, 0.1], [20.0, 1.0], [0.1, 3.0], [0.0, 0.2]]; // two directions, of any length
/// let model = algorithms::spherical_k_means(2).build()?.fit(&Dense::new(&x)?)?.model;
/// let labels = model.predict(&Dense::new(&x)?)?;
/// assert!(labels[0] == labels[1] && labels[2] == labels[3] && labels[0] != labels[2]);
/// # Ok::<(), Error>(())
/// ```
#[inline(never)]
pub fn spherical_k_means<F: Float>(clusters: usize) -> Builder<F, VonMisesFisher> {
    let seeds = fast(clusters).directions(true);
    k_means(clusters)
        .m_step(VonMisesFisher::tied())
        .seeder(MeansOf::new(seeds.unchecked()))
        .stop_rule(Rule::Remaining)
        .max_iterations(100)
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
    let coordinates = ((2.0 * (d as f64).sqrt()) as usize).next_multiple_of(8);
    let columns = if coordinates <= (d / 2).min(k - 1) {
        Columns::Principal(coordinates)
    } else {
        Columns::All
    };
    let starts = match k {
        2..=8 => (START_CLUSTERS / k).min(8),
        _ => 1,
    };
    let phase = |rows, factor| {
        let phase = Phase::new(Bounded::new().nearest_centres(near)).rows(rows);
        let phase = phase.columns(columns).split_and_merge(ROUNDS).step(STEP);
        phase.tolerance_factor(factor)
    };
    let last = Bounded::new().nearest_centres(near.div_ceil(3).max(near.min(16)));
    // Iterations on few numbers are worth their time.
    let wide = (d as f64 / CHEAP_COLUMNS).max(1.0);
    let all = 0.5 * (wide * shape.rows as f64 / CHEAP_ROWS).clamp(0.2, 1.0);
    let first = phase(PhaseRows::Coreset, 3.0).starts(starts);
    let mut phases = vec![first.unless_random_rows_do()];
    let larger = larger(k, shape.rows / 4).map(Lightweight::new);
    phases.extend(larger.map(|larger| phase(PhaseRows::Larger(larger), 3.0)));
    phases.push(phase(PhaseRows::All, all).transfers(ROUNDS));
    let columns = Phase::new(last).rows(PhaseRows::All);
    let columns = columns.tolerance_factor(2.0 * all);
    phases.push(columns.after_subspace());
    phases
}

/// Sizes of the coresets after the first one, up to `most`.
fn larger(clusters: usize, most: usize) -> impl Iterator<Item = usize> {
    let next = |size: &usize| size.checked_mul(4);
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
fn phases_within<F: Float>(bytes: usize, per_row: f64) -> impl Fn(Shape) -> Vec<Phase<F>> {
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
    let streaming = Bounded::new()
        .nearest_centres(near_for(shape.clusters))
        .streaming();
    let on = |rows| phases[0].clone().starts(1).rows(rows);
    let on_larger = |draws| on(PhaseRows::Larger(Lightweight::new(draws)));
    let with_largest = |largest: usize| {
        let mut list = vec![phases[0].clone()];
        // The largest one follows, four times as large at least.
        list.extend(larger(shape.clusters, largest / 4).map(on_larger));
        if first < largest {
            list.push(on_larger(largest).tolerance_factor(1.0));
        }
        list.push(
            Phase::new(streaming)
                .rows(PhaseRows::All)
                .tolerance_factor(3.0),
        );
        list
    };
    let mut largest = first;
    let mut most = shape.rows / 4;
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

/// Most clusters of all starts of [`fast`] together.
const START_CLUSTERS: usize = 32;

/// With fewer rows than this, and at most that number of columns, the tolerance on all rows is smaller: iterations are cheap.
const CHEAP_ROWS: f64 = 50_000.0;
const CHEAP_COLUMNS: f64 = 128.0;

/// Rounds of split and merge, and of transfers, at most: they end when they gain little.
const ROUNDS: usize = 60;

/// How far centres move, in distances to their means.
const STEP: f64 = 1.5;

/// With fewer clusters than this, the tolerance is smaller: an iteration costs little more than reading the rows.
const CHEAP_CLUSTERS: usize = 128;

/// Length of the neighbour lists, in whole panels of the kernel: 48, and 16 more for every eight times as many clusters,
/// from about 1,500 on. With more clusters, the nearest centre of a row is less often on the list of its component.
fn near_for(clusters: usize) -> usize {
    16 * ((clusters as f64).log2() / 3.0).round().max(3.0) as usize
}

/// Rows of the first coreset of [`fast`].
fn rows_for(clusters: usize) -> usize {
    clusters.saturating_mul(32).max(8_192)
}

/// Sparsified GMM (\[SG\] Alg. 1 and 2): EM for Gaussians with diagonal covariances, to be fitted on a
/// [`Sketch`](crate::data::Sketch).
///
/// Densities are over the q observed coordinates of a row, and every coordinate is updated from the rows that observe it
/// ([E27](crate::equations#e27), [E28](crate::equations#e28)). Cost $nk$ distances over q coordinates each, whatever the
/// number of columns is. Spherical components: `.covariance(Covariance::Spherical)`; sparsified k-means is [`k_means`] on the same
/// sketch. Works on dense rows too.
#[inline(never)]
pub fn sparsified_gmm<F: Float>(clusters: usize) -> Builder<F> {
    gmm(clusters).covariance(Covariance::Diagonal)
}

/// Restarts of [`table`].
const TABLE_RESTARTS: usize = 8;

/// EM for tables of mixed columns: numbers, counts and categories, of these kinds in the order of the columns ([`Table`];
/// [E57](crate::equations#e57)).
///
/// Rows that are far apart are no good seeds there, so the best of 8 restarts is kept. Cost $nk$.
/// Numbers that have a covariance together: `.m_step(Table::new(columns).numbers(Gaussian::new(Covariance::Full)))`
/// ([`Table::numbers`]).
#[inline(never)]
pub fn table<F: Float>(clusters: usize, columns: Vec<Column>) -> Builder<F, Table> {
    let builder = seeded_by(&columns, KMeansPlusPlus::new(), gmm(clusters));
    builder.m_step(Table::new(columns)).restarts(TABLE_RESTARTS)
}

/// With seeds by distances, but not of codes, which are labels: rows are drawn by weight where there is nothing else.
fn seeded_by<F: Float, M: MStep<F>>(
    columns: &[Column],
    seeder: KMeansPlusPlus,
    builder: Builder<F, M>,
) -> Builder<F, M> {
    let coded = |column: &Column| matches!(column, Column::Category(_));
    if !columns.iter().any(coded) {
        return builder.seeder(seeder);
    }
    let columns = (0..columns.len()).filter(|j| !coded(&columns[*j]));
    let columns = columns.collect();
    builder.seeder(InColumns { columns, seeder })
}

/// The Dirichlet process mixture of Gaussians with full precision matrices (\[DP\] Alg. 1 without its coreset), truncated
/// at `truncation` components, by variational inference.
///
/// See [`DirichletProcess`] ([E29](crate::equations#e29), [E30](crate::equations#e30)) for the concentration and the
/// priors. On a coreset, as \[DP\] do: `.coreset(Lightweight::new(size))`; with [`Exhaustive::truncated`] only the
/// likeliest components share a point. Cost $n T$, where an evaluation takes $D^2$ operations instead of $D$.
///
/// Components that are not needed are merged with others ([E51](crate::equations#e51)), with full supports. It has its own
/// defaults: a tolerance of 1e-4, with at most 1,000 iterations. Where clusters overlap, components that share several of them
/// change slowly. For the density alone a larger tolerance is enough.
#[inline(never)]
pub fn dp_gmm<F: Float>(truncation: usize, concentration: f64) -> Builder<F, DirichletProcess> {
    k_means(truncation)
        .e_step(Exhaustive::all())
        .named()
        .m_step(DirichletProcess::new(concentration))
        .tolerance(1e-4)
        .max_iterations(1_000)
}
