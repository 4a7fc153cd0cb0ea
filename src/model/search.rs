//! Searching all components for a block of rows: what E-steps and predictions share.

use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::costs::Cost;
use crate::kernels::soft;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::rows::{Linear, Ranking, Rows, largest_error};

/// Scratch of the searches over all components.
#[derive(Debug, Default)]
pub(crate) struct Exact<F> {
    approximate: Vec<F>,
    features: Vec<F>,
    ranking: Ranking<F>,
    contenders: Vec<soft::Contenders<F>>,
    wide: Vec<f64>,
    narrow: Vec<F>,
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
    let cost = model.cost();
    block.count(rows.len() * cost.components());
    if block.is_full() {
        all(
            cost,
            model.log_joint().beta,
            rows,
            block,
            scratch,
            &mut |_| {},
        );
    } else if block.width() > 1 || !cost.best(rows, &mut block.supports, &mut block.costs) {
        ranked(cost, rows, block, scratch);
    }
}

/// The `block.width()` best components of every row, exactly, as lists.
pub(crate) fn ranked<F: Float>(
    cost: Cost<'_, F>,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
) {
    let approximate = &mut scratch.approximate;
    let ranking = &mut scratch.ranking;
    cost.all(rows, approximate);
    for (i, costs) in approximate.chunks_exact(cost.components()).enumerate() {
        cost.ranked(rows, i, costs, block.width(), ranking);
        block.set_best(i, &ranking.ids, &ranking.costs);
    }
}

/// The costs of every row under all components: as products where a family has them (E46), else as it computes all of them
/// fast. Whatever may be the best one of its row is computed directly, so labels do not depend on rounding. `see` is shown
/// whole vectors of costs of every row in turn, infinite in the padding, among them all that have a share.
pub(crate) fn all<F: Float>(
    cost: Cost<'_, F>,
    beta: f64,
    rows: &Rows<F>,
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
    see: &mut dyn FnMut(&[F]),
) {
    if !block.shared {
        // One component.
        let costs = &mut scratch.approximate;
        for (i, only_cost) in block.costs.iter_mut().enumerate() {
            cost.some(rows, i, &[0], costs);
            *only_cost = costs[0];
        }
        return;
    }
    if let Some(products) = cost.products().filter(|_| rows.entries().is_none()) {
        let direct = |i: usize, ids: &[u32], out: &mut Vec<F>| cost.some(rows, i, ids, out);
        return by_products(products, &direct, beta, &rows.values, block, scratch, see);
    }
    let whitened = match cost {
        Cost::Whitened(whitened) if rows.entries().is_none() => Some(whitened),
        _ => None,
    };
    if let Some(shared) = whitened.and_then(|whitened| whitened.one()) {
        let mut seen = std::mem::take(&mut block.seen);
        let mut narrow = std::mem::take(&mut scratch.narrow);
        shared.enter(rows, &mut scratch.wide, &mut seen);
        let products = shared.products(&seen, beta, &mut narrow);
        if let Some(products) = products {
            let direct =
                |i: usize, ids: &[u32], out: &mut Vec<F>| shared.some_entered(&seen, i, ids, out);
            by_products(products, &direct, beta, &narrow, block, scratch, see);
        }
        (block.seen, scratch.narrow) = (seen, narrow);
        if products.is_some() {
            return;
        }
    }
    if let Some(whitened) = whitened
        && whitened.fill(rows, beta, &mut block.costs)
    {
        return block.costs.chunks_exact(block.stride).for_each(see);
    }
    cost.all(rows, &mut scratch.approximate);
    let costs = scratch.approximate.chunks_exact(cost.components());
    for (i, costs) in costs.enumerate() {
        block.costs_mut(i).copy_from_slice(costs);
    }
    block.costs.chunks_exact(block.stride).for_each(see);
}

