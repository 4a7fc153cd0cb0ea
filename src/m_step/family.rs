//! The trait of a family of components.

use super::sums::moments::Moments;
use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::serde::{DeserializeOwned, Serialize};
use crate::base::stage::Stage;
use crate::data::Data;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};

/// A component family: how its parameters start, and how they follow from responsibilities.
///
/// Laws: given the responsibilities, [`update`](Self::update) never lowers the free energy; statistics of
/// disjoint blocks add up.
///
/// [`start`](Self::start) and [`update`](Self::update) must be written. The guide has a chapter on families of your own, with two
/// examples; [`testing::family`](crate::testing::family) holds one against the laws.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?;
/// coremix::testing::family(&Gaussian::new(Covariance::Spherical), &data, 4)?; // the laws hold
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no component family",
    note = "Gaussian components of a kind are set by `.covariance(Covariance::Diagonal)`; `.m_step(..)` takes a family of your own, \
            which implements `MStep<F>`: the guide's chapter \"A family of your own\" writes two"
)]
pub trait MStep<F: Float>: Stage + Send + Sync + 'static {
    /// The model with its parameters. [Checkpoints](crate::Checkpoint) keep it by serde. The traits of serde are asked for with the
    /// feature `files` alone: a crate that has families and does without it implements them all the same, as another crate may turn it on.
    type Model: Mixture<F> + Clone + Serialize + DeserializeOwned;

    /// Its needs of a fit. By default rows near the origin, and nothing else.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The model at the seeds. If the variance is to be started by [`calibrate`](Self::calibrate), costs are squared distances
    /// until then. `data` is the whole data, also if EM runs on a coreset.
    ///
    /// `before` is a model to [start from](crate::Builder::start_from), whose means are the seeds: variances and proportions are
    /// carried over from it. A family may ignore it, and then begins as from any seeds.
    ///
    /// # Errors
    /// Settings that do not suit the data: [`Error::Parameter`](crate::Error::Parameter) or [`Error::DimensionMismatch`](crate::Error::DimensionMismatch), by name.
    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>>;

    /// Starts the variance from the sums of the first search ([E8](crate::equations#e8); \[VC\] Eq. 8). By default it stays
    /// as [`start`](Self::start) left it.
    fn calibrate(&self, _model: &mut Self::Model, _first: &Likelihood) {}

    /// The sums over no points, of k components in d columns: of the kind of second moments that the family needs, and any
    /// [of its own](Moments::with_own). By default masses and first moments.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let centres = model.centres();
        Moments::totals(centres.len(), centres.dim())
    }

    /// Adds a block of rows, shared out by its responsibilities ([E5](crate::equations#e5)): by default to moments about the
    /// centres.
    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Moments,
    ) {
        statistics.add(rows, block, model.centres());
    }

    /// The parameters that maximise the free energy for the responsibilities behind the statistics, within the
    /// simpler family as long as the steps are `restricted`. A fit may be [cancelled](Cancel) meanwhile: an update that may take
    /// more than a small part of a second looks at the flag.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled): the model is then not used any more.
    fn update(
        &self,
        statistics: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()>;

    /// Whether components merge where that is sure to raise the free energy ([E51](crate::equations#e51)). EM tries it where the
    /// free energy would settle, if all components share every row. By default they do not.
    fn merges(&self) -> bool {
        false
    }

    /// Chooses pairs of components that may merge. The next statistics contain the sums that decide whether they do.
    fn prepare_merges(&self, _model: &mut Self::Model) {}

    /// Merges components in such sums over all rows, where that is sure to raise the free energy of the next update. Returns
    /// how many it emptied.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled): neither sums nor model are used any more.
    fn merge(
        &self,
        _sums: &mut Moments,
        _model: &Self::Model,
        _cancel: Option<&Cancel>,
    ) -> Result<usize> {
        Ok(0)
    }
}

/// The model that a fit starts with. Any model is one, by `into()`, that does not go on from another.
#[derive(Clone, Copy, Debug)]
pub struct Started<M> {
    /// With centres at the seeds.
    pub model: M,
    /// Whether variances and proportions are those of the model before: then no search starts the variance, and no M-step keeps to
    /// a simpler family.
    pub goes_on: bool,
}

impl<M> Started<M> {
    /// As a part of another model.
    pub(crate) fn map<N>(self, into: impl FnOnce(M) -> N) -> Started<N> {
        Started {
            model: into(self.model),
            goes_on: self.goes_on,
        }
    }
}

impl<M> From<M> for Started<M> {
    fn from(model: M) -> Self {
        let goes_on = false;
        Self { model, goes_on }
    }
}

/// The needs of a family of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The coordinates of rows, seeds and centres.
    pub coordinates: Coordinates,
    /// Whether a search starts the variance before that of the first M-step, whatever the E-step is: so it must be if the
    /// variance changes more than the unit of the costs.
    pub searches_first: bool,
    /// With supports of fewer than all components, the first M-steps that keep to a simpler family. The free energy counts as
    /// settled only after them.
    pub restricted_steps: usize,
    /// The variances that it learns.
    pub variances: Variances,
}

/// The parts of a model that have variances of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Variances {
    /// The family does not say. A search that needs one variance asks the costs of its models.
    #[default]
    Unsaid,
    /// Nothing: there is one variance.
    None,
    /// Each component.
    Components,
    /// Each column, in every component or in all alike. The model is then the same in any units of the columns.
    Columns,
}

/// The coordinates that a family works in ([`Frame`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coordinates {
    /// Near the data, which keeps the digits of far-off rows; or of standardised columns, or directions, where a fit asks for them.
    #[default]
    Near,
    /// The data's own numbers, for a family with an origin or a unit of its own, such as counts. They need dense rows, no farther
    /// from 0 than $10^{16}$ ($10^{151}$ in `f64`).
    Raw,
    /// Rows of length 1.
    Directions,
}
