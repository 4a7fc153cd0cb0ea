//! Checkpoints: where a fit writes down how far it is, how often, and whether it goes on from there.

use super::identity::Identity;
use crate::base::error::{Error, Result, positive};
use crate::base::serde::{DeserializeOwned, Serialize};
use crate::io::{self, CHECKPOINT, Contents, FileFault, read_file};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file from which an interrupted fit can go on. The fit may be interrupted by a crash, by `kill -9`, by a [`Cancel`](crate::Cancel) or by
/// its observer.
///
/// A fit with a checkpoint writes what it needs to go on when the coreset and the seeds are there, at the end of every phase,
/// and in between as often as it is told. Seeds of [`gmm`](crate::algorithms::gmm) are the means of other fits: until they are there,
/// these have checkpoints next to it, whose names go on with `.start`. The file is written in the same folder and then renamed to `path`: a kill at any
/// moment leaves the last checkpoint as it was.
///
/// A fit that goes on gives the same bits as one that was never stopped: model, labels, free energies, evaluations. Only the
/// times of the report differ, and the number of threads may. Settings, data and version of the crate must be the same, else
/// there is an error. The observer sees the coresets again, and only the steps that are left. A fit that is cancelled before
/// its next search has no result, but its file stays, and so does that of a fit that has ended: going on from it gives its
/// result at once. Fits that run at the same time need a file each.
///
/// **Errors.** If the first checkpoint of a fit cannot be written, the fit ends with [`Error::Checkpoint`]. After that it goes
/// on, and tries again when the next one is due; the last failure is in
/// [`Report::checkpoint_fault`](crate::Report::checkpoint_fault). The format is described in `docs/files.md`.
///
/// ```
/// use coremix::Checkpoint;
/// use coremix::prelude::*;
/// use std::ops::ControlFlow;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// # let path = std::env::temp_dir().join(format!("coremix-checkpoint-{}", std::process::id()));
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let whole = algorithms::gmm(25).build()?.fit(&data)?;
///
/// // A fit that is stopped after its third search.
/// let checkpoint = Checkpoint::to(&path).every_iterations(1);
/// let fit = algorithms::gmm(25).checkpoint(&checkpoint).build()?;
/// fit.fit_observed(&data, |progress| match progress {
///     Progress::Iteration { iteration: 2, .. } => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// })?;
///
/// // With equal settings, the rest of the fit.
/// let fit = algorithms::gmm(25).checkpoint(&checkpoint.resume()).build()?;
/// let resumed = fit.fit(&data)?;
/// assert_eq!(resumed.model, whole.model);
/// assert_eq!(resumed.report.free_energies, whole.report.free_energies);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Checkpoint {
    path: PathBuf,
    every: Duration,
    iterations: Option<usize>,
    resume: Resume,
}

/// How a fit treats a file that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resume {
    /// Starts from the beginning, and replaces it.
    No,
    /// Goes on from it; it must be there.
    Yes,
    /// Goes on from it where there is one.
    IfThere,
}

/// How the names of checkpoints go on for fits that give seeds, without and with standardised columns.
pub(crate) const STARTS: [&str; 2] = [".start", ".start-standardised"];

impl Checkpoint {
    /// Checkpoints in the file `path`, once a minute and at the end of every phase. A fit starts from the beginning, and
    /// replaces a file that is there.
    pub fn to(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            every: Duration::from_secs(60),
            iterations: None,
            resume: Resume::No,
        }
    }

    /// Another time between two checkpoints of a phase. Default one minute. A checkpoint is written after an iteration, so a
    /// long one makes it late. `Duration::MAX` is never.
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Writes a checkpoint also after every `iterations` iterations, at least 1, counted over all phases.
    pub fn every_iterations(self, iterations: usize) -> Self {
        let iterations = Some(iterations);
        Self { iterations, ..self }
    }

    /// Goes on from the file, which must be there.
    pub fn resume(self) -> Self {
        let resume = Resume::Yes;
        Self { resume, ..self }
    }

    /// Goes on from the file where there is one, and starts from the beginning where there is none.
    pub fn resume_if_there(self) -> Self {
        let resume = Resume::IfThere;
        Self { resume, ..self }
    }

    /// Whether there is a file to go on from: of the fit, or of the fits that give its seeds.
    #[must_use]
    pub fn exists(&self) -> bool {
        let mut starts = STARTS.iter().map(|part| self.of_part(part));
        self.path.exists() || starts.any(|start| start.path.exists())
    }

    /// The path of the file.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint of a fit that is a part of this one.
    pub(crate) fn of_part(&self, part: &str) -> Self {
        let mut path = self.path.clone().into_os_string();
        path.push(part);
        let resume = match self.resume {
            Resume::No => Resume::No,
            Resume::Yes | Resume::IfThere => Resume::IfThere,
        };
        Self {
            path: path.into(),
            resume,
            ..self.clone()
        }
    }

    /// Removes the file, where there is one.
    pub(crate) fn remove(&self) {
        std::fs::remove_file(&self.path).ok();
    }

    pub(crate) fn check(&self) -> Result<()> {
        positive("every_iterations", self.iterations.unwrap_or(1))
    }

    /// The bytes to go on from, if the fit is to go on.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        if self.resume == Resume::No {
            return Ok(None);
        }
        match read_file(&CHECKPOINT, &self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(FileFault::System {
                kind: ErrorKind::NotFound,
                ..
            }) if self.resume == Resume::IfThere => Ok(None),
            Err(fault) => Err(self.fault(fault)),
        }
    }

    pub(crate) fn fault(&self, fault: FileFault) -> Error {
        let path = self.path.display().to_string();
        Error::Checkpoint { path, fault }
    }
}

