//! A mixture of products: its parts, the costs of rows, and its answers.

use super::column::{Column, check};
use super::law::Alone;
use crate::base::cached::Cached;
use crate::base::error::{Error, Result};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::costs::{Cost, OwnCost, penalised};
use crate::families::columns::{check_part, other_columns, shares_under};
use crate::families::gaussian::family::Gaussian;
use crate::families::gaussian::mixture::GaussianMixture;
use crate::families::proportions::{Mixing, Proportions, components};
use crate::io::rule;
use crate::model::Mixture;
use crate::model::clusters::explain_column;
use crate::model::posterior::LogJoint;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD, ArrayView1, Axis, concatenate};
use std::cell::RefCell;
use std::ops::Range;

/// A fitted mixture of products, or of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductMixture<F> {
    pub(in crate::families) theta: Theta<F>,
    /// (d).
    kinds: Vec<Column>,
    /// The means of all columns, in the data's own numbers.
    centres: Centres<F>,
    /// (k): what costs are besides those of the parts.
    added: Vec<f64>,
    /// Without ridges, made when densities are asked for.
    plain: Cached<Box<Self>>,
}

/// The parameters.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Theta<F> {
    pub(super) frame: Frame<F>,
    pub(super) blocks: Vec<Numbers<F>>,
    /// (d): the columns that are in no block.
    pub(super) alone: Vec<Option<Alone>>,
    pub(super) proportions: Proportions,
}

/// A block of numbers. Mixing proportions of its own do not count.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(super) struct Numbers<F> {
    pub(super) columns: Vec<usize>,
    /// Never a product itself, so that none is deeper than a file may be read.
    #[cfg_attr(
        feature = "files",
        serde(with = "crate::families::gaussian::mixture::alone")
    )]
    pub(super) model: GaussianMixture<F>,
}

impl<F: Float> Numbers<F> {
    /// The family. The model has all that an update depends on.
    pub(super) fn family(&self) -> Gaussian {
        Gaussian::new(self.model.covariance_kind()).equal_proportions()
    }

    /// These columns of some rows.
    pub(super) fn rows(&self, rows: &Rows<F>, some: Range<usize>) -> Rows<F> {
        rows.of_columns(some, &self.columns, self.model.frame())
    }

    /// The log-density of cost 0 of a row that knows all columns.
    fn constant(&self) -> f64 {
        self.columns.len() as f64 * self.model.log_joint().gamma
    }
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(in crate::families) fn check(&self) -> std::result::Result<(), FileFault> {
        let k = self.proportions.values.len();
        let d = self.frame.dim();
        self.proportions.check_stored(k)?;
        rule(self.frame.is_raw(), "frame", "must be that of raw numbers")?;
        let in_blocks = self.blocks.iter().flat_map(|block| &block.columns);
        let alone = (0..self.alone.len()).filter(|j| self.alone[*j].is_some());
        let mut columns: Vec<usize> = in_blocks.copied().chain(alone).collect();
        columns.sort_unstable();
        let once = columns.into_iter().eq(0..d) && self.alone.len() == d;
        rule(once, "columns", "must be alone, or in one block each")?;
        let fits = |block: &Numbers<F>| {
            let columns = block.columns.len();
            block.model.components() == k && block.model.frame().dim() == columns
        };
        let say = "must have all components, and their columns";
        rule(self.blocks.iter().all(fits), "blocks", say)?;
        self.alone
            .iter()
            .flatten()
            .try_for_each(|column| column.check(k))
    }
}

impl<F: Float> ProductMixture<F> {
    pub(in crate::families) fn new(theta: Theta<F>) -> Self {
        let kind =
            |column: &Option<Alone>| column.as_ref().map_or(Column::Number, |column| column.kind);
        let mut new = Self {
            kinds: theta.alone.iter().map(kind).collect(),
            centres: Centres::with_capacity(0, theta.frame.dim()),
            added: Vec::new(),
            plain: Cached::default(),
            theta,
        };
        new.renew();
        new
    }

