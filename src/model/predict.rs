//! Predictions and scores of a model, over all components and all rows, in blocks: compiled once per number type.

use crate::base::error::{Error, Result, positive, require};
use crate::base::float::Float;
use crate::base::parallel;
use crate::costs::{Cost, OwnCost};
use crate::data::{Data, Dense, Guarded};
use crate::kernels::soft;
use crate::model::Score;
use crate::model::block::Block;
use crate::model::cells::{Cells, TRIAL_ROWS};
use crate::model::facts::Facts;
use crate::model::posterior;
use crate::model::search::{self, Exact};
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// The least rows in a block, where costs are not stored.
const ROWS: usize = 384;

/// From this many components on, rows are searched by cells (E45), in batches of `CELL_ROWS`, if there are at least
/// `ROWS_PER_POINT` rows for every cell: building the cells takes time.
const CELL_COMPONENTS: usize = 2048;
const CELL_ROWS: usize = 1024;
const ROWS_PER_POINT: f64 = 64.0;

/// Rows that are filled in together.
const PART_ROWS: usize = 1 << 12;

/// Cells are used for all rows only if they pay at this many places.
const TRIALS: usize = 4;

type Model<'a, F> = &'a Facts<'a, F>;
type DataOf<'a, F> = &'a dyn Data<F>;

#[inline(never)]
pub(crate) fn predict<F: Float>(model: Model<'_, F>, data: DataOf<'_, F>) -> Result<Array1<u32>> {
    let k = model.components;
    let in_cells = !data.is_ragged() && model.cost.is_squared() && k >= CELL_COMPONENTS;
    if in_cells && data.len() as f64 >= ROWS_PER_POINT * (k as f64).sqrt() {
        data.check(model.frame)?;
        let cells = Cells::of(model.centres);
        if rule_out_enough(model, data, &cells)? {
            let blocks = by_blocks_of(CELL_ROWS, model, data, |rows| cells.nearest(rows).ids)?;
            return Ok(blocks.concat().into());
        }
    }
    let blocks = by_blocks(model, data, |rows| label(model.cost, rows))?;
    Ok(blocks.concat().into())
}

/// Whether cells rule out enough components for a few of the rows, to be worth their cost for all.
fn rule_out_enough<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
    cells: &Cells<F>,
) -> Result<bool> {
    if data.len() < TRIALS * TRIAL_ROWS {
        return Ok(true);
    }
    let data = Guarded::new(data, None)?;
    Ok(cells.pay(&data, model.frame, TRIALS)?.0)
}

#[inline(never)]
pub(crate) fn responsibilities<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
) -> Result<Array2<F>> {
    let blocks = by_blocks_of(rows_of_costs(model), model, data, |rows| {
        let mut block = costs_of_all(model, rows, &mut |_| {});
        posterior::normalise(rows, &mut block, model.log_joint);
        of_members(&block)
    })?;
    table(blocks, data, model.components)
}

#[inline(never)]
pub(crate) fn truncated_responsibilities<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
    c_prime: usize,
) -> Result<(Array2<u32>, Array2<F>)> {
    positive("c_prime", c_prime)?;
    let width = c_prime.min(model.components);
    let blocks = by_blocks(model, data, |rows| {
        let mut block = best(model.cost, rows, width);
        posterior::normalise(rows, &mut block, model.log_joint);
        let responsibilities = of_members(&block);
        (block.supports, responsibilities)
    })?;
    let (supports, responsibilities) = blocks.into_iter().unzip();
    Ok((
        table(supports, data, width)?,
        table(responsibilities, data, width)?,
    ))
}

