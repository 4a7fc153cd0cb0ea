//! Sketches of rows that are in memory.

use super::{Data, Dense, Sketch, SketchBuilder};
use crate::base::error::{Error, Result};
use crate::base::float::{Element, Float};
use ndarray::{ArrayView1, ArrayView2};

impl<F: Float> Sketch<F> {
    /// `q` coordinates of each of the points (n, P), chosen by `seed`; each point has weight 1.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows or columns, [`Error::Parameter`] if `q` is 0 or more than P,
    /// [`Error::NotFinite`] for NaN or infinite values. [`Error::TooLarge`] for values beyond a quarter of the largest `f32`
    /// (1e150 in `f64`) divided by the square root of P: coordinates are sums over all columns.
    pub fn new<T: Element<Float = F>>(
        points: ArrayView2<'_, T>,
        q: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut builder = Self::of(points, q, seed)?;
        builder.push(points)?;
        builder.finish()
    }

    /// The same with weights (n): finite, not negative, not all zero.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for the weights.
    pub fn weighted<T: Element<Float = F>>(
        points: ArrayView2<'_, T>,
        weights: ArrayView1<'_, f64>,
        q: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut builder = Self::of(points, q, seed)?;
        builder.push_weighted(points, weights)?;
        builder.finish()
    }

    /// The same of rows that are there already, with their weights.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_dense<T: Element<Float = F>>(
        data: &Dense<'_, T>,
        q: usize,
        seed: u64,
    ) -> Result<Self> {
        match data.weights().map(ArrayView1::from) {
            Some(weights) => Self::weighted(data.points(), weights, q, seed),
            None => Self::new(data.points(), q, seed),
        }
    }

    fn of<T>(points: ArrayView2<'_, T>, q: usize, seed: u64) -> Result<SketchBuilder<F>> {
        if points.is_empty() {
            return Err(Error::Empty { what: "data" });
        }
        Ok(Self::builder(points.ncols(), q, seed))
    }

    /// A sketch made in one pass: rows of `columns` numbers, P, come in blocks of any size and can be dropped; `q`
    /// coordinates of each are kept, chosen by `seed`. Nothing is checked before the first rows.
    pub fn builder(columns: usize, q: usize, seed: u64) -> SketchBuilder<F> {
        SketchBuilder::new(columns, q, seed)
    }
}
