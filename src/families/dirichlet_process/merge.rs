//! Merging components where that is sure to raise the bound (E51).

use super::posterior::{NormalWishart, Prior, Updated};
use super::sticks::Sticks;
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::m_step::Moments;
use crate::model::block::Block;
use crate::rows::Rows;

/// How many others a component may merge with: those whose means are nearest in its own metric.
const NEAREST: usize = 4;

/// A merge must raise the bound by more than this, in nats: evidence of less is hardly worth a mention, and components that
/// are nearly empty would come and go.
const WORTH: f64 = 1.0;

/// And by so much for each point of the components: what the determinant of a matrix that is just well-conditioned may lose
/// in rounding.
const ROUNDING: f64 = 1e-8;

/// The variance inflation of a matrix that is just well-conditioned.
const WELL: f64 = 1e8;

/// A prior that follows the data expects components as wide as all rows: two narrow components with few rows would become one
/// wide one. So a merge has to pay under priors that count less, too.
const WEAKER: [f64; 2] = [1.0 / 16.0, 1.0 / 256.0];

/// The priors under which a merge has to pay, the first of them that of the model; `None` if a weaker one is no prior.
pub(super) fn priors(prior: &Prior, of_data: bool, watch: Watch<'_>) -> Result<Option<Vec<Prior>>> {
    let weaker = WEAKER.iter().filter(|_| of_data);
    let weaker = weaker.map(|share| prior.weaker(*share, watch));
    let first = Ok(Some(prior.clone()));
    std::iter::once(first).chain(weaker).collect()
}

/// Two components that may merge, the lower number first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    a: usize,
    b: usize,
}

/// Each component with mass, and those that are nearest to it.
pub(super) fn pairs(components: &[NormalWishart], prior: &Prior) -> Vec<Pair> {
    let has_mass = |t: &usize| components[*t].mean_precision > prior.mean_precision;
    let with_mass: Vec<usize> = (0..components.len()).filter(has_mass).collect();
    let lists = parallel::map(with_mass.len(), |i| {
        let t = with_mass[i];
        let mut difference = Vec::new();
        let whitening = &components[t].whitening;
        let mut form = |s: usize| whitening.form(&components[s].whitening.mean, &mut difference);
        let others = with_mass.iter().filter(|&&s| s != t);
        let mut others: Vec<(f64, usize)> = others.map(|&s| (form(s), s)).collect();
        sort::by_value(&mut others);
        others.truncate(NEAREST);
        let pair = |other: (f64, usize)| Pair {
            a: t.min(other.1),
            b: t.max(other.1),
        };
        others.into_iter().map(pair).collect::<Vec<_>>()
    });
    let mut pairs = lists.concat();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Adds what the entropy of the responsibilities would lose in each pair, for a block of rows that all components share; more
/// than any merge gains, if they do not.
pub(super) fn add_lost<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    pairs: &[Pair],
    lost: &mut [f64],
) {
    if !block.is_full() {
        return lost.fill(f64::INFINITY);
    }
    for i in 0..rows.len() {
        // Shares are rounded.
        let weight = rows.weight(i) * (1.0 + F::EPSILON);
        let shares = block.responsibilities(i);
        for (lost, pair) in lost.iter_mut().zip(pairs) {
            let [a, b] = [pair.a, pair.b].map(|c| shares[c].to_f64());
            *lost += weight * lost_entropy(a, b);
        }
    }
}

/// A merge of two components, and what it gains.
struct Merge {
    /// The change by the components and the entropy, without the sticks: the least under all priors.
    evidence: f64,
    /// The change of the bound, if no other components merge.
    gain: f64,
    /// More than this is worth it.
    worth: f64,
    into: usize,
    from: usize,
}