    /// Makes what follows from the parameters.
    pub(super) fn renew(&mut self) {
        self.added = self.proportions().mapv(|p| -p.ln()).to_vec();
        let means = self.by_column(self.added.len(), Mixture::means, Alone::means);
        self.centres = Centres::of_coordinates(means.view());
        self.plain = Cached::default();
    }

    /// Numbers (n, d) of blocks, and of columns alone.
    fn by_column<T: Copy + Default>(
        &self,
        n: usize,
        of_block: impl Fn(&GaussianMixture<F>) -> Array2<T>,
        of_alone: impl Fn(&Alone) -> Vec<T>,
    ) -> Array2<T> {
        let mut values = Array2::from_elem((n, self.theta.frame.dim()), T::default());
        for (columns, model) in self.gaussians() {
            for (numbers, j) in of_block(model).columns().into_iter().zip(columns) {
                values.column_mut(*j).assign(&numbers);
            }
        }
        for (mut column, alone) in values.columns_mut().into_iter().zip(&self.theta.alone) {
            if let Some(alone) = alone {
                column.assign(&ArrayView1::from(&of_alone(alone)));
            }
        }
        values
    }

    /// The blocks of numbers that have covariances: their columns, and the components of these alone.
    pub fn gaussians(&self) -> impl Iterator<Item = (&[usize], &GaussianMixture<F>)> {
        let blocks = self.theta.blocks.iter();
        blocks.map(|block| (&block.columns[..], &block.model))
    }

    fn alone(&self) -> impl Iterator<Item = &Alone> {
        self.theta.alone.iter().flatten()
    }

    /// The kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.kinds
    }

    /// The codes of the categories of a column, in ascending order: those that occurred in the data of the fit.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there is such a column, of categories.
    pub fn codes(&self, column: usize) -> Result<&[f64]> {
        self.categories(column)
            .map(|categories| &categories.codes[..])
    }

    /// The probabilities of the categories of a column (k, categories), in the order of their [`codes`](Self::codes).
    ///
    /// # Errors
    /// As `codes`.
    pub fn probabilities(&self, column: usize) -> Result<Array2<f64>> {
        self.categories(column).map(Alone::probabilities)
    }

    fn categories(&self, column: usize) -> Result<&Alone> {
        let coded = |alone: &&Alone| alone.kind.categories().is_some();
        let alone = self.theta.alone.get(column).and_then(Option::as_ref);
        let rule = "must be one of categories";
        alone
            .filter(coded)
            .ok_or_else(|| Error::parameter("column", column, rule))
    }

    /// The mixture of these columns alone, in this order: the density of the others is integrated out.
    ///
    /// # Errors
    /// [`Error::Empty`](crate::Error::Empty) without columns; [`Error::Parameter`](crate::Error::Parameter) for one that there is not, or
    /// that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        check_part(columns, &self.theta.frame)?;
        self.of_columns(columns, &[], self.theta.proportions.clone())
    }

    /// The mixture of the other columns, in their order, where these `columns` have these `values`.
    ///
    /// # Errors
    /// As [`GaussianMixture::condition`].
    pub fn condition(&self, columns: &[usize], values: &[f64]) -> Result<Self> {
        let others = other_columns(columns, values, &self.theta.frame)?;
        let shares = shares_under(&self.marginal(columns)?, values)?;
        let known = columns.iter().copied().zip(values.iter().copied());
        let known: Vec<_> = known.collect();
        self.of_columns(&others, &known, Proportions::learned(shares.into_iter()))
    }

    /// The mixture of these columns, in this order, given the values of others.
    fn of_columns(
        &self,
        columns: &[usize],
        known: &[(usize, f64)],
        proportions: Proportions,
    ) -> Result<Self> {
        let mut blocks = Vec::new();
        for block in &self.theta.blocks {
            let mut kept = Vec::new();
            let mut places = Vec::new();
            let mut given = (Vec::new(), Vec::new());
            for (place, column) in block.columns.iter().enumerate() {
                if let Some(to) = columns.iter().position(|wanted| wanted == column) {
                    kept.push(place);
                    places.push(to);
                } else if let Some((_, x)) = known.iter().find(|(given, _)| given == column) {
                    given.0.push(place);
                    given.1.push(*x);
                }
            }
            if kept.is_empty() {
                continue;
            }
            let mut model = if given.0.is_empty() {
                block.model.marginal(&kept)?
            } else {
                block.model.condition(&given.0, &given.1)?
            };
            let common = &mut model.theta.common;
            common.proportions = Proportions::equal(common.k(), Mixing::Equal);
            model.renew(None)?;
            let columns = places;
            blocks.push(Numbers { columns, model });
        }
        let alone = columns.iter().map(|j| self.theta.alone[*j].clone());
        Ok(Self::new(Theta {
            frame: self.theta.frame.of_columns(columns),
            blocks,
            alone: alone.collect(),
            proportions,
        }))
    }

    /// Costs of some rows under the components `ids`: $-\ln p(c, y)$, of blocks without constants.
    fn costs(&self, rows: &Rows<F>, some: Range<usize>, ids: &[u32], out: &mut Vec<F>) {
        let mut block_costs = Vec::new();
        let width = ids.len().max(1);
        let mut totals = vec![0.0; some.len() * ids.len()];
        for (i, totals) in some.clone().zip(totals.chunks_exact_mut(width)) {
            rows.each_known(i, |j, x| {
                if let Some(alone) = &self.theta.alone[j] {
                    alone.kind.law().add_costs(alone, x.to_f64(), ids, totals);
                }
            });
        }
        for block in &self.theta.blocks {
            let rows = block.rows(rows, some.clone());
            let cost = block.model.cost();
            let log_joint = block.model.log_joint();
            let whole = log_joint.alpha + block.constant();
            for (i, totals) in totals.chunks_exact_mut(width).enumerate() {
                cost.some(&rows, i, ids, &mut block_costs);
                // Nothing, where nothing is missing.
                let missing = whole - log_joint.of_row(&rows, i);
                let pairs = totals.iter_mut().zip(&block_costs);
                pairs.for_each(|(total, cost)| *total += log_joint.beta * cost.to_f64() + missing);
            }
        }
        out.clear();
        for totals in totals.chunks_exact(width) {
            let pairs = totals.iter().zip(ids);
            out.extend(pairs.map(|(cost, c)| penalised::<F>(*cost, self.added[*c as usize])));
        }
    }
}

