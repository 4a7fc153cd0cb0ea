//! The course of a fit: range, coreset, the local fit, and EM over the table.

use crate::checkpoint::{Identity, State};
use crate::coreset;
use crate::error::{Error, Result};
use crate::job::{Job, Support};
use crate::model::Model;
use crate::partial::Range;
use crate::step::{e_step, m_step};
use crate::summary::{self, Bounds};
use crate::table::Table;
use coremix::Stop;
use twox_hash::XxHash3_64;

/// What a fit returns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of different rows in the coreset that the fit started from.
    pub coreset_rows: usize,
    /// M-steps over the table, also those before the job was resumed.
    pub iterations: usize,
    /// The free energies of the E-steps over the table, in nats: one more than there are M-steps. Of a support that is
    /// truncated they are a lower bound of the log-likelihood.
    pub free_energies: Vec<f64>,
    /// Components that no row belonged to in the last M-step. They keep their means.
    pub zero_mass: usize,
    /// Why it ended.
    pub stop: Stop,
}

/// What an observer sees after each E-step over the table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// M-steps so far.
    pub iteration: usize,
    /// The free energy of the model, in nats.
    pub free_energy: f64,
}

pub(crate) async fn run(
    job: &Job,
    table: &Table,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Fitted> {
    let range = summary::range(table).await?;
    let identity = identity(job, table, &range);
    let path = job.checkpoint.as_deref();
    let save = |state: &State| path.map_or(Ok(()), |path| state.save(path, &identity));
    let resumed = match path {
        Some(path) => State::load(path, &identity)?,
        None => None,
    };
    let mut state = match resumed {
        Some(state) => state,
        None => {
            let state = start(job, table, &range).await?;
            save(&state)?;
            state
        }
    };

    let bounds = Bounds::of(&range);
    let width = match job.support {
        Support::Nearest => 1,
        Support::Best(width) => width,
        Support::All => state.model.components(),
    };
    let stop = loop {
        let found = e_step(table, &range, &bounds, &state.model, width, true).await?;
        let iteration = state.free_energies.len();
        let free_energy = found.free_energy;
        observer(Progress {
            iteration,
            free_energy,
        });
        let before = state.free_energies.last().copied();
        state.free_energies.push(free_energy);
        // E19, per coordinate of every row.
        let unit = job.tolerance * 0.5 * found.likelihood.entries;
        if before.is_some_and(|before| (free_energy - before).abs() <= unit) {
            break Stop::Converged;
        }
        if iteration >= job.max_iterations {
            break Stop::MaxIterations;
        }
        (state.model, state.zero_mass) = m_step(&state.model, &found, &bounds, state.floor)?;
        save(&state)?;
    };
    Ok(Fitted {
        model: state.model,
        rows: range.rows,
        coreset_rows: state.coreset_rows,
        iterations: state.free_energies.len() - 1,
        free_energies: state.free_energies,
        zero_mass: state.zero_mass,
        stop,
    })
}

/// The model of the coreset.
async fn start(job: &Job, table: &Table, range: &Range) -> Result<State> {
    let summary = summary::summary(table, range).await?;
    let coreset = coreset::draw(table, range, &summary, job.coreset, job.seed).await?;
    let coreset_rows = coreset.weights.len();
    let algorithm = job.algorithm.clone().seed(job.seed);
    // The fit takes all threads of its pool: the runtime must go on meanwhile.
    let fitted = tokio::task::spawn_blocking(move || coreset.fit(&algorithm)).await;
    let model = fitted.map_err(|e| Error::setting("algorithm", e, "its fit must end"))??;
    Ok(State {
        model,
        free_energies: Vec::new(),
        floor: summary.variance_floor(table.precision()),
        coreset_rows,
        zero_mass: 0,
    })
}

/// What tells this job from others. The limits of the iterations are no part of it: a job may go on further.
fn identity(job: &Job, table: &Table, range: &Range) -> Identity {
    let mut bytes = range.rows.to_le_bytes().to_vec();
    for (min, max) in &range.ranges {
        bytes.extend(min.to_bits().to_le_bytes());
        bytes.extend(max.to_bits().to_le_bytes());
    }
    let settings = (
        &job.algorithm,
        &job.columns,
        &job.key,
        job.coreset,
        job.seed,
        job.support,
        table.precision(),
    );
    Identity {
        settings: format!("{settings:?}"),
        table: format!("{} rows, {:016x}", range.rows, XxHash3_64::oneshot(&bytes)),
    }
}
