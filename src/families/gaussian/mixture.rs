//! A mixture of Gaussians: its parameters, and the costs of rows under it.

use super::common::Common;
use super::costs::Costs;
use super::covariance::Covariance;
use super::covariances::{Covariances, Parameters};
use super::floors::Floors;
use super::kind::Kind;
use super::prior::Advance;
use crate::base::cached::Cached;
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::{Error, Result, require, same_columns, same_length};
use crate::base::float::{Float, held_in_range};
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::costs::Cost;
use crate::data::Summary;
use crate::families::proportions::{Proportions, components};
use crate::families::variances::is_proper;
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use crate::rows::{Basis, Centres, Frame};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayView, ArrayView1, ArrayView2, Dimension, arr0};
use std::f64::consts::PI;

/// A mixture of Gaussians with covariances of one [kind](Covariance), and a mixing proportion each.
///
/// $$p(y \mid \theta) = \sum_{c=1}^{C} \pi_c \mathcal N(y; \mu_c, \Sigma_c)$$
///
/// Its predictions are in the trait [`Mixture`].
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture<F> {
    pub(in crate::families) theta: Parameters<F>,
    pub(super) costs: Costs<F>,
    /// The means that were given, or the centres out of the frame: few updates of a fit are asked for them.
    means: Cached<Array2<F>>,
    /// Without a ridge, made when densities are asked for.
    plain: Cached<Box<Self>>,
}

impl<F: Float> GaussianMixture<F> {
    /// Means (k, d), one variance for all columns of all components, and equal proportions.
    pub fn tied_spherical(means: ArrayView2<'_, F>, variance: f64) -> Result<Self> {
        let equal = Array1::from_elem(means.nrows(), 1.0 / means.nrows() as f64);
        let kind = Covariance::TiedSpherical;
        Self::from_parameters(kind, means, arr0(variance).view(), equal.view())
    }

