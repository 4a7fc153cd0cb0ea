//! An E-step and an M-step with their model, as one object, so that the loop is not generic over them.
//!
//! The loop calls its stages once per block of rows, so it takes them behind a trait that hides their types. [`Joined`] is
//! its one implementation: it owns the model and what the stages keep, and only hands calls on.

use super::SavedStages;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::{Centres, Moments, Rows, Scores, Subspace};
use crate::e_step::{Bounded, EStep, Search};
use crate::io::FileFault;
use crate::m_step::{MStep, SharedVariance, Statistics};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use std::any::Any;

/// Statistics, whatever their type.
pub(crate) type Hidden = Box<dyn Any + Send>;

/// An E-step, an M-step and their model.
pub(crate) trait Joint<F: Float>: Sync {
    /// The model, in the coordinates of the phase.
    fn model(&self) -> &dyn Mixture<F>;
    /// The model in all coordinates, as the observer's type.
    fn shown(&mut self) -> &dyn Any;
    /// A copy of it.
    fn copy(&mut self) -> Box<dyn Any + Send>;
    /// The model in the coordinates of the phase, whatever its type.
    fn model_as_any(&self) -> &dyn Any;
    /// The model in all coordinates, at the end.
    fn into_model(self: Box<Self>) -> Box<dyn Any + Send>;
    /// Takes the coordinates of a subspace, if there is one, and begins the search of phase `phase`.
    fn enter(&mut self, phase: usize, subspace: Option<&Subspace<F>>, rng: &mut Rng) -> Result<()>;
    /// Takes the model back to all coordinates.
    fn leave(&mut self);

    /// What is needed to go on in the middle of a phase; `None` if the E-step cannot save its state.
    fn save(&self) -> std::result::Result<Option<SavedStages>, FileFault>;
    /// Goes on from it, in the phase that was entered.
    fn resume(&mut self, saved: &SavedStages) -> std::result::Result<(), FileFault>;

    /// The search of the phase.
    fn search(&self) -> &dyn Search<F>;
    fn search_mut(&mut self) -> &mut dyn Search<F>;
    /// Members of a support in this phase: a search from outside may say something else each time.
    fn width(&self) -> usize;
    /// The name of the E-step, for errors.
    fn search_name(&self) -> &'static str;
    /// The name of the M-step.
    fn family_name(&self) -> &'static str;
    fn bounds(&self) -> Option<&Bounded>;
    /// Searches before the first M-step, for either stage.
    fn initial_searches(&self) -> usize;
    fn restricted_steps(&self) -> usize;
    fn statistics_size(&self) -> usize;

    fn calibrate(&mut self, first: &Likelihood);

    fn statistics(&self) -> Hidden;
    /// Whether components merge (E51): some of this family do, with full supports.
    fn merges(&self) -> bool;
    /// The sums over no points for each of so many parts of the rows, in a pass after which components merge.
    fn statistics_to_merge(&self, parts: usize) -> Vec<Hidden>;
    fn accumulate(&self, rows: &Rows<F>, block: &Block<F>, statistics: &mut (dyn Any + Send));
    /// The sums of all parts, whose memory is reused; the residual of a subspace is added.
    fn merge(&self, parts: &mut Vec<Hidden>, residual: f64) -> Merged;
    /// Merges components in the statistics, where that is sure to raise the free energy (E51); how many.
    fn merge_components(&self, statistics: &mut (dyn Any + Send)) -> usize;
    /// The M-step. An error, if the model has another shape after it.
    fn update(&mut self, statistics: Hidden, restricted: bool) -> Result<()>;
    /// Puts centres in the place of those of the model.
    fn place(&mut self, centres: Centres<F>) -> Result<()>;
    /// The M-step from kept statistics: moments about the current means, squared distances, the weight of all coordinates.
    fn update_from(&mut self, moments: Moments, squared: f64, entries: f64) -> Result<()>;
}

/// Statistics over all rows.
pub(crate) struct Merged {
    pub(crate) statistics: Hidden,
    pub(crate) zero_mass: usize,
    pub(crate) unobserved: usize,
}

/// The stages of a fit, one E-step per phase, and the model.
pub(crate) struct Joined<'a, F: Float, M: MStep<F>> {
    e_steps: Vec<&'a dyn EStep<F>>,
    e_step: &'a dyn EStep<F>,
    /// None before the first phase.
    search: Option<Box<dyn Search<F>>>,
    width: usize,
    m_step: &'a M,
    /// In the coordinates of the phase.
    model: M::Model,
    /// In all coordinates, while `model` is in a subspace.
    whole: Option<(M::Model, Subspace<F>)>,
}

