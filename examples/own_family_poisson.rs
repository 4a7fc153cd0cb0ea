//! A component family of one's own: Poisson components, for rows of counts.
//!
//! The columns of a row y are independent, given its component c, with a rate for each:
//!
//! p(y | c) = prod_j lambda_cj^y_j exp(-lambda_cj) / y_j!
//!
//! With the responsibilities q fixed, F depends on a rate by sum_n w_n q_nc (y_nj ln lambda_cj - lambda_cj). This is concave in
//! the rate, and largest at the weighted mean of the counts, sum_n w_n q_nc y_nj / sum_n w_n q_nc. So the M-step is that of all
//! exponential families (Dempster, Laird and Rubin 1977, section 2): expected counts become those of the rows. A mean below
//! `MIN_RATE` is clamped there, where a concave function is largest too, if its maximum is beyond.

use coremix::costs::{Cost, OwnCost};
use coremix::data::{Centres, Frame, Rows};
use coremix::m_step::{Coordinates, MStep, Moments, Needs, Started};
use coremix::prelude::*;
use coremix::selection::{Criterion, Sweep};
use coremix::stage::{Rng, Stage};
use coremix::{Float, ModelInfo, testing};
use ndarray::{Array1, Array2, array};
use serde::{Deserialize, Serialize};
use special::Gamma;

/// The least rate: one event in a billion rows. With a rate of 0, a single count would rule out the component.
const MIN_RATE: f64 = 1e-9;

/// Poisson components with a rate for each column, and mixing proportions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poisson;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "F: Float")]
pub(crate) struct PoissonMixture<F> {
    /// The rates (k, d).
    rates: Centres<F>,
    frame: Frame<F>,
    /// Their logarithms (k, d), one row after the other.
    logs: Vec<f64>,
    proportions: Vec<f64>,
}

impl<F: Float> PoissonMixture<F> {
    /// Clamps the rates at `least` (d).
    fn clamp(&mut self, least: impl Fn(usize) -> f64) {
        let logs = &mut self.logs;
        logs.clear();
        self.rates.update(|_, rates| {
            for (j, rate) in rates.iter_mut().enumerate() {
                *rate = Float::from_f64(rate.to_f64().max(least(j)));
                logs.push(rate.to_f64().ln());
            }
        });
    }
}

impl Stage for Poisson {}

impl<F: Float> OwnCost<F> for PoissonMixture<F> {
    fn components(&self) -> usize {
        self.rates.len()
    }

    /// -ln p(c, y) = -ln pi_c + sum_j lambda_cj - y_j ln lambda_cj + ln y_j!
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let (row, d) = (rows.coordinates(i), rows.known(i));
        let y = || row[..d].iter().map(|y| y.to_f64());
        let factorials: f64 = y().map(|y| Gamma::ln_gamma(y + 1.0).0).sum();
        out.clear();
        for c in ids.iter().map(|c| *c as usize) {
            let rates = self.rates.row(c).iter().zip(&self.logs[c * d..]);
            let terms = y()
                .zip(rates)
                .map(|(y, (rate, log))| rate.to_f64() - y * log);
            let cost = terms.sum::<f64>() + factorials - self.proportions[c].ln();
            out.push(Float::from_f64(cost));
        }
    }
}

impl<F: Float> Mixture<F> for PoissonMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        Cost::Own(self)
    }

    fn centres(&self) -> &Centres<F> {
        &self.rates
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn proportions(&self) -> Array1<f64> {
        self.proportions.clone().into()
    }

    /// The variance of a Poisson distribution is its mean.
    fn variances(&self) -> Array2<f64> {
        self.means().mapv(|rate: F| rate.to_f64())
    }

    /// For BIC: the rates, and all proportions but one.
    fn free_parameters(&self) -> Option<usize> {
        Some(self.logs.len() + self.proportions.len() - 1)
    }
}

impl<F: Float> Save for PoissonMixture<F> {
    fn info(&self) -> Result<ModelInfo> {
        Ok(ModelInfo::new("Poisson", self))
    }
}

impl<F: Float> MStep<F> for Poisson {
    type Model = PoissonMixture<F>;

    /// Counts have an origin and a unit of their own.
    fn needs(&self) -> Needs {
        Needs {
            coordinates: Coordinates::Raw,
            ..Needs::default()
        }
    }

    /// Rates at the seeds. A seed is one row, whose zeros say little of the others: no rate is below a tenth of the mean.
    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        _: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let summary = data.summary();
        if let Some((low, _)) = summary.range.iter().find(|(low, _)| *low < 0.0) {
            return Err(Error::Parameter {
                name: "data",
                value: low.to_string(),
                rule: "must have no number below 0 for Poisson components: rows are counts",
            });
        }
        let mut model = PoissonMixture {
            proportions: vec![1.0 / seeds.len() as f64; seeds.len()],
            rates: seeds,
            frame,
            logs: Vec::new(),
        };
        model.clamp(|j| MIN_RATE.max(summary.mean[j] / 10.0));
        Ok(model.into())
    }

    fn update(
        &self,
        moments: Moments,
        model: &mut Self::Model,
        _: bool,
        _: Option<&Cancel>,
    ) -> Result<()> {
        moments.about_new_means(&mut model.rates);
        model.clamp(|_| MIN_RATE);
        model.proportions = moments.proportions();
        Ok(())
    }
}

// 500 rows of three kinds, and a model of them.

fn counts(rates: &Array2<f64>, n: usize) -> (Array2<f64>, Array1<u32>) {
    let mut rng = Rng::from_seed(1);
    // Events of rate 1 have exponential gaps.
    let mut draw = |rate: f64| {
        let (mut count, mut time) = (0.0, rng.exponential());
        while time < rate {
            (count, time) = (count + 1.0, time + rng.exponential());
        }
        count
    };
    let k = rates.nrows();
    let x = Array2::from_shape_fn((n, rates.ncols()), |(i, j)| draw(rates[[i % k, j]]));
    (x, (0..n as u32).map(|i| i % k as u32).collect())
}

fn main() -> Result<()> {
    let rates = array![[3.0, 3.0, 12.0], [1.0, 8.0, 3.0], [6.0, 1.0, 3.0]];
    let (x, truth) = counts(&rates, 500);
    let weights: Array1<f64> = (0..500).map(|i| (1 + i % 3) as f64).collect();
    let data = Dense::weighted(&x, &weights)?;
    testing::family(&Poisson, &data, 3)?;
    testing::family(&Poisson, &Dense::new(&x.mapv(|x| x as f32))?, 3)?;
    println!("the laws of families hold: in f64 and in f32");

    let fit = algorithms::gmm(3).m_step(Poisson).restarts(5).fit(&data)?;
    let labels = fit.model.predict(&data)?;
    println!("rates:\n{:.2}", fit.model.means());
    let agreement = metrics::adjusted_rand_index(labels.view(), truth.view())?;
    println!("agreement with the truth {agreement:.3}");

    let path = std::env::temp_dir().join(format!("poisson-{}.cmx", std::process::id()));
    fit.model.save(&path)?;
    let loaded = PoissonMixture::<f64>::load(&path);
    std::fs::remove_file(&path).ok();
    assert_eq!(loaded?, fit.model);

    let selection = Sweep::new(1..=5).run(&data, |k| algorithms::gmm(k).m_step(Poisson).build())?;
    let best = selection.best(Criterion::Bic).map(|best| best.clusters);
    println!("clusters by BIC: {}", best.unwrap_or(0));
    Ok(())
}
