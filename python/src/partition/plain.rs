//! A model as its parameters alone: what a pass over rows in many places computes with.

use super::exact;
use crate::family::Family;
use crate::input::Number;
use coremix::m_step::Covariance;
use coremix::ndarray::{Array2, Axis};
use coremix::{Error, Mixture, Result};
use std::f64::consts::PI;

/// A family with a variance per component at most per column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Shared,
    Isotropic,
    Diagonal,
}

/// The parameters of such a model in `f64`, for rows in the data's own columns.
pub(super) struct Plain {
    pub(super) kind: Kind,
    pub(super) means: Array2<f64>,
    pub(super) variances: Array2<f64>,
    /// The exponent of the unit of each column: a power of two above how far means lie apart, and above deviations.
    pub(super) exponents: Vec<i32>,
    /// ln of the proportion, less the halved logarithms of the variances and of the constant.
    constants: Vec<f64>,
}

impl Plain {
    pub(super) fn of<F: Number>(model: &dyn Mixture<F>) -> Result<Self> {
        let rule = "partitions are for models with a variance per component or column: not for a Dirichlet process, and not \
            for a model that was fitted on a sketch";
        let refused = |value: &str| Error::Parameter {
            name: "model",
            value: value.into(),
            rule,
        };
        if model.frame().basis().is_some() {
            return Err(refused("a model of sketched rows"));
        }
        let kind = match Family::of(model)? {
            Family::Gaussian(model) => match model.covariance_kind() {
                Covariance::TiedSpherical => Kind::Shared,
                Covariance::Spherical => Kind::Isotropic,
                Covariance::Diagonal => Kind::Diagonal,
                _ => return Err(refused("full covariances")),
            },
            Family::DirichletProcess(_) => return Err(refused("a Dirichlet process")),
        };
        let means = model.means().mapv(|m| m.to_f64());
        let variances = model.variances();
        let logs = variances.mapv(|v| (2.0 * PI * v).ln()).sum_axis(Axis(1));
        let constants = model
            .proportions()
            .iter()
            .zip(&logs)
            .map(|(p, l)| p.ln() - 0.5 * l)
            .collect();
        let exponents = means.columns().into_iter().zip(variances.columns());
        let exponents = exponents.map(|(means, variances)| {
            let apart = means
                .iter()
                .fold(0.0f64, |a, m| a.max((m - means[0]).abs()));
            let deviation = variances.iter().fold(0.0f64, |a, v| a.max(v.sqrt()));
            exact::exponent(apart.max(deviation))
        });
        Ok(Self {
            kind,
            exponents: exponents.collect(),
            constants,
            variances,
            means,
        })
    }

    /// ln p(c, y).
    pub(super) fn log_joint<F: Number>(&self, c: usize, row: &[F]) -> f64 {
        let parameters = self.means.row(c).into_iter().zip(self.variances.row(c));
        let terms = parameters
            .zip(row)
            .map(|((m, v), y)| (y.to_f64() - m).powi(2) / v);
        self.constants[c] - 0.5 * terms.sum::<f64>()
    }

    /// A number that tells models apart: FNV-1a of all parameters.
    pub(super) fn mark(&self) -> u64 {
        let (n, d) = self.means.dim();
        let sizes = [n as f64, d as f64];
        let numbers = sizes
            .iter()
            .chain(&self.means)
            .chain(&self.variances)
            .chain(&self.constants);
        let bytes = numbers.flat_map(|x| x.to_bits().to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}