/// Costs of padded rows by products. Everything that can have a share of a row is computed by `of_row` where the rounding bound
/// of its costs is above [`largest_error`].
fn by_products<F: Float>(
    products: &Linear<F>,
    of_row: Direct<'_, F>,
    beta: f64,
    rows: &[F],
    block: &mut Block<F>,
    scratch: &mut Exact<F>,
    see: &mut dyn FnMut(&[F]),
) {
    let terms = products.terms(beta);
    let k = block.components();
    let has_tight = !terms.tight.is_empty();
    block.terms = Some(terms);
    products.costs(rows, &mut scratch.features, &mut block.costs);
    let errors = &products.errors[..];
    let limit = largest_error::<F>(products.width());
    let is_small = |error: f64| beta * error <= limit;
    // The relative error of a row's costs below an upper bound on the best one, and up to where a component may be the best.
    let error_below = |upper: f64| products.relative() * upper.max(0.0);
    let near_of =
        |upper: f64| upper + 2.0 * (error_below(upper) + products.relative() * REACH / beta);
    let mut contenders = std::mem::take(&mut scratch.contenders);
    let near = |upper: F| F::from_f64(near_of(upper.to_f64()));
    soft::contenders(&block.costs, errors, near, &mut contenders);
    let ranking = &mut scratch.ranking;
    let rows = block.costs.chunks_exact_mut(errors.len());
    for (i, (row, contender)) in rows.zip(&contenders).enumerate() {
        let upper = contender.upper.to_f64();
        let mut exact = is_small(error_below(upper));
        if exact && !has_tight && contender.number == 1 {
            see(row);
            continue;
        }
        let near = F::from_f64(near_of(upper));
        // Up to there it may have a share.
        let far = F::from_f64(near_of(upper) + REACH / beta);
        let reach = if exact && !has_tight { near } else { far };
        ranking.reach(row, errors, k, reach);
        if exact && has_tight {
            let mut reached = ranking.ids.iter().map(|c| errors[*c as usize]);
            exact = reached.all(|error| is_small(error.to_f64()));
            if exact {
                let is_far = |c: u32| row[c as usize] - errors[c as usize] > near;
                ranking.ids.retain(|c| !is_far(*c));
            }
        }
        if !exact || ranking.ids.len() > 1 {
            ranking.decide(0, k, |ids, out| of_row(i, ids, out));
            ranking.put(row);
        }
        if exact {
            see(row);
        } else {
            let whole = ranking.costs.len().next_multiple_of(LANES);
            ranking.costs.resize(whole, F::INFINITY);
            see(&ranking.costs);
        }
    }
    scratch.contenders = contenders;
}

/// Computes the costs of a row under some components.
type Direct<'a, F> = &'a dyn Fn(usize, &[u32], &mut Vec<F>);

/// Computes the costs of the supports a block came with again, and puts them best first.
pub(crate) fn again<F: Float>(cost: Cost<'_, F>, beta: f64, rows: &Rows<F>, block: &mut Block<F>) {
    let width = block.width();
    if block.is_full() {
        all(cost, beta, rows, block, &mut Exact::default(), &mut |_| {});
    } else {
        let mut ids = Vec::new();
        let mut costs = Vec::new();
        for i in 0..rows.len() {
            ids.clear();
            ids.extend_from_slice(block.support(i));
            cost.some(rows, i, &ids, &mut costs);
            block.set_best(i, &ids, &costs);
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
        let mut scratch = Exact::default();
        let mut direct = Vec::new();
        for width in [1, 3, 20] {
            let mut block = Block::new(20, width);
            if width < 20 {
                block.reset(200, &vec![0; 200 * width]);
                ranked(Cost::Squared(&centres), &rows, &mut block, &mut scratch);
            } else {
                block.reset(200, &[]);
                let cost = Cost::Squared(&centres);
                all(cost, 1e8, &rows, &mut block, &mut scratch, &mut |_| {});
            }
            for i in 0..200 {
                rows.distances_to(i, &centres, &all_ids, &mut direct);
                if width < 20 {
                    direct.sort_by(f32::total_cmp);
                }
                let near = block
                    .costs(i)
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
