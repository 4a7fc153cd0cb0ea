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
            Self::Factors(own) => Covariance::Factors(own.factors),
        }
    }

    pub(in crate::families) fn kind(&self) -> &dyn Kind<F> {
        match self {
            Self::TiedSpherical(own) => own,
            Self::Spherical(own) => own,
            Self::Diagonal(own) => own,
            Self::Tied(own) => own,
            Self::Full(own) => own,
            Self::Factors(own) => own,
        }
    }

    pub(super) fn kind_mut(&mut self) -> &mut dyn Kind<F> {
        match self {
            Self::TiedSpherical(own) => own,
            Self::Spherical(own) => own,
            Self::Diagonal(own) => own,
            Self::Tied(own) => own,
            Self::Full(own) => own,
            Self::Factors(own) => own,
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
        self.covariances.kind_mut().set_all(variance);
        self.common.unit = variance;
    }

    pub(super) fn mean_variance(&self, watch: Watch<'_>) -> Result<f64> {
        self.covariances.kind().mean_variance(&self.common, watch)
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
        kind.check(common)
    }
}
