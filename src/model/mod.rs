//! A fitted model: what every component family offers.

pub(crate) mod block;
pub(crate) mod cells;
pub(crate) mod clusters;
pub(crate) mod facts;
pub(crate) mod posterior;
pub(crate) mod predict;
pub(crate) mod predictor;
pub(crate) mod quantizer;
pub(crate) mod search;

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::costs::Cost;
use crate::data::{Data, Dense};
use crate::model::posterior::LogJoint;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD};
use std::any::Any;
use std::fmt;

/// A mixture model; usable as a trait object.
///
/// The questions a user asks of a model are answered exactly, over all components and all rows with their weights. That is
/// done in blocks: nothing of size n x k is stored unless it is the answer. Data that does not suit the model is an error of
/// each, as of [`predict`](Self::predict).
///
/// A boxed model is a model, and [`Any`]: what is particular to a family is found by downcasting.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let model = algorithms::gmm(25).build()?.fit(&data)?.model;
/// let labels = model.predict(&data)?; // the likeliest component of each row
/// let shares = model.responsibilities(&data)?; // of all components, (n, k)
/// let (likeliest, _) = model.truncated_responsibilities(&data, 2)?;
/// assert!(labels.len() == 1_000 && shares.dim() == (1_000, 25));
/// assert_eq!(likeliest.column(0), labels);
/// let score = model.score(&data)?;
/// assert_eq!(score.labels, labels);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    note = "a model of your own implements `Mixture<F>`, as in the guide's chapter \"A family of your own\""
)]
pub trait Mixture<F: Float>: Any + Send + Sync {
    /// The costs of rows under the components: all searches and answers follow from it.
    fn cost(&self) -> Cost<'_, F>;

    /// The means, in the coordinates of the [frame](Self::frame).
    fn centres(&self) -> &Centres<F>;

    /// The coordinates of the model ([E24](crate::equations#e24)).
    fn frame(&self) -> &Frame<F>;

    /// From costs to log-joints ([E1](crate::equations#e1)). By default costs are $-\ln p(c, y \mid \theta)$.
    fn log_joint(&self) -> LogJoint {
        LogJoint {
            alpha: 0.0,
            gamma: 0.0,
            beta: 1.0,
        }
    }

    /// The part of the free energy that does not come from the points, in nats: 0, unless the model has distributions of its
    /// own. Then it is minus their divergence from the prior ([E30](crate::equations#e30)).
    fn prior_terms(&self) -> f64 {
        0.0
    }

    /// Number of components, k.
    fn components(&self) -> usize {
        self.cost().components()
    }

    /// The means (k, columns), in the data's own unit.
    fn means(&self) -> Array2<F> {
        self.centres().leave(self.frame())
    }

    /// The mixing proportions (k): they sum to 1. Equal, unless the family learns them; expected ones of a Dirichlet process.
    fn proportions(&self) -> Array1<f64> {
        let k = self.components();
        Array1::from_elem(k, 1.0 / k as f64)
    }

    /// The numbers of the model that a fit chooses freely, for criteria such as BIC ([E47](crate::equations#e47)): means,
    /// variances, and mixing proportions unless they are all equal. `None` by default, and for the Dirichlet process, whose
    /// model is a distribution over parameters.
    fn free_parameters(&self) -> Option<usize> {
        None
    }

    /// The variance of every coordinate of each component (k, d), in the data's own unit, squared. The coordinates are the
    /// columns of the data, or those of the basis of a [`Sketch`](crate::data::Sketch): then no diagonal covariance of the
    /// columns has them, see [`column_variances`](Self::column_variances).
    fn variances(&self) -> Array2<f64>;

    /// The variance of every column of each component (k, P), in the data's own unit, squared: the [variances](Self::variances), unless these
    /// are in the basis of a [`Sketch`](crate::data::Sketch).
    fn column_variances(&self) -> Array2<f64> {
        self.variances()
    }

