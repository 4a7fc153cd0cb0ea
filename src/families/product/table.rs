//! Tables: which distribution each column has.

use super::column::{Column, codes};
use super::law::Alone;
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::Data;
use ndarray::Array2;
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
/// A fit is that of a [`Product`](crate::families::Product) whose blocks are the columns.
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

    /// The kinds of `d` columns.
    fn kinds(&self, d: usize) -> Result<Vec<Column>> {
        let rule = "must be as many as there are columns";
        let kinds = self.columns.len();
        require(kinds == d || kinds == 0, "kinds of columns", kinds, rule)?;
        let columns = self.columns.iter().chain(repeat(&Column::Number));
        Ok(columns.take(d).copied().collect())
    }

    /// Components of each column alone at seeds (k, columns). Errors give columns these numbers.
    pub(super) fn start<F: Float>(
        &self,
        seeds: &Array2<F>,
        data: &dyn Data<F>,
        numbers: &[usize],
    ) -> Result<Vec<Alone>> {
        let kinds = self.kinds(numbers.len())?;
        let categories = codes(&kinds, data, numbers)?;
        let columns = kinds.into_iter().zip(categories).zip(seeds.columns());
        let start = |(j, ((kind, codes), seeds))| {
            Alone::at(kind, seeds, data.summary(), j, codes, self.prior_rows)
        };
        Ok(columns.enumerate().map(start).collect())
    }
}

impl Stage for Table {
    fn check(&self, _clusters: usize) -> Result<()> {
        let sound = (0.0..=1e9).contains(&self.prior_rows);
        let rule = "must be from 0 to 1e9";
        require(sound, "prior rows", self.prior_rows, rule)
    }
}
