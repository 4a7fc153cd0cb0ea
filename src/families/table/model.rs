//! A fitted mixture of tables.

use super::column::{
    Column, check, constant_of_count, cost_of_count, least_variance, likeliest, numbers_apart,
    place, refused, starts,
};
use crate::base::error::{Error, Result};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::costs::{Cost, OwnCost};
use crate::families::columns::{check_columns, other_columns, shares_under};
use crate::families::proportions::components;
use crate::io::{all_finite, all_positive, rule};
use crate::model::Mixture;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD, ArrayView1};
use std::f64::consts::TAU;

/// A fitted mixture of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMixture<F> {
    pub(in crate::families) theta: Theta<F>,
    /// (d): where the categories of each column start among all.
    pub(super) starts: Vec<usize>,
    /// (k, d): what costs need of each component and column. Half the logarithm of 2 pi v for a number; for a count the
    /// logarithm of its rate.
    pub(super) logs: Vec<f64>,
    /// (k, all categories).
    pub(super) log_probabilities: Vec<f64>,
}

/// The parameters, with those of the whole data for the prior.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Theta<F> {
    pub(super) columns: Vec<Column>,
    /// The codes of the categories of each column (d), in ascending order; none of other columns.
    pub(super) codes: Vec<Vec<f64>>,
    pub(super) frame: Frame<F>,
    pub(super) means: Centres<F>,
    /// (k, d): variances of numbers, rates of counts; 1 for categories.
    pub(super) spread: Vec<f64>,
    /// (k, all categories).
    pub(super) probabilities: Vec<f64>,
    pub(super) proportions: Vec<f64>,
    /// (d) and (all categories), of all rows.
    pub(super) whole_spread: Vec<f64>,
    pub(super) whole_probabilities: Vec<f64>,
    /// The total weight of the rows, and the prior as a share of it: sums are shares as well, so no unit of weights counts.
    pub(super) weight: f64,
    pub(super) prior: f64,
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(in crate::families) fn check(&self) -> std::result::Result<(), FileFault> {
        let k = self.means.len();
        let d = self.means.dim();
        let sized = self.columns.len() == d && self.frame.dim() == d && self.codes.len() == d;
        rule(sized, "columns", "must be as many as the means have")?;
        let coded = |(column, codes): (&Column, &Vec<f64>)| {
            let kind = Column::Category(0);
            let is_code = |code: &f64| *column == kind && refused::<F>(kind, *code).is_none();
            codes.iter().all(is_code) && codes.is_sorted_by(|a, b| a < b)
        };
        let sound = self.columns.iter().zip(&self.codes).all(coded);
        rule(sound, "codes", "must be whole numbers in ascending order")?;
        let (_, all) = starts(&self.codes);
        rule(self.frame.is_raw(), "frame", "must be that of raw numbers")?;
        all_positive("spread", &self.spread, k * d)?;
        all_positive("probabilities", &self.probabilities, k * all)?;
        all_finite("proportions", &self.proportions, k)?;
        let total: f64 = self.proportions.iter().sum();
        let sound = self.proportions.iter().all(|p| *p >= 0.0) && (total - 1.0).abs() < 1e-6;
        rule(sound, "proportions", "must be shares of 1")?;
        all_positive("spread of all rows", &self.whole_spread, d)?;
        all_positive("probabilities of all rows", &self.whole_probabilities, all)?;
        let sound =
            (0.0..=1e9).contains(&self.prior) && (self.weight > 0.0 && self.weight.is_finite());
        rule(sound, "prior", "must be a share of a weight")
    }
}

impl<F: Float> TableMixture<F> {
    pub(in crate::families) fn new(mut theta: Theta<F>) -> Self {
        let d = theta.columns.len();
        let (starts, all) = starts(&theta.codes);
        // Codes have no mean: the likeliest one stands for it.
        theta.means.update(|c, mean| {
            for (j, codes) in theta.codes.iter().enumerate() {
                let own = &theta.probabilities[c * all + starts[j]..][..codes.len()];
                if let Some(l) = likeliest(own.iter().copied()) {
                    mean[j] = F::from_f64(codes[l]);
                }
            }
        });
        let logs =
            theta
                .spread
                .iter()
                .enumerate()
                .map(|(place, spread)| match theta.columns[place % d] {
                    Column::Number => 0.5 * (TAU * spread).ln(),
                    _ => spread.ln(),
                });
        Self {
            logs: logs.collect(),
            log_probabilities: theta.probabilities.iter().map(|p| p.ln()).collect(),
            starts,
            theta,
        }
    }

