//! From costs to responsibilities and the free energy: the one place where posteriors are normalised.

use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::kernels::soft;
use crate::model::block::Block;
use crate::rows::Rows;

/// How costs turn into log-joints ([E1](crate::equations#e1)).
///
/// $$\ln p(c, y \mid \theta) = \alpha + D \gamma - \beta s_c(y)$$
///
/// with $D$ the number of observed coordinates of the row: all, unless it is a row of a sketch, or has missing values. For
/// [`Gaussian`](crate::families::Gaussian) the cost is a squared distance:
///
/// $$s_c(y) = \lVert y - \mu_c \rVert^2, \qquad \alpha = -\ln C, \qquad \gamma = -\frac 12 \ln(2 \pi \sigma^2), \qquad \beta = \frac{1}{2 \sigma^2}$$
///
/// All components have the same alpha, gamma and beta. Everything that differs between components is part of the cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogJoint {
    /// The log-joint of cost 0, without the part of the coordinates, in nats.
    pub alpha: f64,
    /// The addend of the log-joint for each coordinate, in nats, for densities in the data's own unit.
    pub gamma: f64,
    /// The decrease of the log-joint per unit of cost (in the frame), in nats; positive.
    pub beta: f64,
}

/// Sums over points from which the free energy follows: the terms of ([E3](crate::equations#e3)) with the largest log-joint
/// of each point taken out, so that nothing overflows.
///
/// $$F = \alpha \sum_n w_n + \gamma \sum_n w_n D_n - \beta \sum_n w_n s_n + \sum_n w_n \ln \sum_{c \in K(n)} e^{-\beta (s_c(y_n) - s_n)}, \qquad s_n = \min_{c \in K(n)} s_c(y_n)$$
///
/// With supports of width 1 the free energy under a new variance needs no new search.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Likelihood {
    /// $\sum_n w_n$.
    pub weight: f64,
    /// $\sum_n w_n D_n$: the weight of all observed coordinates.
    pub entries: f64,
    /// $\sum_n w_n s_n$: the best costs, in the unit of the costs.
    pub best: f64,
    /// The last term: at least 0, and 0 for supports of width 1.
    pub spread: f64,
    /// The log-density in the units of the standardised columns that rows know, less that in the mean unit.
    pub units: f64,
}

impl LogJoint {
    /// The log-joint of cost 0 of row `i`.
    pub(crate) fn of_row<F: Float>(&self, rows: &Rows<F>, i: usize) -> f64 {
        self.alpha + rows.known(i) as f64 * self.gamma + rows.units(i)
    }
}

impl Likelihood {
    /// The sums of rows that have one component each: these squared distances are all there is.
    pub(crate) fn of_nearest(weight: f64, entries: f64, squared: f64) -> Self {
        Self {
            weight,
            entries,
            best: squared,
            spread: 0.0,
            units: 0.0,
        }
    }

    /// The free energy, in nats ([E3](crate::equations#e3)).
    #[must_use]
    pub(crate) fn free_energy(&self, log_joint: LogJoint) -> f64 {
        let known = self.weight * log_joint.alpha + self.entries * log_joint.gamma;
        known - log_joint.beta * self.best + self.spread + self.units
    }

    /// Adds the sums over other points.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.weight += other.weight;
        self.entries += other.entries;
        self.best += other.best;
        self.spread += other.spread;
        self.units += other.units;
    }
}

/// A product of sums over components does not overflow if it was below this before the last one.
const LARGEST_PRODUCT: f64 = 1e280;

/// Turns the costs of a block into responsibilities over the supports (E2), and sums up the free energy.
pub(crate) fn normalise<F: Float>(
    rows: &Rows<F>,
    block: &mut Block<F>,
    log_joint: LogJoint,
) -> Likelihood {
    block.make_room();
    let units = (0..rows.len()).map(|i| rows.weight(i) * rows.units(i));
    let units = if rows.has_units() { units.sum() } else { 0.0 };
    if block.width() == 1 {
        block.responsibilities.fill(F::one());
        let (weight, best) = weighted_total(rows, &block.costs);
        return Likelihood {
            weight,
            entries: rows.weight_known(weight),
            best,
            spread: 0.0,
            units,
        };
    }
    let width = block.width();
    let beta = log_joint.beta;
    let mut row_sums = Vec::new();
    let mut shares = std::mem::take(&mut block.responsibilities);
    if block.shared {
        let costs = &block.costs;
        let stride = block.stride;
        soft::responsibilities(costs, stride, width, beta, &mut shares, &mut row_sums);
    } else {
        soft::of_lists(&block.costs, width, beta, &mut shares, &mut row_sums);
    }
    block.responsibilities = shares;
    let mut likelihood = Likelihood {
        units,
        ..Likelihood::default()
    };
    block.expected.clear();
    block.likeliest.clear();
    if block.shared {
        block.likeliest.extend(row_sums.iter().map(|row| row.place));
    }
    // The sums of rows of one weight, one after the other: the logarithm of their product is the sum of their logarithms.
    let mut product = 1.0;
    let mut of_weight = 0.0;
    for (i, row) in row_sums.iter().enumerate() {
        let weight = rows.weight(i);
        likelihood.weight += weight;
        likelihood.best += weight * row.best;
        // If the best one alone has a share, the sum is 1. If none has, all are equally unlikely.
        if row.sum > 1.0 && row.best.is_finite() {
            if weight != of_weight || product > LARGEST_PRODUCT {
                likelihood.spread += of_weight * f64::ln(product);
                (product, of_weight) = (1.0, weight);
            }
            product *= row.sum;
        }
        block.expected.push(row.expected);
    }
    likelihood.spread += of_weight * f64::ln(product);
    likelihood.entries = rows.weight_known(likelihood.weight);
    likelihood
}

