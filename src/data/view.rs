//! Data in the coordinates of a frame.

use super::{Data, Frame, Rows};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::share::Share;
use std::fmt;
use std::ops::Range;

/// Data together with the coordinates to load its rows in: what coresets and seeders choose from.
#[derive(Clone, Copy)]
pub struct View<'a, F: Float> {
    /// The rows.
    pub data: &'a dyn Data<F>,
    /// The coordinates: those of [the data](Data::frame), or of all rows that the data is a part of.
    pub frame: &'a Frame<F>,
    share: Option<&'a Share>,
}

impl<F: Float> fmt::Debug for View<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} rows", self.data.name(), self.len())
    }
}

impl<'a, F: Float> View<'a, F> {
    /// The rows in these coordinates.
    pub fn new(data: &'a dyn Data<F>, frame: &'a Frame<F>) -> Self {
        Self {
            data,
            frame,
            share: None,
        }
    }

    /// Shows in `share` how much of a choice is done.
    pub(crate) fn watched(self, share: &'a Share) -> Self {
        let share = Some(share);
        Self { share, ..self }
    }

    /// Steps of a choice that lie ahead.
    pub(crate) fn expect(&self, steps: usize) {
        self.share.iter().for_each(|share| share.expect(steps));
    }

    /// Steps of a choice that are done.
    pub(crate) fn done(&self, steps: usize) {
        self.share.iter().for_each(|share| share.done(steps));
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn weight(&self, row: u32) -> f64 {
        self.data.weight(row as usize)
    }

    /// Consecutive rows.
    pub fn load(&self, rows: Range<usize>) -> Result<Rows<F>> {
        let mut block = Rows::default();
        self.data.load(rows, self.frame, &mut block)?;
        Ok(block)
    }

    /// Any rows, in this order.
    pub(crate) fn gather(&self, rows: impl Iterator<Item = u32>) -> Result<Rows<F>> {
        let mut block = Rows::default();
        self.gather_into(rows, &mut block)?;
        Ok(block)
    }

    /// Any rows, in this order, into memory that is there already.
    pub(crate) fn gather_into(
        &self,
        rows: impl Iterator<Item = u32>,
        block: &mut Rows<F>,
    ) -> Result<()> {
        let rows: Vec<usize> = rows.map(|row| row as usize).collect();
        self.data.gather(&rows, self.frame, block)
    }
}
