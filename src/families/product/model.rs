//! A mixture of products: its parts, the costs of rows, and its answers.

use crate::base::cached::Cached;
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::costs::{Cost, OwnCost, penalised};
use crate::families::columns::{check_columns, other_columns, shares_under};
use crate::families::gaussian::mixture::GaussianMixture;
use crate::families::proportions::{Mixing, Proportions, components};
use crate::families::table::{TableMixture, numbers_apart};
use crate::io::rule;
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, ArrayD, ArrayView1};
use std::ops::Range;

/// A fitted mixture of products.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductMixture<F> {
    pub(in crate::families) theta: Theta<F>,
    /// The means of all columns, in the data's own numbers.
    centres: Centres<F>,
    /// (k): what costs are besides those of the parts, so that mixing proportions count once.
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
    pub(super) parts: Vec<PartOf<F>>,
    pub(super) proportions: Proportions,
}

/// A part with its columns.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(super) struct PartOf<F> {
    pub(super) columns: Vec<usize>,
    pub(super) model: PartMixture<F>,
}

/// The components of a block of columns. Their own mixing proportions do not count.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "each has k x d numbers besides")]
#[non_exhaustive]
pub enum PartMixture<F> {
    /// Numbers.
    Gaussian(GaussianMixture<F>),
    /// Numbers, counts and categories, each column alone.
    Table(TableMixture<F>),
}

/// Does the same with the family and the model of a part, whichever they are. The model has all that an update depends on.
macro_rules! each {
    ($part:expr, |$family:ident, $model:ident| $do:expr) => {
        match $part {
            PartMixture::Gaussian($model) => {
                let $family = Gaussian::new($model.covariance_kind()).equal_proportions();
                $do
            }
            PartMixture::Table($model) => {
                let $family = Table::default();
                $do
            }
        }
    };
}
pub(super) use each;

impl<F: Float> PartOf<F> {
    fn mixture(&self) -> &dyn Mixture<F> {
        match &self.model {
            PartMixture::Gaussian(model) => model,
            PartMixture::Table(model) => model,
        }
    }

    /// The log-joint of cost 0 of a row that knows all columns.
    fn constant(&self) -> f64 {
        let log_joint = self.mixture().log_joint();
        log_joint.alpha + self.columns.len() as f64 * log_joint.gamma
    }

    /// Some rows as the part sees them.
    pub(super) fn rows(&self, rows: &Rows<F>, some: Range<usize>) -> Rows<F> {
        rows.of_columns(some, &self.columns, self.mixture().frame())
    }
}

impl<F: Float> Theta<F> {
    /// Checks what came from a file.
    pub(in crate::families) fn check(&self) -> std::result::Result<(), FileFault> {
        let k = self.proportions.values.len();
        let d = self.frame.dim();
        self.proportions.check_stored(k)?;
        rule(self.frame.is_raw(), "frame", "must be that of raw numbers")?;
        let columns = self.parts.iter().flat_map(|part| part.columns.clone());
        let mut columns: Vec<usize> = columns.collect();
        columns.sort_unstable();
        let once = columns.into_iter().eq(0..d);
        rule(once, "columns", "must be in one block each")?;
        let fits = |part: &PartOf<F>| {
            let model = part.mixture();
            let columns = part.columns.len();
            model.components() == k && model.frame().dim() == columns
        };
        let say = "must have all components, and their columns";
        rule(self.parts.iter().all(fits), "parts", say)
    }
}

impl<F: Float> ProductMixture<F> {
    pub(in crate::families) fn new(theta: Theta<F>) -> Self {
        let centres = Centres::with_capacity(0, theta.frame.dim());
        let added = Vec::new();
        let mut new = Self {
            theta,
            centres,
            added,
            plain: Cached::default(),
        };
        new.renew();
        new
    }

    /// Makes what follows from the parameters.
    pub(super) fn renew(&mut self) {
        let means = self.by_column(|part| part.mixture().means());
        self.centres = Centres::of_coordinates(means.view());
        let mut added = self.proportions().mapv(|p| -p.ln());
        for part in &self.theta.parts {
            added += &part.mixture().proportions().mapv(f64::ln);
        }
        self.added = added.to_vec();
        self.plain = Cached::default();
    }

    /// Numbers (k, d), of which each part has those of its columns.
    fn by_column<T: Copy + Default>(&self, of: impl Fn(&PartOf<F>) -> Array2<T>) -> Array2<T> {
        let shape = (self.theta.proportions.values.len(), self.theta.frame.dim());
        let mut all = Array2::from_elem(shape, T::default());
        for part in &self.theta.parts {
            for (own, j) in of(part).columns().into_iter().zip(&part.columns) {
                all.column_mut(*j).assign(&own);
            }
        }
        all
    }

