//! The law of checkpoints.

use super::{broken, same};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::data::Data;
use crate::e_step::EStep;
use crate::em::Progress;
use crate::em::checkpoint::Checkpoint;
use crate::fit::Clusterer;
use crate::m_step::MStep;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A fit that is stopped and goes on from its checkpoint gives the same bits as one that is not stopped. `S` is the stage to
/// blame.
pub(super) fn goes_on<S, F, E, M>(stages: (&E, &M), data: &dyn Data<F>, k: usize) -> Result<()>
where
    F: Float,
    E: EStep<F> + Clone + 'static,
    M: MStep<F> + Clone,
{
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!("coremix-testing-{process}-{count}.ckp"));
    let found = goes_on_from::<S, F, E, M>(&path, stages, data, k);
    std::fs::remove_file(&path).ok();
    found
}

fn goes_on_from<S, F, E, M>(
    path: &Path,
    (e_step, m_step): (&E, &M),
    data: &dyn Data<F>,
    k: usize,
) -> Result<()>
where
    F: Float,
    E: EStep<F> + Clone + 'static,
    M: MStep<F> + Clone,
{
    let builder = || {
        let builder = Clusterer::builder().clusters(k).tolerance(0.0);
        let builder = builder.max_iterations(6);
        builder.e_step(e_step.clone()).m_step(m_step.clone())
    };
    let whole = builder().build()?.fit(data)?;
    let checkpoint = Checkpoint::to(path)
        .every(Duration::MAX)
        .every_iterations(1);
    for stop in 0..4 {
        let fit = builder().checkpoint(&checkpoint).build()?;
        fit.fit_observed(data, |progress| match progress {
            Progress::Iteration { iteration, .. } if *iteration == stop => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })?;
        let fit = builder().checkpoint(&checkpoint.clone().resume()).build()?;
        let resumed = match fit.fit(data) {
            Err(Error::Checkpoint { fault, .. }) => {
                return Err(broken::<S>(format!(
                    "its own checkpoint is refused: {fault}"
                )));
            }
            found => found?,
        };
        let of = format!("resumed after {stop} iterations");
        same::<S, F, _, _>((&whole, &whole.model), (&resumed, &resumed.model), &of)?;
        if whole.report.distance_evaluations != resumed.report.distance_evaluations {
            return Err(broken::<S>(format!("{of}: other evaluations")));
        }
    }
    Ok(())
}
