//! One variance for all components and columns: $\sigma^2 I_D$, the model behind k-means.

use super::common::Common;
use super::costs::{Costs, Form};
use super::covariance::Covariance;
use super::kind::{Among, Kind, Step};
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::rule;
use crate::m_step::{Moments, SecondMoments};

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct TiedSpherical {
    pub(in crate::families) variance: f64,
}

impl<F: Float> Kind<F> for TiedSpherical {
    fn covariance(&self) -> Covariance {
        Covariance::TiedSpherical
    }

    fn numbers(&self) -> &[f64] {
        std::slice::from_ref(&self.variance)
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        std::slice::from_mut(&mut self.variance)
    }

    fn size(&self) -> usize {
        1
    }

    fn floors(&self, common: &Common<F>, _c: usize) -> Vec<f64> {
        self.shared_floors(common)
    }

    /// None: rows that all lie at their centres are no fault of a variance for all.
    fn at_floor(&self, _common: &Common<F>) -> Vec<usize> {
        Vec::new()
    }

    fn of_columns(&self, among: Among) -> Covariance {
        if among.is_standardised {
            Covariance::Diagonal
        } else if among.conditioned || !among.equal_proportions {
            Covariance::Spherical
        } else {
            Covariance::TiedSpherical
        }
    }

    /// Squared distances.
    fn costs(&self, _common: &Common<F>, _watch: Watch<'_>) -> Result<Costs<F>> {
        Ok(Costs::new(Vec::new(), Vec::new(), Form::Squared))
    }

    fn statistics(&self, common: &Common<F>) -> Moments {
        Moments::zeros(common.k(), common.dim(), SecondMoments::Total)
    }

    fn update(&mut self, common: &mut Common<F>, step: Step<'_, F>) -> Result<()> {
        let restricted = true;
        self.update_variances(common, &Step { restricted, ..step });
        Ok(())
    }

    fn check(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        self.check_numbers(common)?;
        let plain = common.unit == self.variance && common.proportions.free() == 0;
        rule(
            plain,
            "variances",
            "must be the unit of costs, and proportions equal",
        )
    }
}
