//! The parameters of a model by name, as Python has them.

use crate::input::Number;
use coremix::families::{Column, Covariance, Family, GaussianMixture, ProductMixture};
use coremix::{BoxedMixture, Mixture, Result, Save};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of the family of a model: that of its files, in small letters.
pub(crate) fn name<F: Number>(model: &BoxedMixture<F>) -> Result<String> {
    Ok(in_small_letters(&model.info()?.family))
}

fn in_small_letters(family: &str) -> String {
    let letters = family.chars().take_while(|letter| letter.is_alphabetic());
    let mut name = String::new();
    for letter in letters {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    match &name[..] {
        "diagonal" => "diag".to_owned(),
        _ => name,
    }
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
        Some(Family::Product(own)) => put_blocks(own, found),
        _ => Ok(()),
    }
}

/// The mixture of these columns alone, or, with their `values`, that of the others given these. None: the family has none.
pub(crate) fn part<F: Number>(
    model: &dyn Mixture<F>,
    columns: &[usize],
    values: Option<&[f64]>,
) -> Result<Option<BoxedMixture<F>>> {
    macro_rules! part {
        ($own:ident) => {
            match values {
                Some(values) => Box::new($own.condition(columns, values)?) as BoxedMixture<F>,
                None => Box::new($own.marginal(columns)?),
            }
        };
    }
    Ok(Some(match Family::of(model) {
        Some(Family::Gaussian(own)) => part!(own),
        Some(Family::Product(own)) => part!(own),
        Some(Family::DirichletProcess(own)) => part!(own),
        _ => return Ok(None),
    }))
}

/// Variances in the shape that scikit-learn has for each kind of covariances.
fn put_covariances<F: Number>(own: &GaussianMixture<F>, found: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = found.py();
    let frame = Mixture::<F>::frame(own);
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

/// Kinds of all columns, the covariances of the first block that has some, and the probabilities of categories.
fn put_blocks<F: Number>(own: &ProductMixture<F>, found: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = found.py();
    found.set_item("blocks", own.gaussians().count())?;
    if let Some((_, numbers)) = own.gaussians().next() {
        let kind = format!("{:?}", numbers.covariance_kind());
        found.set_item("covariance_type", in_small_letters(&kind))?;
        put_covariances(numbers, found)?;
    }
    let by_column = PyDict::new(py);
    let codes = PyDict::new(py);
    let columns = own.columns().iter().enumerate();
    for (j, _) in columns.filter(|(_, kind)| matches!(kind, Column::Category(_))) {
        let probabilities = own.probabilities(j).map_err(crate::errors::raise)?;
        by_column.set_item(j, probabilities.into_pyarray(py))?;
        let own = own.codes(j).map_err(crate::errors::raise)?;
        codes.set_item(j, own.to_vec().into_pyarray(py))?;
    }
    let kinds = own.columns().iter();
    let kinds = kinds.map(|kind| in_small_letters(&format!("{kind:?}")));
    found.set_item("kinds", kinds.collect::<Vec<_>>())?;
    found.set_item("codes", codes)?;
    found.set_item("probabilities", by_column)?;
    found.set_item("explain", own.explain().into_pyarray(py))
}
