//! What rows score under Gaussian components, by the kind of their covariances.

use super::Covariance;
use super::proportions::penalised;
use crate::base::float::Float;
use crate::base::{linalg, parallel};
use crate::kernels::panels::{self, Panels};
use crate::kernels::stride;
use crate::model::whitened::{self, Whitening};
use crate::rows::{Centres, Linear, Part, Rows, Scales};

/// What turns rows into scores, in units of a variance: it follows from the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Costs<F> {
    /// Scores are squared distances.
    Distances,
    /// Squared distances with a factor for each component (E31). The last one has the largest factor, and as a penalty the
    /// largest of all that is added to a row: they bound rounding.
    Factors(Vec<Factor>, Factor),
    /// Squared differences with a factor for each component and coordinate (E33), and what proportions add (k).
    Scales(Scales<F>, Vec<f64>),
    /// Squared distances of whitened rows (E52).
    Whitened(Whitened),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factor {
    /// Of the squared distance.
    factor: f64,
    /// What each coordinate adds.
    per_entry: f64,
    /// What the proportion adds.
    penalty: f64,
}

impl Factor {
    #[inline(always)]
    fn score<F: Float>(&self, squared: F, entries: f64) -> F {
        let score = self.factor * squared.to_f64() + entries * self.per_entry;
        penalised(score, self.penalty)
    }
}

/// Full covariances.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whitened {
    /// (k): those of the covariances in units of a variance.
    components: Vec<Whitening>,
    /// (k): what determinants and proportions add, more than any score for components that were discarded.
    added: Vec<f64>,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// The same variance in all directions, and nothing is added: scores are squared distances.
    Round,
    /// One covariance.
    Tied(Box<Tied>),
    Full,
}

/// Rows and centres that one transform whitens, in `f64` whatever the type of the data: the farther rows are from the origin
/// in deviations of the narrowest direction, the more digits their differences lose.
#[derive(Clone, Debug, PartialEq)]
struct Tied {
    /// The rows of the transform, and of zeros for the padding.
    axes: Panels<f64>,
    centres: Centres<f64>,
}

impl Tied {
    /// Of the means (k, d).
    fn new(whitening: &Whitening, means: &[f64]) -> Self {
        let dim = whitening.mean.len();
        let mut rows = linalg::unpacked(&whitening.factor, dim);
        rows.resize(stride(dim) * dim, 0.0);
        let mut tied = Self {
            axes: panels::directions(&rows, dim),
            centres: Centres::with_capacity(means.len() / dim, dim),
        };
        for mean in means.chunks_exact(dim) {
            let mut row = mean.to_vec();
            row.resize(stride(dim), 0.0);
            tied.centres.push(&tied.whiten(&row));
        }
        tied
    }

    /// Padded rows.
    fn whiten<F: Float>(&self, rows: &[F]) -> Vec<f64> {
        let rows: Vec<f64> = rows.iter().map(|z| z.to_f64()).collect();
        let mut out = vec![0.0; rows.len()];
        panels::project(&rows, stride(self.centres.dim()), &self.axes, &mut out);
        out
    }

    /// Distances between whitened rows and centres. Those that may be the best of their row are computed directly.
    fn all<F: Float>(&self, added: &[f64], rows: &Rows<F>, out: &mut Vec<F>) {
        let (k, dim) = (self.centres.len(), self.centres.dim());
        let rows = Rows::of_padded(&self.whiten(rows.values()), dim);
        let (mut squared, mut ids, mut direct) = (Vec::new(), Vec::new(), Vec::new());
        rows.distances(&self.centres, &mut squared);
        out.clear();
        for (i, scores) in squared.chunks_exact_mut(k).enumerate() {
            let mut best = f64::INFINITY;
            for (score, added) in scores.iter_mut().zip(added) {
                *score += added;
                best = best.min(*score);
            }
            let margin = rows.margin(i, &self.centres, f64::INFINITY);
            let reach = best + 2.0 * margin + 8.0 * f64::EPSILON * best.abs();
            ids.clear();
            ids.extend((0..k as u32).filter(|c| scores[*c as usize] <= reach));
            rows.distances_to(i, &self.centres, &ids, &mut direct);
            for (&c, squared) in ids.iter().zip(&direct) {
                scores[c as usize] = squared + added[c as usize];
            }
            out.extend(scores.iter().map(|score| penalised::<F>(*score, 0.0)));
        }
    }

