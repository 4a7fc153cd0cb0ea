//! Costs of families from outside: one that says its costs are squared distances has all that the library's own has.

use crate::common::{blobs, seeds};
use coremix::costs::Cost;
use coremix::data::{Centres, Data, Frame, Rows};
use coremix::families::GaussianMixture;
use coremix::m_step::{MStep, Moments, Started};
use coremix::prelude::*;
use coremix::stage::{Block, Likelihood, LogJoint, Stage};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

const SHARED: Gaussian = Gaussian::new(Covariance::TiedSpherical);

#[derive(Clone, Copy, Debug)]
struct Family;

impl Stage for Family {}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Model(GaussianMixture<f64>);

impl Mixture<f64> for Model {
    fn cost(&self) -> Cost<'_, f64> {
        Cost::Squared(self.centres())
    }
    fn centres(&self) -> &Centres<f64> {
        Mixture::<f64>::centres(&self.0)
    }
    fn frame(&self) -> &Frame<f64> {
        Mixture::<f64>::frame(&self.0)
    }
    fn log_joint(&self) -> LogJoint {
        Mixture::<f64>::log_joint(&self.0)
    }
    fn free_centres(&mut self) -> Option<(&mut Centres<f64>, &mut Frame<f64>)> {
        self.0.free_centres()
    }
    fn variances(&self) -> Array2<f64> {
        Mixture::<f64>::variances(&self.0)
    }
}

impl MStep<f64> for Family {
    type Model = Model;

    fn start(
        &self,
        seeds: Centres<f64>,
        frame: Frame<f64>,
        data: &dyn Data<f64>,
        before: Option<&Model>,
    ) -> Result<Started<Model>> {
        let started = SHARED.start(seeds, frame, data, before.map(|before| &before.0))?;
        Ok(Started {
            model: Model(started.model),
            goes_on: started.goes_on,
        })
    }
    fn calibrate(&self, model: &mut Model, first: &Likelihood) {
        MStep::<f64>::calibrate(&SHARED, &mut model.0, first);
    }
    fn accumulate(&self, rows: &Rows<f64>, block: &Block<f64>, model: &Model, sums: &mut Moments) {
        SHARED.accumulate(rows, block, &model.0, sums);
    }
    fn update(
        &self,
        sums: Moments,
        model: &mut Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        MStep::<f64>::update(&SHARED, sums, &mut model.0, restricted, cancel)
    }
}

#[test]
fn squared_distances_have_bounds_phases_and_products() {
    let x: Array2<f64> = blobs(900, 3, 6, 1);
    let (data, start) = (Dense::new(&x).unwrap(), seeds(&x, 6, 1));
    let builders = || {
        [
            algorithms::fast(6),
            algorithms::k_means(6),
            algorithms::gmm(6),
            algorithms::lazy_k_means(6, 0.1),
            algorithms::k_means(6).e_step(Bounded::default()),
        ]
    };
    for (own, known) in builders().into_iter().zip(builders()) {
        let own = own
            .seeder(Given::new(start.view()))
            .m_step(Family)
            .fit(&data)
            .unwrap();
        let known = known.seeder(Given::new(start.view())).fit(&data).unwrap();
        assert_eq!(own.report.free_energies, known.report.free_energies);
        assert_eq!(
            own.model.predict(&data).unwrap(),
            known.model.predict(&data).unwrap()
        );
        assert_eq!(
            own.model.score(&data).unwrap(),
            known.model.score(&data).unwrap()
        );
    }
}

#[test]
fn an_e_step_and_phases_together_are_an_error() {
    let error = |builder: coremix::Builder<f64>| builder.build().map(drop).unwrap_err().to_string();
    let phases = |_| vec![Phase::new(Exhaustive::nearest())];
    let both = algorithms::k_means(3)
        .e_step(Exhaustive::all())
        .phases(phases);
    let other = algorithms::k_means(3)
        .phases(phases)
        .e_step(Exhaustive::all());
    for builder in [both, other] {
        let error = error(builder);
        assert!(
            error.contains("e_step") && error.contains("phases"),
            "{error}"
        );
    }
    // One of them replaces that of a named algorithm.
    algorithms::gmm::<f64>(3).phases(phases).build().unwrap();
    algorithms::fast::<f64>(3)
        .e_step(Exhaustive::all())
        .build()
        .unwrap();
}
