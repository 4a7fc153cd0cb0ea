//! The laws that stages keep, to hold a stage of your own against.
//!
//! Each function runs a stage many times on all rows of your data, so give it some hundreds. It returns [`Error::Stage`]
//! with the law that is broken. What they find depends on the data and the stage alone: randomness comes from fixed
//! seeds. They look for mistakes; they prove nothing.
//!
//! ```
//! use coremix::prelude::*;
//! use coremix::{datasets::Birch, testing};
//!
//! let birch = Birch::grid(10).generate::<f64>(1)?;
//! let data = Dense::new(birch.points.view())?;
//! testing::coreset(&Lightweight::new(50), &data)?;
//! testing::seeder(&KMeansPlusPlus::new(), &data, 5)?;
//! testing::e_step(&Neighborhood::new(2, 3), &data, 5)?;
//! testing::family(&Gaussian::new(Covariance::Diagonal), &data, 5)?;
//! # Ok::<(), Error>(())
//! ```

mod coreset;
mod data;
mod resuming;

pub use coreset::coreset;
pub use data::data;

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::base::stage::{self, Stage};
use crate::data::{Centres, Data, Frame, Rows, Scores};
use crate::e_step::{EStep, Exhaustive};
use crate::fit::{Clusterer, Fit};
use crate::m_step::{Covariance, Gaussian, GaussianMixture, MStep, Moments, Statistics};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior;
use crate::model::search::{self, Exact};
use crate::seed::Seeder;
use ndarray::Array2;

/// Threads that have to give the same bits.
const THREADS: [usize; 3] = [1, 2, 3];

/// A law that this stage broke.
fn broken<S: ?Sized>(what: impl Into<String>) -> Error {
    Error::stage(stage::name::<S>(), what)
}

/// Rows with other weights: every third one 0, the others larger and smaller.
fn reweighted<'a, F: Float>(data: &'a dyn Data<F>) -> Result<Box<dyn Data<F> + 'a>> {
    let all: Vec<usize> = (0..data.len()).collect();
    let weight = |&n: &usize| match n % 3 {
        2 => 0.0,
        _ => data.weight(n) * (1 + n % 4) as f64,
    };
    data.select(&all, all.iter().map(weight).collect())
}

/// All rows in the frame (n, d).
fn coordinates<F: Float>(data: &dyn Data<F>, frame: &Frame<F>) -> Result<Array2<f64>> {
    let mut rows = Rows::default();
    data.load(0..data.len(), frame, &mut rows)?;
    let centres: Vec<_> = (0..rows.len()).map(|i| rows.to_centre(i)).collect();
    let shape = (rows.len(), frame.dim());
    Ok(Array2::from_shape_fn(shape, |(i, j)| {
        centres[i][j].to_f64()
    }))
}

/// Seeders: `k` finite seeds, the same for the same seed on any number of threads, and none at a row of weight 0.
///
/// # Errors
/// [`Error::Stage`] with the law; what the seeder returns.
pub fn seeder<F: Float, S: Seeder<F>>(seeder: &S, data: &dyn Data<F>, k: usize) -> Result<()> {
    const SEEDS: u64 = 20;

    let other = reweighted(data)?;
    for data in [data, &*other] {
        crate::seed::enough_rows(data, k, "data")?;
        let frame = data.frame();
        let values = coordinates(data, &frame)?;
        let choose = |seed| -> Result<Centres<F>> {
            let seeds = seeder.seed(data, &frame, k, &mut Rng::from_seed(seed))?;
            seeds.check(k, frame.dim()).map_err(broken::<S>)?;
            Ok(seeds.centres)
        };
        for seed in 0..SEEDS {
            let seeds = choose(seed)?;
            if choose(seed)? != seeds {
                return Err(broken::<S>("the same seed chose other seeds"));
            }
            for c in 0..k {
                let seed: Vec<f64> = seeds.row(c).iter().map(|z| z.to_f64()).collect();
                let here = |n: &usize| values.row(*n).iter().eq(&seed[..frame.dim()]);
                let mut rows = (0..data.len()).filter(here).peekable();
                let first = rows.peek().copied();
                if let Some(row) = first
                    && rows.all(|n| data.weight(n) <= 0.0)
                {
                    return Err(broken::<S>(format!("row {row} of weight 0 is seed {c}")));
                }
            }
        }
        let once = choose(0)?;
        for threads in THREADS {
            if parallel::with_threads(threads, || choose(0))? != once {
                let what = format!("{threads} threads chose other seeds");
                return Err(broken::<S>(what));
            }
        }
    }
    Ok(())
}

