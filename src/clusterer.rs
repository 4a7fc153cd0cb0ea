//! The builder, and the pipeline it builds: coreset, seeds, EM, restarts.

use crate::coreset::{Coreset, Full, Subset};
use crate::data::Data;
use crate::e_step::{EStep, Exhaustive};
use crate::em::{self, Evaluations, Observer, Progress, Report, Stop, StopRule, Timings};
use crate::error::{Error, Result, positive};
use crate::m_step::{MStep, SharedIsotropic};
use crate::mixture::{Mixture, Score};
use crate::refine::{Refinement, Run, Seeded, Watch};
use crate::rng::{self, Streams};
use crate::seed::{self, KMeansPlusPlus, Seeder};
use crate::stage::Stage;
use ndarray::{Array1, Array2};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

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
pub struct Clusterer<C = Full, S = KMeansPlusPlus, E = Exhaustive, M = SharedIsotropic, R = ()> {
    coreset: C,
    seeder: S,
    e_step: E,
    m_step: M,
    refine: R,
    clusters: usize,
    settings: Settings,
}

/// What is not a stage.
#[derive(Clone, Copy, Debug)]
struct Settings {
    rule: StopRule,
    restarts: usize,
    seed: u64,
}

impl Clusterer {
    /// A builder with the stages of k-means: no coreset, k-means++ seeds, the nearest component,
    /// [`SharedIsotropic`].
    pub fn builder() -> Builder {
        Builder {
            coreset: Full,
            seeder: KMeansPlusPlus::new(),
            e_step: Exhaustive::nearest(),
            m_step: SharedIsotropic::new(),
            refine: (),
            clusters: None,
            settings: Settings {
                rule: StopRule {
                    tolerance: 1e-4,
                    max_iterations: 200,
                },
                restarts: 1,
                seed: 0,
            },
        }
    }
}

/// Collects one value per stage; setting a stage changes the builder's type.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<C = Full, S = KMeansPlusPlus, E = Exhaustive, M = SharedIsotropic, R = ()> {
    coreset: C,
    seeder: S,
    e_step: E,
    m_step: M,
    refine: R,
    clusters: Option<usize>,
    settings: Settings,
}

impl<C, S, E, M, R> Builder<C, S, E, M, R> {
    /// **Required.** The number of clusters (components), k.
    pub fn clusters(mut self, clusters: usize) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// The coreset. Default [`Full`]: all rows.
    pub fn coreset<C2>(self, coreset: C2) -> Builder<C2, S, E, M, R> {
        let Self {
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
            ..
        } = self;
        Builder {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        }
    }

    /// The seeder. Default [`KMeansPlusPlus`]: the known quantity.
    pub fn seeder<S2>(self, seeder: S2) -> Builder<C, S2, E, M, R> {
        let Self {
            coreset,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
            ..
        } = self;
        Builder {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        }
    }

    /// The E-step. Default [`Exhaustive::nearest`]: k-means.
    pub fn e_step<E2>(self, e_step: E2) -> Builder<C, S, E2, M, R> {
        let Self {
            coreset,
            seeder,
            m_step,
            refine,
            clusters,
            settings,
            ..
        } = self;
        Builder {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        }
    }

    /// The M-step, and with it the family of the model. Default [`SharedIsotropic`]: k-means.
    pub fn m_step<M2>(self, m_step: M2) -> Builder<C, S, E, M2, R> {
        let Self {
            coreset,
            seeder,
            e_step,
            refine,
            clusters,
            settings,
            ..
        } = self;
        Builder {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        }
    }

    /// What follows EM, for example [`Refine`](crate::refine::Refine). Default nothing, `()`.
    pub fn refine<R2>(self, refine: R2) -> Builder<C, S, E, M, R2> {
        let Self {
            coreset,
            seeder,
            e_step,
            m_step,
            clusters,
            settings,
            ..
        } = self;
        Builder {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        }
    }

    /// Largest change of the free energy, relative to max(|F|, total weight), that counts as converged
    /// (E19). Default 1e-4, the papers' value; 0 waits until nothing changes.
    ///
    /// $$|F_t - F_{t-1}| \le \text{tolerance} \cdot \max(|F_t|, W), \qquad W = \sum_n w_n$$
    ///
    /// The papers divide by $|F_t|$ alone, which passes through 0 for some unit of the data.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.settings.rule.tolerance = tolerance;
        self
    }

    /// Most M-steps of EM; 0 leaves the seeds where they are (unless the E-step warms up), and EM out where a refinement follows. Default 200: several times what the papers' data
    /// needed at the default tolerance.
    pub fn max_iterations(mut self, max_iterations: usize) -> Self {
        self.settings.rule.max_iterations = max_iterations;
        self
    }

    /// Runs from different seeds on the same coreset; the whole fit with the largest free energy is kept.
    /// Default 1: with many clusters runs differ little, and each costs as much as the first.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.settings.restarts = restarts;
        self
    }

    /// The seed of all randomness. Default 0: a fit is reproducible unless asked otherwise.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }
}

