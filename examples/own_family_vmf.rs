//! A component family of one's own: von Mises-Fisher components, for rows of length 1, such as embeddings compared by cosine.
//!
//! A component has a mean direction mu (|mu| = 1) and a concentration kappa. With nu = d / 2 - 1,
//!
//! p(y | c) = C(kappa) exp(kappa mu.y), C(kappa) = kappa^nu / ((2 pi)^(nu + 1) I_nu(kappa))
//!
//! (Banerjee, Dhillon, Ghosh and Sra 2005, section 2). As mu.y = 1 - |y - mu|^2 / 2, a cost is kappa |y - mu|^2 / 2 less
//! ln C(kappa) + kappa: a squared distance with a factor and an addend, which the library computes fast, and nothing cancels,
//! however close the rows are.
//!
//! With the responsibilities q fixed, let r be the length of the mean row, sum_n w_n q_n y_n / sum_n w_n q_n. F is largest where mu is
//! the direction of that mean, and where 1 - A(kappa) = 1 - r, with A = I_(nu+1) / I_nu = -(ln C)'. Here 1 - r is half the mean
//! squared distance of the rows to mu. ln C(kappa) + kappa mu.y is concave in kappa, so a clamped kappa is best within its limits.

use coremix::costs::{Cost, Factor, Scaled};
use coremix::data::{Centres, Frame};
use coremix::m_step::{Coordinates, MStep, Moments, Needs, SecondMoments, Started};
use coremix::prelude::*;
use coremix::stage::{Likelihood, Rng, Stage};
use coremix::{Float, ModelInfo, testing};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Limits of kappa. Rows that coincide have the upper one: it stands for angles of 1e-5 between rows, which `f32` still resolves.
/// The lower one is as good as uniform on the sphere.
const LIMITS: (f64, f64) = (1e-6, 1e10);

/// Von Mises-Fisher components with a concentration and a mixing proportion each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VonMisesFisher;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "F: Float")]
pub(crate) struct VonMisesFisherMixture<F> {
    /// About the directions.
    cost: Scaled<F>,
    frame: Frame<F>,
    pub(crate) kappas: Vec<f64>,
    proportions: Vec<f64>,
}

impl<F: Float> VonMisesFisherMixture<F> {
    fn new(
        directions: Centres<F>,
        frame: Frame<F>,
        kappas: Vec<f64>,
        proportions: Vec<f64>,
    ) -> Self {
        let nu = directions.dim() as f64 / 2.0 - 1.0;
        // ln C(kappa) + kappa
        let constant = |k: f64| nu * k.ln() - (nu + 1.0) * TAU.ln() - bessel(nu, k).0;
        let cost = Scaled::new(directions, |c| Factor {
            factor: kappas[c] / 2.0,
            per_coordinate: 0.0,
            added: -constant(kappas[c]) - proportions[c].ln(),
        });
        Self {
            cost,
            frame,
            kappas,
            proportions,
        }
    }
}

/// Brings a vector to length 1. Returns its squared distance to what it was; `None` for the zero vector.
pub(crate) fn normalise<F: Float>(vector: &mut [F]) -> Option<f64> {
    let length = vector
        .iter()
        .map(|x| x.to_f64().powi(2))
        .sum::<f64>()
        .sqrt();
    let moved = vector.iter_mut().map(|x| {
        let old = x.to_f64();
        *x = Float::from_f64(old / length);
        (x.to_f64() - old).powi(2)
    });
    (length > 0.0).then(|| moved.sum())
}

