//! Whether a fit begins at random rows in place of its coreset.

use super::tuning::TUNING;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Centres, Data, View};
use crate::em;
use crate::fit::{Begin, Beginning, Phase};
use crate::seed::{Seeder, Uniform};
use std::sync::Arc;

impl<F: Float> Phase<F> {
    /// Leaves the phase out, or what it found, where rows drawn at random do as well. Distances that differ little in many columns give
    /// seeds nothing to find, and the coreset then has too few rows for each cluster. It is for the first phase, on a coreset of fewer than
    /// 64 rows per cluster, before one on all rows and all columns. Seeds that cost no evaluations are kept, and so are those that are
    /// better than random rows on some rows of the coreset.
    ///
    /// With at least 128 columns, if the next phase is on all rows, fewer than 8 times as many, the fit begins at the random rows there.
    /// Otherwise the phase runs. If all rows are at least 4 times as many, its means are compared with those of an iteration from random
    /// rows, for rows that neither has seen. Where they are worse, the fit goes on in the phase on all rows from the means of such an
    /// iteration on some rows; larger coresets are left out. From such centres the first search of a phase is over all of them.
    #[must_use]
    pub fn unless_random_rows_do(mut self) -> Self {
        self.begin = Some(Arc::new(UnlessRandomRowsDo));
        self
    }
}

#[derive(Debug)]
struct UnlessRandomRowsDo;

impl<F: Float> Begin<F> for UnlessRandomRowsDo {
    /// At random rows, if they are as good as the seeds, and the phase on all rows is not much longer than the one on the coreset. If it
    /// is, what that one finds decides.
    fn before(&self, at: &mut Beginning<'_, F>, seeds: &Centres<F>) -> Result<Option<Centres<F>>> {
        let limits = &TUNING.random;
        if !has_few(at) {
            return Ok(None);
        }
        let random = random_rows(at)?;
        // Draws of a coreset have rows far out, which random ones of all rows may lack.
        let few = at.few.len();
        let judges = chosen(at.few, (0..few).step_by(few.div_ceil(limits.judges)))?;
        let with_seeds = error_of(at, &*judges, seeds)?;
        let with_random = error_of(at, &*judges, &random)?;
        let is_wide = at.frame.dim() >= limits.many_columns;
        if with_random > limits.error * with_seeds {
            return Ok(None);
        }
        if is_wide && at.is_next && at.all.len() < limits.many_times * few {
            return Ok(Some(random));
        }
        at.undecided = at.all.len() >= limits.few_times * few;
        Ok(None)
    }

    /// At the means of an iteration from random rows on some of all rows, if they are better for rows that neither has seen. Then the phase
    /// on the coreset found nothing but the few rows there are for each cluster, and the means would not leave them.
    fn after(&self, at: &mut Beginning<'_, F>, centres: &Centres<F>) -> Result<Option<Centres<F>>> {
        if !has_few(at) {
            return Ok(None);
        }
        let random = random_rows(at)?;
        let few = at.few.len();
        let n = at.all.len();
        let step = (n / few).max(2);
        let drawn = chosen(at.all, (0..n).step_by(step))?;
        let judge_step = step * few.div_ceil(TUNING.random.judges);
        let judges = chosen(at.all, (1..n).step_by(judge_step))?;
        // Means of m rows are off by the error of one row over m.
        let off = 1.0 + at.clusters as f64 / drawn.len() as f64;
        let (means, evaluations) = em::iterated(View::new(&*drawn, at.frame), random)?;
        at.evaluations += evaluations;
        let of_found = error_of(at, &*judges, centres)?;
        let of_means = error_of(at, &*judges, &means)?;
        Ok((of_means < off * of_found).then_some(means))
    }
}

/// Whether the coreset has few rows for each cluster.
fn has_few<F: Float>(at: &Beginning<'_, F>) -> bool {
    at.few.len() < TUNING.random.few_per_cluster * at.clusters
}

/// Rows drawn at random for the centres.
fn random_rows<F: Float>(at: &mut Beginning<'_, F>) -> Result<Centres<F>> {
    let view = View::new(at.all, at.frame);
    Ok(Uniform.seed(view, at.clusters, &mut at.rng)?.centres)
}

/// Some rows, with their weights.
fn chosen<F: Float>(
    data: &dyn Data<F>,
    rows: impl Iterator<Item = usize>,
) -> Result<Box<dyn Data<F> + '_>> {
    let rows: Vec<usize> = rows.collect();
    let weights = rows.iter().map(|&n| data.weight(n)).collect();
    data.select(&rows, weights)
}

fn error_of<F: Float>(
    at: &mut Beginning<'_, F>,
    rows: &dyn Data<F>,
    centres: &Centres<F>,
) -> Result<f64> {
    let (error, evaluations) = em::error_of(View::new(rows, at.frame), centres)?;
    at.evaluations += evaluations;
    Ok(error)
}
