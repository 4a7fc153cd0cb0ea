//! How many clusters: one call fits a model for each of several numbers of clusters, and compares them.
//!
//! [`Sweep`] fits them, on the same rows. [`Selection`] is the result: a table with the [`Criteria`] of each model, and the
//! best number of clusters by each [`Criterion`].
//!
//! ```
//! use coremix::prelude::*;
//! use coremix::selection::{Criterion, Sweep};
//! # let birch = coremix::datasets::Birch::grid(400).generate::<f64>(1)?;
//! # let (points, labels) = (birch.points, birch.labels);
//! # let rows: Vec<usize> = (0..10_000).filter(|n| labels[*n] % 5 < 2 && labels[*n] < 10).collect();
//! # let x = points.select(ndarray::Axis(0), &rows); // 4 of the clusters
//! let data = Dense::new(x.view())?;
//! let selection = Sweep::new(1..=7).run(&data, |k| algorithms::gmm(k).build())?;
//! println!("{selection}"); // a table
//!
//! let best = selection.best(Criterion::Bic).expect("a family that counts its parameters");
//! assert_eq!(best.clusters, 4);
//! let labels = best.model.predict(&data)?;
//! # assert_eq!(labels.len(), 1_600);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which criterion
//!
//! - [`HeldOut`](Criterion::HeldOut): for densities. It needs no theory, and holds for every family, for truncated searches
//!   and for the Dirichlet process. It costs the rows that are held out.
//! - [`Bic`](Criterion::Bic): for densities, if rows are few. It assumes that the family is right. If clusters are not
//!   Gaussian, it takes several components for one of them.
//! - [`Icl`](Criterion::Icl): for clusters, not densities. Components that overlap count as one more often.
//! - [`Aic`](Criterion::Aic): as BIC, with more components. It is about predictions, as `HeldOut` is.
//!
//! **k-means.** Its model is a mixture with equal proportions and one variance, and supports of width 1. k-means maximises the
//! log-likelihood of rows together with their labels ([E9](crate::equations#e9)). So its own criterion is ICL. Its BIC is that
//! of the same means and variance as a mixture. These do not maximise the likelihood of that mixture: where clusters overlap,
//! its BIC is too high, the more the larger k is. For BIC fit [`gmm`](crate::algorithms::gmm).
//!
//! **Weights** count rows: BIC, AIC and ICL take the sum of weights as the number of rows. Divide weights that are no counts
//! by their mean first.
//!
//! **Coresets.** The rows of a coreset stand for many, but say no more than as many rows would. So the number of rows in
//! BIC, AIC and ICL is then the effective number of rows in the coreset ([E48](crate::equations#e48)).

mod criteria;
mod held_out;
mod result;
mod sweep;

pub use criteria::{Criteria, Criterion};
pub use result::{Candidate, Selection};
pub use sweep::Sweep;