/// ln(I_nu(kappa) e^-kappa), and 1 - A = 1 - I_(nu+1)(kappa) / I_nu(kappa), to about 9 digits.
///
/// An order of 100 or more has the uniform expansion for large orders (DLMF 10.41.3). From there the recurrence
/// 1 / A_nu = 2 (nu + 1) / kappa + A_(nu+1) goes down (DLMF 10.29.1), which lessens errors.
pub(crate) fn bessel(nu: f64, kappa: f64) -> (f64, f64) {
    let steps = (100.0 - nu).ceil().max(0.0);
    let expansion = |v: f64| {
        let root = v.hypot(kappa);
        let (p, s) = (v / root, (v / root).powi(2));
        let u1 = p * (3.0 - 5.0 * s) / 24.0;
        let u2 = s * (81.0 + s * (385.0 * s - 462.0)) / 1152.0;
        let u3 = s * (30375.0 + s * (s * (765765.0 - 425425.0 * s) - 369603.0)) * p / 414720.0;
        let series = (u1 + (u2 + u3 / v) / v) / v;
        (
            root,
            v * v / (root + kappa) - v * (v / kappa).asinh() + series.ln_1p(),
        )
    };
    let ((root, log), (next_root, next)) = (expansion(nu + steps), expansion(nu + steps + 1.0));
    let mut fall = -(next - log + (root / next_root).ln() / 2.0).exp_m1();
    let mut log = log - (TAU * root).ln() / 2.0;
    for step in (0..steps as usize).rev() {
        let more = 2.0 * (nu + step as f64 + 1.0) / kappa - fall;
        fall = more / (1.0 + more);
        log += more.ln_1p();
    }
    (log, fall)
}

/// The kappa with 1 - A(kappa) = `fall` in `d` dimensions: Newton's steps from the estimate of Banerjee et al. (2005; Sra 2012),
/// between the bounds that follow from those of Amos (1974) on A.
pub(crate) fn concentration(d: f64, fall: f64) -> f64 {
    let fall = fall.clamp(0.0, 1.0);
    let (r, b) = (1.0 - fall, (d - 1.0) / 2.0);
    let open = fall * (2.0 - fall); // 1 - r^2
    let bound = |c: f64| r * (b + (b * r).hypot(c * open.sqrt())) / open;
    let held = |kappa: f64| {
        kappa
            .clamp(bound(b), bound(b + 1.0))
            .clamp(LIMITS.0, LIMITS.1)
    };
    let mut kappa = held(r * (d - r * r) / open);
    for _ in 0..8 {
        let (_, found) = bessel(d / 2.0 - 1.0, kappa);
        let slope = found * (2.0 - found) - (d - 1.0) * (1.0 - found) / kappa; // A'
        kappa = held(kappa + (found - fall) / slope.max(f64::MIN_POSITIVE));
    }
    kappa
}

impl Stage for VonMisesFisher {}

impl<F: Float> Mixture<F> for VonMisesFisherMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        Cost::Scaled(&self.cost)
    }

    fn centres(&self) -> &Centres<F> {
        self.cost.centres()
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn proportions(&self) -> Array1<f64> {
        self.proportions.clone().into()
    }

    /// The diagonal of the covariance: A / kappa across the direction, A' along it.
    fn variances(&self) -> Array2<f64> {
        let directions = self.cost.centres();
        let d = directions.dim();
        Array2::from_shape_fn((self.kappas.len(), d), |(c, j)| {
            let (_, fall) = bessel(d as f64 / 2.0 - 1.0, self.kappas[c]);
            let across = (1.0 - fall) / self.kappas[c];
            let along = fall * (2.0 - fall) - (d as f64 - 1.0) * across;
            across + directions.row(c)[j].to_f64().powi(2) * (along - across)
        })
    }

    fn free_parameters(&self) -> Option<usize> {
        let (k, d) = (self.kappas.len(), self.cost.centres().dim());
        Some(k * d + k - 1) // d - 1 of a direction, kappa, and all proportions but one
    }
}

impl<F: Float> Save for VonMisesFisherMixture<F> {
    fn info(&self) -> Result<ModelInfo> {
        Ok(ModelInfo::new("VonMisesFisher", self))
    }
}

impl<F: Float> MStep<F> for VonMisesFisher {
    type Model = VonMisesFisherMixture<F>;

