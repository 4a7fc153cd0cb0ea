//! A prior of Gaussian components: rows in advance.

use super::covariance::Covariance;
use crate::base::error::{Result, require};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::data::Data;
use crate::families::proportions::Proportions;
use crate::families::variances::{variance_floors, variances_of};
use crate::io::{all_finite, all_positive, rule};
use crate::rows::Frame;

/// A prior of [`Gaussian`](crate::families::Gaussian) components ([E59](crate::equations#e59)): rows that they have in advance.
///
/// A fit then maximises the posterior density of the parameters (MAP). Each covariance has `rows` rows of the variances $v_j$ in
/// advance, which is an inverse Wishart prior of `Tied` and `Full` covariances, and an inverse gamma prior of variances, with `Factors` of
/// those besides the factors:
///
/// $$\Sigma_c = \frac{S_c + r \thinspace \operatorname{diag}(v)}{m_c + r}$$
///
/// So no component collapses on few rows, and one with fewer rows than columns has a proper covariance. The prior is part of the free
/// energy, which never falls; it is 0 where covariances are those of the prior, and negative elsewhere, in any unit. By default the
/// variances are those of the columns of the data, divided by $C^{2 / D}$, the share of a component if $C$ of them fill the space
/// between the rows (Fraley and Raftery, 2007). The larger the total weight of the rows, the weaker the prior.
///
/// Without a prior, fits are those of maximum likelihood. It must be asked for: next to weights that sum to 1, one row is no weak
/// prior, and a share of the total weight would not get weaker with more rows. Components that a floor holds are counted in
/// [`Report::at_floor`](crate::Report::at_floor).
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((24, 9), |(n, j)| ((n * 7 + j * 3) % 11) as f64 + (n % 3) as f64 * 20.0);
/// // 24 rows of 9 columns in 3 clusters: covariances of 8 rows each are singular.
/// let data = Dense::new(&x)?;
/// let mixture = algorithms::gmm(3).covariance(Covariance::Full).prior(Prior::weak());
/// let fit = mixture.build()?.fit(&data)?;
/// assert_eq!(fit.report.at_floor, 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    pub(crate) rows: f64,
    variance: Option<f64>,
    proportions: f64,
    ridge: f64,
}

impl Prior {
    /// This number of rows in advance for each covariance: 0 to $10^9$, and not necessarily whole.
    #[must_use]
    pub const fn new(rows: f64) -> Self {
        Self {
            rows,
            variance: None,
            proportions: 0.0,
            ridge: 0.0,
        }
    }

    /// One row: enough for covariances to be proper, and little next to the rows of a component.
    #[must_use]
    pub const fn weak() -> Self {
        Self::new(1.0)
    }

    /// Rows of this variance in every column, in the data's own unit, squared. It must be near those of the data.
    #[must_use]
    pub const fn variance(self, variance: f64) -> Self {
        Self {
            variance: Some(variance),
            ..self
        }
    }

    /// Besides, each component has `rows` rows in advance in its mixing proportion, a Dirichlet prior of parameters `rows` + 1:
    /// $\pi_c = (m_c + a) / (W + C a)$. Default 0: a component without rows is discarded. Equal proportions stay equal.
    #[must_use]
    pub const fn proportions(self, rows: f64) -> Self {
        Self {
            proportions: rows,
            ..self
        }
    }

    /// Besides, covariances have this variance more in every column, in the data's own unit, squared: $\Sigma_c = S_c / m_c + \epsilon
    /// I$, whatever the mass $m_c$. This is the ridge of other programs, such as `reg_covar` of scikit-learn.
    ///
    /// Rows count as known with this variance. So the cost of a row under a component is its expected cost, $-\ln p(c, y) + \frac
    /// \epsilon 2 \operatorname{tr} \Sigma_c^{-1}$, from which responsibilities, labels and the free energy follow, in the fit and in
    /// predictions alike. Densities are those of the parameters.
    #[must_use]
    pub const fn ridge(self, variance: f64) -> Self {
        Self {
            ridge: variance,
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let proper = self.ridge >= 0.0 && self.ridge.is_finite();
        require(proper, "ridge", self.ridge, "must be 0 or more, and finite")?;
        let rule = "must be between 0 and 1e9";
        for (name, rows) in [
            ("prior rows", self.rows),
            ("prior rows of proportions", self.proportions),
        ] {
            require((0.0..=1e9).contains(&rows), name, rows, rule)?;
        }
        let variance = self.variance.unwrap_or(1.0);
        let proper = variance > 0.0 && variance.is_finite();
        require(
            proper,
            "prior variance",
            variance,
            "must be positive and finite",
        )
    }
}

/// A prior in the coordinates of a model. Without one there are 0 rows.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(in crate::families) struct Advance {
    /// For each covariance.
    pub(super) rows: f64,
    /// (d), in the unit of the frame, squared; none without rows.
    pub(super) variances: Vec<f64>,
    /// Rows of each component in the mixing proportions.
    pub(super) proportions: f64,
    /// (d), in the unit of the frame, squared; or none. All are alike where a component has one variance.
    pub(in crate::families) ridge: Vec<f64>,
}

