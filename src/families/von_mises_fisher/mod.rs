//! Von Mises-Fisher components: directions, each with a concentration of its own or all with one.

mod concentration;

use crate::base::cancel::Cancel;
use crate::base::error::{Result, require};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::costs::{Cost, Factor, Scaled};
use crate::data::Data;
use crate::families::proportions::{Mixing, Proportions};
use crate::io::{all_finite, rule};
use crate::m_step::{Coordinates, MStep, Moments, Needs, SecondMoments, Started};
use crate::model::Mixture;
use crate::model::posterior::{Likelihood, LogJoint};
use crate::rows::{Centres, Frame};
use concentration::{LIMITS, bessel, concentration, log_peak, slope};
use ndarray::{Array1, Array2, ArrayD, ArrayView1};

/// Von Mises-Fisher components, for rows whose direction counts and whose length does not, such as text and embeddings compared by
/// cosine ([E56](crate::equations#e56); Banerjee, Dhillon, Ghosh and Sra 2005).
///
/// $$p(y \mid c) = C(\kappa_c) \thinspace e^{\kappa_c \mu_c^\top y}, \qquad \lVert y \rVert = \lVert \mu_c \rVert = 1$$
///
/// Rows are brought to length 1 as they are loaded, in a fit and by its model: both take rows as they are. A row of zeros has no
/// direction: it has the same distance from all.
///
/// By default each has a concentration and a proportion of its own. [`tied`](Self::tied) components have one concentration and equal proportions: with supports of width 1 that is spherical k-means,
/// which maximises the cosines of rows with the directions of their clusters, $\sum_n w_n \max_c \mu_c^\top y_n$. Costs are squared
/// distances on the sphere, $2 - 2 \mu_c^\top y$. Searches with bounds move centres to means, which lie inside the sphere, so they are
/// an error of the fit; [`algorithms::spherical_k_means`](crate::algorithms::spherical_k_means) begins with such a search.
///
/// ```
/// use coremix::families::VonMisesFisher;
/// use coremix::prelude::*;
/// use ndarray::array;
///
/// let x = array![[1.0, 0.1], [20.0, 1.0], [0.1, 3.0], [0.0, 0.2]]; // two directions, of any length
/// let fit = algorithms::gmm(2).m_step(VonMisesFisher::default()).build()?.fit(&Dense::new(&x)?)?;
/// let labels = fit.model.predict(&Dense::new(&x)?)?;
/// assert!(labels[0] == labels[1] && labels[2] == labels[3] && labels[0] != labels[2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VonMisesFisher {
    tied: bool,
}

impl VonMisesFisher {
    /// One concentration for all components, and equal proportions: the components of spherical k-means.
    #[must_use]
    pub fn tied() -> Self {
        Self { tied: true }
    }
}

/// A fitted mixture of directions.
#[derive(Clone, Debug, PartialEq)]
pub struct VonMisesFisherMixture<F> {
    pub(super) theta: Theta<F>,
    /// Costs about the directions, where concentrations differ.
    scaled: Option<Scaled<F>>,
}

/// The parameters.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(super) struct Theta<F> {
    frame: Frame<F>,
    directions: Centres<F>,
    /// One, or (k).
    concentrations: Vec<f64>,
    proportions: Proportions,
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
        let k = self.directions.len();
        let dim = self.directions.dim();
        let sphere = dim > 1 && self.frame.is_sphere(dim);
        rule(sphere, "frame", "must be that of directions")?;
        let lengths = (0..k).map(|c| squared_length(self.directions.row(c)));
        let unit = lengths
            .into_iter()
            .all(|length| (length - 1.0).abs() < 1e-3);
        rule(unit, "directions", "must have length 1")?;
        let learned = self.proportions.mixing == Mixing::Learned;
        let number = if learned { k } else { 1 };
        all_finite("concentrations", &self.concentrations, number)?;
        let in_range = |kappa: &f64| (LIMITS.0..=LIMITS.1).contains(kappa);
        let in_range = self.concentrations.iter().all(in_range);
        rule(in_range, "concentrations", "must be between 1e-6 and 1e10")?;
        self.proportions.check_stored(k)
    }

    fn kappa(&self, c: usize) -> f64 {
        self.concentrations[c % self.concentrations.len()]
    }
}

fn squared_length<F: Float>(row: &[F]) -> f64 {
    row.iter().map(|x| x.to_f64() * x.to_f64()).sum()
}

impl<F: Float> VonMisesFisherMixture<F> {
    pub(super) fn new(theta: Theta<F>) -> Self {
        let mut model = Self {
            theta,
            scaled: None,
        };
        model.renew();
        model
    }

