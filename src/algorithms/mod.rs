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
mod of_fast;
mod refined;

pub use of_fast::{fast, fast_phases, fast_within};

use crate::base::float::Float;
use crate::coreset::Lightweight;
use crate::e_step::{EStep, Exhaustive, Lazy, Neighborhood, SimilaritySampling};
use crate::em::Rule;
use crate::families::{Column, Covariance, DirichletProcess, Table, VonMisesFisher};
use crate::fit::{Builder, Clusterer, MeansOf};
use crate::m_step::MStep;
use crate::seed::{AfkMc2, InColumns, KMeansPlusPlus};
use of_fast::{phases_within, rows_for};
use refined::{draws_of_start, seeder_of};

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
///
/// Components begin at the means of [`fast`]: from rows that are far apart ([`KMeansPlusPlus`]) EM often ends with two groups in one
/// component.
#[inline(never)]
pub fn gmm<F: Float>(clusters: usize) -> Builder<F> {
    let builder = k_means(clusters).e_step(Exhaustive::all());
    builder.seeder_of(seeder_of).named()
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

/// Truncated EM from AFK-MC^2 seeds, with an E-step whose settings have names: [`var_gmm_s`], [`vc_gmm`] and [`d_gmm`] are
/// such fits.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(&birch.points)?; // 1,000 points in 25 clusters
/// let near = Neighborhood::default().c_prime(3).neighbors(4);
/// let vc_gmm = algorithms::truncated(25, near).coreset(Lightweight::new(300)).fit(&data)?;
/// assert_eq!(vc_gmm.model, algorithms::vc_gmm(25, 300, 3, 4).fit(&data)?.model);
///
/// let similar = SimilaritySampling::default().c_prime(2).drawn(6);
/// let d_gmm = algorithms::truncated(25, similar).fit(&data)?;
/// assert_eq!(d_gmm.model, algorithms::d_gmm(25, 2, 6).fit(&data)?.model);
/// # Ok::<(), Error>(())
/// ```
pub fn truncated<F: Float>(clusters: usize, e_step: impl EStep<F> + 'static) -> Builder<F> {
    let builder = k_means(clusters).seeder(AfkMc2::default());
    builder.e_step(e_step).named()
}

/// var-GMM-S: truncated EM on all rows, supports of `c_prime` components, `neighbors` of each.
///
/// \[VC\] Alg. 2; see [`Neighborhood`] ([E12](crate::equations#e12) to [E14](crate::equations#e14)) for the settings that
/// keep their defaults. Cost at most $n C' G$, whatever $k$ is.
#[inline(never)]
pub fn var_gmm_s<F: Float>(clusters: usize, c_prime: usize, neighbors: usize) -> Builder<F> {
    truncated(clusters, Neighborhood::new(c_prime, neighbors))
}

/// vc-GMM (\[VC\] Alg. 1): truncated EM on a lightweight coreset of `coreset` draws.
///
/// [`var_gmm_s`] on the rows of [`Lightweight`] ([E15](crate::equations#e15)): cost at most $C' G$ times the size of the
/// coreset, whatever $n$ and $k$ are.
#[inline(never)]
pub fn vc_gmm<F: Float>(
    clusters: usize,
    coreset: usize,
    c_prime: usize,
    neighbors: usize,
) -> Builder<F> {
    var_gmm_s(clusters, c_prime, neighbors).coreset(Lightweight::new(coreset))
}

/// D-GMM (\[DG\] Alg. 1): truncated EM on all rows, supports of `c_prime` components, others `drawn` by similarity.
///
/// See [`SimilaritySampling`] ([E25](crate::equations#e25), [E26](crate::equations#e26)). On a coreset:
/// `.coreset(Lightweight::new(size))`. Cost at most $n (H + R)$, whatever $k$ is.
#[inline(never)]
pub fn d_gmm<F: Float>(clusters: usize, c_prime: usize, drawn: usize) -> Builder<F> {
    truncated(clusters, SimilaritySampling::new(c_prime, drawn))
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

/// Sparsified GMM (\[SG\] Alg. 1 and 2): EM for Gaussians with diagonal covariances, to be fitted on a
/// [`Sketch`](crate::data::Sketch).
///
/// Densities are over the q observed coordinates of a row, and every coordinate is updated from the rows that observe it
/// ([E27](crate::equations#e27), [E28](crate::equations#e28)). Cost $nk$ distances over q coordinates each, whatever the
/// number of columns is. Spherical components: `.covariance(Covariance::Spherical)`; sparsified k-means is [`k_means`] on the same
/// sketch. Works on dense rows too.
///
/// Full covariances on a sketch (\[SG\] Theorem 1) are not here. EM would complete each row in all its coordinates, as rows with missing
/// values ([E55](crate::equations#e55)), and each row knows others: that is a matrix of P columns to factor for every row and component.
#[inline(never)]
pub fn sparsified_gmm<F: Float>(clusters: usize) -> Builder<F> {
    let builder = gmm(clusters).covariance(Covariance::Diagonal);
    builder.seeder(KMeansPlusPlus::default())
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
    let builder = seeded_by(&columns, KMeansPlusPlus::default(), gmm(clusters));
    builder.m_step(Table::new(columns)).restarts(TABLE_RESTARTS)
}

/// With seeds by distances, but not of codes, which are labels: rows are drawn by weight where there is nothing else.
fn seeded_by<F: Float, M: MStep<F>>(
    columns: &[Column],
    seeder: KMeansPlusPlus,
    builder: Builder<F, M>,
) -> Builder<F, M> {
    let coded = |column: &Column| column.categories().is_some();
    if !columns.iter().any(coded) {
        return builder.seeder(seeder);
    }
    let columns = (0..columns.len())
        .filter(|j| !coded(&columns[*j]))
        .collect();
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
