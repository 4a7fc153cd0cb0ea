//! All that a model says of itself, in one type for all families.

use super::Mixture;
use super::posterior::LogJoint;
use crate::base::float::Float;
use crate::costs::Cost;
use crate::rows::{Centres, Frame, Rows};

type Densities<'m, F> = dyn Fn(&Rows<F>) -> Option<Vec<f64>> + Sync + 'm;

/// The facts about a model that its answers are computed from: so the code of answers is compiled once for each number type,
/// and models of known and of unknown families ask it alike.
pub(crate) struct Facts<'m, F: Float> {
    pub(super) components: usize,
    pub(super) cost: Cost<'m, F>,
    pub(super) centres: &'m Centres<F>,
    pub(super) frame: &'m Frame<F>,
    pub(super) log_joint: LogJoint,
    own_log_densities: Box<Densities<'m, F>>,
}

impl<'m, F: Float> Facts<'m, F> {
    pub(crate) fn of<M: Mixture<F> + ?Sized>(model: &'m M) -> Self {
        Self {
            components: model.components(),
            cost: model.cost(),
            centres: model.centres(),
            frame: model.frame(),
            log_joint: model.log_joint(),
            own_log_densities: Box::new(move |rows| model.own_log_densities(rows)),
        }
    }

    pub(super) fn own_log_densities(&self, rows: &Rows<F>) -> Option<Vec<f64>> {
        (self.own_log_densities)(rows)
    }
}
