//! A number alone: a mean and a variance.
//!
//! It is no [diagonal covariance](crate::families::Covariance::Diagonal) of one column. The prior of a table (E57) is a share of the weight
//! of its rows, with the variance of the column, whatever the number of components is. It adds all of its logarithm to F, where the
//! logarithm for covariances (E59) is 0 at its mode. And a table begins with the variances of its columns in all searches.

use super::column::LEAST;
use super::law::{Law, Whole};
use crate::base::rng::Rng;
use crate::families::variances::{RESOLVED, ROUNDING};
use crate::model::clusters::{mixed_normal, normal_divergence};
use std::f64::consts::TAU;

pub(super) struct Normal;

/// The least variance about a mean, in a column of the variance `whole` ([E20](crate::equations#e20)).
pub(super) fn least(mean: f64, whole: f64, resolved: f64) -> f64 {
    let of_column = RESOLVED.powi(2) * whole;
    (resolved * mean).powi(2).max(of_column).max(LEAST.sqrt())
}

impl Law for Normal {
    fn at(&self, seed: f64, whole: &[f64]) -> Vec<f64> {
        vec![seed, whole[1]]
    }

    fn variance(&self, own: &[f64]) -> f64 {
        own[1]
    }

    fn draw(&self, own: &[f64], rng: &mut Rng) -> f64 {
        own[0] + own[1].sqrt() * rng.normal()
    }

    fn cost(&self, x: f64, own: &[f64], logs: &[f64]) -> f64 {
        let difference = x - own[0];
        0.5 * (TAU.ln() + logs[1] + difference * difference / own[1])
    }

    /// Moments about the mean, in deviations of the whole data.
    fn add(&self, x: f64, share: f64, own: &[f64], whole: &Whole, sums: &mut [f64]) {
        let difference = (x - own[0]) / whole.parameters[1].sqrt();
        sums[0] += share * difference;
        sums[1] += share * difference * difference;
    }

    fn update(&self, own: &mut [f64], mass: f64, sums: &[f64], whole: &Whole) {
        let variance = whole.parameters[1];
        let step = sums[0] / mass;
        own[0] += step * variance.sqrt();
        let squared = (sums[1] - step * sums[0]).max(0.0);
        let rounding = variance * (ROUNDING * sums[1] / mass);
        let least = least(own[0], variance, whole.resolved).max(rounding);
        // The variance there is must be among those allowed.
        let allowed = least.min(own[1]);
        own[1] = (variance * ((squared + whole.prior) / (mass + whole.prior))).max(allowed);
    }

    fn prior(&self, own: &[f64], whole: &[f64]) -> f64 {
        -0.5 * (own[1].ln() + whole[1] / own[1])
    }

    /// That with the moments of the mixture.
    fn mixed(&self, all: &[f64], shares: &[f64], _: usize) -> Vec<f64> {
        let (pairs, _) = all.as_chunks::<2>();
        mixed_normal(pairs.iter().copied(), shares).to_vec()
    }

    fn divergence(&self, own: &[f64], mixed: &[f64]) -> f64 {
        normal_divergence([own[0], own[1]], [mixed[0], mixed[1]])
    }

    fn is_held(&self, own: &[f64], whole: &Whole) -> bool {
        /// Clamped variances are at their floor up to rounding.
        const NEAR: f64 = 1.0 + 1e-6;
        own[1] <= NEAR * least(own[0], whole.parameters[1], whole.resolved)
    }

    fn positive<'a>(&self, own: &'a [f64]) -> &'a [f64] {
        &own[1..]
    }
}
