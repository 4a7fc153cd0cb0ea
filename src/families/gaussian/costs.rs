//! Costs of rows under Gaussian components, by the kind of their covariances.

use super::covariance::Covariance;
use super::parameters::Parameters;
use crate::base::cached::Cached;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::costs::low_rank::Factored;
use crate::costs::observed::Observed;
use crate::costs::whitened::Shared;
use crate::costs::whitening::Whitening;
use crate::costs::{Cost, Factor, LowRank, Scaled, Whitened};

/// Costs of rows in units of a variance, as they follow from the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs<F> {
    /// In units of the variance, if covariances have all pairs of coordinates: one, or (k).
    pub(super) whitenings: Vec<Whitening>,
    precisions: Vec<Cached<Vec<f64>>>,
    /// Added by proportions (k).
    penalties: Vec<f64>,
    form: Form<F>,
}

#[derive(Clone, Debug, PartialEq)]
enum Form<F> {
    /// Squared distances.
    Squared,
    /// Squared distances with factors and addends (E31), or squared differences with a factor for each component and coordinate
    /// (E33).
    Scaled(Box<Scaled<F>>),
    /// Squared distances of rows that one transform whitens (E52).
    Tied(Box<Shared<F>>),
    /// Squared distances of rows that each component whitens (E52), and what determinants and proportions add (k).
    Full(Vec<f64>),
    /// Squared distances under covariances of a few factors (E58).
    Factors(Factored<F>),
}

impl<F: Float> Costs<F> {
    pub(super) fn new(theta: &Parameters<F>, watch: Watch<'_>) -> Result<Self> {
        let k = theta.k();
        let dim = theta.dim();
        let unit = theta.unit;
        let variances = &theta.spread;
        let penalties: Vec<f64> = (0..k).map(|c| theta.proportions.penalty(c, unit)).collect();
        let round = theta.isotropic(unit) == *variances && penalties.iter().all(|p| *p == 0.0);
        let whitenings = whitenings(theta, round, watch)?;
        // A variance gives the square of a difference a factor, and adds a term; a square is larger by what it is known with (E59).
        let relative = |variance: f64, j: usize| {
            let factor = unit / variance;
            let of_ridge = factor * theta.prior.ridge_of(j);
            (factor, unit * (variance / unit).ln() + of_ridge)
        };
        // Determinants, a ridge and proportions add this to squared distances.
        let log_dets = || whitenings.iter().cycle().map(Whitening::log_det);
        let own = |(c, (log_det, penalty)): (usize, (f64, &f64))| {
            unit * (log_det + theta.ridge_trace(c)) + penalty
        };
        let added = || log_dets().zip(&penalties).enumerate().map(own);
        let of_component = |c: usize| {
            let (factor, per_coordinate) = relative(variances[c], 0);
            Factor {
                factor,
                per_coordinate,
                added: penalties[c],
            }
        };
        let centres = || theta.centres.clone();
        let form = match theta.covariance {
            Covariance::TiedSpherical => Form::Squared,
            Covariance::Factors(_) if !theta.loadings.is_empty() => {
                let loadings = &theta.loadings;
                let penalty = |c: usize| penalties[c];
                let ridge = &theta.prior.ridge;
                Form::Factors(Factored::new(
                    unit, loadings, variances, ridge, dim, penalty, watch,
                )?)
            }
            Covariance::Tied | Covariance::Full | Covariance::Factors(_)
                if round && theta.prior.ridge.is_empty() =>
            {
                Form::Scaled(Box::new(Scaled::new(centres(), |_| Factor::ONE)))
            }
            Covariance::Tied => {
                let added: Vec<f64> = added().collect();
                let tied = Shared::new(&whitenings[0], &theta.exact_means, &added);
                Form::Tied(Box::new(tied))
            }
            // A discarded component is ranked last.
            Covariance::Full => {
                let held = |added: f64| added.min(10.0 * F::LARGEST_COST);
                Form::Full(added().map(held).collect())
            }
            Covariance::Spherical => Form::Scaled(Box::new(Scaled::new(centres(), of_component))),
            Covariance::Diagonal | Covariance::Factors(_) => {
                let of = |c: usize, j: usize| relative(variances[c * dim + j], j);
                let scaled = Scaled::by_column(centres(), of, |c| penalties[c]);
                Form::Scaled(Box::new(scaled))
            }
        };
        Ok(Self {
            precisions: vec![Cached::default(); whitenings.len()],
            whitenings,
            penalties,
            form,
        })
    }

    /// The one transform that whitens all rows, if there is one.
    pub(super) fn shared(&self) -> Option<&Shared<F>> {
        match &self.form {
            Form::Tied(shared) => Some(shared),
            _ => None,
        }
    }

    /// The parts of the costs of factor analysers, once they have loadings.
    pub(super) fn factored(&self) -> Option<&Factored<F>> {
        match &self.form {
            Form::Factors(factored) => Some(factored),
            _ => None,
        }
    }

    pub(super) fn of<'m>(&'m self, theta: &'m Parameters<F>) -> Cost<'m, F> {
        let centres = &theta.centres;
        match &self.form {
            Form::Squared => Cost::Squared(centres),
            Form::Scaled(scaled) => Cost::Scaled(scaled),
            Form::Factors(factored) => Cost::LowRank(LowRank {
                factored,
                centres,
                loadings: &theta.loadings,
                noise: &theta.spread,
                ridge: &theta.prior.ridge,
                penalties: &self.penalties,
            }),
            Form::Tied(shared) => Cost::Whitened(Whitened::shared(shared, self.observed(theta))),
            Form::Full(added) => Cost::Whitened(Whitened::each(added, self.observed(theta))),
        }
    }

    /// The costs of rows that know some of their coordinates (E55), of covariances with all pairs of these.
    pub(super) fn observed<'m>(&'m self, theta: &'m Parameters<F>) -> Observed<'m> {
        Observed {
            transforms: &self.whitenings,
            precisions: &self.precisions,
            means: theta.covariance.is_tied().then_some(&theta.exact_means[..]),
            penalties: &self.penalties,
            ridge: &theta.prior.ridge,
            unit: theta.unit,
        }
    }
}

/// The whitening transforms of covariances with all pairs of coordinates: one, or one for each component.
fn whitenings<F: Float>(
    theta: &Parameters<F>,
    round: bool,
    watch: Watch<'_>,
) -> Result<Vec<Whitening>> {
    if !theta.covariance.has_pairs() {
        return Ok(Vec::new());
    }
    let deviation = theta.unit.sqrt();
    let number = theta.spread.len() / theta.dim().pow(2);
    let all = parallel::map(number, |c| {
        let mean = theta.exact_mean(c).to_vec();
        if round {
            return Ok(Whitening::spherical(mean, 1.0));
        }
        let relative: Vec<f64> = theta.own(c).iter().map(|x| x * deviation).collect();
        Whitening::of_factor(mean, &relative, watch)
    });
    parallel::all(all)
}
