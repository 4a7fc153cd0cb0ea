//! A fit, from its stages to its result.

use super::builder::{Builder, Clusterer, Pipeline, Settings};
use super::phase::Phase;
use super::result::Fit;
use super::warm::WarmStart;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::Data;
use crate::em::{Identity, Progress};
use crate::m_step::MStep;
use std::ops::ControlFlow;

impl<F: Float, M: MStep<F>> Builder<F, M> {
    /// Builds, and fits the model to the data: [`build`](Self::build) and [`Clusterer::fit`].
    ///
    /// # Errors
    /// The errors of both.
    pub fn fit(self, data: &dyn Data<F>) -> Result<Fit<M::Model>> {
        self.build()?.fit(data)
    }
}

impl<F: Float, M: MStep<F>> Clusterer<F, M> {
    /// Fits the model to the data.
    ///
    /// # Errors
    /// [`Error::TooManyClusters`](crate::Error::TooManyClusters) if the data, or the coreset drawn from it, has fewer rows of positive
    /// weight than there are clusters; errors of the seeder and of the M-step; [`Error::Stage`](crate::Error::Stage) for a stage of yours
    /// that breaks its rules.
    pub fn fit(&self, data: &dyn Data<F>) -> Result<Fit<M::Model>> {
        self.run(data, &*self.pipeline.seeder, None)
    }

    /// Fits the model, showing every step to `observer`. When that returns `ControlFlow::Break`, the fit ends with the
    /// search that is shown. Before there is one, it ends with the first search, which is at the seeds.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// use std::ops::ControlFlow;
    /// # use ndarray::Array2;
    /// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
    /// # let data = Dense::new(x.view())?;
    ///
    /// let fit = algorithms::k_means(6).build()?.fit_observed(&data, |progress| {
    ///     if let Progress::Iteration { phase, iteration, limit, free_energy, .. } = progress {
    ///         println!("phase {phase}: {iteration} of at most {limit} iterations, F = {free_energy:.4e}");
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(fit.report.stop, Stop::Converged);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fit_observed(
        &self,
        data: &dyn Data<F>,
        mut observer: impl FnMut(&Progress<'_, F>) -> ControlFlow<()>,
    ) -> Result<Fit<M::Model>> {
        self.run(data, &*self.pipeline.seeder, Some(&mut observer))
    }
}

impl<F: Float> Pipeline<F> {
    /// The identity of a fit with this seeder and this family, for its checkpoints.
    pub(super) fn identity(
        &self,
        data: &dyn Data<F>,
        [seeder, family]: [String; 2],
        phases: &[Phase<F>],
    ) -> Result<Identity> {
        let Settings {
            clusters,
            rule,
            restarts,
            standardise,
            directions,
            seed,
            ref warm,
            ..
        } = self.settings;
        let mut identity = Identity::default();
        identity.push("crate version", env!("CARGO_PKG_VERSION"));
        identity.push("sketch", data.is_ragged());
        identity.push("number type", F::NAME);
        identity.push("clusters", clusters);
        identity.push("coreset", format_args!("{:?}", self.coreset));
        identity.push("seeder", seeder);
        for (number, phase) in phases.iter().enumerate() {
            identity.push(format_args!("phase {number}"), format_args!("{phase:?}"));
        }
        identity.push("family", family);
        let start = warm.as_ref().map(WarmStart::fingerprint);
        identity.push("start", start.as_deref().unwrap_or("seeds"));
        identity.push("tolerance", format_args!("{:?}", rule.tolerance.share()));
        identity.push("stop rule", format_args!("{:?}", rule.rule));
        identity.push("max iterations", rule.max_iterations);
        identity.push("restarts", restarts);
        identity.push("standardise", standardise);
        identity.push("directions", directions);
        identity.push("seed", seed);
        identity.push_data(data)?;
        Ok(identity)
    }
}