/// The log-densities of rows, in nats, from the costs of all components, and their sums where there are several.
pub(crate) fn log_densities<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    log_joint: LogJoint,
    sums: &[soft::Row],
) -> Vec<f64> {
    let density = |i, best: f64| log_joint.of_row(rows, i) - log_joint.beta * best;
    if !block.shared {
        let costs = block.costs.iter().enumerate();
        return costs.map(|(i, cost)| density(i, cost.to_f64())).collect();
    }
    let sums = sums.iter().enumerate();
    sums.map(|(i, row)| density(i, row.best) + row.sum.ln())
        .collect()
}

/// The total weight of a block of rows, and the weighted sum of the expectations of their costs under their
/// responsibilities.
pub(crate) fn expected_total<F: Float>(rows: &Rows<F>, block: &Block<F>) -> (f64, f64) {
    if block.expected.is_empty() {
        weighted_total(rows, &block.costs)
    } else {
        weighted_total(rows, &block.expected)
    }
}

/// The total weight of a block of rows, and the weighted sum of their values. There are several partial sums, so that no
/// addition waits for the one before.
fn weighted_total<F: Float, T: Float>(rows: &Rows<F>, values: &[T]) -> (f64, f64) {
    const LANES: usize = 8;
    let mut weights = [0.0; LANES];
    let mut sums = [0.0; LANES];
    vectorised!({
        let (whole, rest) = values[..rows.len()].as_chunks::<LANES>();
        for (chunk, values) in whole.iter().enumerate() {
            for lane in 0..LANES {
                let weight = rows.weight(chunk * LANES + lane);
                weights[lane] += weight;
                sums[lane] += weight * values[lane].to_f64();
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            let weight = rows.weight(whole.len() * LANES + lane);
            weights[lane] += weight;
            sums[lane] += weight * value.to_f64();
        }
    });
    (weights.iter().sum(), sums.iter().sum())
}

/// Responsibilities (E2) of components with these costs, of which `best` is the lowest, and finite. Returns
/// the sum of their joint densities in units of the largest one: at least 1.
#[inline(always)]
pub(crate) fn shares<F: Float>(costs: &[F], best: f64, beta: f64, out: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for (q, cost) in out.iter_mut().zip(costs) {
        let p = (-beta * (cost.to_f64() - best)).exp();
        *q = p;
        sum += p;
    }
    let scale = 1.0 / sum;
    for q in out {
        *q *= scale;
    }
    sum
}

/// The best component of every row of a block: the first of a listed support, or the one with the lowest cost of a full
/// support.
pub(crate) fn labels<F: Float>(block: &Block<F>, labels: &mut [u32]) {
    if !block.supports.is_empty() {
        let supports = block.supports.chunks_exact(block.width());
        for (label, support) in labels.iter_mut().zip(supports) {
            *label = support[0];
        }
        return;
    }
    if !block.shared {
        return labels.fill(0);
    }
    if !block.likeliest.is_empty() {
        return labels.copy_from_slice(&block.likeliest);
    }
    soft::first_lowest(&block.costs, block.stride, labels);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of several weights, whose sums would overflow as one product.
    #[test]
    fn the_spread_is_the_sum_of_logarithms() {
        let n = 600;
        let k = 100;
        let weights = [1.0, 1.0, 2.0, 0.0, 0.5];
        let mut rows = Rows::<f64>::default();
        rows.reset(n, 1);
        rows.weights
            .extend((0..n).map(|i| weights[i * weights.len() / n]));
        let mut block = Block::new(k, k);
        block.reset(n, &[]);
        let mut spread = 0.0;
        for i in 0..n {
            let costs = block.costs_mut(i);
            for (c, cost) in costs.iter_mut().enumerate() {
                *cost = 1e-3 * ((i + c) % 7) as f64;
            }
            let best = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let sum: f64 = costs.iter().map(|cost| (2.0 * (best - cost)).exp()).sum();
            spread += rows.weights[i] * sum.ln();
        }
        let log_joint = LogJoint {
            alpha: 0.0,
            gamma: 0.0,
            beta: 2.0,
        };
        let likelihood = normalise(&rows, &mut block, log_joint);
        assert!((likelihood.spread - spread).abs() <= 1e-12 * spread);
        let mut of_rows = vec![k as u32; n];
        labels(&block, &mut of_rows);
        let first = |i: usize| (0..k).find(|c| (i + c).is_multiple_of(7));
        assert!((0..n).all(|i| Some(of_rows[i] as usize) == first(i)));
    }

    /// Shares that are left out change no sum of the row (E41).
    #[test]
    fn what_no_sum_needs_is_dropped() {
        const LOST: f64 = 1.0 / (1u64 << 60) as f64;
        let mut shares = [0.25, 0.75, 0.5 * LOST, 0.0, 1.0, 1e-300, LOST, 2.0 * LOST];
        soft::drop_lost(&mut shares);
        assert_eq!(shares, [0.25, 0.75, 0.0, 0.0, 1.0, 0.0, LOST, 2.0 * LOST]);
    }
}