impl<F: Float> OwnCost<F> for ProductMixture<F> {
    fn components(&self) -> usize {
        self.added.len()
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        self.costs(rows, i..i + 1, ids, out);
    }

    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) -> bool {
        let ids: Vec<u32> = (0..self.added.len() as u32).collect();
        self.costs(rows, 0..rows.len(), &ids, out);
        true
    }

    fn completed(&self, rows: &Rows<F>, i: usize, c: usize) -> Option<Vec<f64>> {
        self.theta.blocks.first()?;
        let mean = self.centres.row(c)[..rows.dim].iter();
        let mut values: Vec<f64> = mean.map(|m| m.to_f64()).collect();
        for block in &self.theta.blocks {
            let model = &block.model;
            let block_rows = block.rows(rows, i..i + 1);
            let completed = model
                .cost()
                .completed(&block_rows, 0, c)
                .unwrap_or_default();
            for (place, z) in completed.into_iter().enumerate() {
                values[block.columns[place]] = model.frame().leave_wide(place, z);
            }
        }
        Some(values)
    }

    fn are_of_known(&self) -> bool {
        true
    }

    fn has_distances(&self) -> bool {
        self.kinds.iter().all(|kind| kind.categories().is_none())
    }

    fn takes(&self, rows: &Rows<F>, first: usize) -> Result<()> {
        check(&self.kinds, rows, first, |j| j)
    }

    fn datum(&self, column: usize, shares: ArrayView1<'_, F>, expected: f64, whole: bool) -> f64 {
        self.theta.alone[column].as_ref().map_or(expected, |alone| {
            let shares = shares.mapv(Float::to_f64).to_vec();
            alone.datum(&shares, expected, whole)
        })
    }
}

