//! Dirichlet process mixtures of Gaussians with full precision matrices: variational inference with weights.

use super::normal_wishart::{self, Cholesky, FARTHEST, NormalWishart, Prior, Sticks};
use super::{MStep, steps_with_one_variance, variance_floor};
use crate::block::Block;
use crate::data::{Centres, Data, DenseRows, Frame, Rows, Scores};
use crate::error::{Error, Result, positive};
use crate::float::Float;
use crate::kernels::quadratic::{self, Columns};
use crate::kernels::{stride, vectorised};
use crate::mixture::{self, Mixture};
use crate::parallel::{self, BLOCK};
use crate::posterior::{Likelihood, LogJoint};
use crate::rng::Rng;
use crate::stage::Stage;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Slice};
use std::f64::consts::PI;

/// A Dirichlet process mixture, truncated at $T$ components (the builder's clusters), with Normal-Wishart components
/// (E29, E30; \[DP\]; Bishop, PRML, 10.2; Blei and Jordan 2006).
///
/// $$v_t \sim \text{Beta}(1, \alpha), \quad \pi_t = v_t \prod_{s \lt t} (1 - v_s), \quad \Lambda_t \sim \mathcal W(W_0, \nu_0), \quad \mu_t \mid \Lambda_t \sim \mathcal N(m_0, (\beta_0 \Lambda_t)^{-1})$$
///
/// Where the other families find parameters, this one finds a distribution over them,
///
/// $$q(v_t) = \text{Beta}(\gamma_{t1}, \gamma_{t2}), \qquad q(\mu_t, \Lambda_t) = \mathcal N(\mu_t; m_t, (\beta_t \Lambda_t)^{-1}) \thinspace \mathcal W(\Lambda_t; W_t, \nu_t)$$
///
/// and the free energy of its report is the complete evidence lower bound (E30): every constant is in it.
///
/// **Update** (E29), with the mass $N_t$ and the weighted mean $\bar y_t$ of each component:
///
/// $$\gamma_{t1} = 1 + N_t, \quad \gamma_{t2} = \alpha + \sum_{s \gt t} N_s, \quad \beta_t = \beta_0 + N_t, \quad \nu_t = \nu_0 + N_t, \quad m_t = \frac{\beta_0 m_0 + N_t \bar y_t}{\beta_t}$$
///
/// $$W_t^{-1} = W_0^{-1} + \sum_n w_n q_{nt} (y_n - m_t)(y_n - m_t)^T + \beta_0 (m_t - m_0)(m_t - m_0)^T$$
///
/// **Priors.** By default they follow the data, so that a fit does not depend on its unit or origin: $m_0$ is the weighted
/// mean of all rows and $W_0^{-1}$ their weighted covariance, $\beta_0 = 1$ and $\nu_0 = D$, also where EM runs on a
/// coreset. A variance below the floor (E20) is raised to it; where columns determine one another to within 1e-8 of
/// their variance, each variance grows by that share. [`paper_priors`](Self::paper_priors) are those of \[DP\].
///
/// **Start**: the means at the seeds, each with the mass $W / T$ and the same variance in every direction, from the first
/// search (E8). This is a proper $q$, so the first free energy is a bound too. A truncated search keeps to one variance
/// for the first two M-steps, as in [`Isotropic`](super::Isotropic).
///
/// **Weights count points** here, and matter beyond their ratios: the more there are, the less the prior. One whose total
/// weight is lost in rounding beside that of the data (some 1e12) no longer keeps a component from collapsing onto few
/// points.
///
/// Works on [`Dense`](crate::data::Dense) data. Time $n T D^2$ per iteration; the sums take $T D^2$ numbers per shard of
/// the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcess {
    concentration: f64,
    mean_precision: f64,
    degrees: Option<f64>,
    mean: PriorMean,
    scale: PriorScale,
}

#[derive(Clone, Debug, PartialEq)]
enum PriorMean {
    OfData,
    Zero,
    Given(Array1<f64>),
}

#[derive(Clone, Debug, PartialEq)]
enum PriorScale {
    OfData,
    /// This multiple of the identity.
    Multiple(f64),
    Given(Array2<f64>),
}

impl DirichletProcess {
    /// With the concentration $\alpha \gt 0$: the larger, the more components are expected. About
    /// $\alpha \ln(1 + W / \alpha)$ of them, for points of total weight $W$.
    #[must_use]
    pub fn new(concentration: f64) -> Self {
        Self {
            concentration,
            mean_precision: 1.0,
            degrees: None,
            mean: PriorMean::OfData,
            scale: PriorScale::OfData,
        }
    }

    /// $\beta_0 \gt 0$: what the prior mean weighs, in points. Default 1.
    #[must_use]
    pub fn mean_precision(self, mean_precision: f64) -> Self {
        Self {
            mean_precision,
            ..self
        }
    }

    /// $\nu_0 \gt D - 1$: what the prior precision weighs, in points. Default $D$, the least whole number there is.
    #[must_use]
    pub fn degrees_of_freedom(self, degrees_of_freedom: f64) -> Self {
        Self {
            degrees: Some(degrees_of_freedom),
            ..self
        }
    }

    /// $m_0$ (d), in the data's own unit. Default: the weighted mean of the data.
    #[must_use]
    pub fn mean(self, mean: ArrayView1<'_, f64>) -> Self {
        Self {
            mean: PriorMean::Given(mean.to_owned()),
            ..self
        }
    }

