//! What rows score under Gaussian components, by the kind of their covariances.

use super::covariance::Covariance;
use super::parameters::Parameters;
use super::proportions::penalised;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::{linalg, parallel};
use crate::kernels::panels::{self, Panels};
use crate::kernels::{distance, stride};
use crate::model::whitened::{self, Whitening};
use crate::rows::{Centres, Linear, Part, Rows, Scales};

/// So few diagonal components are scored and summed up directly where there are this many columns. Products compute a whole
/// vector of scores, and sums of six or twelve components: of three, too, and of those that have no share of a row.
const FEW: usize = 4;
const MANY: usize = 32;

/// What turns rows into scores, in units of a variance: it follows from the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs<F> {
    /// In units of the variance, if covariances have all pairs of coordinates: one, or (k).
    pub(super) whitenings: Vec<Whitening>,
    form: Form<F>,
}

#[derive(Clone, Debug, PartialEq)]
enum Form<F> {
    /// Scores are squared distances.
    Distances,
    /// Squared distances (E31), or with `scales` squared differences with a factor for each component and coordinate (E33), and
    /// what follows of them (k). `largest` has the largest factor, and as a penalty the largest of all that is added to a row:
    /// they bound rounding.
    Scaled {
        scales: Option<Scales<F>>,
        factors: Vec<Factor>,
        largest: Factor,
    },
    /// Squared distances of rows that one transform whitens (E52).
    Tied(Box<Tied>),
    /// Squared distances of rows that each component whitens (E52), and what determinants and proportions add (k).
    Full(Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Factor {
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

/// Rows and centres that one transform whitens, in `f64` whatever the type of the data: the farther rows are from the origin
/// in deviations of the narrowest direction, the more digits their differences lose.
#[derive(Clone, Debug, PartialEq)]
struct Tied {
    /// The rows of the transform, and of zeros for the padding.
    axes: Panels<f64>,
    centres: Centres<f64>,
    /// What proportions add (k).
    added: Vec<f64>,
}

impl Tied {
    /// Of the means (k, d).
    fn new(whitening: &Whitening, means: &[f64], added: Vec<f64>) -> Self {
        let dim = whitening.mean.len();
        let mut rows = linalg::unpacked(&whitening.factor, dim);
        rows.resize(stride(dim) * dim, 0.0);
        let mut tied = Self {
            axes: panels::directions(&rows, dim),
            centres: Centres::with_capacity(means.len() / dim, dim),
            added,
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
    fn all<F: Float>(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        let (k, dim) = (self.centres.len(), self.centres.dim());
        let rows = Rows::of_padded(&self.whiten(&rows.values), dim);
        let (mut squared, mut ids, mut direct) = (Vec::new(), Vec::new(), Vec::new());
        rows.distances(&self.centres, &mut squared);
        out.clear();
        for (i, scores) in squared.chunks_exact_mut(k).enumerate() {
            let mut best = f64::INFINITY;
            for (score, added) in scores.iter_mut().zip(&self.added) {
                *score += added;
                best = best.min(*score);
            }
            let margin = rows.margin(i, &self.centres, f64::INFINITY);
            let reach = best + 2.0 * margin + 8.0 * f64::EPSILON * best.abs();
            ids.clear();
            ids.extend((0..k as u32).filter(|c| scores[*c as usize] <= reach));
            rows.distances_to(i, &self.centres, &ids, &mut direct);
            for (&c, squared) in ids.iter().zip(&direct) {
                scores[c as usize] = squared + self.added[c as usize];
            }
            out.extend(scores.iter().map(|score| penalised::<F>(*score, 0.0)));
        }
    }

    fn some<F: Float>(&self, row: &[F], ids: &[u32], out: &mut Vec<F>) {
        let mut squared = Vec::new();
        let row = self.whiten(row);
        distance::to_some(&row, &self.centres.values, ids, &mut squared);
        out.clear();
        let scores = ids.iter().zip(squared);
        out.extend(scores.map(|(&c, squared)| penalised::<F>(squared, self.added[c as usize])));
    }
}

impl<F: Float> Costs<F> {
    pub(super) fn new(theta: &Parameters<F>, watch: Watch<'_>) -> Result<Self> {
        let (k, dim, unit) = (theta.k(), theta.dim(), theta.unit);
        let variances = &theta.spread;
        let penalties: Vec<f64> = (0..k).map(|c| theta.proportions.penalty(c, unit)).collect();
        let round = theta.isotropic(unit) == *variances && penalties.iter().all(|p| *p == 0.0);
        let whitenings = whitenings(theta, round, watch)?;
        // What a variance makes of the square of a difference: a factor, and a term.
        let relative = |variance: f64| (unit / variance, unit * (variance / unit).ln());
        // What determinants and proportions add to squared distances; a discarded component is ranked last.
        let added = || {
            let log_dets = whitenings.iter().cycle().map(Whitening::log_det);
            let held = |penalty: &f64| penalty.min(10.0 * F::LARGEST_SCORE);
            let own = penalties.iter().map(held).zip(log_dets);
            own.map(|(penalty, log_det)| unit * log_det + penalty)
                .collect()
        };
        let covariance = theta.covariance;
        let form = match covariance {
            Covariance::TiedSpherical => Form::Distances,
            Covariance::Tied | Covariance::Full if round => Form::Distances,
            Covariance::Tied => {
                let tied = Tied::new(&whitenings[0], &theta.exact_means, added());
                Form::Tied(Box::new(tied))
            }
            Covariance::Full => Form::Full(added()),
            Covariance::Spherical | Covariance::Diagonal => {
                let scales = (covariance == Covariance::Diagonal)
                    .then(|| Scales::new(k, dim, |c, j| relative(variances[c * dim + j])));
                let own = (0..k).zip(penalties).map(|(c, penalty)| {
                    let own = || relative(variances[c]);
                    let (factor, per_entry) = scales.as_ref().map_or_else(own, |_| (1.0, 0.0));
                    Factor {
                        factor,
                        per_entry,
                        penalty,
                    }
                });
                let factors: Vec<Factor> = own.collect();
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
                Form::Scaled {
                    scales,
                    factors,
                    largest,
                }
            }
        };
        Ok(Self { whitenings, form })
    }

    pub(super) fn all(&self, centres: &Centres<F>, rows: &Rows<F>, out: &mut Vec<F>) {
        match &self.form {
            Form::Distances => rows.distances(centres, out),
            Form::Scaled {
                scales, factors, ..
            } => {
                match scales {
                    Some(scales) => rows.scaled_distances(centres, scales, out),
                    None => rows.distances(centres, out),
                }
                for (i, scores) in out.chunks_exact_mut(centres.len()).enumerate() {
                    let entries = rows.known(i) as f64;
                    for (score, factor) in scores.iter_mut().zip(factors) {
                        *score = factor.score(*score, entries);
                    }
                }
            }
            Form::Tied(tied) => tied.all(rows, out),
            Form::Full(added) => whitened::scores(self.whitenings.iter(), added, rows, out),
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
        match &self.form {
            Form::Distances => rows.distances_to(i, centres, ids, out),
            Form::Scaled {
                scales, factors, ..
            } => {
                match scales {
                    Some(scales) => rows.scaled_distances_to(i, centres, scales, ids, out),
                    None => rows.distances_to(i, centres, ids, out),
                }
                let entries = rows.known(i) as f64;
                for (score, &c) in out.iter_mut().zip(ids) {
                    *score = factors[c as usize].score(*score, entries);
                }
            }
            Form::Tied(tied) => tied.some(rows.row(i), ids, out),
            Form::Full(added) => {
                let component = |c: usize| &self.whitenings[c];
                whitened::some_scores(component, added, rows, i, ids, out);
            }
        }
    }

    /// 0 where scores that may be the best of their row are computed directly.
    pub(super) fn margin(&self, centres: &Centres<F>, rows: &Rows<F>, i: usize, reach: F) -> F {
        match &self.form {
            Form::Distances => rows.margin(i, centres, reach),
            Form::Scaled {
                scales: None,
                largest,
                ..
            } => {
                let squared = rows.margin(i, centres, F::INFINITY).to_f64();
                F::from_f64(largest.factor * squared + 4.0 * F::EPSILON * largest.penalty)
            }
            _ => F::zero(),
        }
    }

    pub(super) fn are_distances(&self) -> bool {
        matches!(self.form, Form::Distances)
    }

    /// The scores as products, if they are, with `beta` nats for a score of 1.
    pub(super) fn linear(&self, centres: &Centres<F>, beta: f64) -> Option<Linear<F>> {
        let of_distances = Part {
            factor: 1.0,
            added: 0.0,
        };
        Some(match &self.form {
            Form::Distances => Linear::isotropic(centres, beta, |_| of_distances),
            Form::Scaled {
                scales, factors, ..
            } => match scales {
                Some(_) if centres.len() <= FEW && centres.dim() >= MANY => return None,
                Some(scales) => {
                    let penalties: Vec<f64> = factors.iter().map(|own| own.penalty).collect();
                    Linear::diagonal(centres, beta, scales, &penalties)
                }
                None => Linear::isotropic(centres, beta, |c| {
                    // Rows that know every coordinate: others have no products.
                    let (entries, own) = (centres.dim() as f64, factors[c]);
                    let (factor, added) = (own.factor, entries * own.per_entry + own.penalty);
                    Part { factor, added }
                }),
            },
            Form::Tied(_) | Form::Full(_) => return None,
        })
    }
}

/// The whitening transforms of covariances with all pairs of coordinates: one, or one for each component.
fn whitenings<F: Float>(
    theta: &Parameters<F>,
    round: bool,
    watch: Watch<'_>,
) -> Result<Vec<Whitening>> {
    if !theta.covariance.has_pairs() {
        return Ok(Vec::new());
    }
    let deviation = theta.unit.sqrt();
    let number = theta.spread.len() / theta.dim().pow(2);
    let all = parallel::map(number, |c| {
        let mean = theta.exact_mean(c).to_vec();
        if round {
            return Ok(Whitening::spherical(mean, 1.0));
        }
        let relative: Vec<f64> = theta.own(c).iter().map(|x| x * deviation).collect();
        Whitening::of_factor(mean, &relative, watch)
    });
    parallel::all(all)
}
