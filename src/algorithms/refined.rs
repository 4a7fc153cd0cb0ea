//! Where mixtures begin: at the means of a whole fit by [`fast`].

use super::of_fast::fast;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::coreset::{Coreset, Lightweight};
use crate::data::{Centres, Data, View};
use crate::e_step::Exhaustive;
use crate::em::checkpoint::{Checkpoint, STARTS};
use crate::families::Covariance;
use crate::fit::{Clusterer, Fit};
use crate::m_step::{Coordinates, Needs, Variances};
use crate::model::Mixture;
use crate::seed::{Given, KMeansPlusPlus, Seeder, Seeds};
use ndarray::Array2;
use std::fmt;
use std::sync::Arc;

/// The seeder of mixtures of such a family. Means of counts are no rows, so these begin at rows.
pub(super) fn seeder_of<F: Float>(
    needs: Needs,
    checkpoint: Option<&Checkpoint>,
) -> Arc<dyn Seeder<F>> {
    match needs.coordinates {
        Coordinates::Raw => Arc::new(KMeansPlusPlus::default()),
        _ => Arc::new(Refined {
            in_all_units: needs.variances == Variances::Columns,
            checkpoint: checkpoint.cloned(),
        }),
    }
}

/// The draws of the coreset that a start is fitted to, where there are more rows than these. EM on all rows follows.
pub(super) fn draws_of_start(clusters: usize) -> usize {
    const LEAST: usize = 1 << 16;
    const EACH: usize = 256;
    LEAST.max(clusters.saturating_mul(EACH))
}

/// Nats per row by which the free energies of two starts differ: less is rounding, or two ways to the same clusters.
const SURELY: f64 = 1e-3;

/// The means of [`fast`], with as many clusters, in the coordinates of the fit.
///
/// A family that is free of units has a second fit, of standardised columns: where units differ, a distance is that of the widest
/// columns. The better of both by the free energy after one iteration with a variance for each component and column is the start.
#[derive(Clone)]
struct Refined {
    in_all_units: bool,
    /// The checkpoint of the fit which begins here.
    checkpoint: Option<Checkpoint>,
}

impl fmt::Debug for Refined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A fit may go on where its files have moved.
        let mut shown = f.debug_struct("Refined");
        shown.field("in_all_units", &self.in_all_units).finish()
    }
}

impl Stage for Refined {}

impl<F: Float> Seeder<F> for Refined {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let coreset = Lightweight::new(draws_of_start(k))
            .sample(view, rng)?
            .filter(|coreset| coreset.rows.len() >= k);
        let mut evaluations = coreset.as_ref().map_or(0, |coreset| coreset.evaluations);
        let selected = coreset
            .map(|coreset| view.data.select(&coreset.rows, coreset.weights))
            .transpose()?;
        let data = selected.as_deref().unwrap_or(view.data);
        let frame = view.frame;
        let is_standardised = frame.is_standardised();
        let mut fitted = |standardise| {
            let fast = fast(k).standardise(standardise).seed(rng.seed());
            let fast = match &self.checkpoint {
                Some(checkpoint) => {
                    fast.written_to(&checkpoint.of_part(STARTS[usize::from(standardise)]))
                }
                None => fast,
            };
            let Fit { model, report, .. } = fast.unchecked().fit(data)?;
            evaluations += report.evaluations.total();
            view.done(1);
            Ok((model.means().to_owned(), model.variances().row(0).to_vec()))
        };
        let has_units = !is_standardised && frame.is_plain();
        let twice = self.in_all_units && has_units && data.dim() > 1;
        view.expect(1 + usize::from(twice));
        let (means, _) = fitted(is_standardised)?;
        let mut centres = Centres::enter(means.view(), frame);
        if twice {
            let (others, variances) = fitted(true)?;
            let (one, of_one) = judged(data, &means, false)?;
            let (other, of_other) = judged(data, &others, true)?;
            evaluations += of_one + of_other;
            if other > one + SURELY * data.summary().total_weight {
                // One variance for all columns would merge groups that differ in narrow ones.
                let entered = variances.iter().enumerate();
                let spread = entered
                    .map(|(j, v)| frame.enter_product(j, j, *v))
                    .collect();
                centres = Centres::enter(others.view(), frame).with_spread(spread);
            }
        }
        if let Some(checkpoint) = &self.checkpoint {
            for part in STARTS {
                checkpoint.of_part(part).remove();
            }
        }
        Ok(Seeds {
            centres,
            evaluations,
        })
    }
}

/// The free energy at these means after an iteration, and the evaluations of both.
fn judged<F: Float>(
    data: &dyn Data<F>,
    means: &Array2<F>,
    standardise: bool,
) -> Result<(f64, u64)> {
    // EM with a variance for each component and column.
    let once = Clusterer::builder()
        .clusters(means.nrows())
        .e_step(Exhaustive::all())
        .covariance(Covariance::Diagonal)
        .seeder(Given::new(means.view()))
        .standardise(standardise)
        .max_iterations(1);
    let report = once.unchecked().fit(data)?.report;
    let last = report.free_energies.last().copied();
    Ok((
        last.unwrap_or(f64::NEG_INFINITY),
        report.evaluations.total(),
    ))
}
