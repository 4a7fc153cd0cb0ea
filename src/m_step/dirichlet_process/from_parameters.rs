//! A Dirichlet process mixture from known parameters.

use super::mixture::{DirichletProcessMixture, Scored};
use super::normal_wishart::NormalWishart;
use super::prior::Prior;
use super::sticks::Sticks;
use crate::base::error::{Error, Result, same_columns, same_length};
use crate::base::float::Float;
use crate::data::{Centres, Frame, Summary};
use crate::m_step::gaussian_mixture::check_variances;
use ndarray::{ArrayView1, ArrayView2, ArrayView3};

impl<F: Float> DirichletProcessMixture<F> {
    /// A model from the parameters of its distributions, such as another program found: what the functions of the same
    /// names return. The means $m_t$ (T, d); the [covariances](Self::covariances) $W_t^{-1} / \nu_t$ (T, d, d), symmetric
    /// and positive definite; [$\nu_t$](Self::degrees_of_freedom) (T), each greater than d - 1;
    /// [$\beta_t$](Self::mean_precisions) (T); and the [sticks](Self::sticks) (T, 2).
    ///
    /// Predictions, densities and samples need no prior. The model has one that is weaker than all components, about
    /// their average.
    ///
    /// ```
    /// use coremix::m_step::DirichletProcessMixture;
    /// use coremix::prelude::*;
    /// use ndarray::{Array3, array};
    ///
    /// let means = array![[0.0, 0.0], [4.0, 4.0]];
    /// let covariances = Array3::from_shape_fn((2, 2, 2), |(_, i, j)| f64::from(i == j));
    /// let (degrees, precisions) = (array![60.0, 40.0], array![58.0, 38.0]);
    /// let sticks = array![[59.0, 40.0], [39.0, 1.0]];
    /// let model = DirichletProcessMixture::<f64>::from_parameters(
    ///     means.view(), covariances.view(), degrees.view(), precisions.view(), sticks.view(),
    /// )?;
    /// let points = array![[0.5, 0.0], [4.5, 4.0]];
    /// assert_eq!(model.predict(&Dense::new(&points)?)?.to_vec(), [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::NotFinite`] or [`Error::TooLarge`] for the means, [`Error::LengthMismatch`] and
    /// [`Error::DimensionMismatch`] for other shapes, [`Error::Parameter`] for values outside their range.
    pub fn from_parameters(
        means: ArrayView2<'_, F>,
        covariances: ArrayView3<'_, f64>,
        degrees_of_freedom: ArrayView1<'_, f64>,
        mean_precisions: ArrayView1<'_, f64>,
        sticks: ArrayView2<'_, f64>,
    ) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        let (k, dim) = means.dim();
        check_shapes(
            (k, dim),
            covariances,
            [
                ("degrees_of_freedom", degrees_of_freedom.len()),
                ("mean_precisions", mean_precisions.len()),
                ("sticks", sticks.nrows()),
            ],
            sticks.ncols(),
        )?;
        check_covariances::<F>(covariances)?;
        in_range("sticks", sticks.iter().copied(), 0.0)?;
        in_range("mean_precisions", mean_precisions.iter().copied(), 0.0)?;
        let least = dim as f64 - 1.0;
        in_range(
            "degrees_of_freedom",
            degrees_of_freedom.iter().copied(),
            least,
        )?;