impl<C: Stage, S: Stage, E: Stage, M: Stage, R: Stage> Builder<C, S, E, M, R> {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that breaks its rule, by name ([`Error::Parameter`] mostly).
    pub fn build(self) -> Result<Clusterer<C, S, E, M, R>> {
        let Self {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        } = self;
        let clusters =
            clusters.ok_or_else(|| Error::parameter("clusters", "unset", "must be given"))?;
        positive("clusters", clusters)?;
        if clusters >= crate::block::UNSET as usize {
            return Err(Error::parameter(
                "clusters",
                clusters,
                "must be below 2^32 - 1",
            ));
        }
        positive("restarts", settings.restarts)?;
        let tolerance = settings.rule.tolerance;
        if !(tolerance.is_finite() && tolerance >= 0.0) {
            let rule = "must be finite and not negative";
            return Err(Error::parameter("tolerance", tolerance, rule));
        }
        coreset.check(clusters)?;
        seeder.check(clusters)?;
        e_step.check(clusters)?;
        m_step.check(clusters)?;
        refine.check(clusters)?;
        Ok(Clusterer {
            coreset,
            seeder,
            e_step,
            m_step,
            refine,
            clusters,
            settings,
        })
    }
}

/// A model, what the last search under it found, and the report.
///
/// Labels, supports, model and the last free energy belong together. With a coreset they are about its
/// rows; [`Mixture::predict`] labels all points.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit<M> {
    /// The fitted model.
    pub model: M,
    /// What the fit did, and what it cost.
    pub report: Report,
    /// The best component of each row EM ran on (n, or the coreset's size).
    pub labels: Array1<u32>,
    /// The supports K(n) of these rows, best first: (rows, C'); `None` when all components are in each.
    pub supports: Option<Array2<u32>>,
    /// The rows EM ran on and their weights; `None` for all rows as they are.
    pub coreset: Option<Subset>,
}

impl<M> Fit<M> {
    /// Labels, quantization error and log-likelihood of a data set, all exact; the distance evaluations
    /// and the time are added to the report as scoring. See [`Score`] for the formulas.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] if the data has another number of columns than the model.
    pub fn score<D: Data>(&mut self, data: &D) -> Result<Score>
    where
        M: Mixture<D>,
    {
        let started = Instant::now();
        let score = self.model.score(data)?;
        // Every row against every component, for its posterior and, unless that tells it, for its nearest mean.
        let looks = self.model.looks() + u64::from(!self.model.likeliest_is_nearest());
        let evaluations = looks * (data.len() * self.model.components()) as u64;
        self.report.evaluations.scoring += evaluations;
        self.report.distance_evaluations += evaluations;
        self.report.timings.scoring += started.elapsed();
        Ok(score)
    }
}

impl<C, S, E, M, R> Clusterer<C, S, E, M, R> {
    /// Fits the model to the data.
    ///
    /// # Errors
    /// [`Error::TooManyClusters`] if the data, or the coreset drawn from it, has fewer rows of positive
    /// weight than there are clusters; what the seeder objects to, and the M-step.
    pub fn fit<D>(&self, data: &D) -> Result<Fit<M::Model>>
    where
        D: Data,
        C: Coreset<D>,
        S: Seeder<D>,
        M: MStep<D>,
        E: EStep<D, M::Model>,
        R: Refinement<D, M::Model>,
    {
        self.run(data, &mut Observer::none())
    }

    /// Fits the model, showing every step to `observer`. When it breaks, the fit ends with the model of
    /// the next search: a stop before the first one gives a model at the seeds.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_observed<D>(
        &self,
        data: &D,
        mut observer: impl FnMut(&Progress<'_, M::Model>) -> ControlFlow<()>,
    ) -> Result<Fit<M::Model>>
    where
        D: Data,
        C: Coreset<D>,
        S: Seeder<D>,
        M: MStep<D>,
        E: EStep<D, M::Model>,
        R: Refinement<D, M::Model>,
    {
        self.run(data, &mut Observer::new(&mut observer))
    }

