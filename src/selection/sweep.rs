//! The sweep: the same rows for every number of clusters.

use super::held_out::{self, Groups};
use super::{Candidate, Criteria, Selection};
use crate::base::error::{Error, Result, positive};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Streams};
use crate::coreset::{Coreset, Full};
use crate::data::{Data, Guarded, View};
use crate::fit::{Estimator, Fit};
use crate::model::BoxedMixture;
use crate::seed::{self, Given};
use std::sync::Arc;

/// Fits models with several numbers of clusters to the same rows, and compares them.
///
/// ```
/// use coremix::prelude::*;
/// use coremix::selection::{Criterion, Sweep};
/// # let birch = coremix::datasets::Birch::grid(100).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 2,500 points in 25 clusters
/// // Any algorithm, here one by its name. `run` takes a builder for each number of clusters.
/// let algorithm: Algorithm = "gmm".parse()?;
/// let selection = Sweep::new([15, 20, 25, 30])
///     .coreset(Lightweight::new(1_500)) // drawn once
///     .held_out(0.2)
///     .run(&data, |k| algorithm.clone().clusters(k).boxed())?;
/// assert_eq!(selection.candidates.len(), 4);
/// # Ok::<(), Error>(())
/// ```
///
/// 1. Some rows are [held out](Self::held_out). No model is fitted to them.
/// 2. The [coreset](Self::coreset) is drawn from all rows, if there is one. Draws of rows that are held out are left out.
/// 3. Models are fitted to the same rows, in parallel if the rows are few. On many rows, the passes of one fit after the
///    other are parallel.
/// 4. Every model but the first is fitted once more, from the means of the one before it
///    ([`warm_starts`](Self::warm_starts)). The larger free energy is kept.
///
/// The result is the same on any number of threads. It depends on the seed of the sweep and on those of the algorithms.
///
/// Memory: unless there is a coreset, `Data::select` copies the rows that are not held out. In parallel there are as many
/// fits at a time as threads, each with fewer than 65,536 rows.
#[derive(Clone, Debug)]
#[must_use = "a sweep does nothing until it is run"]
pub struct Sweep<F: Float> {
    clusters: Vec<usize>,
    held_out: f64,
    coreset: Arc<dyn Coreset<F>>,
    warm_starts: bool,
    seed: u64,
}

impl<F: Float> Sweep<F> {
    /// Over these numbers of clusters, in any order.
    pub fn new(clusters: impl IntoIterator<Item = usize>) -> Self {
        let mut clusters: Vec<usize> = clusters.into_iter().collect();
        clusters.sort_unstable();
        clusters.dedup();
        Self {
            clusters,
            held_out: 0.1,
            coreset: Arc::new(Full),
            warm_starts: true,
            seed: 0,
        }
    }

    /// The part of the rows of positive weight that is held out: at least 0 and below 1. Default 0.1. With 0 all models are
    /// fitted to all rows, and there is no held-out likelihood.
    pub fn held_out(mut self, fraction: f64) -> Self {
        self.held_out = fraction;
        self
    }

    /// The coreset that all models are fitted to. Default [`Full`]: all rows that are not held out. About (1 - held out) N' of
    /// N' draws are left. An algorithm with a coreset of its own draws it from these rows.
    pub fn coreset(mut self, coreset: impl Coreset<F> + 'static) -> Self {
        self.coreset = Arc::new(coreset);
        self
    }

    /// Whether every number of clusters is also tried from the means of the model with fewer, and seeds by greedy
    /// k-means++ for those that are missing. Default: yes. That evens out local optima, for twice the number of fits.
    /// These fits run one after the other.
    pub fn warm_starts(mut self, warm_starts: bool) -> Self {
        self.warm_starts = warm_starts;
        self
    }