    /// $W_0$ (d, d), symmetric and positive definite: precisions, in the data's own unit to the power -2. The prior
    /// expects the precision $\nu_0 W_0$. Default: the inverse of the weighted covariance of the data.
    #[must_use]
    pub fn scale(self, scale: ArrayView2<'_, f64>) -> Self {
        Self {
            scale: PriorScale::Given(scale.to_owned()),
            ..self
        }
    }

    /// The priors of \[DP\]: $m_0 = 0$, $W_0 = 10 I$, $\beta_0 = 1$, $\nu_0 = D$. They suit data of variance about 1
    /// around 0, and depend on unit and origin.
    #[must_use]
    pub fn paper_priors(self) -> Self {
        Self {
            concentration: self.concentration,
            mean_precision: 1.0,
            degrees: None,
            mean: PriorMean::Zero,
            scale: PriorScale::Multiple(10.0),
        }
    }

    /// The prior in the coordinates of `frame`.
    fn prior<D: Data>(&self, frame: &Frame<D::Float>, data: &D) -> Result<Prior> {
        let dim = data.dim();
        let degrees = self.degrees.unwrap_or(dim as f64);
        if degrees <= dim as f64 - 1.0 {
            let rule = "must be greater than the number of columns less 1";
            return Err(Error::parameter("degrees_of_freedom", degrees, rule));
        }
        let mismatch = |what, found| Error::DimensionMismatch {
            what,
            expected: dim,
            found,
        };
        let of_data = match (&self.mean, &self.scale) {
            (PriorMean::OfData, _) | (_, PriorScale::OfData) => Some(moments(frame, data)),
            _ => None,
        };
        let enter = |mean: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            let origin = frame.offset().iter().map(|o| o.to_f64());
            mean.zip(origin)
                .map(|(m, o)| (m - o) * frame.inverse_unit())
                .collect()
        };
        let mean = match (&self.mean, &of_data) {
            (PriorMean::OfData, Some((mean, _))) => mean.clone(),
            (PriorMean::Given(mean), _) if mean.len() != dim => {
                return Err(mismatch("mean", mean.len()));
            }
            (PriorMean::Given(mean), _) => enter(&mut mean.iter().copied()),
            _ => enter(&mut std::iter::repeat_n(0.0, dim)),
        };
        let inverse_scale = match (&self.scale, of_data) {
            (PriorScale::OfData, Some((_, covariance))) => {
                proper(covariance, variance_floor(frame, data.summary()), dim)
            }
            (PriorScale::Given(scale), _) if scale.nrows() != dim => {
                return Err(mismatch("scale", scale.nrows()));
            }
            (PriorScale::Given(scale), _) => inverse_of(scale.view()).unwrap_or_default(),
            (PriorScale::Multiple(multiple), _) => diagonal(1.0 / multiple, dim),
            _ => Vec::new(),
        };
        let scaled = match self.scale {
            PriorScale::OfData => inverse_scale,
            _ => {
                let squared = frame.inverse_unit().powi(2);
                inverse_scale.into_iter().map(|x| x * squared).collect()
            }
        };
        let (alpha, beta) = (self.concentration, self.mean_precision);
        let finite = scaled.len() == dim * dim && mean.iter().all(|m| m.is_finite());
        finite
            .then(|| Prior::new(alpha, beta, degrees, mean, scaled))
            .flatten()
            .ok_or_else(|| {
                let rule = "the prior cannot be expressed in the unit of the data, which is too far from it";
                Error::parameter("scale", frame.unit(), rule)
            })
    }
}

impl Stage for DirichletProcess {
    fn check(&self, _clusters: usize) -> Result<()> {
        let rule = "must be between 1e-100 and 1e12";
        for (name, value) in [
            ("concentration", self.concentration),
            ("mean_precision", self.mean_precision),
            ("degrees_of_freedom", self.degrees.unwrap_or(1.0)),
        ] {
            // Beyond these, gamma functions and the squares of reciprocals leave the range of `f64`, or its digits.
            if !(1e-100..=1e12).contains(&value) {
                return Err(Error::parameter(name, value, rule));
            }
        }
        if let PriorMean::Given(mean) = &self.mean
            && let Some(column) = mean.iter().position(|m| !m.is_finite())
        {
            let (what, row) = ("mean", 0);
            return Err(Error::NotFinite { what, row, column });
        }
        if let PriorScale::Given(scale) = &self.scale {
            let (expected, found) = scale.dim();
            let what = "scale";
            if expected != found {
                return Err(Error::DimensionMismatch {
                    what,
                    expected,
                    found,
                });
            }
            if let Some(((row, column), _)) = scale.indexed_iter().find(|(_, x)| !x.is_finite()) {
                return Err(Error::NotFinite { what, row, column });
            }
            for ((i, j), &x) in scale.indexed_iter() {
                let size = (scale[[i, i]] * scale[[j, j]]).abs().sqrt();
                if (x - scale[[j, i]]).abs() > 1e-9 * size {
                    let value = format!("{x} in row {i}, column {j}");
                    return Err(Error::parameter(what, value, "must be symmetric"));
                }
            }
            if inverse_of(scale.view()).is_none() {
                let value = format!("a {expected} x {expected} matrix");
                return Err(Error::parameter(what, value, "must be positive definite"));
            }
        }
        Ok(())
    }
}

/// The inverse of a symmetric matrix (d, d); `None` unless it is positive definite.
fn inverse_of(matrix: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
    let dim = matrix.nrows();
    let values: Vec<f64> = matrix.iter().copied().collect();
    let inverse = normal_wishart::inverse(&Cholesky::of(&values, dim)?.factor, dim);
    let product = normal_wishart::product((&inverse, true), (&inverse, false), dim);
    product.iter().all(|x| x.is_finite()).then_some(product)
}

