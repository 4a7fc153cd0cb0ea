//! The builder, and what it builds.

use super::phase::{Columns, Phase, Shape};
use super::warm::WarmStart;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, not_negative, positive, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::coreset::{Coreset, Full};
use crate::e_step::{EStep, Exhaustive, check_squared};
use crate::em::checkpoint::Checkpoint;
use crate::em::{Rule, StopRule, Tolerance};
use crate::families::saved::Save;
use crate::families::{Covariance, Gaussian, Prior};
use crate::io::FileFault;
use crate::m_step::{Coordinates, MStep, Needs, Variances};
use crate::seed::{KMeansPlusPlus, Seeder};
use std::fmt;
use std::sync::Arc;

/// A checked configuration, ready to fit any number of data sets.
///
/// `F` is the number type of the data, and `M` the M-step: the family of the model. [`algorithms`](crate::algorithms) has
/// the combinations of stages with a name.
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
///     .e_step(Neighborhood::default().neighbors(3))
///     .seed(42)
///     .build()?
///     .fit(&data)?;
/// let labels = fit.model.predict(&data)?;
/// assert_eq!(labels.len(), 600);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Clusterer<F: Float, M = Gaussian> {
    pub(super) pipeline: Pipeline<F>,
    /// Shared with the models of its fits.
    pub(super) m_step: Arc<M>,
}

/// All of a clusterer but its family.
#[derive(Clone)]
pub(super) struct Pipeline<F: Float> {
    pub(super) coreset: Arc<dyn Coreset<F>>,
    pub(super) seeder: Arc<dyn Seeder<F>>,
    /// The seeder under another family, unless the caller gives one.
    seeder_of: Option<SeederOf<F>>,
    phases: List<F>,
    /// Whether the caller gave an E-step, and a list of phases.
    given: [bool; 2],
    pub(super) settings: Settings,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) clusters: usize,
    pub(super) cancel: Option<Cancel>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) warm: Option<WarmStart>,
    pub(super) rule: StopRule,
    pub(super) restarts: usize,
    pub(super) standardise: bool,
    pub(super) directions: bool,
    pub(super) seed: u64,
}

impl Settings {
    /// The error of the checkpoint that the fit goes on from.
    pub(super) fn fault(&self, fault: FileFault) -> Error {
        match &self.checkpoint {
            Some(checkpoint) => checkpoint.fault(fault),
            None => fault.of_bytes(),
        }
    }
}

/// A seeder that depends on the family, and may have checkpoints of its own, next to that of the fit.
pub(crate) type SeederOf<F> = fn(Needs, Option<&Checkpoint>) -> Arc<dyn Seeder<F>>;

/// A list of phases that depends on the data.
type List<F> = Arc<dyn Fn(Shape) -> Vec<Phase<F>> + Send + Sync>;

impl<F: Float> Clusterer<F> {
    /// A builder with the stages of k-means: no coreset, k-means++ seeds, the nearest component,
    /// [`Gaussian`].
    pub fn builder() -> Builder<F> {
        Builder::of(Pipeline::default())
    }
}

impl<F: Float> Default for Pipeline<F> {
    #[inline(never)]
    fn default() -> Self {
        Self {
            coreset: Arc::new(Full),
            seeder: Arc::new(KMeansPlusPlus::default()),
            seeder_of: None,
            phases: Arc::new(|_| vec![Phase::new(Exhaustive::nearest())]),
            given: [false; 2],
            settings: Settings {
                clusters: 0,
                cancel: None,
                checkpoint: None,
                warm: None,
                rule: StopRule {
                    rule: None,
                    tolerance: Tolerance::new(1e-3),
                    max_iterations: 200,
                },
                restarts: 1,
                standardise: false,
                directions: false,
                seed: 0,
            },
        }
    }
}

impl<F: Float, M: Stage> fmt::Debug for Clusterer<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The phases for large data stand for the list, if they are sound.
        let pipeline = &self.pipeline;
        let phases = pipeline.phases_for(LARGE, LARGE).unwrap_or_default();
        f.debug_struct("Clusterer")
            .field("coreset", &pipeline.coreset)
            .field("seeder", &pipeline.seeder)
            .field("phases", &phases)
            .field("m_step", &self.m_step)
            .field("settings", &pipeline.settings)
            .finish()
    }
}

/// Collects the settings. [`build`](Self::build) makes the [`Clusterer`] that fits.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<F: Float, M: Stage = Gaussian>(Clusterer<F, M>);

