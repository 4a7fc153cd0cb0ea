//! Blocks of rows and tables of centres, and the coordinates that both are in.

mod basis;
mod block;
mod centres;
mod distances;
mod first;
mod frame;
mod linear;
mod ranking;
mod stored;

pub use basis::Basis;
pub use block::Rows;
pub use centres::Centres;
pub(crate) use first::First;
pub use frame::Frame;
pub(crate) use frame::clamped;
pub(crate) use linear::{FARTHEST, Linear, Part, Seen, Terms, largest_error};
pub(crate) use ranking::Ranking;