fn diagonal(value: f64, dim: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    for j in 0..dim {
        matrix[j * (dim + 1)] = value;
    }
    matrix
}

/// Weighted mean (d) and covariance (d, d; its lower half) of the data, in the coordinates of `frame`: from sums about
/// its mean, which is that of the data but for rounding.
fn moments<D: Data>(frame: &Frame<D::Float>, data: &D) -> (Vec<f64>, Vec<f64>) {
    /// Parts of the data: each has its own sums.
    const PARTS: usize = 32;
    let (n, dim) = (data.len(), data.dim());
    let total = data.summary().total_weight;
    let size = n.div_ceil(PARTS).next_multiple_of(BLOCK);
    let parts = parallel::map_blocks(n, size, |_, range| {
        let (mut first, mut second) = (vec![0.0; dim], vec![0.0; dim * dim]);
        let (mut rows, mut apart, mut weighted) = (D::Rows::default(), Vec::new(), Vec::new());
        for from in range.clone().step_by(BLOCK) {
            data.load(from..(from + BLOCK).min(range.end), frame, &mut rows);
            apart.clear();
            weighted.clear();
            for i in 0..rows.len() {
                let (row, weight) = (rows.to_centre(i), rows.weight(i) / total);
                let from = apart.len();
                let places = row[..dim].iter().zip(&frame.mean()[..dim]);
                apart.extend(places.map(|(z, mean)| z.to_f64() - mean.to_f64()));
                for (sum, z) in first.iter_mut().zip(&apart[from..]) {
                    *sum += weight * z;
                }
                weighted.extend(apart[from..].iter().map(|z| weight * z));
            }
            add_products(&weighted, &apart, dim, &mut second);
        }
        (first, second)
    });
    let (mut mean, mut covariance) = (vec![0.0; dim], vec![0.0; dim * dim]);
    for (first, second) in parts {
        add(&mut mean, &first);
        add(&mut covariance, &second);
    }
    for i in 0..dim {
        for j in 0..dim {
            covariance[i * dim + j] -= mean[i] * mean[j];
        }
    }
    for (mean, of_frame) in mean.iter_mut().zip(&frame.mean()[..dim]) {
        *mean += of_frame.to_f64();
    }
    (mean, covariance)
}

/// A covariance made a proper inverse scale matrix: it changes only where it has to.
fn proper(mut covariance: Vec<f64>, least_variance: f64, dim: usize) -> Vec<f64> {
    /// Columns that determine one another to within this share of their variance are taken to do so exactly. Sums
    /// over a million rows still leave half of the digits of what is beyond it.
    const LEAST: f64 = 1e-8;
    for j in 0..dim {
        let variance = &mut covariance[j * (dim + 1)];
        *variance = variance.max(least_variance);
    }
    let independent = Cholesky::of(&covariance, dim).is_some_and(|c| c.least_pivot >= LEAST);
    if !independent {
        for j in 0..dim {
            covariance[j * (dim + 1)] *= 1.0 + LEAST;
        }
    }
    covariance
}

fn add(total: &mut [f64], part: &[f64]) {
    for (total, x) in total.iter_mut().zip(part) {
        *total += x;
    }
}

/// Adds the lower half of $A^T B$, for two lists of rows, to a matrix (d, d); what is above it is left undefined.
fn add_products(a: &[f64], b: &[f64], dim: usize, into: &mut [f64]) {
    let shape = (a.len() / dim, dim);
    let a = ArrayView2::from_shape(shape, a).expect("whole rows");
    let b = ArrayView2::from_shape(shape, b).expect("whole rows");
    let mut into = ArrayViewMut2::from_shape((dim, dim), into).expect("d x d numbers");
    // In strips of columns, each from the diagonal down.
    const STRIP: usize = 24;
    for from in (0..dim).step_by(STRIP) {
        let columns = Slice::from(from..dim.min(from + STRIP));
        let below = Slice::from(from..);
        let (a, b) = (a.slice_axis(Axis(1), below), b.slice_axis(Axis(1), columns));
        let mut into = into.slice_axis_mut(Axis(0), below);
        let mut into = into.slice_axis_mut(Axis(1), columns);
        general_mat_mul(1.0, &a.t(), &b, 1.0, &mut into);
    }
}

/// Mass, first and second moments of every component about its current mean, as in [`DirichletProcess`].
#[derive(Clone, Debug)]
pub struct Scatter {
    dim: usize,
    /// (k).
    mass: Vec<f64>,
    /// (k, d).
    first: Vec<f64>,
    /// (k, d, d), of which the lower half counts.
    second: Vec<f64>,
}

