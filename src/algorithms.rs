//! Each named algorithm as its stages. All return the builder, so anything can still be changed.
//!
//! What they share, but for [`sparsified_gmm`] and [`dp_gmm`]: the M-step
//! [`SharedIsotropic`]. All: tolerance 1e-4 on the free
//! energy, at most 200 iterations, one restart, seed 0. Nothing is checked before
//! [`build`](crate::Builder::build). The table of stages is on the [page of the crate](crate#algorithms).
//!
//! Costs are distance evaluations per iteration, for $n$ rows and $k$ clusters.

use crate::clusterer::{Builder, Clusterer};
use crate::coreset::{Full, Lightweight};
use crate::e_step::{Exhaustive, Lazy, Neighborhood, SimilaritySampling};
use crate::m_step::{Diagonal, DirichletProcess, SharedIsotropic};
use crate::refine::Refine;
use crate::seed::{AfkMc2, HierarchicalKMeansPlusPlus, KMeansPlusPlus};

/// k-means (Lloyd) from k-means++ seeds.
///
/// Supports of width 1: what raises $F$ lowers the weighted squared distance of the points to their means
/// (E9; \[KM\] Prop. 3). Cost $nk$.
pub fn k_means(clusters: usize) -> Builder {
    Clusterer::builder().clusters(clusters)
}

/// k-means-C' (\[KM\] Alg. 3): each point is shared by its `c_prime` nearest components.
///
/// Between k-means (`c_prime` 1) and [`gmm`] (`c_prime` $k$); a larger `c_prime` means $k$. Cost $nk$.
pub fn k_means_c_prime(clusters: usize, c_prime: usize) -> Builder {
    k_means(clusters).e_step(Exhaustive::truncated(c_prime))
}

/// EM for the Gaussian mixture with one shared isotropic variance and equal mixing proportions.
///
/// Supports of all components, so $F$ is the log-likelihood (E3). Cost $nk$ and as many exponentials.
pub fn gmm(clusters: usize) -> Builder {
    k_means(clusters).e_step(Exhaustive::all())
}

/// lazy-k-means: a point changes its component only for one nearer by a factor 1 + `epsilon` (\[KM\] Eq. 21).
///
/// See [`Lazy`] (E11); `epsilon` 0 is [`k_means`]. Cost $nk$.
pub fn lazy_k_means(clusters: usize, epsilon: f64) -> Builder<Full, KMeansPlusPlus, Lazy> {
    k_means(clusters).e_step(Lazy::new(epsilon))
}

/// k-means on a lightweight coreset of `coreset` draws, from AFK-MC^2 seeds.
///
/// One pass over all rows draws the coreset ([`Lightweight`], E15); after it, $n$ is the coreset's size. Chains
/// have the default length of [`AfkMc2`]. Cost $nk$.
pub fn lwcs_k_means(clusters: usize, coreset: usize) -> Builder<Lightweight, AfkMc2> {
    k_means(clusters)
        .coreset(Lightweight::new(coreset))
        .seeder(AfkMc2::default())
}

/// var-GMM-S: truncated EM on all rows, supports of `c_prime` components, `g` neighbors of each.
///
/// \[VC\] Alg. 1; see [`Neighborhood`] (E12 to E14) for the knobs this leaves at their defaults. Cost at most
/// $n C' G$, whatever $k$ is.
pub fn var_gmm_s(clusters: usize, c_prime: usize, g: usize) -> Builder<Full, AfkMc2, Neighborhood> {
    k_means(clusters)
        .seeder(AfkMc2::default())
        .e_step(Neighborhood::new(c_prime, g))
}

/// vc-GMM (\[VC\] Alg. 2): truncated EM on a lightweight coreset of `coreset` draws.
///
/// [`var_gmm_s`] on the rows of [`Lightweight`] (E15): cost at most $C' G$ times the size of the coreset, whatever
/// $n$ and $k$ are.
pub fn vc_gmm(
    clusters: usize,
    coreset: usize,
    c_prime: usize,
    g: usize,
) -> Builder<Lightweight, AfkMc2, Neighborhood> {
    var_gmm_s(clusters, c_prime, g).coreset(Lightweight::new(coreset))
}

/// D-GMM (\[DG\] Alg. 1): truncated EM on all rows, supports of `h` components, `r` others drawn by similarity.
///
/// See [`SimilaritySampling`] (E25, E26). On a coreset: `.coreset(Lightweight::new(size))`. Cost at most
/// $n (H + R)$, whatever $k$ is.
pub fn d_gmm(clusters: usize, h: usize, r: usize) -> Builder<Full, AfkMc2, SimilaritySampling> {
    k_means(clusters)
        .seeder(AfkMc2::default())
        .e_step(SimilaritySampling::new(h, r))
}

