//! Columns of different kinds: numbers, counts and categories, independent within a component.

use super::columns::{check_columns, other_columns, shares_under};
use super::proportions::components;
use super::variances::{RESOLVED, ROUNDING};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, require};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::gamma::log_gamma;
use crate::base::parallel::BLOCK;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::costs::{Cost, OwnCost};
use crate::data::Data;
use crate::io::{all_finite, all_positive, rule};
use crate::m_step::{Coordinates, MStep, Moments, Needs, SecondMoments, Started};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD, ArrayView1};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::iter::repeat;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Column {
    /// Any number: a Gaussian with a mean and a variance.
    Number,
    /// A whole number from 0 to $2^{53}$: a Poisson distribution with a rate.
    Count,
    /// A category, as a code: a whole number from 0 on, below this number unless that is 0, and at most $2^{53}$ ($2^{24}$ in `f32`).
    /// Codes are labels, such as years or ZIP codes: those that occur have a probability each, and any other codes give the same fit.
    /// In a fitted model the number is 0.
    Category(usize),
}

/// Components for tables of mixed columns ([E57](crate::equations#e57)): given its component, the columns of a row are independent.
///
/// With categories alone it is latent class analysis, with counts alone a Poisson mixture, and with numbers alone a Gaussian
/// mixture with diagonal covariances. Missing values are left out of the likelihood, as everywhere.
///
/// Seeds are rows that are far apart in the numbers and counts as they are, which is not how components differ: so
/// [`algorithms::table`](crate::algorithms::table) fits from several.
///
/// Parameters are those of maximum likelihood, and variances have a floor ([E20](crate::equations#e20)); with
/// [`prior_rows`](Self::prior_rows) each component has some of the whole data in advance.
///
/// A row with a number that is none of its column is an error, in a fit and of a model. A code that no row of the fit had is as
/// unlikely under all components: one in $10^{12}$.
///
/// ```
/// use coremix::families::{Column, Table};
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
/// assert_eq!(model.codes(2)?, [0.0, 1.0, 2.0]);
/// assert!(of_colour[[labels[3] as usize, 0]] > 0.5);
/// let apart = model.explain(); // (components, columns), in nats: the age tells them apart most
/// assert!(apart[[0, 0]] > apart[[0, 2]]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) prior_rows: f64,
}

/// Most categories of all columns together.
const MOST_CATEGORIES: usize = 1 << 20;

/// The least probability, rate and variance: its logarithm is finite.
const LEAST: f64 = f64::MIN_POSITIVE;

