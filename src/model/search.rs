//! Searching all components for a block of rows: what E-steps and predictions share.

use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::kernels::soft;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::candidates;
use crate::rows::{Rows, Scores, all_scores, largest_error, some_scores};
use std::sync::Arc;

/// Scratch of the searches over all components.
#[derive(Debug, Default)]
pub(crate) struct Exact<F> {
    approximate: Vec<F>,
    features: Vec<F>,
    ranking: candidates::Ranking<F>,
    upper: Vec<F>,
    reached: Vec<u32>,
    scores: Vec<F>,
}

/// Components more than this many nats behind the best one have no share of a row.
const REACH: f64 = -soft::LOST_NATS;

/// Rows in a block of `dim` columns searched over `k` components: bounds the scratch, and keeps the rows near while they are
/// searched and summed up. It is part of the result (blocks have their own random streams and sums), so it depends on nothing
/// else.
pub(crate) fn block_rows(k: usize, dim: usize) -> usize {
    ((1 << 18) / k.max(dim).max(1)).clamp(32, 512)
}

/// The best components of every row, as many as supports have members: all, or the `block.width()` best.
#[inline(never)]
pub(crate) fn exhaustive<F: Float>(
    model: &dyn Mixture<F>,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    block.count(rows.len() * model.components());
    if block.is_full() {
        all(model, model.log_joint().beta, rows, block, scratch, |_| {});
    } else if block.width() > 1 || !model.best(rows, &mut block.supports, &mut block.scores) {
        ranked(model, rows, block, scratch);
    }
}

/// The `block.width()` best components of every row, exactly, as lists.
pub(crate) fn ranked<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    let Exact {
        approximate,
        ranking,
        ..
    } = scratch;
    all_scores(scorer, rows, approximate);
    let rows_of_scores = approximate.chunks_exact(scorer.components());
    for (i, approximate) in rows_of_scores.enumerate() {
        let (ids, scores) = ranking.of(scorer, rows, i, approximate, block.width());
        block.set_best(i, ids, scores);
    }
}

/// The scores of every row under all components: as products where a family has them (E46), else as it computes all of them
/// fast. Whatever may be the best one of its row is computed directly, so labels do not depend on rounding. So is everything
/// that can have a share of a row where the rounding bound of its scores is above [`largest_error`]. `see` is shown whole vectors
/// of scores of every row in turn, infinite in the padding, among them all that have a share.
pub(crate) fn all<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    beta: f64,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
    mut see: impl FnMut(&[F]),
) {
    if !block.shared {
        // One component.
        for (i, score) in block.scores.iter_mut().enumerate() {
            some_scores(scorer, rows, i, &[0], &mut scratch.scores);
            *score = scratch.scores[0];
        }
        return;
    }
    let products = scorer.linear().filter(|_| rows.entries().is_none());
    block.terms = products.map(|linear| Arc::clone(&linear.terms));
    if let Some(linear) = products {
        linear.scores(&rows.values, &mut scratch.features, &mut block.scores);
    } else {
        let k = scorer.components();
        all_scores(scorer, rows, &mut scratch.approximate);
        for (i, scores) in scratch.approximate.chunks_exact(k).enumerate() {
            block.scores_mut(i).copy_from_slice(scores);
        }
    }
    let none = vec![F::zero(); block.stride];
    let (errors, width) = match products {
        Some(linear) => (&linear.errors[..], linear.width()),
        None => (&none[..], rows.fewest_and_most_known().1),
    };
    let limit = largest_error::<F>(width);
    let is_small = |error: f64| beta * error <= limit;
    let has_tight = products.is_some_and(|linear| !linear.terms.tight.is_empty());
    soft::least_upper(&block.scores, errors, &mut scratch.upper);
    let rows_of_scores = block.scores.chunks_exact_mut(errors.len());
    for (i, row) in rows_of_scores.enumerate() {
        // Upper bound on the best score, up to the relative error of the row's scores.
        let upper = scratch.upper[i].to_f64();
        let (error, slack) = match products {
            Some(linear) => {
                let error = linear.relative() * upper.max(0.0);
                (error, error + linear.relative() * REACH / beta)
            }
            None => {
                let margin = scorer.margin(rows, i, F::INFINITY).to_f64();
                (margin, margin)
            }
        };
        if error == 0.0 && products.is_none() {
            // The scores are exact already.
            see(row);
            continue;
        }
        let near = F::from_f64(upper + 2.0 * slack);
        let far = F::from_f64(upper + 2.0 * slack + REACH / beta);
        let mut exact = is_small(error);
        let reach = if exact && !has_tight { near } else { far };
        soft::not_above(row, errors, reach, &mut scratch.reached);
        if exact && has_tight {
            let mut reached = scratch.reached.iter().map(|c| errors[*c as usize]);
            exact = reached.all(|error| is_small(error.to_f64()));
            if exact {
                let is_far = |c: u32| row[c as usize] - errors[c as usize] > near;
                scratch.reached.retain(|c| !is_far(*c));
            }
        }
        if !exact || scratch.reached.len() > 1 {
            direct(scorer, rows, i, row, scratch);
        }
        if exact {
            see(row);
        } else {
            let whole = scratch.scores.len().next_multiple_of(LANES);
            scratch.scores.resize(whole, F::INFINITY);
            see(&scratch.scores);
        }
    }
}

