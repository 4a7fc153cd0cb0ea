//! Blocks of rows and tables of centres, and the coordinates that both are in.

mod basis;
mod block;
mod centres;
mod distances;
mod frame;
mod linear;
mod scales;
mod scores;
mod stored;

pub use basis::Basis;
pub use block::Rows;
pub use centres::Centres;
pub use frame::Frame;
pub(crate) use frame::clamped;
pub use linear::Linear;
pub(crate) use linear::{Part, Terms, largest_error};
pub use scales::Scales;
pub use scores::Scores;
pub(crate) use scores::{all_scores, some_scores};
