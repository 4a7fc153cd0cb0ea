//! Some columns of a model: which, and what they say of components.

use crate::base::error::{Error, Result, ensure, require, same_length};
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::data::Dense;
use crate::model::Mixture;
use crate::rows::Frame;
use ndarray::{Array1, Array2, Axis};

pub(super) const TOO_FAR: &str = "are too far from all components: none has a share of them";

/// An error unless these are some of `dim` columns, each once.
pub(super) fn check_columns(columns: &[usize], dim: usize) -> Result<()> {
    ensure(!columns.is_empty(), || Error::Empty { what: "columns" })?;
    for (i, &column) in columns.iter().enumerate() {
        let rule = "must be below the number of columns";
        require(column < dim, "column", column, rule)?;
        let first = !columns[..i].contains(&column);
        require(first, "column", column, "must not come twice")?;
    }
    Ok(())
}

/// An error unless a model in this frame has a density of these columns alone.
pub(super) fn check_part<F: Float>(columns: &[usize], frame: &Frame<F>) -> Result<()> {
    let rule = "must be all of them for directions: all columns together make the length of a row";
    require(!frame.has_directions(), "columns", "some", rule)?;
    check_columns(columns, frame.dim())
}

/// The columns besides those that have these values: at least one.
pub(super) fn other_columns<F: Float>(
    columns: &[usize],
    values: &[f64],
    frame: &Frame<F>,
) -> Result<Vec<usize>> {
    check_part(columns, frame)?;
    same_length("values", columns.len(), values.len())?;
    if let Some(column) = values.iter().position(|x| !x.is_finite()) {
        let what = "values";
        let row = 0;
        return Err(Error::NotFinite { what, row, column });
    }
    let others: Vec<usize> = (0..frame.dim()).filter(|j| !columns.contains(j)).collect();
    let left = others.len();
    let rule = "must be at least 1";
    require(left > 0, "columns that are left", left, rule)?;
    Ok(others)
}

/// The posterior (k) of the components of a model under these values of all its columns.
pub(super) fn shares_under<F: Float>(model: &impl Mixture<F>, values: &[f64]) -> Result<Vec<f64>> {
    let row = Array2::from_shape_fn((1, values.len()), |(_, j)| F::from_f64(values[j]));
    let row = Dense::batch(&row)?;
    let density = model.log_densities(&row)?[0];
    require(density > -0.5 * F::LARGEST_COST, "values", density, TOO_FAR)?;
    let shares = model.responsibilities(&row)?.mapv(Float::to_f64);
    Ok((&shares / shares.sum()).into_iter().collect())
}

/// The other columns of a component, given values of some.
pub(super) struct Given {
    /// $\delta^\top \Sigma_{bb}^{-1} \delta$, of the differences $\delta$ from the mean.
    pub(super) squared: f64,
    /// Half of the logarithm of the determinant of $\Sigma_{bb}$.
    pub(super) volume: f64,
    /// By how much the means of the others move: $\Sigma_{ab} \Sigma_{bb}^{-1} \delta$.
    pub(super) step: Array1<f64>,
    /// The covariances that are left: $\Sigma_{aa} - \Sigma_{ab} \Sigma_{bb}^{-1} \Sigma_{ba}$.
    pub(super) rest: Array2<f64>,
}

/// The columns `others` of component `c`, with these covariances (d, d) of all columns, where the known ones have these differences from
/// the mean.
pub(super) fn given(
    c: usize,
    covariance: &Array2<f64>,
    (columns, differences): (&[usize], &[f64]),
    others: &[usize],
) -> Result<Given> {
    let known = columns.len();
    let wide = 1 + others.len();
    let flat: Vec<f64> = among(covariance, columns).into_iter().collect();
    let factored = Cholesky::of(&flat, known, None)?;
    let Cholesky { factor, .. } = factored.ok_or_else(|| singular(c))?;
    // L^-1 times the differences of the values, and times the covariances with the other columns.
    let mut solved = Array2::from_shape_fn((known, wide), |(i, j)| match j {
        0 => differences[i],
        _ => covariance[[columns[i], others[j - 1]]],
    });
    let rows = solved.as_slice_mut().expect("rows one after the other");
    linalg::forward(&factor, known, rows, wide);
    let (moved, across) = solved.view().split_at(Axis(1), 1);
    let logarithms = factor.iter().step_by(known + 1).map(|x| x.ln());
    Ok(Given {
        squared: moved.iter().map(|x| x * x).sum(),
        volume: logarithms.collect::<Array1<f64>>().sum(),
        step: across.t().dot(&moved).remove_axis(Axis(1)),
        rest: among(covariance, others) - across.t().dot(&across),
    })
}

/// The error about a component whose covariances of some columns have no inverse.
pub(super) fn singular(component: usize) -> Error {
    let rule = "has no positive definite covariance of these columns";
    Error::parameter("component", component, rule)
}

/// The covariances of some columns among all.
pub(super) fn among(covariance: &Array2<f64>, columns: &[usize]) -> Array2<f64> {
    let rows = covariance.select(Axis(0), columns);
    rows.select(Axis(1), columns)
}
