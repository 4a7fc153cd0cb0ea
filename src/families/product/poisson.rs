//! A count alone: a rate.

use super::column::LEAST;
use super::law::{Law, Whole};
use crate::base::gamma::log_gamma;
use crate::base::rng::Rng;
use std::f64::consts::TAU;

pub(super) struct Poisson;

/// Terms of larger counts have no digits left where they cancel.
const LARGE: f64 = 65_536.0;

impl Law for Poisson {
    fn at(&self, seed: f64, whole: &[f64]) -> Vec<f64> {
        vec![0.5 * (seed.max(0.0) + whole[0])]
    }

    fn variance(&self, own: &[f64]) -> f64 {
        own[0]
    }

    fn draw(&self, own: &[f64], rng: &mut Rng) -> f64 {
        rng.poisson(own[0])
    }

    /// The logarithm of y! and, for large y, that of y^y e^-y less.
    fn constant(&self, x: f64) -> f64 {
        if x <= LARGE {
            log_gamma(x + 1.0)
        } else {
            0.5 * (TAU * x).ln() + 1.0 / (12.0 * x)
        }
    }

    fn cost(&self, x: f64, own: &[f64], logs: &[f64]) -> f64 {
        let rate = own[0];
        let difference = (x - rate) / rate;
        if x <= LARGE {
            rate - x * logs[0]
        } else if difference.abs() < 0.5 {
            rate * ((1.0 + difference) * difference.ln_1p() - difference)
        } else {
            x * (x.ln() - logs[0]) + rate - x
        }
    }

    fn add(&self, x: f64, share: f64, _: &[f64], _: &Whole, sums: &mut [f64]) {
        sums[0] += share * x;
    }

    fn update(&self, own: &mut [f64], mass: f64, sums: &[f64], whole: &Whole) {
        let sum = sums[0] + whole.prior * whole.parameters[0];
        own[0] = (sum / (mass + whole.prior)).max(LEAST);
    }

    fn prior(&self, own: &[f64], whole: &[f64]) -> f64 {
        whole[0] * own[0].ln() - own[0]
    }

    fn divergence(&self, own: &[f64], mixed: &[f64]) -> f64 {
        own[0] * (own[0] / mixed[0]).ln() - own[0] + mixed[0]
    }

    fn datum(&self, _: &[f64], expected: f64, whole: bool) -> f64 {
        if whole { expected.round() } else { expected }
    }
}
