//! The parameters of a saved model as arrays in an `.npz` file.

use crate::failure::{Failure, Result};
use crate::outputs;
use coremix::prelude::*;
use coremix::{BoxedMixture, Float, ModelInfo};
use coremix_files::WholeFile;
use ndarray::{Array, Dimension};
use ndarray_npy::{NpzWriter, WritableElement};
use std::path::Path;

/// Writes the parameters of a model by their names: `means` (k, d), and those that its family [says](Mixture::parameters).
pub(crate) fn write(model: &Path, to: &Path) -> Result<()> {
    let info = ModelInfo::of_file(model)?;
    outputs::replace(to, |file| {
        let mut npz = NpzWriter::new(file);
        match &*info.number {
            "f64" => of_type::<f64>(model, (&mut npz, to)),
            _ => of_type::<f32>(model, (&mut npz, to)),
        }?;
        npz.finish().map_err(|error| Failure::file(to, error))?;
        Ok(())
    })
}

/// Where arrays go.
type To<'a, 'b> = (&'a mut NpzWriter<&'b mut WholeFile>, &'a Path);

fn of_type<F: Float + WritableElement>(model: &Path, (npz, to): To<'_, '_>) -> Result<()> {
    let model: BoxedMixture<F> = Save::load(model)?;
    put((npz, to), "means", model.means())?;
    (model.parameters().into_iter()).try_for_each(|(name, array)| put((npz, to), name, array))
}

fn put<T: WritableElement, D: Dimension>(
    (npz, to): To<'_, '_>,
    name: &str,
    array: Array<T, D>,
) -> Result<()> {
    npz.add_array(name, &array)
        .map_err(|error| Failure::file(to, error))
}
