//! Families of components, and their models.

mod columns;
mod dirichlet_process;
mod gaussian;
mod product;
mod proportions;
pub(crate) mod saved;
mod stored;
mod variances;
mod von_mises_fisher;

pub use dirichlet_process::{DirichletProcess, DirichletProcessMixture};
pub use gaussian::covariance::Covariance;
#[cfg(feature = "files")]
pub use gaussian::exact_sums::ExactSums;
pub use gaussian::family::Gaussian;
pub use gaussian::mixture::GaussianMixture;
pub use gaussian::prior::Prior;
pub use product::{Column, Part, Product, ProductMixture, Table};
pub use stored::Family;
pub use von_mises_fisher::{VonMisesFisher, VonMisesFisherMixture};