    /// Makes the costs that follow from the parameters.
    fn renew(&mut self) {
        let theta = &self.theta;
        let dim = theta.directions.dim();
        let proportions = &theta.proportions;
        let learned = proportions.mixing == Mixing::Learned;
        let factor = |c: usize| Factor {
            factor: theta.kappa(c) / 2.0,
            per_coordinate: 0.0,
            added: -log_peak(dim, theta.kappa(c)) - proportions.values[c].ln(),
        };
        self.scaled = learned.then(|| Scaled::new(theta.directions.clone(), factor));
    }

    /// Concentrations $\kappa$: (k), or one if all components share it.
    #[must_use]
    pub fn concentrations(&self) -> ArrayView1<'_, f64> {
        ArrayView1::from(&self.theta.concentrations)
    }
}

/// Puts directions in the place of means. Returns the squared distance of each to its mean (k).
fn turn<F: Float>(means: &mut Centres<F>) -> Vec<f64> {
    let mut moved = vec![0.0; means.len()];
    means.update(|c, mean| {
        let length = squared_length(mean).sqrt();
        if length <= 0.0 {
            // Opposite rows, or a row of zeros: all directions are as good.
            mean[0] = F::one();
            moved[c] = 1.0;
            return;
        }
        // In sparse rows most columns are 0.
        for x in mean.iter_mut().filter(|x| **x != F::zero()) {
            let before = x.to_f64();
            *x = F::from_f64(before / length);
            moved[c] += (x.to_f64() - before).powi(2);
        }
    });
    moved
}

impl<F: Float> Mixture<F> for VonMisesFisherMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        match &self.scaled {
            Some(scaled) => Cost::Scaled(scaled),
            None => Cost::Squared(&self.theta.directions),
        }
    }

    fn centres(&self) -> &Centres<F> {
        &self.theta.directions
    }

    fn frame(&self) -> &Frame<F> {
        &self.theta.frame
    }

    fn log_joint(&self) -> LogJoint {
        let kappa = self.theta.kappa(0);
        let k = self.theta.directions.len();
        match &self.scaled {
            Some(_) => LogJoint {
                alpha: 0.0,
                gamma: 0.0,
                beta: 1.0,
            },
            None => LogJoint {
                alpha: log_peak(self.theta.directions.dim(), kappa) - (k as f64).ln(),
                gamma: 0.0,
                beta: kappa / 2.0,
            },
        }
    }

    fn proportions(&self) -> Array1<f64> {
        Array1::from(self.theta.proportions.values.clone())
    }

    /// A direction has d - 1 free numbers.
    fn free_parameters(&self) -> Option<usize> {
        let theta = &self.theta;
        let k = self.theta.directions.len();
        let directions = k * (theta.directions.dim() - 1);
        Some(directions + theta.concentrations.len() + theta.proportions.free())
    }

    /// The diagonal of the covariance of directions: A / kappa across the mean direction, A' along it.
    fn variances(&self) -> Array2<f64> {
        let directions = &self.theta.directions;
        let d = self.theta.directions.dim() as f64;
        let variances = |c: usize| {
            let (_, fall) = bessel(d / 2.0 - 1.0, self.theta.kappa(c));
            let across = (1.0 - fall) / self.theta.kappa(c);
            (across, slope(d, self.theta.kappa(c), fall))
        };
        let variances: Vec<_> = (0..directions.len()).map(variances).collect();
        Array2::from_shape_fn((directions.len(), directions.dim()), |(c, j)| {
            let (across, along) = variances[c];
            let share = directions.row(c)[j].to_f64().powi(2).min(1.0);
            across * (1.0 - share) + along * share
        })
    }

    /// Rows of length 1. The cosine with the mean direction is drawn by Wood (1994), and the rest is uniform across it.
    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let theta = &self.theta;
        let d = self.theta.directions.dim();
        let mut across = vec![0.0; d];
        let mut unit = vec![0.0; d];
        theta.proportions.draw(n, d, seed, |c, rng, mut row| {
            let direction = theta.directions.row(c);
            unit.iter_mut()
                .zip(direction)
                .for_each(|(u, x)| *u = x.to_f64());
            let fall = fall(d as f64, theta.kappa(c), rng);
            across.fill_with(|| rng.normal());
            let dot: f64 = across.iter().zip(&unit).map(|(a, u)| a * u).sum();
            across
                .iter_mut()
                .zip(&unit)
                .for_each(|(a, u)| *a -= dot * u);
            let length = across.iter().map(|a| a * a).sum::<f64>().sqrt();
            let width = (fall * (2.0 - fall)).max(0.0).sqrt() / length.max(f64::MIN_POSITIVE);
            for (u, a) in unit.iter_mut().zip(&across) {
                *u = (1.0 - fall) * *u + width * a;
            }
            // Little is left of what is nearly along the direction: what was rounded in it counts.
            let length = unit.iter().map(|u| u * u).sum::<f64>().sqrt();
            for (x, u) in row.iter_mut().zip(&unit) {
                *x = F::from_f64(u / length);
            }
        })
    }

    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let concentrations = self.concentrations().to_owned();
        vec![
            ("concentrations", concentrations.into_dyn()),
            ("proportions", self.proportions().into_dyn()),
        ]
    }
}