impl<F: Float> Mixture<F> for ProductMixture<F> {
    fn cost(&self) -> Cost<'_, F> {
        Cost::Own(self)
    }

    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.theta.frame
    }

    fn explain(&self) -> Array2<f64> {
        let shares = &self.theta.proportions.values;
        let variances = self.variances();
        let mut nats = Mixture::means(self).mapv(Float::to_f64);
        let columns = nats.columns_mut().into_iter().zip(variances.columns());
        for ((mut column, variances), alone) in columns.zip(&self.theta.alone) {
            let divergences = match alone {
                Some(alone) => Array1::from(alone.explained(shares)),
                None => explain_column(column.view(), variances, shares),
            };
            column.assign(&divergences);
        }
        nats
    }

    fn log_joint(&self) -> LogJoint {
        LogJoint {
            alpha: self.theta.blocks.iter().map(Numbers::constant).sum(),
            gamma: 0.0,
            beta: 1.0,
        }
    }

    fn proportions(&self) -> Array1<f64> {
        self.theta.proportions.values.clone().into()
    }

    /// The logarithms of the prior densities of all parts.
    fn prior_terms(&self) -> f64 {
        let of_blocks = self.gaussians().map(|(_, model)| model.prior_terms());
        of_blocks.chain(self.alone().map(Alone::prior_terms)).sum()
    }

    fn plain(&self) -> Option<&dyn Mixture<F>> {
        let has_ridge = self.gaussians().any(|(_, model)| model.plain().is_some());
        let make = || {
            let mut theta = self.theta.clone();
            for block in &mut theta.blocks {
                block.model = block.model.without_ridge();
            }
            Box::new(Self::new(theta))
        };
        has_ridge.then(|| &**self.plain.get(make) as _)
    }

    fn free_parameters(&self) -> Option<usize> {
        let mut number = self.theta.proportions.free();
        for (_, model) in self.gaussians() {
            number += model.free_parameters()?;
        }
        Some(number + self.alone().map(Alone::free).sum::<usize>())
    }

    /// Components that a floor holds in any part.
    fn at_floor(&self) -> Vec<usize> {
        let of_blocks = self.gaussians().flat_map(|(_, model)| model.at_floor());
        let clamped = of_blocks.chain(self.alone().flat_map(Alone::at_floor));
        let mut clamped: Vec<usize> = clamped.collect();
        clamped.sort_unstable();
        clamped.dedup();
        clamped
    }

    /// The variance of a count is its rate. For categories it is the probability that two rows differ.
    fn variances(&self) -> Array2<f64> {
        self.by_column(self.added.len(), Mixture::variances, Alone::variances)
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.theta.proportions.values, n, &mut rng)?;
        let rng = RefCell::new(rng);
        let of_block = |model: &GaussianMixture<F>| model.drawn(&labels, &mut rng.borrow_mut());
        let of_alone = |alone: &Alone| alone.drawn(&labels, &mut rng.borrow_mut());
        let rows = self.by_column(n, of_block, of_alone);
        Ok((rows, labels))
    }

    /// Besides those of all columns those of blocks, in their order, and the `probabilities` (k, categories) and `codes` of all categories, in
    /// the order of their columns.
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let mut parameters = vec![
            ("variances", self.variances().into_dyn()),
            ("proportions", self.proportions().into_dyn()),
        ];
        for (_, model) in self.gaussians() {
            let further = model.parameters().into_iter();
            parameters
                .extend(further.filter(|(name, _)| !["variances", "proportions"].contains(name)));
        }
        let columns = (0..self.kinds.len()).filter_map(|j| self.categories(j).ok());
        let (codes, probabilities): (Vec<_>, Vec<_>) = columns
            .map(|alone| (alone.codes.clone(), alone.probabilities()))
            .unzip();
        let views: Vec<_> = probabilities.iter().map(|matrix| matrix.view()).collect();
        if let Ok(probabilities) = concatenate(Axis(1), &views) {
            parameters.push(("probabilities", probabilities.into_dyn()));
            parameters.push(("codes", Array1::from(codes.concat()).into_dyn()));
        }
        parameters
    }
}
