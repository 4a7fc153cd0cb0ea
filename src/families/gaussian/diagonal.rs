//! A variance for each component and column: $\operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cD}^2)$ (E33).

use super::common::Common;
use super::costs::{Costs, Form};
use super::kind::Kind;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::costs::Scaled;
use crate::m_step::sums::moments::OfKind;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct Diagonal {
    pub(in crate::families) columns: usize,
    /// (k, d).
    pub(in crate::families) variances: Vec<f64>,
}

impl Diagonal {
    /// Squared differences with a factor for each component and coordinate.
    pub(super) fn form<F: Float>(&self, common: &Common<F>, penalties: &[f64]) -> Form<F> {
        let factor = |c: usize, j: usize| common.relative(self.variances[c * self.columns + j], j);
        let centres = common.centres.clone();
        Form::Scaled(Box::new(Scaled::by_column(centres, factor, |c| {
            penalties[c]
        })))
    }
}

impl<F: Float> Kind<F> for Diagonal {
    fn numbers(&self) -> &[f64] {
        &self.variances
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.variances
    }

    fn size(&self) -> usize {
        self.columns
    }

    fn costs(&self, common: &Common<F>, _watch: Watch<'_>) -> Result<Costs<F>> {
        let penalties = common.penalties();
        let form = self.form(common, &penalties);
        Ok(Costs::new(Vec::new(), penalties, form))
    }

    fn further_sums(&self, _k: usize) -> Option<OfKind> {
        Some(OfKind::Narrow(false))
    }
}