impl Table {
    /// Columns of these kinds, one for each column of the data; if there are none, all are numbers.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        let prior_rows = 0.0;
        Self {
            columns,
            prior_rows,
        }
    }

    /// With this many rows in advance for each component and column: with the variance, the mean and the shares of the whole data, and
    /// the mean weight of its rows. It is a Dirichlet, gamma or inverse gamma prior, and part of the free energy. Default: 0.
    ///
    /// Half a row is enough to keep probabilities from 0, and variances of few rows from their floor.
    #[must_use]
    pub fn prior_rows(self, rows: f64) -> Self {
        let prior_rows = rows;
        Self { prior_rows, ..self }
    }

    /// How many categories occur in all columns of this data: each component has as many probabilities.
    ///
    /// # Errors
    /// Rows that are no such table, as in a fit.
    pub fn categories_of<F: Float>(&self, data: &dyn Data<F>) -> Result<usize> {
        let numbers: Vec<usize> = (0..data.dim()).collect();
        let raw = Frame::raw(data.summary())?;
        let (_, shares) = categories(&self.kinds(data.dim())?, &raw, data, &numbers)?;
        Ok(shares.len())
    }

    /// The kinds of `d` columns.
    fn kinds(&self, d: usize) -> Result<Vec<Column>> {
        let rule = "must be as many as there are columns";
        let kinds = self.columns.len();
        require(kinds == d || kinds == 0, "kinds of columns", kinds, rule)?;
        let columns = self.columns.iter().chain(repeat(&Column::Number));
        Ok(columns.take(d).copied().collect())
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
        let k = seeds.len();
        let d = seeds.dim();
        let kinds = self.kinds(d)?;
        let summary = data.summary();
        let (codes, whole_probabilities) = categories(&kinds, &frame, data, numbers)?;
        let open = |kind: &Column| match kind {
            Column::Category(_) => Column::Category(0),
            other => *other,
        };
        let columns: Vec<Column> = kinds.iter().map(open).collect();
        let (starts, all) = starts(&codes);
        let whole_spread = (0..d).map(|j| match columns[j] {
            Column::Category(_) => 1.0,
            Column::Count => summary.mean[j].max(LEAST.sqrt()),
            Column::Number => {
                let (low, high) = summary.range[j];
                let least = least_variance::<F>(low.abs().max(high.abs()), 0.0);
                summary.variance[j].max(least)
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
            probabilities.extend_from_slice(&whole_probabilities);
            for (j, codes) in codes.iter().enumerate() {
                // The mean stands in for a value that a seed lacks: as if it were no category.
                if let Some(l) = place(codes, seed[j].to_f64()) {
                    let own = &mut probabilities[first + starts[j]..][..codes.len()];
                    own.iter_mut().for_each(|p| *p *= 0.5);
                    own[l] += 0.5;
                }
            }
        }
        let mut theta = Theta {
            columns,
            codes,
            frame,
            means: seeds,
            spread,
            probabilities,
            proportions: vec![1.0 / k as f64; k],
            whole_spread,
            whole_probabilities,
            weight: summary.total_weight,
            prior: self.prior_rows / summary.rows as f64,
        };
        let before = before.map(|before| &before.theta);
        let alike = |from: &&Theta<F>| from.columns == theta.columns && from.codes == theta.codes;
        let before = before.filter(alike).filter(|from| from.means.len() == k);
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

/// The least variance of numbers about this mean, in a column of the variance `whole` ([E20](crate::equations#e20)).
fn least_variance<F: Float>(mean: f64, whole: f64) -> f64 {
    let resolved = (F::EPSILON.max(RESOLVED) * mean).powi(2);
    resolved.max(RESOLVED.powi(2) * whole).max(LEAST.sqrt())
}

/// A fitted mixture of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMixture<F> {
    pub(super) theta: Theta<F>,
    /// (d): where the categories of each column start among all.
    starts: Vec<usize>,
    /// (k, d): what costs need of each component and column. Half the logarithm of 2 pi v for a number; for a count the
    /// logarithm of its rate.
    logs: Vec<f64>,
    /// (k, all categories).
    log_probabilities: Vec<f64>,
}

/// The parameters, with those of the whole data for the prior.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(super) struct Theta<F> {
    columns: Vec<Column>,
    /// The codes of the categories of each column (d), in ascending order; none of other columns.
    codes: Vec<Vec<f64>>,
    frame: Frame<F>,
    means: Centres<F>,
    /// (k, d): variances of numbers, rates of counts; 1 for categories.
    spread: Vec<f64>,
    /// (k, all categories).
    probabilities: Vec<f64>,
    proportions: Vec<f64>,
    /// (d) and (all categories), of all rows.
    whole_spread: Vec<f64>,
    whole_probabilities: Vec<f64>,
    /// The total weight of the rows, and the prior as a share of it: sums are shares as well, so no unit of weights counts.
    weight: f64,
    prior: f64,
}

/// Where the categories of each column start among all, and how many there are.
fn starts(codes: &[Vec<f64>]) -> (Vec<usize>, usize) {
    let mut all = 0;
    let starts = codes.iter().map(|codes| {
        all += codes.len();
        all - codes.len()
    });
    (starts.collect(), all)
}

/// The place of a code among these, which are in ascending order. Most begin at the first one without gaps.
fn place(codes: &[f64], x: f64) -> Option<usize> {
    let at = (x - codes.first()?) as usize;
    match codes.get(at) {
        Some(code) if *code == x => Some(at),
        _ => codes.binary_search_by(|code| code.total_cmp(&x)).ok(),
    }
}

/// All that the column takes, if this number is none of it. Codes that the number type rounds would be one.
fn refused<F: Float>(kind: Column, x: f64) -> Option<&'static str> {
    const MOST: f64 = (1u64 << 53) as f64;
    let (most, rule) = match kind {
        Column::Number => return None,
        Column::Count => (MOST, "a count: 0, 1, 2 and so on, up to 2^53"),
        Column::Category(below) => {
            let most = MOST.min(2.0 / F::EPSILON);
            let most = if below > 0 {
                most.min(below as f64 - 1.0)
            } else {
                most
            };
            let rule = "one of the categories of its column: whole numbers from 0 on";
            (most, rule)
        }
    };
    let is_one = (0.0..=most).contains(&x) && x.fract() == 0.0;
    (!is_one).then_some(rule)
}

