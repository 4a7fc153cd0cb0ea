//! A phase in a checkpoint: borrowed when it is written, owned when it is read.

use super::report::PhaseReport;
use super::supports::Supports;
use crate::base::float::Float;
use crate::data::Centres;
use crate::e_step::{Assignment, KeptSums, NeighbourLists};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A phase after an update and before the next search.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "F: Float, Model: Serialize"))]
#[serde(bound(deserialize = "F: Float, Model: DeserializeOwned"))]
pub(crate) struct SavedPhase<'a, F: Float, Model: Clone> {
    pub(crate) report: Cow<'a, PhaseReport>,
    /// In the coordinates of the phase.
    pub(crate) model: Cow<'a, Model>,
    /// The state of the E-step.
    pub(crate) search: Vec<u8>,
    pub(crate) pass: SavedPass<'a, F>,
}

/// What a pass needs to go on with the next search, besides its stages.
#[derive(Serialize, Deserialize)]
#[serde(bound = "F: Float")]
pub(crate) enum SavedPass<'a, F: Float> {
    Full(SavedFull<'a>),
    Incremental(Box<SavedIncremental<'a, F>>),
}

/// What a pass that reads all rows needs besides its stages.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedFull<'a> {
    pub(super) supports: Cow<'a, Supports>,
    pub(super) searches: usize,
    pub(super) calibrated: bool,
    pub(super) again: bool,
    pub(super) tried: bool,
}

/// What a pass with kept statistics needs besides its stages.
#[derive(Serialize, Deserialize)]
#[serde(bound = "F: Float")]
pub(crate) struct SavedIncremental<'a, F: Float> {
    pub(super) assignment: Cow<'a, Assignment<F>>,
    pub(super) sums: Cow<'a, KeptSums<F>>,
    pub(super) lists: Option<Cow<'a, NeighbourLists<F>>>,
    pub(super) before: Option<Cow<'a, Centres<F>>>,
    pub(super) moves: usize,
    pub(super) transfers: usize,
    pub(super) searched: bool,
    pub(super) stale: bool,
}
