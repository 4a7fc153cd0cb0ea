//! Stage 5, the M-step: weighted statistics, and the parameters that follow from them in closed form.
//!
//! With the responsibilities of a search fixed, an update maximises the free energy over the parameters
//! ([E4](crate::equations#e4)).

mod family;
pub(crate) mod sums;

pub use family::{Coordinates, MStep, Needs, Started, Variances};
pub use sums::moments::{Moments, SecondMoments};