/// The recommended pipeline for large data: k-means to a quantization error like that of converged k-means++ on all
/// rows, in a fraction of the time.
///
/// Hierarchical k-means++ seeds ([`HierarchicalKMeansPlusPlus`]) on a lightweight coreset of 32 rows per cluster (8,192 at
/// least); then [`Refine`]: k-means with moves that leave local optima, on that coreset, on one four times as large (where that is
/// at most a quarter of the rows), and on all rows; of many columns in a principal subspace, and at the end on all of them. Settings follow from the
/// numbers of clusters and columns, and coresets of more rows than there are from the data. The model is that of
/// [`k_means`]. `tolerance` and `max_iterations` of the builder are about EM on the coreset, which has no iterations here
/// and is left out; those of the refinement are set by `.refine(algorithms::refine(k).tolerance(..))`.
pub fn fast(
    clusters: usize,
) -> Builder<Lightweight, HierarchicalKMeansPlusPlus, Exhaustive, SharedIsotropic, Refine> {
    k_means(clusters)
        .coreset(Lightweight::new(rows_for(clusters)))
        .seeder(HierarchicalKMeansPlusPlus::new())
        .max_iterations(0)
        .refine(refine(clusters))
}

/// The refinement of [`fast`]: through a coreset four times as large as its first; with lists of 48 near centres, and 16
/// more whenever there are eight times as many clusters, from about 1,500 on. Below 128 clusters, where iterations
/// cost little beside reading the rows, it goes on for longer: to a tolerance of 1e-4, 50 iterations per phase at most.
/// Up to 8 clusters, which moves help little, it starts from as many seedings as have 16 clusters together.
#[must_use]
pub fn refine(clusters: usize) -> Refine {
    let refine = Refine::new()
        .near(near_for(clusters))
        .through(Lightweight::new(rows_for(clusters).saturating_mul(4)))
        .starts(match clusters {
            ..2 => 1,
            _ => (TOGETHER / clusters).max(1),
        });
    if clusters < FEW {
        refine.tolerance(1e-4).max_iterations(50)
    } else {
        refine
    }
}

/// Clusters of all seedings that [`fast`] starts from together: as many as one look of the kernel takes.
const TOGETHER: usize = 16;

/// Fewer clusters than this are worth more iterations.
const FEW: usize = 128;

/// Near centres that a row looks at, in whole panels of the kernel: with more clusters, the nearest of them is among the
/// nearest of a mean less often.
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
/// Densities are over the q coordinates that a row knows, and every coordinate is updated from the rows that know it
/// (E27, E28). Cost $nk$ distances over q coordinates each, whatever the number of columns is. Spherical components:
/// `.m_step(Isotropic::new())`; sparsified k-means is [`k_means`] on the same sketch. Works on dense rows too.
///
/// ```
/// use coremix::prelude::*;
/// use coremix::{algorithms, datasets::Birch};
///
/// let birch = Birch::grid(100).generate::<f64>(1)?;
/// let sketch = Sketch::new(birch.points.view(), 2, 42)?;
/// let fit = algorithms::sparsified_gmm(25).build()?.fit(&sketch)?;
/// assert_eq!(fit.model.means().dim(), (25, 2));
/// assert_eq!(fit.model.column_variances().dim(), (25, 2));
/// # Ok::<(), Error>(())
/// ```
pub fn sparsified_gmm(clusters: usize) -> Builder<Full, KMeansPlusPlus, Exhaustive, Diagonal> {
    gmm(clusters).m_step(Diagonal::new())
}

/// The Dirichlet process mixture of Gaussians with full precision matrices (\[DP\] Alg. 1 without its coreset), truncated
/// at `truncation` components, by variational inference.
///
/// See [`DirichletProcess`] (E29, E30) for the concentration and the priors. On a coreset, as \[DP\] do:
/// `.coreset(Lightweight::new(size))`; with [`Exhaustive::truncated`] only the likeliest components share a point. Cost
/// $n T$, where an evaluation takes $D^2$ operations instead of $D$.
pub fn dp_gmm(
    truncation: usize,
    concentration: f64,
) -> Builder<Full, KMeansPlusPlus, Exhaustive, DirichletProcess> {
    k_means(truncation)
        .e_step(Exhaustive::all())
        .m_step(DirichletProcess::new(concentration))
}
