//! The course of a fit: range, coreset, the local fit, and EM over the table.

use crate::checkpoint::{Course, Identity, State};
use crate::coreset;
use crate::error::{Error, Result};
use crate::job::{Job, Support};
use crate::model::Model;
use crate::partial::Found;
use crate::summary::{self, Range};
use crate::table::Table;
use crate::task::Work;
use coremix::stage::Likelihood;
use coremix::{Rule, Stop};
use datafusion::dataframe::DataFrame;
use twox_hash::XxHash3_64;

/// The result of a fit.
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
    /// The free energies of the E-steps over the table, in nats: one more than there are M-steps. With truncated supports they
    /// are a lower bound of the log-likelihood.
    pub free_energies: Vec<f64>,
    /// Components that no row belonged to in the last E-step. They keep their means.
    pub zero_mass: usize,
    /// Why it ended.
    pub stop: Stop,
}

/// Progress that an observer sees after each E-step over the table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// M-steps so far.
    pub iteration: usize,
    /// The free energy of the model, in nats.
    pub free_energy: f64,
}

impl Job {
    /// Fits the model.
    ///
    /// # Errors
    /// As [`summary`](Self::summary). [`Error::Core`] for settings of the algorithm, [`Error::Checkpoint`],
    /// and [`Error::MessageSize`] for a model that is too large for a message. An [`Error::Connection`] names the checkpoint
    /// that the job goes on from.
    pub async fn fit(&self, table: &DataFrame) -> Result<Fitted> {
        self.fit_observed(table, &mut |_| ()).await
    }

    /// Fits the model, and shows each iteration.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub async fn fit_observed(
        &self,
        table: &DataFrame,
        observer: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Fitted> {
        let fitted = async { run(self, &self.open(table).await?, observer).await };
        fitted.await.map_err(|error| match error {
            Error::Connection { cause, .. } => Error::Connection {
                cause,
                checkpoint: self.checkpoint.clone().filter(|path| path.exists()),
            },
            other => other,
        })
    }
}

async fn run(
    job: &Job,
    table: &Table,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Fitted> {
    let range = summary::range(table).await?;
    let identity = identity(job, table, &range);
    let path = job.checkpoint.as_deref();
    let save = |state: &State| path.map_or(Ok(()), |path| state.save(path));
    let resumed = match path {
        Some(path) => State::load(path, table.precision(), &identity)?,
        None => None,
    };
    let State {
        mut model,
        mut course,
    } = match resumed {
        Some(state) => state,
        None => {
            let state = start(job, table, &range, identity).await?;
            save(&state)?;
            state
        }
    };

    let (k, d) = (model.components(), model.columns());
    let width = match job.support {
        Support::Nearest => 1,
        Support::Best(width) => width,
        Support::All => k,
    };
    // The result has a mass, d sums and squares of 16 bytes per component.
    table.check_size(k.saturating_mul(16 * (d + 2) + 8))?;
    let mut free_energies: Vec<f64> = course
        .free_energies
        .iter()
        .copied()
        .map(f64::from_bits)
        .collect();
    let stop = loop {
        let work = Work::EStep(model.clone(), width);
        let Found::Sums(sums) = table.pass_again(range.rows, work).await? else {
            return Err(Error::other_pass());
        };
        course.zero_mass = sums.masses().filter(|mass| *mass <= 0.0).count();
        let (iteration, free_energy) = (free_energies.len(), sums.free_energy());
        observer(Progress {
            iteration,
            free_energy,
        });
        let of_rows = Likelihood {
            weight: sums.weight(),
            entries: sums.weight() * d as f64,
            ..Likelihood::default()
        };
        let rule = Rule::PerCoordinate;
        let settled = rule.settles(job.tolerance, &free_energies, free_energy, &of_rows);
        free_energies.push(free_energy);
        if settled {
            break Stop::Converged;
        }
        if iteration >= job.max_iterations {
            break Stop::MaxIterations;
        }
        model = model.update(&sums)?;
        course.free_energies.push(free_energy.to_bits());
        let state = State { model, course };
        save(&state)?;
        State { model, course } = state;
    };
    Ok(Fitted {
        model,
        rows: range.rows,
        coreset_rows: course.coreset_rows,
        iterations: free_energies.len() - 1,
        free_energies,
        zero_mass: course.zero_mass,
        stop,
    })
}

/// The model of the coreset.
async fn start(job: &Job, table: &Table, range: &Range, identity: Identity) -> Result<State> {
    let summary = summary::summary(table, range).await?;
    let coreset = coreset::draw(table, range, &summary, job.coreset, job.seed).await?;
    let coreset_rows = coreset.weights.len();
    let algorithm = job.algorithm.clone().seed(job.seed);
    // The fit takes all threads of its pool: the runtime must go on meanwhile.
    let fitted = tokio::task::spawn_blocking(move || coreset.fit(&algorithm)).await;
    let model = fitted.map_err(|e| Error::setting("algorithm", e, "the fit panicked"))??;
    let course = Course {
        identity,
        free_energies: Vec::new(),
        coreset_rows,
        zero_mass: 0,
    };
    Ok(State { model, course })
}

/// The identity of this job, which differs from those of others. The limits of the iterations are no part of it: a job may go
/// on further.
fn identity(job: &Job, table: &Table, range: &Range) -> Identity {
    let ends = range.ranges.iter().flat_map(|(min, max)| [min, max]);
    let bytes: Vec<u8> = ends.flat_map(|end| end.to_bits().to_le_bytes()).collect();
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
        version: crate::VERSION.to_string(),
        settings: format!("{settings:?}"),
        table: format!("{} rows, {:016x}", range.rows, XxHash3_64::oneshot(&bytes)),
    }
}
