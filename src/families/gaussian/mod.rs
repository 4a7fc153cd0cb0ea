//! Gaussian components, with covariances of several kinds.

pub(super) mod conditional;
mod costs;
pub(super) mod covariance;
#[cfg(feature = "files")]
pub(super) mod exact_sums;
mod factors;
pub(super) mod family;
pub(super) mod mixture;
pub(super) mod parameters;
pub(super) mod prior;
mod prior_density;