impl<F: Float, D: Data<Float = F, Rows = DenseRows<F>>> MStep<D> for DirichletProcess {
    type Model = DirichletProcessMixture<F>;
    type Statistics = Scatter;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &D) -> Result<Self::Model> {
        let prior = self.prior(&frame, data)?;
        let least_variance = variance_floor(&frame, data.summary());
        let variance = data.summary().mean_variance() * frame.inverse_unit().powi(2);
        let variance = variance.max(least_variance);
        let components = (0..seeds.len())
            .map(|c| {
                let mean = seeds.row(c)[..seeds.dim()].iter().map(|z| z.to_f64());
                NormalWishart::isotropic(&prior, 0.0, mean.collect(), variance)
            })
            .collect();
        let scores = Scored::Distances { variance };
        Ok(DirichletProcessMixture {
            sticks: Sticks::new(prior.concentration, &vec![0.0; seeds.len()]),
            means: seeds.leave(&frame),
            centres: seeds,
            frame,
            prior,
            components,
            least_variance,
            scores,
            prior_terms: 0.0,
        })
    }

    fn initial_searches(&self) -> usize {
        // Starting the variance changes the balance between proportions and distances.
        1
    }

    fn restricted_steps(&self, truncated: bool) -> usize {
        steps_with_one_variance(truncated)
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let k = model.components.len();
        let variance = (first.best / first.entries)
            .max(model.least_variance)
            .min(FARTHEST);
        let mass = first.weight / k as f64;
        for component in &mut model.components {
            let mean = std::mem::take(&mut component.mean);
            *component = NormalWishart::isotropic(&model.prior, mass, mean, variance);
        }
        model.sticks = Sticks::new(model.prior.concentration, &vec![mass; k]);
        model.renew();
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        let (k, dim) = (model.components.len(), model.centres.dim());
        Scatter {
            dim,
            mass: vec![0.0; k],
            first: vec![0.0; k * dim],
            second: vec![0.0; k * dim * dim],
        }
    }

    fn statistics_size(&self, model: &Self::Model) -> usize {
        model.components.len() * model.centres.dim().pow(2)
    }

    fn accumulate(
        &self,
        rows: &DenseRows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    ) {
        statistics.add(rows, block, model);
    }

    fn merge(&self, parts: &mut Vec<Self::Statistics>) -> Self::Statistics {
        const ELEMENTS: usize = 1 << 13;
        let mut parts = parts.drain(..);
        let mut total = parts.next().expect("sums over some rows");
        let parts: Vec<Scatter> = parts.collect();
        for part in &parts {
            add(&mut total.mass, &part.mass);
            add(&mut total.first, &part.first);
        }
        parallel::map_chunks(&mut total.second, ELEMENTS, |_, range, total| {
            for part in &parts {
                add(total, &part.second[range.clone()]);
            }
        });
        total
    }

    fn emptied(&self, statistics: &Self::Statistics) -> usize {
        statistics.mass.iter().filter(|mass| **mass <= 0.0).count()
    }

    fn finish(&self, scatter: Self::Statistics, model: &mut Self::Model, restricted: bool) {
        let k = model.components.len();
        if let Scored::Distances { .. } = model.scores {
            // Warming up: nothing is known of variances yet.
            for (t, component) in model.components.iter_mut().enumerate() {
                scatter.move_mean(t, &mut component.mean);
            }
            model.renew_means();
            return;
        }
        let prior = &model.prior;
        if restricted {
            let old = &model.components;
            let updated = parallel::map(k, |t| {
                let (mean, inverse_scale) = scatter.update(t, &old[t].mean, prior);
                let diagonal = inverse_scale.iter().step_by(scatter.dim + 1);
                (mean, diagonal.sum::<f64>())
            });
            let degrees = scatter.mass.iter().map(|mass| prior.degrees + mass);
            let entries = scatter.dim as f64 * degrees.sum::<f64>();
            let variance = updated.iter().map(|u| u.1).sum::<f64>() / entries;
            if variance.is_finite() {
                let updated = updated.into_iter().zip(&scatter.mass);
                model.components = updated
                    .map(|((mean, _), &mass)| {
                        NormalWishart::isotropic(&model.prior, mass, mean, variance)
                    })
                    .collect();
            }
        } else {
            let old = &model.components;
            model.components = parallel::map(k, |t| {
                let (mean, inverse_scale) = scatter.update(t, &old[t].mean, prior);
                NormalWishart::new(prior, scatter.mass[t], mean, &inverse_scale).unwrap_or_else(
                    || {
                        // Sums out of range: a mean beyond all data, which comes back first.
                        let mut kept = old[t].clone();
                        scatter.move_mean(t, &mut kept.mean);
                        kept
                    },
                )
            });
        }
        model.sticks = Sticks::new(model.prior.concentration, &scatter.mass);
        model.renew();
    }
}

impl Scatter {
    fn add<F: Float>(
        &mut self,
        rows: &DenseRows<F>,
        block: &Block<F>,
        model: &DirichletProcessMixture<F>,
    ) {
        /// A share of a row below this cannot be felt. Its log-joint is 41 nats below that of the best component,
        /// so without it the bound changes by about 1e-16 nats per point, less than its own rounding.
        const LEAST_SHARE: f64 = 1.0 / (1u64 << 60) as f64;

        let (dim, k) = (self.dim, self.mass.len());
        // The rows of each component: (row, share), counted, then sorted by component.
        let mut ends = vec![0; k + 1];
        let visit = |see: &mut dyn FnMut(usize, usize, f64)| {
            for i in 0..rows.len() {
                let weight = rows.weight(i);
                for (place, &q) in block.responsibilities(i).iter().enumerate() {
                    if q > LEAST_SHARE && weight * q > 0.0 {
                        let c = if block.is_full() {
                            place
                        } else {
                            block.support(i)[place] as usize
                        };
                        see(c, i, weight * q);
                    }
                }
            }
        };
        visit(&mut |c, _, _| ends[c + 1] += 1);
        for c in 0..k {
            ends[c + 1] += ends[c];
        }
        let mut next = ends.clone();
        let mut shares = vec![(0, 0.0); ends[k]];
        visit(&mut |c, i, share| {
            shares[next[c]] = (i, share);
            next[c] += 1;
        });

        let (mut apart, mut weighted) = (Vec::new(), Vec::new());
        for c in 0..k {
            let members = &shares[ends[c]..ends[c + 1]];
            if members.is_empty() {
                continue;
            }
            apart.resize(members.len() * dim, 0.0);
            weighted.resize(members.len() * dim, 0.0);
            let mean = &model.components[c].mean;
            let first = &mut self.first[c * dim..(c + 1) * dim];
            self.mass[c] += members.iter().map(|member| member.1).sum::<f64>();
            vectorised!({
                let apart = apart.chunks_exact_mut(dim);
                let places = apart.zip(weighted.chunks_exact_mut(dim));
                for (&(i, share), (apart, weighted)) in members.iter().zip(places) {
                    let row = rows.row(i).iter().zip(mean);
                    let places = apart.iter_mut().zip(weighted).zip(&mut *first);
                    for ((z, m), ((apart, weighted), first)) in row.zip(places) {
                        *apart = z.to_f64() - m;
                        *weighted = share * *apart;
                        *first += *weighted;
                    }
                }
            });
            let second = &mut self.second[c * dim * dim..(c + 1) * dim * dim];
            add_products(&weighted, &apart, dim, second);
        }
    }