/// Gives all that some components have to others, where that is sure to raise the bound (E51). Returns how many it emptied.
/// `origins` are the points (T, d) that the sums are about.
pub(super) fn merge(
    sums: &mut Moments,
    origins: &[f64],
    priors: &[Prior],
    pairs: &[Pair],
    watch: Watch<'_>,
) -> Result<usize> {
    let dim = sums.dim;
    let origin = |t: usize| &origins[t * dim..][..dim];
    let mut merges = merges(sums, origins, priors, pairs, watch)?;
    merges.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    let mut emptied = 0;
    let mut touched = vec![false; sums.mass.len()];
    for merge in merges {
        let into = merge.into;
        let from = merge.from;
        if touched[into] || touched[from] {
            continue;
        }
        // Other merges have changed the sticks.
        let of_sticks = gain_of_sticks(&sums.mass, &priors[0], into, from);
        if merge.evidence + of_sticks > merge.worth {
            sums.join(into, from, &step(&origin, into, from));
            touched[into] = true;
            touched[from] = true;
            emptied += 1;
        }
    }
    Ok(emptied)
}

/// The gain of each pair by itself, where that can be said.
fn merges(
    sums: &Moments,
    origins: &[f64],
    priors: &[Prior],
    pairs: &[Pair],
    watch: Watch<'_>,
) -> Result<Vec<Merge>> {
    let origin = |t: usize| &origins[t * sums.dim..][..sums.dim];
    // Rounding decides what the evidence of nearly singular components is.
    let evidence = |sums: &Moments, t: usize, origin: &[f64]| {
        let under = priors.iter().map(|prior| {
            let updated = Updated::new(prior, sums, t, origin);
            let posterior = NormalWishart::new(prior, sums.mass(t), updated, watch)?;
            let well = posterior.filter(|component| component.whitening.inflation <= WELL);
            Ok(well.map(|component| component.evidence(prior)))
        });
        under.collect::<Result<Option<Vec<f64>>>>()
    };
    let separate = parallel::map(sums.mass.len(), |t| evidence(sums, t, origin(t)));
    let separate = parallel::all(separate)?;
    let merges = parallel::map(pairs.len(), |place| {
        let Pair { a, b } = pairs[place];
        // Where the merged component stands among the sticks is free: the better place.
        let gain = |into, from| gain_of_sticks(&sums.mass, &priors[0], into, from);
        let first = gain(a, b);
        let second = gain(b, a);
        let (of_sticks, into, from) = if second > first {
            (second, b, a)
        } else {
            (first, a, b)
        };
        let mut both = sums.pair(into, from);
        both.join(0, 1, &step(&origin, into, from));
        let together = evidence(&both, 0, origin(into))?;
        let (Some(together), Some(a), Some(b)) = (&together, &separate[a], &separate[b]) else {
            return Ok(None);
        };
        let gained = together.iter().zip(a.iter().zip(b));
        let gained = gained.map(|(merged, (a, b))| merged - a - b - sums.own()[place]);
        let gained: Vec<f64> = gained.collect();
        Ok(Some(Merge {
            evidence: gained.iter().copied().fold(f64::INFINITY, f64::min),
            gain: gained[0] + of_sticks,
            worth: WORTH + ROUNDING * both.mass(0),
            into,
            from,
        }))
    });
    Ok(parallel::all(merges)?.into_iter().flatten().collect())
}

/// The change of the part of the bound that follows from the masses: only sticks from one to the other change.
fn gain_of_sticks(masses: &[f64], prior: &Prior, into: usize, from: usize) -> f64 {
    let evidence = |masses: &[f64]| {
        let between = into.min(from)..=into.max(from);
        Sticks::new(prior.concentration, masses).evidence(prior.concentration, between)
    };
    let mut merged = masses.to_vec();
    merged[into] += std::mem::take(&mut merged[from]);
    evidence(&merged) - evidence(masses)
}

/// From the origin of one component to that of another (d).
fn step<'a>(origin: &impl Fn(usize) -> &'a [f64], into: usize, from: usize) -> Vec<f64> {
    let both = origin(from).iter().zip(origin(into));
    both.map(|(from, into)| from - into).collect()
}

