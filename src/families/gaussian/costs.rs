//! Costs of rows under Gaussian components.

use super::common::Common;
use crate::base::cached::Cached;
use crate::base::float::Float;
use crate::costs::low_rank::Factored;
use crate::costs::observed::Observed;
use crate::costs::whitened::Shared;
use crate::costs::whitening::Whitening;
use crate::costs::{Factor, Scaled};

/// Costs of rows in units of a variance, as they follow from the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::families) struct Costs<F> {
    /// In units of the variance, if covariances have all pairs of coordinates: one, or (k).
    pub(super) whitenings: Vec<Whitening>,
    precisions: Vec<Cached<Vec<f64>>>,
    /// Added by proportions (k).
    pub(super) penalties: Vec<f64>,
    pub(super) form: Form<F>,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::families) enum Form<F> {
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

impl<F: Float> Form<F> {
    /// Squared distances in units of the one variance that there is in every direction.
    pub(super) fn round(common: &Common<F>) -> Self {
        let centres = common.centres.clone();
        Self::Scaled(Box::new(Scaled::new(centres, |_| Factor::ONE)))
    }
}

impl<F: Float> Costs<F> {
    pub(super) fn new(whitenings: Vec<Whitening>, penalties: Vec<f64>, form: Form<F>) -> Self {
        Self {
            precisions: vec![Cached::default(); whitenings.len()],
            whitenings,
            penalties,
            form,
        }
    }

    /// Whether they are squared distances alone, as those of one variance are.
    pub(super) fn are_squared(&self) -> bool {
        matches!(self.form, Form::Squared)
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

    /// The costs of rows that know some of their coordinates (E55), of covariances with all pairs of these; with the means of
    /// components that share one.
    pub(super) fn observed<'m>(
        &'m self,
        common: &'m Common<F>,
        means: Option<&'m [f64]>,
    ) -> Observed<'m> {
        Observed {
            transforms: &self.whitenings,
            precisions: &self.precisions,
            means,
            penalties: &self.penalties,
            ridge: &common.prior.ridge,
            unit: common.unit,
        }
    }
}