/// The family of one shared variance, left at its start.
#[derive(Clone, Copy, Debug)]
struct Still;

impl Stage for Still {}

type Shared<F> = GaussianMixture<F>;

const SHARED: Gaussian = Gaussian::new(Covariance::TiedSpherical);

type SumsOf<F> = <Gaussian as MStep<F>>::Statistics;

impl<F: Float> MStep<F> for Still {
    type Model = Shared<F>;
    type Statistics = SumsOf<F>;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        SHARED.start(seeds, frame, data)
    }

    fn calibrate(&self, model: &mut Self::Model, first: &crate::model::posterior::Likelihood) {
        MStep::<F>::calibrate(&SHARED, model, first);
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        MStep::<F>::statistics(&SHARED, model)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    ) {
        SHARED.accumulate(rows, block, model, statistics);
    }

    fn update(&self, _: Self::Statistics, _: &mut Self::Model, _: bool) {}

    fn with_centres(
        &self,
        model: &Self::Model,
        centres: Centres<F>,
        frame: Frame<F>,
    ) -> Option<Self::Model> {
        SHARED.with_centres(model, centres, frame)
    }

    fn totals<'a>(&self, sums: &'a mut Self::Statistics) -> Option<&'a mut Moments> {
        MStep::<F>::totals(&SHARED, sums)
    }
}

/// How much of itself a sum may be off by.
fn tolerance<F: Float>() -> f64 {
    if F::EPSILON < 1e-10 { 1e-9 } else { 1e-6 }
}

/// A fit of some iterations, whether they settle or not.
fn fit<F, E, M>(
    (e_step, m_step): (&E, &M),
    data: &dyn Data<F>,
    (k, iterations, seed): (usize, usize, u64),
) -> Result<Fit<M::Model>>
where
    F: Float,
    E: EStep<F> + Clone + 'static,
    M: MStep<F> + Clone,
{
    let builder = Clusterer::builder().clusters(k).seed(seed).tolerance(0.0);
    let builder = builder.max_iterations(iterations);
    let clusterer = builder.e_step(e_step.clone()).m_step(m_step.clone());
    clusterer.build()?.fit(data)
}

/// The free energy never falls. `of` is the stage to blame.
fn rises<S, F: Float, M>(fit: &Fit<M>, of: &str) -> Result<()> {
    for (t, pair) in fit.report.free_energies.windows(2).enumerate() {
        let (before, after) = (pair[0], pair[1]);
        if after < before - tolerance::<F>() * before.abs().max(after.abs()) {
            return Err(broken::<S>(format!(
                "{of}: the free energy falls from {before} to {after} in iteration {}",
                t + 1
            )));
        }
    }
    Ok(())
}

/// Two fits are the same, bit for bit: free energies, labels and means.
fn same<S, F: Float, A: Mixture<F> + ?Sized, B: Mixture<F> + ?Sized>(
    a: (&Fit<impl Sized>, &A),
    b: (&Fit<impl Sized>, &B),
    of: &str,
) -> Result<()> {
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let what = if bits(&a.0.report.free_energies) != bits(&b.0.report.free_energies) {
        "free energies"
    } else if a.0.labels != b.0.labels {
        "labels"
    } else if a.0.coreset != b.0.coreset {
        "coresets"
    } else if a.1.means() != b.1.means() {
        "means"
    } else {
        return Ok(());
    };
    Err(broken::<S>(format!(
        "{of}: other {what}, but the same fit must give the same bits"
    )))
}

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
    for seed in 0..3 {
        let still = fit((e_step, &Still), data, (k, 10, seed))?;
        rises::<E, F, _>(&still, "with the model fixed")?;
        let moving = fit((e_step, &SHARED), data, (k, 10, seed))?;
        rises::<E, F, _>(&moving, "in a fit")?;
    }
    let stages = (e_step, &SHARED);
    threads::<E, F, E, _>(stages, data, k)?;
    resuming::goes_on::<E, F, E, _>(stages, data, k)
}

