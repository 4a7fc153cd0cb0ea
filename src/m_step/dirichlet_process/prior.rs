//! The prior of the components: as the user gives it, or from the data.

use super::matrices::{self, Cholesky, add};
use super::products::{Scratch, add_products};
use super::{DirichletProcess, PriorMean, PriorScale};
use crate::base::error::{Error, Result, same_columns};
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::parallel::{self, BLOCK};
use crate::base::stage::Stage;
use crate::data::{Data, Frame, Rows, Summary};
use crate::io::Crc64;
use crate::m_step::variance_floor;
use ndarray::{Array1, ArrayView2};

/// The prior of every component: a Normal-Wishart distribution with known parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    /// $\alpha$.
    pub(super) concentration: f64,
    /// $\beta_0$.
    pub(super) mean_precision: f64,
    /// $\nu_0$.
    pub(super) degrees: f64,
    /// $m_0$ (d).
    pub(super) mean: Vec<f64>,
    /// $W_0^{-1}$ (d, d).
    pub(super) inverse_scale: Vec<f64>,
    /// Its lower Cholesky factor (d, d).
    pub(super) factor: Vec<f64>,
    /// $\ln |W_0|$.
    pub(super) log_det: f64,
}

impl Prior {
    /// `None` if the inverse scale matrix is not positive definite.
    pub(super) fn new(
        concentration: f64,
        mean_precision: f64,
        degrees: f64,
        mean: Vec<f64>,
        inverse_scale: Vec<f64>,
    ) -> Option<Self> {
        let cholesky = Cholesky::of(&inverse_scale, mean.len())?;
        Some(Self {
            concentration,
            mean_precision,
            degrees,
            log_det: -cholesky.log_det(mean.len()),
            factor: cholesky.factor,
            mean,
            inverse_scale,
        })
    }

    /// One that counts only so much, as if from so many points: $\beta_0$ and $W_0^{-1}$ times `share`.
    pub(super) fn weaker(&self, share: f64) -> Option<Self> {
        let inverse_scale = self.inverse_scale.iter().map(|x| x * share);
        Self::new(
            self.concentration,
            self.mean_precision * share,
            self.degrees,
            self.mean.clone(),
            inverse_scale.collect(),
        )
    }
}

impl DirichletProcess {
    /// The prior in the coordinates of `frame`.
    pub(super) fn prior<F: Float>(&self, frame: &Frame<F>, data: &dyn Data<F>) -> Result<Prior> {
        let dim = data.dim();
        let degrees = self.degrees.unwrap_or(dim as f64);
        if degrees <= dim as f64 - 1.0 {
            let rule = "must be greater than the number of columns less 1";
            return Err(Error::parameter("degrees_of_freedom", degrees, rule));
        }
        let of_data = match (&self.mean, &self.scale) {
            (PriorMean::OfData, _) | (_, PriorScale::OfData) => Some(moments(frame, data)?),
            _ => None,
        };
        // Held where rows and centres are that are no part of the data, and where its square has a weighted sum.
        let most = Frame::<F>::most().to_f64() / self.mean_precision.max(1.0).sqrt();
        let enter = |mean: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            let origin = frame.offset().iter().map(|o| o.to_f64());
            mean.zip(origin)
                .map(|(m, o)| ((m - o) * frame.inverse_unit()).clamp(-most, most))
                .collect()
        };
        let mean = match (&self.mean, &of_data) {
            (PriorMean::OfData, Some((mean, _))) => mean.clone(),
            (PriorMean::Given(mean), _) => {
                same_columns("mean", dim, mean.len())?;
                not_beyond(mean, F::LIMIT)?;
                enter(&mut mean.iter().copied())
            }
            _ => enter(&mut std::iter::repeat_n(0.0, dim)),
        };
        let inverse_scale = match (&self.scale, of_data) {
            (PriorScale::OfData, Some((_, covariance))) => {
                proper(covariance, variance_floor(frame, data.summary()), dim)
            }
            (PriorScale::Given(scale), _) => {
                same_columns("scale", dim, scale.nrows())?;
                inverse_of(scale.view()).unwrap_or_default()
            }
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
        let scaled = beside(scaled, (&mean, beta, degrees), frame, data.summary());
        let finite = scaled.len() == dim * dim && mean.iter().all(|m| m.is_finite());
        finite
            .then(|| Prior::new(alpha, beta, degrees, mean, scaled))
            .flatten()
            .ok_or_else(|| {
                let rule = "this is the unit of the data, and the prior must be near it";
                Error::parameter("scale", format!("too far from {:e}", frame.unit()), rule)
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
            let ((rows, columns), what) = (scale.dim(), "scale");
            same_columns(what, rows, columns)?;
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
                let value = format!("a {rows} x {columns} matrix");
                return Err(Error::parameter(what, value, "must be positive definite"));
            }
        }
        Ok(())
    }

