//! Squared distances times factors: components whose variances differ, in all columns alike or column by column.

use crate::base::cached::Cached;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::{all_finite, rule, serde_through};
use crate::kernels::distance::{self, Scaled as Scales};
use crate::kernels::sparse::{self, Absent};
use crate::kernels::stride;
use crate::kernels::zeros::{Origin, Seen};
use crate::rows::{Centres, Linear, Part, Rows};

/// So few components with factors by column are compared and summed up directly where there are this many columns. Products
/// compute a whole vector of costs, and sums of six or twelve components: of three, too, and of those that have no share of a
/// row.
const DIRECT_COMPONENTS: usize = 4;
const DIRECT_COLUMNS: usize = 32;

/// Squared distances to centres with factors and addends (E31, E33), for rows that know the coordinates $O$:
///
/// $$s_c(z) = a_c \sum_{j \in O} (z_j - \mu_{cj})^2 + \lvert O \rvert \thinspace b_c + p_c
/// \quad \text{or} \quad s_c(z) = \sum_{j \in O} \left( a_{cj} (z_j - \mu_{cj})^2 + b_{cj} \right) + p_c$$
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled<F> {
    centres: Centres<F>,
    components: Vec<Factor>,
    by_column: Option<ByColumn<F>>,
    /// Bounds for rounding: the largest factor, and as its `added` the largest sum that a component adds to a row.
    largest: Factor,
    products: Cached<Option<Linear<F>>>,
}

/// How a squared distance becomes a cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct Factor {
    /// $a_c$, positive.
    pub factor: f64,
    /// $b_c$, added for each coordinate that a row knows.
    pub per_coordinate: f64,
    /// $p_c$, added to every row: infinity for a component that was discarded.
    pub added: f64,
}

/// Factors $a_{cj}$ and addends $b_{cj}$ of each component and coordinate.
#[derive(Clone, Debug, PartialEq)]
struct ByColumn<F> {
    /// (k, d), padded with zeros.
    factors: Vec<F>,
    /// (k, d), padded with zeros.
    terms: Vec<F>,
    /// (k): the terms of all coordinates together.
    totals: Vec<F>,
    /// Factors and terms by coordinate: (d, 2, k), padded with zeros to a [`stride`] of k.
    by_coordinate: Cached<Vec<F>>,
    origins: Cached<Vec<Origin>>,
}

impl Factor {
    /// The squared distance itself.
    pub const ONE: Self = Self {
        factor: 1.0,
        per_coordinate: 0.0,
        added: 0.0,
    };

    #[inline(always)]
    fn cost<F: Float>(&self, squared: F, known: f64) -> F {
        let cost = self.factor * squared.to_f64() + known * self.per_coordinate;
        penalised(cost, self.added)
    }
}

impl<F: Float> Scaled<F> {
    /// Centres whose factors `of` gives for each component.
    pub fn new(centres: Centres<F>, of: impl Fn(usize) -> Factor) -> Self {
        let components: Vec<Factor> = (0..centres.len()).map(of).collect();
        let mut largest = Factor::ONE;
        let dim = centres.dim() as f64;
        for component in components
            .iter()
            .filter(|component| component.added.is_finite())
        {
            let added = dim * component.per_coordinate.abs() + component.added.abs();
            largest.factor = largest.factor.max(component.factor);
            largest.added = largest.added.max(added);
        }
        Self {
            centres,
            components,
            by_column: None,
            largest,
            products: Cached::default(),
        }
    }

