//! The laws of fits: they rise, they are the same on any number of threads, and they go on from checkpoints. The laws of
//! searches are these laws with one family.

use super::{broken, law, same_on_threads, tolerance};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::{Purpose, Streams};
use crate::data::Data;
use crate::e_step::EStep;
use crate::em::checkpoint::Checkpoint;
use crate::em::{Progress, RowPass, Supports};
use crate::families::Gaussian;
use crate::fit::{Builder, Clusterer, Fit};
use crate::m_step::MStep;
use crate::model::Mixture;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Searches: with the model fixed, a search never lowers the free energy; it never falls in a fit either; any number of
/// threads gives the same bits; and so does a fit that goes on from a [checkpoint](crate::Checkpoint), a file in the folder
/// for temporary ones. The family is [`Gaussian`]. That a row depends on nothing that the worker keeps
/// of other rows is not tested.
///
/// # Errors
/// [`Error::Stage`] with the law; what the fit returns.
pub fn e_step<F, E>(e_step: &E, data: &dyn Data<F>, k: usize) -> Result<()>
where
    F: Float,
    E: EStep<F> + Clone + 'static,
{
    let m_step = &Gaussian::default();
    let trial = Trial {
        e_step,
        m_step,
        data,
        k,
    };
    for seed in 0..3 {
        rises::<E, F>(&trial.fixed(seed)?, "with the model fixed")?;
        rises::<E, F>(&trial.fit(10, seed)?.report.free_energies, "in a fit")?;
    }
    trial.repeats::<E>()
}

pub(super) struct Trial<'a, F: Float, E, M> {
    pub(super) e_step: &'a E,
    pub(super) m_step: &'a M,
    pub(super) data: &'a dyn Data<F>,
    pub(super) k: usize,
}

impl<F: Float, E: EStep<F> + Clone + 'static, M: MStep<F> + Clone> Trial<'_, F, E, M> {
    /// A fit of some iterations, whether they settle or not.
    fn builder(&self, iterations: usize, seed: u64) -> Builder<F, M> {
        Clusterer::builder()
            .clusters(self.k)
            .seed(seed)
            .tolerance(0.0)
            .max_iterations(iterations)
            .e_step(self.e_step.clone())
            .m_step(self.m_step.clone())
    }

    pub(super) fn fit(&self, iterations: usize, seed: u64) -> Result<Fit<M::Model>> {
        self.builder(iterations, seed).build()?.fit(self.data)
    }

    /// The free energies of searches under one model.
    fn fixed(&self, seed: u64) -> Result<Vec<f64>> {
        let data = self.data;
        let model = &self.fit(0, seed)?.model;
        let streams = Streams::new(seed, 0);
        let mut rng = streams.at(Purpose::Start, 0, 0);
        let mut search = self.e_step.begin(model, None, &mut rng)?;
        let k = model.components();
        let width = search.width();
        let mut supports = Supports::unset(data.len(), width, k);
        let mut energies = Vec::new();
        for number in 0..10 {
            let pass = RowPass {
                data,
                model,
                search: Some(&*search),
                width,
                log_joint: model.log_joint(),
                shard_rows: data.len(),
                wants_bounds: false,
                stream: &|block| streams.at(Purpose::Search, number, block),
                search_name: self.e_step.name(),
                family_name: self.m_step.name(),
                spare: &Default::default(),
            };
            let totals = pass.run(&mut supports, None)?;
            energies.push(totals.likelihood.free_energy(model.log_joint()));
            search.end_pass();
        }
        Ok(energies)
    }

    /// A fit has the same bits on any number of threads, and resumed. `S` is the stage to blame.
    pub(super) fn repeats<S: ?Sized>(&self) -> Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        same_on_threads(|| self.fit(5, 0), same::<S, F, _, _>)?;
        if cfg!(not(feature = "files")) {
            return Ok(());
        }
        let process = std::process::id();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("coremix-testing-{process}-{count}.ckp"));
        let outcome = self.goes_on::<S>(&path);
        std::fs::remove_file(&path).ok();
        outcome
    }

    fn goes_on<S: ?Sized>(&self, path: &Path) -> Result<()> {
        let whole = self.fit(6, 0)?;
        let checkpoint = Checkpoint::to(path)
            .every(Duration::MAX)
            .every_iterations(1);
        for stop in 0..4 {
            let fit = self.builder(6, 0).written_to(&checkpoint).build()?;
            fit.fit_observed(self.data, |progress| match progress {
                Progress::Iteration { iteration, .. } if *iteration == stop => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            })?;
            let resume = checkpoint.clone().resume();
            let fit = self.builder(6, 0).written_to(&resume).build()?;
            let resumed = fit.fit(self.data).map_err(|error| match error {
                Error::Checkpoint { fault, .. } => {
                    broken::<S>(format!("its own checkpoint is refused: {fault}"))
                }
                error => error,
            })?;
            let case = format!("resumed after {stop} iterations");
            same::<S, F, _, _>(&whole, &resumed, &case)?;
            let [a, b] = [&whole, &resumed].map(|fit| fit.report.distance_evaluations);
            law::<S>(a == b, || format!("{case}: other evaluations"))?;
        }
        Ok(())
    }
}

/// The free energy never falls. `S` is the stage to blame.
pub(super) fn rises<S: ?Sized, F: Float>(free_energies: &[f64], case: &str) -> Result<()> {
    for (t, pair) in free_energies.windows(2).enumerate() {
        let before = pair[0];
        let after = pair[1];
        let falls = after < before - tolerance::<F>() * before.abs().max(after.abs());
        law::<S>(!falls, || {
            let t = t + 1;
            format!("{case}: the free energy falls from {before} to {after} in iteration {t}")
        })?;
    }
    Ok(())
}

/// Two fits are the same, bit for bit: free energies, labels and means.
pub(super) fn same<S: ?Sized, F: Float, A: Mixture<F>, B: Mixture<F>>(
    a: &Fit<A>,
    b: &Fit<B>,
    case: &str,
) -> Result<()> {
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let energies = [&a.report, &b.report].map(|report| bits(&report.free_energies));
    for (what, same) in [
        ("free energies", energies[0] == energies[1]),
        ("labels", a.search_labels == b.search_labels),
        ("coresets", a.coreset == b.coreset),
        ("means", a.model.means() == b.model.means()),
    ] {
        law::<S>(same, || {
            format!("{case}: other {what}, but the same fit must give the same bits")
        })?;
    }
    Ok(())
}