    /// Moves a mean to that of the points; one without mass stays.
    fn move_mean(&self, t: usize, mean: &mut [f64]) {
        let first = &self.first[t * self.dim..(t + 1) * self.dim];
        if self.mass[t] > 0.0 {
            for (m, f) in mean.iter_mut().zip(first) {
                *m += f / self.mass[t];
            }
        }
    }

    /// The new mean $m_t$ and the lower half of $W_t^{-1}$ (E29), from the sums about the old mean.
    fn update(&self, t: usize, old: &[f64], prior: &Prior) -> (Vec<f64>, Vec<f64>) {
        let (dim, mass, beta0) = (self.dim, self.mass[t], prior.mean_precision);
        let first = &self.first[t * dim..(t + 1) * dim];
        let second = &self.second[t * dim * dim..(t + 1) * dim * dim];
        let mean: Vec<f64> = (0..dim)
            .map(|j| old[j] + (first[j] + beta0 * (prior.mean[j] - old[j])) / (beta0 + mass))
            .collect();
        let step: Vec<f64> = mean.iter().zip(old).map(|(new, old)| new - old).collect();
        let apart: Vec<f64> = mean.iter().zip(&prior.mean).map(|(m, m0)| m - m0).collect();
        let mut inverse_scale = prior.inverse_scale.clone();
        for i in 0..dim {
            for j in 0..=i {
                let about_old = second[i * dim + j];
                let mut about_new =
                    about_old - first[i] * step[j] - step[i] * first[j] + mass * step[i] * step[j];
                if i == j {
                    // Far seeds: nearly all of the old sum goes, and what is left is its rounding.
                    about_new = about_new.max(8.0 * f64::EPSILON * about_old);
                }
                inverse_scale[i * dim + j] += about_new + beta0 * apart[i] * apart[j];
            }
        }
        (mean, inverse_scale)
    }
}

/// A Dirichlet process mixture of Gaussians, as a distribution over its parameters (E29).
///
/// The predictive density of a point is a mixture of Student t densities (Bishop 10.81):
///
/// $$p(y) = \sum_{t=1}^{T} \bar \pi_t \thinspace \text{St} \left( y; m_t, \frac{(\nu_t + 1 - D) \beta_t}{1 + \beta_t} W_t, \nu_t + 1 - D \right)$$
///
/// That is what [`log_likelihood`](Mixture::log_likelihood), [`log_densities`](Mixture::log_densities) and
/// [`score`](Mixture::score) mean here, with the expected proportions $\bar \pi_t$, normalised.
/// [Labels](Mixture::predict) and [responsibilities](Mixture::responsibilities) are those of the E-step, and
/// [`quantization_error`](Mixture::quantization_error) is about the means $m_t$.
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcessMixture<F> {
    /// The means, rounded.
    centres: Centres<F>,
    frame: Frame<F>,
    prior: Prior,
    sticks: Sticks,
    components: Vec<NormalWishart>,
    least_variance: f64,
    scores: Scored,
    prior_terms: f64,
    means: Array2<F>,
}

/// What scores are.
#[derive(Clone, Debug, PartialEq)]
enum Scored {
    /// Squared distances: no variance is known yet but that of the data.
    Distances { variance: f64 },
    /// -2 (E ln pi + E ln N), but for the constants of a density and for `reference`.
    Expected {
        /// (T): what is added to the quadratic form, less the reference.
        added: Vec<f64>,
        /// The mean of it, so that scores are small where most points are: they are stored in the type of the data.
        reference: f64,
        /// (T): the Frobenius norm of the factor.
        norms: Vec<f64>,
    },
}

impl<F: Float> DirichletProcessMixture<F> {
    /// What follows from the distributions: scores, divergences and rounded means.
    fn renew(&mut self) {
        let dim = self.centres.dim() as f64;
        let components = &self.components;
        let mut added: Vec<f64> = components
            .iter()
            .zip(self.sticks.expected_logs())
            .map(|(q, log)| dim / q.mean_precision - q.expected_log_det() - 2.0 * log)
            .collect();
        // By mass, so that scores are small where most points are: an empty component has as much in it as the prior is
        // weak, and no mass.
        let prior_mass = self.prior.mean_precision;
        let mass = |q: &NormalWishart| (q.mean_precision - prior_mass).max(0.0);
        let total: f64 = components.iter().map(mass).sum();
        let parts = components.iter().zip(&added).map(|(q, a)| mass(q) * a);
        let reference = parts.sum::<f64>() / total.max(f64::MIN_POSITIVE);
        for value in &mut added {
            *value -= reference;
        }
        self.scores = Scored::Expected {
            added,
            reference,
            norms: components.iter().map(NormalWishart::norm).collect(),
        };
        let prior = &self.prior;
        let divergences = parallel::map(components.len(), |t| components[t].divergence(prior));
        let sticks = self.sticks.divergence(prior.concentration);
        self.prior_terms = -(divergences.iter().sum::<f64>() + sticks);
        self.renew_means();
    }

