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
    let shape = vector::<f64>(bytes, "shape", SHORT)?;
    let &[_, columns] = &shape[..] else {
        return Err(invalid(format!(
            "a matrix of {} axes; it must have 2",
            shape.len()
        )));
    };
    let start = member(bytes, "data", |_| Ok(SHORT))?;
    let element = npy::element_of(&start)?;
    Ok((columns as usize, element.max(ElementType::F32)))
}

/// The rows of a matrix in compressed rows.
pub(crate) fn rows<T: Number>(bytes: &Arc<dyn ReadAt>, options: &Options) -> Result<SparseRows<T>> {
    let read = guarded(|| read(bytes, options));
    read.map_err(|error| fault(&bytes.name(), error))
}

fn read<T: Number>(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<SparseRows<T>> {
    let format = whole(bytes, "format", SHORT)?;
    // Each is there as it is stored and as numbers, and then as lists that grow.
    let most = options.memory.map_or(u64::MAX, |memory| memory / 4);
    // Text of one byte for each sign, or of four.
    let letters: Vec<u8> = format.into_iter().filter(|byte| *byte != 0).collect();
    if !letters.ends_with(b"csr") {
        let name =
            String::from_utf8_lossy(&letters[letters.len().saturating_sub(3)..]).into_owned();
        return Err(invalid(format!(
            "a sparse matrix of the format {name:?}: save it by rows, as X.tocsr() has them"
        )));
    }
    let shape = vector::<f64>(bytes, "shape", SHORT)?;
    let starts = vector::<f64>(bytes, "indptr", most)?;
    let ids = vector::<f64>(bytes, "indices", most)?;
    let data = whole(bytes, "data", most)?;
    npy::check::<T>(&data, options.rounded)?;
    let values = npy::vector::<f64>(&data)?;
    let count = |x: &f64| *x as usize;
    let starts: Vec<usize> = starts.iter().map(count).collect();
    let fits = shape.len() == 2
        && starts.len() == count(&shape[0]).saturating_add(1)
        && starts[0] == 0
        && starts.is_sorted()
        && starts.last() == Some(&ids.len())
        && ids.len() == values.len()
        && ids.iter().all(|id| (0.0..f64::from(u32::MAX)).contains(id));
    if !fits {
        return Err(damaged("its lists are not those of rows"));
    }
    let mut rows = SparseRows::new(count(&shape[1]));
    let mut row = Vec::new();
    rows = rows.within(options.memory);
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

/// The numbers of an array of one axis, with a largest number of bytes.
fn vector<T: Number>(bytes: &Arc<dyn ReadAt>, name: &str, most: u64) -> io::Result<Vec<T>> {
    let named = |error: io::Error| invalid(format!("{name}: {error}"));
    npy::vector(&whole(bytes, name, most)?).map_err(named)
}

/// Bytes of an array that says what the matrix is, at most, and of the start of another one.
const SHORT: u64 = 1 << 16;

/// All bytes of an array: they may be many more than the file has.
fn whole(bytes: &Arc<dyn ReadAt>, name: &str, most: u64) -> io::Result<Vec<u8>> {
    member(bytes, name, |size| {
        if size <= most {
            Ok(size)
        } else {
            let mib = size.div_ceil(1 << 20);
            Err(invalid(format!(
                "{name}: an array of {mib} MiB, which has no room in memory: allow more"
            )))
        }
    })
}

/// The first bytes of an array: as many as are chosen for the size that the archive says.
fn member(
    bytes: &Arc<dyn ReadAt>,
    name: &str,
    choose: impl FnOnce(u64) -> io::Result<u64>,
) -> io::Result<Vec<u8>> {
    let other = |error: ZipError| match error {
        ZipError::FileNotFound => invalid(format!(
            "has no array {name:?}, and so is no sparse matrix as scipy.sparse.save_npz writes it: save one array as .npy"
        )),
        error => damaged(error),
    };
    let mut archive = ZipArchive::new(ReadFrom::start(bytes)).map_err(other)?;
    let file = archive.by_name(&format!("{name}.npy")).map_err(other)?;
    let size = choose(file.size())?;
    let mut contents = Vec::new();
    file.take(size).read_to_end(&mut contents)?;
    Ok(contents)
}