    /// An error for the first number that is none of its column: it gives row and column these numbers.
    pub(in crate::families) fn check(
        &self,
        rows: &Rows<F>,
        first: usize,
        numbers: impl Fn(usize) -> usize,
    ) -> Result<()> {
        check(&self.theta.columns, rows, first, numbers)
    }

    /// The kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.theta.columns
    }

    /// The codes of the categories of a column, in ascending order: those that occurred in the data of the fit.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there is such a column, of categories.
    pub fn codes(&self, column: usize) -> Result<&[f64]> {
        let rule = "must be one of categories";
        match self.theta.columns.get(column) {
            Some(Column::Category(_)) => Ok(&self.theta.codes[column]),
            _ => Err(Error::parameter("column", column, rule)),
        }
    }

    /// The probabilities of the categories of a column (k, categories), in the order of their [`codes`](Self::codes).
    ///
    /// # Errors
    /// As `codes`.
    pub fn probabilities(&self, column: usize) -> Result<Array2<f64>> {
        let shape = (self.theta.means.len(), self.codes(column)?.len());
        Ok(Array2::from_shape_fn(shape, |(c, l)| {
            self.own(c, column)[l]
        }))
    }

    /// The probabilities of the categories of column `j` under component `c`.
    fn own(&self, c: usize, j: usize) -> &[f64] {
        let all = self.theta.whole_probabilities.len();
        &self.theta.probabilities[c * all + self.starts[j]..][..self.theta.codes[j].len()]
    }

    /// The mixture of these columns alone, in this order: the others are left out of the likelihood.
    ///
    /// # Errors
    /// [`Error::Empty`] without columns; [`Error::Parameter`] for one that there is not, or that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        let theta = &self.theta;
        let d = self.theta.columns.len();
        check_columns(columns, d)?;
        let k = theta.means.len();
        let all = theta.whole_probabilities.len();
        let of_columns = |own: &[f64]| columns.iter().map(|j| own[*j]).collect::<Vec<_>>();
        let of_categories = |own: &[f64]| {
            let of = |j: &usize| &own[self.starts[*j]..][..theta.codes[*j].len()];
            columns.iter().flat_map(of).copied().collect::<Vec<_>>()
        };
        let means = Array2::from_shape_fn((k, columns.len()), |(c, place)| {
            theta.means.row(c)[columns[place]]
        });
        let probabilities = theta.probabilities.chunks_exact(all.max(1));
        Ok(Self::new(Theta {
            columns: columns.iter().map(|j| theta.columns[*j]).collect(),
            codes: columns.iter().map(|j| theta.codes[*j].clone()).collect(),
            frame: theta.frame.of_columns(columns),
            means: Centres::of_coordinates(means.view()),
            spread: theta.spread.chunks_exact(d).flat_map(of_columns).collect(),
            probabilities: probabilities.flat_map(of_categories).collect(),
            proportions: theta.proportions.clone(),
            whole_spread: of_columns(&theta.whole_spread),
            whole_probabilities: of_categories(&theta.whole_probabilities),
            ..*theta
        }))
    }

    /// The mixture of the other columns, in their order, where these `columns` have these `values`: its proportions are the posterior of the
    /// components under them.
    ///
    /// # Errors
    /// As [`marginal`](Self::marginal); [`Error::LengthMismatch`] for another number of values, [`Error::NotFinite`] for one that is NaN
    /// or infinite; [`Error::Parameter`] if no column is left.
    pub fn condition(&self, columns: &[usize], values: &[f64]) -> Result<Self> {
        let others = other_columns(columns, values, self.theta.columns.len())?;
        let proportions = shares_under(&self.marginal(columns)?, values)?;
        let mut rest = self.marginal(&others)?;
        rest.theta.proportions = proportions;
        Ok(rest)
    }

    /// A row (n, d) of each of these components.
    pub(in crate::families) fn drawn(&self, labels: &Array1<u32>, rng: &mut Rng) -> Array2<F> {
        let theta = &self.theta;
        let d = self.theta.columns.len();
        Array2::from_shape_fn((labels.len(), d), |(n, j)| {
            let c = labels[n] as usize;
            let spread = theta.spread[c * d + j];
            let mean = theta.means.row(c)[j].to_f64();
            F::from_f64(match theta.columns[j] {
                Column::Number => mean + spread.sqrt() * rng.normal(),
                Column::Count => rng.poisson(spread),
                Column::Category(_) => {
                    let drawn = rng.proportional(self.own(c, j).iter().copied(), 1.0);
                    theta.codes[j][drawn.unwrap_or(0)]
                }
            })
        })
    }

    /// How much each column sets a component apart from the whole mixture (k, d), in nats: the mean, over rows of the component, of
    /// $\ln p(y_j \mid c) - \ln p(y_j)$, where $p(y_j)$ is the distribution of the column's kind with the mean, the variance and the
    /// shares of the mixture. It is a divergence, so 0 where a column says nothing.
    #[must_use]
    pub fn explain(&self) -> Array2<f64> {
        self.explained(&self.theta.proportions)
    }

    /// As above, for these proportions.
    pub(in crate::families) fn explained(&self, proportions: &[f64]) -> Array2<f64> {
        let (theta, (k, d)) = (
            &self.theta,
            (self.theta.means.len(), self.theta.columns.len()),
        );
        // The mean over components, by their proportions.
        let whole =
            |of: &dyn Fn(usize) -> f64| -> f64 { (0..k).map(|c| proportions[c] * of(c)).sum() };
        let mut apart = Array2::zeros((k, d));
        for (j, column) in theta.columns.iter().enumerate() {
            let mean = |c: usize| theta.means.row(c)[j].to_f64();
            let spread = |c: usize| theta.spread[c * d + j];
            let centre = whole(&mean);
            let wide = whole(&spread);
            let squared = |c: usize| (mean(c) - centre).powi(2);
            let variance = wide + whole(&squared);
            for c in 0..k {
                apart[[c, j]] = match *column {
                    Column::Number => numbers_apart(squared(c), spread(c), variance),
                    Column::Count => spread(c) * (spread(c) / wide).ln() - spread(c) + wide,
                    Column::Category(_) => {
                        let each = (0..theta.codes[j].len()).map(|l| {
                            let share = |c: usize| self.own(c, j)[l];
                            share(c) * (share(c) / whole(&share)).ln()
                        });
                        each.sum()
                    }
                };
            }
        }
        // Rounding may leave a little less than 0.
        apart.mapv(|nats| f64::max(nats, 0.0))
    }
}