    fn renew_means(&mut self) {
        let components = &self.components;
        self.centres.update(|c, row| {
            for (z, &m) in row.iter_mut().zip(&components[c].mean) {
                *z = F::from_f64(m);
            }
        });
        self.means = self.centres.leave(&self.frame);
    }

    /// The posterior means $m_t$ (T, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The expected precision matrices $\nu_t W_t$ (T, d, d), in the data's own unit to the power -2.
    #[must_use]
    pub fn precisions(&self) -> Array3<f64> {
        let unit = self.frame.inverse_unit();
        self.matrices(unit, |factor, dim| {
            normal_wishart::product((factor, true), (factor, false), dim)
        })
    }

    /// Their inverses $W_t^{-1} / \nu_t$ (T, d, d), in the data's own unit, squared.
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        self.matrices(self.frame.unit(), |factor, dim| {
            let inverse = normal_wishart::inverse(factor, dim);
            normal_wishart::product((&inverse, false), (&inverse, true), dim)
        })
    }

    /// A matrix per component, from its factor (d, d), times the square of a unit.
    fn matrices(&self, unit: f64, of: impl Fn(&[f64], usize) -> Vec<f64> + Sync) -> Array3<f64> {
        let (k, dim) = self.means.dim();
        let matrices = parallel::map(k, |t| {
            of(
                &normal_wishart::unpacked(&self.components[t].factor, dim),
                dim,
            )
        });
        let values = matrices.into_iter().flatten().map(|x| x * unit * unit);
        Array3::from_shape_vec((k, dim, dim), values.collect()).expect("T x d x d numbers")
    }

    /// $\nu_t$ (T).
    #[must_use]
    pub fn degrees_of_freedom(&self) -> Array1<f64> {
        self.components.iter().map(|q| q.degrees).collect()
    }

    /// $\beta_t$ (T).
    #[must_use]
    pub fn mean_precisions(&self) -> Array1<f64> {
        self.components.iter().map(|q| q.mean_precision).collect()
    }

    /// $\gamma_{t1}, \gamma_{t2}$ (T, 2). The last stick is like the others, not fixed to 1.
    #[must_use]
    pub fn sticks(&self) -> Array2<f64> {
        let sticks = &self.sticks.0;
        Array2::from_shape_fn((sticks.len(), 2), |(t, i)| {
            if i == 0 { sticks[t].0 } else { sticks[t].1 }
        })
    }

    /// The expected mixing proportions, normalised to sum to 1 (T).
    #[must_use]
    pub fn proportions(&self) -> Array1<f64> {
        let logs = self.sticks.log_proportions();
        logs.into_iter().map(f64::exp).collect()
    }

    /// The effective number of components: the exponential of the entropy of the expected
    /// [proportions](Self::proportions). $T$ if all are equal, 1 if one has everything.
    #[must_use]
    pub fn effective_components(&self) -> f64 {
        let logs = self.sticks.log_proportions();
        let terms = logs.into_iter().filter(|l| l.is_finite());
        (-terms.map(|l| l.exp() * l).sum::<f64>()).exp()
    }

    /// The number of components whose expected [proportion](Self::proportions) is at least `least`.
    #[must_use]
    pub fn occupied(&self, least: f64) -> usize {
        self.proportions().iter().filter(|p| **p >= least).count()
    }

    /// Draws `n` points from the predictive density: points (n, d), in the data's own unit, and the components they came
    /// from (n). The same `seed` gives the same points.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `n` is 0.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        positive("n", n)?;
        let dim = self.centres.dim();
        let inverses: Vec<Vec<f64>> = parallel::map(self.components.len(), |t| {
            let factor = normal_wishart::unpacked(&self.components[t].factor, dim);
            normal_wishart::inverse(&factor, dim)
        });
        let proportions = super::proportions::Proportions::learned(self.proportions().into_iter());
        let mut rng = Rng::from_seed(seed);
        let labels = Array1::from_shape_fn(n, |_| proportions.draw(&mut rng) as u32);
        let mut points = Array2::from_elem((n, dim), F::zero());
        let mut normals = vec![0.0; dim];
        // Heavy tails can leave the range of the type.
        let most = 4.0 * F::LIMIT;
        for (mut point, &t) in points.rows_mut().into_iter().zip(&labels) {
            let q = &self.components[t as usize];
            // A Student t is a normal whose precision is drawn, here about (1 + 1 / beta) times as wide.
            let squared = rng.chi_squared(q.degrees - (dim as f64 - 1.0));
            // Next to no degrees of freedom: the draw of the precision underflows.
            let squared = squared.max(f64::MIN_POSITIVE);
            let wider = (1.0 + 1.0 / q.mean_precision) * q.degrees / squared;
            normals.fill_with(|| rng.normal());
            let rows = inverses[t as usize].chunks_exact(dim);
            for ((j, (row, m)), x) in rows.zip(&q.mean).enumerate().zip(&mut point) {
                let step: f64 = row.iter().zip(&normals).map(|(c, e)| c * e).sum();
                let origin = self.frame.leave_exact(j, F::zero());
                let exact = origin + (m + wider.sqrt() * step) * self.frame.unit();
                *x = F::from_f64(exact.clamp(-most, most));
            }
        }
        Ok((points, labels))
    }
}

