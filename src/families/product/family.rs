//! Products: which family each block of columns has.

use super::column::Column;
use super::law::Alone;
use super::model::{Numbers, ProductMixture, Theta};
use super::table::Table;
use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::{Data, OfColumns, Summary};
use crate::families::columns::check_columns;
use crate::families::gaussian::family::Gaussian;
use crate::families::gaussian::mixture::GaussianMixture;
use crate::families::proportions::{Mixing, Proportions};
use crate::families::variances::{STEPS_WITH_ONE_VARIANCE, variance_of};
use crate::m_step::sums::moments::{Moments, OfKind};
use crate::m_step::{Coordinates, MStep, Needs, Started};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array2, Axis};

/// Components whose columns come in blocks, each with a family of its own ([E61](crate::equations#e61)): given its component, the
/// blocks of a row are independent.
///
/// So numbers may have covariances of any kind next to counts and categories, where a [`Table`] has each column alone.
/// [`Product::new`] takes the family of all columns that no block names, and each [`block`](Self::block) its columns.
///
/// A fit computes in the data's own numbers, and a Gaussian block in coordinates near its rows, where far-off numbers keep
/// their digits. Where there is a variance for each column, or a covariance for each pair, each column has the power of two next
/// to its deviation for a unit: then a fit begins with about the variances of the columns, whatever their units. Where a component
/// has one variance, it is that of the columns as they are.
///
/// The mixing proportions are those of the whole: it does not count whether a part keeps its own equal. A [prior](Gaussian::prior) of
/// a part is one of its covariances, for components of equal shares. Rows may have missing values if all parts take them. As with
/// tables, rows that are far apart are not always good seeds, so several restarts pay.
///
/// ```
/// use coremix::families::{Column, Product, Table};
/// use coremix::prelude::*;
/// # let mut rng = coremix::stage::Rng::from_seed(1);
/// # let x = ndarray::Array2::from_shape_fn((300, 4), |(n, j)| match j {
/// #     1 => f64::from(rng.uniform() < 0.2 + 0.6 * (n % 2) as f64),
/// #     3 => (9.0 * (n % 2) as f64 + 3.0 * rng.uniform()).floor(),
/// #     _ => 170.0 + 20.0 * (n % 2) as f64 + rng.normal(),
/// # });
/// // height, smokes (0 or 1), weight, visits
/// let data = Dense::new(&x)?;
/// let others = Table::new(vec![Column::Category(2), Column::Count]);
/// let family = Product::new(Gaussian::new(Covariance::Full)).block([1, 3], others);
/// let model = algorithms::gmm(2).m_step(family).restarts(4).build()?.fit(&data)?.model;
/// for (columns, body) in model.gaussians() {
///     assert_eq!((columns, body.covariances().dim()), (&[0, 2][..], (2, 2, 2)));
/// }
/// assert_eq!(model.probabilities(1)?.dim(), (2, 2));
/// assert_eq!(model.explain().dim(), (2, 4)); // how much each column sets each component apart, in nats
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    rest: Part,
    blocks: Vec<(Vec<usize>, Part)>,
}

/// The family of a block of columns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Numbers with covariances of one kind, except `TiedSpherical`.
    Gaussian(Gaussian),
    /// Numbers, counts and categories, each column alone.
    Table(Table),
}

impl From<Gaussian> for Part {
    fn from(family: Gaussian) -> Self {
        Self::Gaussian(family)
    }
}

impl From<Table> for Part {
    fn from(family: Table) -> Self {
        Self::Table(family)
    }
}

impl Product {
    /// All columns that no block names are of this family.
    #[must_use]
    pub fn new(rest: impl Into<Part>) -> Self {
        Self {
            rest: rest.into(),
            blocks: Vec::new(),
        }
    }

    /// With a family of these columns, numbered from 0. The kinds of a [`Table`] are in the order of these numbers.
    #[must_use]
    pub fn block(mut self, columns: impl Into<Vec<usize>>, part: impl Into<Part>) -> Self {
        self.blocks.push((columns.into(), part.into()));
        self
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        let blocks = self.blocks.iter().map(|(_, part)| part);
        blocks.chain([&self.rest])
    }

