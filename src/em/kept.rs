//! Sums that passes keep, and the rows that these are over, in one of two orders.

use super::SetUp;
use super::by_component::ByComponent;
use crate::base::float::Float;
use crate::data::Centres;
use crate::e_step::{KeptSums, RowsInOrder};

/// Kept from one search to the next, and in a checkpoint.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct Kept<F: Float> {
    pub(super) rows: KeptRows<F>,
    pub(super) sums: KeptSums<F>,
    /// The centres of the last search, once the M-step has moved them.
    pub(super) before: Option<Centres<F>>,
}

impl<F: Float> Kept<F> {
    pub(super) fn new(rows: KeptRows<F>, sums: KeptSums<F>) -> Self {
        let before = None;
        Self { rows, sums, before }
    }
}

/// The order of the rows, which is all that differs from one kept pass to another.
///
/// There are two, because each is slow at what the other is for. Rows in their order need no sort and share products with all centres:
/// exact searches of rows by component took longer on every shape that was tried, up to five times. Neighbour lists are packed once for
/// all rows of a component, which split and merge and transfers read together as well: these need the rows by component.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) enum KeptRows<F: Float> {
    /// An exact search, whose open rows are compared with all centres.
    InOrder(RowsInOrder<F>),
    /// [`Bounded`](crate::e_step::Bounded), whose open rows are compared with the centres near their own.
    ByComponent(Box<ByComponent<F>>),
}

impl<F: Float> KeptRows<F> {
    pub(super) fn labels(&self) -> Vec<u32> {
        match self {
            Self::InOrder(rows) => rows.labels(),
            Self::ByComponent(rows) => rows.assignment.labels(),
        }
    }

    /// Whether the last search compared every row with all centres, unless its bounds settled it. Components from the phase before are
    /// as exact as its search was, whatever this one's is.
    pub(super) fn is_exact(&self, phase: &SetUp<'_, F>) -> bool {
        match self {
            Self::InOrder(_) => true,
            Self::ByComponent(rows) => rows.is_exact(phase),
        }
    }
}