/// Scores are -2 times expected log-joints (E29), but for constants. The fast ones are in the type of the data; those
/// of components that may have a share in the row are then computed again in `f64`, so nothing is left to the margin.
impl<F: Float> Scores<DenseRows<F>> for DirichletProcessMixture<F> {
    fn components(&self) -> usize {
        self.components.len()
    }

    /// Components that have no share in a row by some 45 nats get a score that says so, good to its rounding.
    fn all(&self, rows: &DenseRows<F>, out: &mut Vec<F>) {
        /// exp(-REACH) is lost beside 1 in `f64`.
        const REACH: f64 = 45.0;
        /// An error of a log-joint that cannot be felt, in units of the square root of epsilon.
        const FELT: f64 = 1e-3;

        let Scored::Expected { added, norms, .. } = &self.scores else {
            return rows.distances(&self.centres, out);
        };
        let (n, k, dim) = (rows.len(), self.components.len(), self.centres.dim());
        out.resize(n * k, F::zero());
        // Bounds on the errors (E29).
        let mut errors = vec![0.0; n * k];
        let gamma = (dim + 8) as f64 * F::EPSILON;
        // Means are rounded: as seen from a point near them, less of them is lost (E21).
        let about = self.centres.expanded().about();
        let (seen, stride) = (rows.seen(about), stride(dim));
        let mut columns = Columns::<F>::new(n, dim, |i| &seen[i * stride..][..stride]);
        let mut mean = vec![0.0; dim];
        for (t, q) in self.components.iter().enumerate() {
            for (j, (mean, m)) in mean.iter_mut().zip(&q.mean).enumerate() {
                *mean = m - about.map_or(0.0, |about| about[j].to_f64());
            }
            let far = mean.iter().map(|m| m * m).sum::<f64>().sqrt();
            columns.forms(&mean, &q.factor, |i, form, square| {
                let (form, length) = (form.to_f64(), square.to_f64().sqrt());
                let off = norms[t] * (gamma * length + F::EPSILON * far);
                errors[i * k + t] =
                    off * (2.0 * form.sqrt() + off) + gamma * (form + added[t].abs());
                out[i * k + t] = F::from_f64(form + added[t]);
            });
        }
        let (mut near, mut scores) = (Vec::new(), Vec::new());
        for i in 0..n {
            let found = &mut out[i * k..(i + 1) * k];
            let errors = &errors[i * k..(i + 1) * k];
            let best = found
                .iter()
                .zip(errors)
                .fold(f64::INFINITY, |least, (s, e)| least.min(s.to_f64() + e));
            near.clear();
            // `!(s > reach)`, not `s <= reach`: an overflowed (NaN) score must be computed directly.
            #[allow(clippy::neg_cmp_op_on_partial_ord)]
            near.extend((0u32..).zip(&*found).zip(errors).filter_map(|((t, s), e)| {
                let felt = 0.5 * e > FELT * F::EPSILON.sqrt();
                let reach = if felt { best + 2.0 * REACH } else { best };
                (!(s.to_f64() - e > reach)).then_some(t)
            }));
            self.some(rows, i, &near, &mut scores);
            for (&t, &score) in near.iter().zip(&scores) {
                found[t as usize] = score;
            }
            for score in found {
                *score = F::from_f64(held::<F>(score.to_f64()));
            }
        }
    }

    fn margin(&self, rows: &DenseRows<F>, i: usize, reach: F) -> F {
        match self.scores {
            Scored::Distances { .. } => rows.margin(i, &self.centres, reach),
            Scored::Expected { .. } => F::zero(),
        }
    }

    fn some(&self, rows: &DenseRows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let Scored::Expected { added, .. } = &self.scores else {
            return rows.distances_to(i, &self.centres, ids, out);
        };
        out.clear();
        let mut apart = vec![0.0; self.centres.dim()];
        out.extend(ids.iter().map(|&t| {
            let q = &self.components[t as usize];
            for ((u, z), m) in apart.iter_mut().zip(rows.row(i)).zip(&q.mean) {
                *u = z.to_f64() - m;
            }
            let score = quadratic::form(&q.factor, &apart) + added[t as usize];
            F::from_f64(held::<F>(score))
        }));
    }
}

/// A score held where it stays finite; one that could not be computed is as far.
fn held<F: Float>(score: f64) -> f64 {
    score.min(0.5 * F::LIMIT)
}

impl<F: Float, D: Data<Float = F, Rows = DenseRows<F>>> Mixture<D> for DirichletProcessMixture<F> {
    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn log_joint(&self) -> LogJoint {
        let shift = self.frame.log_density_shift();
        match self.scores {
            Scored::Distances { variance } => LogJoint {
                alpha: 0.0,
                gamma: shift - 0.5 * (2.0 * PI * variance).ln(),
                beta: 0.5 / variance,
            },
            Scored::Expected { reference, .. } => LogJoint {
                alpha: -0.5 * reference,
                gamma: shift - 0.5 * (2.0 * PI).ln(),
                beta: 0.5,
            },
        }
    }

    fn prior_terms(&self) -> f64 {
        self.prior_terms
    }

    /// Labels come from expected log-joints, densities from the predictive distribution.
    fn looks(&self) -> u64 {
        2
    }