    /// The columns of each block, out of `d`. The rest comes last, if there is any.
    fn blocks_of(&self, d: usize) -> Result<Vec<(Vec<usize>, &Part)>> {
        let blocks = self
            .blocks
            .iter()
            .map(|(columns, part)| (columns.clone(), part));
        let mut blocks: Vec<_> = blocks.collect();
        let named: Vec<usize> = blocks
            .iter()
            .flat_map(|(columns, _)| columns.clone())
            .collect();
        if !named.is_empty() {
            check_columns(&named, d)?;
        }
        let mut is_free = vec![true; d];
        named.into_iter().for_each(|j| is_free[j] = false);
        blocks.push(((0..d).filter(|j| is_free[*j]).collect(), &self.rest));
        blocks.retain(|(columns, _)| !columns.is_empty());
        Ok(blocks)
    }
}

impl Table {
    /// With this family of all its numbers together, in place of a variance of each alone. Counts and categories stay as they are.
    ///
    /// ```
    /// use coremix::families::{Column, Table};
    /// use coremix::prelude::*;
    ///
    /// let kinds = vec![Column::Number, Column::Count, Column::Number];
    /// let family = Table::new(kinds).numbers(Gaussian::new(Covariance::Full));
    /// let mixture = algorithms::gmm::<f64>(2).m_step(family).restarts(8).build()?;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn numbers(self, family: Gaussian) -> Product {
        let kinds = self.columns.into_iter().enumerate();
        let others = kinds.filter(|(_, kind)| *kind != Column::Number);
        let (places, columns): (Vec<usize>, Vec<Column>) = others.unzip();
        let prior_rows = self.prior_rows;
        let others = Self {
            columns,
            prior_rows,
        };
        Product::new(family).block(places, others)
    }
}

/// The components at seeds (k, d) of these columns, in the data's own numbers.
fn start_numbers<F: Float>(
    family: Gaussian,
    seeds: &Array2<F>,
    data: &dyn Data<F>,
    before: Option<&Numbers<F>>,
) -> Result<Started<GaussianMixture<F>>> {
    let summary = data.summary();
    let frame = if family.kind().is_by_column() {
        in_units_of_columns(summary)
    } else {
        Frame::of(summary)
    };
    let seeds = Centres::enter(seeds.view(), &frame);
    let weight = summary.total_weight;
    let variance = variance_of(&frame, summary);
    let entries = weight * frame.dim() as f64;
    let mut started = family.start(seeds, frame, data, before.map(|before| &before.model))?;
    if !started.goes_on {
        // The costs of a search are those of all blocks together: so each begins with the variance of its data.
        let ridge: f64 = started.model.theta.common.prior.ridge.iter().sum();
        let squared = entries * variance + weight * ridge;
        let whole = Likelihood::of_nearest(weight, entries, squared);
        MStep::<F>::calibrate(&family, &mut started.model, &whole);
    }
    Ok(started)
}

/// Coordinates in which each column has about deviation 1. Units are powers of two, which cost no rounding.
fn in_units_of_columns<F: Float>(summary: &Summary) -> Frame<F> {
    let power = |variance: &f64| 4f64.powi((0.5 * variance.log2()).round() as i32);
    Frame::standardised(&Summary {
        variance: summary.variance.iter().map(power).collect(),
        ..summary.clone()
    })
}

impl Stage for Product {
    fn check(&self, clusters: usize) -> Result<()> {
        self.parts().try_for_each(|part| match part {
            Part::Gaussian(family) => family.check_as_part(clusters),
            Part::Table(family) => family.check(clusters),
        })
    }
}

impl<F: Float> MStep<F> for Product {
    type Model = ProductMixture<F>;

