//! Clustering and mixture models at scale: coresets, fast seeding and truncated variational EM behind one builder.
//!
//! The crate is for data with many points, many clusters or both, with or without weights. The result is a model, not only
//! labels: means, variances, posteriors and a likelihood. The same seed gives the same model, on any number of threads.
//!
//! # Ten lines
//!
//! ```
//! use coremix::prelude::*;
//! use coremix::datasets::Birch;
//!
//! let birch = Birch::grid(100).generate::<f32>(1)?; // 2,500 points in 25 clusters
//! let data = Dense::new(&birch.points)?;            // or Dense::weighted(&points, &weights)
//!
//! let fit = algorithms::fast(25).seed(42).build()?.fit(&data)?;
//!
//! assert_eq!(fit.model.means().dim(), (25, 2));     // in the data's own unit
//! let labels = fit.model.predict(&data)?;           // one per row
//! let error = fit.model.quantization_error(&data)?; // sum of w |y - nearest mean|^2
//! assert!(labels.len() == 2_500 && error > 0.0);
//! println!("{}", fit.report);                       // why it stopped, and what each stage cost
//! # Ok::<(), Error>(())
//! ```
//!
//! The guide in `docs/guide` goes on from here, with one chapter per question. Its first one reads files.
//!
//! # The pipeline
//!
//! 1. **[Data](data)**: weighted rows, checked once. [`Dense`](data::Dense) holds `f32`, `f64` or `u8`;
//!    [`Sketch`](data::Sketch) holds a few coordinates of each row, made in one pass.
//! 2. **[Coreset](coreset)**: fewer rows, with weights so that they represent all rows. Optional.
//! 3. **[Seeder](seed)**: the start means of the components.
//! 4. **[E-step](e_step)**: a search for the support $K(n)$ of each point, the few components that can have responsibility for it.
//! 5. **[M-step](m_step)**: weighted sums over the points, and the parameters that follow in closed form.
//! 6. **[Model](Mixture)**: predicts and scores any data, exactly, over all components.
//!
//! Steps 4 and 5 repeat until the free energy settles. That is a phase. Most algorithms have one [phase](Phase).
//! [`Builder::phases`] takes several, for example on the coreset, on a larger coreset and on all rows. Each starts from
//! the model of the phase before.
//!
//! Every algorithm maximises the same bound on a mixture's log-likelihood, the free energy
//!
//! $$F(\theta) = \sum_n w_n \ln \sum_{c \in K(n)} p(c, y_n \mid \theta) \le \sum_n w_n \ln p(y_n \mid \theta)$$
//!
//! They differ only in their stages, which combine freely. The width of $K(n)$ decides what the algorithm is. Width 1 is
//! k-means, and all components is EM. A width $C'$ between them shares each point among few components.
//!
//! The model of [`DirichletProcess`](m_step::DirichletProcess) is a distribution over parameters. Then F is the evidence
//! lower bound, with the divergence from the prior. It bounds the evidence, not the likelihood.
//!
//! # Stage by stage
//!
//! A named algorithm is a builder with its stages set. Every setting and every stage can be changed, and all are checked by
//! [`build`](Builder::build).
//!
//! ```
//! use coremix::prelude::*;
//! # let birch = coremix::datasets::Birch::grid(100).generate::<f32>(1)?;
//! # let data = Dense::new(&birch.points)?;
//! // Truncated EM on a coreset, with longer chains for its seeds, and a variance for each component.
//! let fit = algorithms::vc_gmm(25, 1_000, 3, 5) // clusters, coreset, C', G
//!     .seeder(AfkMc2::new(200))
//!     .covariance(Covariance::Spherical)
//!     .restarts(2)
//!     .build()?
//!     .fit(&data)?;
//! let (components, shares) = fit.model.truncated_responsibilities(&data, 3)?; // how sure labels are
//! # assert!(components.dim() == (2_500, 3) && shares.dim() == (2_500, 3));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Algorithms
//!
//! | [`algorithms`] | coreset | seeder | E-step |
//! |---|---|---|---|
//! | [`k_means`](algorithms::k_means) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), width 1 |
//! | [`k_means_c_prime`](algorithms::k_means_c_prime) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), width $C'$ |
//! | [`gmm`](algorithms::gmm) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//! | [`lazy_k_means`](algorithms::lazy_k_means) | none | k-means++ | [`Lazy`](e_step::Lazy), width 1 |
//! | [`lwcs_k_means`](algorithms::lwcs_k_means) | [`Lightweight`](coreset::Lightweight) | [AFK-MC²](seed::AfkMc2) | [`Exhaustive`](e_step::Exhaustive), width 1 |
//! | [`fast`](algorithms::fast) | [`Lightweight`](coreset::Lightweight), then all rows | [hierarchical k-means++](seed::HierarchicalKMeansPlusPlus) | [`Bounded`](e_step::Bounded), width 1, in [phases](algorithms::fast_phases) |
//! | [`var_gmm_s`](algorithms::var_gmm_s) | none | [AFK-MC²](seed::AfkMc2) | [`Neighborhood`](e_step::Neighborhood), width $C'$ |
//! | [`vc_gmm`](algorithms::vc_gmm) | [`Lightweight`](coreset::Lightweight) | [AFK-MC²](seed::AfkMc2) | [`Neighborhood`](e_step::Neighborhood), width $C'$ |
//! | [`d_gmm`](algorithms::d_gmm) | none | [AFK-MC²](seed::AfkMc2) | [`SimilaritySampling`](e_step::SimilaritySampling), width $H$ |
//! | [`sparsified_gmm`](algorithms::sparsified_gmm), on a [`Sketch`](data::Sketch) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//! | [`dp_gmm`](algorithms::dp_gmm) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//!
//! The M-step is [`Gaussian`](m_step::Gaussian) in all of them but the last, with one variance and equal mixing proportions
//! ([`Covariance::TiedSpherical`](m_step::Covariance::TiedSpherical)), or diagonal covariances in `sparsified_gmm`. In `dp_gmm`
//! it is [`DirichletProcess`](m_step::DirichletProcess): full covariances, and as many components as the data need.
//! Other [kinds of covariances](m_step::Covariance) work in all of them, except for `lazy_k_means` and `fast`.
//!
//! # Where to read on
//!
//! - `docs/guide`: which algorithm, how many clusters, how large a coreset, weights, files, clusters of machines, own stages.
//! - [`Clusterer`] and [`Builder`]: the stages one by one, and every default with its reason; [`Rule`]: when a fit ends.
//! - [`Algorithm`] chooses an algorithm by its name at run time. [`Estimator`] is any algorithm as a trait object.
//! - [`Clusterer::fit_observed`]: an observer sees every step and can stop a fit. [`Report`]: what a fit did and cost.
//! - [`Blocks`](data::Blocks) of a [`Source`](data::Source): rows that are not in memory.
//! - [`Save`], [`load_model`], [`ModelInfo`]: models as files, and back, bit for bit. [`Checkpoint`]: fits that go on after an
//!   interruption. [`Builder::start_from`]: fits that start from a model.
//! - [`selection`]: how many clusters. [`metrics`]: scores against known classes or centres.
//! - [`e_step::EStep`], [`seed::Seeder`], [`coreset::Coreset`], [`m_step::MStep`]: stages of your own; [`testing`] holds them
//!   against the laws.
//! - [`equations`]: what numbers such as ([E3](equations#e3)) stand for, with derivations and the errata of the papers.
//! - `docs/architecture.md`: the structure of the crate, and the laws that hold for every algorithm: same bits on any number
//!   of threads, a free energy that never falls, weights that count as copies, no panic and no NaN.
//! - Feature `tracing`: spans and events of a fit for the crate of that name. Feature `serde`: models and reports in its formats.
//!
//! # Papers
//!
//! - \[KM\] J. Lücke, D. Forster: *k-means as a variational EM approximation of Gaussian mixture models*, Pattern
//!   Recognition Letters 125, 2019, [arXiv 1704.04812](https://arxiv.org/abs/1704.04812)
//! - \[VC\] F. Hirschberger, D. Forster, J. Lücke: *A variational EM acceleration for efficient clustering at very
//!   large scales*, IEEE TPAMI 44(12), 2022, [arXiv 1810.00803](https://arxiv.org/abs/1810.00803)
//! - \[DG\] G. Exarchakis, O. Oubari, G. Lenz: *A sampling-based approach for efficient clustering in large
//!   datasets*, CVPR 2022, [arXiv 2112.14793](https://arxiv.org/abs/2112.14793)
//! - \[LW\] O. Bachem, M. Lucic, A. Krause: *Scalable k-means clustering via lightweight coresets*, KDD 2018,
//!   [arXiv 1702.08248](https://arxiv.org/abs/1702.08248)
//! - \[AF\] O. Bachem, M. Lucic, S. H. Hassani, A. Krause: *Fast and provably good seedings for k-means*, NIPS 2016
//! - \[SG\] E. Kightley, S. Becker: *One-pass sparsified Gaussian mixtures*, 2019,
//!   [arXiv 1903.04056](https://arxiv.org/abs/1903.04056)
//! - D. Arthur, S. Vassilvitskii: *k-means++: the advantages of careful seeding*, SODA 2007
//! - S. Har-Peled, B. Sadri: *How fast is the k-means method?*, Algorithmica 41, 2005
//! - \[DP\] Z. Borsos, O. Bachem, A. Krause: *Variational inference for DPGMM with coresets*, NIPS 2017 workshop on
//!   advances in approximate Bayesian inference
//! - D. M. Blei, M. I. Jordan: *Variational inference for Dirichlet process mixtures*, Bayesian Analysis 1(1), 2006
//! - C. M. Bishop: *Pattern recognition and machine learning*, Springer 2006, section 10.2
#![forbid(unsafe_code)]

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod algorithms;
mod base;
pub mod coreset;
pub mod data;
pub mod datasets;
pub mod e_step;
/// Every formula of the crate by its number, with its derivation, and the errata of the papers.
///
/// Here is no code. Links such as [E7](crate::equations#e7) lead here; so do numbers in the comments of the code.
///
#[doc = include_str!("../docs/equations.md")]
pub mod equations {}
mod em;
mod fit;
#[cfg(doctest)]
mod guide;
mod instances;
mod io;
mod kernels;
pub mod m_step;
pub mod metrics;
mod model;
mod rows;
pub mod seed;
pub mod selection;
pub mod testing;

