//! A component family of one's own: Student-t components, whose heavy tails leave outliers out of the means.
//!
//! p(y | c) is a Gaussian N(y; mu_c, s_c / u) with u drawn from a gamma law of nu / 2 and nu / 2. Given the components of a
//! point, u is expected to be (nu + D) / (nu + d^2 / s_c): the far ones count less (Peel and McLachlan 2000).

use coremix::data::{Centres, Frame, Rows, Scores};
use coremix::m_step::{MStep, Moments, Second, variance_floor};
use coremix::prelude::*;
use coremix::{Block, Float, Likelihood, LogJoint, Rng, Stage, testing};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use special::Gamma;

/// Student-t components with `nu` degrees of freedom, a scale and a mixing proportion each.
#[derive(Clone, Copy, Debug)]
struct StudentT {
    nu: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "F: Float")]
struct StudentTMixture<F> {
    nu: f64,
    centres: Centres<F>,
    frame: Frame<F>,
    /// In the unit of the frame, squared; none before the first search: then scores are squared distances.
    scales: Vec<f64>,
    least: f64,
    proportions: Vec<f64>,
}

impl Stage for StudentT {
    fn check(&self, _: usize) -> Result<()> {
        let (name, rule) = ("nu", "must be positive and finite");
        match self.nu > 0.0 && self.nu.is_finite() {
            true => Ok(()),
            false => Err(Error::Parameter {
                name,
                value: self.nu.to_string(),
                rule,
            }),
        }
    }
}

impl<F: Float> Scores<F> for StudentTMixture<F> {
    fn components(&self) -> usize {
        self.centres.len()
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        rows.distances_to(i, &self.centres, ids, out);
        let (nu, d) = (self.nu, rows.entries() as f64);
        for (score, c) in out.iter_mut().zip(ids).filter(|_| !self.scales.is_empty()) {
            let (scale, proportion) = (self.scales[*c as usize], self.proportions[*c as usize]);
            let tail = (nu + d) / 2.0 * (score.to_f64() / (nu * scale)).ln_1p();
            *score = Float::from_f64(d / 2.0 * scale.ln() + tail - proportion.ln());
        }
    }
}

impl<F: Float> Mixture<F> for StudentTMixture<F> {
    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn log_joint(&self) -> LogJoint {
        let (nu, d) = (self.nu, self.centres.dim() as f64);
        let alpha = Gamma::ln_gamma((nu + d) / 2.0).0 - Gamma::ln_gamma(nu / 2.0).0;
        let gamma = self.frame.log_density_shift() - (nu * std::f64::consts::PI).ln() / 2.0;
        LogJoint {
            alpha,
            gamma,
            beta: 1.0,
        }
    }

    fn proportions(&self) -> Array1<f64> {
        self.proportions.clone().into()
    }

    fn variances(&self) -> Array2<f64> {
        let inflation = if self.nu > 2.0 {
            self.nu / (self.nu - 2.0)
        } else {
            f64::INFINITY
        };
        let variance = |c: usize| inflation * self.frame.leave_square(self.scales[c]);
        Array2::from_shape_fn((self.scales.len(), self.centres.dim()), |(c, _)| {
            variance(c)
        })
    }
}

impl<F: Float> MStep<F> for StudentT {
    type Model = StudentTMixture<F>;

    fn start(
        &self,
        centres: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Self::Model> {
        let least = variance_floor(&frame, data.summary());
        let proportions = vec![1.0 / centres.len() as f64; centres.len()];
        Ok(StudentTMixture {
            nu: self.nu,
            centres,
            frame,
            scales: Vec::new(),
            least,
            proportions,
        })
    }

    fn searches_first(&self) -> bool {
        true
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let scale = (first.best / first.entries).max(model.least);
        model.scales = vec![scale; model.centres.len()];
    }

    /// Moments in which far rows count less, and responsibilities times coordinates.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let (k, d) = (model.centres.len(), model.centres.dim());
        Moments::zeros(k, d, Second::PerComponent).with_own(k)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        moments: &mut Moments,
    ) {
        let (d, mut squared) = (rows.entries() as f64, Vec::new());
        let mut shares = Vec::with_capacity(block.len() * block.width());
        for i in 0..rows.len() {
            let (ids, q): (Vec<u32>, Vec<f64>) = block.members(i).unzip();
            rows.distances_to(i, &model.centres, &ids, &mut squared);
            for ((c, q), squared) in ids.iter().map(|c| *c as usize).zip(q).zip(&squared) {
                moments.own_mut()[c] += rows.weight(i) * q * d;
                shares.push(q * (self.nu + d) / (self.nu + squared.to_f64() / model.scales[c]));
            }
        }
        let of_place = |i, place| shares[i * block.width() + place];
        rows.accumulate(&block.with_shares(of_place), &model.centres, moments);
    }

    fn update(&self, moments: Moments, model: &mut Self::Model, _: bool) {
        let entries = moments.own();
        let squared = moments.about_new_means(&mut model.centres);
        let total: f64 = entries.iter().sum();
        for c in (0..entries.len()).filter(|&c| entries[c] > 0.0) {
            model.scales[c] = (squared[c] / entries[c]).max(model.least);
        }
        // A component without points keeps its place; its proportion is as good as 0.
        let proportion = |entries: &f64| (entries / total).max(f64::MIN_POSITIVE);
        model.proportions = entries.iter().map(proportion).collect();
    }
}

/// Blobs at the corners of a square, and some rows far out.
fn blobs(n: usize, outliers: usize) -> Array2<f64> {
    let mut rng = Rng::from_seed(1);
    Array2::from_shape_fn((n + outliers, 2), |(i, j)| match i < n {
        true => 10.0 * ((i >> j) % 2) as f64 + rng.normal(),
        false => 60.0 * rng.normal(),
    })
}

fn main() -> Result<()> {
    let x = blobs(800, 40);
    let data = Dense::new(x.view())?;
    let family = StudentT { nu: 3.0 };
    testing::family(&family, &data, 4)?;
    testing::family(&family, &Dense::new(x.mapv(|x| x as f32).view())?, 4)?;
    testing::family(&family, &Sketch::new(x.view(), 1, 1)?, 4)?;
    println!("the laws of families hold: in f64, in f32, and on a sketch");
    let seeds = x.slice(ndarray::s![..4, ..]);
    let builder = || algorithms::gmm(4).seeder(Given::new(seeds));
    let own = builder().m_step(family).build()?.fit(&data)?.boxed::<f64>();
    let gaussians = builder()
        .covariance(Covariance::Spherical)
        .build()?
        .fit(&data)?;
    println!(
        "means of Student-t components, the corners of a square of side 10:\n{:.2}",
        own.model.means()
    );
    println!("and of Gaussian ones:\n{:.2}", gaussians.model.means());
    println!(
        "log-likelihoods {:.1} and {:.1}",
        own.model.log_likelihood(&data)?,
        gaussians.model.log_likelihood(&data)?
    );
    Ok(())
}
