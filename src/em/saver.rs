//! Checkpoints while a fit runs: when they are due, and what becomes of failures.

use crate::base::error::{Error, Result};
use crate::fit::checkpoint::Checkpoint;
use crate::fit::fingerprint::compare;
use crate::io::{self, CHECKPOINT, FileFault, Sections, Stream};
use std::time::Instant;

/// Writes the checkpoints of a fit.
pub(crate) struct Saver {
    checkpoint: Checkpoint,
    /// What the fit is: a checkpoint with another header is not of it.
    header: String,
    /// Sections of all that does not change while a phase runs.
    around: Vec<u8>,
    /// Searches since the last checkpoint, and when that was written: not yet, before the first one.
    searches: usize,
    written: Option<Instant>,
    /// Why the last one could not be written.
    fault: Option<FileFault>,
}

impl Saver {
    /// Fails where no file can be written.
    pub(crate) fn new(checkpoint: &Checkpoint, header: String) -> Result<Self> {
        let prepared = io::prepare(checkpoint.path());
        prepared.map_err(|error| checkpoint.fault(error.into()))?;
        Ok(Self {
            checkpoint: checkpoint.clone(),
            header,
            around: Vec::new(),
            searches: 0,
            written: None,
            fault: None,
        })
    }

    /// The checkpoint to go on from, if there is one.
    pub(crate) fn resumed(&self) -> Result<Option<Sections<'static>>> {
        let Some(bytes) = self.checkpoint.read()? else {
            return Ok(None);
        };
        let read = || {
            let (_, found, sections) = Sections::of_file(&CHECKPOINT, bytes.into())?;
            compare(&self.header, &found)?;
            Ok(sections)
        };
        read().map(Some).map_err(|fault| self.error(fault))
    }

    /// A phase begins: all that does not change while it runs.
    pub(crate) fn begin(&mut self, fill: impl FnOnce(&mut Stream<'_>)) {
        self.around = Stream::collect(fill);
    }

    /// Another search begins. Whether a checkpoint is due before it.
    pub(super) fn is_due(&mut self) -> bool {
        let every = self.checkpoint.iterations;
        self.searches += 1;
        let late = |written: Instant| written.elapsed() >= self.checkpoint.every;
        self.written.is_none_or(late) || every.is_some_and(|every| self.searches >= every)
    }

    /// Writes a checkpoint in the middle of a phase.
    pub(super) fn write_phase(&mut self, fill: &dyn Fn(&mut Stream<'_>)) -> Result<()> {
        let around = std::mem::take(&mut self.around);
        let written = self.write(&|out| {
            out.bytes(&around);
            fill(out);
        });
        self.around = around;
        written
    }

    /// Writes a checkpoint. The first one of a fit must succeed.
    pub(crate) fn write(&mut self, fill: &dyn Fn(&mut Stream<'_>)) -> Result<()> {
        let path = self.checkpoint.path();
        self.fault = io::write(&CHECKPOINT, path, &self.header, fill).err();
        if let (Some(fault), None) = (&self.fault, self.written) {
            return Err(self.checkpoint.fault(fault.clone()));
        }
        (self.searches, self.written) = (0, Some(Instant::now()));
        Ok(())
    }

    /// The error of the file.
    pub(crate) fn error(&self, fault: FileFault) -> Error {
        self.checkpoint.fault(fault)
    }

    /// Why the last one could not be written, if it could not.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.as_ref().map(ToString::to_string)
    }
}