/// Computes the scores of a row directly that `scratch.reached` names.
fn direct<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    i: usize,
    row: &mut [F],
    scratch: &mut Exact<F>,
) {
    let k = scorer.components() as u32;
    // The padding is dropped: its scores are infinite.
    scratch.reached.retain(|&c| c < k);
    some_scores(scorer, rows, i, &scratch.reached, &mut scratch.scores);
    for (&c, &score) in scratch.reached.iter().zip(&scratch.scores) {
        row[c as usize] = score;
    }
}

/// Scores the supports a block came with again, and puts them best first.
pub(crate) fn again<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    beta: f64,
    rows: &Rows<F>,
    block: &mut Block<F>,
) {
    let width = block.width();
    if block.is_full() {
        all(scorer, beta, rows, block, &mut Exact::default(), |_| {});
    } else {
        let (mut ids, mut scores) = (Vec::new(), Vec::new());
        for i in 0..rows.len() {
            ids.clear();
            ids.extend_from_slice(block.support(i));
            some_scores(scorer, rows, i, &ids, &mut scores);
            block.set_best(i, &ids, &scores);
        }
    }
    block.count(rows.len() * width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::rows::{Centres, Frame};
    use ndarray::Array2;

    /// Centres in tight groups far from the mean: approximate distances alone would confuse them.
    #[test]
    fn searches_over_all_are_exact_where_expansion_rounds() {
        let mut rng = Rng::from_seed(2);
        let x = Array2::from_shape_fn((200, 3), |(n, _)| {
            (if n % 2 == 0 { 1.0f32 } else { -1.0 }) + 1e-4 * rng.normal() as f32
        });
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), 20).0, &frame);
        let mut rows = Default::default();
        data.load(0..200, &frame, &mut rows).unwrap();
        let all_ids: Vec<u32> = (0..20).collect();
        let (mut found, mut direct) = (Exact::default(), Vec::new());
        for width in [1, 3, 20] {
            let mut block = Block::new(20, width);
            if width < 20 {
                block.reset(200, &vec![0; 200 * width]);
                ranked(&centres, &rows, &mut block, &mut found);
            } else {
                block.reset(200, &[]);
                all(&centres, 1e8, &rows, &mut block, &mut found, |_| {});
            }
            for i in 0..200 {
                rows.distances_to(i, &centres, &all_ids, &mut direct);
                if width < 20 {
                    direct.sort_by(f32::total_cmp);
                }
                let near = block
                    .scores(i)
                    .iter()
                    .zip(&direct)
                    .filter(|(_, d)| **d < 1.0);
                for (got, direct) in near {
                    assert!((got - direct).abs() <= 1e-6 * direct, "{got} {direct}");
                }
            }
        }
    }
}
