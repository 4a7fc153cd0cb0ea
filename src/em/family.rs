//! A family and its model as a fit sees them, whatever their types: so a fit is compiled once for each number type.
//!
//! A fit asks them once per block of rows at most, so a virtual call costs nothing.

use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::stage;
use crate::data::{Centres, Data, Frame, Rows};
use crate::io::{self, FileFault};
use crate::m_step::{MStep, Moments, Needs, Started};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A family, as an [`MStep`] is one: it makes models.
pub(crate) trait AnyFamily<F: Float>: fmt::Debug + Send + Sync {
    fn needs(&self) -> Needs;
    fn name(&self) -> &'static str;
    fn name_of_model(&self) -> &'static str;
    fn at_seeds(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Started<AnyModel<F>>>;
    /// A model of these bytes, which are [saved](SavedModel) ones.
    fn read(&self, bytes: &[u8]) -> std::result::Result<AnyModel<F>, FileFault>;
}

impl<F: Float, M: MStep<F>> AnyFamily<F> for Arc<M> {
    fn needs(&self) -> Needs {
        (**self).needs()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn name_of_model(&self) -> &'static str {
        stage::name::<M::Model>()
    }

    fn at_seeds(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Started<AnyModel<F>>> {
        let started = (**self).start(seeds, frame, data, None)?;
        Ok(started.map(|model| of_family(self, model)))
    }

    fn read(&self, bytes: &[u8]) -> std::result::Result<AnyModel<F>, FileFault> {
        io::only("model", bytes).map(|model| of_family(self, model))
    }
}

/// A model with its family: the methods of [`MStep`] without the types.
pub(crate) trait Fitted<F: Float>: Send + Sync {
    fn model(&self) -> &dyn Mixture<F>;
    fn model_mut(&mut self) -> &mut dyn Mixture<F>;
    fn into_model(self: Box<Self>) -> Box<dyn Any>;
    fn copy(&self) -> AnyModel<F>;
    fn bytes(&self) -> std::io::Result<Vec<u8>>;
    fn needs(&self) -> Needs;
    fn name(&self) -> &'static str;
    /// Another model, of a fit that goes on from this one.
    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Started<AnyModel<F>>>;
    fn calibrate(&mut self, first: &Likelihood);
    fn statistics(&self) -> Moments;
    fn accumulate(&self, rows: &Rows<F>, block: &Block<F>, statistics: &mut Moments);
    fn update(
        &mut self,
        statistics: Moments,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()>;
    /// Whether components [merge](MStep::merges).
    fn merges(&self) -> bool;
    fn prepare_merges(&mut self);
    /// How many components it emptied.
    fn merge(&self, sums: &mut Moments, cancel: Option<&Cancel>) -> Result<usize>;
}

struct OfFamily<M, Model> {
    family: Arc<M>,
    model: Model,
}

fn of_family<F: Float, M: MStep<F>>(family: &Arc<M>, model: M::Model) -> AnyModel<F> {
    let family = Arc::clone(family);
    AnyModel(Box::new(OfFamily { family, model }))
}

impl<F: Float, M: MStep<F>> Fitted<F> for OfFamily<M, M::Model> {
    fn model(&self) -> &dyn Mixture<F> {
        &self.model
    }

    fn model_mut(&mut self) -> &mut dyn Mixture<F> {
        &mut self.model
    }

    fn into_model(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.model)
    }

    fn copy(&self) -> AnyModel<F> {
        of_family(&self.family, self.model.clone())
    }

    fn bytes(&self) -> std::io::Result<Vec<u8>> {
        io::to_vec(&self.model)
    }

    fn needs(&self) -> Needs {
        self.family.needs()
    }

    fn name(&self) -> &'static str {
        self.family.name()
    }

    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Started<AnyModel<F>>> {
        let started = self.family.start(seeds, frame, data, Some(&self.model))?;
        Ok(started.map(|model| of_family(&self.family, model)))
    }

    fn calibrate(&mut self, first: &Likelihood) {
        self.family.calibrate(&mut self.model, first);
    }

    fn statistics(&self) -> Moments {
        self.family.statistics(&self.model)
    }

    fn accumulate(&self, rows: &Rows<F>, block: &Block<F>, statistics: &mut Moments) {
        self.family.accumulate(rows, block, &self.model, statistics);
    }

    fn update(
        &mut self,
        statistics: Moments,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let model = &mut self.model;
        self.family.update(statistics, model, restricted, cancel)
    }

    fn merges(&self) -> bool {
        self.family.merges()
    }

    fn prepare_merges(&mut self) {
        self.family.prepare_merges(&mut self.model);
    }

    fn merge(&self, sums: &mut Moments, cancel: Option<&Cancel>) -> Result<usize> {
        self.family.merge(sums, &self.model, cancel)
    }
}

/// A model of any family, on its way through a fit. It is a [`Mixture`] by reference.
pub(crate) struct AnyModel<F: Float>(Box<dyn Fitted<F>>);

impl<F: Float> AnyModel<F> {
    pub(crate) fn fitted(&self) -> &dyn Fitted<F> {
        &*self.0
    }

    pub(crate) fn fitted_mut(&mut self) -> &mut dyn Fitted<F> {
        &mut *self.0
    }

    /// The model, by the type that its family gives it.
    pub(crate) fn into_typed<Model: Mixture<F>>(self) -> Model {
        let typed = self.0.into_model().downcast::<Model>();
        *typed.expect("a family has one type of models")
    }
}

impl<F: Float> Deref for AnyModel<F> {
    type Target = dyn Mixture<F>;

    fn deref(&self) -> &Self::Target {
        self.0.model()
    }
}

impl<F: Float> DerefMut for AnyModel<F> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.model_mut()
    }
}

impl<F: Float> Clone for AnyModel<F> {
    fn clone(&self) -> Self {
        self.0.copy()
    }
}

/// A model in a checkpoint: its bytes, which its family reads.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Deserialize))]
pub(crate) struct SavedModel(pub(crate) Vec<u8>);

#[cfg(feature = "files")]
impl<F: Float> serde::Serialize for AnyModel<F> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let bytes = self.0.bytes().map_err(serde::ser::Error::custom)?;
        to.serialize_bytes(&bytes)
    }
}