    /// Predictive densities (Bishop 10.81), in `f64` for every component: their tails fall off slowly, and there is no
    /// telling which of them matter.
    fn judge(&self, rows: &DenseRows<F>, labels: Option<&mut [u32]>) -> Vec<f64> {
        if let Some(labels) = labels {
            mixture::label(self, rows, labels);
        }
        let (n, k) = (rows.len(), self.components.len());
        let mut logs = vec![0.0; n * k];
        let mut columns = Columns::<f64>::new(n, self.centres.dim(), |i| rows.row(i));
        let proportions = self.sticks.log_proportions();
        for (t, (q, proportion)) in self.components.iter().zip(proportions).enumerate() {
            let (constant, b, c) = q.predictive();
            columns.forms(&q.mean, &q.factor, |i, form, _| {
                logs[i * k + t] = proportion + constant - b * (c * form.min(FARTHEST)).ln_1p();
            });
        }
        let shift = self.centres.dim() as f64 * self.frame.log_density_shift();
        let rows = logs.chunks_exact(k).map(|logs| {
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            shift + most + logs.iter().map(|l| (l - most).exp()).sum::<f64>().ln()
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms;
    use crate::data::Dense;
    use crate::float::Element;

    /// Columns that nearly determine one another: covariances whose forms `f32` alone gets wrong by whole nats.
    fn ill_conditioned<F: Float>(n: usize) -> Array2<F> {
        let mut rng = Rng::from_seed(5);
        let mut x = Array2::zeros((n, 6));
        for (i, mut row) in x.rows_mut().into_iter().enumerate() {
            let latent = [rng.normal() + 3.0 * (i % 4) as f64, rng.normal()];
            for (j, x) in row.iter_mut().enumerate() {
                let turn = j as f64;
                *x = F::from_f64(
                    latent[0] * turn.cos() + latent[1] * turn.sin() + 1e-3 * rng.normal(),
                );
            }
        }
        x
    }

    fn scores<T: Element<Float = T> + Float>() -> f64 {
        let x = ill_conditioned::<T>(700);
        let data = Dense::new(x.view()).unwrap();
        let fit = algorithms::dp_gmm(8, 1.0)
            .max_iterations(15)
            .build()
            .unwrap();
        let model = fit.fit(&data).unwrap().model;
        let mut far = x.clone();
        far.row_mut(0).fill(T::from_f64(T::LIMIT));
        far.row_mut(1).fill(T::from_f64(1e9));
        let data = Dense::new(far.view()).unwrap();
        let mut rows = DenseRows::default();
        data.load(0..700, &model.frame, &mut rows);
        let (mut fast, mut direct) = (Vec::new(), Vec::new());
        model.all(&rows, &mut fast);
        let ids: Vec<u32> = (0..8).collect();
        let mut columns = Columns::<T>::new(700, 6, |i| rows.row(i));
        let mut off = 0.0f64;
        for q in &model.components {
            columns.forms(&q.mean, &q.factor, |i, form, _| {
                let row = rows.row(i)[..6]
                    .iter()
                    .zip(&q.mean)
                    .map(|(z, m)| z.to_f64() - m);
                let exact = quadratic::form(&q.factor, &row.collect::<Vec<_>>());
                if i > 1 && exact < 90.0 {
                    off = off.max((form.to_f64() - exact).abs());
                }
            });
        }
        for i in 0..700 {
            model.some(&rows, i, &ids, &mut direct);
            let best = direct.iter().fold(f64::INFINITY, |a, s| a.min(s.to_f64()));
            for (fast, direct) in fast[i * 8..].iter().zip(&direct) {
                assert!(fast.is_finite() && direct.is_finite());
                // The same where a component may have a share, and far where it has none.
                let near = direct.to_f64() < best + 80.0 || fast.to_f64() < best + 80.0;
                assert!(
                    !near || (fast.to_f64() - direct.to_f64()).abs() <= 1e-3 * T::EPSILON.sqrt(),
                    "{fast} {direct}"
                );
            }
        }
        off
    }

    #[test]
    fn scores_are_exact_where_they_count() {
        // Left to `f32` they would be off by more than anything below notices.
        assert!(scores::<f32>() > 1e-2);
        assert!(scores::<f64>() < 1e-6);
    }

    #[test]
    fn a_proper_covariance_stays_and_a_singular_one_becomes_proper() {
        let good = vec![2.0, 0.5, 0.5, 1.0];
        assert_eq!(proper(good.clone(), 1e-12, 2), good);
        for singular in [
            vec![1.0, 1.0, 1.0, 1.0],
            vec![0.0, 0.0, 0.0, 1.0],
            vec![0.0; 4],
            vec![1.0, 1.0 + 1e-16, 1.0 + 1e-16, 1.0],
        ] {
            let made = proper(singular.clone(), 1e-12, 2);
            let pivot = Cholesky::of(&made, 2).unwrap().least_pivot;
            assert!(pivot > 1e-9);
            let moved = made.iter().zip(&singular).map(|(a, b)| (a - b).abs());
            assert!(moved.fold(0.0, f64::max) < 1.1e-8);
        }
    }

    #[test]
    fn moments_of_the_data_are_those_of_two_passes() {
        let x = ill_conditioned::<f64>(1_300);
        let w = Array1::from_shape_fn(1_300, |n| (n % 3) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame();
        let (mean, covariance) = moments(&frame, &data);
        let total = w.sum();
        let naive_mean = |j: usize| x.column(j).dot(&w) / total;
        for i in 0..6 {
            let moved = frame.leave_exact(i, mean[i]);
            assert!((moved - naive_mean(i)).abs() < 1e-12);
            for j in 0..=i {
                let terms = (0..1_300)
                    .map(|n| w[n] * (x[[n, i]] - naive_mean(i)) * (x[[n, j]] - naive_mean(j)));
                let expected = terms.sum::<f64>() / total / frame.unit().powi(2);
                assert!((covariance[i * 6 + j] - expected).abs() < 1e-13);
            }
        }
    }
}
