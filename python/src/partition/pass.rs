//! The E-step on some rows. What a row adds depends on the row alone, never on the rows beside it.

use super::exact;
use super::plain::Plain;
use super::sums::Sums;
use crate::input::{Number, Rows, weights_of_rows};
use crate::model::{Model, each};
use coremix::ndarray::ArrayView1;
use coremix::{BoxedMixture, Mixture};
use rayon::prelude::*;

/// Rows that a thread takes at a time.
const BLOCK: usize = 512;

/// Responsibilities below this are 0 in all sums, as in the core (E41).
const LOST: f64 = 1.0 / (1u64 << 60) as f64;

const FAR: &str =
    "is too far away: more than 2^20 times as far as the means of the model lie apart";

/// The sums of rows with weights, each row shared by its `width` best components.
pub(super) fn pass(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    model: &Model,
    width: Option<usize>,
) -> Result<Sums, String> {
    each!(model, own: F => of_number::<F>(rows, weights, own, width))
}

fn of_number<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    model: &BoxedMixture<F>,
    width: Option<usize>,
) -> Result<Sums, String> {
    let plain = Plain::of(&**model).map_err(|error| error.to_string())?;
    let (k, d) = plain.means.dim();
    let width = width.unwrap_or(k).min(k);
    if rows.are_unknown() && weights.is_none_or(|weights| weights.is_empty()) {
        return Ok(Sums::empty(plain.mark(), plain.exponents.clone(), k));
    }
    let data = rows.data::<F>(None).map_err(|error| error.to_string())?;
    if data.dim() != d {
        return Err(format!(
            "X has {} columns, but the model has {d}",
            data.dim()
        ));
    }
    let n = data.len();
    if let Some(weights) = weights {
        let sound = |w: &f64| w.is_finite() && *w >= 0.0;
        weights_of_rows(weights.len(), n)?;
        if let Some(row) = weights.iter().position(|w| !sound(w)) {
            let value = weights[row];
            return Err(format!(
                "weight of row {row} is {value}; weights must be finite and not negative"
            ));
        }
    }
    let empty = Sums::empty(plain.mark(), plain.exponents.clone(), k);
    if n == 0 {
        return Ok(empty);
    }
    // All components need no search.
    let supports = match width < k {
        true => {
            let found = model.truncated_responsibilities(&*data, width);
            Some(found.map_err(|error| error.to_string())?.0)
        }
        false => None,
    };
    let source = F::read(rows);
    let all: Vec<u32> = (0..k as u32).collect();
    let blocks: Vec<_> = (0..n.div_ceil(BLOCK)).collect();
    let parts = blocks.par_iter().map(|block| {
        let first = block * BLOCK;
        let last = n.min(first + BLOCK);
        let mut values = vec![F::default(); (last - first) * d];
        source
            .read(first, &mut values)
            .map_err(|error| error.to_string())?;
        let mut sums = empty.clone();
        let mut found = Found::new(width, d);
        for (i, row) in values.chunks_exact(d).enumerate() {
            let n = first + i;
            let support = supports.as_ref().map(|supports| supports.row(n));
            let support = support
                .as_ref()
                .map_or(Some(&all[..]), |support| support.to_slice());
            let weight = weights.map_or(1.0, |weights| weights[n]);
            let added = found.add(row, weight, support.unwrap_or(&all), &plain, &mut sums);
            added.map_err(|what| format!("row {n} {what}"))?;
        }
        Ok(sums)
    });
    // Integers: the order in which threads add them does not matter.
    parts.try_reduce(|| empty.clone(), Sums::merge)
}

/// Places for the numbers of a row.
struct Found {
    log_joints: Vec<f64>,
    differences: Vec<f64>,
}

impl Found {
    fn new(width: usize, d: usize) -> Self {
        Self {
            log_joints: vec![0.0; width],
            differences: vec![0.0; d],
        }
    }

    fn add<F: Number>(
        &mut self,
        row: &[F],
        weight: f64,
        support: &[u32],
        model: &Plain,
        sums: &mut Sums,
    ) -> Result<(), String> {
        for (log_joint, c) in self.log_joints.iter_mut().zip(support) {
            *log_joint = model.log_joint(*c as usize, row);
        }
        let best = self
            .log_joints
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = self.log_joints.iter().map(|l| (l - best).exp()).sum();
        let density = best + total.ln();
        let cut = |x: f64, exponent: i32| exact::cut(x, exponent).ok_or(FAR);
        sums.add_row(cut(weight, 0)?, cut(weight * density, exact::NATS)?)?;
        for (log_joint, c) in self.log_joints.iter().zip(support) {
            let (share, c) = ((log_joint - best).exp() / total, *c as usize);
            if share < LOST || weight == 0.0 {
                continue;
            }
            let mass = weight * share;
            sums.add(c, 0, cut(mass, 0)?)?;
            let mean = model.means.row(c);
            for ((difference, y), m) in self.differences.iter_mut().zip(row).zip(mean) {
                *difference = y.to_f64() - m;
            }
            let d = row.len();
            for (j, x) in self.differences.iter().enumerate() {
                let exponent = model.exponents[j];
                sums.add(c, 1 + j, cut(mass * x, exponent)?)?;
                sums.add(c, 1 + d + j, cut(mass * x * x, 2 * exponent)?)?;
            }
        }
        Ok(())
    }
}
