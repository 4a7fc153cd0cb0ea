//! The builder, and what it builds.

use super::phase::{Columns, Phase, Shape};
use super::task::Settings;
use super::warm::WarmStart;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, not_negative, positive};
use crate::base::stage::Stage;
use crate::coreset::Full;
use crate::e_step::Exhaustive;
use crate::em::{Rule, StopRule};
use crate::fit::checkpoint::Checkpoint;
use crate::io::Save;
use crate::m_step::{Covariance, Gaussian};
use crate::seed::KMeansPlusPlus;
use std::fmt;
use std::sync::Arc;

/// A checked configuration, ready to fit any number of data sets.
///
/// `C`, `S`, `E` and `M` are the stages: coreset, seeder, E-step, M-step. [`algorithms`](crate::algorithms) has the
/// combinations with a name.
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(x.view())?;
/// let fit = Clusterer::builder()
///     .clusters(6)
///     .coreset(Lightweight::new(200))
///     .seeder(AfkMc2::new(20))
///     .e_step(Neighborhood::new(3, 3))
///     .seed(42)
///     .build()?
///     .fit(&data)?;
/// let labels = fit.model.predict(&data)?;
/// assert_eq!(labels.len(), 600);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Clusterer<C = Full, S = KMeansPlusPlus, E = Exhaustive, M = Gaussian> {
    pub(super) coreset: C,
    pub(super) seeder: S,
    phases: Phases<E>,
    pub(super) m_step: M,
    pub(super) clusters: usize,
    pub(super) settings: Settings,
}

/// One phase with an E-step, or a list that depends on the data.
#[derive(Clone)]
enum Phases<E> {
    One(E),
    List(Arc<dyn Fn(Shape) -> Vec<Phase<E>> + Send + Sync>),
}

impl<E: Clone> Phases<E> {
    fn list(&self, shape: Shape) -> Vec<Phase<E>> {
        match self {
            Self::One(e_step) => vec![Phase::new(e_step.clone())],
            Self::List(list) => list(shape),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Phases<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(e_step) => e_step.fmt(f),
            Self::List(_) => f.write_str("a list of phases"),
        }
    }
}

impl Clusterer {
    /// A builder with the stages of k-means: no coreset, k-means++ seeds, the nearest component,
    /// [`Gaussian`].
    pub fn builder() -> Builder {
        Builder {
            coreset: Full,
            seeder: KMeansPlusPlus::new(),
            phases: Phases::One(Exhaustive::nearest()),
            m_step: Gaussian::new(Covariance::TiedSpherical),
            clusters: None,
            settings: Settings {
                cancel: None,
                checkpoint: None,
                warm: None,
                rule: StopRule {
                    rule: Rule::default(),
                    tolerance: 1e-3,
                    max_iterations: 200,
                },
                restarts: 1,
                seed: 0,
            },
        }
    }
}

/// Collects one value per stage; setting a stage changes the builder's type. [`build`](Self::build) makes the
/// [`Clusterer`] that fits.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<C = Full, S = KMeansPlusPlus, E = Exhaustive, M = Gaussian> {
    coreset: C,
    seeder: S,
    phases: Phases<E>,
    m_step: M,
    clusters: Option<usize>,
    settings: Settings,
}

impl<C, S, E, M> Builder<C, S, E, M> {
    /// The same settings with other stages.
    fn with<C2, S2, E2, M2>(
        (coreset, seeder, phases, m_step): (C2, S2, Phases<E2>, M2),
        (clusters, settings): (Option<usize>, Settings),
    ) -> Builder<C2, S2, E2, M2> {
        Builder {
            coreset,
            seeder,
            phases,
            m_step,
            clusters,
            settings,
        }
    }

    /// **Required.** The number of clusters (components), k.
    pub fn clusters(mut self, clusters: usize) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// The coreset. Default [`Full`]: all rows.
    pub fn coreset<C2>(self, coreset: C2) -> Builder<C2, S, E, M> {
        let stages = (coreset, self.seeder, self.phases, self.m_step);
        Self::with(stages, (self.clusters, self.settings))
    }