/// Any number of threads gives the same bits. `S` is the stage to blame.
fn threads<S, F, E, M>(stages: (&E, &M), data: &dyn Data<F>, k: usize) -> Result<()>
where
    F: Float,
    E: EStep<F> + Clone + 'static,
    M: MStep<F> + Clone,
{
    let once = fit(stages, data, (k, 5, 0))?;
    for threads in THREADS {
        let again = parallel::with_threads(threads, || fit(stages, data, (k, 5, 0)))?;
        let of = format!("on {threads} threads");
        same::<S, F, _, _>((&once, &once.model), (&again, &again.model), &of)?;
    }
    Ok(())
}

/// Component families: the free energy never falls, neither with supports of all components nor with those of two or one;
/// it is at most the log-likelihood, and equal to it for supports of all; any number of threads gives the same bits, and so
/// does a fit that goes on from a [checkpoint](crate::Checkpoint), if the family can be saved;
/// responsibilities sum to 1; [fast scores](Scores::all) are the [direct ones](Scores::some) to within their
/// [margin](Scores::margin); statistics of disjoint blocks add up.
///
/// # Errors
/// [`Error::Stage`] with the law; what the fit returns.
pub fn family<F, M>(m_step: &M, data: &dyn Data<F>, k: usize) -> Result<()>
where
    F: Float,
    M: MStep<F> + Clone,
{
    let within = tolerance::<F>();
    for width in [1, 2, k] {
        let e_step = Exhaustive::truncated(width);
        for seed in 0..3 {
            let fit = fit((&e_step, m_step), data, (k, 15, seed))?;
            rises::<M, F, _>(&fit, &format!("supports of {width}"))?;
            if fit.model.prior_terms() != 0.0 {
                // The free energy bounds the evidence.
                continue;
            }
            let last = fit.report.free_energies.last().copied();
            let (energy, likelihood) = (last.unwrap_or(0.0), fit.model.log_likelihood(data)?);
            let slack = within * energy.abs().max(data.summary().total_weight);
            if energy > likelihood + slack {
                return Err(broken::<M>(format!(
                    "supports of {width}: the free energy {energy} is above the log-likelihood {likelihood}"
                )));
            }
            if width >= k && (energy - likelihood).abs() > slack {
                return Err(broken::<M>(format!(
                    "supports of all: the free energy {energy} is not the log-likelihood {likelihood}"
                )));
            }
        }
    }
    threads::<M, F, _, M>((&Exhaustive::all(), m_step), data, k)?;
    resuming::goes_on::<M, F, _, M>((&Exhaustive::all(), m_step), data, k)?;
    let fit = fit((&Exhaustive::all(), m_step), data, (k, 3, 0))?;
    let responsibilities = fit.model.responsibilities(data)?;
    for (row, shares) in responsibilities.outer_iter().enumerate() {
        let sum: f64 = shares.iter().map(|q| q.to_f64()).sum();
        let off = (sum - 1.0).abs();
        if off.is_nan() || off > 4.0 * k as f64 * F::EPSILON {
            let what = format!("the responsibilities of row {row} sum to {sum}");
            return Err(broken::<M>(what));
        }
    }
    scores_agree::<M, F>(&fit.model, data)?;
    statistics_add_up(m_step, &fit.model, data)
}

/// Rows that the direct checks look at.
const LOOKED_AT: usize = 300;

fn scores_agree<S, F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Result<()> {
    /// Components this many nats behind have no share.
    const REACH: f64 = 60.0;

    let (k, beta) = (model.components(), model.log_joint().beta);
    let mut rows = Rows::default();
    data.load(0..data.len().min(LOOKED_AT), model.frame(), &mut rows)?;
    let ids: Vec<u32> = (0..k as u32).collect();
    let (mut fast, mut direct) = (Vec::new(), Vec::new());
    model.all(&rows, &mut fast);
    if fast.len() != rows.len() * k {
        let what = format!(
            "{} fast scores of {} rows under {k} components",
            fast.len(),
            rows.len()
        );
        return Err(broken::<S>(what));
    }
    for (i, fast) in fast.chunks_exact(k).enumerate() {
        model.some(&rows, i, &ids, &mut direct);
        let direct = direct.iter().map(|score| score.to_f64());
        let margin = model.margin(&rows, i, F::INFINITY).to_f64();
        let best = direct.clone().fold(f64::INFINITY, f64::min);
        for ((c, score), fast) in direct.enumerate().zip(fast) {
            let near = beta * (score - best) <= REACH;
            let off = (fast.to_f64() - score).abs();
            // Where the best are computed directly and the margin is 0, others have the digits of their type: a form in d
            // columns is off by 2 (d + 8) d times the root of the variance inflation, of itself, and by 2 d times the
            // deviations between the origin and the mean, of its root. Forms are computed in this type up to an inflation
            // of 64 and 100 deviations. What a score has besides is less than 20 nats for each column: pivots are at least
            // 1e-8 of the variance of their column, where columns are in like units.
            let width = rows.entries() as f64;
            let form = score.abs() + 20.0 * (width + 1.0) / beta;
            let of_mean = 200.0 * width * (form / (2.0 * beta)).sqrt();
            let rounding = F::EPSILON * (16.0 * (width + 8.0) * width * form + of_mean);
            let is_best = score <= best;
            let within = if is_best {
                margin
            } else {
                margin.max(rounding)
            };
            if near && (off.is_nan() || off > within) {
                return Err(broken::<S>(format!(
                    "row {i}, component {c}: the fast score {fast} is farther from the direct one, {score}, than the margin {margin}"
                )));
            }
        }
    }
    Ok(())
}

