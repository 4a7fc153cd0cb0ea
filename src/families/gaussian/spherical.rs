//! A variance for each component: $\sigma_c^2 I_D$ (E31).

use super::common::Common;
use super::costs::{Costs, Form};
use super::kind::Kind;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::costs::{Factor, Scaled};

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct Spherical {
    /// (k).
    pub(in crate::families) variances: Vec<f64>,
}

impl<F: Float> Kind<F> for Spherical {
    fn numbers(&self) -> &[f64] {
        &self.variances
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.variances
    }

    fn size(&self) -> usize {
        1
    }

    /// Squared distances with a factor and an addend for each component.
    fn costs(&self, common: &Common<F>, _watch: Watch<'_>) -> Result<Costs<F>> {
        let penalties = common.penalties();
        let scaled = Scaled::new(common.centres.clone(), |c| {
            let (factor, per_coordinate) = common.relative(self.variances[c], 0);
            Factor {
                factor,
                per_coordinate,
                added: penalties[c],
            }
        });
        let form = Form::Scaled(Box::new(scaled));
        Ok(Costs::new(Vec::new(), penalties, form))
    }
}
