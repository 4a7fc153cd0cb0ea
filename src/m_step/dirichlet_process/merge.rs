//! Merging components where that is sure to raise the bound (E51).

use super::posterior::NormalWishart;
use super::prior::Prior;
use super::sticks::Sticks;
use crate::base::float::Float;
use crate::base::parallel;
use crate::m_step::Moments;
use crate::m_step::Statistics;
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
pub(super) const WEAKER: [f64; 2] = [1.0 / 16.0, 1.0 / 256.0];

/// The statistics of a pass: moments, and overlaps where components may merge after it.
#[derive(Clone, Debug)]
pub struct Scatter {
    pub(super) moments: Moments,
    pub(super) overlaps: Option<Overlaps>,
}

impl Statistics for Scatter {
    fn merge(parts: &mut Vec<Self>) -> Self {
        let (mut moments, overlaps): (Vec<_>, Vec<_>) = parts
            .drain(..)
            .map(|part| (part.moments, part.overlaps))
            .unzip();
        let total = Self {
            moments: Moments::merge(moments.iter_mut()),
            // Where a part has none, its rows would be missing.
            overlaps: overlaps.into_iter().reduce(Overlaps::plus).flatten(),
        };
        let overlaps = None;
        parts.extend(moments.into_iter().map(|moments| Self {
            moments,
            overlaps: overlaps.clone(),
        }));
        total
    }

    fn zero_mass(&self) -> usize {
        self.moments.zero_mass()
    }
}

/// A merge of two components, and what it gains.
struct Merge {
    /// Of the components and the entropy, without the sticks: the least under all priors.
    evidence: f64,
    /// Of the bound, if no other components merge.
    gain: f64,
    /// More than this is worth it.
    worth: f64,
    into: usize,
    from: usize,
}

/// What the entropy of the responsibilities would lose in each pair of components that may merge (E51).
#[derive(Clone, Debug)]
pub(super) struct Overlaps {
    /// The lower number first.
    pairs: Vec<(u32, u32)>,
    lost: Vec<f64>,
}

impl Overlaps {
    /// Of no rows.
    pub(super) fn new(components: &[NormalWishart], prior: &Prior) -> Self {
        let with_mass: Vec<usize> = (0..components.len())
            .filter(|&t| components[t].mean_precision > prior.mean_precision)
            .collect();
        let lists = parallel::map(with_mass.len(), |i| {
            let t = with_mass[i];
            let mut apart = Vec::new();
            let others = with_mass.iter().filter(|&&s| s != t);
            let mut others: Vec<(f64, usize)> = others
                .map(|&s| {
                    (
                        components[t]
                            .whitening
                            .form(&components[s].whitening.mean, &mut apart),
                        s,
                    )
                })
                .collect();
            others.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            others.truncate(NEAREST);
            let pair = |&(_, s): &(f64, usize)| (t.min(s) as u32, t.max(s) as u32);
            others.iter().map(pair).collect::<Vec<_>>()
        });
        let mut pairs = lists.concat();
        pairs.sort_unstable();
        pairs.dedup();
        Self {
            lost: vec![0.0; pairs.len()],
            pairs,
        }
    }

    /// The sum of both, if both are there.
    fn plus(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (mut one, other) = (one?, other?);
        for (sum, lost) in one.lost.iter_mut().zip(other.lost) {
            *sum += lost;
        }
        Some(one)
    }

    /// Adds a block of rows that all components share; more than any merge gains, if they do not.
    pub(super) fn add<F: Float>(&mut self, rows: &Rows<F>, block: &Block<F>) {
        if !block.is_full() {
            return self.lost.fill(f64::INFINITY);
        }
        for i in 0..rows.len() {
            // Shares are rounded.
            let weight = rows.weight(i) * (1.0 + F::EPSILON);
            let shares = block.responsibilities(i);
            for (lost, &(a, b)) in self.lost.iter_mut().zip(&self.pairs) {
                let (a, b) = (shares[a as usize].to_f64(), shares[b as usize].to_f64());
                *lost += weight * lost_entropy(a, b);
            }
        }
    }
}

