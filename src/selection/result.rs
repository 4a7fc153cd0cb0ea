//! The result of a sweep: a table.

use super::{Criteria, Criterion};
use crate::base::float::Float;
use crate::em::Report;
use crate::model::BoxedMixture;
use std::fmt;

/// A model of a sweep, and how it compares.
#[derive(Debug)]
#[non_exhaustive]
pub struct Candidate<F: Float> {
    /// The number of clusters that was asked for.
    pub clusters: usize,
    /// The model.
    pub model: BoxedMixture<F>,
    /// The report of its fit: phases, evaluations, times.
    pub report: Report,
    /// Whether it was found from the model with fewer clusters, and not from seeds of its own.
    pub warm: bool,
    /// On the rows it was fitted to.
    pub criteria: Criteria,
    /// The mean log-likelihood of held-out rows per unit of weight, in nats; `None` if none were held out.
    pub held_out: Option<f64>,
    /// The standard error of its difference from the largest one in the table ([E49](crate::equations#e49)).
    pub held_out_error: Option<f64>,
}

impl<F: Float> Candidate<F> {
    /// The value of a criterion, where it has one.
    #[must_use]
    pub fn value(&self, criterion: Criterion) -> Option<f64> {
        match criterion {
            Criterion::HeldOut => self.held_out,
            _ => self.criteria.value(criterion),
        }
    }
}

/// Models with different numbers of clusters, fitted to the same rows. It prints as a table, where a star marks the best
/// model by each criterion.
#[derive(Debug)]
#[non_exhaustive]
pub struct Selection<F: Float> {
    /// All models, by their number of clusters.
    pub candidates: Vec<Candidate<F>>,
}

impl<F: Float> Selection<F> {
    /// The best model by a criterion; `None` if no model has a value. If models tie, it is the one with fewest clusters.
    #[must_use]
    pub fn best(&self, criterion: Criterion) -> Option<&Candidate<F>> {
        let values = self.candidates.iter().map(|one| one.value(criterion));
        let sign = match criterion {
            Criterion::HeldOut => -1.0,
            _ => 1.0,
        };
        let costs: Vec<Option<f64>> = values.map(|value| value.map(|x| sign * x)).collect();
        let least = costs.iter().flatten().copied().reduce(f64::min)?;
        let is_good = |(cost, candidate): &(&Option<f64>, &Candidate<F>)| {
            let slack = match criterion {
                Criterion::HeldOut => candidate.held_out_error.unwrap_or(0.0),
                _ => 0.0,
            };
            cost.is_some_and(|cost| cost <= least + slack)
        };
        let first_good = costs.iter().zip(&self.candidates).find(is_good);
        first_good.map(|(_, candidate)| candidate)
    }
}

impl<F: Float> fmt::Display for Selection<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>8} {:>6} {:>12}",
            "clusters", "in use", "mean log-lik"
        )?;
        for criterion in Criterion::ALL {
            write!(f, " {criterion:>11} ")?;
        }
        let best = Criterion::ALL.map(|criterion| self.best(criterion).map(|one| one.clusters));
        for one in &self.candidates {
            let Criteria {
                log_likelihood,
                in_use,
                ..
            } = one.criteria;
            let clusters = one.clusters;
            write!(f, "\n{clusters:>8} {in_use:>6} {log_likelihood:>12.5}")?;
            for (criterion, best) in Criterion::ALL.into_iter().zip(best) {
                let star = if best == Some(one.clusters) { "*" } else { " " };
                let value = match (criterion, one.value(criterion)) {
                    (_, None) => "-".to_string(),
                    (Criterion::HeldOut, Some(x)) => format!("{x:.5}"),
                    (_, Some(x)) => format!("{x:.1}"),
                };
                write!(f, " {value:>11}{star}")?;
            }
        }
        Ok(())
    }
}
