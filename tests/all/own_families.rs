//! The family of the guide, which is written with public items alone: against densities and integrals from first principles.

use crate::poisson::{Poisson, PoissonMixture};
use coremix::data::{Centres, Frame};
use coremix::e_step::{EStep, Search};
use coremix::m_step::{MStep, Moments, SecondMoments, Started};
use coremix::prelude::*;
use coremix::selection::{Criterion, Sweep};
use coremix::stage::{Rng, Stage};
use coremix::{Float, testing};
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// Counts of two kinds, with weights.
fn counts(n: usize) -> (Array2<f64>, Array1<f64>) {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((n, 3), |(i, j)| {
        let rate = if i % 2 == j % 2 { 9.0 } else { 1.5 };
        (rate + 1.5 * rng.normal()).max(0.0).round()
    });
    (x, (0..n).map(|i| (i % 4) as f64 / 2.0).collect())
}

/// One step of naive EM from these log-joints (n, k): the log-likelihood, the proportions, and the mean rows (k, d).
pub(crate) fn naive_step(
    x: &Array2<f64>,
    w: &Array1<f64>,
    log_joint: impl Fn(ArrayView1<'_, f64>, usize) -> f64,
    k: usize,
) -> (f64, Array1<f64>, Array2<f64>) {
    let (mut likelihood, mut mass) = (0.0, Array1::zeros(k));
    let mut means = Array2::zeros((k, x.ncols()));
    for (row, w) in x.outer_iter().zip(w) {
        let joint: Vec<f64> = (0..k).map(|c| log_joint(row, c).exp()).collect();
        let sum: f64 = joint.iter().sum();
        likelihood += w * sum.ln();
        for (c, joint) in joint.iter().enumerate() {
            mass[c] += w * joint / sum;
            means.row_mut(c).scaled_add(w * joint / sum, &row);
        }
    }
    for (mut mean, mass) in means.outer_iter_mut().zip(&mass) {
        mean /= *mass;
    }
    (likelihood, &mass / w.sum(), means)
}

#[track_caller]
pub(crate) fn near(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * a.abs().max(b.abs()), "{a} {b}");
}

#[test]
fn poisson_components_are_those_of_naive_em() {
    let (x, w) = counts(200);
    let data = Dense::weighted(&x, &w).unwrap();
    testing::family(&Poisson, &data, 2).unwrap();
    let builder = algorithms::gmm(2).m_step(Poisson).tolerance(0.0);
    let model = builder.max_iterations(500).fit(&data).unwrap().model;
    let (rates, shares) = (model.means(), model.proportions());
    let factorial = |y: f64| (1..=y as u64).map(|i| (i as f64).ln()).sum::<f64>();
    let log_joint = |row: ArrayView1<'_, f64>, c: usize| {
        let terms = row.iter().zip(rates.row(c));
        let log = |(y, rate): (&f64, &f64)| y * rate.ln() - rate - factorial(*y);
        shares[c].ln() + terms.map(log).sum::<f64>()
    };
    let (likelihood, proportions, means) = naive_step(&x, &w, log_joint, 2);
    near(model.log_likelihood(&data).unwrap(), likelihood, 1e-12);
    let pairs = rates.iter().chain(&shares);
    for (own, naive) in pairs.zip(means.iter().chain(&proportions)) {
        near(*own, *naive, 1e-7);
    }
    assert_eq!(model.variances(), rates);
}

#[test]
fn counts_that_are_rare_or_none() {
    // A column without counts, one with a single count, and rows far from 0.
    let x = Array2::from_shape_fn((60, 3), |(i, j)| match j {
        0 => 0.0,
        1 => f64::from(u8::from(i == 7)),
        _ => 1e6 * (1 + i % 2) as f64 + i as f64,
    });
    let data = Dense::new(&x).unwrap();
    testing::family(&Poisson, &data, 2).unwrap();
    testing::family(&Poisson, &Dense::new(&x.mapv(|x| x as f32)).unwrap(), 2).unwrap();
    let fit = algorithms::gmm(2).m_step(Poisson).fit(&data).unwrap();
    assert!(fit.model.means().iter().all(|rate| *rate >= 1e-9));
    assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
    // One row is refused as all are, where costs need all columns.
    let mut row = x.row(7).to_vec();
    row[0] = f64::NAN;
    let rows = ndarray::aview1(&row).insert_axis(Axis(0));
    let partial = Dense::with_missing(rows).unwrap();
    let mut one = fit.model.predictor().with_missing();
    let expected = fit.model.predict(&partial).unwrap_err();
    assert_eq!(one.predict(&row).unwrap_err(), expected);
    assert_eq!(one.log_density(&row).unwrap_err(), expected);
}