fn statistics_add_up<F, M>(m_step: &M, model: &M::Model, data: &dyn Data<F>) -> Result<()>
where
    F: Float,
    M: MStep<F>,
{
    let (n, k) = (data.len().min(LOOKED_AT), model.components());
    let add = |rows: std::ops::Range<usize>, sums: &mut M::Statistics| -> Result<()> {
        let (mut loaded, mut block) = (Rows::default(), Block::new(k, k));
        data.load(rows, model.frame(), &mut loaded)?;
        block.reset(loaded.len(), &[]);
        search::all(
            model,
            model.log_joint().beta,
            &loaded,
            &mut block,
            &mut Exact::default(),
        );
        posterior::normalise(&loaded, &mut block, model.log_joint());
        m_step.accumulate(&loaded, &block, model, sums);
        Ok(())
    };
    let updated = |sums| {
        let mut model = model.clone();
        m_step.update(sums, &mut model, false);
        model
    };
    let mut whole = m_step.statistics(model);
    add(0..n, &mut whole)?;
    let whole = updated(whole);
    let mut parts: Vec<M::Statistics> = (0..3).map(|_| m_step.statistics(model)).collect();
    for round in ["merged", "merged a second time"] {
        for (part, sums) in parts.iter_mut().enumerate() {
            add(part * n / 3..(part + 1) * n / 3, sums)?;
        }
        let merged = updated(M::Statistics::merge(&mut parts));
        if parts.is_empty() {
            return Err(broken::<M>("merging left no part to be used again"));
        }
        if let Some(what) = differ::<F, _>(&whole, &merged) {
            let what = format!(
                "statistics of three blocks, {round}, give other {what} than those of all rows"
            );
            return Err(broken::<M>(what));
        }
    }
    let empty = M::Statistics::merge(&mut parts).zero_mass();
    if empty != k {
        let what = format!(
            "merged parts are over no rows, but {} components have mass",
            k.abs_diff(empty)
        );
        return Err(broken::<M>(what));
    }
    Ok(())
}

/// What two models differ in by more than rounding.
fn differ<F: Float, M: Mixture<F>>(a: &M, b: &M) -> Option<&'static str> {
    let within = tolerance::<F>();
    let near = |a: f64, b: f64, unit: f64| (a - b).abs() <= within * unit || a == b;
    let centres = |model: &M| -> Vec<f64> {
        let centres = model.centres();
        let rows = (0..centres.len()).flat_map(|c| centres.row(c));
        rows.map(|z| z.to_f64()).collect()
    };
    let all = |a: &[f64], b: &[f64], unit: &dyn Fn(f64) -> f64| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(*a, *b, unit(*a)))
    };
    let list = |values: &mut dyn Iterator<Item = f64>| values.collect::<Vec<f64>>();
    let (variances, proportions) = (
        [a, b].map(|model| list(&mut model.variances().into_iter())),
        [a, b].map(|model| list(&mut model.proportions().into_iter())),
    );
    if !all(&centres(a), &centres(b), &|_| 1.0) {
        Some("means")
    } else if !all(&variances[0], &variances[1], &f64::abs) {
        Some("variances")
    } else if !all(&proportions[0], &proportions[1], &|_| 1.0) {
        Some("proportions")
    } else {
        None
    }
}
