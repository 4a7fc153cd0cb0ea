//! Columns of different kinds: numbers, counts and categories, independent within a component.

use super::conditional::{check_columns, other_columns, shares_under};
use super::proportions::components;
use super::{Coordinates, MStep, Moments, Needs, SecondMoments, Started};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, require};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel::BLOCK;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::costs::{Cost, OwnCost};
use crate::data::Data;
use crate::io::{all_finite, all_positive, rule};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Serialize};
use special::Gamma;
use std::f64::consts::TAU;
use std::iter::repeat;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Column {
    /// Any number: a Gaussian with a mean and a variance.
    Number,
    /// A whole number, 0 or more: a Poisson distribution with a rate.
    Count,
    /// A category, as a whole number from 0 to below their number: a probability of each. With the number 0 there are as many as
    /// the largest one in the data says.
    Category(usize),
}

/// Components for tables of mixed columns ([E57](crate::equations#e57)): given its component, the columns of a row are independent.
///
/// With categories alone it is latent class analysis, with counts alone a Poisson mixture, and with numbers alone a Gaussian
/// mixture with diagonal covariances. Missing values are left out of the likelihood, as everywhere.
///
/// Seeds are rows that are far apart in the numbers as they are, which is not how components differ: so
/// [`algorithms::table`](crate::algorithms::table) fits from several.
///
/// Each component and column has half a row of the whole data in advance, so that a probability is never 0 and a
/// variance does not vanish: a Dirichlet, gamma or inverse gamma prior, which is part of the free energy.
///
/// ```
/// use coremix::m_step::{Column, Table};
/// use coremix::prelude::*;
/// use ndarray::array;
///
/// // age, visits, colour (0, 1 or 2)
/// let x = array![[21.0, 0.0, 2.0], [23.0, 1.0, 2.0], [22.0, 0.0, 1.0], [60.0, 9.0, 0.0], [65.0, 7.0, 0.0], [61.0, 8.0, 1.0]];
/// let columns = vec![Column::Number, Column::Count, Column::Category(3)];
/// let model = algorithms::table(2, columns).build()?.fit(&Dense::new(&x)?)?.model;
/// let labels = model.predict(&Dense::new(&x)?)?;
/// assert!(labels[0] != labels[3]);
/// let of_colour = model.probabilities(2)?; // (components, categories)
/// assert!(of_colour[[labels[3] as usize, 0]] > 0.5);
/// let apart = model.explain(); // (components, columns), in nats: the age tells them apart most
/// assert!(apart[[0, 0]] > apart[[0, 2]]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(super) columns: Vec<Column>,
}

/// Rows of the whole data that each component has in advance.
const PRIOR_ROWS: f64 = 0.5;

/// Most categories of all columns together.
const MOST_CATEGORIES: usize = 1 << 20;