impl<F: Float> OwnCost<F> for TableMixture<F> {
    fn components(&self) -> usize {
        self.theta.means.len()
    }

    fn are_of_known(&self) -> bool {
        true
    }

    fn has_distances(&self) -> bool {
        let mut columns = self.theta.columns.iter();
        columns.all(|column| !matches!(column, Column::Category(_)))
    }

    fn takes(&self, rows: &Rows<F>, first: usize) -> Result<()> {
        self.check(rows, first, |j| j)
    }

    fn datum(&self, j: usize, shares: ArrayView1<'_, F>, expected: f64, whole: bool) -> f64 {
        match self.theta.columns[j] {
            Column::Category(_) => {
                let codes = &self.theta.codes[j];
                let terms = |(c, q): (usize, &F), l| q.to_f64() * self.own(c, j)[l];
                let share = |l| shares.iter().enumerate().map(|pair| terms(pair, l)).sum();
                likeliest((0..codes.len()).map(share)).map_or(expected, |l| codes[l])
            }
            Column::Count if whole => expected.round(),
            _ => expected,
        }
    }

    /// -ln pi_c, and for each known column -ln p(y_j | c). A code that the fit did not see is as unlikely under all.
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        const UNSEEN: f64 = 27.6; // one in 10^12
        let theta = &self.theta;
        let d = self.theta.columns.len();
        let all = theta.whole_probabilities.len();
        let mut costs: Vec<f64> = ids
            .iter()
            .map(|c| -theta.proportions[*c as usize].ln())
            .collect();
        rows.each_known(i, |j, x| {
            let x = x.to_f64();
            let own = ids.iter().map(|c| *c as usize).zip(&mut costs);
            match theta.columns[j] {
                Column::Number => own.for_each(|(c, cost)| {
                    let place = c * d + j;
                    let apart = x - theta.means.row(c)[j].to_f64();
                    *cost += self.logs[place] + apart * apart / (2.0 * theta.spread[place]);
                }),
                Column::Count => {
                    let constant = constant_of_count(x);
                    own.for_each(|(c, cost)| {
                        let rate = theta.spread[c * d + j];
                        let log = self.logs[c * d + j];
                        *cost += cost_of_count(x, rate, log) + constant;
                    });
                }
                Column::Category(_) => match place(&theta.codes[j], x) {
                    Some(l) => own.for_each(|(c, cost)| {
                        *cost -= self.log_probabilities[c * all + self.starts[j] + l];
                    }),
                    None => own.for_each(|(_, cost)| *cost += UNSEEN),
                },
            }
        });
        out.clear();
        let held = costs.into_iter().map(|cost| cost.min(F::LARGEST_COST));
        out.extend(held.map(F::from_f64));
    }
}

