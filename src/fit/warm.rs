//! Starting from a model, in place of seeds.

use crate::base::error::{Error, Result, require, same_columns, same_length};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, Data, Frame, View};
use crate::em::{AnyFamily, AnyModel};
use crate::families::saved::Save;
use crate::io::{Contents, FileFault, MODEL, ModelInfo, hash_of};
use crate::m_step::Started;
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use crate::seed::{Given, Seeder};
use std::sync::Arc;

/// A model to start from, as the bytes of a file: whatever its family, it is checked when it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WarmStart(Result<Arc<[u8]>>);

impl WarmStart {
    pub(crate) fn new(model: &impl Save) -> Self {
        Self(model.to_bytes(&[]).map(Arc::from))
    }

    /// Whether the model could be copied.
    pub(super) fn check(&self) -> Result<()> {
        self.0.as_ref().map(|_| ()).map_err(Error::clone)
    }

    pub(super) fn fingerprint(&self) -> String {
        let hash = |bytes: &Arc<[u8]>| hash_of(bytes.iter().map(|byte| f64::from(*byte)));
        self.0.as_ref().map_or(String::new(), hash)
    }

    /// The model of a fit that begins.
    pub(super) fn model<F: Float>(
        &self,
        family: &dyn AnyFamily<F>,
        k: usize,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Started<AnyModel<F>>> {
        let bytes = self.0.as_ref().map_err(Error::clone)?;
        let model = loaded(family, bytes).map_err(|fault| Error::Model {
            path: "model to start from".to_string(),
            fault,
        })?;
        let seeds = seeds_at(&*model, k, &frame, data)?;
        let started = model.fitted().start(seeds, frame.clone(), data)?;
        if started.goes_on {
            // Variances of rows much wider than these leave the range of numbers, and so would the free energy.
            let ratio = model.frame().unit() / frame.unit();
            let LogJoint { gamma, beta, .. } = started.model.log_joint();
            let numbers = (ratio * ratio).is_finite() && gamma.is_finite() && beta > 0.0;
            let value = format!("a model whose unit is {ratio:.1e} times that of the data");
            let rule =
                "its variances over- or underflow: start from its means (`Given`), or from seeds";
            require(numbers, "start_from", value, rule)?;
        }
        Ok(started)
    }
}

/// The model of bytes that are whole: if it is not one of this family, it is of another one.
fn loaded<F: Float>(
    family: &dyn AnyFamily<F>,
    bytes: &[u8],
) -> std::result::Result<AnyModel<F>, FileFault> {
    let contents = Contents::of(&MODEL, bytes)?;
    let ModelInfo {
        number,
        family: found,
        ..
    } = ModelInfo::parse(contents.version, contents.header)?;
    if number != F::NAME {
        return Err(FileFault::Number {
            expected: F::NAME,
            found: number,
        });
    }
    let expected = family.name_of_model();
    let model = family.read(contents.values);
    model.map_err(|_| FileFault::Family { expected, found })
}

/// The means of a model as seeds: exactly its centres where it is in the same coordinates.
fn seeds_at<F: Float>(
    model: &dyn Mixture<F>,
    k: usize,
    frame: &Frame<F>,
    data: &dyn Data<F>,
) -> Result<Centres<F>> {
    let means = model.means();
    same_length("means of the model to start from", k, means.nrows())?;
    same_columns("the model to start from", frame.dim(), means.ncols())?;
    // Checks that no mean is too far from the rows.
    let given = Given::new(means.view());
    given.check(k)?;
    let seeds = given.seed(View::new(data, frame), k, &mut Rng::from_seed(0))?;
    Ok(if model.frame() == frame {
        model.centres().clone()
    } else {
        seeds.centres
    })
}