/// Integer weights are copies, coresets and narrow searches work, models are files, and a sweep finds how many there are.
#[test]
fn own_families_have_what_the_others_have() {
    let mut rng = Rng::from_seed(1);
    let x = Array2::from_shape_fn((200, 4), |(i, j)| {
        // The events of a unit of time: waiting times are exponential.
        let rate = if i % 2 == j % 2 { 9.0 } else { 1.5 };
        let mut time = rng.exponential();
        let mut events = 0.0;
        while time < rate {
            time += rng.exponential();
            events += 1.0;
        }
        events
    });
    let w: Array1<f64> = (0..200).map(|i| (1 + i % 3) as f64).collect();
    let data = Dense::weighted(&x, &w).unwrap();
    let copies: Vec<usize> = (0..200).flat_map(|i| vec![i; 1 + i % 3]).collect();
    let copied = x.select(Axis(0), &copies);
    let builder = || {
        let seeds = Given::new(x.slice(ndarray::s![..2, ..]));
        algorithms::gmm(2).seeder(seeds).m_step(Poisson)
    };
    let model = builder().fit(&data).unwrap().model;
    let of_copies = builder().fit(&Dense::new(&copied).unwrap()).unwrap().model;
    for (a, b) in model.means().iter().zip(&of_copies.means()) {
        near(*a, *b, 1e-9);
    }

    let narrow = algorithms::vc_gmm(2, 100, 2, 2)
        .m_step(Poisson)
        .restarts(3)
        .fit(&data);
    let narrow = narrow.unwrap();
    assert!(narrow.coreset.is_some());
    let labels = narrow.model.predict(&data).unwrap();
    let truth: Array1<u32> = (0..200).map(|i| i % 2).collect();
    assert!(metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap() > 0.95);

    let bytes = model.to_bytes(&[("rows", "counts")]).unwrap();
    assert_eq!(PoissonMixture::<f64>::from_bytes(&bytes).unwrap(), model);
    let wrong = GaussianMixture::<f64>::from_bytes(&bytes).unwrap_err();
    assert!(matches!(wrong, Error::Model { .. }), "{wrong}");
    let warm = builder().start_from(&model).fit(&data).unwrap();
    assert_eq!(warm.report.evaluations.seeding, 0);

    let run = |k| algorithms::gmm(k).m_step(Poisson).restarts(3).build();
    let sweep = Sweep::new(1..=4).run(&data, run).unwrap();
    for criterion in [Criterion::Bic, Criterion::HeldOut] {
        assert_eq!(sweep.best(criterion).unwrap().clusters, 2, "{criterion}");
    }
}

/// A family whose sums are about other numbers of components and columns.
#[derive(Clone, Copy, Debug)]
struct WrongSums(usize, usize);

impl Stage for WrongSums {}

impl MStep<f64> for WrongSums {
    type Model = PoissonMixture<f64>;

    fn start(
        &self,
        seeds: Centres<f64>,
        frame: Frame<f64>,
        data: &dyn Data<f64>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        Poisson.start(seeds, frame, data, before)
    }

    fn statistics(&self, _: &Self::Model) -> Moments {
        Moments::zeros(self.0, self.1, SecondMoments::Total)
    }

    fn update(
        &self,
        moments: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        Poisson.update(moments, model, restricted, cancel)
    }
}

/// An exhaustive search that says it has bounds.
#[derive(Clone, Copy, Debug)]
struct Bounds;

impl Stage for Bounds {}

impl<F: Float> EStep<F> for Bounds {
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        saved: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        Exhaustive::nearest().begin(model, saved, rng)
    }

    fn bounds(&self) -> Option<usize> {
        Some(2)
    }
}

#[test]
fn what_does_not_suit_a_family_is_said() {
    let (x, _) = counts(50);
    let refused = |result: Result<()>, text: &str| {
        let shown = result.expect_err("an error").to_string();
        assert!(shown.contains(text), "{shown}");
    };
    let data = Dense::new(&x).unwrap();
    for wrong in [
        WrongSums(1, 3),
        WrongSums(3, 3),
        WrongSums(2, 2),
        WrongSums(0, 0),
    ] {
        refused(testing::family(&wrong, &data, 2), "sums over");
    }
    let below = Dense::owned(-&x, None).unwrap();
    refused(testing::family(&Poisson, &below, 2), "rows are counts");
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    refused(
        testing::family(&Poisson, &sketch, 2),
        "other coordinates than the columns",
    );
    let far = Dense::owned(x.mapv(|x| x as f32 * 1e30), None).unwrap();
    refused(testing::family(&Poisson, &far, 2), "too far from 0");
    let fast = algorithms::fast(2).m_step(Poisson).fit(&data).map(|_| ());
    refused(fast, "take gmm, vc-gmm or another E-step");
    let own = algorithms::k_means(2).e_step(Bounds).m_step(Poisson);
    refused(
        own.fit(&data).map(|_| ()),
        "one variance for all components",
    );
}
