//! [`Gaussian`], with lies.

use coremix::costs::{Cost, Factor, OwnCost, Scaled};
use coremix::data::{Centres, Data, Frame, Rows};
use coremix::families::GaussianMixture;
use coremix::m_step::{MStep, Moments, Needs, Started};
use coremix::ndarray::{Array1, Array2};
use coremix::prelude::*;
use coremix::stage::{Block, Likelihood, LogJoint, Stage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const SHARED: Gaussian = Gaussian::new(Covariance::TiedSpherical);

type Inner = Rows<f64>;

/// The lies, each with a number that stands where another should.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lies {
    /// Costs of a row of a block under one of the components.
    pub(crate) cost: Option<(usize, f64)>,
    /// This many costs more or fewer for some components.
    pub(crate) costs: isize,
    /// Squared distances to the first centres, with a wrong factor and addend.
    pub(crate) factor: Option<Factor>,
    pub(crate) log_joint: Option<(usize, f64)>,
    pub(crate) prior_terms: f64,
    /// This many components more or fewer, from the first M-step on or from the beginning.
    pub(crate) components: isize,
    pub(crate) only_later: bool,
    /// A mean after an M-step.
    pub(crate) mean: Option<(usize, f64)>,
    /// Rows and columns of the variances.
    pub(crate) variances: Option<(usize, usize)>,
    pub(crate) proportions: Option<f64>,
    pub(crate) restricted: usize,
    pub(crate) searches_first: bool,
    pub(crate) refuses: bool,
    /// Means go on past the best ones after an M-step.
    pub(crate) overshoots: bool,
}

/// A family with these lies.
#[derive(Clone, Debug)]
pub(crate) struct LyingFamily(Arc<Lies>);

impl From<Lies> for LyingFamily {
    fn from(lies: Lies) -> Self {
        Self(Arc::new(lies))
    }
}

impl Stage for LyingFamily {}

/// A number that is off, and never below 0.
fn off(number: usize, by: isize) -> usize {
    number.saturating_add_signed(by)
}

/// The model of such a family.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LyingModel {
    inner: GaussianMixture<f64>,
    #[serde(skip)]
    lies: Arc<Lies>,
    scaled: Option<Scaled<f64>>,
    later: bool,
}

impl OwnCost<f64> for LyingModel {
    fn components(&self) -> usize {
        let k = self.inner.components();
        match self.later || !self.lies.only_later {
            true => off(k, self.lies.components),
            false => k,
        }
    }

    fn some(&self, rows: &Inner, i: usize, ids: &[u32], out: &mut Vec<f64>) {
        // The inner model would not know others.
        let k = self.inner.components() as u32;
        let known: Vec<u32> = ids.iter().map(|c| c % k).collect();
        self.inner.cost().some(rows, i, &known, out);
        match self.lies.cost {
            Some((row, value)) if row == i => out.fill(value),
            _ => {}
        }
        out.resize(off(out.len(), self.lies.costs), 0.5);
    }
}

impl Mixture<f64> for LyingModel {
    fn cost(&self) -> Cost<'_, f64> {
        match &self.scaled {
            Some(scaled) => Cost::Scaled(scaled),
            None => Cost::Own(self),
        }
    }

    fn centres(&self) -> &Centres<f64> {
        Mixture::<f64>::centres(&self.inner)
    }

    fn frame(&self) -> &Frame<f64> {
        Mixture::<f64>::frame(&self.inner)
    }

    fn log_joint(&self) -> LogJoint {
        let mut log_joint = Mixture::<f64>::log_joint(&self.inner);
        match self.lies.log_joint {
            Some((0, value)) => log_joint.alpha = value,
            Some((1, value)) => log_joint.beta = value,
            Some((_, value)) => log_joint.gamma = value,
            None => {}
        }
        log_joint
    }

    fn prior_terms(&self) -> f64 {
        self.lies.prior_terms
    }

    fn proportions(&self) -> Array1<f64> {
        let known = Mixture::<f64>::proportions(&self.inner);
        match self.lies.proportions {
            Some(wrong) => known.mapv(|_| wrong),
            None => known,
        }
    }

    fn variances(&self) -> Array2<f64> {
        match self.lies.variances {
            Some(shape) => Array2::ones(shape),
            None => Mixture::<f64>::variances(&self.inner),
        }
    }
}

impl MStep<f64> for LyingFamily {
    type Model = LyingModel;

    fn start(
        &self,
        seeds: Centres<f64>,
        frame: Frame<f64>,
        data: &dyn Data<f64>,
        _: Option<&LyingModel>,
    ) -> Result<Started<LyingModel>> {
        if self.0.refuses {
            return Err(Error::Empty { what: "patience" });
        }
        let scaled = (self.0.factor).map(|own| Scaled::new(seeds.clone(), |_| own));
        let model = LyingModel {
            inner: SHARED.start(seeds, frame, data, None)?.model,
            scaled,
            lies: self.0.clone(),
            later: false,
        };
        Ok(model.into())
    }

    fn needs(&self) -> Needs {
        Needs {
            searches_first: self.0.searches_first,
            restricted_steps: self.0.restricted,
            ..Needs::default()
        }
    }

    fn calibrate(&self, model: &mut LyingModel, first: &Likelihood) {
        MStep::<f64>::calibrate(&SHARED, &mut model.inner, first);
    }

    fn statistics(&self, model: &LyingModel) -> Moments {
        MStep::<f64>::statistics(&SHARED, &model.inner)
    }

    fn accumulate(&self, rows: &Inner, block: &Block<f64>, model: &LyingModel, sums: &mut Moments) {
        SHARED.accumulate(rows, block, &model.inner, sums);
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut LyingModel,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let before = model.inner.clone();
        MStep::<f64>::update(&SHARED, sums, &mut model.inner, restricted, cancel)?;
        model.later = true;
        if self.0.overshoots && before.means() != model.inner.means() {
            let (old, new) = (before.means(), model.inner.means());
            let past = &new + &((&new - &old) * 3.0);
            model.inner = GaussianMixture::tied_spherical(past.view(), before.variance())?;
        }
        if let Some((c, value)) = self.0.mean {
            let mut means = model.inner.means().to_owned();
            let (k, variance) = (means.nrows(), model.inner.variance());
            means[[c % k, 0]] = value;
            // In another frame, if the family takes these parameters.
            if let Ok(moved) = GaussianMixture::tied_spherical(means.view(), variance) {
                model.inner = moved;
            }
        }
        Ok(())
    }
}