/// Writes the checkpoints of a fit: its course, and then the phase that runs, if one does.
pub(crate) struct Saver {
    checkpoint: Checkpoint,
    /// A checkpoint of another fit is refused.
    identity: Identity,
    /// The course, which does not change while a phase runs.
    course: Vec<u8>,
    /// Searches since the last checkpoint, and when that was written: not yet, before the first one.
    searches: usize,
    written: Option<Instant>,
    /// Why the last one could not be written.
    fault: Option<FileFault>,
}

impl Saver {
    /// Fails where no file can be written.
    pub(crate) fn new(checkpoint: &Checkpoint, identity: Identity) -> Result<Self> {
        let prepared = io::prepare(checkpoint.path());
        prepared.map_err(|error| checkpoint.fault(error.into()))?;
        Ok(Self {
            checkpoint: checkpoint.clone(),
            identity,
            course: Vec::new(),
            searches: 0,
            written: None,
            fault: None,
        })
    }

    /// The course to go on from, if there is one, and the bytes of the phase: none between two phases.
    pub(crate) fn resumed<Course: DeserializeOwned>(&self) -> Result<Option<(Course, Vec<u8>)>> {
        let Some(bytes) = self.checkpoint.read()? else {
            return Ok(None);
        };
        let read = || {
            let contents = Contents::of(&CHECKPOINT, &bytes)?;
            self.identity.check(contents.header)?;
            let mut values = contents.values;
            let course = io::take("course", &mut values)?;
            Ok((course, values.to_vec()))
        };
        let read = read().map_err(|fault| self.checkpoint.fault(fault));
        read.map(Some)
    }

    pub(crate) fn begin(&mut self, course: &impl Serialize) -> Result<()> {
        let bytes = io::to_vec(course);
        self.course = bytes.map_err(|error| self.checkpoint.fault(error.into()))?;
        Ok(())
    }

    /// Another search begins. Whether a checkpoint is due before it.
    pub(super) fn is_due(&mut self) -> bool {
        let every = self.checkpoint.iterations;
        self.searches += 1;
        let late = |written: Instant| written.elapsed() >= self.checkpoint.every;
        self.written.is_none_or(late) || every.is_some_and(|every| self.searches >= every)
    }

    /// Writes a checkpoint in the middle of a phase.
    pub(super) fn write_phase(&mut self, phase: &impl Serialize) -> Result<()> {
        let course = std::mem::take(&mut self.course);
        let written = self.replace(&|to| {
            to.write_all(&course)?;
            io::put(phase, to)
        });
        self.course = course;
        written
    }

    /// Writes a checkpoint between two phases.
    pub(crate) fn write(&mut self, course: &impl Serialize) -> Result<()> {
        self.replace(&|to| io::put(course, to))
    }

    /// Writes the file. The first one of a fit must succeed.
    fn replace(&mut self, fill: &dyn Fn(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        let header = self.identity.text();
        let written = io::replace(self.checkpoint.path(), |file| {
            io::write_to(file, &CHECKPOINT, &header, fill)
        });
        self.fault = written.err().map(FileFault::from);
        if let (Some(fault), None) = (&self.fault, self.written) {
            return Err(self.checkpoint.fault(fault.clone()));
        }
        (self.searches, self.written) = (0, Some(Instant::now()));
        Ok(())
    }

    /// Why the last one could not be written, if it could not.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.as_ref().map(ToString::to_string)
    }
}
