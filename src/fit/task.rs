//! What a fit needs, without the types of its stages.

use super::fingerprint::compare;
use super::phase::Outline;
use super::warm::WarmStart;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::coreset::Coreset;
use crate::data::{Centres, Data, Frame};
use crate::em::{Joint, StopRule, Watch};
use crate::fit::checkpoint::Checkpoint;
use crate::io::{CHECKPOINT, FileFault, Sections};
use crate::seed::Seeder;
use std::any::Any;

/// What a fit needs, without the types of its stages.
pub(crate) struct Run<'a, F: Float> {
    pub(crate) data: &'a dyn Data<F>,
    pub(crate) coreset: &'a dyn Coreset<F>,
    pub(crate) seeder: &'a dyn Seeder<F>,
    /// The stages with a model at the seeds.
    pub(crate) start: &'a Start<'a, F>,
    /// The same with the model to start from, if there is one.
    pub(crate) warm: Option<&'a Warm<'a, F>>,
    /// The same with a model from a checkpoint.
    pub(crate) load: &'a Load<'a, F>,
    /// A model as bytes, for a checkpoint.
    pub(crate) save: &'a Save<'a>,
    pub(crate) outlines: Vec<Outline>,
    pub(crate) clusters: usize,
    pub(crate) settings: &'a Settings,
    pub(crate) names: Names,
}

type Start<'a, F> = dyn Fn(Centres<F>, Frame<F>) -> Result<Box<dyn Joint<F> + 'a>> + Sync + 'a;

/// Whether variances are known as well.
type Warm<'a, F> = dyn Fn(Frame<F>) -> Result<(Box<dyn Joint<F> + 'a>, bool)> + Sync + 'a;

type Load<'a, F> =
    dyn Fn(&[u8]) -> std::result::Result<Box<dyn Joint<F> + 'a>, FileFault> + Sync + 'a;

type Save<'a> = dyn Fn(&dyn Any) -> std::result::Result<Vec<u8>, FileFault> + Sync + 'a;

impl<F: Float> Run<'_, F> {
    /// The error of the checkpoint that the fit goes on from.
    pub(super) fn fault(&self, fault: FileFault) -> Error {
        match &self.settings.checkpoint {
            Some(checkpoint) => checkpoint.fault(fault),
            None => fault.of_bytes(),
        }
    }

    /// The checkpoint to go on from, if there is one.
    pub(super) fn resumed(&self, watch: &Watch<'_>) -> Result<Option<Sections<'static>>> {
        let (Some(checkpoint), Some(header)) = (&self.settings.checkpoint, watch.header()) else {
            return Ok(None);
        };
        let Some(bytes) = checkpoint.read()? else {
            return Ok(None);
        };
        let read = || {
            let (_, found, sections) = Sections::of_file(&CHECKPOINT, bytes.into())?;
            compare(header, &found)?;
            Ok(sections)
        };
        read().map(Some).map_err(|fault| checkpoint.fault(fault))
    }
}

/// The names of the stages, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) coreset: &'static str,
    pub(crate) seeder: &'static str,
}

/// What is not a stage.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) cancel: Option<Cancel>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) warm: Option<WarmStart>,
    pub(crate) rule: StopRule,
    pub(crate) restarts: usize,
    pub(crate) seed: u64,
}