impl<F: Float, M: Stage> Builder<F, M> {
    /// **Required.** The number of clusters (components), k.
    pub fn clusters(mut self, clusters: usize) -> Self {
        self.0.pipeline.settings.clusters = clusters;
        self
    }

    /// The coreset. Default [`Full`]: all rows.
    pub fn coreset(mut self, coreset: impl Coreset<F> + 'static) -> Self {
        self.0.pipeline.coreset = Arc::new(coreset);
        self
    }

    /// The seeder. Default [`KMeansPlusPlus`]: the usual choice; a named algorithm may have its own.
    pub fn seeder(mut self, seeder: impl Seeder<F> + 'static) -> Self {
        self.0.pipeline.seeder = Arc::new(seeder);
        self.0.pipeline.seeder_of = None;
        self
    }

    /// The E-step, of one phase on the rows of the coreset, in place of the phases of a named algorithm. Default
    /// [`Exhaustive::nearest`]: k-means.
    pub fn e_step(mut self, e_step: impl EStep<F> + 'static) -> Self {
        let phase = Phase::new(e_step);
        self.0.pipeline.phases = Arc::new(move |_| vec![phase.clone()]);
        self.0.pipeline.given[0] = true;
        self
    }

    /// Several phases, each from the model of the one before; `list` makes them from the shape of the data. At least one.
    /// A phase has its own E-step, so it is an error to set one of the [builder](Self::e_step) as well.
    pub fn phases(mut self, list: impl Fn(Shape) -> Vec<Phase<F>> + Send + Sync + 'static) -> Self {
        self.0.pipeline.phases = Arc::new(list);
        self.0.pipeline.given[1] = true;
        self
    }

    /// Makes its E-step, or phases, those of a named algorithm, which others replace.
    pub(crate) fn named(mut self) -> Self {
        self.0.pipeline.given = [false; 2];
        self
    }

    /// The M-step, and with it the family of the model. Default: [`Gaussian`] of [`Covariance::TiedSpherical`].
    pub fn m_step<N: MStep<F>>(self, m_step: N) -> Builder<F, N> {
        Builder(Clusterer {
            pipeline: self.0.pipeline,
            m_step: Arc::new(m_step),
        })
    }

