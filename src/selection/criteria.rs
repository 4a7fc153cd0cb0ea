//! BIC, AIC and ICL of a model (E47).

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::data::Data;
use crate::model::Mixture;
use crate::model::facts::Facts;
use crate::model::predict;
use std::fmt;

/// A criterion by which models are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Criterion {
    /// Schwarz's criterion ([E47](crate::equations#e47)): lower is better.
    Bic,
    /// Akaike's criterion ([E47](crate::equations#e47)): lower is better.
    Aic,
    /// BIC of rows together with their likeliest components ([E47](crate::equations#e47)): lower is better.
    Icl,
    /// Log-likelihood of held-out rows ([E49](crate::equations#e49)): higher is better. The best model is the one with fewest
    /// clusters among those within one standard error of the highest value.
    HeldOut,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bic, Self::Aic, Self::Icl, Self::HeldOut];
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bic => "BIC",
            Self::Aic => "AIC",
            Self::Icl => "ICL",
            Self::HeldOut => "held-out",
        })
    }
}

/// How well a model fits rows, and how many numbers it needed for that.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Criteria {
    /// The number of rows, n: their total weight, or the effective number of rows of a coreset
    /// ([E48](crate::equations#e48)).
    pub sample_size: f64,
    /// As [`Mixture::free_parameters`].
    pub free_parameters: Option<usize>,
    /// The mean log-likelihood per unit of weight, in nats.
    pub log_likelihood: f64,
    /// The mean log-likelihood of rows together with their likeliest components, in nats:
    ///
    /// $$\frac 1W \sum_n w_n \max_c \ln p(c, y_n \mid \theta)$$
    pub(crate) complete_log_likelihood: f64,
    /// Components that are the likeliest of at least one row of positive weight.
    pub in_use: usize,
}

impl Criteria {
    /// The criteria of a model on any rows, normally those that it was fitted to.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] if the data has another number of columns than the model, [`Error::BasisMismatch`] for a
    /// sketch in other coordinates, [`Error::TotalWeight`] for data without weight.
    pub fn of<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Result<Self> {
        let total = data.summary().total_weight;
        if total.is_nan() || total <= 0.0 {
            return Err(Error::TotalWeight { total });
        }
        let complete = predict::classify(&Facts::of(model.plain().unwrap_or(model)), data)?;
        Ok(Self {
            sample_size: total,
            free_parameters: model.free_parameters(),
            log_likelihood: model.log_likelihood(data)? / total,
            complete_log_likelihood: complete.log_likelihood / total,
            in_use: complete.in_use,
        })
    }

    /// The value of a criterion. `None` for [`HeldOut`](Criterion::HeldOut), which other rows tell; where parameters are
    /// not counted; and for BIC and ICL if n is at most 1, where weights cannot be counts.
    #[must_use]
    pub fn value(&self, criterion: Criterion) -> Option<f64> {
        let n = self.sample_size;
        let p = self.free_parameters? as f64;
        let fit = self.log_likelihood;
        let complete = self.complete_log_likelihood;
        match criterion {
            Criterion::Bic | Criterion::Icl if n <= 1.0 => None,
            Criterion::Bic => Some(-2.0 * n * fit + p * n.ln()),
            Criterion::Icl => Some(-2.0 * n * complete + p * n.ln()),
            Criterion::Aic => Some(-2.0 * n * fit + 2.0 * p),
            Criterion::HeldOut => None,
        }
    }
}
