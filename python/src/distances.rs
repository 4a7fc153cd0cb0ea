//! Distances of rows to all means.

use coremix::costs::Cost;
use coremix::data::{Data, Rows};
use coremix::ndarray::{ArrayView2, ArrayViewMut2, Axis};
use coremix::{Error, Float, Mixture, Result};
use rayon::prelude::*;

/// Rows that a thread takes at a time.
const BLOCK: usize = 256;

/// An error for columns of categories: their codes are labels.
pub(crate) fn check_distances<F: Float>(model: &dyn Mixture<F>) -> Result<()> {
    let has_distances = match model.cost() {
        Cost::Own(own) => own.has_distances(),
        _ => true,
    };
    if has_distances {
        return Ok(());
    }
    Err(Error::Parameter {
        name: "distances",
        value: "of rows with categories".to_owned(),
        rule: "their codes are labels, which have none: score_samples and predict_proba say how well a row fits",
    })
}

/// The distances of each row to all means (n, k), or to these means of each row (n, m), in the data's own unit: directly, so that
/// small ones are not lost.
pub(crate) fn distances<F: Float>(
    model: &dyn Mixture<F>,
    data: &dyn Data<F>,
    to: Option<ArrayView2<'_, i32>>,
    mut all: ArrayViewMut2<'_, F>,
) -> Result<()> {
    if data.dim() != model.frame().dim() {
        return Err(Error::DimensionMismatch {
            what: "data",
            expected: model.frame().dim(),
            found: data.dim(),
        });
    }
    check_distances(model)?;
    let frame = model.frame();
    let centres = model.centres();
    let every: Vec<u32> = (0..centres.len() as u32).collect();
    let mut blocks: Vec<_> = all.axis_chunks_iter_mut(Axis(0), BLOCK).collect();
    let work = |(block, out): (usize, &mut ArrayViewMut2<'_, F>)| {
        let first = block * BLOCK;
        let mut rows = Rows::default();
        let mut squared = Vec::new();
        data.load(first..first + out.nrows(), frame, &mut rows)?;
        for (i, mut out) in out.rows_mut().into_iter().enumerate() {
            let own: Vec<u32>;
            let ids = match to {
                Some(to) => {
                    own = to.row(first + i).iter().map(|c| *c as u32).collect();
                    &own
                }
                None => &every,
            };
            rows.distances_to(i, centres, ids, &mut squared);
            // Known columns stand for all, as in the quantization error.
            let all = data.dim() as f64 / rows.known(i).max(1) as f64;
            for (out, squared) in out.iter_mut().zip(&squared) {
                *out = F::from_f64(frame.leave_square(squared.to_f64() * all).sqrt());
            }
        }
        Ok(())
    };
    // One block wakes no other thread.
    match &mut blocks[..] {
        [one] => work((0, one)),
        all => all.par_iter_mut().enumerate().try_for_each(work),
    }
}
