//! Rows with missing values: NaN stands for a value that is not known.
//!
//! The likelihood is that of what is known ([E55](crate::equations#e55)): distances and densities are over the known coordinates of a
//! row, sums over the rows that know a coordinate.

use super::known_sums::KnownSums;
use super::{Frame, RowKind, Rows, Summary};
use crate::base::error::{Error, Result, require, sound_value, sound_weight};
use crate::base::float::{Element, Float};
use crate::base::parallel::{self, BLOCK};
use crate::rows::clamped;
use std::borrow::Cow;
use std::ops::Range;

/// Whether this value is missing.
#[inline(always)]
pub(super) fn is_missing<T: Element>(x: T) -> bool {
    let x = x.widen().to_f64();
    x.is_nan()
}

/// Checks rows (n, d) in memory and their weights, and sums up the values that are there; `None` if all are.
pub(super) fn summary_of<T: Element>(
    values: &[T],
    dim: usize,
    weights: Option<&[f64]>,
) -> Result<Option<Summary>> {
    let weight = weights.map(|weights| move |n: usize| weights[n]);
    summary(values.len() / dim, dim, weight, |rows| {
        Ok(Cow::Borrowed(&values[rows.start * dim..rows.end * dim]))
    })
}

/// Sums up `n` rows of `dim` numbers, which are given block by block, over the values that are there; `None` if all are.
pub(super) fn summary<'a, T: Element>(
    n: usize,
    dim: usize,
    weight: Option<impl Fn(usize) -> f64 + Sync>,
    values_of: impl Fn(Range<usize>) -> Result<Cow<'a, [T]>> + Sync,
) -> Result<Option<Summary>> {
    let blocks = parallel::map_blocks(n, BLOCK, |_, rows| {
        let mut sums = KnownSums::new(dim);
        let mut is_whole = true;
        let values = values_of(rows.clone())?;
        for (row, values) in rows.zip(values.chunks_exact(dim)) {
            let weight = weight.as_ref().map_or(1.0, |weight| weight(row));
            sound_weight(row, weight)?;
            let known = values.iter().enumerate().filter(|(_, x)| !is_missing(**x));
            let known = known.map(|(column, x)| (column, x.widen().to_f64()));
            for (column, value) in known.clone() {
                sound_value("data", (row, column), value, T::Float::LIMIT)?;
            }
            is_whole &= known.clone().count() == dim;
            sums.push(weight, known, &[]);
        }
        Ok((sums, is_whole))
    });
    let mut total = KnownSums::new(dim);
    let mut is_whole = true;
    for block in blocks {
        let (sums, whole) = block?;
        total.merge(&sums);
        is_whole &= whole;
    }
    if is_whole {
        return Ok(None);
    }
    let mut summary = total.finish(&vec![0.0; dim])?;
    // No fit, but a model can be asked about rows that know nothing of a column.
    for column in total.unknown() {
        summary.mean[column] = f64::NAN;
    }
    Ok(Some(summary))
}

/// An error where no row knows a column.
pub(super) fn check(summary: &Summary) -> Result<()> {
    let unknown = summary.mean.iter().position(|mean| mean.is_nan());
    unknown.map_or(Ok(()), |column| {
        let rule = "has no value in any row that counts: leave the column out";
        Err(Error::parameter("column", column, rule))
    })
}

/// The kind of rows that may lack values.
pub(super) fn kind(has_missing: bool) -> RowKind {
    if has_missing {
        RowKind::Partial
    } else {
        RowKind::Dense
    }
}

/// An error where rows with missing values are asked for in a frame that needs all of a row.
pub(super) fn check_frame<F: Float>(has_missing: bool, frame: &Frame<F>) -> Result<()> {
    let suits = !has_missing || frame.is_plain();
    let rule = "must have no missing values for directions, nor for models of a sketch";
    require(suits, "rows", "known in part", rule)
}

/// Loads one row, of which some values are missing.
pub(crate) fn load_row<F: Float>(row: &[F], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
    check_frame(true, frame)?;
    for (column, x) in row.iter().enumerate().filter(|(_, x)| !is_missing(**x)) {
        sound_value("data", (0, column), x.to_f64(), F::LIMIT)?;
    }
    fill(std::iter::once((1.0, row)), frame, into);
    Ok(())
}

/// Loads rows of stored numbers, each with its weight, in the coordinates of `frame`.
pub(super) fn fill<'a, T: Element>(
    rows: impl Iterator<Item = (f64, &'a [T])>,
    frame: &Frame<T::Float>,
    into: &mut Rows<T::Float>,
) {
    let most = Frame::most();
    into.reset_ragged(frame);
    let mut ids = Vec::new();
    let mut values = Vec::new();
    for (weight, row) in rows {
        ids.clear();
        values.clear();
        for (j, x) in row.iter().enumerate().filter(|(_, x)| !is_missing(**x)) {
            ids.push(j as u32);
            values.push(clamped(
                (x.widen() - frame.offset[j]) * frame.scale[j],
                most,
            ));
        }
        into.push(weight, &ids, values.iter().copied());
    }
}
