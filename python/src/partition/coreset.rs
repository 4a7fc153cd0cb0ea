//! Lightweight coresets of the rows of a partition.

use crate::input::{Number, Rows};
use coremix::coreset::OnePass;
use coremix::ndarray::{Array1, Array2, ArrayView1, s};
use coremix::{Error, Result};

/// Rows that are read at a time.
const BLOCK: usize = 4096;

/// Draws of the rows, with their weights: in one pass, and the same for any number of threads.
pub(super) fn sample<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    size: usize,
    seed: u64,
) -> Result<(Array2<F>, Array1<f64>)> {
    let source = F::read(rows);
    let (n, dim) = (source.len(), source.dim());
    let given = weights.map_or(n, |weights| weights.len());
    if given != n {
        return Err(Error::LengthMismatch {
            what: "weights",
            expected: n,
            found: given,
        });
    }
    let mut coreset = OnePass::<F>::new(dim, size, seed)?;
    for first in (0..n).step_by(BLOCK) {
        let last = n.min(first + BLOCK);
        let mut values = vec![F::default(); (last - first) * dim];
        source
            .read(first, &mut values)
            .map_err(|error| Error::Stage {
                stage: source.name(),
                what: error.to_string(),
            })?;
        let block = Array2::from_shape_vec((last - first, dim), values).expect("n x d numbers");
        match weights {
            Some(weights) => coreset.push_weighted(block.view(), weights.slice(s![first..last]))?,
            None => coreset.push(block.view())?,
        }
    }
    coreset.finish()
}