    /// The seeder. Default [`KMeansPlusPlus`]: the usual choice.
    pub fn seeder<S2>(self, seeder: S2) -> Builder<C, S2, E, M> {
        let stages = (self.coreset, seeder, self.phases, self.m_step);
        Self::with(stages, (self.clusters, self.settings))
    }

    /// The E-step, of one phase on the rows of the coreset. Default [`Exhaustive::nearest`]: k-means. It takes the place of
    /// all [phases](Self::phases) there are.
    pub fn e_step<E2>(self, e_step: E2) -> Builder<C, S, E2, M> {
        let stages = (self.coreset, self.seeder, Phases::One(e_step), self.m_step);
        Self::with(stages, (self.clusters, self.settings))
    }

    /// Several phases, each from the model of the one before; `list` makes them from the shape of the data. At least one.
    pub fn phases<E2>(
        self,
        list: impl Fn(Shape) -> Vec<Phase<E2>> + Send + Sync + 'static,
    ) -> Builder<C, S, E2, M> {
        let list = Phases::List(Arc::new(list));
        let stages = (self.coreset, self.seeder, list, self.m_step);
        Self::with(stages, (self.clusters, self.settings))
    }

    /// Gaussian components with covariances of this kind, and learned mixing proportions, but for the default
    /// [`Covariance::TiedSpherical`]: k-means. [`m_step`](Self::m_step) takes other families.
    pub fn covariance(self, covariance: Covariance) -> Builder<C, S, E, Gaussian> {
        self.m_step(Gaussian::new(covariance))
    }

    /// The M-step, and with it the family of the model. Default: [`Gaussian`] of [`Covariance::TiedSpherical`].
    pub fn m_step<M2>(self, m_step: M2) -> Builder<C, S, E, M2> {
        let stages = (self.coreset, self.seeder, self.phases, m_step);
        Self::with(stages, (self.clusters, self.settings))
    }

    /// Largest change of the free energy that counts as converged, per coordinate, in half nats
    /// ([E19](crate::equations#e19)): for k-means, to first order, a relative change of the quantization error. Default
    /// 1e-3: an iteration gains a tenth of a percent. 0 waits until nothing changes.
    ///
    /// $$|F_t - F_{t-1}| \le \frac{\text{tolerance}}{2} \sum_n w_n D_n$$
    ///
    /// In every phase, after its last move; times the [factor](Phase::factor) of the phase.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.settings.rule.tolerance = tolerance;
        self
    }

    /// What the change of the free energy is compared to. Default [`Rule::PerCoordinate`];
    /// [`Rule::RelativeToFreeEnergy`] is that of the papers, at a tolerance of 1e-4.
    pub fn stop_rule(mut self, rule: Rule) -> Self {
        self.settings.rule.rule = rule;
        self
    }

    /// Most M-steps, of every phase; 0 leaves the seeds where they are (unless the E-step warms up). Default 200: several
    /// times what the papers' data needed.
    pub fn max_iterations(mut self, max_iterations: usize) -> Self {
        self.settings.rule.max_iterations = max_iterations;
        self
    }

    /// Runs from different seeds on the same coreset; the whole fit that passed most phases, and then has the largest
    /// free energy, is kept. Default 1: with many clusters runs differ little, and each costs as much as the first.
    ///
    /// They run beside each other, with the same bits, if all phases have fewer than 65,536 rows and there are at least as
    /// many restarts as threads. Each takes its own memory. With an [observer](Clusterer::fit_observed) or a
    /// [checkpoint](Self::checkpoint) they run one after the other.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.settings.restarts = restarts;
        self
    }

    /// Ends fits from outside: see [`Cancel`]. Default: none.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.settings.cancel = Some(cancel.clone());
        self
    }

    /// Writes [checkpoints](Checkpoint) while a fit runs, and goes on from one. Default: none.
    pub fn checkpoint(mut self, checkpoint: &Checkpoint) -> Self {
        self.settings.checkpoint = Some(checkpoint.clone());
        self
    }

    /// Starts from a model, in place of seeds: a fitted or a loaded one, on the same rows or on others. Its means are
    /// carried over, and so are its variances and proportions, where the family has them. The model must be of the
    /// family and the number type of the fit, with as many components. There is one start per restart, and no seeding.
    ///
    /// A truncated search that starts with random supports still has them first, without warm-up, and its first M-step changes
    /// all parameters. So the means may leave those of the model. [`Start::Seeds`](crate::e_step::Start::Seeds) starts [`Neighborhood`](crate::e_step::Neighborhood) from
    /// the model. On a sketch, [`Covariance::Diagonal`] carries variances over from a model of the same basis
    /// only, and means otherwise.
    ///
    /// A model that cannot be used is an error: of [`build`](Self::build) if its family cannot be saved, and of the fit if
    /// it is of another family, number type, number of components or of columns.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// # use ndarray::s;
    /// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
    /// # let (old, new) = (birch.points.slice(s![..600, ..]), birch.points.slice(s![600.., ..]));
    /// let model = algorithms::gmm(25).build()?.fit(&Dense::new(old)?)?.model;
    /// let fit = algorithms::gmm(25).start_from(&model).build()?.fit(&Dense::new(new)?)?;
    /// assert_eq!(fit.report.evaluations.seeding, 0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn start_from(self, model: &impl Save) -> Self {
        self.warm_start(&WarmStart::new(model))
    }

    /// The same from a model that was copied.
    pub(crate) fn warm_start(mut self, warm: &WarmStart) -> Self {
        self.settings.warm = Some(warm.clone());
        self
    }

    /// The seed of all randomness. Default 0: a fit is reproducible unless asked otherwise.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }
}