    fn some<F: Float>(&self, added: &[f64], row: &[F], ids: &[u32], out: &mut Vec<F>) {
        let mut squared = Vec::new();
        let row = self.whiten(row);
        self.centres.distances_of(&row, ids, &mut squared);
        out.clear();
        let scores = ids.iter().zip(squared);
        out.extend(scores.map(|(&c, squared)| penalised::<F>(squared, added[c as usize])));
    }
}

/// The parameters that scores follow from.
pub(super) struct Parameters<'a, F> {
    pub(super) covariance: Covariance,
    pub(super) centres: &'a Centres<F>,
    /// Of full covariances (k, d).
    pub(super) exact: &'a [f64],
    pub(super) variances: &'a [f64],
    /// What proportions add to scores (k).
    pub(super) penalties: Vec<f64>,
    /// The variance that is the unit of the scores.
    pub(super) unit: f64,
}

impl<F: Float> Costs<F> {
    pub(super) fn new(parameters: Parameters<'_, F>) -> Self {
        let Parameters {
            covariance,
            centres,
            variances,
            ref penalties,
            unit,
            ..
        } = parameters;
        let (k, dim) = (centres.len(), centres.dim());
        // What a variance makes of the square of a difference: a factor, and a term.
        let relative = |variance: f64| (unit / variance, unit * (variance / unit).ln());
        match covariance {
            Covariance::TiedSpherical => Self::Distances,
            Covariance::Spherical => {
                let factors = variances
                    .iter()
                    .zip(penalties)
                    .map(|(&variance, &penalty)| {
                        let (factor, per_entry) = relative(variance);
                        Factor {
                            factor,
                            per_entry,
                            penalty,
                        }
                    });
                let factors: Vec<Factor> = factors.collect();
                let mut largest = Factor {
                    factor: 1.0,
                    per_entry: 0.0,
                    penalty: 0.0,
                };
                for own in factors.iter().filter(|own| own.penalty.is_finite()) {
                    let added = dim as f64 * own.per_entry.abs() + own.penalty.abs();
                    largest.factor = largest.factor.max(own.factor);
                    largest.penalty = largest.penalty.max(added);
                }
                Self::Factors(factors, largest)
            }
            Covariance::Diagonal => {
                let scales = Scales::new(k, dim, |c, j| relative(variances[c * dim + j]));
                Self::Scales(scales, penalties.clone())
            }
            Covariance::Tied | Covariance::Full => {
                let round = covariance.isotropic(k, dim, unit) == variances;
                let round = round && penalties.iter().all(|p| *p == 0.0);
                Self::Whitened(Whitened::new(&parameters, round))
            }
        }
    }

    /// The whitening transform of each component, for covariances of all pairs of coordinates.
    pub(super) fn whitenings(&self) -> &[Whitening] {
        match self {
            Self::Whitened(whitened) => &whitened.components,
            _ => &[],
        }
    }

    /// What takes standard normal points to those of each component (d, d), for such covariances.
    pub(super) fn deviations(&self, unit: f64) -> Vec<Vec<f64>> {
        let of = |whitening: &Whitening| {
            let mut factor = whitening.inverse();
            factor.iter_mut().for_each(|x| *x *= unit.sqrt());
            factor
        };
        self.whitenings().iter().map(of).collect()
    }

    pub(super) fn all(&self, centres: &Centres<F>, rows: &Rows<F>, out: &mut Vec<F>) {
        let (k, entries) = (centres.len(), rows.entries() as f64);
        match self {
            Self::Distances => rows.distances(centres, out),
            Self::Factors(factors, _) => {
                rows.distances(centres, out);
                for scores in out.chunks_exact_mut(k) {
                    for (score, factor) in scores.iter_mut().zip(factors) {
                        *score = factor.score(*score, entries);
                    }
                }
            }
            Self::Scales(scales, penalties) => {
                rows.scaled_distances(centres, scales, out);
                for scores in out.chunks_exact_mut(k) {
                    for (score, penalty) in scores.iter_mut().zip(penalties) {
                        *score = penalised(score.to_f64(), *penalty);
                    }
                }
            }
            Self::Whitened(whitened) => match &whitened.shape {
                Shape::Round => rows.distances(centres, out),
                Shape::Tied(tied) => tied.all(&whitened.added, rows, out),
                Shape::Full => {
                    whitened::scores(whitened.components.iter(), &whitened.added, rows, out);
                }
            },
        }
    }