impl<'a, F: Float, M: MStep<F>> Joined<'a, F, M> {
    pub(crate) fn new(e_steps: Vec<&'a dyn EStep<F>>, m_step: &'a M, model: M::Model) -> Self {
        Self {
            e_step: e_steps[0],
            search: None,
            width: 0,
            e_steps,
            m_step,
            model,
            whole: None,
        }
    }

    /// Begins a search, or goes on with one.
    fn begin(&mut self, saved: Option<&[u8]>, rng: &mut Rng) -> Result<()> {
        let search = self.e_step.begin(&self.model, saved, rng)?;
        self.width = search.width();
        self.search = Some(search);
        Ok(())
    }

    fn components(&self) -> usize {
        self.model.components()
    }

    fn shared_variance(&self) -> Result<&'a dyn SharedVariance<F, M::Model, M::Statistics>> {
        let rule =
            "need one variance for all components: Covariance::TiedSpherical, or another search";
        let missing = || Error::parameter("phases", "bounds or a subspace", rule);
        self.m_step.shared_variance().ok_or_else(missing)
    }

    /// The whole model with what the one in the subspace has learned.
    fn lift(&mut self) {
        if let Some((whole, subspace)) = &mut self.whole
            && let Some(shared) = self.m_step.shared_variance()
        {
            shared.lift(whole, &self.model, subspace);
        }
    }
}

