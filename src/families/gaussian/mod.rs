//! Gaussian components, with covariances of several kinds.

mod analysers;
pub(super) mod common;
pub(super) mod conditional;
mod costs;
pub(super) mod covariance;
pub(super) mod covariances;
pub(super) mod diagonal;
#[cfg(feature = "files")]
pub(super) mod exact_sums;
pub(super) mod factors;
pub(super) mod family;
mod floors;
pub(super) mod kind;
pub(super) mod mixture;
pub(super) mod prior;
pub(super) mod spherical;
pub(super) mod tied_spherical;
pub(super) mod triangles;
