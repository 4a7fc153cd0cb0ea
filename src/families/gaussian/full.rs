//! A covariance for each component, with all pairs of columns: $\Sigma_c$ (E52).

use super::common::Common;
use super::costs::{Costs, Form};
use super::covariance::Covariance;
use super::kind::Step;
use super::pairs::{Found, Pairs};
use super::triangles::Triangles;
use crate::base::float::Float;
use crate::base::parallel;
use crate::costs::whitening::Whitening;
use crate::families::variances::ROUNDING;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct Full(pub(in crate::families) Triangles);

impl Pairs for Full {
    const KIND: Covariance = Covariance::Full;
    const SECOND: SecondMoments = SecondMoments::PerPair;

    fn triangles(&self) -> &Triangles {
        &self.0
    }

    fn triangles_mut(&mut self) -> &mut Triangles {
        &mut self.0
    }

    /// Squared distances of rows that each component whitens. A discarded component is ranked last.
    fn form<F: Float>(&self, _whitenings: &[Whitening], added: Vec<f64>) -> Form<F> {
        let most = 10.0 * F::LARGEST_COST;
        Form::Full(added.into_iter().map(|added| added.min(most)).collect())
    }

    fn add<F: Float>(
        &self,
        common: &Common<F>,
        costs: &Costs<F>,
        rows: &Rows<F>,
        block: &Block<F>,
        sums: &mut Moments,
    ) {
        let mean = |c: usize| self.0.mean(c);
        match rows.entries() {
            Some(entries) => {
                let observed = costs.observed(common, None);
                sums.add_completed(rows, entries, block, &observed, mean);
            }
            None => sums.add_pairs(rows, block, mean, |_| None, &[]),
        }
    }

    fn found<F: Float>(&mut self, common: &mut Common<F>, step: &Step<'_, F>) -> Found {
        let sums = &step.sums;
        let dim = common.dim();
        let steps = sums.steps();
        self.0.step(common, &steps);
        Found {
            sums: parallel::map(common.k(), |c| sums.about(c, &steps[c * dim..][..dim])),
            masses: sums.mass.clone(),
            lost: ROUNDING,
        }
    }
}
