//! What a phase sees of its rows: all of their coordinates, or those of a subspace.

use super::subspace::Subspace;
use crate::data::{Centres, Data, Frame};

/// Rows, the frame of the coordinates that a phase works in, and what lies beside them.
#[derive(Debug)]
pub(super) struct View<'a, D: Data> {
    pub(super) data: &'a D,
    pub(super) frame: &'a Frame<D::Float>,
    /// Weighted squared distances of the rows from the subspace: part of every quantization error.
    pub(super) beside: f64,
    /// Columns of the rows themselves.
    pub(super) columns: usize,
    subspace: Option<&'a Subspace<D::Float>>,
}

impl<'a, D: Data> View<'a, D> {
    /// All coordinates.
    pub(super) fn whole(data: &'a D, frame: &'a Frame<D::Float>) -> Self {
        Self {
            data,
            frame,
            beside: 0.0,
            columns: data.dim(),
            subspace: None,
        }
    }

    /// Rows of so many columns projected on `subspace`, `beside` away from it.
    pub(super) fn inside(
        data: &'a D,
        beside: f64,
        columns: usize,
        subspace: &'a Subspace<D::Float>,
    ) -> Self {
        Self {
            data,
            frame: subspace.frame(),
            beside,
            columns,
            subspace: Some(subspace),
        }
    }

    /// The centres of a model in the coordinates of the view.
    pub(super) fn enter(&self, centres: &Centres<D::Float>) -> Centres<D::Float> {
        self.subspace
            .map_or_else(|| centres.clone(), |subspace| subspace.enter(centres))
    }

    /// Centres of the view in those of a model.
    pub(super) fn leave(&self, centres: &Centres<D::Float>) -> Centres<D::Float> {
        self.subspace
            .map_or_else(|| centres.clone(), |subspace| subspace.leave(centres))
    }
}