impl<F: Float, M: MStep<F>> Joint<F> for Joined<'_, F, M> {
    fn model(&self) -> &dyn Mixture<F> {
        &self.model
    }

    fn shown(&mut self) -> &dyn Any {
        self.lift();
        self.whole.as_ref().map_or(&self.model, |(whole, _)| whole)
    }

    fn copy(&mut self) -> Box<dyn Any + Send> {
        self.lift();
        let whole = self.whole.as_ref().map(|(whole, _)| whole);
        Box::new(whole.unwrap_or(&self.model).clone())
    }

    fn model_as_any(&self) -> &dyn Any {
        &self.model
    }

    fn into_model(mut self: Box<Self>) -> Box<dyn Any + Send> {
        self.leave();
        Box::new(self.model)
    }

    fn enter(&mut self, phase: usize, subspace: Option<&Subspace<F>>, rng: &mut Rng) -> Result<()> {
        self.e_step = self.e_steps[phase];
        if let Some(subspace) = subspace {
            let projected = self.shared_variance()?.project(&self.model, subspace);
            let whole = std::mem::replace(&mut self.model, projected);
            self.whole = Some((whole, subspace.clone()));
        }
        self.begin(None, rng)
    }

    fn leave(&mut self) {
        self.lift();
        if let Some((whole, _)) = self.whole.take() {
            self.model = whole;
        }
    }

    fn save(&self) -> std::result::Result<Option<SavedStages>, FileFault> {
        let Some(state) = self.search().save() else {
            return Ok(None);
        };
        let whole = self.whole.as_ref();
        let whole = whole.map(|(whole, _)| saved_model::<F, _>(whole));
        Ok(Some(SavedStages {
            model: saved_model::<F, _>(&self.model)?,
            whole: whole.transpose()?,
            state,
        }))
    }

    fn resume(&mut self, saved: &SavedStages) -> std::result::Result<(), FileFault> {
        let model = loaded_model::<F, M::Model>(&saved.model)?;
        if shape(&model) != shape(&self.model) || model.frame() != self.model.frame() {
            let rule = "must be in the coordinates of the phase";
            return Err(FileFault::content("model", rule));
        }
        self.model = model;
        let begun = self.begin(Some(&saved.state), &mut Rng::from_seed(0));
        begun.map_err(fault_of)
    }

    fn search(&self) -> &dyn Search<F> {
        self.search.as_deref().expect("in a phase")
    }

    fn search_mut(&mut self) -> &mut dyn Search<F> {
        self.search.as_deref_mut().expect("in a phase")
    }

    fn width(&self) -> usize {
        self.width
    }

    fn search_name(&self) -> &'static str {
        self.e_step.name()
    }

    fn family_name(&self) -> &'static str {
        self.m_step.name()
    }

    fn bounds(&self) -> Option<&Bounded> {
        self.e_step.bounds()
    }

    fn initial_searches(&self) -> usize {
        let of_search = self.search().initial_searches();
        of_search.max(self.m_step.initial_searches())
    }

    fn restricted_steps(&self) -> usize {
        self.m_step.restricted_steps(self.width < self.components())
    }

    fn statistics_size(&self) -> usize {
        self.m_step.statistics_size(&self.model)
    }

    fn calibrate(&mut self, first: &Likelihood) {
        self.m_step.calibrate(&mut self.model, first);
    }

    fn statistics(&self) -> Hidden {
        Box::new(self.m_step.statistics(&self.model))
    }

    fn accumulate(&self, rows: &Rows<F>, block: &Block<F>, statistics: &mut (dyn Any + Send)) {
        let statistics = shown(statistics);
        self.m_step.accumulate(rows, block, &self.model, statistics);
    }

    fn merge(&self, parts: &mut Vec<Hidden>, residual: f64) -> Merged {
        let mut found: Vec<M::Statistics> = parts.drain(..).map(taken).collect();
        let mut all = M::Statistics::merge(&mut found);
        parts.extend(found.into_iter().map(|part| Box::new(part) as Hidden));
        if let Some(shared) = self.m_step.shared_variance() {
            shared.add_residual(&mut all, residual);
        }
        Merged {
            zero_mass: all.zero_mass(),
            unobserved: all.unobserved(),
            statistics: Box::new(all),
        }
    }

    fn merges(&self) -> bool {
        self.width == self.components() && self.m_step.merging().is_some()
    }

    fn statistics_to_merge(&self, parts: usize) -> Vec<Hidden> {
        let merging = self.m_step.merging();
        let statistics = merging.map(|m| m.statistics_to_merge(&self.model, parts));
        let statistics = statistics.into_iter().flatten();
        statistics.map(|part| Box::new(part) as Hidden).collect()
    }

    fn merge_components(&self, statistics: &mut (dyn Any + Send)) -> usize {
        let merging = self.m_step.merging();
        merging.map_or(0, |m| m.merge_components(shown(statistics), &self.model))
    }

    fn update(&mut self, statistics: Hidden, restricted: bool) -> Result<()> {
        let before = shape(&self.model);
        self.m_step
            .update(taken(statistics), &mut self.model, restricted);
        let after = shape(&self.model);
        if before == after {
            return Ok(());
        }
        let what = format!(
            "{} components with {} centres of {} coordinates after an M-step: there must be {}, {} and {}, as before",
            after[0], after[1], after[2], before[0], before[1], before[2]
        );
        Err(Error::stage(self.family_name(), what))
    }

    fn place(&mut self, centres: Centres<F>) -> Result<()> {
        self.shared_variance()?.place(&mut self.model, centres);
        Ok(())
    }

    fn update_from(&mut self, mut moments: Moments, squared: f64, entries: f64) -> Result<()> {
        let shared = self.shared_variance()?;
        moments.add_total(squared, entries);
        let statistics = shared.statistics_of(moments);
        self.m_step.update(statistics, &mut self.model, false);
        Ok(())
    }
}

/// Components and centres, and their coordinates.
pub(crate) fn shape<F: Float>(model: &impl Mixture<F>) -> [usize; 3] {
    let centres = model.centres();
    [model.components(), centres.len(), centres.dim()]
}

/// A model as bytes, for a checkpoint.
pub(crate) fn saved_model<F: Float, M: Mixture<F>>(
    model: &M,
) -> std::result::Result<Vec<u8>, FileFault> {
    model.saved(&[]).map_err(fault_of)
}

/// A model from its bytes in a checkpoint.
pub(crate) fn loaded_model<F: Float, M: Mixture<F>>(
    bytes: &[u8],
) -> std::result::Result<M, FileFault> {
    M::loaded(bytes).map_err(fault_of)
}

/// What is wrong with a model, whichever file it is in.
fn fault_of(error: Error) -> FileFault {
    match error {
        Error::Model { fault, .. } => fault,
        _ => FileFault::content("model", "must be a model"),
    }
}

/// What is hidden, to be worked with: every phase makes its own, so the type is the one expected.
fn shown<T: 'static>(hidden: &mut (dyn Any + Send)) -> &mut T {
    hidden.downcast_mut().expect("made by the same stages")
}

/// What is hidden, taken out.
fn taken<T: 'static>(hidden: Hidden) -> T {
    *hidden.downcast().expect("made by the same stages")
}