/// An error for the first number that is none of its column, in rows that have a weight: it gives row and column these numbers.
fn check<F: Float>(
    kinds: &[Column],
    rows: &Rows<F>,
    first: usize,
    numbers: impl Fn(usize) -> usize,
) -> Result<()> {
    let mut wrong = None;
    for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
        rows.each_known(i, |j, x| {
            let value = x.to_f64();
            if let Some(kind) = refused::<F>(kinds[j], value) {
                let row = first + i;
                let column = numbers(j);
                wrong.get_or_insert(Error::NotOfKind {
                    row,
                    column,
                    value,
                    kind,
                });
            }
        });
    }
    wrong.map_or(Ok(()), Err)
}

/// The codes of the categories of each column that occur in the data, in ascending order, and their shares, one column after the other.
/// A number that is none of its kind is an error, which gives its column this number.
fn categories<F: Float>(
    kinds: &[Column],
    frame: &Frame<F>,
    data: &dyn Data<F>,
    numbers: &[usize],
) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
    let mut weights = vec![BTreeMap::<u64, f64>::new(); kinds.len()];
    let mut rows = Rows::default();
    for first in (0..data.len()).step_by(BLOCK) {
        data.load(first..data.len().min(first + BLOCK), frame, &mut rows)?;
        check(kinds, &rows, first, |j| numbers[j])?;
        for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
            rows.each_known(i, |j, x| {
                if let Column::Category(_) = kinds[j] {
                    *weights[j].entry(x.to_f64() as u64).or_insert(0.0) += rows.weight(i);
                }
            });
        }
        let number = weights.iter().map(BTreeMap::len).sum::<usize>();
        let rule =
            "must be at most 1,048,576 in all columns together: is one of them an identifier?";
        require(number <= MOST_CATEGORIES, "categories", number, rule)?;
    }
    let mut codes = Vec::new();
    let mut shares = Vec::new();
    for weights in weights {
        let total: f64 = weights.values().sum();
        shares.extend(weights.values().map(|weight| (weight / total).max(LEAST)));
        codes.push(weights.into_keys().map(|code| code as f64).collect());
    }
    Ok((codes, shares))
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
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
    pub(super) fn new(mut theta: Theta<F>) -> Self {
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
    pub(super) fn check(
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
    pub(super) fn drawn(&self, labels: &Array1<u32>, rng: &mut Rng) -> Array2<F> {
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
    pub(super) fn explained(&self, proportions: &[f64]) -> Array2<f64> {
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

/// The divergence, in nats, of a Gaussian of this variance from one whose mean is so far away, squared, and whose variance is
/// `whole`.
pub(super) fn numbers_apart(squared: f64, variance: f64, whole: f64) -> f64 {
    let ratio = variance / whole;
    0.5 * (squared / whole + ratio - 1.0 - ratio.ln())
}

/// The place of the largest number, the first of several.
fn likeliest(probabilities: impl Iterator<Item = f64>) -> Option<usize> {
    let larger = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    probabilities.enumerate().reduce(larger).map(|(l, _)| l)
}

/// The logarithm of y! and, for large y, that of y^y e^-y less: what costs of a count have in common.
fn constant_of_count(x: f64) -> f64 {
    if x <= LARGE_COUNT {
        log_gamma(x + 1.0)
    } else {
        0.5 * (TAU * x).ln() + 1.0 / (12.0 * x)
    }
}

/// Terms of larger counts have no digits left where they cancel.
const LARGE_COUNT: f64 = 65_536.0;

/// -ln p(y) of a count, less its constant.
fn cost_of_count(x: f64, rate: f64, log_rate: f64) -> f64 {
    let apart = (x - rate) / rate;
    if x <= LARGE_COUNT {
        rate - x * log_rate
    } else if apart.abs() < 0.5 {
        rate * ((1.0 + apart) * apart.ln_1p() - apart)
    } else {
        x * (x.ln() - log_rate) + rate - x
    }
}

impl<F: Float> OwnCost<F> for TableMixture<F> {
    fn components(&self) -> usize {
        self.theta.means.len()
    }

    fn are_of_known(&self) -> bool {
        true
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

impl Stage for Table {
    fn check(&self, _clusters: usize) -> Result<()> {
        let sound = (0.0..=1e9).contains(&self.prior_rows);
        let rule = "must be from 0 to 1e9";
        require(sound, "prior rows", self.prior_rows, rule)
    }
}

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

    /// Sums of its own for each component, of shares of the whole weight: the mass, the first and the second moment of each column, and
    /// the masses of all categories. Moments of a number are about its mean, in deviations of the whole data.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let k = model.theta.means.len();
        let d = model.theta.columns.len();
        let each = 3 * d + model.theta.whole_probabilities.len();
        Moments::zeros(k, d, SecondMoments::Total).with_own(k * each)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Moments,
    ) {
        let theta = &model.theta;
        let d = model.theta.columns.len();
        let each = 3 * d + theta.whole_probabilities.len();
        for i in 0..rows.len() {
            for (c, q) in block.members(i) {
                statistics.mass[c as usize] += rows.weight(i) * q;
            }
            let own = statistics.own_mut();
            let weight = rows.weight(i) / theta.weight;
            rows.each_known(i, |j, x| {
                let x = x.to_f64();
                let kind = theta.columns[j];
                let category = place(&theta.codes[j], x).map(|l| 3 * d + model.starts[j] + l);
                let deviation = theta.whole_spread[j].sqrt();
                for (c, q) in block.members(i) {
                    let c = c as usize;
                    let share = weight * q;
                    let own = &mut own[c * each..][..each];
                    own[j] += share;
                    match (kind, category) {
                        (Column::Number, _) => {
                            let apart = (x - theta.means.row(c)[j].to_f64()) / deviation;
                            own[d + j] += share * apart;
                            own[2 * d + j] += share * apart * apart;
                        }
                        (_, Some(place)) => own[place] += share,
                        _ => own[d + j] += share * x,
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
        let mut theta = model.theta.clone();
        let d = model.theta.columns.len();
        let prior = theta.prior;
        let all = theta.whole_probabilities.len();
        theta.means.update(|c, mean| {
            let own = &sums.own()[c * (3 * d + all)..][..3 * d + all];
            for j in (0..d).filter(|j| own[*j] > 0.0) {
                let mass = own[j];
                let whole = theta.whole_spread[j];
                let spread = &mut theta.spread[c * d + j];
                match theta.columns[j] {
                    Column::Number => {
                        let old = mean[j].to_f64();
                        let deviation = whole.sqrt();
                        mean[j] = F::from_f64(old + own[d + j] / mass * deviation);
                        // About the mean as it was rounded.
                        let step = (mean[j].to_f64() - old) / deviation;
                        let squared = own[2 * d + j] - step * (2.0 * own[d + j] - mass * step);
                        let variance = whole * ((squared.max(0.0) + prior) / (mass + prior));
                        let rounding = whole * (ROUNDING * own[2 * d + j] / mass);
                        let least = least_variance::<F>(mean[j].to_f64(), whole).max(rounding);
                        // The variance there is must be among those allowed.
                        *spread = variance.max(least.min(*spread));
                    }
                    Column::Count => {
                        *spread = ((own[d + j] + prior * whole) / (mass + prior)).max(LEAST);
                        mean[j] = F::from_f64(*spread);
                    }
                    Column::Category(_) => {
                        for l in model.starts[j]..model.starts[j] + theta.codes[j].len() {
                            let own = own[3 * d + l] + prior * theta.whole_probabilities[l];
                            theta.probabilities[c * all + l] = (own / (mass + prior)).max(LEAST);
                        }
                    }
                }
            }
        });
        theta.proportions = sums.proportions();
        *model = TableMixture::new(theta);
        Ok(())
    }
}
