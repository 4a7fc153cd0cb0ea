//! The search and the family of a phase, with their model.

use super::SavedStages;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::{Centres, Scores, Subspace};
use crate::e_step::{Bounded, EStep, Search};
use crate::io::FileFault;
use crate::m_step::{MStep, Moments, SharedVariance, Statistics};
use crate::model::Mixture;
use crate::model::posterior::Likelihood;

/// The stages of a phase, and the model.
pub(crate) struct Stages<'a, F: Float, M: MStep<F>> {
    pub(super) m_step: &'a M,
    e_step: &'a dyn EStep<F>,
    pub(super) search: Box<dyn Search<F>>,
    /// Members of a support: a search from outside may say something else each time.
    pub(super) width: usize,
    /// In the coordinates of the phase.
    model: M::Model,
    /// In all coordinates, while `model` is in a subspace.
    whole: Option<(M::Model, Subspace<F>)>,
}

impl<'a, F: Float, M: MStep<F>> Stages<'a, F, M> {
    /// Takes the model to the coordinates of a subspace, if there is one, and begins a search.
    pub(crate) fn begin(
        m_step: &'a M,
        e_step: &'a dyn EStep<F>,
        mut model: M::Model,
        subspace: Option<&Subspace<F>>,
        rng: &mut Rng,
    ) -> Result<Self> {
        let mut whole = None;
        if let Some(subspace) = subspace {
            let projected = one_variance(m_step)?.project(&model, subspace);
            whole = Some((std::mem::replace(&mut model, projected), subspace.clone()));
        }
        let search = e_step.begin(&model, None, rng)?;
        let (width, most) = (search.width(), model.components());
        if !(1..=most).contains(&width) {
            let what = format!("width {width}: must be at least 1, and at most {most}");
            return Err(Error::stage(e_step.name(), what));
        }
        Ok(Self {
            m_step,
            e_step,
            search,
            width,
            model,
            whole,
        })
    }

    /// Goes on in the middle of the phase.
    pub(crate) fn resume(&mut self, saved: &SavedStages) -> std::result::Result<(), FileFault> {
        let model = loaded_model::<F, M::Model>(&saved.model)?;
        if shape(&model) != shape(&self.model) || model.frame() != self.model.frame() {
            let rule = "must be in the coordinates of the phase";
            return Err(FileFault::content("model", rule));
        }
        self.model = model;
        let (state, mut rng) = (Some(&saved.state[..]), Rng::from_seed(0));
        let search = self.e_step.begin(&self.model, state, &mut rng);
        self.search = search.map_err(fault_of)?;
        Ok(())
    }

    /// What is needed to go on in the middle of a phase; `None` if the search cannot save its state.
    pub(super) fn save(&self) -> std::result::Result<Option<SavedStages>, FileFault> {
        let Some(state) = self.search.save() else {
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

    /// The model, in the coordinates of the phase.
    pub(crate) fn model(&self) -> &M::Model {
        &self.model
    }

    /// The model in all coordinates.
    pub(super) fn whole_model(&mut self) -> &M::Model {
        if let Some((whole, subspace)) = &mut self.whole
            && let Some(shared) = self.m_step.shared_variance()
        {
            shared.lift(whole, &self.model, subspace);
        }
        self.whole.as_ref().map_or(&self.model, |(whole, _)| whole)
    }

    /// The model in all coordinates, at the end.
    pub(crate) fn into_model(mut self) -> M::Model {
        self.whole_model();
        self.whole.map_or(self.model, |(whole, _)| whole)
    }

    /// The name of the E-step, for errors.
    pub(super) fn search_name(&self) -> &'static str {
        self.e_step.name()
    }

    /// The name of the M-step, for errors.
    pub(super) fn family_name(&self) -> &'static str {
        self.m_step.name()
    }

    pub(super) fn bounds(&self) -> Option<&Bounded> {
        self.e_step.bounds()
    }

    pub(super) fn restricted_steps(&self) -> usize {
        let truncated = self.width < self.model.components();
        self.m_step.restricted_steps(truncated)
    }

    /// Starts the variance.
    pub(super) fn calibrate(&mut self, first: &Likelihood) {
        self.m_step.calibrate(&mut self.model, first);
    }

    /// The sums over all parts, whose memory is reused; the residual of a subspace is added.
    pub(super) fn merge(&self, parts: &mut Vec<M::Statistics>, residual: f64) -> M::Statistics {
        let mut all = M::Statistics::merge(parts);
        if let Some(shared) = self.m_step.shared_variance() {
            shared.add_residual(&mut all, residual);
        }
        all
    }

    /// The M-step. An error, if the model has another shape after it.
    pub(super) fn update(&mut self, statistics: M::Statistics, restricted: bool) -> Result<()> {
        let before = shape(&self.model);
        self.m_step.update(statistics, &mut self.model, restricted);
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

    /// Puts centres in the place of those of the model.
    pub(super) fn place(&mut self, centres: Centres<F>) -> Result<()> {
        one_variance(self.m_step)?.place(&mut self.model, centres);
        Ok(())
    }

    /// The M-step from kept statistics.
    pub(super) fn update_from(&mut self, moments: Moments) -> Result<()> {
        let shared = one_variance(self.m_step)?;
        let statistics = shared.statistics_of(moments);
        self.m_step.update(statistics, &mut self.model, false);
        Ok(())
    }
}

type Shared<'a, F, M> =
    &'a dyn SharedVariance<F, <M as MStep<F>>::Model, <M as MStep<F>>::Statistics>;

/// What a family with one shared variance can do besides.
fn one_variance<F: Float, M: MStep<F>>(m_step: &M) -> Result<Shared<'_, F, M>> {
    let rule = "need one variance for all components: SharedIsotropic, or another search";
    let missing = || Error::parameter("phases", "bounds or a subspace", rule);
    m_step.shared_variance().ok_or_else(missing)
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