    /// The gain of an iteration that counts as converged ([E19](crate::equations#e19)): for k-means, to first order, the part
    /// of the quantization error by which it falls. Default 1e-3, a tenth of a percent. 0 waits until nothing changes.
    ///
    /// $$|F_t - F_{t-1}| \le \frac{\text{tolerance}}{2} \sum_n w_n D_n$$
    ///
    /// Where all components share each row it is what $F$ has still to gain, in nats per row ([`Rule::RemainingPerRow`]). In every phase, after its last round of split and merge; times the [factor](Phase::tolerance_factor) of the phase.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.0.pipeline.settings.rule.tolerance = Tolerance::new(tolerance);
        self
    }

    /// The rule by which a change of the free energy counts as small. Default: [`Rule::RemainingPerRow`] where all components share
    /// each row, else [`Rule::PerCoordinate`]; [`Rule::RelativeToFreeEnergy`] is that of the papers, at a tolerance of 1e-4.
    pub fn stop_rule(mut self, rule: Rule) -> Self {
        self.0.pipeline.settings.rule.rule = Some(rule);
        self
    }

    /// Most M-steps, of every phase; 0 leaves the seeds where they are. Default 200: several times what the papers' data needed.
    pub fn max_iterations(mut self, max_iterations: usize) -> Self {
        self.0.pipeline.settings.rule.max_iterations = max_iterations;
        self
    }

    /// Runs from different seeds on the same coreset; the whole fit that passed most phases, and then has the largest
    /// free energy, is kept. Default 1: with many clusters runs differ little, and each costs as much as the first.
    ///
    /// Restarts run at the same time, with the same bits, if all phases have fewer than 65,536 rows and there are at least as
    /// many restarts as threads. Each takes its own memory. With an [observer](Clusterer::fit_observed) or a
    /// [checkpoint](Self::checkpoint) they run one after the other.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.0.pipeline.settings.restarts = restarts;
        self
    }

    /// Fits columns of deviation 1, for columns in different units, such as age and income. Default: no. Means and covariances are
    /// in the units of the columns all the same, densities are those of the rows, and the model takes rows as they are:
    /// deviations are part of its [`Frame`](crate::data::Frame). Distances and quantization errors are those of the standardised
    /// columns. A constant column changes nothing.
    ///
    /// A [`Sketch`](crate::data::Sketch), whose coordinates are mixtures of all columns, and a family with
    /// [raw coordinates](crate::m_step::Coordinates::Raw) are errors of the fit.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// use ndarray::array;
    ///
    /// // The second column decides, in its unit; in units of deviations the first one does.
    /// let x = array![[0.0, 1e3], [0.0, 3e3], [0.1, 0.0], [0.1, 2e3], [3.0, 1e3], [3.1, 2e3]];
    /// let data = Dense::new(&x)?;
    /// let model = algorithms::k_means(2).standardise(true).restarts(5).build()?.fit(&data)?.model;
    /// let labels = model.predict(&data)?;
    /// assert!(labels[0] != labels[4] && labels[0] == labels[1] && labels[4] == labels[5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn standardise(mut self, standardise: bool) -> Self {
        self.0.pipeline.settings.standardise = standardise;
        self
    }

    /// Fits directions: rows are brought to length 1 as they are loaded, in the fit and by its model
    /// ([E56](crate::equations#e56)). Default: no. Distances then follow from cosines, $2 - 2 \cos$. Centres of Gaussian families are
    /// means of directions, which lie inside the sphere; those of
    /// [`VonMisesFisher`](crate::families::VonMisesFisher) components lie on it, and always have this setting.
    ///
    /// Rows with missing values have no direction, and those of a sketch are other ones: errors of the fit.
    pub fn directions(mut self, directions: bool) -> Self {
        self.0.pipeline.settings.directions = directions;
        self
    }

    /// Ends fits from outside: see [`Cancel`]. Default: none.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.0.pipeline.settings.cancel = Some(cancel.clone());
        self
    }

    pub(crate) fn written_to(mut self, checkpoint: &Checkpoint) -> Self {
        self.0.pipeline.settings.checkpoint = Some(checkpoint.clone());
        self
    }

    /// Starts from a model that was copied.
    pub(crate) fn warm_start(mut self, warm: &WarmStart) -> Self {
        self.0.pipeline.settings.warm = Some(warm.clone());
        self
    }

    /// The seed of all randomness. Default 0: a fit is reproducible unless asked otherwise.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.pipeline.settings.seed = seed;
        self
    }

    /// The clusterer, unchecked: for a fit that is part of another one, which checks it.
    pub(crate) fn unchecked(self) -> Clusterer<F, M> {
        self.0
    }
}

impl<F: Float, M: MStep<F>> Builder<F, M> {
    /// With settings that are made whatever the family is, and so compiled once for all of them.
    pub(crate) fn of_any_family(
        self,
        make: impl FnOnce(Builder<F>) -> Result<Builder<F>>,
    ) -> Result<Self> {
        let Self(Clusterer { pipeline, m_step }) = self;
        let pipeline = make(Builder::of(pipeline))?.0.pipeline;
        Ok(Self(Clusterer { pipeline, m_step }))
    }

    /// Checks every setting, and whether the E-steps and the family go together.
    ///
    /// # Errors
    /// The first setting that breaks its rule, by name ([`Error::Parameter`] mostly).
    pub fn build(self) -> Result<Clusterer<F, M>> {
        let Self(Clusterer { pipeline, m_step }) = self;
        let needs = m_step.needs();
        let pipeline = pipeline.of_family(needs);
        pipeline.check()?;
        m_step.check(pipeline.settings.clusters)?;
        pipeline.check_family(needs)?;
        Ok(Clusterer { pipeline, m_step })
    }
}

#[cfg(feature = "files")]
impl<F: Float, M: Stage> Builder<F, M> {
    /// Writes [checkpoints](Checkpoint) while a fit runs, and goes on from one. Default: none.
    pub fn checkpoint(self, checkpoint: &Checkpoint) -> Self {
        self.written_to(checkpoint)
    }

    /// Starts from a model, in place of seeds: a fitted or a loaded one, on the same rows or on others. Its means are
    /// carried over, and so are its variances and proportions, where the family has them. The model must be of the
    /// family and the number type of the fit, with as many components. There is one start per restart, and no seeding.
    ///
    /// A truncated search that starts with random supports still has them first, without further searches, and its first M-step changes
    /// all parameters. So the means may leave those of the model. [`from_seeds`](crate::e_step::Neighborhood::from_seeds) starts [`Neighborhood`](crate::e_step::Neighborhood) from
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
}

