//! One variance for all components and columns: $\sigma^2 I_D$, the model behind k-means.

use super::common::Common;
use super::costs::{Costs, Form};
use super::kind::Kind;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct TiedSpherical {
    pub(in crate::families) variance: f64,
}

impl<F: Float> Kind<F> for TiedSpherical {
    fn numbers(&self) -> &[f64] {
        std::slice::from_ref(&self.variance)
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        std::slice::from_mut(&mut self.variance)
    }

    fn size(&self) -> usize {
        1
    }

    /// None: rows that all lie at their centres are no fault of a variance for all.
    fn at_floor(&self, _common: &Common<F>) -> Vec<usize> {
        Vec::new()
    }

    /// Squared distances.
    fn costs(&self, _common: &Common<F>, _watch: Watch<'_>) -> Result<Costs<F>> {
        Ok(Costs::new(Vec::new(), Vec::new(), Form::Squared))
    }
}
