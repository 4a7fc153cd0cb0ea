//! A phase in a checkpoint: borrowed when it is written, owned when it is read.

use super::kept::Kept;
use super::report::PhaseReport;
use super::supports::Supports;
use super::{AnyModel, Stages};
use crate::base::float::Float;
use crate::base::serde::{DeserializeOwned, Serialize};
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

impl<'a, F: Float> SavedPhase<'a, F, AnyModel<F>> {
    /// `None` if the search cannot save its state.
    pub(super) fn of(
        stages: &'a Stages<'_, F>,
        report: &'a PhaseReport,
        pass: SavedPass<'a, F>,
    ) -> Option<Self> {
        Some(Self {
            report: Cow::Borrowed(report),
            model: Cow::Borrowed(&stages.model),
            search: stages.search.save()?,
            pass,
        })
    }
}

/// State from which a pass goes on with the next search, besides its stages.
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) enum SavedPass<'a, F: Float> {
    Full(SavedFull<'a>),
    Incremental(Box<Cow<'a, Kept<F>>>),
}

/// State of a pass that reads all rows, besides its stages.
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedFull<'a> {
    pub(super) supports: Cow<'a, Supports>,
    pub(super) wanted: bool,
    pub(super) searches: usize,
    pub(super) moves: usize,
    pub(super) calibrated: bool,
    pub(super) again: bool,
    pub(super) tried: bool,
}
