//! A column alone: a distribution of it in each component, of a kind that has a file of its own.

use super::column::Column;
use crate::base::cached::Cached;
use crate::base::rng::Rng;

/// Components of one column, independent of all others, in 64-bit numbers whatever those of the rows are.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(in crate::families) struct Alone {
    pub(super) kind: Column,
    /// The codes of categories, in ascending order. A category is its place here.
    pub(super) codes: Vec<f64>,
    /// (k, n): as many of each component as its distribution has.
    pub(super) parameters: Vec<f64>,
    pub(super) whole: Whole,
    /// The logarithms of the parameters.
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) logs: Cached<Vec<f64>>,
}

/// The column in all rows. Sums are shares of the total weight, so no unit of weights counts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(super) struct Whole {
    /// (n).
    pub(super) parameters: Vec<f64>,
    pub(super) weight: f64,
    /// The rows in advance, as a share of the weight.
    pub(super) prior: f64,
    /// A deviation that is told from 0 among numbers of size 1.
    pub(super) resolved: f64,
}

/// A kind of distribution, by its parameters in a component. Categories are the places of their codes.
pub(super) trait Law {
    /// The parameters at a seed, which is one row: so most begin halfway between it and the whole data.
    fn at(&self, seed: f64, whole: &[f64]) -> Vec<f64>;

    fn mean(&self, own: &[f64]) -> f64 {
        own[0]
    }

    fn variance(&self, own: &[f64]) -> f64;

    fn draw(&self, own: &[f64], rng: &mut Rng) -> f64;

    /// The part of $-\ln p(x)$ that all components share.
    fn constant(&self, _x: f64) -> f64 {
        0.0
    }

    /// The rest of it, given the logarithms of the parameters.
    fn cost(&self, x: f64, own: &[f64], logs: &[f64]) -> f64;

    /// Adds a number of this share to as many sums as there are parameters.
    fn add(&self, x: f64, share: f64, own: &[f64], whole: &Whole, sums: &mut [f64]);

    /// The parameters that follow from the sums.
    fn update(&self, own: &mut [f64], mass: f64, sums: &[f64], whole: &Whole);

    /// The logarithm of the prior density that one row in advance has.
    fn prior(&self, own: &[f64], whole: &[f64]) -> f64;

    /// The parameters of the mixture of all components (k, n) by these shares.
    fn mixed(&self, all: &[f64], shares: &[f64], n: usize) -> Vec<f64> {
        let mut mixed = vec![0.0; n];
        for (parameters, share) in all.chunks_exact(n).zip(shares) {
            let pairs = mixed.iter_mut().zip(parameters);
            pairs.for_each(|(sum, p)| *sum += share * p);
        }
        mixed
    }

    /// The divergence from a distribution of this kind, in nats.
    fn divergence(&self, own: &[f64], mixed: &[f64]) -> f64;

    /// The value in place of a missing one of a mixture with this expectation; `whole`: as data.
    fn datum(&self, _mixed: &[f64], expected: f64, _whole: bool) -> f64 {
        expected
    }

    /// Whether a floor holds the parameters.
    fn is_held(&self, _own: &[f64], _whole: &Whole) -> bool {
        false
    }

    /// The parameters that must be positive.
    fn positive<'a>(&self, own: &'a [f64]) -> &'a [f64] {
        own
    }

    /// How many parameters are free, of `n`.
    fn free(&self, n: usize) -> usize {
        n
    }

    /// (k): the divergence of each component from their mixture by these shares.
    fn explained(&self, all: &[f64], shares: &[f64], n: usize) -> Vec<f64> {
        let mixed = self.mixed(all, shares, n);
        // Rounding may leave a little less than 0.
        let nats = |parameters: &[f64]| self.divergence(parameters, &mixed).max(0.0);
        all.chunks_exact(n).map(nats).collect()
    }

    /// Adds the costs of a number of `of` under components `ids` to their totals.
    fn add_costs(&self, of: &Alone, x: f64, ids: &[u32], totals: &mut [f64]) {
        let x = of.see(x);
        let n = of.whole.parameters.len();
        let logs = of
            .logs
            .get(|| of.parameters.iter().map(|p| p.ln()).collect());
        let constant = self.constant(x);
        for (total, c) in totals.iter_mut().zip(ids) {
            let place = *c as usize * n;
            let parameters = &of.parameters[place..][..n];
            *total += constant + self.cost(x, parameters, &logs[place..][..n]);
        }
    }

    /// Adds a number of `of`, with this weight, to the masses and sums (k, 1 + n) of components by their shares.
    fn add_number(&self, of: &Alone, x: f64, weight: f64, shares: &[(u32, f64)], sums: &mut [f64]) {
        let x = of.see(x);
        let n = of.whole.parameters.len();
        for (c, q) in shares {
            let c = *c as usize;
            let share = weight / of.whole.weight * q;
            let sums = &mut sums[c * (1 + n)..][..1 + n];
            sums[0] += share;
            let parameters = &of.parameters[c * n..][..n];
            self.add(x, share, parameters, &of.whole, &mut sums[1..]);
        }
    }
}