/// The rows with what is missing filled in, from the responsibilities of all components, and what each expects: its mean, unless
/// that depends on what is known. `whole`: with what may be data.
#[inline(never)]
pub(crate) fn impute<F: Float>(
    model: Model<'_, F>,
    means: &Array2<F>,
    data: &Dense<'_, F>,
    whole: bool,
) -> Result<Array2<F>> {
    let mut filled = data.points().to_owned();
    check(model, data)?;
    let mut rows = Rows::default();
    // Some rows at a time: shares are as many as rows times components.
    for (number, mut part) in (0..).zip(filled.axis_chunks_iter_mut(Axis(0), PART_ROWS)) {
        let first = number * PART_ROWS;
        data.load(first..first + part.nrows(), model.frame, &mut rows)?;
        check_rows(model, &rows, first)?;
        if data.kind().is_dense() {
            continue;
        }
        let known = part.to_owned();
        let known = known.as_slice().expect("rows in order");
        let known = Dense::of_block(known, means.ncols(), None, true);
        let shares = responsibilities(model, &known)?;
        for (i, mut row) in part.outer_iter_mut().enumerate() {
            let shares = shares.row(i);
            let completed = completed(model, &rows, i, shares);
            for (j, x) in row.iter_mut().enumerate().filter(|(_, x)| !x.is_finite()) {
                let terms = shares
                    .iter()
                    .zip(means.column(j))
                    .map(|(share, mean)| share.to_f64() * mean.to_f64());
                let expected = match &completed {
                    Some(completed) => completed[j].to_f64(),
                    None => terms.sum(),
                };
                let datum = |own_cost: &dyn OwnCost<F>| own_cost.datum(j, shares, expected, whole);
                *x = F::from_f64(model.cost.own().map_or(expected, datum));
            }
        }
    }
    Ok(filled)
}

/// The log-density of the first row, from the least likely on, with which the weight is more than this share of all.
#[inline(never)]
pub(crate) fn density_threshold<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
    share: f64,
) -> Result<f64> {
    let rule = "must be more than 0 and less than 1";
    require(share > 0.0 && share < 1.0, "share", share, rule)?;
    let densities = log_densities(model, data)?.into_iter().enumerate();
    let mut rows: Vec<(f64, f64)> = densities.map(|(n, x)| (x, data.weight(n))).collect();
    in_order(&mut rows);
    let total = rows.iter().map(|(_, w)| w).sum::<f64>();
    let mut reached = 0.0;
    let last = rows.last().copied();
    let first_beyond = rows.into_iter().find(|(_, w)| {
        reached += w;
        reached > share * total
    });
    let (density, _) = first_beyond.or(last).ok_or(Error::Empty { what: "data" })?;
    Ok(density)
}

/// A row (d) in the data's own unit as components complete it, with these shares; `None` where what is missing does not depend on what is
/// known.
fn completed<F: Float>(
    model: Model<'_, F>,
    rows: &Rows<F>,
    i: usize,
    shares: ArrayView1<'_, F>,
) -> Option<Vec<F>> {
    let cost = model.cost;
    let frame = model.frame;
    let mut sums = vec![0.0; rows.dim];
    for (c, share) in shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > F::zero())
    {
        let completed = cost.completed(rows, i, c)?;
        for (sum, z) in sums.iter_mut().zip(completed) {
            *sum += share.to_f64() * z;
        }
    }
    let leave = |(j, z)| F::from_f64(frame.leave_wide(j, z));
    Some(sums.into_iter().enumerate().map(leave).collect())
}

/// The log-densities of a block of rows, in nats, for densities in the data's own unit.
#[inline(never)]
pub(crate) fn densities<F: Float>(model: Model<'_, F>, rows: &Rows<F>) -> Vec<f64> {
    model
        .own_log_densities(rows)
        .unwrap_or_else(|| densities_and_labels(model, rows, &mut []))
}

/// The log-densities that follow from costs, and from the same costs the likeliest components of as many rows as there are
/// labels.
#[inline(never)]
fn densities_and_labels<F: Float>(
    model: Model<'_, F>,
    rows: &Rows<F>,
    labels: &mut [u32],
) -> Vec<f64> {
    let beta = model.log_joint.beta;
    let mut sums = Vec::new();
    let mut see = |costs: &[F]| soft::sum(costs, beta, &mut sums);
    let block = costs_of_all(model, rows, &mut see);
    posterior::labels(&block, labels);
    posterior::log_densities(rows, &block, model.log_joint, &sums)
}

#[inline(never)]
pub(crate) fn log_densities<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
) -> Result<Array1<f64>> {
    let size = rows_of_costs(model);
    let blocks = by_blocks_of(size, model, data, |rows| densities(model, rows))?;
    Ok(blocks.concat().into())
}

#[inline(never)]
pub(crate) fn log_likelihood<F: Float>(model: Model<'_, F>, data: DataOf<'_, F>) -> Result<f64> {
    let work = |rows: &Rows<F>| weighted(rows, &densities(model, rows));
    let blocks = by_blocks_of(rows_of_costs(model), model, data, work)?;
    Ok(total(blocks.into_iter()))
}