/// The arrays that the crate takes and gives.
pub use ndarray;

pub use algorithms::by_name::Algorithm;
pub use base::cancel::Cancel;
pub use base::error::{Error, Result};
pub use base::file_fault::FileFault;
pub use base::float::{Element, Float};
pub use base::rng::Rng;
pub use base::stage::Stage;
pub use em::checkpoint::Checkpoint;
pub use em::{Evaluations, PhaseReport, PhaseRows, Progress, Report, Rule, Stop, Timings};
pub use fit::{BoxedObserver, Builder, Clusterer, Columns, Estimator, Fit, MeansOf, Phase, Shape};
pub use io::models::{load_model, read_model};
pub use io::{ModelInfo, Save};
pub use model::block::Block;
pub use model::posterior::{Likelihood, LogJoint};
pub use model::{BoxedMixture, Mixture, Score};

/// Everything a user of the crate names: the builder, data, every stage, the model's trait.
///
/// Two stages are called `Uniform`; here they are `UniformCoreset` and `UniformSeeder`.
pub mod prelude {
    pub use crate::algorithms;
    pub use crate::algorithms::by_name::Algorithm;
    pub use crate::base::cancel::Cancel;
    pub use crate::base::error::{Error, Result};
    pub use crate::coreset::{Full, Lightweight, Uniform as UniformCoreset};
    pub use crate::data::{Data, Dense, Sketch};
    pub use crate::e_step::{Bounded, Exhaustive, Lazy, Neighborhood, SimilaritySampling, Start};
    pub use crate::em::checkpoint::Checkpoint;
    pub use crate::em::{PhaseRows, Progress, Report, Rule, Stop};
    pub use crate::fit::{Builder, Clusterer, Columns, Estimator, Fit, MeansOf, Phase};
    pub use crate::io::Save;
    pub use crate::m_step::{Covariance, DirichletProcess, Gaussian};
    pub use crate::metrics;
    pub use crate::model::Mixture;
    pub use crate::seed::{
        AfkMc2, Given, HierarchicalKMeansPlusPlus, KMeansPlusPlus, Uniform as UniformSeeder,
    };
}
