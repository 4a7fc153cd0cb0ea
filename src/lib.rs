//! Clustering and mixture models at scale: coresets, fast seeding and truncated variational EM behind one builder.
//!
//! For data with many points, many clusters or both, with or without weights. The result is a model, not only labels. A seed gives the same model, on any number of threads.
//!
//! ```
//! use coremix::prelude::*;
//! use coremix::datasets::Birch;
//!
//! let birch = Birch::grid(100).generate::<f32>(1)?; // 2,500 points in 25 clusters
//! let data = Dense::new(&birch.points)?;            // or Dense::weighted(&points, &weights)
//!
//! let fit = algorithms::fast(25).seed(42).fit(&data)?;
//!
//! assert_eq!(fit.model.means().dim(), (25, 2));     // in the data's own unit
//! let labels = fit.model.predict(&data)?;           // one per row
//! let error = fit.model.quantization_error(&data)?; // sum of w |y - nearest mean|^2
//! assert!(labels.len() == 2_500 && error > 0.0);
//! println!("{}", fit.report);                       // why it stopped, and what each stage cost
//! # Ok::<(), Error>(())
//! ```
//!
//! # The pipeline
//!
//! 1. **[Data](data)**: weighted rows, checked once: [`Dense`](data::Dense), [`Sparse`](data::Sparse), or a [`Sketch`](data::Sketch)
//!    of a few coordinates.
//! 2. **[Coreset](coreset)**: fewer rows, with weights so that they represent all rows. Optional.
//! 3. **[Seeder](seed)**: the start means of the components.
//! 4. **[E-step](e_step)**: a search for the support $K(n)$ of each point, the few components that share it.
//! 5. **[M-step](m_step)**: weighted sums over the points, and the parameters that follow in closed form.
//! 6. **[Model](Mixture)**: predicts and scores any data, exactly, over all components.
//!
//! Steps 4 and 5 repeat until the free energy settles: a bound on the log-likelihood, which every algorithm maximises.
//!
//! $$F(\theta) = \sum_n w_n \ln \sum_{c \in K(n)} p(c, y_n \mid \theta) \le \sum_n w_n \ln p(y_n \mid \theta)$$
//!
//! Algorithms differ only in their stages, which combine freely. Supports of one component give k-means, and supports of all
//! components give EM. Between them each point is shared by a few components. A named algorithm is a builder with its stages set; [`fit`](Builder::fit) checks
//! every setting, and [`build`](Builder::build) makes a [`Clusterer`] for several data sets.
//!
//! ```
//! use coremix::prelude::*;
//! # let birch = coremix::datasets::Birch::grid(100).generate::<f32>(1)?;
//! # let data = Dense::new(&birch.points)?;
//! // Truncated EM on a coreset, with longer chains for its seeds, and a variance for each component.
//! let fit = algorithms::truncated(25, Neighborhood::default().c_prime(3).neighbors(5))
//!     .coreset(Lightweight::new(1_000))
//!     .seeder(AfkMc2::new(200))
//!     .covariance(Covariance::Spherical)
//!     .restarts(2)
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
//! | [`k_means_c_prime`](algorithms::k_means_c_prime) | none | k-means++ | the same, width $C'$ |
//! | [`gmm`](algorithms::gmm) | none | means of `fast` | the same, all components |
//! | [`lazy_k_means`](algorithms::lazy_k_means) | none | k-means++ | [`Lazy`](e_step::Lazy), width 1 |
//! | [`lwcs_k_means`](algorithms::lwcs_k_means) | [`Lightweight`](coreset::Lightweight) | [AFK-MC²](seed::AfkMc2) | [`Exhaustive`](e_step::Exhaustive), width 1 |
//! | [`fast`](algorithms::fast) | lightweight, then all rows | [hierarchical](seed::HierarchicalKMeansPlusPlus) | [`Bounded`](e_step::Bounded), in [phases](Phase) |
//! | [`var_gmm_s`](algorithms::var_gmm_s) | none | AFK-MC² | [`Neighborhood`](e_step::Neighborhood), width $C'$ |
//! | [`vc_gmm`](algorithms::vc_gmm) | lightweight | AFK-MC² | [`Neighborhood`](e_step::Neighborhood), width $C'$ |
//! | [`d_gmm`](algorithms::d_gmm) | none | AFK-MC² | [`SimilaritySampling`](e_step::SimilaritySampling), width $H$ |
//! | [`sparsified_gmm`](algorithms::sparsified_gmm) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//! | [`table`](algorithms::table) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//! | [`dp_gmm`](algorithms::dp_gmm) | none | k-means++ | [`Exhaustive`](e_step::Exhaustive), all components |
//!
//! The M-step is [`Gaussian`](families::Gaussian) with one shared variance, except in the last three: these have diagonal
//! covariances, a [`Table`](families::Table) and a [`DirichletProcess`](families::DirichletProcess). Other
//! [covariances](families::Covariance) work in all others but `lazy_k_means` and `fast`.
//!
//! # Where to read on
//!
//! - `docs/guide`: which algorithm, how many clusters, weights, files, clusters of machines, own stages.
//! - [`Builder`]: every setting and its default; [`Algorithm`]: by name at run time; [`Estimator`]: as a trait object.
//! - [`Clusterer::fit_observed`], [`Report`]: what a fit does, and what it cost.
//! - [`Blocks`](data::Blocks): rows that are not in memory. [`Save`], [`load_model`], [`Checkpoint`]: files.
//! - [`selection`]: how many clusters. [`metrics`]: scores. [`testing`]: the laws, for stages of your own.
//! - [`equations`]: what numbers such as ([E3](equations#e3)) stand for, the papers, and their errata.
//! - Feature `files`, by default: models as files and as values of serde, checkpoints, starts from a model, exact sums. Without it
//!   the crate stands on 36 others in place of 42.
//! - Features `f32` and `f64`, by default: fits of rows of this type are compiled in the crate. A program with one type builds it faster
//!   without the other. Both types work without either, compiled at each build of the program, as its own profile says.
//! - Feature `tracing`: spans and events of a fit.
#![forbid(unsafe_code)]
// Without files nothing asks for what they would hold.
#![cfg_attr(
    not(feature = "files"),
    allow(dead_code, unreachable_pub, unused_imports, unused_macros)
)]

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod algorithms;
mod base;
pub mod coreset;
pub mod costs;
pub mod data;
pub mod datasets;
pub mod e_step;
/// Every formula of the crate by its number, with its derivation, and the errata of the papers.
///
/// This module has no code. Links such as [E7](crate::equations#e7) lead here, and comments in the code cite these numbers.
///
#[doc = include_str!("../docs/equations.md")]
pub mod equations {}
mod em;
pub mod families;
mod fit;
#[cfg(doctest)]
mod guide;
#[cfg(not(test))]
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

