//! Stage 5, the M-step: weighted statistics, and the parameters that follow from them in closed form.
//!
//! A component family keeps its density and its update in one file: both derive from one model. With the responsibilities fixed, an update maximises (E4)
//!
//! $$F(q, \theta) = \sum_n w_n \sum_c q_{nc} \left( \ln p(c, y_n \mid \theta) - \ln q_{nc} \right)$$
//!
//! over the parameters $\theta$; for the responsibilities of a search (E2) this is its free energy (E3).

mod diagonal;
mod dirichlet_process;
mod isotropic;
mod normal_wishart;
mod proportions;
mod shared_isotropic;

pub use diagonal::{Diagonal, DiagonalMixture};
pub use dirichlet_process::{DirichletProcess, DirichletProcessMixture};
pub use isotropic::{Isotropic, IsotropicMixture};
pub use shared_isotropic::{SharedIsotropic, SharedIsotropicMixture};

use crate::block::Block;
use crate::data::{Centres, Data, Frame, Summary};
use crate::error::{Error, Result};
use crate::float::Float;
use crate::mixture::Mixture;
use crate::posterior::{Likelihood, LogJoint};
use crate::stage::Stage;
use std::f64::consts::PI;

/// A component family: how its parameters start, and how they follow from responsibilities.
///
/// Laws: given the responsibilities, [`finish`](Self::finish) never lowers the free energy; statistics of
/// disjoint blocks add up.
pub trait MStep<D: Data>: Stage + Sync {
    /// The model with its parameters.
    type Model: Mixture<D>;
    /// Mergeable weighted sums.
    type Statistics: Send;

    /// The model at the seeds, before anything is known of its variance: scores are squared distances.
    /// `data` is the whole data, also where EM runs on a coreset.
    ///
    /// # Errors
    /// Settings that do not suit the data: [`Error::Parameter`] or [`Error::DimensionMismatch`], by name.
    fn start(
        &self,
        seeds: Centres<D::Float>,
        frame: Frame<D::Float>,
        data: &D,
    ) -> Result<Self::Model>;

    /// Searches needed before the first M-step of EM, whatever the E-step: 1 if starting the variance changes
    /// more than the unit of the scores.
    fn initial_searches(&self) -> usize {
        0
    }

    /// The first M-steps that keep to a simpler family, with supports of fewer than all components (`truncated`) or
    /// of all. The free energy counts as settled only after them.
    fn restricted_steps(&self, _truncated: bool) -> usize {
        0
    }

    /// Starts the variance from the sums of the first search (E8; \[VC\] Eq. 8).
    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood);

    /// Sums over no points yet.
    fn statistics(&self, model: &Self::Model) -> Self::Statistics;

    /// Numbers in the statistics, if there are more than a few per component and coordinate: so many rows share
    /// one set of sums that all sets together stay bounded.
    fn statistics_size(&self, _model: &Self::Model) -> usize {
        0
    }

    /// Adds a block of rows, shared out by its responsibilities (E5).
    fn accumulate(
        &self,
        rows: &D::Rows,
        block: &Block<D::Float>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    );

    /// The sums over all rows from the sums over some (at least one of these), added up in their order. What is left of
    /// the parts is over no rows again, and serves the next pass.
    fn merge(&self, parts: &mut Vec<Self::Statistics>) -> Self::Statistics;

    /// Number of components that answer for no point.
    fn emptied(&self, statistics: &Self::Statistics) -> usize;

    /// Number of coordinates that no point of their component knows, over all other components.
    fn unseen(&self, _statistics: &Self::Statistics) -> usize {
        0
    }

    /// The parameters that maximise the free energy for the responsibilities behind the statistics, within the
    /// simpler family as long as the steps are `restricted`.
    fn finish(&self, statistics: Self::Statistics, model: &mut Self::Model, restricted: bool);
}

/// The smallest variance allowed (E20), in the unit of the frame: a clamp, which keeps the free energy
/// monotone, where an added ridge would not.
fn variance_floor<F: Float>(frame: &Frame<F>, data: &Summary) -> f64 {
    let by_variance = 1e-12 * variance_of(frame, data);
    let by_rounding = (F::EPSILON * data.max_abs() * frame.inverse_unit()).powi(2);
    // Scores are in units of a variance: rounded to this type they still tell proportions apart.
    let smallest = 2f64.powi(-F::MAX_EXPONENT) / F::EPSILON.powi(2);
    by_variance.max(by_rounding).max(smallest)
}

/// The mean variance of the columns, in the unit of the frame.
fn variance_of<F: Float>(frame: &Frame<F>, data: &Summary) -> f64 {
    /// Squares of differences below this have lost digits, or all.
    const LOST: f64 = 1e-145;
    let columns = data.variance.iter().zip(&data.range);
    let variances = columns.map(|(&variance, (low, high))| {
        if high - low > LOST {
            return frame.enter_square(variance);
        }
        // A number of the right size will do: it is where the variance starts, and for its floor. This one is that of even spread.
        ((high - low) * frame.inverse_unit()).powi(2) / 12.0
    });
    variances.sum::<f64>() / data.variance.len() as f64
}

/// The frame of a model from known parameters: wide enough for the means and for the spread around them.
fn frame_around<F: Float>(means: &Summary, largest_variance: f64) -> Frame<F> {
    let widest = means.range.iter().map(|(low, high)| high - low);
    Frame::new(&means.mean, widest.fold(largest_variance.sqrt(), f64::max))
}

/// The largest of some variances, if all are positive and finite and of sizes that the type can hold side by side:
/// scores are in units of one of them.
fn check_variances<F: Float>(variances: impl Iterator<Item = f64> + Clone) -> Result<f64> {
    let largest = variances.clone().fold(0.0, f64::max);
    for variance in variances {
        if !(variance > 0.0 && variance.is_finite()) {
            let rule = "must be positive and finite";
            return Err(Error::parameter("variance", variance, rule));
        }
        if variance * F::LARGEST_SCORE.sqrt() < largest {
            let rule = "is too small beside the largest one for the type (3e18 times in f32, 3e152 in f64)";
            return Err(Error::parameter("variance", variance, rule));
        }
    }
    Ok(largest)
}

/// From scores to log-joints for Gaussians whose scores are in units of a variance (E1, E31, E33).
fn log_joint_in_units_of<F: Float>(
    variance: f64,
    centres: &Centres<F>,
    frame: &Frame<F>,
) -> LogJoint {
    LogJoint {
        alpha: -(centres.len() as f64).ln(),
        gamma: frame.log_density_shift() - 0.5 * (2.0 * PI * variance).ln(),
        beta: 0.5 / variance,
    }
}

/// M-steps that keep to one variance (E32): two for truncated searches, as published, none for supports of all.
fn steps_with_one_variance(truncated: bool) -> usize {
    if truncated { 2 } else { 0 }
}