impl<C: Stage, S: Stage, E: Stage + Clone, M: Stage> Builder<C, S, E, M> {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that breaks its rule, by name ([`Error::Parameter`] mostly).
    pub fn build(self) -> Result<Clusterer<C, S, E, M>> {
        let clusters = self
            .clusters
            .ok_or_else(|| Error::parameter("clusters", "unset", "must be given: .clusters(k)"))?;
        positive("clusters", clusters)?;
        if clusters >= crate::model::block::UNSET as usize {
            return Err(Error::parameter(
                "clusters",
                clusters,
                "must be below 2^32 - 1",
            ));
        }
        positive("restarts", self.settings.restarts)?;
        not_negative("tolerance", self.settings.rule.tolerance)?;
        if let Some(checkpoint) = &self.settings.checkpoint {
            checkpoint.check()?;
        }
        if let Some(warm) = &self.settings.warm {
            warm.check()?;
        }
        self.coreset.check(clusters)?;
        self.seeder.check(clusters)?;
        self.m_step.check(clusters)?;
        let clusterer = Clusterer {
            coreset: self.coreset,
            seeder: self.seeder,
            phases: self.phases,
            m_step: self.m_step,
            clusters,
            settings: self.settings,
        };
        // The list depends on the data: what it is for large ones is checked here, and again in every fit.
        clusterer.phases_for(LARGE, LARGE)?;
        Ok(clusterer)
    }
}

/// Rows and columns of large data: few phases are left out.
pub(super) const LARGE: usize = 1 << 24;

impl<C, S, E: Stage + Clone, M> Clusterer<C, S, E, M> {
    /// The phases for data of this shape, checked.
    pub(super) fn phases_for(&self, rows: usize, columns: usize) -> Result<Vec<Phase<E>>> {
        let phases = self.phases.list(Shape::new(rows, columns, self.clusters));
        positive("phases", phases.len())?;
        let mut subspace = None;
        for phase in &phases {
            phase.check(self.clusters)?;
            if let Columns::Principal(coordinates) = phase.outline.columns
                && *subspace.get_or_insert(coordinates) != coordinates
            {
                let rule = "must be the same in all phases that work in a subspace";
                return Err(Error::parameter("coordinates", coordinates, rule));
            }
        }
        Ok(phases)
    }
}