pub(crate) struct Classified {
    /// $\sum_n w_n \max_c \ln p(c, y_n \mid \theta)$, in nats.
    pub(crate) log_likelihood: f64,
    /// Components that are the likeliest of a row of positive weight.
    pub(crate) in_use: usize,
}

/// The log-likelihood of rows together with their likeliest components (E47).
#[inline(never)]
pub(crate) fn classify<F: Float>(model: Model<'_, F>, data: DataOf<'_, F>) -> Result<Classified> {
    let log_joint = model.log_joint;
    let blocks = by_blocks(model, data, |rows| {
        let block = best(model.cost, rows, 1);
        let best = |i| log_joint.beta * block.costs(i)[0].to_f64();
        let joint = |i| log_joint.of_row(rows, i) - best(i);
        let joints: Vec<f64> = (0..rows.len()).map(joint).collect();
        let counted = (0..rows.len()).filter(|i| rows.weight(*i) > 0.0);
        let labels: Vec<u32> = counted.map(|i| block.supports[i]).collect();
        (weighted(rows, &joints), labels)
    })?;
    let mut used = vec![false; model.components];
    for (_, labels) in &blocks {
        for label in labels {
            used[*label as usize] = true;
        }
    }
    Ok(Classified {
        log_likelihood: total(blocks.iter().map(|block| block.0)),
        in_use: used.iter().filter(|used| **used).count(),
    })
}

/// The score, and how often it takes the distance of a row and a component: for its posterior, for its density where this has
/// another form, and for its nearest mean, unless that is the likeliest component.
#[inline(never)]
pub(crate) fn score<F: Float>(model: Model<'_, F>, data: DataOf<'_, F>) -> Result<(Score, u64)> {
    let is_squared = model.cost.is_squared();
    let blocks = by_blocks_of(rows_of_costs(model), model, data, |rows| {
        let own_densities = model.own_log_densities(rows);
        let each = 1 + u64::from(own_densities.is_some()) + u64::from(!is_squared);
        let (densities, labels) = match own_densities {
            Some(densities) => (densities, label(model.cost, rows)),
            None => {
                let mut labels = vec![0; rows.len()];
                (densities_and_labels(model, rows, &mut labels), labels)
            }
        };
        let error = if is_squared {
            error_of_labels(model.centres, rows, &labels)
        } else {
            error_of(model.centres, rows)
        };
        let evaluations = each.saturating_mul((rows.len() * model.components) as u64);
        (labels, error, weighted(rows, &densities), evaluations)
    })?;
    let evaluations = blocks
        .iter()
        .map(|block| block.3)
        .fold(0u64, u64::saturating_add);
    let quantization_error = if model.cost.has_distances() {
        in_data_unit(model.frame, blocks.iter().map(|block| block.1))?
    } else {
        f64::NAN
    };
    let score = Score {
        quantization_error,
        log_likelihood: total(blocks.iter().map(|block| block.2)),
        labels: blocks.into_iter().flat_map(|block| block.0).collect(),
    };
    Ok((score, evaluations))
}

#[inline(never)]
pub(crate) fn quantization_error<F: Float>(
    model: Model<'_, F>,
    data: DataOf<'_, F>,
) -> Result<f64> {
    let rule =
        "has columns of categories, whose codes have no distances: ask for the log-likelihood";
    require(model.cost.has_distances(), "model", "a table", rule)?;
    // Sums have the order of those of a score.
    let size = rows_of_costs(model);
    let blocks = by_blocks_of(size, model, data, |rows| error_of(model.centres, rows))?;
    in_data_unit(model.frame, blocks.into_iter())
}

/// sum_n w_n min_c |z_n - mu_c|^2 of a block, in the unit of the frame. Where rows know only some of their
/// coordinates, these stand for all (E28).
fn error_of<F: Float>(centres: &Centres<F>, rows: &Rows<F>) -> f64 {
    error_of_labels(centres, rows, &label(Cost::Squared(centres), rows))
}

