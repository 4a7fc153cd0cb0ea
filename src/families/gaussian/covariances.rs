//! The kinds of covariances: the one place that knows of all.

use super::common::Common;
use super::covariance::Covariance;
use super::diagonal::Diagonal;
use super::factors::Factors;
use super::kind::Kind;
use super::spherical::Spherical;
use super::tied_spherical::TiedSpherical;
use super::triangles::{Full, Tied};
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::families::variances::resolved_beside;
use crate::io::{all_finite, rule};
use crate::m_step::Moments;
use crate::rows::Centres;

/// Covariances of one kind.
// Kinds are saved by their place in this list: new ones come last.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(in crate::families) enum Covariances<F> {
    TiedSpherical(TiedSpherical),
    Spherical(Spherical),
    Diagonal(Diagonal),
    Tied(Tied),
    Full(Full),
    Factors(Factors<F>),
}

impl<F: Float> Covariances<F> {
    /// With variances of 1.
    pub(super) fn new(covariance: Covariance, centres: &Centres<F>) -> Self {
        let k = centres.len();
        let columns = centres.dim();
        let diagonal = || Diagonal {
            columns,
            variances: vec![1.0; k * columns],
        };
        let means = || centres.coordinates().collect();
        match covariance {
            Covariance::TiedSpherical => Self::TiedSpherical(TiedSpherical { variance: 1.0 }),
            Covariance::Spherical => Self::Spherical(Spherical {
                variances: vec![1.0; k],
            }),
            Covariance::Diagonal => Self::Diagonal(diagonal()),
            Covariance::Tied => Self::Tied(Tied::new(columns, means())),
            Covariance::Full => Self::Full(Full::new(columns, means())),
            Covariance::Factors(factors) => Self::Factors(Factors {
                factors,
                noise: diagonal(),
                loadings: Vec::new(),
            }),
        }
    }

    fn covariance(&self) -> Covariance {
        match self {
            Self::TiedSpherical(_) => Covariance::TiedSpherical,
            Self::Spherical(_) => Covariance::Spherical,
            Self::Diagonal(_) => Covariance::Diagonal,
            Self::Tied(_) => Covariance::Tied,
            Self::Full(_) => Covariance::Full,
            Self::Factors(kind) => Covariance::Factors(kind.factors),
        }
    }

    // Not inlined: what asks for a kind would be compiled with all kinds wherever it is.
    #[inline(never)]
    pub(in crate::families) fn kind(&self) -> &dyn Kind<F> {
        match self {
            Self::TiedSpherical(kind) => kind,
            Self::Spherical(kind) => kind,
            Self::Diagonal(kind) => kind,
            Self::Tied(kind) => kind,
            Self::Full(kind) => kind,
            Self::Factors(kind) => kind,
        }
    }

    #[inline(never)]
    pub(super) fn kind_mut(&mut self) -> &mut dyn Kind<F> {
        match self {
            Self::TiedSpherical(kind) => kind,
            Self::Spherical(kind) => kind,
            Self::Diagonal(kind) => kind,
            Self::Tied(kind) => kind,
            Self::Full(kind) => kind,
            Self::Factors(kind) => kind,
        }
    }
}

/// The parameters of a Gaussian mixture, as files have them, checked when they are read.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Parameters<F> {
    pub(in crate::families) common: Common<F>,
    pub(in crate::families) covariances: Covariances<F>,
}

impl<F: Float> Parameters<F> {
    pub(in crate::families) fn covariance(&self) -> Covariance {
        self.covariances.covariance()
    }

    /// The sums over no points.
    pub(super) fn statistics(&self) -> Moments {
        let kind = self.covariance().second();
        let sums = Moments::zeros(self.common.k(), self.common.dim(), kind);
        match self.covariances.kind().further_sums(self.common.k()) {
            Some(further) => sums.with(further),
            None => sums,
        }
    }

    /// One variance in every direction, which costs are in units of.
    pub(super) fn set_all(&mut self, variance: f64) {
        self.covariances.kind_mut().set_all(&[variance]);
        self.common.unit = variance;
    }

    /// Gives all components these variances of columns (d).
    pub(super) fn set_columns(&mut self, variances: &[f64]) {
        let common = &mut self.common;
        let mean = variances.iter().sum::<f64>() / variances.len() as f64;
        common.unit = mean.max(common.floors.least);
        common.floors.least = common.floors.least.min(resolved_beside::<F>(mean));
        let columns = variances.iter().enumerate();
        let clamped = columns.map(|(j, v)| v.max(common.floors.of_column::<F>(j)));
        let kind = self.covariances.kind_mut();
        kind.set_all(&clamped.collect::<Vec<_>>());
        kind.start(common);
    }

    /// The mean variance, of components by their proportion.
    pub(super) fn mean_variance(&self, watch: Watch<'_>) -> Result<f64> {
        let kind = self.covariances.kind();
        let mean = |c: usize| {
            let variances = kind.variances(c, watch)?;
            Ok(variances.iter().sum::<f64>() / variances.len() as f64)
        };
        if kind.number() == 1 {
            return mean(0);
        }
        let means = (0..self.common.k()).map(mean).collect::<Result<Vec<_>>>()?;
        let shares = self.common.proportions.values.iter().zip(means);
        Ok(shares.map(|(p, mean)| p * mean).sum())
    }

    /// The logarithm of the prior density (E59) less that at its mode.
    pub(super) fn prior_terms(&self) -> f64 {
        let common = &self.common;
        let kind = self.covariances.kind();
        let prior = &common.prior;
        let proportions: f64 = if prior.proportions > 0.0 {
            (common.proportions.values.iter())
                .map(|p| prior.proportions * (p * common.k() as f64).ln())
                .sum()
        } else {
            0.0
        };
        if prior.variances.is_empty() {
            return proportions;
        }
        let of_covariance = |c: usize| {
            let precisions = kind.precisions(c);
            let log_det = kind.log_det(c, prior.variances.len());
            let columns = prior.variances.iter().enumerate();
            let terms = columns.map(|(j, v)| v * precisions[j % precisions.len()] - 1.0 - v.ln());
            log_det + terms.sum::<f64>()
        };
        proportions - 0.5 * prior.rows * (0..kind.number()).map(of_covariance).sum::<f64>()
    }

    /// Unit and floors for covariances that were given.
    pub(super) fn set_given(&mut self) -> Result<()> {
        self.common.unit = self.mean_variance(None)?;
        let least = resolved_beside::<F>(self.common.unit);
        let narrowest = (0..self.common.k()).map(|c| self.covariances.kind().narrowest(c));
        let least = narrowest.fold(least, f64::min).max(f64::MIN_POSITIVE);
        self.common.floors.least = least;
        self.covariances.kind_mut().set_least(least);
        Ok(())
    }

    /// An error of the section that holds what no model has.
    pub(in crate::families) fn check(&self) -> std::result::Result<(), FileFault> {
        let common = &self.common;
        let kind = self.covariances.kind();
        common.check()?;
        let is_one = self.covariance().is_one_variance();
        common.prior.check((!is_one).then_some(common.dim()))?;
        let numbers = |k| self.covariance().shape(k, common.dim()).iter().product();
        let sized = kind.size() == numbers(1);
        rule(sized, "variances", "must be as many as the model has")?;
        all_finite("variances", kind.numbers(), numbers(common.k()))?;
        kind.check(common)?;
        let plain = kind.numbers() == [common.unit] && common.proportions.free() == 0;
        let unit = "must be the unit of costs, and proportions equal";
        rule(plain || !is_one, "variances", unit)
    }
}