impl Table {
    /// Columns of these kinds, one for each column of the data; if there are none, all are numbers.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// A model at the seeds, halfway between these and the whole data, for a seed is one row. Errors give columns these numbers.
    pub(super) fn start_of<F: Float>(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        numbers: &[usize],
        before: Option<&TableMixture<F>>,
    ) -> Result<Started<TableMixture<F>>> {
        let (k, d) = (seeds.len(), seeds.dim());
        let (rule, kinds) = ("must be as many as there are columns", self.columns.len());
        require(kinds == d || kinds == 0, "kinds of columns", kinds, rule)?;
        let summary = data.summary();
        let columns = self.columns.iter().chain(repeat(&Column::Number));
        let columns = columns
            .zip(&summary.range)
            .map(|(column, (_, high))| match column {
                // As many as fit into a usize: the limit is far below.
                Column::Category(0) => Column::Category((high.max(0.0) + 1.0) as usize),
                known => *known,
            });
        let columns: Vec<Column> = columns.collect();
        let number = columns.iter().fold(0, |all: usize, column| match column {
            Column::Category(categories) => all.saturating_add(*categories),
            _ => all,
        });
        let rule = "must be at most 1,048,576 in all columns together: number them from 0 on";
        require(number <= MOST_CATEGORIES, "categories", number, rule)?;
        let (starts, all) = starts(&columns);
        let whole_probabilities = shares(&columns, &frame, data, numbers)?;
        let whole_spread = (0..d).map(|j| match columns[j] {
            Column::Count => summary.mean[j].max(f64::MIN_POSITIVE.sqrt()),
            _ => {
                let (low, high) = summary.range[j];
                let rounding = F::EPSILON * low.abs().max(high.abs());
                summary.variance[j]
                    .max(rounding * rounding)
                    .max(f64::MIN_POSITIVE.sqrt())
            }
        });
        let whole_spread: Vec<f64> = whole_spread.collect();
        let mut spread = Vec::with_capacity(k * d);
        let mut probabilities = Vec::with_capacity(k * all);
        for c in 0..k {
            let seed = seeds.row(c);
            spread.extend((0..d).map(|j| match columns[j] {
                Column::Count => 0.5 * (seed[j].to_f64().max(0.0) + whole_spread[j]),
                _ => whole_spread[j],
            }));
            let first = probabilities.len();
            probabilities.extend(whole_probabilities.iter().map(|p| 0.5 * p));
            for (j, column) in columns.iter().enumerate() {
                let Column::Category(categories) = *column else {
                    continue;
                };
                // The mean stands in for a value that a seed lacks.
                let nearest = seed[j].to_f64().round();
                match category(nearest, categories) {
                    Some(l) => probabilities[first + starts[j] + l] += 0.5,
                    None => probabilities[first + starts[j]..][..categories]
                        .iter_mut()
                        .for_each(|p| *p *= 2.0),
                }
            }
        }
        let mut theta = Theta {
            columns,
            frame,
            means: seeds,
            spread,
            probabilities,
            proportions: vec![1.0 / k as f64; k],
            whole_spread,
            whole_probabilities,
        };
        let before = before.map(|before| &before.theta);
        let before = before.filter(|from| from.columns == theta.columns && from.means.len() == k);
        if let Some(from) = before {
            theta.spread.clone_from(&from.spread);
            theta.probabilities.clone_from(&from.probabilities);
            theta.proportions.clone_from(&from.proportions);
        }
        Ok(Started {
            goes_on: before.is_some(),
            model: TableMixture::new(theta),
        })
    }
}

/// A fitted mixture of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMixture<F> {
    pub(super) theta: Theta<F>,
    /// (k, d): what costs need of each component and column. Half the logarithm of 2 pi v for a number; for a count the
    /// logarithm of its rate.
    logs: Vec<f64>,
    /// (k, all categories).
    log_probabilities: Vec<f64>,
}

/// The parameters, with those of the whole data for the prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "F: Float", deny_unknown_fields)]
pub(super) struct Theta<F> {
    columns: Vec<Column>,
    frame: Frame<F>,
    means: Centres<F>,
    /// (k, d): variances of numbers, rates of counts, variances of the numbers of categories.
    spread: Vec<f64>,
    /// (k, all categories).
    probabilities: Vec<f64>,
    proportions: Vec<f64>,
    /// (d) and (all categories), of all rows.
    whole_spread: Vec<f64>,
    whole_probabilities: Vec<f64>,
}

/// Where the categories of each column start among all, and how many there are.
fn starts(columns: &[Column]) -> (Vec<usize>, usize) {
    let mut all = 0;
    let starts = columns.iter().map(|column| {
        let start = all;
        if let Column::Category(categories) = column {
            all += categories;
        }
        start
    });
    (starts.collect(), all)
}

/// The place of a category among `categories`, if this number is one of them.
fn category(x: f64, categories: usize) -> Option<usize> {
    let is_one = x >= 0.0 && x < categories as f64 && x.fract() == 0.0;
    is_one.then_some(x as usize)
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
        let (k, d) = (self.means.len(), self.means.dim());
        let (_, all) = starts(&self.columns);
        let sized = self.columns.len() == d && self.frame.dim() == d;
        rule(sized, "columns", "must be as many as the means have")?;
        rule(self.frame.is_raw(), "frame", "must be that of raw numbers")?;
        all_positive("spread", &self.spread, k * d)?;
        all_positive("probabilities", &self.probabilities, k * all)?;
        all_finite("proportions", &self.proportions, k)?;
        let total: f64 = self.proportions.iter().sum();
        let sound = self.proportions.iter().all(|p| *p >= 0.0) && (total - 1.0).abs() < 1e-6;
        rule(sound, "proportions", "must be shares of 1")?;
        all_positive("spread of all rows", &self.whole_spread, d)?;
        all_positive("probabilities of all rows", &self.whole_probabilities, all)
    }
}