impl<F: Float> Builder<F> {
    /// The seeder of a named algorithm, by what the family needs.
    pub(crate) fn seeder_of(mut self, seeder_of: SeederOf<F>) -> Self {
        self.0.pipeline.seeder_of = Some(seeder_of);
        self
    }

    fn of(pipeline: Pipeline<F>) -> Self {
        let m_step = Arc::new(Gaussian::default());
        Self(Clusterer { pipeline, m_step })
    }

    /// Gaussian components with covariances of this kind, and learned mixing proportions, unless
    /// [equal ones](Gaussian::equal_proportions) were asked for; the default [`Covariance::TiedSpherical`] has equal ones, as in
    /// k-means. [`m_step`](Self::m_step) takes other families.
    pub fn covariance(self, covariance: Covariance) -> Self {
        let m_step = self.0.m_step.with(covariance);
        self.m_step(m_step)
    }

    /// Components with a [prior](Prior): rows in advance, so that none collapses on few rows. Default: none, and maximum likelihood.
    pub fn prior(mut self, prior: Prior) -> Self {
        self.0.m_step = Arc::new(self.0.m_step.prior(prior));
        self
    }
}

/// Rows and columns of large data: few phases are left out.
const LARGE: usize = 1 << 24;

impl<F: Float> Pipeline<F> {
    /// Checks all settings but those of the family.
    #[inline(never)]
    fn check(&self) -> Result<()> {
        let settings = &self.settings;
        let clusters = settings.clusters;
        let rule = "must be given, and at least 1: .clusters(k)";
        require(clusters > 0, "clusters", clusters, rule)?;
        let few = clusters < crate::model::block::UNSET as usize;
        require(few, "clusters", clusters, "must be below 2^32 - 1")?;
        let both = self.given == [true; 2];
        let rule = "must be left out: each phase has its own, Phase::new(e_step)";
        require(!both, "e_step", "given besides phases", rule)?;
        let both = settings.standardise && settings.directions;
        let rule = "must not be set together: columns of directions have one unit";
        require(!both, "standardise and directions", both, rule)?;
        positive("restarts", settings.restarts)?;
        not_negative("tolerance", settings.rule.tolerance.share())?;
        if let Some(checkpoint) = &settings.checkpoint {
            checkpoint.check()?;
        }
        if let Some(warm) = &settings.warm {
            warm.check()?;
        }
        self.coreset.check(clusters)?;
        self.seeder.check(clusters)
    }

    /// With the seeder of a named algorithm for a family that needs this, unless the caller gave one.
    fn of_family(mut self, needs: Needs) -> Self {
        if let Some(seeder_of) = self.seeder_of {
            self.seeder = seeder_of(needs, self.settings.checkpoint.as_ref());
        }
        self
    }

    /// Whether the other stages go with a family that needs this.
    #[inline(never)]
    fn check_family(&self, needs: Needs) -> Result<()> {
        let settings = &self.settings;
        let is_asked = match needs.coordinates {
            Coordinates::Near => false,
            Coordinates::Directions => settings.standardise,
            Coordinates::Raw => settings.standardise || settings.directions,
        };
        let rule = "must be left out: this family has coordinates of its own";
        require(!is_asked, "standardise or directions", true, rule)?;
        let is_squared = matches!(needs.variances, Variances::Unsaid | Variances::None);
        // The list depends on the data: what it is for large ones is checked here, and again in every fit.
        let phases = self.phases_for(LARGE, LARGE)?;
        let searches = phases.iter().map(|phase| &phase.e_step);
        let mut comparing = searches.filter(|search| search.compares_distances());
        comparing.try_for_each(|search| check_squared(is_squared, search.name()))
    }

    #[inline(never)]
    pub(super) fn phases_for(&self, rows: usize, columns: usize) -> Result<Vec<Phase<F>>> {
        let clusters = self.settings.clusters;
        let phases = (self.phases)(Shape {
            rows,
            columns,
            clusters,
        });
        positive("phases", phases.len())?;
        let mut subspace = None;
        for phase in &phases {
            phase.check(clusters)?;
            if let Columns::Principal(coordinates) = phase.outline.columns {
                let same = *subspace.get_or_insert(coordinates) == coordinates;
                let rule = "must be the same in all phases that work in a subspace";
                require(same, "coordinates", coordinates, rule)?;
            }
        }
        Ok(phases)
    }
}