pub use algorithms::by_name::{Algorithm, Metric};
pub use base::cancel::Cancel;
pub use base::error::{Error, Result};
pub use base::file_fault::FileFault;
#[doc(hidden)]
pub use base::fixed::Fixed;
pub use base::float::{Element, Float};
pub use base::share::Share;
pub use em::{Evaluations, PhaseReport, PhaseRows, Progress, Report, Rule, Stop, Timings};
pub use fit::{BoxedObserver, Builder, Clusterer, Columns, Estimator, Fit, MeansOf, Phase};
pub use model::predictor::Predictor;
pub use model::{BoxedMixture, Mixture, Score};

#[cfg(feature = "files")]
pub use {
    em::checkpoint::Checkpoint,
    families::saved::{Save, load_model},
    io::ModelInfo,
};

/// For stages and families of your own: what a stage is given, and what it fills.
pub mod stage {
    pub use crate::base::rng::Rng;
    pub use crate::base::stage::Stage;
    pub use crate::fit::Shape;
    pub use crate::model::block::Block;
    pub use crate::model::posterior::{Likelihood, LogJoint};
}

/// Everything a user of the crate names: the builder, data, every stage, the model's trait.
///
/// Two stages are called `Uniform`; here they are `UniformCoreset` and `UniformSeeder`.
pub mod prelude {
    pub use crate::algorithms;
    pub use crate::algorithms::by_name::{Algorithm, Metric};
    pub use crate::base::cancel::Cancel;
    pub use crate::base::error::{Error, Result};
    pub use crate::coreset::{Full, Lightweight, Uniform as UniformCoreset};
    pub use crate::data::{Blocks, Data, Dense, Sketch, Sparse};
    pub use crate::e_step::{Bounded, Exhaustive, Lazy, Neighborhood, SimilaritySampling};
    pub use crate::em::{PhaseRows, Progress, Report, Rule, Stop};
    pub use crate::families::{
        Column, Covariance, DirichletProcess, Gaussian, GaussianMixture, Prior, Product, Table,
        VonMisesFisher,
    };
    pub use crate::fit::{Builder, Clusterer, Columns, Estimator, Fit, MeansOf, Phase};
    pub use crate::metrics;
    pub use crate::model::Mixture;
    pub use crate::seed::{
        AfkMc2, Given, HierarchicalKMeansPlusPlus, KMeansPlusPlus, Uniform as UniformSeeder,
    };
    #[cfg(feature = "files")]
    pub use crate::{em::checkpoint::Checkpoint, families::saved::Save};
}
