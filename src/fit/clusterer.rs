//! A fit, from its stages to its result.

use super::builder::Clusterer;
use super::fingerprint::Fingerprint;
use super::phase::Phase;
use super::result::Fit;
use super::task::{Names, Run, Settings};
use super::warm::WarmStart;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::stage::{self, Stage};
use crate::data::{Centres, Checked, Data};
use crate::em::{
    Event, Joined, Joint, Observer, Progress, Saver, Watch, loaded_model, saved_model, shape,
};
use crate::io::FileFault;
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::seed::Seeder;
use std::any::Any;
use std::ops::ControlFlow;

impl<F: Float, M: MStep<F>> Clusterer<F, M> {
    /// Fits the model to the data.
    ///
    /// # Errors
    /// [`Error::TooManyClusters`] if the data, or the coreset drawn from it, has fewer rows of positive
    /// weight than there are clusters; what the seeder objects to, and the M-step; [`Error::Stage`] for a stage of yours
    /// that breaks its rules.
    pub fn fit(&self, data: &dyn Data<F>) -> Result<Fit<M::Model>> {
        self.run(data, &*self.seeder, None)
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
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_observed(
        &self,
        data: &dyn Data<F>,
        mut observer: impl FnMut(&Progress<'_, M::Model>) -> ControlFlow<()>,
    ) -> Result<Fit<M::Model>> {
        let mut closure = |event: Event<'_>| observer(&event.of::<M::Model>());
        self.run(data, &*self.seeder, Some(&mut closure))
    }

    /// What this fit is, for its checkpoints.
    fn header(&self, data: &dyn Data<F>, seeder: &str, phases: &[Phase<F>]) -> String {
        let Settings {
            rule,
            restarts,
            seed,
            ref warm,
            ..
        } = self.settings;
        let mut header = Fingerprint::default();
        header.add("crate version", env!("CARGO_PKG_VERSION"));
        header.add("sketch", data.is_sparse());
        header.add("number type", <F as crate::io::Number>::NAME);
        header.add("clusters", self.clusters);
        header.add("coreset", self.coreset.settings());
        header.add("seeder", seeder);
        for (number, phase) in phases.iter().enumerate() {
            header.add(format_args!("phase {number}"), phase.settings());
        }
        header.add("family", self.m_step.settings());
        let start = warm.as_ref().map(WarmStart::fingerprint);
        header.add("start", start.as_deref().unwrap_or("seeds"));
        header.add("tolerance", format_args!("{:?}", rule.tolerance));
        header.add("stop rule", format_args!("{:?}", rule.rule));
        header.add("max iterations", rule.max_iterations);
        header.add("restarts", restarts);
        header.add("seed", seed);
        header.add_data(data);
        header.into_text()
    }

    /// Hides the types of the stages, runs, and brings the model's back. The seeder may be another than its own.
    pub(super) fn run(
        &self,
        data: &dyn Data<F>,
        seeder: &dyn Seeder<F>,
        observer: Option<Observer<'_>>,
    ) -> Result<Fit<M::Model>> {
        let checked = Checked::unless_known(data)?;
        let data = checked.as_ref().map_or(data, |checked| checked);
        let fault = checked.as_ref().map(Checked::fault);
        let watch = Watch::new(observer, self.settings.cancel.clone(), fault);
        let phases = self.phases_for(data.summary().rows, data.dim())?;
        let saver = match &self.settings.checkpoint {
            Some(checkpoint) => Some(Saver::new(
                checkpoint,
                self.header(data, &seeder.settings(), &phases),
            )?),
            None => None,
        };
        let mut watch = watch.with_checkpoints(saver);
        let (m_step, clusters) = (&self.m_step, self.clusters);
        let joined = |model| -> Box<dyn Joint<F> + '_> {
            let e_steps = phases.iter().map(|phase| &*phase.e_step).collect();
            Box::new(Joined::new(e_steps, m_step, model))
        };
        let start = |seeds: Centres<F>, frame| -> Result<Box<dyn Joint<F> + '_>> {
            let (k, d) = (seeds.len(), seeds.dim());
            let model = m_step.start(seeds, frame, data)?;
            let (found, in_frame) = (shape(&model), model.frame().dim());
            if found != [k, k, d] || in_frame != d {
                let [components, centres, dim] = found;
                let what = format!(
                    "{components} components with {centres} centres of {dim} coordinates in a frame of {in_frame}: \
                     there must be one for each of {k} seeds of {d} coordinates"
                );
                return Err(Error::stage(stage::name::<M>(), what));
            }
            Ok(joined(model))
        };
        let warm = self.settings.warm.as_ref().map(|warm| {
            move |frame| {
                let (model, known) = warm.model(m_step, clusters, frame, data)?;
                Ok((joined(model), known))
            }
        });
        let load = |bytes: &[u8]| {
            let model = loaded_model::<F, M::Model>(bytes)?;
            let fits = shape(&model) == [clusters, clusters, data.dim()];
            match fits && *model.frame() == data.frame() {
                true => Ok(joined(model)),
                false => {
                    let rule = "must be in the coordinates of the data";
                    Err(FileFault::content("model", rule))
                }
            }
        };
        let save = |model: &dyn Any| {
            let model = model.downcast_ref::<M::Model>();
            saved_model::<F, _>(model.expect("a model of the M-step"))
        };
        let run = Run {
            data,
            coreset: &*self.coreset,
            seeder,
            start: &start,
            warm: warm.as_ref().map(|warm| warm as _),
            load: &load,
            save: &save,
            outlines: phases.iter().map(|phase| phase.outline).collect(),
            clusters: self.clusters,
            settings: &self.settings,
            names: Names {
                coreset: self.coreset.name(),
                seeder: seeder.name(),
            },
        };
        let fitted = super::run::run(run, &mut watch);
        if let Some(checked) = &checked {
            checked.result()?;
        }
        let fitted = fitted?;
        let model = fitted.model.downcast();
        let (labels, supports) = fitted.supports.into_arrays();
        Ok(Fit {
            model: *model.expect("a model of the M-step"),
            report: fitted.report,
            exact: fitted.exact,
            labels,
            supports,
            coreset: fitted.subset,
        })
    }
}