        let diagonals = (0..k).flat_map(|t| (0..dim).map(move |j| covariances[[t, j, j]]));
        let frame: Frame<F> = Frame::around(&summary, diagonals.fold(0.0, f64::max).sqrt());
        let enter = |x: f64| x * frame.inverse_unit().powi(2);
        let mut components = Vec::with_capacity(k);
        for t in 0..k {
            let of_frame = means.row(t).into_iter().zip(frame.offset());
            let mean = of_frame.map(|(m, o)| (m.to_f64() - o.to_f64()) * frame.inverse_unit());
            let degrees = degrees_of_freedom[t];
            let covariance = covariances.index_axis(ndarray::Axis(0), t);
            let inverse_scale: Vec<f64> = covariance.iter().map(|x| enter(*x) * degrees).collect();
            let strength = (mean_precisions[t], degrees);
            let component = NormalWishart::of(strength, mean.collect(), &inverse_scale);
            components.push(component.ok_or_else(|| not_definite(t))?);
        }
        let prior = weakest(&components, covariances.map(|x| enter(*x)).view())?;
        let sticks = sticks.rows().into_iter().map(|row| (row[0], row[1]));
        let mut model = Self {
            centres: Centres::enter(means, &frame),
            frame,
            prior,
            sticks: Sticks(sticks.collect()),
            components,
            least_variance: f64::MIN_POSITIVE,
            scores: Scored::Distances { variance: 1.0 },
            prior_terms: 0.0,
            means: means.to_owned(),
        };
        model.renew();
        // Not as they come back from the frame.
        model.means = means.to_owned();
        Ok(model)
    }
}