impl Advance {
    pub(super) fn of<F: Float>(
        prior: Option<Prior>,
        kind: Covariance,
        k: usize,
        frame: &Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Self> {
        /// Variances in units of the square of the frame, which is that of the widest column.
        const NEAR: f64 = 1e24;
        let has_rows = |prior: &Prior| prior.rows + prior.proportions + prior.ridge > 0.0;
        let Some(prior) = prior.filter(has_rows) else {
            return Ok(Self::default());
        };
        let share = (k as f64).powf(-2.0 / frame.dim() as f64);
        let floors = variance_floors(frame, data.summary());
        let variances = variances_of(frame, data.summary()).enumerate();
        let enter = |j: usize, name: &'static str, given: f64, least: f64| {
            let variance = frame.enter_product(j, j, given);
            let rule = "must be nearer to the variances of the data";
            let near = (least..=NEAR).contains(&variance);
            require(near, name, given, rule).map(|()| variance)
        };
        let variances = variances.map(|(j, of_data)| match prior.variance {
            None => Ok((share * of_data).max(floors[j])),
            Some(given) => Ok(enter(j, "prior variance", given, 1.0 / NEAR)?.max(floors[j])),
        });
        let variances: Vec<f64> = variances.collect::<Result<_>>()?;
        let ridge = (0..frame.dim()).map(|j| enter(j, "ridge", prior.ridge, 0.0));
        let mut ridge: Vec<f64> = ridge.collect::<Result<_>>()?;
        if !kind.is_by_column() {
            ridge = vec![ridge.iter().sum::<f64>() / ridge.len() as f64; ridge.len()];
        }
        let some = |there: bool, values| if there { values } else { Vec::new() };
        Ok(Self {
            rows: prior.rows,
            variances: some(prior.rows > 0.0, variances),
            proportions: prior.proportions,
            ridge: some(prior.ridge > 0.0, ridge),
        })
    }

    /// The sum of squares in coordinate `j`, and the mass, that the rows add to a covariance.
    pub(super) fn of_column(&self, j: usize) -> (f64, f64) {
        let variance = self.variances.get(j).copied().unwrap_or(0.0);
        (self.rows * variance, self.rows)
    }

    /// As above, in all coordinates together, to `number` covariances.
    pub(super) fn of_all(&self, number: usize) -> (f64, f64) {
        let rows = number as f64 * self.rows;
        let squares = rows * self.variances.iter().sum::<f64>();
        (squares, rows * self.variances.len() as f64)
    }

    /// The mixing proportions that follow from masses.
    pub(super) fn proportions_of(&self, masses: &[f64]) -> Proportions {
        Proportions::learned(masses.iter().map(|mass| mass + self.proportions))
    }

    /// The ridge of coordinate `j`, or 0.
    pub(super) fn ridge_of(&self, j: usize) -> f64 {
        self.ridge.get(j).copied().unwrap_or(0.0)
    }

    /// Twice the nats by which the ridge raises the cost of a row that knows all coordinates (d), under a covariance whose columns have
    /// such precisions: $\operatorname{tr}(\Sigma_c^{-1} R)$.
    pub(super) fn ridge_trace(&self, dim: usize, precisions: impl FnOnce() -> Vec<f64>) -> f64 {
        if self.ridge.is_empty() {
            return 0.0;
        }
        let precisions = precisions();
        let ridge = self.ridge.iter().enumerate().take(dim);
        ridge
            .map(|(j, r)| r * precisions[j % precisions.len()])
            .sum()
    }

    /// An error of the section that holds what no prior has.
    pub(super) fn check(&self, dim: Option<usize>) -> std::result::Result<(), FileFault> {
        let count = if self.rows > 0.0 {
            dim.unwrap_or(self.variances.len())
        } else {
            0
        };
        all_positive("prior variances", &self.variances, count)?;
        let sound = [self.rows, self.proportions]
            .iter()
            .all(|x| (0.0..=1e9).contains(x));
        rule(sound, "prior", "must have from 0 to 1e9 rows")?;
        let count = if self.ridge.is_empty() {
            0
        } else {
            dim.unwrap_or(self.ridge.len())
        };
        all_finite("ridge", &self.ridge, count)?;
        let positive = self.ridge.iter().all(|ridge| *ridge >= 0.0);
        rule(positive, "ridge", "must not be negative")
    }
}