    fn needs(&self) -> Needs {
        Needs {
            // Directions are seen from the origin.
            coordinates: Coordinates::Raw,
            searches_first: true,
            ..Needs::default()
        }
    }

    /// Directions of the seeds. Until `calibrate`, costs are squared distances: kappa is 2.
    fn start(
        &self,
        mut seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        _: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let summary = data.summary();
        let squares = summary.mean.iter().map(|mean| mean * mean);
        let squared: f64 = summary
            .variance
            .iter()
            .zip(squares)
            .map(|(v, m)| v + m)
            .sum();
        if data.dim() < 2 || (squared - 1.0).abs() > 1e-5 {
            return Err(Error::Parameter {
                name: "mean squared length of rows",
                value: squared.to_string(),
                rule: "must be 1, in 2 columns or more: divide every row by its length",
            });
        }
        seeds.update(|_, seed| {
            normalise(seed);
        });
        let k = seeds.len();
        let model = VonMisesFisherMixture {
            cost: Scaled::new(seeds, |_| Factor::ONE),
            frame,
            kappas: vec![2.0; k],
            proportions: vec![1.0 / k as f64; k],
        };
        Ok(model.into())
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let directions = model.cost.centres().clone();
        let kappa = concentration(directions.dim() as f64, first.best / first.weight / 2.0);
        let kappas = vec![kappa; directions.len()];
        let (frame, proportions) = (model.frame.clone(), model.proportions.clone());
        *model = VonMisesFisherMixture::new(directions, frame, kappas, proportions);
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        let directions = model.cost.centres();
        Moments::zeros(
            directions.len(),
            directions.dim(),
            SecondMoments::PerComponent,
        )
    }

    fn update(
        &self,
        moments: Moments,
        model: &mut Self::Model,
        _: bool,
        _: Option<&Cancel>,
    ) -> Result<()> {
        let (old, mut kappas) = (model.cost.centres(), model.kappas.clone());
        let mut directions = old.clone();
        let squared = moments.about_new_means(&mut directions);
        directions.update(|c, mean| match normalise(mean) {
            Some(moved) if moments.mass(c) > 0.0 => {
                let fall = (squared[c] / moments.mass(c) + moved) / 2.0;
                kappas[c] = concentration(mean.len() as f64, fall);
            }
            // No rows, or no direction: it stays.
            _ => mean.copy_from_slice(&old.row(c)[..mean.len()]),
        });
        let (frame, proportions) = (model.frame.clone(), moments.proportions());
        *model = VonMisesFisherMixture::new(directions, frame, kappas, proportions);
        Ok(())
    }
}

// 600 rows about three directions, and a model of them.

fn main() -> Result<()> {
    let mut rng = Rng::from_seed(1);
    let mut x = Array2::from_shape_fn((600, 5), |(i, j)| {
        4.0 * f64::from(i % 3 == j) + rng.normal()
    });
    for mut row in x.axis_iter_mut(Axis(0)) {
        normalise(row.as_slice_mut().expect("one row after the other"));
    }
    let weights: Array1<f64> = (0..600).map(|i| (1 + i % 2) as f64).collect();
    let data = Dense::weighted(&x, &weights)?;
    testing::family(&VonMisesFisher, &data, 3)?;
    testing::family(&VonMisesFisher, &Dense::new(&x.mapv(|x| x as f32))?, 3)?;
    println!("the laws of families hold: in f64 and in f32");
    let fit = algorithms::gmm(3)
        .m_step(VonMisesFisher)
        .restarts(5)
        .fit(&data)?;
    println!("directions:\n{:.2}", fit.model.means());
    println!("concentrations: {:.1?}", fit.model.kappas);
    let labels = fit.model.predict(&data)?;
    let truth: Array1<u32> = (0..600).map(|i| i % 3).collect();
    let agreement = metrics::adjusted_rand_index(labels.view(), truth.view())?;
    println!("agreement with the truth {agreement:.3}");
    Ok(())
}