    /// Centres whose factors and addends, $a_{cj}$ and $b_{cj}$, `of` gives for each component and coordinate, and `added`,
    /// $p_c$, for each component.
    pub fn by_column(
        centres: Centres<F>,
        of: impl Fn(usize, usize) -> (f64, f64),
        added: impl Fn(usize) -> f64,
    ) -> Self {
        let k = centres.len();
        let dim = centres.dim();
        let stride = stride(dim);
        let mut factors = vec![F::zero(); k * stride];
        let mut terms = vec![F::zero(); k * stride];
        let totals = (0..k).map(|c| {
            let mut total = 0.0;
            for j in 0..dim {
                let (factor, term) = of(c, j);
                factors[c * stride + j] = F::from_f64(factor);
                terms[c * stride + j] = F::from_f64(term);
                total += term;
            }
            F::from_f64(total)
        });
        let totals = totals.collect();
        let by_column = Some(ByColumn {
            factors,
            terms,
            totals,
            by_coordinate: Cached::default(),
            origins: Cached::default(),
        });
        let of_component = |c| Factor {
            added: added(c),
            ..Factor::ONE
        };
        Self {
            by_column,
            ..Self::new(centres, of_component)
        }
    }

    /// The centres.
    #[must_use]
    pub(crate) fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    /// How the squared distance to each centre becomes a cost (k).
    #[must_use]
    pub(crate) fn factors(&self) -> &[Factor] {
        &self.components
    }

    pub(super) fn components(&self) -> usize {
        self.components.len()
    }

    pub(super) fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        match &self.by_column {
            Some(scales) => scales.all(&self.centres, rows, out),
            None => rows.distances(&self.centres, out),
        }
        for (i, costs) in out.chunks_exact_mut(self.components()).enumerate() {
            let known = rows.known(i) as f64;
            for (cost, component) in costs.iter_mut().zip(&self.components) {
                *cost = component.cost(*cost, known);
            }
        }
    }

    pub(super) fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        match &self.by_column {
            Some(scales) => scales.some(&self.centres, rows, i, ids, out),
            None => rows.distances_to(i, &self.centres, ids, out),
        }
        let known = rows.known(i) as f64;
        for (cost, &c) in out.iter_mut().zip(ids) {
            *cost = self.components[c as usize].cost(*cost, known);
        }
    }

    /// 0 for factors by column: these costs are computed directly.
    pub(super) fn margin(&self, rows: &Rows<F>, i: usize) -> F {
        if self.by_column.is_some() {
            return F::zero();
        }
        let squared = rows.margin(i, &self.centres, F::INFINITY).to_f64();
        F::from_f64(self.largest.factor * squared + 4.0 * F::EPSILON * self.largest.added)
    }

    /// `None` where few components and many columns make products slower.
    pub(super) fn products(&self) -> Option<&Linear<F>> {
        let k = self.components();
        let dim = self.centres.dim();
        let make = || match &self.by_column {
            Some(_) if k <= DIRECT_COMPONENTS && dim >= DIRECT_COLUMNS => None,
            Some(ByColumn {
                factors, totals, ..
            }) => {
                let added = |c: usize| totals[c].to_f64() + self.components[c].added;
                Some(Linear::by_column(self.centres.seen(), factors, added))
            }
            // Rows that know every coordinate: others have no products.
            None => Some(Linear::new(self.centres.seen(), |c| {
                let component = self.components[c];
                Part {
                    factor: component.factor,
                    added: dim as f64 * component.per_coordinate + component.added,
                }
            })),
        };
        self.products.get(make).as_ref()
    }
}

impl<F: Float> ByColumn<F> {
    #[inline(never)]
    fn all(&self, centres: &Centres<F>, rows: &Rows<F>, out: &mut Vec<F>) {
        if let Some(known) = rows.entries() {
            let k = centres.len();
            let scales = self
                .by_coordinate
                .get(|| sparse::by_coordinate([&self.factors, &self.terms], centres.dim(), k));
            let turned = centres.by_coordinate();
            return match known.absent {
                Absent::Unknown => sparse::to_all::<F, true>(known, turned, scales, k, out),
                Absent::Zero => {
                    let seen = self.seen_by_sparse(centres, known.whole);
                    seen.to_all::<true>(known, turned, scales, out)
                }
            };
        }
        distance::scaled_to_all(&rows.values, &centres.values, self.of_rows(), out);
    }