    fn settings(&self) -> String {
        // Large arrays are not printed whole.
        let all = |values: &mut dyn Iterator<Item = &f64>| {
            let bytes: Vec<u8> = values.flat_map(|x| x.to_le_bytes()).collect();
            Crc64::of(&bytes)
        };
        let mean = match &self.mean {
            PriorMean::Given(mean) => format!("given {:016x}", all(&mut mean.iter())),
            other => format!("{other:?}"),
        };
        let scale = match &self.scale {
            PriorScale::Given(scale) => format!("given {:016x}", all(&mut scale.iter())),
            other => format!("{other:?}"),
        };
        let (alpha, beta, nu) = (self.concentration, self.mean_precision, self.degrees);
        let merges = self.merges;
        format!(
            "DirichletProcess concentration {alpha:?}, mean precision {beta:?}, degrees {nu:?}, mean {mean}, \
             scale {scale}, merges {merges}"
        )
    }
}

/// A prior mean has the range of rows: means of components may be the prior mean.
fn not_beyond(mean: &Array1<f64>, limit: f64) -> Result<()> {
    let beyond = mean.indexed_iter().find(|(_, m)| m.abs() > limit);
    let Some((column, &value)) = beyond else {
        return Ok(());
    };
    let (what, row) = ("mean", 0);
    Err(Error::TooLarge {
        what,
        row,
        column,
        value,
        limit,
    })
}

/// The inverse of a symmetric matrix (d, d); `None` unless it is positive definite.
fn inverse_of(matrix: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
    let dim = matrix.nrows();
    let values: Vec<f64> = matrix.iter().copied().collect();
    let inverse = linalg::inverse_of_lower(&Cholesky::of(&values, dim)?.factor, dim);
    let product = matrices::product((&inverse, true), (&inverse, false), dim);
    product.iter().all(|x| x.is_finite()).then_some(product)
}

fn diagonal(value: f64, dim: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    for j in 0..dim {
        matrix[j * (dim + 1)] = value;
    }
    matrix
}