    /// The seed of the held-out rows and of the coreset. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Fits and compares. `build` makes the estimator for a number of clusters: a [`Clusterer`](crate::Clusterer), or a
    /// boxed [`Estimator`]. It should neither write checkpoints nor start from a model.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are no numbers of clusters, or one is 0; if the held-out part is not at least 0 and
    /// below 1, or leaves no rows on one side. [`Error::TooManyClusters`] if there are fewer rows; what `build` and the fits
    /// say.
    pub fn run<E: Estimator<F>>(
        &self,
        data: &dyn Data<F>,
        build: impl Fn(usize) -> Result<E>,
    ) -> Result<Selection<F>> {
        let Some(&least) = self.clusters.first() else {
            let rule = "must be given: at least one number of clusters";
            return Err(Error::parameter("clusters of a sweep", "none", rule));
        };
        positive("clusters of a sweep", least)?;
        let estimators: Result<Vec<E>> = self.clusters.iter().map(|k| build(*k)).collect();
        let estimators = estimators?;
        let pairs = estimators.iter().zip(&self.clusters);
        let entries: Vec<Entry<'_, F>> = pairs.map(|(e, k)| (*k, e as _)).collect();
        self.compare(data, &entries)
    }

    /// One estimator on the same rows as those of [`run`](Self::run), such as a Dirichlet process
    /// ([`dp_gmm`](crate::algorithms::dp_gmm)), which finds the number of components itself: see
    /// [`Criteria::in_use`]. `clusters` is what to call it.
    pub fn beside(
        &self,
        data: &dyn Data<F>,
        clusters: usize,
        estimator: &dyn Estimator<F>,
    ) -> Result<Candidate<F>> {
        positive("clusters of a sweep", clusters)?;
        let mut selection = self.compare(data, &[(clusters, estimator)])?;
        Ok(selection.candidates.remove(0))
    }

    /// Compares estimators of any type.
    fn compare(&self, data: &dyn Data<F>, entries: &[Entry<'_, F>]) -> Result<Selection<F>> {
        let data: &dyn Data<F> = &Guarded::to_fit(data, None, false)?;
        let most = entries.last().map_or(0, |(clusters, _)| *clusters);
        seed::enough_rows(data, most, "data")?;
        self.coreset.check(most)?;
        let split = self.split(data)?;
        let fitted = split.fitted.as_ref().map_or(data, |rows| &**rows);
        seed::enough_rows(fitted, most, "data without the held-out rows")?;

        let cold = parallel::map_fits(entries.len(), fitted.len(), |i| entries[i].1.fit(fitted));
        let mut fits: Vec<(Fit<BoxedMixture<F>>, bool)> = Vec::new();
        for (cold, (_, estimator)) in cold.into_iter().zip(entries) {
            let cold = cold?;
            let kept = match fits.last() {
                Some((before, _)) if self.warm_starts => {
                    let seeds = Given::new(before.model.means().view()).and_more();
                    let warm = estimator.fit_with(fitted, Some(&seeds), None)?;
                    if is_better(&warm, &cold) {
                        (warm, true)
                    } else {
                        (cold, false)
                    }
                }
                _ => (cold, false),
            };
            fits.push(kept);
        }

        let coresets = fits.iter().filter_map(|(fit, _)| fit.coreset.as_ref());
        let sizes = coresets.map(|subset| effective(&subset.weights));
        let sample_size = sizes.fold(split.sample_size, f64::min);
        let held_out = split.held_out.as_deref();
        let judge = |fit: &Fit<BoxedMixture<F>>| {
            let criteria = Criteria::of(&*fit.model, fitted)?;
            let groups = held_out.map(|rows| Groups::of(&*fit.model, rows));
            Ok((criteria, groups.transpose()?))
        };
        let judged = parallel::map_fits(fits.len(), fitted.len(), |i| judge(&fits[i].0))
            .into_iter()
            .collect::<Result<Vec<_>>>()?;
        let weights = held_out.map(Groups::weights).unwrap_or_default();
        let mean = |groups: &Groups| groups.mean(&weights);
        let groups = judged.iter().filter_map(|(_, groups)| groups.as_ref());
        let best = groups.max_by(|a, b| mean(a).total_cmp(&mean(b))).cloned();

        let candidates = fits.into_iter().zip(judged).zip(entries);
        let candidates = candidates.map(|(((fit, warm), (criteria, groups)), (clusters, _))| {
            let error = |best| {
                groups
                    .as_ref()
                    .map(|groups| groups.error_of_difference(best, &weights))
            };
            Candidate {
                clusters: *clusters,
                model: fit.model,
                report: fit.report,
                warm,
                criteria: Criteria {
                    sample_size: criteria.sample_size.min(sample_size),
                    ..criteria
                },
                held_out: groups.as_ref().map(mean),
                held_out_error: best.as_ref().and_then(error),
            }
        });
        Ok(Selection {
            candidates: candidates.collect(),
        })
    }

    /// The rows to fit to, and those held out.
    fn split<'a>(&self, data: &'a dyn Data<F>) -> Result<Split<'a, F>> {
        let streams = Streams::new(self.seed, 0);
        let wrong = |rule| Err(Error::parameter("held_out", self.held_out, rule));
        if !(0.0..1.0).contains(&self.held_out) {
            return wrong("must be at least 0 and below 1");
        }
        let held_out = if self.held_out > 0.0 {
            held_out::choose(data, self.held_out, &mut streams.at(Purpose::HeldOut, 0, 0))?
        } else {
            Vec::new()
        };
        let mut rng = streams.at(Purpose::Coreset, 0, 0);
        let frame = data.frame();
        let drawn = self.coreset.sample(View::new(data, &frame), &mut rng)?;
        if let Some(drawn) = &drawn {
            let sound = drawn.check(data.len());
            sound.map_err(|what| Error::stage(self.coreset.name(), what))?;
        }
        let mut split = Split {
            fitted: None,
            sample_size: f64::INFINITY,
            held_out: None,
        };
        let is_coreset = drawn.is_some();
        let pairs: Vec<(usize, f64)> = match drawn {
            Some(drawn) => drawn.rows.into_iter().zip(drawn.weights).collect(),
            None => (0..data.len()).map(|n| (n, data.weight(n))).collect(),
        };
        if is_coreset || !held_out.is_empty() {
            let is_left = |pair: &(usize, f64)| held_out.binary_search(&pair.0).is_err();
            let pairs = pairs.into_iter().filter(is_left);
            let (rows, weights) = pairs.unzip::<_, _, Vec<_>, Vec<_>>();
            if !weights.iter().any(|w| *w > 0.0) {
                return wrong(
                    "leaves no row of the coreset to fit to: hold out less, or draw more",
                );
            }
            if is_coreset {
                split.sample_size = effective(&weights);
            }
            split.fitted = Some(data.select(&rows, weights)?);
        }
        if !held_out.is_empty() {
            let weights = held_out.iter().map(|n| data.weight(*n)).collect();
            split.held_out = Some(data.select(&held_out, weights)?);
        }
        Ok(split)
    }
}