    #[inline(never)]
    fn some(&self, centres: &Centres<F>, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        if let Some(known) = rows.entries() {
            let factors = &self.factors[..];
            let terms = &self.terms[..];
            let scales = Scales { factors, terms };
            let values = &centres.values;
            let dim = centres.dim();
            return match known.absent {
                Absent::Unknown => {
                    sparse::scaled_to_some(known.row(i), values, dim, scales, ids, out)
                }
                Absent::Zero => {
                    let seen = self.seen_by_sparse(centres, known.whole);
                    seen.to_some(known, i, ids, out)
                }
            };
        }
        distance::scaled_to_some(rows.row(i), &centres.values, self.of_rows(), ids, out);
    }

    /// The centres as sparse rows see them, all of which have the coordinates `whole`: those of their frame.
    fn seen_by_sparse<'a>(&'a self, centres: &'a Centres<F>, whole: &[u32]) -> Seen<'a, F> {
        let values = &centres.values;
        let factors = Some(&self.factors[..]);
        let dim = centres.dim();
        let terms = |c| &self.terms[c * stride(dim)..][..dim];
        let added = |c| terms(c).iter().map(|x| x.to_f64()).sum();
        let make = || Origin::of_all(values, factors, added, dim, whole);
        Seen {
            dim,
            centres: values,
            factors,
            origins: self.origins.get(make),
        }
    }

    /// For rows that know every coordinate.
    fn of_rows(&self) -> Scales<'_, F> {
        let factors = &self.factors;
        let terms = &self.totals;
        Scales { factors, terms }
    }
}

#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
struct StoredScaled<F> {
    centres: Centres<F>,
    components: Vec<Factor>,
    /// Factors and terms (k, d), if there are some for each coordinate.
    by_column: Option<[Vec<F>; 2]>,
}

serde_through! { StoredScaled: Scaled; }

impl<F: Float> From<&Scaled<F>> for StoredScaled<F> {
    fn from(scaled: &Scaled<F>) -> Self {
        let dim = scaled.centres.dim();
        let unpadded = |values: &[F]| {
            let rows = values.chunks_exact(stride(dim));
            rows.flat_map(|row| &row[..dim]).copied().collect()
        };
        let by_column = scaled.by_column.as_ref();
        Self {
            centres: scaled.centres.clone(),
            components: scaled.components.clone(),
            by_column: by_column.map(|scales| [unpadded(&scales.factors), unpadded(&scales.terms)]),
        }
    }
}

impl<F: Float> TryFrom<StoredScaled<F>> for Scaled<F> {
    type Error = FileFault;

    fn try_from(stored: StoredScaled<F>) -> Result<Self, FileFault> {
        let centres = stored.centres;
        let components = stored.components;
        let k = centres.len();
        let dim = centres.dim();
        rule(
            components.len() == k,
            "factors",
            "must be as many as centres",
        )?;
        let sound = |component: &Factor| {
            component.factor.is_finite() && component.per_coordinate.is_finite()
        };
        rule(components.iter().all(sound), "factors", "must be finite")?;
        let known = components
            .iter()
            .all(|component| component.added > f64::NEG_INFINITY);
        rule(known, "addends", "must be numbers")?;
        let Some([factors, terms]) = stored.by_column else {
            return Ok(Self::new(centres, |c| components[c]));
        };
        for values in [&factors, &terms] {
            all_finite("factors by column", values, k * dim)?;
        }
        let pair = |c: usize, j: usize| [&factors, &terms].map(|v| v[c * dim + j].to_f64());
        let factor = |c: usize, j: usize| pair(c, j).into();
        Ok(Self::by_column(centres, factor, |c| components[c].added))
    }
}

