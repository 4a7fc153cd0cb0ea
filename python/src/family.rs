//! The parameters of a model by name, as Python has them.

use crate::input::Number;
use coremix::m_step::{Column, Covariance, Family, GaussianMixture, TableMixture};
use coremix::{BoxedMixture, Mixture, Result, Save};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of the family of a model: that of its files, in small letters.
pub(crate) fn name<F: Number>(model: &BoxedMixture<F>) -> Result<String> {
    let family = model.info()?.family;
    let letters = family.chars().take_while(|letter| letter.is_alphabetic());
    let mut name = String::new();
    for letter in letters {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    Ok(match &name[..] {
        "diagonal" => "diag".to_owned(),
        _ => name,
    })
}

/// Puts the parameters that are not the means into a dictionary.
pub(crate) fn put_parameters<F: Number>(
    model: &dyn Mixture<F>,
    found: &Bound<'_, PyDict>,
) -> PyResult<()> {
    for (name, values) in model.parameters() {
        let name = match name {
            "proportions" => "weights",
            other => other,
        };
        found.set_item(name, values.into_pyarray(found.py()))?;
    }
    match Family::of(model) {
        Some(Family::Gaussian(own)) => put_covariances(own, found),
        Some(Family::Table(own)) => put_columns(own, found),
        _ => Ok(()),
    }
}

/// Variances in the shape that scikit-learn has for each kind of covariances.
fn put_covariances<F: Number>(own: &GaussianMixture<F>, found: &Bound<'_, PyDict>) -> PyResult<()> {
    let (py, frame) = (found.py(), Mixture::<F>::frame(own));
    let name = "covariances";
    match own.covariance_kind() {
        Covariance::TiedSpherical | Covariance::Spherical if frame.is_standardised() => {
            found.set_item(name, own.variances().into_pyarray(py))
        }
        Covariance::TiedSpherical => found.set_item(name, own.variance()),
        Covariance::Spherical => {
            let variances = own.variances().column(0).to_owned();
            found.set_item(name, variances.into_pyarray(py))
        }
        Covariance::Diagonal => {
            if frame.basis().is_some() {
                // They are diagonal in another basis alone.
                found.set_item("full", own.covariances().into_pyarray(py))?;
            }
            found.set_item(name, own.column_variances().into_pyarray(py))
        }
        _ => Ok(()),
    }
}

fn put_columns<F: Number>(own: &TableMixture<F>, found: &Bound<'_, PyDict>) -> PyResult<()> {
    let (py, by_column) = (found.py(), PyDict::new(found.py()));
    let name = |column: &Column| match column {
        Column::Count => "count",
        Column::Category(_) => "category",
        _ => "number",
    };
    let kinds: Vec<_> = own.columns().iter().map(name).collect();
    for (column, kind) in own.columns().iter().enumerate() {
        if let Column::Category(_) = kind {
            let probabilities = own.probabilities(column).map_err(crate::errors::raise)?;
            by_column.set_item(column, probabilities.into_pyarray(py))?;
        }
    }
    found.set_item("kinds", kinds)?;
    found.set_item("probabilities", by_column)?;
    found.set_item("explain", own.explain().into_pyarray(py))
}
