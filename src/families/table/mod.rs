//! Columns of different kinds: numbers, counts and categories, independent within a component.

mod column;
mod model;

pub use column::Column;
pub use model::TableMixture;

pub(super) use column::numbers_apart;
pub(super) use model::Theta;

use crate::base::cancel::Cancel;
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::Data;
use crate::families::variances::ROUNDING;
use crate::m_step::{Coordinates, MStep, Moments, Needs, Started};
use crate::model::block::Block;
use crate::rows::{Centres, Frame, Rows};
use column::{LEAST, categories, least_variance, place, starts};
use std::iter::repeat;

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
        Moments::totals(k, d).with_own(k * each)
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