/// A number of clusters, and the estimator for it.
type Entry<'a, F> = (usize, &'a dyn Estimator<F>);

type AnyFit<F> = Fit<BoxedMixture<F>>;

struct Split<'a, F: Float> {
    /// `None`: all rows.
    fitted: Option<Box<dyn Data<F> + 'a>>,
    /// The most rows that those of a coreset can stand for.
    sample_size: f64,
    held_out: Option<Box<dyn Data<F> + 'a>>,
}

/// The effective number of rows of a coreset (E48).
fn effective(weights: &[f64]) -> f64 {
    let largest = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // Weights are in units of the largest, so that squares neither overflow nor vanish.
    let parts = weights.iter().map(|w| w / largest);
    let (sum, squares) = parts.fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    sum * sum / f64::max(squares, f64::MIN_POSITIVE)
}

/// Whether one of two fits of an algorithm is the better one: free energies compare on the same rows alone.
fn is_better<F: Float>(one: &AnyFit<F>, other: &AnyFit<F>) -> bool {
    let last = |fit: &AnyFit<F>| {
        let phase = fit.report.phases.last();
        phase.map(|phase| (phase.ran_on, phase.rows))
    };
    let energy = |fit: &AnyFit<F>| fit.report.free_energies.last().copied();
    last(one) == last(other) && energy(one) > energy(other)
}

#[cfg(test)]
mod tests {
    use super::effective;

    #[test]
    fn equal_weights_count_as_rows_and_others_as_fewer() {
        assert!((effective(&[3.0; 7]) - 7.0).abs() < 1e-12);
        assert!((effective(&[1.0, 1.0, 2.0, 0.0]) - 16.0 / 6.0).abs() < 1e-12);
        assert!((effective(&[1e-300, 1e-300]) - 2.0).abs() < 1e-12);
        assert!((effective(&[1e300, 1e300]) - 2.0).abs() < 1e-12);
    }
}
