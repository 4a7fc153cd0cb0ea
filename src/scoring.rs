//! Predictions and scores of a model, over all components and all rows, in blocks: compiled once per kind of rows.

use crate::block::Block;
use crate::data::{Centres, Checked, Data, Frame, Rows, Scores};
use crate::error::{Error, Result, positive};
use crate::float::Float;
use crate::mixture::{Mixture, Score};
use crate::parallel;
use crate::posterior;
use crate::search::{self, Exact};
use crate::together::{self, Together};
use ndarray::{Array1, Array2};

type Model<'a, R> = &'a dyn Mixture<R>;
type Source<'a, R> = &'a dyn Data<Rows = R>;

/// [`Mixture::predict`].
pub(crate) fn predict<R: Rows>(model: Model<'_, R>, data: Source<'_, R>) -> Result<Array1<u32>> {
    let blocks = by_blocks(model, data, |rows| best(model, rows, 1).supports)?;
    Ok(blocks.concat().into())
}

/// [`Mixture::responsibilities`].
pub(crate) fn responsibilities<R: Rows>(
    model: Model<'_, R>,
    data: Source<'_, R>,
) -> Result<Array2<R::Float>> {
    let blocks = by_blocks(model, data, |rows| {
        let block = all(model, rows);
        match block.is_shared() {
            true => (0..block.len())
                .flat_map(|i| block.shares_of(i).to_vec())
                .collect(),
            false => rounded(&block.responsibilities),
        }
    })?;
    Ok(table(blocks, data.len(), model.components()))
}

/// [`Mixture::truncated_responsibilities`].
pub(crate) fn truncated_responsibilities<R: Rows>(
    model: Model<'_, R>,
    data: Source<'_, R>,
    c_prime: usize,
) -> Result<(Array2<u32>, Array2<R::Float>)> {
    positive("c_prime", c_prime)?;
    let width = c_prime.min(model.components());
    let blocks = by_blocks(model, data, |rows| {
        let mut block = best(model, rows, width);
        posterior::normalise(rows, &mut block, model.log_joint());
        (block.supports, rounded(&block.responsibilities))
    })?;
    let (supports, responsibilities) = blocks.into_iter().unzip();
    Ok((
        table(supports, data.len(), width),
        table(responsibilities, data.len(), width),
    ))
}

/// [`Mixture::judge`].
pub(crate) fn judge<R: Rows>(
    model: Model<'_, R>,
    rows: &R,
    labels: Option<&mut [u32]>,
) -> Vec<f64> {
    let log_joint = model.log_joint();
    // Where scores are squared distances, they need not be whole ones.
    let centres = model.likeliest_is_nearest().then(|| model.centres());
    let found = together::of_rows(model, centres, log_joint.beta, rows);
    if let Some(labels) = labels {
        for (label, found) in labels.iter_mut().zip(&found) {
            *label = found.label;
        }
    }
    let known = log_joint.alpha + rows.entries() as f64 * log_joint.gamma;
    let density = |found: &Together| known - log_joint.beta * found.best + found.sum.ln();
    found.iter().map(density).collect()
}

/// [`Mixture::log_densities`].
pub(crate) fn log_densities<R: Rows>(
    model: Model<'_, R>,
    data: Source<'_, R>,
) -> Result<Array1<f64>> {
    let blocks = by_blocks(model, data, |rows| model.judge(rows, None))?;
    Ok(blocks.concat().into())
}

/// [`Mixture::log_likelihood`].
pub(crate) fn log_likelihood<R: Rows>(model: Model<'_, R>, data: Source<'_, R>) -> Result<f64> {
    let blocks = by_blocks(model, data, |rows| weighted(rows, &model.judge(rows, None)))?;
    Ok(total(blocks.into_iter()))
}

/// [`Mixture::score`].
pub(crate) fn score<R: Rows>(model: Model<'_, R>, data: Source<'_, R>) -> Result<Score> {
    let blocks = by_blocks(model, data, |rows| {
        let mut labels = vec![0; rows.len()];
        let densities = model.judge(rows, Some(&mut labels));
        let error = match model.likeliest_is_nearest() {
            true => error_of_nearest(model.centres(), rows, &labels),
            false => error_of(model.centres(), rows),
        };
        (labels, error, weighted(rows, &densities))
    })?;
    Ok(Score {
        quantization_error: in_data_unit(model.frame(), blocks.iter().map(|block| block.1))?,
        log_likelihood: total(blocks.iter().map(|block| block.2)),
        labels: blocks.into_iter().flat_map(|block| block.0).collect(),
    })
}

/// [`Mixture::quantization_error`].
pub(crate) fn quantization_error<R: Rows>(model: Model<'_, R>, data: Source<'_, R>) -> Result<f64> {
    let blocks = by_blocks(model, data, |rows| error_of(model.centres(), rows))?;
    in_data_unit(model.frame(), blocks.into_iter())
}