impl<F: Float> Mixture<F> for TableMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        Cost::Own(self)
    }

    fn centres(&self) -> &Centres<F> {
        &self.theta.means
    }

    fn frame(&self) -> &Frame<F> {
        &self.theta.frame
    }

    fn proportions(&self) -> Array1<f64> {
        self.theta.proportions.clone().into()
    }

    /// The logarithm of the prior density, up to a constant.
    fn prior_terms(&self) -> f64 {
        let theta = &self.theta;
        let d = self.theta.columns.len();
        let spreads = theta.spread.iter().enumerate().map(|(place, own)| {
            let whole = theta.whole_spread[place % d];
            match theta.columns[place % d] {
                Column::Number => -0.5 * (own.ln() + whole / own),
                Column::Count => whole * own.ln() - own,
                Column::Category(_) => 0.0,
            }
        });
        let all = theta.whole_probabilities.len().max(1);
        let logs = self.log_probabilities.iter().enumerate();
        let categories = logs.map(|(place, log)| theta.whole_probabilities[place % all] * log);
        theta.prior * theta.weight * (spreads.sum::<f64>() + categories.sum::<f64>())
    }

    fn at_floor(&self) -> Vec<usize> {
        /// Clamped variances are at their floor up to rounding.
        const NEAR: f64 = 1.0 + 1e-6;
        let theta = &self.theta;
        let d = self.theta.columns.len();
        let is_held = |c: usize, j: usize| {
            let mean = theta.means.row(c)[j].to_f64();
            let least = least_variance::<F>(mean, theta.whole_spread[j]);
            theta.columns[j] == Column::Number && theta.spread[c * d + j] <= NEAR * least
        };
        let held = (0..theta.means.len()).filter(|c| (0..d).any(|j| is_held(*c, j)));
        held.collect()
    }

    fn free_parameters(&self) -> Option<usize> {
        let columns = self.theta.columns.iter().zip(&self.theta.codes);
        let each = columns.map(|(column, codes)| match column {
            Column::Number => 2,
            Column::Count => 1,
            Column::Category(_) => codes.len().saturating_sub(1),
        });
        let k = self.theta.means.len();
        Some(k * each.sum::<usize>() + k - 1)
    }

    /// The variance of a count is its rate. For categories it is the probability that two rows differ.
    fn variances(&self) -> Array2<f64> {
        let d = self.theta.columns.len();
        Array2::from_shape_fn((self.theta.means.len(), d), |(c, j)| {
            let same = self.own(c, j).iter().map(|p| p * p).sum::<f64>();
            match self.theta.columns[j] {
                Column::Category(_) => (1.0 - same).max(0.0),
                _ => self.theta.spread[c * d + j],
            }
        })
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.theta.proportions, n, &mut rng)?;
        Ok((self.drawn(&labels, &mut rng), labels))
    }

    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let shape = (self.theta.means.len(), self.theta.whole_probabilities.len());
        let probabilities = Array2::from_shape_vec(shape, self.theta.probabilities.clone());
        let codes: Array1<f64> = self.theta.codes.iter().flatten().copied().collect();
        vec![
            ("variances", self.variances().into_dyn()),
            (
                "probabilities",
                probabilities.expect("k x categories").into_dyn(),
            ),
            ("codes", codes.into_dyn()),
            ("proportions", self.proportions().into_dyn()),
        ]
    }
}
