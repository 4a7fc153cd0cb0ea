//! Blocks of columns, each with a family of its own, independent within a component.

mod model;

pub(super) use model::Theta;
pub use model::{PartMixture, ProductMixture};

use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::{Data, OfColumns, Summary};
use crate::families::columns::check_columns;
use crate::families::gaussian::family::Gaussian;
use crate::families::proportions::{Mixing, Proportions};
use crate::families::table::{Column, Table};
use crate::families::variances::{STEPS_WITH_ONE_VARIANCE, variance_of};
use crate::m_step::sums::moments::{Moments, OfKind};
use crate::m_step::{Coordinates, MStep, Needs, Started};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};
use model::{PartOf, each};
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
/// use coremix::families::{Column, PartMixture, Product, Table};
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
/// for (columns, part) in model.parts() {
///     match part {
///         PartMixture::Gaussian(body) => assert_eq!((columns, body.covariances().dim()), (&[0, 2][..], (2, 2, 2))),
///         PartMixture::Table(others) => assert_eq!((columns, others.probabilities(0)?.dim()), (&[1, 3][..], (2, 2))),
///         _ => unreachable!(),
///     }
/// }
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

impl Part {
    /// The model at seeds (k, d) of these columns, in the data's own numbers.
    fn start<F: Float>(
        &self,
        seeds: &Array2<F>,
        columns: &[usize],
        data: &dyn Data<F>,
        before: Option<&PartMixture<F>>,
    ) -> Result<Started<PartMixture<F>>> {
        let summary = data.summary();
        let family = match self {
            Self::Table(family) => {
                let frame = Frame::raw(summary)?;
                let seeds = Centres::enter(seeds.view(), &frame);
                let before = match before {
                    Some(PartMixture::Table(before)) => Some(before),
                    _ => None,
                };
                let started = family.start_of(seeds, frame, data, columns, before)?;
                return Ok(started.map(PartMixture::Table));
            }
            Self::Gaussian(family) => family.equal_proportions(),
        };
        let frame = if family.kind().is_by_column() {
            in_units_of_columns(summary)
        } else {
            Frame::of(summary)
        };
        let seeds = Centres::enter(seeds.view(), &frame);
        let weight = summary.total_weight;
        let variance = variance_of(&frame, summary);
        let entries = weight * columns.len() as f64;
        let before = match before {
            Some(PartMixture::Gaussian(before)) => Some(before),
            _ => None,
        };
        let mut started = family.start(seeds, frame, data, before)?;
        if started.goes_on {
            return Ok(started.map(PartMixture::Gaussian));
        }
        // The costs of a search are those of all blocks together: so each begins with the variance of its data.
        let ridge: f64 = started.model.theta.common.prior.ridge.iter().sum();
        let squared = entries * variance + weight * ridge;
        let whole = Likelihood::of_nearest(weight, entries, squared);
        MStep::<F>::calibrate(&family, &mut started.model, &whole);
        Ok(started.map(PartMixture::Gaussian))
    }
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
        let all = seeds.leave(&frame);
        let blocks = self.blocks_of(data.dim())?;
        let start = |before: Option<&Theta<F>>| -> Result<(Vec<PartOf<F>>, bool)> {
            let mut parts = Vec::new();
            let mut go_on = before.is_some();
            for (i, (columns, part)) in blocks.iter().enumerate() {
                let own = before.map(|before| &before.parts[i].model);
                let of_block = OfColumns::new(data, &frame, columns);
                let seeds = all.select(Axis(1), columns);
                let started = part.start(&seeds, columns, &of_block, own)?;
                go_on &= started.goes_on;
                let columns = columns.clone();
                let model = started.model;
                parts.push(PartOf { columns, model });
            }
            Ok((parts, go_on))
        };
        let before = before.map(|before| &before.theta);
        let columns = blocks.iter().map(|(columns, _)| columns);
        let before = before.filter(|from| columns.eq(from.parts.iter().map(|part| &part.columns)));
        let (mut parts, goes_on) = start(before)?;
        // Costs add up the parts: so either all go on, or none.
        if before.is_some() && !goes_on {
            parts = start(None)?.0;
        }
        let proportions = match before.filter(|_| goes_on) {
            Some(from) => from.proportions.clone(),
            None => Proportions::equal(seeds.len(), Mixing::Learned),
        };
        let model = ProductMixture::new(Theta {
            frame,
            parts,
            proportions,
        });
        Ok(Started { model, goes_on })
    }

    /// The masses, and the sums of each part.
    fn statistics(&self, model: &Self::Model) -> Moments {
        let k = model.components();
        let d = model.theta.frame.dim();
        let mut parts = Vec::new();
        for part in &model.theta.parts {
            let own = each!(&part.model, |family, own| MStep::<F>::statistics(
                &family, own
            ));
            parts.push(own);
        }
        Moments::totals(k, d).with(OfKind::Parts(parts))
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        for i in 0..rows.len() {
            for (c, q) in block.members(i) {
                sums.mass[c as usize] += rows.weight(i) * q;
            }
        }
        for (part, sums) in model.theta.parts.iter().zip(sums.of_kind.parts()) {
            let rows = part.rows(rows, 0..rows.len());
            each!(&part.model, |family, own| family
                .accumulate(&rows, block, own, sums));
        }
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let parts = match sums.of_kind {
            OfKind::Parts(parts) => parts,
            _ => Vec::new(),
        };
        for (part, sums) in model.theta.parts.iter_mut().zip(parts) {
            each!(&mut part.model, |family, own| {
                MStep::<F>::update(&family, sums, own, restricted, cancel)?;
            });
        }
        if !restricted {
            model.theta.proportions = Proportions::learned(sums.mass.into_iter());
        }
        model.renew();
        Ok(())
    }
}