/// The sum of squared distances to the centres that are named.
fn error_of_labels<F: Float>(centres: &Centres<F>, rows: &Rows<F>, labels: &[u32]) -> f64 {
    let mut squared = vec![F::zero(); rows.len()];
    rows.distances_to_own(centres, labels, &mut squared);
    let error = |i: usize| {
        // A row that knows nothing has no error.
        let of_known = centres.dim() as f64 / rows.known(i).max(1) as f64;
        rows.weight(i) * squared[i].to_f64() * of_known
    };
    (0..rows.len()).map(error).sum()
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

/// Whether the model can be asked about these rows.
fn check<F: Float>(model: Model<'_, F>, data: DataOf<'_, F>) -> Result<()> {
    data.check(model.frame)?;
    model.cost.check(data.kind())
}

/// Whether the model takes what these rows hold, of which the first has this number.
fn check_rows<F: Float>(model: Model<'_, F>, rows: &Rows<F>, first: usize) -> Result<()> {
    let own_cost = model.cost.own();
    own_cost.map_or(Ok(()), |cost| cost.takes(rows, first))
}

/// `work` on every block of rows, results in order: none, where there are no rows.
pub(super) fn by_blocks<F: Float, T: Send>(
    model: Model<'_, F>,
    data: &dyn Data<F>,
    work: impl Fn(&Rows<F>) -> T + Sync,
) -> Result<Vec<T>> {
    // Where nothing is as large as rows times components, more rows share one read of these.
    let least = if model.cost.is_squared() { ROWS } else { 0 };
    by_blocks_of(rows_of_costs(model).max(least), model, data, work)
}

/// Rows in a block whose costs under all components stay in a cache.
fn rows_of_costs<F: Float>(model: Model<'_, F>) -> usize {
    search::block_rows(model.components, model.frame.dim())
}

/// As [`by_blocks`], with `size` rows in a block.
fn by_blocks_of<F: Float, T: Send>(
    size: usize,
    model: Model<'_, F>,
    data: &dyn Data<F>,
    work: impl Fn(&Rows<F>) -> T + Sync,
) -> Result<Vec<T>> {
    check(model, data)?;
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let data = Guarded::new(data, None)?;
    parallel::all(parallel::map_blocks(data.len(), size, |_, range| {
        let mut rows = Rows::default();
        let first = range.start;
        data.load(range, model.frame, &mut rows)?;
        check_rows(model, &rows, first)?;
        Ok(work(&rows))
    }))
}

fn best<F: Float>(cost: Cost<'_, F>, rows: &Rows<F>, width: usize) -> Block<F> {
    let mut block = Block::listed(cost.components(), width);
    block.reset(rows.len(), &[]);
    block.supports.resize(rows.len() * width, 0);
    if width > 1 || !cost.best(rows, &mut block.supports, &mut block.costs) {
        search::ranked(cost, rows, &mut block, &mut Exact::default());
    }
    block
}

pub(crate) fn label<F: Float>(cost: Cost<'_, F>, rows: &Rows<F>) -> Vec<u32> {
    best(cost, rows, 1).supports
}

/// Values with their weights in the order of the values.
fn in_order(rows: &mut [(f64, f64)]) {
    rows.sort_by(|(a, _), (b, _)| a.total_cmp(b));
}

/// The sum of some numbers, one per row, with the weights of the rows. Rows of weight 0 are skipped, so that 0 times an
/// infinite value is not NaN.
fn weighted<F: Float>(rows: &Rows<F>, values: &[f64]) -> f64 {
    let values = values.iter().enumerate().map(|(i, x)| (rows.weight(i), x));
    let counted = values.filter(|(weight, _)| *weight > 0.0);
    counted.map(|(weight, value)| weight * value).sum()
}

/// The responsibilities of all rows, without padding.
fn of_members<F: Float>(block: &Block<F>) -> Vec<F> {
    let rows = (0..block.len()).flat_map(|i| block.responsibilities(i));
    rows.copied().collect()
}

/// All components of every row, with their costs; `see` as in [`search::all`].
fn costs_of_all<F: Float>(
    model: Model<'_, F>,
    rows: &Rows<F>,
    see: &mut dyn FnMut(&[F]),
) -> Block<F> {
    let k = model.components;
    let beta = model.log_joint.beta;
    let mut block = Block::new(k, k);
    block.reset(rows.len(), &[]);
    let cost = model.cost;
    search::all(cost, beta, rows, &mut block, &mut Exact::default(), see);
    block
}

/// Rows of `width` numbers, block by block, as one table (n, width).
fn table<F: Float, T>(blocks: Vec<Vec<T>>, data: DataOf<'_, F>, width: usize) -> Result<Array2<T>> {
    let values: Vec<T> = blocks.into_iter().flatten().collect();
    let read = values.len() / width;
    let n = data.len();
    Array2::from_shape_vec((n, width), values).map_err(|_| {
        let what = format!("{n} rows, where there were {read} before");
        Error::stage("data", what)
    })
}