fn check_shapes(
    (k, dim): (usize, usize),
    covariances: ArrayView3<'_, f64>,
    lengths: [(&'static str, usize); 3],
    of_sticks: usize,
) -> Result<()> {
    let counts = std::iter::once(("covariances", covariances.dim().0)).chain(lengths);
    for (what, found) in counts {
        same_length(what, k, found)?;
    }
    let (_, rows, columns) = covariances.dim();
    same_columns("covariances", dim, rows)?;
    same_columns("covariances", dim, columns)?;
    same_columns("sticks", 2, of_sticks)
}

fn check_covariances<F: Float>(covariances: ArrayView3<'_, f64>) -> Result<()> {
    let (k, dim, _) = covariances.dim();
    for ((t, i, j), &x) in covariances.indexed_iter() {
        let size = (covariances[[t, i, i]] * covariances[[t, j, j]]).sqrt();
        let apart = (x - covariances[[t, j, i]]).abs();
        // Numbers of another program may have been rounded to `f32`. NaN is not symmetric either.
        #[allow(clippy::neg_cmp_op_on_partial_ord)]
        if !(apart <= 1e-5 * size) {
            let value = format!("{x} in row {i}, column {j} of component {t}");
            let rule = "must be finite and symmetric, with a positive diagonal";
            return Err(Error::parameter("covariances", value, rule));
        }
    }
    let variances = (0..k * dim).map(|at| covariances[[at / dim, at % dim, at % dim]]);
    check_variances::<F>(&variances.collect::<Vec<_>>())?;
    Ok(())
}

/// Whether all numbers are finite and greater than `least`.
fn in_range(name: &'static str, numbers: impl Iterator<Item = f64>, least: f64) -> Result<()> {
    for number in numbers {
        // Beyond this, gamma functions leave the range of `f64`, or its digits.
        if !(number > least && number - least >= 1e-100 && number <= 1e300) {
            let rule = match name {
                "degrees_of_freedom" => {
                    "must be finite and greater than the number of columns less 1"
                }
                _ => "must be finite and positive",
            };
            return Err(Error::parameter(name, number, rule));
        }
    }
    Ok(())
}

fn not_definite(t: usize) -> Error {
    let rule = "must be positive definite";
    Error::parameter("covariances", format!("that of component {t}"), rule)
}

/// A prior no stronger than any of the components: their average mean and covariance, with the least of the counts.
fn weakest(components: &[NormalWishart], covariances: ArrayView3<'_, f64>) -> Result<Prior> {
    let least = |of: fn(&NormalWishart) -> f64| components.iter().map(of).fold(f64::MAX, f64::min);
    let degrees = least(|q| q.degrees);
    let (k, dim, _) = covariances.dim();
    let mut mean = vec![0.0; dim];
    for q in components {
        for (sum, x) in mean.iter_mut().zip(&q.mean) {
            *sum += x / k as f64;
        }
    }
    let mut inverse_scale = vec![0.0; dim * dim];
    for covariance in covariances.outer_iter() {
        for (sum, x) in inverse_scale.iter_mut().zip(covariance) {
            *sum += x * degrees / k as f64;
        }
    }
    let prior = Prior::new(
        1.0,
        least(|q| q.mean_precision),
        degrees,
        mean,
        inverse_scale,
    );
    prior.ok_or_else(|| {
        let rule = "their average must be positive definite";
        Error::parameter("covariances", format!("of {k} components"), rule)
    })
}

#[cfg(test)]
mod tests {
    use super::super::prior::tests::ill_conditioned;
    use super::*;
    use crate::algorithms;
    use crate::data::Dense;
    use crate::model::Mixture;
    use approx::assert_relative_eq;
    use ndarray::{Array1, Array2, Array3};

    type Parameters = (
        Array2<f64>,
        Array3<f64>,
        Array1<f64>,
        Array1<f64>,
        Array2<f64>,
    );

    fn parameters(model: &DirichletProcessMixture<f64>) -> Parameters {
        (
            model.means().to_owned(),
            model.covariances(),
            model.degrees_of_freedom(),
            model.mean_precisions(),
            model.sticks(),
        )
    }

    fn model((m, c, n, b, s): &Parameters) -> Result<DirichletProcessMixture<f64>> {
        DirichletProcessMixture::from_parameters(m.view(), c.view(), n.view(), b.view(), s.view())
    }

    fn fitted() -> (Array2<f64>, DirichletProcessMixture<f64>) {
        let x = ill_conditioned::<f64>(700);
        let clusterer = algorithms::dp_gmm(6, 1.0).build().unwrap();
        let model = clusterer.fit(&Dense::new(x.view()).unwrap()).unwrap().model;
        (x, model)
    }

    #[test]
    fn a_fitted_model_comes_back() {
        let (x, fitted) = fitted();
        let data = Dense::new(x.view()).unwrap();
        let back = model(&parameters(&fitted)).unwrap();
        assert_eq!(back.predict(&data).unwrap(), fitted.predict(&data).unwrap());
        let pairs = [
            (
                back.log_densities(&data).unwrap(),
                fitted.log_densities(&data).unwrap(),
            ),
            (back.proportions(), fitted.proportions()),
        ];
        for (own, other) in pairs {
            for (own, other) in own.iter().zip(&other) {
                assert_relative_eq!(*own, *other, max_relative = 1e-6);
            }
        }
        let (own, other) = (back.covariances(), fitted.covariances());
        for (own, other) in own.iter().zip(&other) {
            assert_relative_eq!(*own, *other, max_relative = 1e-6, epsilon = 1e-9);
        }
    }

    #[test]
    fn parameters_outside_their_range_are_errors() {
        let sound = parameters(&fitted().1);
        assert!(model(&sound).is_ok());
        type Change = fn(&mut Parameters);
        let changes: [(Change, &str); 13] = [
            (|p| p.4 = Array2::ones((6, 3)), "sticks"),
            (|p| p.0[[1, 2]] = f64::NAN, "means"),
            (|p| p.1[[1, 2, 2]] = -1.0, "covariances"),
            (|p| p.1[[1, 2, 1]] += 1e3, "covariances"),
            (|p| p.1[[1, 2, 1]] = f64::NAN, "covariances"),
            (|p| p.1.fill(1.0), "covariances"),
            (|p| p.1 = Array3::ones((5, 6, 6)), "covariances"),
            (|p| p.1 = Array3::ones((6, 6, 5)), "covariances"),
            (|p| p.2[3] = 5.0, "degrees_of_freedom"),
            (|p| p.2 = Array1::ones(5), "degrees_of_freedom"),
            (|p| p.3[0] = 0.0, "mean_precisions"),
            (|p| p.3[0] = f64::INFINITY, "mean_precisions"),
            (|p| p.4[[0, 1]] = -2.0, "sticks"),
        ];
        for (change, part) in changes {
            let mut changed = sound.clone();
            change(&mut changed);
            let found = model(&changed).map(|_| ()).unwrap_err().to_string();
            assert!(found.contains(part), "{found}");
        }
    }
}