    /// Parameters besides the means by name, in the data's own unit: [`variances`](Self::variances),
    /// [`proportions`](Self::proportions), and those of the family.
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let variances = self.variances().into_dyn();
        vec![
            ("variances", variances),
            ("proportions", self.proportions().into_dyn()),
        ]
    }

    /// The components that a floor of variances holds ([E20](crate::equations#e20)): their densities say nothing. A fit counts those
    /// that have more rows than columns, in [`Report::at_floor`](crate::Report::at_floor). By default there are no floors.
    fn at_floor(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The centres, and their coordinates, for a fit to move them: where squared distances are the costs, one variance is shared, and
    /// a centre may lie anywhere. It moves them in the frame, or into that of a subspace ([E39](crate::equations#e39)). `None` by
    /// default: then a phase on projected rows, or one with kept statistics ([E36](crate::equations#e36)), is an error.
    fn free_centres(&mut self) -> Option<(&mut Centres<F>, &mut Frame<F>)> {
        None
    }

    /// The component with the largest posterior for every row (n); ties go to the lower index.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) if the data has another number of columns than the
    /// model; [`Error::BasisMismatch`](crate::Error::BasisMismatch) for a sketch in other coordinates.
    fn predict(&self, data: &dyn Data<F>) -> Result<Array1<u32>> {
        predict::predict(&facts::Facts::of(self), data)
    }

    /// The weight of the rows of `data` in each component, by [`predict`](Self::predict) (k).
    fn sizes(&self, data: &dyn Data<F>) -> Result<Array1<f64>> {
        clusters::sizes(&facts::Facts::of(self), data)
    }

    /// The row of each cluster that is nearest to its mean, and its squared distance, in the data's own unit, squared; `None` for a cluster
    /// without rows.
    ///
    /// The rows of a cluster are those that [`predict`](Self::predict) gives its number. The first of equally near rows is taken. Rows of
    /// weight 0, and rows without any value, are left out. A missing value is taken to be as far from the mean as the variances say.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) for columns of categories, whose codes are labels.
    fn medoids(&self, data: &dyn Data<F>) -> Result<Vec<Option<(usize, f64)>>> {
        clusters::medoids(&facts::Facts::of(self), &self.variances(), data)
    }

    /// How much each column sets a component apart from the whole mixture (k, d), in nats: the mean, over rows of the component, of
    /// $\ln p(y_j \mid c) - \ln p(y_j)$, where $p(y_j)$ is the distribution of the column's kind with the mean, the variance and the
    /// shares of the mixture. It is a divergence, so 0 where a column says nothing. Each column counts alone, also where columns have
    /// covariances.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// use ndarray::array;
    ///
    /// let x = array![[0.0, 5.0], [0.1, 4.0], [9.0, 4.1], [9.1, 5.1]];
    /// let model = algorithms::gmm(2).build()?.fit(&Dense::new(&x)?)?.model;
    /// let nats = model.explain(); // the first column tells both clusters apart, the second says nothing
    /// assert!(nats.column(0).iter().zip(nats.column(1)).all(|(one, other)| one > other));
    /// # Ok::<(), Error>(())
    /// ```
    fn explain(&self) -> Array2<f64> {
        let means = self.means().mapv(F::to_f64);
        let shares = self.proportions();
        let shares = shares.as_slice().unwrap_or_default();
        clusters::explain(&means, &self.column_variances(), shares)
    }

    /// Predicts one row at a time, in microseconds, where many questions come one by one.
    fn predictor(&self) -> predictor::Predictor<F, &Self>
    where
        Self: Sized,
    {
        predictor::Predictor::new(self)
    }

    /// The posteriors of all components ([E2](crate::equations#e2)): (n, k), each row sums to 1.
    fn responsibilities(&self, data: &dyn Data<F>) -> Result<Array2<F>> {
        predict::responsibilities(&facts::Facts::of(self), data)
    }

    /// The `c_prime` likeliest components of every row, best first, and their posteriors renormalised over them
    /// ([E2](crate::equations#e2)): (n, c_prime) each. `c_prime` larger than the number of components is clamped.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) if `c_prime` is 0.
    fn truncated_responsibilities(
        &self,
        data: &dyn Data<F>,
        c_prime: usize,
    ) -> Result<(Array2<u32>, Array2<F>)> {
        predict::truncated_responsibilities(&facts::Facts::of(self), data, c_prime)
    }

    /// The log-densities of a block of rows, in nats, for densities in the data's own unit, of a family whose densities do not
    /// follow from costs and [`log_joint`](Self::log_joint). By default they do, unless there is a [`plain`](Self::plain) model.
    #[doc(hidden)]
    fn own_log_densities(&self, rows: &Rows<F>) -> Option<Vec<f64>> {
        let plain = self.plain()?;
        Some(predict::densities(&facts::Facts::of(plain), rows))
    }

    /// The model whose densities are those of this one, where these costs are expected ones of rows with a ridge
    /// ([E59](crate::equations#e59)). `None` by default: densities follow from costs.
    #[doc(hidden)]
    fn plain(&self) -> Option<&dyn Mixture<F>> {
        None
    }

    /// The log-density of every row, $\ln p(y_n \mid \theta)$ (n), in nats, for densities in the data's own unit; weights do
    /// not enter.
    fn log_densities(&self, data: &dyn Data<F>) -> Result<Array1<f64>> {
        predict::log_densities(&facts::Facts::of(self), data)
    }

    /// The weighted log-likelihood over all components, $\sum_n w_n \ln p(y_n \mid \theta)$, in nats, for densities in the
    /// data's own unit. The free energy ([E3](crate::equations#e3)) of any supports is at most this, if the model has
    /// parameters and no distribution over them.
    fn log_likelihood(&self, data: &dyn Data<F>) -> Result<f64> {
        predict::log_likelihood(&facts::Facts::of(self), data)
    }

    /// Rows with [missing values](crate::data::Dense::with_missing), of which the missing ones are filled in with their
    /// expectation under the known ones, $\sum_c q_{nc} E[y_{nj} | c]$ (n, d); known ones are as they were. In a
    /// [table](crate::families::Table) they are such data as a fit takes: a count is the nearest whole number, and a category the likeliest.
    fn impute(&self, data: &Dense<'_, F>) -> Result<Array2<F>> {
        predict::impute(&facts::Facts::of(self), &self.means(), data, true)
    }

    /// As [`impute`](Self::impute), with expectations of counts that need not be whole. Categories have none, and are the likeliest.
    fn expected(&self, data: &Dense<'_, F>) -> Result<Array2<F>> {
        predict::impute(&facts::Facts::of(self), &self.means(), data, false)
    }

    /// The log-density below which rows with at most this share of the weight lie, for a share between 0 and 1: rows that are
    /// less likely than that are outliers.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) for another share;
    /// [`Error::Empty`](crate::Error::Empty) without rows.
    fn density_threshold(&self, data: &dyn Data<F>, share: f64) -> Result<f64> {
        predict::density_threshold(&facts::Facts::of(self), data, share)
    }

    /// Draws `n` rows (n, d), in the data's own unit, from the density of [`log_densities`](Self::log_densities), and the components
    /// they came from (n). A `seed` gives the same rows again.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if `n` is 0, and for families of your own that do not draw, as by default.
    fn sample(&self, _n: usize, _seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let rule = "cannot be drawn from: its family has no `sample`";
        Err(Error::parameter("the model", "of your own", rule))
    }

    /// Labels, quantization error and log-likelihood together, in fewer searches than one by one.
    fn score(&self, data: &dyn Data<F>) -> Result<Score> {
        Ok(predict::score(&facts::Facts::of(self), data)?.0)
    }

    /// The weighted squared distance to the nearest mean ([E22](crate::equations#e22)), in the data's own unit, squared:
    /// $\sum_n w_n \min_c \lVert y_n - \mu_c \rVert^2$.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) if the sum leaves the range of `f64`, or the
    /// model has columns of categories, whose codes are labels.
    fn quantization_error(&self, data: &dyn Data<F>) -> Result<f64> {
        predict::quantization_error(&facts::Facts::of(self), data)
    }
}