    /// All stages, one after the other.
    fn run<D>(&self, data: &D, observer: &mut Observer<'_, M::Model>) -> Result<Fit<M::Model>>
    where
        D: Data,
        C: Coreset<D>,
        S: Seeder<D>,
        M: MStep<D>,
        E: EStep<D, M::Model>,
        R: Refinement<D, M::Model>,
    {
        let (mut evaluations, mut timings) = (Evaluations::default(), Timings::default());
        seed::enough_rows(data, self.clusters, "data")?;
        let frame = data.frame();

        let started = Instant::now();
        let mut rng = Streams::new(self.settings.seed, 0).at(rng::Stage::Coreset, 0, 0);
        let coreset = self.coreset.sample(data, &frame, &mut rng)?;
        let selected = coreset
            .as_ref()
            .map(|c| data.select(&c.rows, c.weights.clone()));
        let rows = selected.as_ref().unwrap_or(data);
        evaluations.coreset = coreset.as_ref().map_or(0, |c| c.evaluations);
        timings.coreset = started.elapsed();
        seed::enough_rows(rows, self.clusters, "coreset")?;
        let _ = observer.see(Progress::Coreset {
            rows: rows.len(),
            weight: rows.summary().total_weight,
            evaluations: evaluations.coreset,
            elapsed: timings.coreset,
        });

        let mut best: Option<(usize, Run<M::Model>)> = None;
        let mut restarts = Vec::new();
        for restart in 0..self.settings.restarts {
            let number = self.refine.starts(rows.len(), data.len());
            let streams =
                |start| Streams::new(self.settings.seed, (restart * number + start) as u64);
            let (mut starts, mut seeding, mut update) =
                (Vec::new(), Duration::ZERO, Duration::ZERO);
            let whole = Instant::now();
            for start in 0..number {
                let started = Instant::now();
                let mut rng = streams(start).at(rng::Stage::Seeding, 0, 0);
                let seeds = self.seeder.seed(rows, &frame, self.clusters, &mut rng)?;
                evaluations.seeding += seeds.evaluations;
                seeding += started.elapsed();
                let _ = observer.see(Progress::Seeded {
                    restart,
                    start,
                    evaluations: seeds.evaluations,
                    elapsed: started.elapsed(),
                });

                let mut run = Run::new(self.m_step.start(seeds.centres, frame.clone(), data)?);
                run.rows = coreset.clone();
                let rule = self.settings.rule;
                let warm_up = self.e_step.warm_up(self.clusters);
                if rule.max_iterations > 0 || warm_up > 0 || !R::SEARCHES {
                    let stages = (&self.e_step, &self.m_step);
                    let (model, streams) = (run.model, streams(start));
                    let ended = em::maximise(rows, stages, model, rule, streams, observer);
                    update += ended.update;
                    (run.model, run.kept) = (ended.model, Some(ended.kept));
                    run.phases.push(ended.phase);
                }
                starts.push(run);
                if observer.stopped() {
                    break;
                }
            }
            let (streams, mut watch) = (Seeded(streams(0)), Watch(observer));
            let run = self
                .refine
                .refine(data, selected.as_ref(), starts, streams, &mut watch)?;
            evaluations.coreset += run.evaluations;
            timings.coreset += run.drawing;
            evaluations.search += run.searched();
            timings.seeding += seeding;
            timings.update += update;
            timings.search += whole.elapsed() - seeding - run.drawing - update;
            let free_energy = run.free_energy();
            restarts.push(free_energy);
            if best
                .as_ref()
                .is_none_or(|(_, best)| free_energy > best.free_energy())
            {
                best = Some((restart, run));
            }
            if observer.stopped() {
                break;
            }
        }
        let (restart, run) = best.expect("at least one restart");
        let last = run.phases.last().expect("at least one phase");
        let report = Report {
            stop: if observer.stopped() {
                Stop::Observer
            } else {
                last.stop
            },
            iterations: run.phases.iter().map(|phase| phase.iterations).sum(),
            free_energies: last.free_energies.clone(),
            emptied: last.emptied,
            unseen: last.unseen,
            distance_evaluations: evaluations.total(),
            evaluations,
            coreset_size: rows.len(),
            timings,
            restart,
            restarts,
            phases: run.phases,
        };
        let (labels, supports) = run.kept.expect("a search").into_arrays();
        Ok(Fit {
            model: run.model,
            report,
            labels,
            supports,
            coreset: run.rows,
        })
    }
}
