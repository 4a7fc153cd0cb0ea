//! The families of the guide, which are written with public items alone: against densities and integrals from first principles.

use crate::poisson::{Poisson, PoissonMixture};
use crate::von_mises_fisher::{
    VonMisesFisher, VonMisesFisherMixture, bessel, concentration, normalise,
};
use coremix::data::{Centres, Frame};
use coremix::e_step::{EStep, Search};
use coremix::m_step::{MStep, Moments, SecondMoments, Started};
use coremix::prelude::*;
use coremix::selection::{Criterion, Sweep};
use coremix::stage::{Rng, Stage};
use coremix::{Float, testing};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};
use std::f64::consts::{PI, TAU};

/// Counts of two kinds, with weights.
fn counts(n: usize) -> (Array2<f64>, Array1<f64>) {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((n, 3), |(i, j)| {
        let rate = if i % 2 == j % 2 { 9.0 } else { 1.5 };
        (rate + 1.5 * rng.normal()).max(0.0).round()
    });
    (x, (0..n).map(|i| (i % 4) as f64 / 2.0).collect())
}

/// Rows of length 1 about `about` axes, with weights.
fn directions(n: usize, d: usize, about: usize, noise: f64) -> (Array2<f64>, Array1<f64>) {
    let mut rng = Rng::from_seed(3);
    let mut x = Array2::from_shape_fn((n, d), |(i, j)| {
        f64::from(u8::from(i % about == j)) + noise * rng.normal()
    });
    for mut row in x.axis_iter_mut(Axis(0)) {
        normalise(row.as_slice_mut().unwrap());
    }
    (x, (0..n).map(|i| (1 + i % 3) as f64).collect())
}

/// One step of naive EM from these log-joints (n, k): the log-likelihood, the proportions, and the mean rows (k, d).
fn naive_step(
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
fn near(a: f64, b: f64, relative: f64) {
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
}

/// The integral over the sphere of exp(kappa (cos - 1)), in logarithms, and the mean of 1 - cos under it: by Simpson's rule over the
/// angle to the mean direction.
fn integrals(d: usize, kappa: f64) -> (f64, f64) {
    const NODES: usize = 40_000;
    let widest = (20.0 + 2.0 * (d as f64).sqrt()) / kappa.sqrt();
    let step = widest.min(PI) / NODES as f64;
    // 1 - cos, and the logarithm of what there is at the angle.
    let at = |i: usize| {
        let angle = i as f64 * step;
        let off = 2.0 * (angle / 2.0).sin().powi(2);
        (
            off,
            (d - 2) as f64 * angle.sin().abs().max(1e-300).ln() - kappa * off,
        )
    };
    let largest = (0..=NODES).map(|i| at(i).1).fold(f64::MIN, f64::max);
    let (mut sum, mut falls) = (0.0, 0.0);
    for i in 0..=NODES {
        let simpson = [1.0, 4.0, 2.0][if i == 0 || i == NODES { 0 } else { 2 - i % 2 }];
        let (off, log) = at(i);
        let part = simpson * (log - largest).exp();
        (sum, falls) = (sum + part, falls + off * part);
    }
    // The surface of the sphere of rows at one angle: 2 pi^((d - 1) / 2) / Gamma((d - 1) / 2).
    let half = (d - 1) as f64 / 2.0;
    let surface = 2f64.ln() + half * PI.ln() - special::Gamma::ln_gamma(half).0;
    (surface + largest + (sum * step / 3.0).ln(), falls / sum)
}

#[test]
fn densities_on_the_sphere_integrate_to_one() {
    for d in [2, 3, 4, 7, 50, 201, 300, 2000] {
        let nu = d as f64 / 2.0 - 1.0;
        for kappa in [1e-6, 1e-3, 0.5, 3.0, 30.0, 400.0, 5e3, 1e5, 1e7, 1e10] {
            let ((log, fall), (integral, expected)) = (bessel(nu, kappa), integrals(d, kappa));
            let constant = nu * kappa.ln() - (nu + 1.0) * TAU.ln() - log;
            assert!(
                (constant + integral).abs() < 1e-8,
                "{d} {kappa}: {}",
                constant + integral
            );
            near(fall, expected, 1e-5);
            assert!(
                (fall - expected).abs() < 1e-9,
                "{d} {kappa}: {fall} {expected}"
            );
            // The slope of 1 - A is what tells kappa.
            near(concentration(d as f64, fall), kappa, 1e-5);
        }
        assert_eq!(concentration(d as f64, 0.0), 1e10);
        assert_eq!(concentration(d as f64, 1.0), 1e-6);
        assert_eq!(concentration(d as f64, 1.1), 1e-6);
    }
}

#[test]
fn von_mises_fisher_components_are_those_of_naive_em() {
    for (d, about, noise) in [(2, 2, 0.3), (3, 2, 0.5), (40, 3, 0.1)] {
        let (x, w) = directions(180, d, about, noise);
        let data = Dense::weighted(&x, &w).unwrap();
        testing::family(&VonMisesFisher, &data, about).unwrap();
        let builder = algorithms::gmm(about).m_step(VonMisesFisher).tolerance(0.0);
        let model = builder.max_iterations(500).fit(&data).unwrap().model;
        let (means, shares, kappas) = (model.means(), model.proportions(), &model.kappas);
        let integrals: Vec<_> = kappas.iter().map(|kappa| integrals(d, *kappa)).collect();
        let log_joint = |row: ArrayView1<'_, f64>, c: usize| {
            shares[c].ln() + kappas[c] * (row.dot(&means.row(c)) - 1.0) - integrals[c].0
        };
        let (likelihood, proportions, mean_rows) = naive_step(&x, &w, log_joint, about);
        near(model.log_likelihood(&data).unwrap(), likelihood, 1e-9);
        for c in 0..about {
            near(shares[c], proportions[c], 1e-6);
            let length = mean_rows.row(c).dot(&mean_rows.row(c)).sqrt();
            near(1.0 - integrals[c].1, length, 1e-6);
            let cosine = mean_rows.row(c).dot(&means.row(c)) / length;
            assert!((1.0 - cosine).abs() < 1e-9, "{cosine}");
            // All variances together: 1 - |mean|^2.
            near(model.variances().row(c).sum(), 1.0 - length * length, 1e-6);
        }
    }
}

