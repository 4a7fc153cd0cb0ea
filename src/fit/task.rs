//! What a fit needs, without the types of its stages.

use super::phase::Outline;
use crate::cancel::Cancel;
use crate::coreset::Coreset;
use crate::data::{Centres, Data, Frame, Rows};
use crate::em::{Joint, StopRule};
use crate::error::Result;
use crate::seed::Seeder;

/// What a fit needs, without the types of its stages.
pub(crate) struct Run<'a, R: Rows> {
    pub(crate) data: &'a dyn Data<Rows = R>,
    pub(crate) coreset: &'a dyn Coreset<R>,
    pub(crate) seeder: &'a dyn Seeder<R>,
    /// The stages with a model at the seeds.
    pub(crate) start: &'a Start<'a, R>,
    pub(crate) outlines: Vec<Outline>,
    pub(crate) clusters: usize,
    pub(crate) settings: &'a Settings,
    pub(crate) names: Names,
}

type Start<'a, R> = dyn Fn(Centres<<R as Rows>::Float>, Frame<<R as Rows>::Float>) -> Result<Box<dyn Joint<R> + 'a>>
    + 'a;

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
    pub(crate) rule: StopRule,
    pub(crate) restarts: usize,
    pub(crate) seed: u64,
}