/// The entropy that two responsibilities lose when one component gets both:
/// $(a + b) \ln (a + b) - a \ln a - b \ln b$.
fn lost_entropy(a: f64, b: f64) -> f64 {
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    if less <= 0.0 {
        return 0.0;
    }
    let ratio = less / more;
    // (a + b) ln (1 + r) - b ln r, with r = b / a.
    (a + b) * ratio.ln_1p() - less * ratio.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::Dense;
    use crate::families::DirichletProcess;
    use crate::m_step::MStep;
    use crate::model::Mixture;
    use crate::model::posterior::LogJoint;
    use crate::testing::stepped::Stepped;
    use ndarray::{Array1, Array2};

    #[test]
    fn lost_entropy_is_the_naive_one() {
        let naive = |a: f64, b: f64| (a + b) * (a + b).ln() - a * a.ln() - b * b.ln();
        for (a, b) in [
            (0.5, 0.5),
            (0.9, 0.1),
            (1e-3, 2e-8),
            (0.3, 0.69),
            (1e-8, 0.999),
        ] {
            assert!((lost_entropy(a, b) - naive(a, b)).abs() < 1e-15 + 1e-12 * naive(a, b));
        }
        // Where the naive one has no digits: b (1 + ln (a / b)).
        for b in [1e-18, 1e-100, 1e-300] {
            let expected = b * (1.0 + f64::ln(0.75 / b));
            assert!((lost_entropy(b, 0.75) - expected).abs() < 1e-12 * expected);
        }
        assert_eq!(lost_entropy(0.4, 0.0), 0.0);
    }

    type Case<F> = Stepped<F, DirichletProcess>;

    /// Five components after two M-steps.
    fn case<F: Float>() -> Case<F> {
        let mut rng = Rng::from_seed(5);
        let x = Array2::from_shape_fn((90, 2), |(i, j)| {
            let centre = [i % 3, i % 3 / 2][j];
            F::from_f64(3.0 * centre as f64 + rng.normal())
        });
        let w = Array1::from_shape_fn(90, |i| 0.5 + (i % 4) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let mut case = Stepped::new(DirichletProcess::new(0.8), &data, 5);
        for _ in 0..2 {
            case.update(None).unwrap();
            case.search();
        }
        case.family.prepare_merges(&mut case.model);
        case
    }

    impl<F: Float> Case<F> {
        /// The bound after the M-step from these shares of rows, term by term (E30).
        fn bound(&self, q: impl Fn(usize, usize) -> f64) -> f64 {
            let mut model = self.model.clone();
            let mut costs = Vec::new();
            let sums = self.sums(&self.block.with_shares(&q));
            self.family.update(sums, &mut model, false, None).unwrap();
            let LogJoint { alpha, gamma, beta } = model.log_joint();
            let mut total = model.prior_terms();
            for i in 0..self.rows.len() {
                model
                    .cost()
                    .some(&self.rows, i, &[0, 1, 2, 3, 4], &mut costs);
                for (c, cost) in costs.iter().enumerate().filter(|(c, _)| q(i, *c) > 0.0) {
                    let log = alpha + 2.0 * gamma - beta * cost.to_f64();
                    total += self.rows.weight(i) * q(i, c) * (log - q(i, c).ln());
                }
            }
            total
        }
    }

    fn gains_are_differences<F: Float>(rounding: f64) {
        let case = case::<F>();
        let q = |i: usize, c: usize| case.block.responsibilities(i)[c].to_f64();
        let sums = case.sums(&case.block);
        let model = &case.model;
        let priors = [model.q.prior.clone()];
        let merges = merges(&sums, &model.origins, &priors, &model.pairs, None).unwrap();
        assert_eq!(merges.len(), 10);
        for merge in merges {
            let merged = |i: usize, c: usize| match c {
                c if c == merge.into => q(i, c) + q(i, merge.from),
                c if c == merge.from => 0.0,
                c => q(i, c),
            };
            let gain = merge.gain;
            let expected = case.bound(merged) - case.bound(q);
            assert!((expected - gain).abs() < rounding, "{gain} {expected}");
        }
    }

    #[test]
    fn gains_are_differences_of_the_naive_bound() {
        gains_are_differences::<f64>(1e-9);
        gains_are_differences::<f32>(1e-3);
    }
}