impl Scatter {
    /// Gives all that some components have to others, where that is sure to raise the bound (E51). Returns how many it
    /// emptied. It has to be sure under these weaker priors, too.
    pub(super) fn merge_components(
        &mut self,
        components: &[NormalWishart],
        prior: &Prior,
        weaker: &[f64],
    ) -> usize {
        let weaker: Option<Vec<Prior>> = weaker.iter().map(|share| prior.weaker(*share)).collect();
        let Some(weaker) = weaker else {
            return 0;
        };
        let priors: Vec<&Prior> = std::iter::once(prior).chain(&weaker).collect();
        let mut merges = self.merges(components, &priors);
        merges.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let (mut emptied, mut touched) = (0, vec![false; components.len()]);
        for merge in merges {
            let (into, from) = (merge.into, merge.from);
            if touched[into] || touched[from] {
                continue;
            }
            // Other merges have changed the sticks.
            let of_sticks = self.gain_of_sticks(prior.concentration, into, from);
            if merge.evidence + of_sticks > merge.worth {
                self.moments.join(into, from, &step(components, into, from));
                touched[into] = true;
                touched[from] = true;
                emptied += 1;
            }
        }
        emptied
    }

    /// What each pair would gain by itself, where that can be said.
    fn merges(&self, old: &[NormalWishart], priors: &[&Prior]) -> Vec<Merge> {
        let Some(overlaps) = &self.overlaps else {
            return Vec::new();
        };
        // Rounding decides what the evidence of nearly singular components is.
        let evidence = |moments: &Moments, t: usize, old: &NormalWishart| {
            let under = priors.iter().map(|prior| {
                let component = NormalWishart::posterior(prior, moments, t, &old.whitening.mean)?;
                let well = component.whitening.inflation <= WELL;
                well.then(|| component.evidence(prior))
            });
            under.collect::<Option<Vec<f64>>>()
        };
        let apart = parallel::map(old.len(), |t| evidence(&self.moments, t, &old[t]));
        let merges = parallel::map(overlaps.pairs.len(), |pair| {
            let (a, b) = overlaps.pairs[pair];
            let (a, b) = (a as usize, b as usize);
            // Where the merged component stands among the sticks is free: the better place.
            let place = |into, from| {
                let gain = self.gain_of_sticks(priors[0].concentration, into, from);
                (gain, into, from)
            };
            let (one, other) = (place(a, b), place(b, a));
            let (of_sticks, into, from) = if other.0 > one.0 { other } else { one };
            let mut sums = self.moments.pair(into, from);
            sums.join(0, 1, &step(old, into, from));
            let both = evidence(&sums, 0, &old[into])?;
            let (one, other) = (apart[a].as_ref()?, apart[b].as_ref()?);
            let gains = both.iter().zip(one).zip(other);
            let gains: Vec<f64> = gains
                .map(|((both, one), other)| both - one - other - overlaps.lost[pair])
                .collect();
            Some(Merge {
                evidence: gains.iter().copied().fold(f64::INFINITY, f64::min),
                gain: gains[0] + of_sticks,
                worth: WORTH + ROUNDING * sums.mass(0),
                into,
                from,
            })
        });
        merges.into_iter().flatten().collect()
    }

    /// The change of the part of the bound that follows from the masses: only sticks from one to the other change.
    fn gain_of_sticks(&self, concentration: f64, into: usize, from: usize) -> f64 {
        let evidence = |masses: &[f64]| {
            let between = into.min(from)..=into.max(from);
            Sticks::new(concentration, masses).evidence(concentration, between)
        };
        let mut masses = self.moments.masses().to_vec();
        masses[into] += std::mem::take(&mut masses[from]);
        evidence(&masses) - evidence(self.moments.masses())
    }
}

/// From the mean of one component to that of another (d).
fn step(components: &[NormalWishart], into: usize, from: usize) -> Vec<f64> {
    let mean = |t: usize| &components[t].whitening.mean;
    mean(from)
        .iter()
        .zip(mean(into))
        .map(|(from, into)| from - into)
        .collect()
}