/// sum_n w_n min_c |z_n - mu_c|^2 of a block, in the unit of the frame. Where rows know only some of their
/// coordinates, these stand for all (E28).
fn error_of<R: Rows>(centres: &Centres<R::Float>, rows: &R) -> f64 {
    let block = best(centres, rows, 1);
    let squared = (0..rows.len()).map(|i| rows.weight(i) * block.scores(i)[0].to_f64());
    of_all_coordinates(squared.sum(), centres, rows)
}

/// The same where the nearest mean of each row is known.
fn error_of_nearest<R: Rows>(centres: &Centres<R::Float>, rows: &R, nearest: &[u32]) -> f64 {
    let mut squared = Vec::new();
    let of_row = |(i, id)| {
        rows.distances_to(i, centres, std::slice::from_ref(id), &mut squared);
        rows.weight(i) * squared[0].to_f64()
    };
    let known = nearest.iter().enumerate().map(of_row).sum();
    of_all_coordinates(known, centres, rows)
}

fn of_all_coordinates<R: Rows>(known: f64, centres: &Centres<R::Float>, rows: &R) -> f64 {
    known * (centres.dim() as f64 / rows.entries() as f64)
}

/// The quantization error of all blocks, in the data's own unit, squared.
fn in_data_unit<F: Float>(frame: &Frame<F>, blocks: impl Iterator<Item = f64>) -> Result<f64> {
    let error = frame.leave_square(total(blocks));
    if error.is_finite() {
        return Ok(error);
    }
    let rule = "must be finite: divide the weights or the data by a constant";
    Err(Error::parameter("weighted squared distance", error, rule))
}

/// The sum of what is found in all blocks. Not [`Iterator::sum`] alone: of no blocks that is -0.
fn total(blocks: impl Iterator<Item = f64>) -> f64 {
    0.0 + blocks.sum::<f64>()
}

/// `work` on every block of rows, results in order: none, where there are no rows.
fn by_blocks<R: Rows, T: Send>(
    model: &dyn Mixture<R>,
    data: &dyn Data<Rows = R>,
    work: impl Fn(&R) -> T + Sync,
) -> Result<Vec<T>> {
    if data.is_empty() {
        data.check(model.frame())?;
        return Ok(Vec::new());
    }
    let checked = Checked::unless_known(data)?;
    let data = checked.as_ref().map_or(data, |checked| checked);
    data.check(model.frame())?;
    let size = search::block_rows(model.components());
    let found = parallel::map_blocks(data.len(), size, |_, range| {
        let mut rows = R::default();
        data.load(range, model.frame(), &mut rows);
        work(&rows)
    });
    match checked {
        Some(checked) => checked.result().map(|()| found),
        None => Ok(found),
    }
}

/// The `width` best components of every row.
fn best<R: Rows, S: Scores<R> + ?Sized>(scorer: &S, rows: &R, width: usize) -> Block<R::Float> {
    let mut block = Block::listed(scorer.components(), width);
    block.reset(rows.len(), &[]);
    search::best(scorer, rows, &mut block, &mut Exact::default());
    block
}

/// The best component of every row.
pub(crate) fn label<R: Rows, S: Scores<R> + ?Sized>(scorer: &S, rows: &R, labels: &mut [u32]) {
    labels.copy_from_slice(&best(scorer, rows, 1).supports);
}

/// The sum of some numbers, one per row, with the weights of the rows.
fn weighted<R: Rows>(rows: &R, values: &[f64]) -> f64 {
    let values = values.iter().enumerate();
    values.map(|(i, value)| rows.weight(i) * value).sum()
}

/// All components of every row, with their responsibilities.
fn all<R: Rows>(model: Model<'_, R>, rows: &R) -> Block<R::Float> {
    let (k, log_joint) = (model.components(), model.log_joint());
    let mut block = Block::new(k, k);
    block.reset(rows.len(), &[]);
    search::all(
        model,
        log_joint.beta,
        rows,
        &mut block,
        &mut Exact::default(),
    );
    posterior::normalise(rows, &mut block, log_joint);
    block
}

/// Rows of `width` numbers, block by block, as one table (n, width).
fn table<T>(blocks: Vec<Vec<T>>, n: usize, width: usize) -> Array2<T> {
    let values = blocks.into_iter().flatten().collect();
    Array2::from_shape_vec((n, width), values).expect("n rows of `width` numbers")
}

/// Responsibilities in the type of the data.
fn rounded<F: Float>(responsibilities: &[f64]) -> Vec<F> {
    responsibilities.iter().map(|&q| F::from_f64(q)).collect()
}