    /// The blocks of columns, and the components of each, which are those of its columns alone.
    pub fn parts(&self) -> impl Iterator<Item = (&[usize], &PartMixture<F>)> {
        let parts = self.theta.parts.iter();
        parts.map(|part| (&part.columns[..], &part.model))
    }

    fn tables(&self) -> impl Iterator<Item = (&PartOf<F>, &TableMixture<F>)> {
        self.theta
            .parts
            .iter()
            .filter_map(|part| match &part.model {
                PartMixture::Table(table) => Some((part, table)),
                PartMixture::Gaussian(_) => None,
            })
    }

    /// How much each column sets a component apart from the whole mixture (k, d), in nats, as
    /// [`TableMixture::explain`]: each column alone, also where columns have covariances.
    #[must_use]
    pub fn explain(&self) -> Array2<f64> {
        let shares = self.proportions();
        self.by_column(|part| {
            let model = match &part.model {
                PartMixture::Table(model) => {
                    return model.explained(&self.theta.proportions.values);
                }
                PartMixture::Gaussian(model) => model,
            };
            let mut apart = Mixture::variances(model);
            let means = Mixture::means(model);
            for (mut variances, means) in apart.columns_mut().into_iter().zip(means.columns()) {
                let means = means.mapv(Float::to_f64);
                let mean = means.dot(&shares);
                let squared = means.mapv(|m| (m - mean).powi(2));
                let whole = (&variances + &squared).dot(&shares);
                let pairs = variances.iter_mut().zip(&squared);
                pairs.for_each(|(v, squared)| *v = numbers_apart(*squared, *v, whole).max(0.0));
            }
            apart
        })
    }