    /// Counts and categories have an origin and a unit of their own.
    fn needs(&self) -> Needs {
        let gaussian = self.parts().any(|part| matches!(part, Part::Gaussian(_)));
        Needs {
            coordinates: Coordinates::Raw,
            restricted_steps: usize::from(gaussian) * STEPS_WITH_ONE_VARIANCE,
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
        let all_seeds = seeds.leave(&frame);
        let start = |before: Option<&Theta<F>>| -> Result<Started<Theta<F>>> {
            let mut goes_on = before.is_some();
            let mut blocks = Vec::new();
            let mut alone = vec![None; data.dim()];
            for (columns, part) in self.blocks_of(data.dim())? {
                let of_block = OfColumns::new(data, &frame, &columns);
                let seeds = all_seeds.select(Axis(1), &columns);
                match part {
                    Part::Gaussian(family) => {
                        let from = before.map(|from| from.blocks.iter());
                        let from = from
                            .and_then(|mut numbers| numbers.find(|block| block.columns == columns));
                        let family = family.equal_proportions();
                        let started = start_numbers(family, &seeds, &of_block, from)?;
                        goes_on &= started.goes_on;
                        let model = started.model;
                        blocks.push(Numbers { columns, model });
                    }
                    Part::Table(family) => {
                        let started = family.start(&seeds, &of_block, &columns)?;
                        for (mut new, j) in started.into_iter().zip(columns) {
                            let from = before.and_then(|from| from.alone[j].as_ref());
                            goes_on &= from.is_some_and(|from| new.go_on(from));
                            alone[j] = Some(new);
                        }
                    }
                }
            }
            let equal = || Proportions::equal(seeds.len(), Mixing::Learned);
            let proportions = before.map_or_else(equal, |from| from.proportions.clone());
            let frame = frame.clone();
            let model = Theta {
                frame,
                blocks,
                alone,
                proportions,
            };
            Ok(Started { model, goes_on })
        };
        let before = before.map(|before| &before.theta);
        let mut started = start(before.filter(|from| from.alone.len() == data.dim()))?;
        // Costs add up the parts: so either all go on, or none.
        if before.is_some() && !started.goes_on {
            started = start(None)?;
        }
        Ok(started.map(ProductMixture::new))
    }

    /// The masses, the sums of each block, and those of all columns alone.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let Theta { blocks, alone, .. } = &model.theta;
        let of_block = |block: &Numbers<F>| block.family().statistics(&block.model);
        let sums = Moments::totals(model.components(), alone.len());
        let sums = sums.with(OfKind::Parts(blocks.iter().map(of_block).collect()));
        sums.with_own(alone.iter().flatten().map(Alone::sums).sum())
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        let Theta { blocks, alone, .. } = &model.theta;
        let mut starts = vec![0];
        for column in alone {
            starts.push(starts[starts.len() - 1] + column.as_ref().map_or(0, Alone::sums));
        }
        let mut shares = Vec::new();
        for i in 0..rows.len() {
            let weight = rows.weight(i);
            shares.clear();
            shares.extend(block.members(i));
            for (c, q) in &shares {
                sums.mass[*c as usize] += weight * q;
            }
            let column_sums = sums.own_mut();
            rows.each_known(i, |j, x| {
                if let Some(column) = &alone[j] {
                    column.kind.law().add_number(
                        column,
                        x.to_f64(),
                        weight,
                        &shares,
                        &mut column_sums[starts[j]..],
                    );
                }
            });
        }
        for (numbers, sums) in blocks.iter().zip(sums.of_kind.parts()) {
            let rows = numbers.rows(rows, 0..rows.len());
            numbers
                .family()
                .accumulate(&rows, block, &numbers.model, sums);
        }
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let mut column_sums = sums.own();
        for alone in model.theta.alone.iter_mut().flatten() {
            let (first, rest) = column_sums.split_at(alone.sums());
            alone.update(first);
            column_sums = rest;
        }
        let of_blocks = match sums.of_kind {
            OfKind::Parts(of_blocks) => of_blocks,
            _ => Vec::new(),
        };
        for (block, sums) in model.theta.blocks.iter_mut().zip(of_blocks) {
            let family = block.family();
            family.update(sums, &mut block.model, restricted, cancel)?;
        }
        if !restricted {
            model.theta.proportions = Proportions::learned(sums.mass.into_iter());
        }
        model.renew();
        Ok(())
    }
}

/// As the product of its columns. The model has all that sums and updates depend on.
impl<F: Float> MStep<F> for Table {
    type Model = ProductMixture<F>;

    fn needs(&self) -> Needs {
        MStep::<F>::needs(&Product::new(self.clone()))
    }

    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        Product::new(self.clone()).start(seeds, frame, data, before)
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        Product::new(Self::default()).statistics(model)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        Product::new(Self::default()).accumulate(rows, block, model, sums);
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        Product::new(Self::default()).update(sums, model, restricted, cancel)
    }
}