#[test]
fn directions_that_coincide_or_have_no_mean() {
    let (x, _) = directions(40, 3, 2, 0.0);
    for family in 1..=2 {
        let data = Dense::new(&x).unwrap();
        testing::family(&VonMisesFisher, &data, family).unwrap();
        let single = x.mapv(|x| x as f32);
        testing::family(&VonMisesFisher, &Dense::new(&single).unwrap(), family).unwrap();
    }
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::gmm(2)
        .m_step(VonMisesFisher)
        .restarts(3)
        .fit(&data);
    assert_eq!(fit.unwrap().model.kappas, [1e10; 2]);
    // Opposite rows: their mean is 0.
    let x = array![[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];
    let data = Dense::new(&x).unwrap();
    let model = algorithms::gmm(1)
        .m_step(VonMisesFisher)
        .fit(&data)
        .unwrap()
        .model;
    assert_eq!(model.kappas, [1e-6]);
    near(model.log_likelihood(&data).unwrap(), -4.0 * TAU.ln(), 1e-5);
}

/// Integer weights are copies, coresets and narrow searches work, models are files, and a sweep finds how many there are.
#[test]
fn own_families_have_what_the_others_have() {
    let (x, w) = directions(200, 4, 3, 0.15);
    let data = Dense::weighted(&x, &w).unwrap();
    let copies: Vec<usize> = (0..200).flat_map(|i| vec![i; 1 + i % 3]).collect();
    let copied = x.select(Axis(0), &copies);
    let builder = || {
        let seeds = Given::new(x.slice(ndarray::s![..3, ..]));
        algorithms::gmm(3).seeder(seeds).m_step(VonMisesFisher)
    };
    let model = builder().fit(&data).unwrap().model;
    let of_copies = builder().fit(&Dense::new(&copied).unwrap()).unwrap().model;
    for (a, b) in model.kappas.iter().zip(&of_copies.kappas) {
        near(*a, *b, 1e-9);
    }

    let found = algorithms::vc_gmm(3, 100, 2, 3)
        .m_step(VonMisesFisher)
        .restarts(3)
        .fit(&data);
    let found = found.unwrap();
    assert!(found.coreset.is_some());
    let labels = found.model.predict(&data).unwrap();
    let truth: Array1<u32> = (0..200).map(|i| i % 3).collect();
    assert!(metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap() > 0.95);

    let bytes = model.to_bytes(&[("rows", "directions")]).unwrap();
    assert_eq!(
        VonMisesFisherMixture::<f64>::from_bytes(&bytes).unwrap(),
        model
    );
    let wrong = PoissonMixture::<f64>::from_bytes(&bytes).unwrap_err();
    assert!(matches!(wrong, Error::Model { .. }), "{wrong}");
    let warm = builder().start_from(&model).fit(&data).unwrap();
    assert_eq!(warm.report.evaluations.seeding, 0);

    let run = |k| {
        algorithms::gmm(k)
            .m_step(VonMisesFisher)
            .restarts(3)
            .build()
    };
    let sweep = Sweep::new(1..=5).run(&data, run).unwrap();
    for criterion in [Criterion::Bic, Criterion::HeldOut] {
        assert_eq!(sweep.best(criterion).unwrap().clusters, 3, "{criterion}");
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
    let below = Dense::owned(-&x).unwrap();
    refused(testing::family(&Poisson, &below, 2), "rows are counts");
    refused(
        testing::family(&VonMisesFisher, &data, 2),
        "divide every row",
    );
    let one = Dense::owned(Array2::<f64>::ones((9, 1))).unwrap();
    refused(
        testing::family(&VonMisesFisher, &one, 1),
        "2 columns or more",
    );
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    refused(
        testing::family(&Poisson, &sketch, 2),
        "other coordinates than the columns",
    );
    let far = Dense::owned(x.mapv(|x| x as f32 * 1e30)).unwrap();
    refused(testing::family(&Poisson, &far, 2), "too far from 0");
    let fast = algorithms::fast(2).m_step(Poisson).fit(&data).map(|_| ());
    refused(fast, "take gmm, vc-gmm or another E-step");
    let own = algorithms::k_means(2).e_step(Bounds).m_step(Poisson);
    refused(
        own.fit(&data).map(|_| ()),
        "one variance for all components",
    );
}
