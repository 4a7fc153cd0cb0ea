//! Searching all components for a block of rows: what E-steps and predictions share.

use crate::base::float::Float;
use crate::data::{Linear, Rows, Scores, all_scores, some_scores};
use crate::kernels::{select, soft};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::candidates;
use std::sync::Arc;

/// Scratch of the searches over all components.
#[derive(Debug, Default)]
pub(crate) struct Exact<F> {
    approximate: Vec<F>,
    features: Vec<F>,
    lowest: Vec<soft::Lowest<F>>,
    candidates: candidates::Candidates<F>,
    reached: Vec<u32>,
    scores: Vec<F>,
}

/// exp(-REACH) is lost beside 1 in `f64`, whatever the number of components.
const REACH: f64 = 60.0;

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
    if block.is_full() {
        all(model, model.log_joint().beta, rows, block, scratch);
    } else {
        best(model, rows, block, scratch);
    }
    block.count(rows.len() * model.components());
}

/// The `block.width()` best components of every row, exactly.
pub(crate) fn best<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    let (k, width) = (scorer.components(), block.width());
    block.supports.resize(rows.len() * width, 0);
    if width == 1 && scorer.best(rows, &mut block.supports, &mut block.scores) {
        return;
    }
    all_scores(scorer, rows, &mut scratch.approximate);
    for i in 0..rows.len() {
        let approximate = &scratch.approximate[i * k..(i + 1) * k];
        let places = i * width..(i + 1) * width;
        let ids = &mut block.supports[places.clone()];
        let scores = &mut block.scores[places];
        candidates::best(
            scorer,
            rows,
            i,
            approximate,
            &mut scratch.candidates,
            ids,
            scores,
        );
    }
}

/// The scores of every row under all components. Where a component is near enough to have a share in the
/// posterior, and the rounding bound (E21) would change it, its score is computed directly.
pub(crate) fn all<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    beta: f64,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    /// An error of a log-joint that is negligible, in units of the square root of epsilon.
    const FELT: f64 = 1e-3;

    let k = scorer.components();
    if block.is_shared()
        && let Some(linear) = scorer.linear()
        && rows.linear(linear, &mut scratch.features, &mut block.scores)
    {
        return settle(scorer, linear, beta, rows, block, scratch);
    }
    let mut approximate = std::mem::take(&mut scratch.approximate);
    all_scores(scorer, rows, &mut approximate);
    for (i, approximate) in approximate.chunks_exact(k).enumerate() {
        let scores = block.scores_mut(i);
        scores.copy_from_slice(approximate);
        let margin = scorer.margin(rows, i, F::INFINITY).to_f64();
        if margin == 0.0 {
            // They are exact already.
            continue;
        }
        let felt = beta * margin > FELT * F::EPSILON.sqrt();
        // Always those that may be the best one: labels must not depend on rounding.
        let reach = 2.0 * margin + if felt { REACH / beta } else { 0.0 };
        let reach = F::from_f64(select::minimum(scores).to_f64() + reach);
        select::not_above(scores, reach, &mut scratch.reached);
        direct(scorer, rows, i, scores, scratch);
    }
    scratch.approximate = approximate;
}

