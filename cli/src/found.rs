//! Results of a fit, as the command prints them.

use crate::arguments::{Fit as Arguments, Metric};
use crate::failure::Result;
use crate::messages::{item, say, short};
use crate::outputs::is_standard_output;
use coremix::data::RowKind;
use coremix::families::Family;
use coremix::prelude::*;
use coremix::{BoxedMixture, Float};
use std::fmt::Display;
use std::time::Duration;

/// The result of a fit.
pub(crate) struct Fitted<F: Float> {
    pub(crate) model: BoxedMixture<F>,
    pub(crate) report: Report,
    /// The weight of the rows of each cluster: how many they are, where rows have no weights. Estimates, of a coreset.
    pub(crate) sizes: Vec<f64>,
    /// The rows of the coreset, if that is all that was fitted.
    coreset: Option<usize>,
    pub(crate) quality: Quality,
}

/// How well a model fits the rows it was fitted to, per unit of weight.
pub(crate) enum Quality {
    /// The squared distance to the nearest centre.
    Distance(f64),
    /// The log-likelihood, in nats, and whether it may be higher than this.
    Likelihood(f64, bool),
}

impl<F: Float> Fitted<F> {
    /// By a fit to these rows.
    pub(crate) fn new(fit: Fit<BoxedMixture<F>>, data: &dyn Data<F>) -> coremix::Result<Self> {
        let mut sizes = vec![0.0; fit.model.components()];
        let weights = fit
            .coreset
            .as_ref()
            .map_or(data.weights(), |coreset| Some(&coreset.weights[..]));
        for (row, label) in fit.search_labels.iter().enumerate() {
            sizes[*label as usize] += weights.map_or(1.0, |weights| weights[row]);
        }
        Ok(Self {
            quality: quality(&fit, sizes.iter().sum(), data)?,
            sizes,
            coreset: fit.coreset.map(|coreset| coreset.rows.len()),
            model: fit.model,
            report: fit.report,
        })
    }

    pub(crate) fn say(&self, fit: &Arguments, rows: usize, time: Duration) -> Result<()> {
        let estimated = |rows| format!(", estimated from a coreset of {rows}");
        let estimated = self.coreset.map(estimated).unwrap_or_default();
        item("rows", rows)?;
        let mut sizes = self.sizes.clone();
        sizes.retain(|size| *size > 0.0);
        sizes.sort_unstable_by(f64::total_cmp);
        match (fit.clusters, sizes.len()) {
            (k, used) if k == used => item("clusters", format_args!("{k}, all with rows"))?,
            (k, used) => item("clusters", format_args!("{k} asked for, {used} with rows"))?,
        }
        let sizes: Vec<String> = sizes.iter().map(|size| in_words(fit, *size)).collect();
        item("sizes", format_args!("{}{estimated}", range(&sizes)))?;
        match self.quality {
            Quality::Distance(each) => {
                let space = match fit.common.metric {
                    _ if fit.common.standardise => ", of standardised columns",
                    Metric::Cosine => ", of rows of length 1: 2 - 2 cos",
                    Metric::Euclidean => "",
                };
                let each = short(each);
                let what = format_args!(
                    "{each}, the mean squared distance to the centre{space}{estimated}"
                );
                item("error", what)?;
            }
            Quality::Likelihood(each, more) => {
                let least = if more { "at least " } else { "" };
                let known = fit
                    .coordinates
                    .map(|q| format!(", of {q} coordinates of it"));
                let known = known.unwrap_or_default();
                item(
                    "log-likelihood",
                    format_args!("{least}{each:.5} per row{known}{estimated}"),
                )?;
            }
        }
        let seconds = time.as_secs_f64();
        let steps = self.report.iterations;
        item(
            "time",
            match self.report.stop {
                Stop::MaxIterations => format!(
                    "{seconds:.2} s, not converged after {steps} iterations: --max-iterations allows more"
                ),
                stop => format!("{seconds:.2} s, {stop} after {steps} iterations"),
            },
        )?;
        if fit.verbose {
            say(&format!("\n{}", self.report))?;
        }
        let written = [
            ("model", fit.model.as_ref()),
            ("labels", fit.labels.as_ref()),
            ("report", fit.report.as_ref()),
        ];
        let mut written = written
            .into_iter()
            .filter_map(|(name, path)| Some((name, path?)))
            .filter(|(_, path)| !is_standard_output(path));
        written.try_for_each(|(name, path)| item(name, path.display()))
    }
}

/// Where sizes in order begin and end, and their median.
pub(crate) fn range<T: Display>(sizes: &[T]) -> String {
    let least = 0;
    let median = sizes.len() / 2;
    let most = sizes.len() - 1;
    let [least, median, most] = [least, median, most].map(|place| &sizes[place]);
    format!("{least} to {most}, median {median}")
}

/// The size of a cluster: rows, or their weight.
pub(crate) fn in_words(fit: &Arguments, size: f64) -> String {
    match fit.input.weights {
        None => format!("{size:.0}"),
        Some(_) => short(size),
    }
}

/// From the last free energy, F, of rows of this weight, W. Where each row belongs to one centre, log-joints are
/// alpha + D gamma - beta s, with the squared distance s (E1), so F has the quantization error. Where rows know some of the d
/// columns, it is found again.
fn quality<F: Float>(
    fit: &Fit<BoxedMixture<F>>,
    weight: f64,
    data: &dyn Data<F>,
) -> coremix::Result<Quality> {
    let free_energy = fit.report.free_energies.last().unwrap_or(&f64::NAN) / weight;
    let model = &fit.model;
    let shared = fit.supports.as_ref().map(|supports| supports.ncols());
    let k = model.components();
    let frame = model.frame();
    let log_joint = model.log_joint();
    let is_hard = model.cost().is_squared() && shared.unwrap_or(k) == 1;
    if is_hard && data.kind() != RowKind::Dense {
        let error = match &fit.coreset {
            Some(coreset) => {
                let drawn = data.select(&coreset.rows, coreset.weights.clone())?;
                model.quantization_error(&*drawn)?
            }
            None => model.quantization_error(data)?,
        };
        return Ok(Quality::Distance(error / weight));
    }
    if is_hard {
        let constant = log_joint.alpha + frame.dim() as f64 * log_joint.gamma;
        let error = frame.leave_square((constant - free_energy) / log_joint.beta);
        // Where rows are centres, all of it is rounding.
        let sizes = free_energy.abs() + constant.abs();
        let rounding = frame.leave_square(1e-14 * sizes / log_joint.beta);
        let error = if error > rounding { error } else { 0.0 };
        return Ok(Quality::Distance(error));
    }
    Ok(Quality::Likelihood(
        free_energy,
        shared.is_some() || model.free_parameters().is_none(),
    ))
}

/// The kind of the covariances, where the model is a mixture of Gaussians of fixed parameters.
pub(crate) fn covariances<F: Float>(model: &dyn Mixture<F>) -> Option<Covariance> {
    match Family::of(model)? {
        Family::Gaussian(model) => Some(model.covariance_kind()),
        _ => None,
    }
}
