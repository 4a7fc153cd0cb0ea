//! Sparse matrices as `scipy.sparse.save_npz` writes them: arrays in an archive.

use crate::fault::{damaged, fault, guarded, invalid};
use crate::npy;
use crate::numbers::{ElementType, Number};
use crate::options::Options;
use crate::sparse::SparseRows;
use crate::table::{ReadAt, ReadFrom};
use coremix::Result;
use std::io::{self, Read};
use std::sync::Arc;
use zip::ZipArchive;
use zip::result::ZipError;

/// The number of columns, and the smallest element type of fits that holds all values.
pub(crate) fn about(bytes: &Arc<dyn ReadAt>) -> io::Result<(usize, ElementType)> {
    let shape = vector::<f64>(bytes, "shape")?;
    let &[_, columns] = &shape[..] else {
        return Err(invalid(format!(
            "a matrix of {} axes; it must have 2",
            shape.len()
        )));
    };
    let element = npy::element_of(&member(bytes, "data")?)?;
    Ok((columns as usize, element.max(ElementType::F32)))
}

/// The rows of a matrix in compressed rows.
pub(crate) fn rows<T: Number>(bytes: &Arc<dyn ReadAt>, options: &Options) -> Result<SparseRows<T>> {
    let read = guarded(|| read(bytes, options));
    read.map_err(|error| fault(&bytes.name(), error))
}

fn read<T: Number>(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<SparseRows<T>> {
    let format = member(bytes, "format")?;
    // Text of one byte for each sign, or of four.
    let letters: Vec<u8> = format.into_iter().filter(|byte| *byte != 0).collect();
    if !letters.ends_with(b"csr") {
        let own = String::from_utf8_lossy(&letters[letters.len().saturating_sub(3)..]).into_owned();
        return Err(invalid(format!(
            "a sparse matrix of the format {own:?}: save it by rows, as X.tocsr() has them"
        )));
    }
    let shape = vector::<f64>(bytes, "shape")?;
    let starts = vector::<f64>(bytes, "indptr")?;
    let ids = vector::<f64>(bytes, "indices")?;
    let data = member(bytes, "data")?;
    npy::check::<T>(&data, options.rounded)?;
    let values = npy::vector::<f64>(&data)?;
    let whole = |x: &f64| *x as usize;
    let starts: Vec<usize> = starts.iter().map(whole).collect();
    let fits = shape.len() == 2
        && starts.len() == whole(&shape[0]).saturating_add(1)
        && starts[0] == 0
        && starts.is_sorted()
        && starts.last() == Some(&ids.len())
        && ids.len() == values.len()
        && ids.iter().all(|id| (0.0..f64::from(u32::MAX)).contains(id));
    if !fits {
        return Err(damaged("its lists are not those of rows"));
    }
    let (mut rows, mut row) = (SparseRows::new(whole(&shape[1])), Vec::new());
    for (i, places) in starts.windows(2).enumerate() {
        let places = places[0]..places[1];
        row.clear();
        row.extend(
            ids[places.clone()]
                .iter()
                .map(|id| *id as u32)
                .zip(values[places].iter().copied()),
        );
        rows.push(&mut row)
            .map_err(|error| invalid(format!("row {i} {error}")))?;
    }
    Ok(rows)
}

/// The numbers of an array of one axis.
fn vector<T: Number>(bytes: &Arc<dyn ReadAt>, name: &str) -> io::Result<Vec<T>> {
    let named = |error: io::Error| invalid(format!("{name}: {error}"));
    npy::vector(&member(bytes, name)?).map_err(named)
}

/// The bytes of an array.
fn member(bytes: &Arc<dyn ReadAt>, name: &str) -> io::Result<Vec<u8>> {
    let other = |error: ZipError| match error {
        ZipError::FileNotFound => invalid(format!(
            "has no array {name:?}, and so is no sparse matrix as scipy.sparse.save_npz writes it: save one array as .npy"
        )),
        error => damaged(error),
    };
    let mut archive = ZipArchive::new(ReadFrom::start(bytes)).map_err(other)?;
    let mut file = archive.by_name(&format!("{name}.npy")).map_err(other)?;
    let mut found = Vec::new();
    file.read_to_end(&mut found)?;
    Ok(found)
}