/// Corrects scores that were found as products. Those that may be the best one of their row are computed directly, so that
/// labels do not depend on rounding. So are those whose rounding can be felt in the responsibilities.
fn settle<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    linear: &Linear<F>,
    beta: f64,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    let stride = block.stride();
    let exactness = Arc::clone(linear.exactness());
    let reach = REACH / beta;
    let error_up_to = |score: f64| linear.relative() * (score.max(0.0) + reach);
    let mut lowest = std::mem::take(&mut scratch.lowest);
    soft::lowest(&block.scores, stride, &mut lowest);
    for (i, &found) in lowest.iter().enumerate() {
        let row = &mut block.scores[i * stride..(i + 1) * stride];
        let mut found = found;
        let of_row = !found.sound || linear.is_felt(beta, found.least.to_f64());
        if of_row || !exactness.felt.is_empty() {
            let upper = soft::least_upper(row, linear.errors());
            let error = error_up_to(upper.to_f64());
            let reach = F::from_f64(upper.to_f64() + reach + 2.0 * error);
            let far = beta * error > 1.0 || error.is_nan();
            let felt = match of_row || far {
                true => None,
                false => Some(linear.felt()),
            };
            soft::not_above(row, linear.errors(), felt, reach, &mut scratch.reached);
            direct(scorer, rows, i, row, scratch);
            found = soft::lowest_of(row);
        }
        let error = error_up_to(found.least.to_f64()) + linear.largest_unfelt();
        let near = F::from_f64(found.least.to_f64() + 2.0 * error);
        // `!(next > near)`, not `next <= near`: of a NaN too.
        #[allow(clippy::neg_cmp_op_on_partial_ord)]
        if !(found.next > near) {
            select::not_above(row, near, &mut scratch.reached);
            direct(scorer, rows, i, row, scratch);
        }
    }
    scratch.lowest = lowest;
    block.exactness = Some(exactness);
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
    // Not the padding, which is infinitely far.
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
        all(scorer, beta, rows, block, &mut Exact::default());
    } else {
        let (mut ids, mut scores) = (Vec::new(), Vec::new());
        for i in 0..rows.len() {
            let places = i * width..(i + 1) * width;
            let support = &mut block.supports[places.clone()];
            ids.clear();
            ids.extend_from_slice(support);
            some_scores(scorer, rows, i, &ids, &mut scores);
            select::smallest(&ids, &scores, support, &mut block.scores[places]);
        }
    }
    block.count(rows.len() * width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Centres, Data, Dense, Frame};
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
        for width in [1, 3, 20] {
            let mut block = Block::new(20, width);
            block.reset(200, &vec![0; if width < 20 { 200 * width } else { 0 }]);
            if width < 20 {
                best(&centres, &rows, &mut block, &mut Exact::default());
            } else {
                all(&centres, 1e8, &rows, &mut block, &mut Exact::default());
            }
            for i in 0..200 {
                let row = rows.to_centre(i);
                let mut naive: Vec<(f64, u32)> = (0..20)
                    .map(|c| {
                        let d2 = row
                            .iter()
                            .zip(centres.row(c))
                            .map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2));
                        (d2.sum::<f64>(), c as u32)
                    })
                    .collect();
                if width < 20 {
                    naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
                for (place, &(score, _)) in naive.iter().take(width).enumerate() {
                    let got = block.scores(i)[place].to_f64();
                    if score < 1.0 {
                        assert!((got - score).abs() <= 1e-6 * score + 1e-20, "{got} {score}");
                    }
                }
            }
        }
    }

    /// Rows of more columns, with copies among the centres in one lane of a panel, in two, and in none: labels are those
    /// of the direct distances, and of equals the first.
    #[test]
    fn the_nearest_of_all_is_exact_in_panels() {
        for d in [9, 17, 40] {
            let mut rng = Rng::from_seed(d as u64);
            let x = Array2::from_shape_fn((300, d), |_| rng.normal() as f32);
            let data = Dense::new(x.view()).unwrap();
            let frame = Frame::of(data.summary());
            let mut seeds = x.view().split_at(ndarray::Axis(0), 40).0.to_owned();
            for (copy, of) in [(16, 0), (35, 4), (39, 5)] {
                let row = seeds.row(of).to_owned();
                seeds.row_mut(copy).assign(&row);
            }
            let centres = Centres::enter(seeds.view(), &frame);
            let (mut rows, mut block) = (Default::default(), Block::new(40, 1));
            data.load(0..300, &frame, &mut rows).unwrap();
            block.reset(300, &[0; 300]);
            best(&centres, &rows, &mut block, &mut Exact::default());
            let all: Vec<u32> = (0..40).collect();
            let mut copies = 0;
            for i in 0..300 {
                let mut direct = Vec::new();
                rows.distances_to(i, &centres, &all, &mut direct);
                let first = (0..40).min_by(|&a, &b| direct[a].total_cmp(&direct[b]));
                assert_eq!(Some(block.support(i)[0] as usize), first, "{d} {i}");
                assert_eq!(block.scores(i)[0], direct[first.unwrap()]);
                copies += usize::from([0, 4, 5].contains(&first.unwrap()));
            }
            assert!(copies > 3);
        }
    }
}
