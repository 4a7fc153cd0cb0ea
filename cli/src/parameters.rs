//! The parameters of a saved model as arrays in an `.npz` file.

use crate::failure::{Failure, Result};
use crate::outputs;
use coremix::m_step::DirichletProcessMixture;
use coremix::prelude::*;
use coremix::{BoxedMixture, Float, ModelInfo};
use ndarray::{Array, Dimension};
use ndarray_npy::{NpzWriter, WritableElement};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Writes the parameters of a model: `means` (k, d), `variances` (k, d) and `proportions` (k); of a Dirichlet process also
/// `covariances` (k, d, d), `degrees_of_freedom` (k), `mean_precisions` (k) and `sticks` (k, 2).
pub(crate) fn write(model: &Path, to: &Path) -> Result<()> {
    let info = ModelInfo::of_file(model)?;
    outputs::replace(to, |file| {
        let mut npz = NpzWriter::new(file);
        match &*info.number {
            "f64" => of_type::<f64>(model, &info, (&mut npz, to)),
            _ => of_type::<f32>(model, &info, (&mut npz, to)),
        }?;
        npz.finish().map_err(|error| Failure::file(to, error))?;
        Ok(())
    })
}

/// Where arrays go.
type To<'a, 'b> = (&'a mut NpzWriter<&'b mut BufWriter<File>>, &'a Path);

fn of_type<F: Float + WritableElement>(
    model: &Path,
    info: &ModelInfo,
    (npz, to): To<'_, '_>,
) -> Result<()> {
    if info.family == "DirichletProcess" {
        let model = DirichletProcessMixture::<F>::load(model)?;
        put((npz, to), "covariances", model.covariances())?;
        put((npz, to), "degrees_of_freedom", model.degrees_of_freedom())?;
        put((npz, to), "mean_precisions", model.mean_precisions())?;
        put((npz, to), "sticks", model.sticks())?;
    }
    let model: BoxedMixture<F> = Save::load(model)?;
    put((npz, to), "means", model.means())?;
    put((npz, to), "variances", model.variances())?;
    put((npz, to), "proportions", model.proportions())
}

fn put<T: WritableElement, D: Dimension>(
    (npz, to): To<'_, '_>,
    name: &str,
    array: Array<T, D>,
) -> Result<()> {
    npz.add_array(name, &array)
        .map_err(|error| Failure::file(to, error))
}