/// What the entropy of two responsibilities loses when one component gets both:
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
    use super::super::DirichletProcessMixture;
    use super::*;
    use crate::algorithms;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::e_step::{EStep, Exhaustive};
    use crate::m_step::{DirichletProcess, MStep};
    use crate::model::Mixture;
    use crate::model::posterior;
    use crate::rows::Scores;
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

    /// A model after two M-steps, and all responsibilities of its rows.
    struct Case<F: Float> {
        family: DirichletProcess,
        model: DirichletProcessMixture<F>,
        rows: Rows<F>,
        block: Block<F>,
        q: Array2<f64>,
    }

    impl<F: Float> Case<F> {
        fn new(n: usize, clusters: usize, k: usize) -> Self {
            let mut rng = Rng::from_seed(5);
            let x = Array2::from_shape_fn((n, 2), |(i, j)| {
                let centre = [i % clusters, i % clusters / 2][j];
                F::from_f64(3.0 * centre as f64 + rng.normal())
            });
            let w = Array1::from_shape_fn(n, |i| 0.5 + (i % 4) as f64);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let family = DirichletProcess::new(0.8);
            let builder = algorithms::dp_gmm(k, 1.0).m_step(family.clone());
            let fit = builder.max_iterations(2).tolerance(0.0).build().unwrap();
            let model = fit.fit(&data).unwrap().model;
            let mut rows = Rows::default();
            data.load(0..n, &model.frame, &mut rows).unwrap();
            let all = Exhaustive::all();
            let mut block = Block::new(k, k);
            block.reset(n, &[]);
            let search = all.begin(&model, None, &mut rng).unwrap();
            search.search(&model, &rows, &mut block, &mut rng);
            posterior::normalise(&rows, &mut block, model.log_joint());
            let q = Array2::from_shape_fn((n, k), |(i, c)| block.responsibilities(i)[c].to_f64());
            Self {
                family,
                model,
                rows,
                block,
                q,
            }
        }

        fn sums(&self) -> Scatter {
            let mut sums = self.family.statistics_to_merge(&self.model, 1).remove(0);
            self.family
                .accumulate(&self.rows, &self.block, &self.model, &mut sums);
            sums
        }

        /// The bound after the M-step from these sums, with these responsibilities, term by term (E30).
        fn bound(&self, sums: Scatter, q: &Array2<f64>) -> f64 {
            let mut model = self.model.clone();
            self.family.update(sums, &mut model, false);
            let (log_joint, mut scores) = (model.log_joint(), Vec::new());
            let ids: Vec<u32> = (0..q.ncols() as u32).collect();
            let mut total = model.prior_terms();
            for (i, q) in q.rows().into_iter().enumerate() {
                model.some(&self.rows, i, &ids, &mut scores);
                let terms = q.iter().zip(&scores).filter(|(q, _)| **q > 0.0);
                let of_row = terms.map(|(q, score)| {
                    let log =
                        log_joint.alpha + 2.0 * log_joint.gamma - log_joint.beta * score.to_f64();
                    q * (log - q.ln())
                });
                total += self.rows.weight(i) * of_row.sum::<f64>();
            }
            total
        }

        /// The same after the M-step from the responsibilities themselves.
        fn naive(&self, q: &Array2<f64>) -> f64 {
            let mut sums = MStep::statistics(&self.family, &self.model);
            let block = self.block.with_shares(|i, c| q[[i, c]]);
            self.family
                .accumulate(&self.rows, &block, &self.model, &mut sums);
            self.bound(sums, q)
        }

        /// All that one component has given to another.
        fn merge(q: &mut Array2<f64>, into: usize, from: usize) {
            for mut q in q.rows_mut() {
                q[into] += std::mem::take(&mut q[from]);
            }
        }
    }

    fn gains_are_differences<F: Float>(rounding: f64) {
        let (k, case) = (5, Case::<F>::new(90, 3, 5));
        let merges = case
            .sums()
            .merges(&case.model.components, &[&case.model.prior]);
        assert_eq!(merges.len(), k * (k - 1) / 2);
        for Merge {
            gain, into, from, ..
        } in merges
        {
            let mut merged = case.q.clone();
            Case::<F>::merge(&mut merged, into, from);
            let expected = case.naive(&merged) - case.naive(&case.q);
            assert!((expected - gain).abs() < rounding, "{gain} {expected}");
        }
    }

    #[test]
    fn gains_are_differences_of_the_naive_bound() {
        gains_are_differences::<f64>(1e-9);
        gains_are_differences::<f32>(1e-3);
    }

    /// Several at once: their gains add up, but for the sticks.
    #[test]
    fn merges_raise_the_naive_bound() {
        let case = Case::<f64>::new(900, 4, 12);
        let mut sums = case.sums();
        let (apart, mut q) = (sums.moments.masses().to_vec(), case.q.clone());
        let emptied = sums.merge_components(&case.model.components, &case.model.prior, &[]);
        assert!(emptied > 1, "{emptied}");
        let from: Vec<usize> = (0..12).filter(|&t| sums.moments.mass(t) == 0.0).collect();
        assert_eq!(from.len(), emptied);
        for from in from {
            let of_both =
                |t: &usize| *t != from && sums.moments.mass(*t) == apart[*t] + apart[from];
            let into = (0..12).find(of_both).unwrap();
            Case::<f64>::merge(&mut q, into, from);
        }
        let (before, after) = (case.naive(&case.q), case.naive(&q));
        assert!(after > before + emptied as f64 * WORTH, "{before} {after}");
        let got = case.bound(sums, &q);
        assert!((got - after).abs() < 1e-9 * after.abs(), "{got} {after}");
    }
}
