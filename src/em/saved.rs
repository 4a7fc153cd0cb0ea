//! A phase in a checkpoint: borrowed when it is written, owned when it is read.

use super::report::PhaseReport;
use super::supports::Supports;
use crate::base::float::Float;
use crate::base::serde::{DeserializeOwned, Serialize};
use crate::data::Centres;
use crate::e_step::{Assignment, KeptSums, NeighbourLists, RowsInOrder};
use std::borrow::Cow;

/// A phase after an update and before the next search.
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "files",
    serde(bound(serialize = "F: Float, Model: Serialize"))
)]
#[cfg_attr(
    feature = "files",
    serde(bound(deserialize = "F: Float, Model: DeserializeOwned"))
)]
pub(crate) struct SavedPhase<'a, F: Float, Model: Clone> {
    pub(crate) report: Cow<'a, PhaseReport>,
    /// In the coordinates of the phase.
    pub(crate) model: Cow<'a, Model>,
    pub(crate) search: Vec<u8>,
    pub(crate) pass: SavedPass<'a, F>,
}

/// State from which a pass goes on with the next search, besides its stages.
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) enum SavedPass<'a, F: Float> {
    Full(SavedFull<'a, F>),
    Incremental(Box<Cow<'a, IncrementalState<F>>>),
}

/// State of a pass that reads all rows, besides its stages.
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct SavedFull<'a, F: Float> {
    pub(super) supports: Cow<'a, Supports>,
    pub(super) kept: Option<Box<Cow<'a, Kept<F>>>>,
    pub(super) wanted: bool,
    pub(super) searches: usize,
    pub(super) moves: usize,
    pub(super) calibrated: bool,
    pub(super) again: bool,
    pub(super) tried: bool,
}

/// Rows as an exact search keeps them once bounds settle enough of them, and the centres of the last search.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct Kept<F: Float> {
    pub(super) rows: RowsInOrder<F>,
    pub(super) before: Option<Centres<F>>,
}

/// State that an incremental pass keeps from one search to the next, and in a checkpoint.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct IncrementalState<F: Float> {
    pub(super) assignment: Assignment<F>,
    pub(super) sums: KeptSums<F>,
    pub(super) lists: Option<NeighbourLists<F>>,
    /// The centres of the last search, once the M-step has moved them.
    pub(super) before: Option<Centres<F>>,
    /// Rounds of moves and of transfers that are left.
    pub(super) moves: usize,
    pub(super) transfers: usize,
    /// Whether every row has bounds: moves go by them.
    pub(super) searched: bool,
    pub(super) stale: bool,
}
