//! A column alone as a product sees it.

use super::categorical::{Categorical, NONE};
use super::column::{Codes, Column, LEAST, place};
use super::law::{Alone, Law, Whole};
use super::normal::{Normal, least};
use super::poisson::Poisson;
use crate::base::cached::Cached;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::Summary;
use crate::families::variances::RESOLVED;
use crate::io::{all_finite, all_positive, rule};
use ndarray::{Array1, Array2, ArrayView1};

impl Column {
    /// The distribution of a column of this kind.
    pub(super) fn law(self) -> &'static dyn Law {
        match self {
            Self::Number => &Normal,
            Self::Count => &Poisson,
            Self::Category(_) => &Categorical,
        }
    }
}

impl Alone {
    /// Components at these seeds, of column `j` of the data. Rows in advance are those of one component.
    pub(super) fn at<F: Float>(
        kind: Column,
        seeds: ArrayView1<'_, F>,
        summary: &Summary,
        j: usize,
        Codes { codes, shares }: Codes,
        prior_rows: f64,
    ) -> Self {
        let resolved = F::EPSILON.max(RESOLVED);
        let mean = summary.mean[j];
        let (kind, parameters) = match kind {
            Column::Number => {
                let (low, high) = summary.range[j];
                let least = least(low.abs().max(high.abs()), 0.0, resolved);
                (kind, vec![mean, summary.variance[j].max(least)])
            }
            Column::Count => (kind, vec![mean.max(LEAST.sqrt())]),
            // One for all unseen codes, where there are no others.
            Column::Category(_) if codes.is_empty() => (Column::Category(0), vec![1.0]),
            Column::Category(_) => (Column::Category(0), shares),
        };
        let mut new = Self {
            parameters: Vec::new(),
            kind,
            codes,
            whole: Whole {
                parameters,
                weight: summary.total_weight,
                prior: prior_rows / summary.rows as f64,
                resolved,
            },
            logs: Cached::default(),
        };
        let whole = &new.whole.parameters;
        let at = |seed: &F| kind.law().at(new.see(seed.to_f64()), whole);
        new.parameters = seeds.iter().flat_map(at).collect();
        new
    }

    /// The place of a code; any other number stays as it is.
    pub(super) fn see(&self, x: f64) -> f64 {
        match self.kind {
            Column::Category(_) => place(&self.codes, x).map_or(NONE, |l| l as f64),
            Column::Number | Column::Count => x,
        }
    }

    /// The code of a place; any other number stays as it is.
    fn show<F: Float>(&self, x: f64) -> F {
        F::from_f64(match self.kind {
            Column::Category(_) => self.codes.get(x as usize).copied().unwrap_or(0.0),
            Column::Number | Column::Count => x,
        })
    }

    /// Takes the parameters of components of the same kind, if these are, whose means are the seeds: whether they are.
    pub(super) fn go_on(&mut self, from: &Self) -> bool {
        let sized = self.parameters.len() == from.parameters.len();
        let same = sized && self.kind == from.kind && self.codes == from.codes;
        if same {
            self.parameters.clone_from(&from.parameters);
        }
        same
    }

    /// The parameters of each component.
    fn each(&self) -> impl Iterator<Item = &[f64]> {
        self.parameters.chunks_exact(self.whole.parameters.len())
    }

    /// (k).
    pub(super) fn means<F: Float>(&self) -> Vec<F> {
        let law = self.kind.law();
        self.each()
            .map(|parameters| self.show(law.mean(parameters)))
            .collect()
    }

    /// (k).
    pub(super) fn variances(&self) -> Vec<f64> {
        let law = self.kind.law();
        self.each()
            .map(|parameters| law.variance(parameters))
            .collect()
    }

    /// (k): the divergence of each component from the mixture with these proportions.
    pub(super) fn explained(&self, shares: &[f64]) -> Vec<f64> {
        let n = self.whole.parameters.len();
        self.kind.law().explained(&self.parameters, shares, n)
    }

    /// The value in place of a missing one, where components have these shares, and this is expected.
    pub(super) fn datum(&self, shares: &[f64], expected: f64, whole: bool) -> f64 {
        let n = self.whole.parameters.len();
        let law = self.kind.law();
        let mixed = law.mixed(&self.parameters, shares, n);
        self.show(law.datum(&mixed, expected, whole))
    }

    /// (k, codes).
    pub(super) fn probabilities(&self) -> Array2<f64> {
        let n = self.whole.parameters.len();
        let shape = (self.parameters.len() / n, self.codes.len());
        Array2::from_shape_fn(shape, |(c, l)| self.parameters[c * n + l])
    }

    /// A number (n) of each of these components.
    pub(super) fn drawn<F: Float>(&self, labels: &Array1<u32>, rng: &mut Rng) -> Vec<F> {
        let law = self.kind.law();
        let n = self.whole.parameters.len();
        let mut draw = |c: &u32| law.draw(&self.parameters[*c as usize * n..][..n], rng);
        labels.iter().map(|c| self.show(draw(c))).collect()
    }

    /// How many sums there are: for each component its mass, and one for each parameter.
    pub(super) fn sums(&self) -> usize {
        self.parameters.len() / self.whole.parameters.len() + self.parameters.len()
    }

    pub(super) fn update(&mut self, sums: &[f64]) {
        let law = self.kind.law();
        let n = self.whole.parameters.len();
        let components = self.parameters.chunks_exact_mut(n);
        let known = components.zip(sums.chunks_exact(1 + n));
        for (parameters, sums) in known.filter(|(_, sums)| sums[0] > 0.0) {
            law.update(parameters, sums[0], &sums[1..], &self.whole);
        }
        self.logs = Cached::default();
    }

    /// The logarithm of the prior density.
    pub(super) fn prior_terms(&self) -> f64 {
        let law = self.kind.law();
        let terms = self
            .each()
            .map(|parameters| law.prior(parameters, &self.whole.parameters));
        self.whole.prior * self.whole.weight * terms.sum::<f64>()
    }

    pub(super) fn free(&self) -> usize {
        let n = self.whole.parameters.len();
        self.parameters.len() / n * self.kind.law().free(n)
    }

    /// Components that a floor holds.
    pub(super) fn at_floor(&self) -> Vec<usize> {
        let law = self.kind.law();
        let components = self.each().enumerate();
        let clamped = components.filter(|(_, parameters)| law.is_held(parameters, &self.whole));
        clamped.map(|(c, _)| c).collect()
    }

    /// Checks what came from a file, for `k` components.
    pub(super) fn check(&self, k: usize) -> std::result::Result<(), FileFault> {
        let law = self.kind.law();
        let whole = &self.whole.parameters;
        let n = match self.kind {
            Column::Number => 2,
            Column::Count => 1,
            Column::Category(_) => self.codes.len().max(1),
        };
        all_finite("parameters of all rows", whole, n)?;
        all_finite("parameters", &self.parameters, k * n)?;
        for parameters in self.each().chain([&whole[..]]) {
            let positive = law.positive(parameters);
            all_positive("parameters", positive, positive.len())?;
        }
        let mut codes = self.codes.iter();
        let is_code = |code: &f64| self.kind.refused(*code, f64::EPSILON).is_none();
        let sound = codes.all(is_code) && self.codes.is_sorted_by(|a, b| a < b);
        rule(sound, "codes", "must be whole numbers in ascending order")?;
        let Whole { weight, prior, .. } = self.whole;
        all_positive("weight of all rows", &[weight, self.whole.resolved], 2)?;
        let sound = (0.0..=1e9).contains(&prior);
        rule(sound, "prior", "must be a share of a weight")
    }
}