impl Stage for VonMisesFisher {}

impl<F: Float> MStep<F> for VonMisesFisher {
    type Model = VonMisesFisherMixture<F>;

    fn needs(&self) -> Needs {
        Needs {
            coordinates: Coordinates::Directions,
            searches_first: true,
            ..Needs::default()
        }
    }

    /// Directions of the seeds. Costs are squared distances until [`calibrate`](MStep::calibrate): kappa is 2.
    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let columns = data.dim();
        require(
            columns > 1,
            "number of columns",
            columns,
            "must be at least 2: one has no directions",
        )?;
        let k = seeds.len();
        let mixing = [Mixing::Learned, Mixing::Equal][usize::from(self.tied)];
        let mut directions = seeds;
        turn(&mut directions);
        let mut theta = Theta {
            frame,
            directions,
            concentrations: vec![2.0; if self.tied { 1 } else { k }],
            proportions: Proportions::equal(k, mixing),
        };
        let before = before.map(|before| &before.theta);
        if let Some(from) = before.filter(|from| from.proportions.mixing == mixing) {
            theta.concentrations.clone_from(&from.concentrations);
            theta.proportions.clone_from(&from.proportions);
            let model = VonMisesFisherMixture::new(theta);
            let goes_on = true;
            return Ok(Started { model, goes_on });
        }
        let scaled = (!self.tied).then(|| Scaled::new(theta.directions.clone(), |_| Factor::ONE));
        Ok(VonMisesFisherMixture { theta, scaled }.into())
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let fall = first.best / first.weight / 2.0;
        let kappa = concentration(model.theta.directions.dim() as f64, fall);
        model.theta.concentrations.fill(kappa);
        model.renew();
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        let directions = &model.theta.directions;
        let k = directions.len();
        let dim = directions.dim();
        if self.tied {
            return Moments::totals(k, dim);
        }
        Moments::zeros(k, dim, SecondMoments::PerComponent)
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        _: bool,
        _: Option<&Cancel>,
    ) -> Result<()> {
        let theta = &mut model.theta;
        let k = theta.directions.len();
        let dim = theta.directions.dim() as f64;
        let squared = sums.about_new_means(&mut theta.directions);
        let moved = turn(&mut theta.directions);
        // Half the mean squared distance to the direction is 1 less the mean cosine.
        let about = |c: usize| sums.mass(c) * moved[c];
        if self.tied {
            let mass: f64 = (0..k).map(|c| sums.mass(c)).sum();
            let total = squared[0] + (0..k).map(about).sum::<f64>();
            theta.concentrations = vec![concentration(dim, total / mass / 2.0)];
        } else {
            for c in (0..k).filter(|c| sums.mass(*c) > 0.0) {
                let fall = (squared[c] + about(c)) / sums.mass(c) / 2.0;
                theta.concentrations[c] = concentration(dim, fall);
            }
            theta.proportions = Proportions::learned((0..k).map(|c| sums.mass(c)));
        }
        model.renew();
        Ok(())
    }
}

/// 1 less the cosine of a direction in d dimensions with the mean direction, drawn with this concentration (Wood 1994, algorithm
/// VM*), with all digits where it is small.
fn fall(d: f64, kappa: f64, rng: &mut Rng) -> f64 {
    let m = d - 1.0;
    let kappa = kappa.min(1e300);
    let b = m / (2.0 * kappa + (2.0 * kappa).hypot(m));
    let x0 = (1.0 - b) / (1.0 + b);
    let complement = 2.0 * b / (1.0 + b); // 1 - x0
    loop {
        // A beta variable of m / 2 and m / 2.
        let one = rng.chi_squared(m);
        let other = rng.chi_squared(m);
        let z = one / (one + other).max(f64::MIN_POSITIVE);
        let fall = 2.0 * b * z / (1.0 - (1.0 - b) * z);
        let ratio = (complement + x0 * fall) / (complement * (1.0 + x0));
        if kappa * (complement - fall) + m * ratio.ln() >= (1.0 - rng.uniform()).ln() {
            return fall;
        }
    }
}