    /// The mixture of these columns alone, in this order: the density of the others is integrated out.
    ///
    /// # Errors
    /// [`Error::Empty`](crate::Error::Empty) without columns; [`Error::Parameter`](crate::Error::Parameter) for one that there is not, or
    /// that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        check_columns(columns, self.theta.frame.dim())?;
        self.of_columns(columns, &[], self.theta.proportions.clone())
    }

    /// The mixture of the other columns, in their order, where these `columns` have these `values`.
    ///
    /// # Errors
    /// As [`GaussianMixture::condition`].
    pub fn condition(&self, columns: &[usize], values: &[f64]) -> Result<Self> {
        let others = other_columns(columns, values, self.theta.frame.dim())?;
        let shares = shares_under(&self.marginal(columns)?, values)?;
        let known: Vec<_> = columns
            .iter()
            .copied()
            .zip(values.iter().copied())
            .collect();
        self.of_columns(&others, &known, Proportions::learned(shares.into_iter()))
    }

    /// The mixture of these columns, in this order, given the values of others.
    fn of_columns(
        &self,
        columns: &[usize],
        known: &[(usize, f64)],
        proportions: Proportions,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for part in &self.theta.parts {
            let mut own = Vec::new();
            let mut places = Vec::new();
            let mut given = (Vec::new(), Vec::new());
            for (place, column) in part.columns.iter().enumerate() {
                if let Some(to) = columns.iter().position(|wanted| wanted == column) {
                    own.push(place);
                    places.push(to);
                } else if let Some((_, x)) = known.iter().find(|(given, _)| given == column) {
                    given.0.push(place);
                    given.1.push(*x);
                }
            }
            if own.is_empty() {
                continue;
            }
            let model = match &part.model {
                PartMixture::Table(model) => PartMixture::Table(model.marginal(&own)?),
                PartMixture::Gaussian(model) => {
                    let mut model = if given.0.is_empty() {
                        model.marginal(&own)?
                    } else {
                        model.condition(&given.0, &given.1)?
                    };
                    let common = &mut model.theta.common;
                    common.proportions = Proportions::equal(common.k(), Mixing::Equal);
                    model.renew(None)?;
                    PartMixture::Gaussian(model)
                }
            };
            let columns = places;
            parts.push(PartOf { columns, model });
        }
        let frame = self.theta.frame.of_columns(columns);
        Ok(Self::new(Theta {
            frame,
            parts,
            proportions,
        }))
    }

    /// Costs of some rows under the components `ids`: $-\ln p(c, y)$ without constants, so that units of the data change no bit of them.
    fn costs(&self, rows: &Rows<F>, some: Range<usize>, ids: &[u32], out: &mut Vec<F>) {
        let mut own = Vec::new();
        let width = ids.len().max(1);
        let mut totals = vec![0.0; some.len() * ids.len()];
        for part in &self.theta.parts {
            let rows = part.rows(rows, some.clone());
            let model = part.mixture();
            let cost = model.cost();
            let log_joint = model.log_joint();
            for (i, totals) in totals.chunks_exact_mut(width).enumerate() {
                cost.some(&rows, i, ids, &mut own);
                // Nothing, where nothing is missing.
                let missing = part.constant() - log_joint.of_row(&rows, i);
                let pairs = totals.iter_mut().zip(&own);
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
        let mean = self.centres.row(c)[..rows.dim].iter();
        let mut all: Vec<f64> = mean.map(|m| m.to_f64()).collect();
        for part in &self.theta.parts {
            let own = part.rows(rows, i..i + 1);
            let model = part.mixture();
            let completed = model.cost().completed(&own, 0, c).unwrap_or_default();
            for (place, z) in completed.into_iter().enumerate() {
                all[part.columns[place]] = model.frame().leave_wide(place, z);
            }
        }
        Some(all)
    }

    fn are_of_known(&self) -> bool {
        let mut parts = self.theta.parts.iter();
        parts.all(|part| part.mixture().cost().takes_missing())
    }

    fn has_distances(&self) -> bool {
        let mut parts = self.theta.parts.iter();
        parts.all(|part| part.mixture().cost().has_distances())
    }

    fn takes(&self, rows: &Rows<F>, first: usize) -> Result<()> {
        self.tables().try_for_each(|(part, table)| {
            let own = part.rows(rows, 0..rows.len());
            table.check(&own, first, |j| part.columns[j])
        })
    }

    fn datum(&self, column: usize, shares: ArrayView1<'_, F>, expected: f64, whole: bool) -> f64 {
        let place = |part: &PartOf<F>| part.columns.iter().position(|j| *j == column);
        let found = |(part, table): (&PartOf<F>, &TableMixture<F>)| {
            Some(table.datum(place(part)?, shares, expected, whole))
        };
        self.tables().find_map(found).unwrap_or(expected)
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

    fn log_joint(&self) -> LogJoint {
        LogJoint {
            alpha: self.theta.parts.iter().map(PartOf::constant).sum(),
            gamma: 0.0,
            beta: 1.0,
        }
    }

    fn proportions(&self) -> Array1<f64> {
        self.theta.proportions.values.clone().into()
    }

    /// The logarithms of the prior densities of all parts.
    fn prior_terms(&self) -> f64 {
        let parts = self.theta.parts.iter();
        parts.map(|part| part.mixture().prior_terms()).sum()
    }

    fn plain(&self) -> Option<&dyn Mixture<F>> {
        let mut parts = self.theta.parts.iter();
        let has_ridge = parts.any(|part| part.mixture().plain().is_some());
        let make = || {
            let mut theta = self.theta.clone();
            for part in &mut theta.parts {
                if let PartMixture::Gaussian(model) = &mut part.model {
                    *model = model.without_ridge();
                }
            }
            Box::new(Self::new(theta))
        };
        has_ridge.then(|| &**self.plain.get(make) as _)
    }

    fn free_parameters(&self) -> Option<usize> {
        let mut all = self.theta.proportions.free();
        for part in &self.theta.parts {
            // The proportions of tables are none of the parameters here; those of Gaussians are equal.
            let of_table = usize::from(matches!(part.model, PartMixture::Table(_)));
            all += part.mixture().free_parameters()? - of_table * (self.added.len() - 1);
        }
        Some(all)
    }

    /// Components that a floor holds in any part.
    fn at_floor(&self) -> Vec<usize> {
        let parts = self.theta.parts.iter();
        let mut held: Vec<usize> = parts.flat_map(|part| part.mixture().at_floor()).collect();
        held.sort_unstable();
        held.dedup();
        held
    }

    /// As those of the parts: of a count its rate, of categories the probability that two rows differ.
    fn variances(&self) -> Array2<f64> {
        self.by_column(|part| part.mixture().variances())
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.theta.proportions.values, n, &mut rng)?;
        let mut rows = Array2::from_elem((n, self.theta.frame.dim()), F::zero());
        for part in &self.theta.parts {
            let own = match &part.model {
                PartMixture::Gaussian(model) => model.drawn(&labels, &mut rng),
                PartMixture::Table(model) => model.drawn(&labels, &mut rng),
            };
            for (own, j) in own.columns().into_iter().zip(&part.columns) {
                rows.column_mut(*j).assign(&own);
            }
        }
        Ok((rows, labels))
    }

    /// Besides those of all columns those of the parts, in the order of the blocks.
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        let mut all = vec![
            ("variances", self.variances().into_dyn()),
            ("proportions", self.proportions().into_dyn()),
        ];
        for part in &self.theta.parts {
            let own = part.mixture().parameters().into_iter();
            all.extend(own.filter(|(name, _)| !["variances", "proportions"].contains(name)));
        }
        all
    }
}