impl<F: Float> TableMixture<F> {
    pub(super) fn new(theta: Theta<F>) -> Self {
        let d = theta.columns.len();
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
            theta,
        }
    }

    /// The kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.theta.columns
    }

    /// The probabilities of the categories of a column (k, categories).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there is such a column, of categories.
    pub fn probabilities(&self, column: usize) -> Result<Array2<f64>> {
        let (starts, all) = starts(&self.theta.columns);
        let Some(Column::Category(categories)) = self.theta.columns.get(column) else {
            let rule = "must be one of categories";
            return Err(Error::parameter("column", column, rule));
        };
        let start = starts[column];
        Ok(Array2::from_shape_fn(
            (self.theta.means.len(), *categories),
            |(c, l)| self.theta.probabilities[c * all + start + l],
        ))
    }

    /// The mixture of these columns alone, in this order: the others are left out of the likelihood.
    ///
    /// # Errors
    /// [`Error::Empty`] without columns; [`Error::Parameter`] for one that there is not, or that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        let (theta, d) = (&self.theta, self.theta.columns.len());
        check_columns(columns, d)?;
        let (k, (starts, all)) = (theta.means.len(), starts(&theta.columns));
        let of_columns = |own: &[f64]| columns.iter().map(|j| own[*j]).collect::<Vec<_>>();
        let of_categories = |own: &[f64]| {
            let of = |j: &usize| match theta.columns[*j] {
                Column::Category(categories) => own[starts[*j]..][..categories].to_vec(),
                _ => Vec::new(),
            };
            columns.iter().flat_map(of).collect::<Vec<_>>()
        };
        let means = Array2::from_shape_fn((k, columns.len()), |(c, place)| {
            theta.means.row(c)[columns[place]]
        });
        let probabilities = theta.probabilities.chunks_exact(all.max(1));
        Ok(Self::new(Theta {
            columns: columns.iter().map(|j| theta.columns[*j]).collect(),
            frame: theta.frame.of_columns(columns),
            means: Centres::of_coordinates(means.view()),
            spread: theta.spread.chunks_exact(d).flat_map(of_columns).collect(),
            probabilities: probabilities.flat_map(of_categories).collect(),
            proportions: theta.proportions.clone(),
            whole_spread: of_columns(&theta.whole_spread),
            whole_probabilities: of_categories(&theta.whole_probabilities),
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
    pub(super) fn drawn(&self, labels: &Array1<u32>, rng: &mut Rng) -> Array2<F> {
        let (theta, d) = (&self.theta, self.theta.columns.len());
        let (starts, all) = starts(&theta.columns);
        Array2::from_shape_fn((labels.len(), d), |(n, j)| {
            let c = labels[n] as usize;
            let (spread, mean) = (theta.spread[c * d + j], theta.means.row(c)[j].to_f64());
            F::from_f64(match theta.columns[j] {
                Column::Number => mean + spread.sqrt() * rng.normal(),
                Column::Count => rng.poisson(spread),
                Column::Category(categories) => {
                    let own = &theta.probabilities[c * all + starts[j]..][..categories];
                    rng.proportional(own.iter().copied(), 1.0).unwrap_or(0) as f64
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
    pub(super) fn explained(&self, proportions: &[f64]) -> Array2<f64> {
        let (theta, (k, d)) = (
            &self.theta,
            (self.theta.means.len(), self.theta.columns.len()),
        );
        let (starts, all) = starts(&theta.columns);
        // The mean over components, by their proportions.
        let whole =
            |of: &dyn Fn(usize) -> f64| -> f64 { (0..k).map(|c| proportions[c] * of(c)).sum() };
        let mut apart = Array2::zeros((k, d));
        for (j, column) in theta.columns.iter().enumerate() {
            let mean = |c: usize| theta.means.row(c)[j].to_f64();
            let spread = |c: usize| theta.spread[c * d + j];
            let (centre, wide) = (whole(&mean), whole(&spread));
            let squared = |c: usize| (mean(c) - centre).powi(2);
            let variance = wide + whole(&squared);
            for c in 0..k {
                apart[[c, j]] = match *column {
                    // Values are all alike: variances are those that the prior left.
                    Column::Number if variance < 0.5 * theta.whole_spread[j] => 0.0,
                    Column::Number => numbers_apart(squared(c), spread(c), variance),
                    Column::Count => spread(c) * (spread(c) / wide).ln() - spread(c) + wide,
                    Column::Category(categories) => {
                        let each = (starts[j]..starts[j] + categories).map(|l| {
                            let share = |c: usize| theta.probabilities[c * all + l];
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

/// The divergence, in nats, of a Gaussian of this variance from one whose mean is so far away, squared, and whose variance is
/// `whole`.
pub(super) fn numbers_apart(squared: f64, variance: f64, whole: f64) -> f64 {
    let ratio = variance / whole;
    0.5 * (squared / whole + ratio - 1.0 - ratio.ln())
}

impl<F: Float> OwnCost<F> for TableMixture<F> {
    fn components(&self) -> usize {
        self.theta.means.len()
    }

    fn are_of_known(&self) -> bool {
        true
    }

    /// -ln pi_c, and for each known column -ln p(y_j | c). A category that is none of those there are is as unlikely under all.
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        const UNKNOWN: f64 = 27.6; // one in 10^12
        let (theta, d) = (&self.theta, self.theta.columns.len());
        let (starts, all) = starts(&theta.columns);
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
                    let factorial = Gamma::ln_gamma(x + 1.0).0;
                    own.for_each(|(c, cost)| {
                        let place = c * d + j;
                        *cost += theta.spread[place] - x * self.logs[place] + factorial;
                    });
                }
                Column::Category(categories) => match category(x, categories) {
                    Some(l) => own.for_each(|(c, cost)| {
                        *cost -= self.log_probabilities[c * all + starts[j] + l];
                    }),
                    None => own.for_each(|(_, cost)| *cost += UNKNOWN),
                },
            }
        });
        out.clear();
        out.extend(costs.into_iter().map(F::from_f64));
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
        let (theta, d) = (&self.theta, self.theta.columns.len());
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
        PRIOR_ROWS * (spreads.sum::<f64>() + categories.sum::<f64>())
    }

    fn free_parameters(&self) -> Option<usize> {
        let each = self.theta.columns.iter().map(|column| match column {
            Column::Number => 2,
            Column::Count => 1,
            Column::Category(categories) => categories.saturating_sub(1),
        });
        let k = self.theta.means.len();
        Some(k * each.sum::<usize>() + k - 1)
    }

    /// The variance of a count is its rate, that of categories the variance of their numbers.
    fn variances(&self) -> Array2<f64> {
        let shape = (self.theta.means.len(), self.theta.columns.len());
        Array2::from_shape_vec(shape, self.theta.spread.clone()).expect("k x d numbers")
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.theta.proportions, n, &mut rng)?;
        Ok((self.drawn(&labels, &mut rng), labels))
    }

    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let (k, (_, all)) = (self.theta.means.len(), starts(&self.theta.columns));
        let probabilities = Array2::from_shape_vec((k, all), self.theta.probabilities.clone());
        vec![
            ("variances", self.variances().into_dyn()),
            (
                "probabilities",
                probabilities.expect("k x categories").into_dyn(),
            ),
            ("proportions", self.proportions().into_dyn()),
        ]
    }
}

impl Stage for Table {}

impl<F: Float> MStep<F> for Table {
    type Model = TableMixture<F>;

    /// Counts and categories have an origin and a unit of their own.
    fn needs(&self) -> Needs {
        Needs {
            coordinates: Coordinates::Raw,
            ..Needs::default()
        }
    }

    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let numbers: Vec<usize> = (0..seeds.dim()).collect();
        self.start_of(seeds, frame, data, &numbers, before)
    }

    /// Sums of its own for each component: the mass, the first and the second moment of each column about its mean, and the masses of
    /// all categories. The sums of other families are made for numbers near 0.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let (k, d) = (model.theta.means.len(), model.theta.columns.len());
        let each = 3 * d + starts(&model.theta.columns).1;
        Moments::zeros(k, d, SecondMoments::Total).with_own(k * each)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Moments,
    ) {
        statistics.add(rows, block, &model.theta.means);
        let columns = &model.theta.columns;
        let ((starts, all), d) = (starts(columns), columns.len());
        let own = statistics.own_mut();
        for i in 0..rows.len() {
            rows.each_known(i, |j, x| {
                let x = x.to_f64();
                for (c, q) in block.members(i) {
                    let (c, share) = (c as usize, rows.weight(i) * q);
                    let own = &mut own[c * (3 * d + all)..][..3 * d + all];
                    let apart = x - model.theta.means.row(c)[j].to_f64();
                    own[j] += share;
                    own[d + j] += share * apart;
                    own[2 * d + j] += share * apart * apart;
                    if let Column::Category(categories) = columns[j]
                        && let Some(l) = category(x, categories)
                    {
                        own[3 * d + starts[j] + l] += share;
                    }
                }
            });
        }
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        _: bool,
        _: Option<&Cancel>,
    ) -> Result<()> {
        let (mut theta, columns) = (model.theta.clone(), &model.theta.columns);
        let ((starts, all), d) = (starts(columns), columns.len());
        let Theta {
            means,
            spread,
            probabilities,
            ..
        } = &mut theta;
        let (whole, whole_shares) = (&model.theta.whole_spread, &model.theta.whole_probabilities);
        means.update(|c, mean| {
            let own = &sums.own()[c * (3 * d + all)..][..3 * d + all];
            for j in (0..d).filter(|j| own[*j] > 0.0) {
                let (mass, old) = (own[j], mean[j].to_f64());
                mean[j] = F::from_f64(old + own[d + j] / mass);
                // About the mean as it was rounded.
                let step = mean[j].to_f64() - old;
                let squared = own[2 * d + j] - step * (2.0 * own[d + j] - mass * step);
                let (squared, rows) = (squared.max(0.0), mass + PRIOR_ROWS);
                spread[c * d + j] = match columns[j] {
                    Column::Number => (squared + PRIOR_ROWS * whole[j]) / rows,
                    Column::Count => {
                        let total = mass * old + own[d + j];
                        (total.max(0.0) + PRIOR_ROWS * whole[j]) / rows
                    }
                    Column::Category(_) => (squared / mass).max(f64::MIN_POSITIVE),
                };
                if let Column::Category(categories) = columns[j] {
                    for l in starts[j]..starts[j] + categories {
                        let own = own[3 * d + l] + PRIOR_ROWS * whole_shares[l];
                        probabilities[c * all + l] = own / rows;
                    }
                }
            }
        });
        theta.proportions = sums.proportions();
        *model = TableMixture::new(theta);
        Ok(())
    }
}

/// The shares of all categories in the data. A number that is no count, or no category, is an error, which gives its column this
/// number.
fn shares<F: Float>(
    columns: &[Column],
    frame: &Frame<F>,
    data: &dyn Data<F>,
    numbers: &[usize],
) -> Result<Vec<f64>> {
    let ((starts, all), mut rows) = (starts(columns), Rows::default());
    let (mut shares, mut totals, mut wrong) = (vec![0.0; all], vec![0.0; columns.len()], None);
    for first in (0..data.len()).step_by(BLOCK) {
        data.load(first..data.len().min(first + BLOCK), frame, &mut rows)?;
        for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
            rows.each_known(i, |j, x| {
                let x = x.to_f64();
                let kind = match columns[j] {
                    Column::Number => return,
                    Column::Count if x >= 0.0 && x.fract() == 0.0 => return,
                    Column::Count => "a count: 0, 1, 2 and so on",
                    Column::Category(categories) => match category(x, categories) {
                        Some(l) => {
                            shares[starts[j] + l] += rows.weight(i);
                            totals[j] += rows.weight(i);
                            return;
                        }
                        None => "one of the categories of its column, from 0 on",
                    },
                };
                wrong.get_or_insert(Error::NotOfKind {
                    row: first + i,
                    column: numbers[j],
                    value: x,
                    kind,
                });
            });
        }
        if let Some(error) = wrong {
            return Err(error);
        }
    }
    for (j, column) in columns.iter().enumerate() {
        if let Column::Category(categories) = *column {
            // One row more, of all categories alike: none is impossible.
            let own = &mut shares[starts[j]..starts[j] + categories];
            let (total, each) = (totals[j] + 1.0, 1.0 / categories as f64);
            own.iter_mut()
                .for_each(|share| *share = (*share + each) / total);
        }
    }
    Ok(shares)
}
