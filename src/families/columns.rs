//! Some columns of a model: which, and what they say of components.

use crate::base::error::{Error, Result, ensure, require, same_length};
use crate::base::float::Float;
use crate::data::Dense;
use crate::model::Mixture;
use ndarray::Array2;

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

/// The columns, out of `dim`, besides those that have these values: at least one.
pub(super) fn other_columns(columns: &[usize], values: &[f64], dim: usize) -> Result<Vec<usize>> {
    check_columns(columns, dim)?;
    same_length("values", columns.len(), values.len())?;
    if let Some(column) = values.iter().position(|x| !x.is_finite()) {
        let what = "values";
        let row = 0;
        return Err(Error::NotFinite { what, row, column });
    }
    let others: Vec<usize> = (0..dim).filter(|j| !columns.contains(j)).collect();
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
