//! One EM iteration on the whole table: the statistics of a pass, and the parameters that follow.

use crate::error::{Error, Result};
use crate::fixed::Fixed;
use crate::model::{Model, Precision};
use crate::partial::{Partial, Range, Statistics};
use crate::pass::LARGEST_SPREAD;
use crate::summary::{Bounds, unchanged};
use crate::table::Table;
use crate::task::{Em, Work};
use coremix::ndarray::Array2;
use coremix::{Float, Likelihood, LogJoint};

/// What an E-step found, as numbers.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) likelihood: Likelihood,
    pub(crate) free_energy: f64,
    statistics: Statistics,
    squares: Fixed,
}

/// An E-step over all rows, with supports of this width; with the `sums` of the components if an M-step follows.
pub(crate) async fn e_step(
    table: &Table,
    range: &Range,
    bounds: &Bounds,
    model: &Model,
    width: usize,
    sums: bool,
) -> Result<Found> {
    let (k, d) = (model.components(), model.columns());
    if sums {
        // What comes back: a mass and d sums of 16 bytes per component.
        table.check_size(k.saturating_mul(16 * (d + 1) + 8))?;
    }
    let squares = bounds.squared(model);
    let work = Work::Em(Em {
        model: model.clone(),
        width,
        offsets: bounds.offsets.clone(),
        exponents: bounds
            .columns
            .iter()
            .map(|fixed| fixed.exponent())
            .collect(),
        squared: squares.exponent(),
        sums,
    });
    let Partial::Em(statistics) = table.pass(work).await? else {
        return Err(Error::version("but another pass came back"));
    };
    unchanged(range, statistics.rows)?;
    let rows = statistics.rows as f64;
    let likelihood = Likelihood {
        weight: rows,
        entries: rows * d as f64,
        best: squares.value(statistics.best),
        spread: Fixed::bounding(LARGEST_SPREAD).value(statistics.spread),
    };
    let variance = model.variance();
    let log_joint = LogJoint {
        alpha: -(k as f64).ln(),
        gamma: -0.5 * (2.0 * std::f64::consts::PI * variance).ln(),
        beta: 0.5 / variance,
    };
    Ok(Found {
        free_energy: likelihood.free_energy(log_joint),
        likelihood,
        statistics,
        squares,
    })
}

/// The M-step (E6, E7): the new model, and the number of zero-mass components, which keep their means.
pub(crate) fn m_step(
    model: &Model,
    found: &Found,
    bounds: &Bounds,
    floor: f64,
) -> Result<(Model, usize)> {
    let old = model.means();
    let mut means: Array2<f64> = old.clone();
    let mass_of = |sums: &[i128]| Fixed::bounding(1.0).value(sums.first().copied().unwrap_or(0));
    let (mut zero_mass, mut fall) = (0, 0.0);
    for (c, sums) in found.statistics.components.iter().enumerate() {
        let mass = mass_of(sums);
        if mass <= 0.0 || sums.len() != 1 + model.columns() {
            zero_mass += 1;
            continue;
        }
        for (j, sum) in sums[1..].iter().enumerate() {
            let (offset, sum) = (bounds.offsets[j], bounds.columns[j].value(*sum));
            let new = rounded(model.precision(), offset + sum / mass);
            // By how much squared distances fall: exact also where the mean is rounded.
            let change = new - old[[c, j]];
            let about_old = sum - mass * (old[[c, j]] - offset);
            fall += change * (2.0 * about_old - mass * change);
            means[[c, j]] = new;
        }
    }
    let squared = found.squares.value(found.statistics.squared);
    let epsilon = match model.precision() {
        Precision::Single => <f32 as Float>::EPSILON,
        Precision::Double => <f64 as Float>::EPSILON,
    };
    // Where nearly all of the sum cancels, only rounding is left.
    let rounding = (model.columns() + 8) as f64 * epsilon * squared;
    let variance = (squared - fall).max(rounding) / found.likelihood.entries;
    let model = Model::from_parameters(model.precision(), means.view(), variance.max(floor))?;
    Ok((model, zero_mass))
}

fn rounded(precision: Precision, x: f64) -> f64 {
    match precision {
        Precision::Single => f64::from(x as f32),
        Precision::Double => x,
    }
}