/// A cost with what is added for its component, clamped so that it stays finite. A point that is infinitely far from every
/// component still ranks a discarded component last.
#[inline(always)]
pub(crate) fn penalised<F: Float>(cost: f64, added: f64) -> F {
    let clamped = if added == f64::INFINITY {
        10.0 * F::LARGEST_COST
    } else if cost + added > F::LARGEST_COST {
        F::LARGEST_COST
    } else {
        // NaN, from a distance that overflowed, stays NaN.
        cost + added
    };
    F::from_f64(clamped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense, Sketch};
    use crate::io;
    use ndarray::Array2;

    const K: usize = 5;

    /// Centres, factors, and addends by coordinate (k, d), the last component discarded.
    fn case(dim: usize) -> (Scaled<f64>, Scaled<f64>, impl Fn(usize, usize) -> [f64; 2]) {
        let mut rng = Rng::from_seed(3);
        let means = Array2::from_shape_fn((K, dim), |_| rng.normal());
        let centres = Centres::of_coordinates(means.view());
        let pair = |c: usize, j: usize| [0.5 + (c + 2 * j) as f64 % 3.0, 0.1 * c as f64 - 0.2];
        let by_component = Scaled::new(centres.clone(), |c| Factor {
            factor: pair(c, 0)[0],
            per_coordinate: pair(c, 0)[1],
            added: added(c),
        });
        let by_column = Scaled::by_column(centres, |c, j| pair(c, j).into(), added);
        (by_component, by_column, pair)
    }

    fn added(c: usize) -> f64 {
        if c + 1 == K {
            f64::INFINITY
        } else {
            c as f64 - 2.0
        }
    }

    /// Costs of every row under all components, fast and direct, are the sums over the coordinates that the row knows.
    fn costs_are_naive(rows: &Rows<f64>) {
        let (by_component, by_column, pair) = case(rows.dim);
        let ids: Vec<u32> = (0..K as u32).collect();
        let mut fast = Vec::new();
        let mut direct = Vec::new();
        let mut known = Vec::new();
        for (scaled, columns) in [(by_component, false), (by_column, true)] {
            scaled.all(rows, &mut fast);
            for (i, fast) in fast.chunks_exact(K).enumerate() {
                scaled.some(rows, i, &ids, &mut direct);
                known.clear();
                match rows.entries() {
                    Some(entries) => known.extend_from_slice(entries.row(i).ids),
                    None => known.extend(0..rows.dim as u32),
                }
                let row = rows.coordinates(i);
                for c in 0..K - 1 {
                    let terms = known.iter().map(|&j| {
                        let j = j as usize;
                        let [factor, term] = pair(c, if columns { j } else { 0 });
                        factor * (row[j] - scaled.centres.row(c)[j]).powi(2) + term
                    });
                    let naive = terms.sum::<f64>() + added(c);
                    assert!((direct[c] - naive).abs() < 1e-12, "{} {naive}", direct[c]);
                    assert!((fast[c] - naive).abs() < 1e-11, "{} {naive}", fast[c]);
                }
                assert!(direct[K - 1] > 1e300 && direct[K - 1].is_finite());
            }
        }
    }

    #[test]
    fn costs_are_the_naive_sums_over_known_coordinates() {
        let mut rng = Rng::from_seed(4);
        let x = Array2::from_shape_fn((40, 9), |_| rng.normal());
        let mut rows = Rows::default();
        let data = Dense::new(x.view()).unwrap();
        data.load(0..40, &data.frame(), &mut rows).unwrap();
        costs_are_naive(&rows);
        let sketch = Sketch::new(x.view(), 4, 1).unwrap();
        sketch.load(0..40, &sketch.frame(), &mut rows).unwrap();
        costs_are_naive(&rows);
    }

    #[cfg(feature = "files")]
    #[test]
    fn they_come_back_from_bytes() {
        let (by_component, by_column, _) = case(7);
        for scaled in [by_component, by_column] {
            let bytes = io::to_vec(&scaled).unwrap();
            assert_eq!(io::only::<Scaled<f64>>("costs", &bytes).unwrap(), scaled);
        }
    }
}