    pub(super) fn some(
        &self,
        centres: &Centres<F>,
        rows: &Rows<F>,
        i: usize,
        ids: &[u32],
        out: &mut Vec<F>,
    ) {
        let entries = rows.entries() as f64;
        match self {
            Self::Distances => rows.distances_to(i, centres, ids, out),
            Self::Factors(factors, _) => {
                rows.distances_to(i, centres, ids, out);
                for (score, &c) in out.iter_mut().zip(ids) {
                    *score = factors[c as usize].score(*score, entries);
                }
            }
            Self::Scales(scales, penalties) => {
                rows.scaled_distances_to(i, centres, scales, ids, out);
                for (score, &c) in out.iter_mut().zip(ids) {
                    *score = penalised(score.to_f64(), penalties[c as usize]);
                }
            }
            Self::Whitened(whitened) => match &whitened.shape {
                Shape::Round => rows.distances_to(i, centres, ids, out),
                Shape::Tied(tied) => tied.some(&whitened.added, rows.row(i), ids, out),
                Shape::Full => {
                    let component = |c: usize| &whitened.components[c];
                    whitened::some_scores(component, &whitened.added, rows, i, ids, out);
                }
            },
        }
    }

    /// 0 where scores that may be the best of their row are computed directly.
    pub(super) fn margin(&self, centres: &Centres<F>, rows: &Rows<F>, i: usize, reach: F) -> F {
        match self {
            Self::Distances => rows.margin(i, centres, reach),
            Self::Factors(_, largest) => {
                let squared = rows.margin(i, centres, F::INFINITY).to_f64();
                F::from_f64(largest.factor * squared + 4.0 * F::EPSILON * largest.penalty)
            }
            Self::Whitened(whitened) if whitened.shape == Shape::Round => {
                rows.margin(i, centres, reach)
            }
            Self::Scales(..) | Self::Whitened(_) => F::zero(),
        }
    }

    /// Whether scores are products.
    pub(super) fn are_linear(&self) -> bool {
        match self {
            Self::Whitened(whitened) => whitened.shape == Shape::Round,
            _ => true,
        }
    }

    /// The scores as products, with `beta` nats for a score of 1.
    pub(super) fn linear(&self, centres: &Centres<F>, beta: f64) -> Linear<F> {
        match self {
            Self::Distances | Self::Whitened(_) => Linear::isotropic(centres, beta, |_| Part {
                factor: 1.0,
                added: 0.0,
            }),
            Self::Factors(factors, _) => {
                // Rows that know every coordinate: others have no products.
                let entries = centres.dim() as f64;
                Linear::isotropic(centres, beta, |c| {
                    let own = factors[c];
                    let (factor, added) = (own.factor, entries * own.per_entry + own.penalty);
                    Part { factor, added }
                })
            }
            Self::Scales(scales, penalties) => Linear::diagonal(centres, beta, scales, penalties),
        }
    }
}

impl Whitened {
    /// From the triangles of covariances, about exact means.
    fn new<F: Float>(parameters: &Parameters<'_, F>, round: bool) -> Self {
        let Parameters {
            centres,
            exact,
            variances,
            penalties,
            unit,
            ..
        } = parameters;
        let (k, dim) = (centres.len(), centres.dim());
        let mean = |c: usize| exact[c * dim..][..dim].to_vec();
        let relative: Vec<f64> = variances.iter().map(|x| x * unit.sqrt()).collect();
        let is_tied = variances.len() == dim * dim && k > 1;
        let matrices = if is_tied { 1 } else { k };
        let mut components = parallel::map(matrices, |c| match round {
            true => Whitening::spherical(mean(c), 1.0),
            false => Whitening::of_factor(mean(c), &relative[c * dim * dim..][..dim * dim]),
        });
        for c in matrices..k {
            let mean = mean(c);
            let shared = components[0].clone();
            components.push(Whitening { mean, ..shared });
        }
        // A discarded component is ranked last.
        let held = |penalty: f64| penalty.min(10.0 * F::LARGEST_SCORE);
        let added = components.iter().zip(penalties);
        let added = added.map(|(own, penalty)| unit * own.log_det() + held(*penalty));
        let added = added.collect();
        let shape = match round {
            true => Shape::Round,
            false if is_tied => Shape::Tied(Box::new(Tied::new(&components[0], exact))),
            false => Shape::Full,
        };
        Self {
            components,
            added,
            shape,
        }
    }
}