/// A model of any family.
pub type BoxedMixture<F> = Box<dyn Mixture<F>>;

/// The result of [`Mixture::score`] on a data set, over all components.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// The likeliest component of each row (n).
    pub labels: Array1<u32>,
    /// $\sum_n w_n \min_c \lVert y_n - \mu_c \rVert^2$ ([E22](crate::equations#e22)), in the data's own unit, squared; NaN where
    /// columns hold categories, whose codes are labels.
    pub quantization_error: f64,
    /// $\sum_n w_n \ln p(y_n \mid \theta)$, in nats.
    pub log_likelihood: f64,
}

/// Means and proportions of any model, so that fits of boxed models can be printed, and unwrapped in tests.
impl<F: Float> fmt::Debug for dyn Mixture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mixture")
            .field("means", &self.means())
            .field("proportions", &self.proportions())
            .finish_non_exhaustive()
    }
}

impl<'m, F: Float> From<&'m dyn Mixture<F>> for Cost<'m, F> {
    fn from(model: &'m dyn Mixture<F>) -> Self {
        model.cost()
    }
}

/// All that a family says of itself: answers follow from it.
impl<F: Float, M: Mixture<F> + ?Sized> Mixture<F> for Box<M> {
    fn cost(&self) -> Cost<'_, F> {
        (**self).cost()
    }
    fn centres(&self) -> &Centres<F> {
        (**self).centres()
    }
    fn frame(&self) -> &Frame<F> {
        (**self).frame()
    }
    fn log_joint(&self) -> LogJoint {
        (**self).log_joint()
    }
    fn prior_terms(&self) -> f64 {
        (**self).prior_terms()
    }
    fn means(&self) -> Array2<F> {
        (**self).means()
    }
    fn proportions(&self) -> Array1<f64> {
        (**self).proportions()
    }
    fn free_parameters(&self) -> Option<usize> {
        (**self).free_parameters()
    }
    fn variances(&self) -> Array2<f64> {
        (**self).variances()
    }
    fn column_variances(&self) -> Array2<f64> {
        (**self).column_variances()
    }
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        (**self).parameters()
    }
    fn at_floor(&self) -> Vec<usize> {
        (**self).at_floor()
    }
    fn free_centres(&mut self) -> Option<(&mut Centres<F>, &mut Frame<F>)> {
        (**self).free_centres()
    }
    fn own_log_densities(&self, rows: &Rows<F>) -> Option<Vec<f64>> {
        (**self).own_log_densities(rows)
    }
    fn plain(&self) -> Option<&dyn Mixture<F>> {
        (**self).plain()
    }
    fn explain(&self) -> Array2<f64> {
        (**self).explain()
    }
    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        (**self).sample(n, seed)
    }
}
