//! Blocks of columns, independent within a component: numbers with covariances, and numbers, counts and categories alone.

mod alone;
mod categorical;
mod column;
mod family;
mod law;
mod model;
mod normal;
mod poisson;
mod table;

pub use column::Column;
pub use family::{Part, Product};
pub use model::ProductMixture;
pub(super) use model::Theta;
pub use table::Table;