    /// Means (k, d), covariances of this kind, and proportions (k). A component of proportion 0 is one that was discarded.
    ///
    /// | kind | shape of the covariances |
    /// |---|---|
    /// | `TiedSpherical` | (): the variance of every column; proportions must be equal |
    /// | `Spherical` | (k): variances |
    /// | `Diagonal` | (k, d): variances |
    /// | `Tied` | (d, d): a symmetric and positive definite matrix |
    /// | `Full` | (k, d, d): such matrices |
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::NotFinite`] or [`Error::TooLarge`] for the means. [`Error::LengthMismatch`] or
    /// [`Error::DimensionMismatch`] for another number of variances or proportions. [`Error::Parameter`] for variances
    /// that are not positive and finite, for matrices that are not symmetric and positive definite, for another number of
    /// axes, and for proportions that are negative or do not sum to 1.
    pub fn from_parameters(
        kind: Covariance,
        means: ArrayView2<'_, F>,
        variances: ArrayView<'_, f64, impl Dimension>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        Self::of_means(kind, means, None, variances, proportions)
    }

    /// As [`from_parameters`](Self::from_parameters), with centres at the exact means (k, d), if there are any.
    pub(super) fn of_means(
        kind: Covariance,
        means: ArrayView2<'_, F>,
        exact: Option<&Array2<f64>>,
        variances: ArrayView<'_, f64, impl Dimension>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        let (k, dim) = means.dim();
        let shape = kind.shape(k, dim);
        let name = "axes of covariances";
        let axes = variances.ndim();
        let rule = "must be as many as this kind has: components, columns, and columns again";
        require(axes == shape.len(), name, axes, rule)?;
        for (axis, size) in shape.into_iter().enumerate() {
            match axis {
                0 => same_length("variances", size, variances.shape()[axis])?,
                _ => same_columns("variances", size, variances.shape()[axis])?,
            }
        }
        let rule = "has loadings, too: see `from_factors`";
        let given = kind.factors().is_none();
        require(given, "kind", format!("{kind:?}"), rule)?;
        let variances: Vec<f64> = variances.iter().copied().collect();
        let largest = check_variances::<F>(kind, &variances, dim)?;
        let given = Proportions::check(proportions, k)?;
        let proportions = if kind.is_one_variance() {
            given.to_stay_equal()?
        } else {
            given
        };
        // Wide enough for the means and for the deviations from them.
        let frame = Frame::around(&summary, largest.sqrt());
        let enter = |v: &f64| frame.enter_product(0, 0, *v);
        let scaled: Vec<f64> = variances.iter().map(enter).collect();
        let lost = |variance: f64| {
            let rule = "is too small compared with the means and the largest: its square root is lost in them";
            Error::parameter("variance", frame.leave_square(variance), rule)
        };
        let mut columns = kind.diagonals(&scaled, dim);
        if let Some(variance) = columns.find(|v| *v < f64::MIN_POSITIVE) {
            return Err(lost(variance));
        }
        let centres = match exact {
            Some(exact) => Centres::enter_wide(exact, &frame),
            None => Centres::enter(means, &frame),
        };
        let mut covariances = Covariances::new(kind, &centres);
        if let Some(variance) = covariances.kind_mut().set(&scaled)? {
            return Err(lost(variance));
        }
        let mut theta = Parameters {
            common: Common {
                frame,
                centres,
                means: Some(means.iter().copied().collect()),
                unit: 1.0,
                proportions,
                floors: Floors {
                    least: f64::MIN_POSITIVE,
                    relative: Vec::new(),
                },
                prior: Advance::default(),
            },
            covariances,
        };
        theta.set_given()?;
        Ok(Self::whole(theta))
    }

    pub(super) fn new(theta: Parameters<F>, watch: Watch<'_>) -> Result<Self> {
        Ok(Self {
            costs: theta.covariances.kind().costs(&theta.common, watch)?,
            theta,
            means: Cached::default(),
            plain: Cached::default(),
        })
    }

    /// One that nobody waits for.
    pub(in crate::families) fn whole(theta: Parameters<F>) -> Self {
        unwatched(Self::new(theta, None))
    }

    /// With costs that follow from other variances.
    pub(in crate::families) fn renew(&mut self, watch: Watch<'_>) -> Result<()> {
        self.costs = self.kind().costs(self.common(), watch)?;
        self.plain = Cached::default();
        Ok(())
    }

    /// With the densities of the parameters for costs.
    pub(in crate::families) fn without_ridge(&self) -> Self {
        let mut theta = self.theta.clone();
        theta.common.prior.ridge.clear();
        parallel::alone(|| Self::whole(theta))
    }

    fn common(&self) -> &Common<F> {
        &self.theta.common
    }

    fn kind(&self) -> &dyn Kind<F> {
        self.theta.covariances.kind()
    }

    /// Forgets what other means had.
    pub(super) fn forget(&mut self) {
        self.means = Cached::default();
        self.plain = Cached::default();
        self.theta.common.means = None;
    }

    /// The variances of the coordinates of component `c` (d), in the data's own unit, squared.
    fn coordinates(&self, c: usize) -> Array1<f64> {
        let variances = unwatched(self.kind().variances(c, None));
        let frame = &self.common().frame;
        let leave = |j: usize| frame.leave_product(j, j, variances[j % variances.len()]);
        (0..self.common().dim()).map(leave).collect()
    }

    /// A row (n, d), in the data's own unit, of each of these components.
    pub(in crate::families) fn drawn(&self, labels: &Array1<u32>, rng: &mut Rng) -> Array2<F> {
        let common = self.common();
        let kind = self.kind();
        let whitenings = &self.costs.whitenings;
        let inverses = whitenings
            .iter()
            .map(|whitening| unwatched(whitening.inverse(None)));
        let factors: Vec<_> = inverses.collect();
        let dim = common.dim();
        let unit = common.unit.sqrt();
        let mut normals = vec![0.0; dim];
        let mut points = Array2::from_elem((labels.len(), dim), F::zero());
        for (mut row, c) in points.outer_iter_mut().zip(labels) {
            let c = *c as usize;
            normals.fill_with(|| rng.normal());
            let loadings = kind.loadings_of(common, c);
            let scores: Vec<f64> = loadings.clone().map(|_| rng.normal()).collect();
            let variances = kind.numbers_of(c);
            for (j, (z, mean)) in row.iter_mut().zip(common.centre(c)).enumerate() {
                let step = match factors.get(c % factors.len().max(1)) {
                    Some(factor) => {
                        let terms = factor[j * dim..].iter().zip(&normals[..=j]);
                        unit * terms.map(|(l, e)| l * e).sum::<f64>()
                    }
                    None => {
                        let terms = loadings.clone().zip(&scores);
                        let along = terms.map(|(w, e)| w[j].to_f64() * e).sum::<f64>();
                        variances[j % variances.len()].sqrt() * normals[j] + along
                    }
                };
                *z = F::from_f64(mean + step);
            }
        }
        let points = Centres::of_coordinates(points.view()).leave(&common.frame);
        points.mapv_into(|x| held_in_range(x.to_f64()))
    }

    /// The kind of the covariances.
    #[must_use]
    pub fn covariance_kind(&self) -> Covariance {
        self.theta.covariance()
    }

    /// The means (k, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        let common = self.common();
        let shape = (common.k(), common.frame.dim());
        let means = || match &common.means {
            Some(means) => Array2::from_shape_vec(shape, means.clone()).expect("k times columns"),
            None => common.centres.leave(&common.frame),
        };
        self.means.get(means).view()
    }

    /// The mean variance of a column, of components by their proportion, in the data's own unit, squared: for
    /// [`Covariance::TiedSpherical`] the one there is. It is in the unit of the columns if these are
    /// [standardised](Frame::is_standardised).
    #[must_use]
    pub fn variance(&self) -> f64 {
        let variance = unwatched(self.theta.mean_variance(None));
        self.common().frame.leave_square(variance)
    }

    /// The covariance of component `c` in the columns of the data (P, P), in the data's own unit, squared, whatever
    /// coordinates the model was fitted in: diagonal only if these were the columns.
    ///
    /// $$(H D)^\top \operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cP}^2) \thinspace H D$$
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is no component `c`.
    pub fn covariance(&self, c: usize) -> Result<Array2<f64>> {
        let rule = "must be below the number of components";
        require(c < self.common().k(), "component", c, rule)?;
        Ok(self.covariance_of(c))
    }

    pub(super) fn covariance_of(&self, c: usize) -> Array2<f64> {
        let common = self.common();
        let dim = common.dim();
        if let Some(matrix) = self.kind().matrix(c, None) {
            let mut covariance = unwatched(matrix);
            let places = covariance.indexed_iter_mut();
            places.for_each(|((i, j), v)| *v = common.frame.leave_product(i, j, *v));
            return covariance;
        }
        let variances = self.coordinates(c);
        let mut covariance = Array2::zeros((dim, dim));
        for loadings in self.kind().loadings_of(common, c) {
            let pairs = covariance.indexed_iter_mut().filter(|((i, j), _)| i != j);
            pairs.for_each(|((i, j), v)| {
                let product = loadings[i].to_f64() * loadings[j].to_f64();
                *v += common.frame.leave_product(i, j, product);
            });
        }
        let Some(mut axes) = self.axes() else {
            covariance.diag_mut().assign(&variances);
            return covariance;
        };
        // Each as long as the deviation along it.
        for (mut axis, variance) in axes.outer_iter_mut().zip(&variances) {
            axis *= variance.sqrt();
        }
        general_mat_mul(1.0, &axes.t(), &axes, 0.0, &mut covariance);
        covariance
    }

    /// The axes of the basis, if the model was fitted on a sketch.
    fn axes(&self) -> Option<Array2<f64>> {
        let axes = |basis: &Basis| basis.inverse(Array2::eye(self.common().dim()).view());
        let axes = self.common().frame.basis().map(axes);
        axes.map(|axes| axes.expect("as many coordinates as the basis has"))
    }

    /// The covariances of all components (k, P, P), as [`covariance`](Self::covariance).
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        let k = self.common().k();
        let columns = self.common().frame.dim();
        let mut covariances = Array3::zeros((k, columns, columns));
        for (c, mut covariance) in covariances.outer_iter_mut().enumerate() {
            covariance.assign(&self.covariance_of(c));
        }
        covariances
    }
}

/// The largest variance, if all are positive and finite, and if the type can hold their ratios: costs are in units of one of
/// them. Matrices must be symmetric and positive definite.
fn check_variances<F: Float>(kind: Covariance, values: &[f64], dim: usize) -> Result<f64> {
    let largest = kind.diagonals(values, dim).fold(0.0, f64::max);
    for variance in kind.diagonals(values, dim) {
        let proper = variance > 0.0 && variance.is_finite();
        require(proper, "variance", variance, "must be positive and finite")?;
        let in_range = variance * F::LARGEST_COST.sqrt() >= largest;
        let rule = "is too small: the largest may be 3e18 times as large in f32, 3e152 in f64";
        require(in_range, "variance", variance, rule)?;
    }
    let mut matrices = kind.matrices(values, dim);
    let proper = matrices.all(|matrix| is_proper(matrix, dim));
    let rule = "must be symmetric and positive definite";
    require(proper, "covariances", "a matrix", rule)?;
    Ok(largest)
}

impl<F: Float> Mixture<F> for GaussianMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        self.kind().cost(self.common(), &self.costs)
    }

    fn centres(&self) -> &Centres<F> {
        &self.common().centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.common().frame
    }

    /// From costs in units of a variance to log-joints (E1, E31, E33). Costs of one variance are squared distances alone, without a ridge.
    fn log_joint(&self) -> LogJoint {
        let common = self.common();
        let ridge = if self.costs.are_squared() {
            common.prior.ridge_of(0) / common.unit
        } else {
            0.0
        };
        let volume = (2.0 * PI * common.unit).ln();
        LogJoint {
            alpha: -(common.k() as f64).ln(),
            gamma: common.frame.log_density_shift() - 0.5 * (volume + ridge),
            beta: 0.5 / common.unit,
        }
    }

    /// The logarithm of the [prior](crate::families::Prior) density, less that at its mode.
    fn prior_terms(&self) -> f64 {
        self.theta.prior_terms()
    }

    fn plain(&self) -> Option<&dyn Mixture<F>> {
        let has_ridge = !self.common().prior.ridge.is_empty();
        let make = || Box::new(self.without_ridge());
        has_ridge.then(|| &**self.plain.get(make) as _)
    }

    fn means(&self) -> Array2<F> {
        self.means().to_owned()
    }

    fn proportions(&self) -> Array1<f64> {
        self.common().proportions.values.iter().copied().collect()
    }

    fn free_parameters(&self) -> Option<usize> {
        let common = self.common();
        Some(common.k() * common.dim() + self.kind().free() + common.proportions.free())
    }

    fn at_floor(&self) -> Vec<usize> {
        self.kind().at_floor(self.common())
    }

    fn free_centres(&mut self) -> Option<(&mut Centres<F>, &mut Frame<F>)> {
        if !self.costs.are_squared() {
            return None;
        }
        self.forget();
        let common = &mut self.theta.common;
        Some((&mut common.centres, &mut common.frame))
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.common().proportions.values, n, &mut rng)?;
        Ok((self.drawn(&labels, &mut rng), labels))
    }

    /// With `covariances` (d, d) or (k, d, d) where they have all pairs of columns, `loadings` (k, d, q) and `noise` (k, d) with
    /// factors.
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let mut parameters = vec![
            ("variances", Mixture::variances(self).into_dyn()),
            ("proportions", Mixture::proportions(self).into_dyn()),
        ];
        let kind = self.covariance_kind();
        let common = self.common();
        if kind.factors().is_some() {
            parameters.push(("loadings", self.loadings().into_dyn()));
            parameters.push(("noise", self.noise().into_dyn()));
        } else if kind.has_dependent_columns() {
            let covariance = |c: usize| self.covariance_of(c);
            let covariances = kind.of_matrices(common.k(), common.dim(), covariance);
            parameters.push(("covariances", covariances));
        }
        parameters
    }

    fn variances(&self) -> Array2<f64> {
        let mut variances = Array2::zeros((self.common().k(), self.common().dim()));
        for (c, mut row) in variances.outer_iter_mut().enumerate() {
            row.assign(&self.coordinates(c));
        }
        variances
    }

    fn column_variances(&self) -> Array2<f64> {
        let variances = Mixture::variances(self);
        match self.axes() {
            Some(axes) => variances.dot(&axes.mapv(|x| x * x)),
            None => variances,
        }
    }
}

/// A mixture in a file of another one: its parameters, without the name of the family.
#[cfg(feature = "files")]
pub(in crate::families) mod alone {
    use super::{Float, GaussianMixture, Parameters};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::families) fn serialize<F: Float, S: Serializer>(
        model: &GaussianMixture<F>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        model.theta.serialize(to)
    }

    pub(in crate::families) fn deserialize<'de, F: Float, D: Deserializer<'de>>(
        from: D,
    ) -> Result<GaussianMixture<F>, D::Error> {
        let theta = Parameters::deserialize(from)?;
        theta.check().map_err(serde::de::Error::custom)?;
        Ok(GaussianMixture::whole(theta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense};
    use crate::rows::Rows;

    /// Rows far from all means, and so from their frame, where squared distances round by more than 1.
    #[test]
    fn the_margin_bounds_the_rounding_of_costs_far_away() {
        let mut rng = Rng::from_seed(6);
        let mut rows_of = |n: usize| {
            let far = if n >= 600 { 3e4 } else { 0.0 };
            [far + rng.normal() as f32, rng.normal() as f32, far]
        };
        let x: Vec<_> = (0..640).map(&mut rows_of).collect();
        let x = Array2::from_shape_fn((640, 3), |(n, j)| x[n][j]);
        let means = Array2::from_shape_fn((10, 3), |(c, j)| x[[c, j]]);
        let variances = Array1::from_elem(10, 0.7);
        let equal = Array1::from_elem(10, 0.1);
        let kind = Covariance::Spherical;
        let means = means.view();
        let mixture =
            GaussianMixture::from_parameters(kind, means, variances.view(), equal.view()).unwrap();
        let data = Dense::new(x.view()).unwrap();
        let mut rows = Rows::default();
        let frame = Mixture::<f32>::frame(&mixture);
        data.load(600..640, frame, &mut rows).unwrap();
        let mut fast = Vec::new();
        let mut direct = Vec::new();
        let mut felt = 0.0f32;
        let cost = mixture.cost();
        cost.all(&rows, &mut fast);
        let ids: Vec<u32> = (0..10).collect();
        for i in 0..rows.len() {
            cost.some(&rows, i, &ids, &mut direct);
            let margin = cost.margin(&rows, i, f32::INFINITY);
            for (a, b) in fast[i * 10..].iter().zip(&direct) {
                felt = felt.max((a - b).abs());
                assert!(
                    (a - b).abs() <= margin,
                    "row {i}: {a} and {b}, not within {margin}"
                );
            }
        }
        assert!(felt > 1.0, "{felt}");
    }

    /// Tiles of products are wider than few components: many columns of these would be multiplied for nothing.
    #[test]
    fn few_diagonal_components_of_many_columns_are_no_products() {
        let mixture = |k: usize, d: usize| {
            let means = Array2::from_shape_fn((k, d), |(c, j)| (c + j % 7) as f32);
            let variances = Array2::ones((k, d)) * 0.5;
            let proportions = Array1::ones(k);
            let kind = Covariance::Diagonal;
            let proportions = proportions / k as f64;
            let variances = variances.view();
            let proportions = proportions.view();
            GaussianMixture::from_parameters(kind, means.view(), variances, proportions).unwrap()
        };
        for (k, d, are_products) in [
            (1, 784, false),
            (2, 32, false),
            (3, 784, false),
            (4, 90, false),
            (3, 8, true),
            (5, 784, true),
            (100, 90, true),
        ] {
            assert_eq!(
                mixture(k, d).cost().products().is_some(),
                are_products,
                "{k}, {d}"
            );
        }
    }
}