/// Weighted mean (d) and covariance (d, d; its lower half) of the data, in the coordinates of `frame`, from sums about
/// its mean, which is that of the data but for rounding.
fn moments<F: Float>(frame: &Frame<F>, data: &dyn Data<F>) -> Result<(Vec<f64>, Vec<f64>)> {
    /// Parts of the data: each has its own sums.
    const PARTS: usize = 32;
    let (n, dim) = (data.len(), data.dim());
    let total = data.summary().total_weight;
    let size = n.div_ceil(PARTS).next_multiple_of(BLOCK);
    let parts = parallel::map_blocks(n, size, |_, range| {
        let (mut first, mut second) = (vec![0.0; dim], vec![0.0; dim * dim]);
        let (mut rows, mut apart, mut weights) = (Rows::default(), Vec::new(), Vec::new());
        let mut scratch = Scratch::<f64>::default();
        for from in range.clone().step_by(BLOCK) {
            data.load(from..(from + BLOCK).min(range.end), frame, &mut rows)?;
            apart.clear();
            weights.clear();
            for i in 0..rows.len() {
                let (row, weight) = (rows.to_centre(i), rows.weight(i) / total);
                let from = apart.len();
                let places = row[..dim].iter().zip(&frame.mean()[..dim]);
                apart.extend(places.map(|(z, mean)| z.to_f64() - mean.to_f64()));
                for (sum, z) in first.iter_mut().zip(&apart[from..]) {
                    *sum += weight * z;
                }
                weights.push(weight);
            }
            let shares = weights.iter().copied();
            add_products(&apart, shares, f64::INFINITY, &mut second, &mut scratch);
        }
        Ok((first, second))
    });
    let (mut mean, mut covariance) = (vec![0.0; dim], vec![0.0; dim * dim]);
    for (first, second) in parallel::all(parts)? {
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
    Ok((mean, covariance))
}

/// An inverse scale matrix that is not lost in rounding beside the data and a prior mean far from them, and under which no two rows
/// are farther apart than scores of the type go: if it would be, its diagonal is raised.
fn beside<F: Float>(
    mut inverse_scale: Vec<f64>,
    (mean, mean_precision, degrees): (&[f64], f64, f64),
    frame: &Frame<F>,
    data: &Summary,
) -> Vec<f64> {
    /// Below this share of what the update adds, components that collapse have precisions whose forms `f64` cannot tell from
    /// rounding: the square root of its reciprocal times the machine epsilon is an error of 7e-6 in a coordinate of
    /// unit variance, which counts squared.
    const LEAST: f64 = 1e-21;
    let dim = data.variance.len();
    let floor = variance_floor(frame, data);
    let variance = |j: usize| frame.enter_square(data.variance[j]).max(floor);
    // Any two rows, seen with the precision that the prior expects.
    let farthest = |j: usize| {
        let (low, high) = data.range[j];
        ((high - low) * frame.inverse_unit()).powi(2)
    };
    let largest = F::LARGEST_SCORE / (4.0 * degrees * dim as f64);
    // The update adds this much of the square at most, and a rounded mean is off by the machine epsilon.
    let share = mean_precision / (1.0 + mean_precision / data.total_weight);
    let share = (LEAST * share).max(f64::EPSILON.powi(2) * mean_precision);
    let least = |j: usize| {
        let of_data = LEAST * data.total_weight * variance(j);
        let of_mean = share * (mean[j] - frame.mean()[j].to_f64()).powi(2);
        of_data.max(of_mean).max(farthest(j) / largest)
    };
    let enough = |c: Cholesky| (0..dim).all(|j| c.factor[j * (dim + 1)].powi(2) >= least(j));
    if inverse_scale.len() == dim * dim && !Cholesky::of(&inverse_scale, dim).is_some_and(enough) {
        for j in 0..dim {
            inverse_scale[j * (dim + 1)] += least(j);
        }
    }
    inverse_scale
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Dense, Rows};
    use approx::assert_abs_diff_eq;
    use ndarray::{Array1, Array2};

    /// Columns that nearly determine one another: covariances whose forms `f32` alone gets wrong by whole nats.
    pub(in super::super) fn ill_conditioned<F: Float>(n: usize) -> Array2<F> {
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
    fn a_prior_that_is_lost_beside_the_data_is_raised() {
        let x = ill_conditioned::<f64>(60);
        for (weight, raised) in [(1.0, false), (1e12, false), (1e24, true), (1e200, true)] {
            let w = Array1::from_elem(60, weight);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let (frame, summary) = (data.frame().unwrap(), data.summary());
            let unit = diagonal(1.0, 6);
            let mean: Vec<f64> = frame.mean()[..6].to_vec();
            let got = beside(unit.clone(), (&mean, 1.0, 6.0), &frame, summary);
            assert_eq!(got != unit, raised);
            if raised {
                for j in 0..6 {
                    let variance = summary.variance[j] / frame.unit().powi(2);
                    let least = 1.0 + 1e-21 * 60.0 * weight * variance;
                    assert_abs_diff_eq!(got[7 * j], least, epsilon = 1e-12 * least);
                }
            }
        }
    }

    #[test]
    fn a_prior_that_is_lost_beside_its_mean_is_raised() {
        let x = ill_conditioned::<f64>(60);
        let data = Dense::new(x.view()).unwrap();
        let (frame, summary) = (data.frame().unwrap(), data.summary());
        let unit = diagonal(1.0, 6);
        for (far, raised) in [(1e9, false), (1e12, true)] {
            let mut mean: Vec<f64> = frame.mean()[..6].to_vec();
            mean[2] += far;
            let got = beside(unit.clone(), (&mean, 4.0, 6.0), &frame, summary);
            // 4 of the prior and 60 of the data.
            let expected = if raised {
                1.0 + 3.75e-21 * far * far
            } else {
                1.0
            };
            assert_abs_diff_eq!(got[2 * 7], expected, epsilon = 1e-3 * expected);
            assert_eq!(got != unit, raised);
        }
    }

    #[test]
    fn a_prior_so_narrow_that_scores_leave_the_type_is_raised() {
        fn raised<F: crate::base::float::Element<Float = F> + Float>(narrow: f64) -> bool {
            let x = ill_conditioned::<F>(60);
            let w = Array1::from_elem(60, 1e-280);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let (frame, summary) = (data.frame().unwrap(), data.summary());
            let prior = diagonal(narrow, 6);
            let mean: Vec<f64> = frame.mean()[..6].iter().map(|m| m.to_f64()).collect();
            let got = beside(prior.clone(), (&mean, 1.0, 6.0), &frame, summary);
            let (mut rows, range) = (Rows::<F>::default(), 0..60);
            data.load(range.clone(), &frame, &mut rows).unwrap();
            for (i, c) in range
                .clone()
                .flat_map(|i| range.clone().map(move |c| (i, c)))
            {
                let apart = |j: usize| rows.row(i)[j].to_f64() - rows.row(c)[j].to_f64();
                let score: f64 = (0..6).map(|j| apart(j).powi(2) / got[7 * j]).sum();
                assert!(6.0 * score < F::LARGEST_SCORE);
            }
            got != prior
        }
        assert!(!raised::<f32>(1e-34) && raised::<f32>(1e-36) && raised::<f32>(1e-280));
        assert!(!raised::<f64>(1e-280) && raised::<f64>(1e-305));
    }

    #[test]
    fn moments_of_the_data_are_those_of_two_passes() {
        let x = ill_conditioned::<f64>(1_300);
        let w = Array1::from_shape_fn(1_300, |n| (n % 3) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame().unwrap();
        let (mean, covariance) = moments(&frame, &data).unwrap();
        let total = w.sum();
        let naive_mean = |j: usize| x.column(j).dot(&w) / total;
        for i in 0..6 {
            let moved = frame.leave_exact(i, mean[i]);
            assert_abs_diff_eq!(moved, naive_mean(i), epsilon = 1e-12);
            for j in 0..=i {
                let terms = (0..1_300)
                    .map(|n| w[n] * (x[[n, i]] - naive_mean(i)) * (x[[n, j]] - naive_mean(j)));
                let expected = terms.sum::<f64>() / total / frame.unit().powi(2);
                assert_abs_diff_eq!(covariance[i * 6 + j], expected, epsilon = 1e-13);
            }
        }
    }
}
