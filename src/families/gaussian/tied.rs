//! One covariance with all pairs of columns, for all components: $\Sigma$ (E52).

use super::common::Common;
use super::costs::{Costs, Form};
use super::covariance::Covariance;
use super::kind::Step;
use super::pairs::{Found, Pairs};
use super::triangles::{Triangles, dot};
use crate::base::cancel::unwatched;
use crate::base::float::Float;
use crate::costs::whitened::Shared;
use crate::costs::whitening::Whitening;
use crate::families::variances::ROUNDING;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;

/// Second moments about a fixed point are kept from pass to pass up to this many roundings of shares in the variance of the
/// narrowest direction.
const LEAST_SHARED: f64 = 1e-2;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::families) struct Tied(pub(in crate::families) Triangles);

impl Pairs for Tied {
    const KIND: Covariance = Covariance::Tied;
    const SECOND: SecondMoments = SecondMoments::Pairs;

    fn triangles(&self) -> &Triangles {
        &self.0
    }

    fn triangles_mut(&mut self) -> &mut Triangles {
        &mut self.0
    }

    /// Squared distances of rows that one transform whitens.
    fn form<F: Float>(&self, whitenings: &[Whitening], added: Vec<f64>) -> Form<F> {
        Form::Tied(Box::new(Shared::new(&whitenings[0], &self.0.means, &added)))
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
        if let Some(entries) = rows.entries() {
            let observed = costs.observed(common, Some(&self.0.means));
            return sums.add_completed(rows, entries, block, &observed, mean);
        }
        let origin = self.shared_origin(common);
        if let Some(shared) = costs.shared()
            && block.is_full()
            && !origin.is_empty()
        {
            // Shares sum to 1 up to their rounding, which must not count in the narrowest direction.
            let stay = self.spread_between(common, &origin) <= LEAST_SHARED / F::EPSILON;
            return sums.add_whitened(rows, block, shared, &origin, stay);
        }
        sums.add_pairs(rows, block, mean, |_| None, &origin);
    }

    fn found<F: Float>(&mut self, common: &mut Common<F>, step: &Step<'_, F>) -> Found {
        let sums = &step.sums;
        let dim = common.dim();
        let mut steps = sums.steps();
        if sums.scatter().whitened {
            let back = unwatched(step.costs.whitenings[0].inverse(None));
            for own in steps.chunks_exact_mut(dim) {
                for (j, row) in back.chunks_exact(dim).enumerate().rev() {
                    let along = row[..=j].iter().zip(&*own);
                    own[j] = along.map(|(x, s)| x * s).sum();
                }
            }
        }
        self.0.step(common, &steps);
        Found {
            sums: vec![sums.within(&common.origin(), &self.0.means, &steps)],
            masses: vec![sums.mass.iter().sum()],
            // Sums about the mean of the data are never about the means: they keep what digits they have.
            lost: if sums.scatter().about_means {
                ROUNDING
            } else {
                64.0 * f64::EPSILON
            },
        }
    }
}

impl Tied {
    /// The mean (d) of the data that sums of all components are about, if these have digits enough for the narrowest direction; else
    /// none.
    fn shared_origin<F: Float>(&self, common: &Common<F>) -> Vec<f64> {
        /// The part subtracted from these sums, in variances of that direction.
        const MOST: f64 = 1e8;
        // Before the first M-step it is not known how narrow that is.
        if self.0.is_round(common.unit) {
            return Vec::new();
        }
        let origin = common.origin();
        if self.spread_between(common, &origin) <= MOST {
            origin
        } else {
            Vec::new()
        }
    }

    /// How far the means are from a point (d), squared, in variances of the narrowest direction.
    fn spread_between<F: Float>(&self, common: &Common<F>, origin: &[f64]) -> f64 {
        let mut between = vec![0.0; origin.len()];
        let means = self.0.means.chunks_exact(origin.len());
        for (mean, share) in means.zip(&common.proportions.values) {
            for ((sum, m), a) in between.iter_mut().zip(mean).zip(origin) {
                *sum += share * (m - a).powi(2);
            }
        }
        dot(&between, &self.0.precisions(0))
    }
}
