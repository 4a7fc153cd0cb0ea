//! Squared distances of rows that a transform whitens: components with full covariance matrices.

use super::observed::Observed;
use super::patterns::Expects;
use super::scaled::penalised;
use super::whitening::{Rounding, Transforms, Whitening};
use super::{Cost, Factor, Scaled};
use crate::base::cached::Cached;
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::simd::{LANES, vectorised};
use crate::kernels::panels::{self, Panels};
use crate::kernels::quadratic::Columns;
use crate::kernels::sparse::Known;
use crate::kernels::{soft, stride};
use crate::rows::{Centres, Frame, Linear, Part, Ranking, Rows, Seen, largest_error};
use std::fmt;

/// The costs $\lvert M_c (z - m_c) \rvert^2 + a_c$ (E52), as the families of the library say them, and those of rows that know some of
/// their coordinates.
#[derive(Clone, Copy)]
pub struct Whitened<'m, F: Float>(Kind<'m, F>, Observed<'m>);

#[derive(Clone, Copy)]
enum Kind<'m, F: Float> {
    Shared(&'m Shared<F>),
    Each(&'m dyn Transforms, &'m [f64]),
}

impl<F: Float> fmt::Debug for Whitened<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Whitened costs of {} components", self.components())
    }
}

/// Rows and centres that one transform whitens, as seen from a point near the centres: in `f64` whatever the type of the data,
/// for the farther rows are from the origin in deviations of the narrowest direction, the more digits their differences lose.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shared<F> {
    axes: Axes,
    /// Squared distances with what is added for each component.
    whitened: Scaled<f64>,
    /// They as products, in the type of the data.
    products: Cached<Linear<F>>,
}

/// The rows of a transform, and of zeros for the padding, [`AXES`](Axes::AXES) at a time: a triangle has more zeros beyond them.
#[derive(Clone, Debug, PartialEq)]
struct Axes(Vec<Panels<f64>>);

impl Axes {
    /// As many as are multiplied at a time.
    const AXES: usize = 32;

    /// For a triangle, and the whitened point that rows are seen from (padded).
    fn new(whitening: &Whitening, about: &[f64]) -> Self {
        let dim = whitening.mean.len();
        let mut rows = linalg::unpacked(&whitening.factor, dim);
        rows.resize(stride(dim) * dim, 0.0);
        let away: Vec<f64> = about.iter().map(|x| -x).collect();
        let parts = rows
            .chunks(Self::AXES * dim)
            .zip(away.chunks(Self::AXES))
            .enumerate();
        let parts = parts.map(|(part, (rows, away))| {
            let known = dim.min((part + 1) * Self::AXES);
            Panels::scaled(rows, dim, known, 1.0, away)
        });
        Self(parts.collect())
    }

    /// Whitens padded rows of `dim` coordinates.
    fn whiten<F: Float>(&self, rows: &[F], dim: usize, wide: &mut Vec<f64>, out: &mut Vec<f64>) {
        wide.clear();
        wide.extend(rows.iter().map(|z| z.to_f64()));
        out.resize(rows.len(), 0.0);
        for (part, axes) in self.0.iter().enumerate() {
            panels::project(wide, stride(dim), axes, part * Self::AXES, out);
        }
    }
}

impl<F: Float> Shared<F> {
    /// For means (k, d) and what is added for each component (k).
    pub(crate) fn new(whitening: &Whitening, means: &[f64], added: &[f64]) -> Self {
        let dim = whitening.mean.len();
        let mut rows = vec![0.0; added.len() * stride(dim)];
        let places = rows.chunks_exact_mut(stride(dim));
        for (row, mean) in places.zip(means.chunks_exact(dim)) {
            row[..dim].copy_from_slice(mean);
        }
        let seen_from = |about: &[f64]| {
            let axes = Axes::new(whitening, about);
            let mut whitened = Vec::new();
            axes.whiten(&rows, dim, &mut Vec::new(), &mut whitened);
            let mut centres = Centres::with_capacity(added.len(), dim);
            let of_components = whitened.chunks_exact(stride(dim));
            of_components.for_each(|centre| centres.push(centre));
            (axes, centres)
        };
        let (mut axes, mut centres) = seen_from(&vec![0.0; stride(dim)]);
        if let Some(about) = centres.seen().about {
            (axes, centres) = seen_from(about);
        }
        let whitened = Scaled::new(centres, |c| Factor {
            added: added[c],
            ..Factor::ONE
        });
        Self {
            axes,
            whitened,
            products: Cached::default(),
        }
    }

    /// The whitened centres.
    pub(crate) fn centres(&self) -> &Centres<f64> {
        self.whitened.centres()
    }

    /// Rows in the coordinates of the whitened centres, with their weights.
    pub(crate) fn enter(&self, rows: &Rows<F>, wide: &mut Vec<f64>, out: &mut Rows<f64>) {
        out.reset(rows.len(), rows.dim);
        out.weights.extend_from_slice(&rows.weights);
        self.axes
            .whiten(&rows.values, rows.dim, wide, &mut out.values);
    }

    /// Whitened rows in the type of the data, and the costs as products of these: nothing where half of the components are so far
    /// away, for their variance, that their costs are computed directly.
    pub(crate) fn products(
        &self,
        rows: &Rows<f64>,
        beta: f64,
        out: &mut Vec<F>,
    ) -> Option<&Linear<F>> {
        let centres = self.centres();
        let most = Frame::<F>::most().to_f64();
        // Products of rows that are farther away say that their costs must be computed directly.
        let rounded = |values: &[f64], out: &mut Vec<F>| {
            out.clear();
            out.extend(values.iter().map(|z| F::from_f64(z.clamp(-most, most))));
        };
        let linear = self.products.get(|| {
            let mut differences = Vec::new();
            rounded(&centres.values, &mut differences);
            let seen = Seen {
                dim: centres.dim(),
                about: None,
                differences: &differences,
            };
            Linear::new(seen, |c| Part {
                factor: 1.0,
                added: self.whitened.factors()[c].added,
            })
        });
        let near = 2 * linear.terms(beta).tight.len() <= centres.len();
        near.then(|| {
            rounded(&rows.values, out);
            linear
        })
    }

    /// Costs that may be the best of their row are computed directly.
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        let mut entered = Rows::default();
        let cost = Cost::Scaled(&self.whitened);
        self.enter(rows, &mut Vec::new(), &mut entered);
        let mut table = Vec::new();
        let mut ranking = Ranking::default();
        cost.all(&entered, &mut table);
        out.clear();
        for (i, costs) in table.chunks_exact_mut(cost.components()).enumerate() {
            cost.ranked(&entered, i, costs, 1, &mut ranking);
            ranking.put(costs);
            out.extend(costs.iter().map(|cost| penalised::<F>(*cost, 0.0)));
        }
    }

    /// The costs of a row that was whitened.
    pub(crate) fn some_entered(&self, rows: &Rows<f64>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let mut costs = Vec::new();
        self.whitened.some(rows, i, ids, &mut costs);
        out.clear();
        out.extend(costs.into_iter().map(|cost| penalised::<F>(cost, 0.0)));
    }

    fn some(&self, row: &[F], ids: &[u32], out: &mut Vec<F>) {
        let mut whitened = Vec::new();
        let dim = self.centres().dim();
        self.axes.whiten(row, dim, &mut Vec::new(), &mut whitened);
        self.some_entered(&Rows::of_padded(&whitened, dim), 0, ids, out);
    }
}

impl<'m, F: Float> Whitened<'m, F> {
    /// One transform for all components.
    pub(crate) fn shared(shared: &'m Shared<F>, observed: Observed<'m>) -> Self {
        Self(Kind::Shared(shared), observed)
    }

    /// A transform for each component, and what is added (k).
    pub(crate) fn each(added: &'m [f64], observed: Observed<'m>) -> Self {
        Self(Kind::Each(observed.transforms, added), observed)
    }

    pub(super) fn completed(&self, row: Known<'_, F>, c: usize) -> Vec<f64> {
        self.1.completed(row, c)
    }

    /// The one transform for all components, if there is one.
    pub(crate) fn one(&self) -> Option<&'m Shared<F>> {
        match self.0 {
            Kind::Shared(shared) => Some(shared),
            Kind::Each(..) => None,
        }
    }

    /// Costs of a transform for each component, with `beta` nats for a cost of 1, where all components share a row: (len, k padded
    /// to whole vectors) into `out`. `false`, and nothing done, if there is one transform for all.
    pub(crate) fn fill(&self, rows: &Rows<F>, beta: f64, out: &mut [F]) -> bool {
        match self.0 {
            Kind::Shared(_) => false,
            Kind::Each(transforms, added) => {
                all_of_each(transforms, added, rows, Some(beta), out);
                true
            }
        }
    }

    pub(super) fn components(&self) -> usize {
        match self.0 {
            Kind::Shared(shared) => shared.whitened.components(),
            Kind::Each(_, added) => added.len(),
        }
    }

    pub(super) fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        if let Some(entries) = rows.entries() {
            return self.1.all(entries, out);
        }
        match self.0 {
            Kind::Shared(shared) => shared.all(rows, out),
            Kind::Each(transforms, added) => {
                let k = added.len();
                let mut padded = Vec::new();
                let stride = k.next_multiple_of(LANES);
                padded.resize(rows.len() * stride, F::INFINITY);
                all_of_each(transforms, added, rows, None, &mut padded);
                out.clear();
                let costs = padded.chunks_exact(stride);
                costs.for_each(|costs| out.extend_from_slice(&costs[..k]));
            }
        }
    }

    pub(super) fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        if let Some(entries) = rows.entries() {
            return self.1.some(entries.row(i), ids, out);
        }
        let (transforms, added) = match self.0 {
            Kind::Shared(shared) => return shared.some(rows.row(i), ids, out),
            Kind::Each(transforms, added) => (transforms, added),
        };
        let mut difference = Vec::new();
        out.clear();
        out.extend(ids.iter().map(|&c| {
            let form = transforms
                .transform(c as usize)
                .form(rows.row(i), &mut difference);
            held::<F>(form + added[c as usize])
        }));
    }
}

/// The costs of all rows under all components: (len, k padded to whole vectors) into `out`, where the padding stays as it is. They
/// are computed in the type of the data where it has digits enough. Costs that may be the best of their row are computed directly,
/// as [`Whitened::some`] does; with `beta` nats for a cost of 1, only where there are several or the row
/// is so far away that its cost has too few digits.
fn all_of_each<F: Float>(
    transforms: &dyn Transforms,
    added: &[f64],
    rows: &Rows<F>,
    beta: Option<f64>,
    out: &mut [F],
) {
    let components: Vec<&Whitening> = (0..added.len()).map(|c| transforms.transform(c)).collect();
    let n = rows.len();
    let k = added.len();
    let dim = rows.dim;
    let stride = k.next_multiple_of(LANES);
    let line = n + LANES;
    let mut narrow = Columns::<F>::new(n, dim, |i| rows.row(i));
    let mut wide = None;
    let mut roundings = Vec::with_capacity(k);
    let mut by_component = vec![F::INFINITY; k.min(LANES).next_multiple_of(4) * line];
    for first in (0..k).step_by(LANES) {
        let group = first..k.min(first + LANES);
        for (c, costs) in group.clone().zip(by_component.chunks_exact_mut(line)) {
            let component = components[c];
            let added = added[c];
            let mean = &component.mean;
            let factor = &component.factor;
            if component.fits_narrow() {
                narrow.forms(mean, factor, |at, forms, _| {
                    hold(forms, added, &mut costs[at..])
                });
                roundings.push(component.rounding::<F>());
            } else {
                let wide = wide.get_or_insert_with(|| Columns::<f64>::new(n, dim, |i| rows.row(i)));
                wide.forms(mean, factor, |at, forms, _| {
                    hold(forms, added, &mut costs[at..])
                });
                roundings.push(component.rounding::<f64>());
            }
        }
        by_component[group.len() * line..].fill(F::INFINITY);
        put_rows(&by_component, line, &mut out[first..], stride);
    }
    let worst = Rounding::worst(&roundings);
    let live = added.iter().filter(|a| **a < F::LARGEST_COST);
    let most_added = live.fold(0.0f64, |most, a| most.max(a.abs()));
    // Bound on the error of a cost of any component.
    let bound = |cost: f64| worst.of(cost.abs() + most_added) + F::EPSILON * cost.abs();
    let reach = |least: F| {
        let upper = least.to_f64() + bound(least.to_f64());
        F::from_f64(upper + worst.beyond(bound(upper)))
    };
    let mut contenders = Vec::new();
    let mut ranking = Ranking::default();
    let mut difference = Vec::new();
    let none = vec![F::zero(); stride];
    soft::contenders(out, &none, reach, &mut contenders);
    let rows_of = out.chunks_exact_mut(stride).zip(contenders);
    for (i, (costs, contender)) in rows_of.enumerate() {
        let least = contender.upper;
        let exact = |beta: f64| beta * bound(least.to_f64()) <= largest_error::<F>(dim);
        if contender.number == 1 && beta.is_some_and(exact) {
            continue;
        }
        ranking.reach(costs, &none, k, reach(least));
        let bounds = |c: usize, cost: F| {
            let error = roundings[c].of((cost.to_f64() - added[c]).abs());
            (cost.to_f64(), error + F::EPSILON * cost.to_f64().abs())
        };
        let best = ranking.ids.iter().fold(f64::INFINITY, |best, &c| {
            let (cost, error) = bounds(c as usize, costs[c as usize]);
            best.min(cost + error)
        });
        for c in ranking.ids.iter().map(|c| *c as usize) {
            let (cost, error) = bounds(c, costs[c]);
            if cost - error <= best {
                costs[c] = held(components[c].form(rows.row(i), &mut difference) + added[c]);
            }
        }
    }
}

/// The numbers of a row out of `lines`, a multiple of 4, into rows of `stride`: four lines and four rows at a time, so that numbers
/// move within registers.
fn put_rows<F: Float>(lines: &[F], line: usize, out: &mut [F], stride: usize) {
    vectorised!({
        for (four, rows) in out.chunks_mut(4 * stride).enumerate() {
            for (part, lines) in lines.chunks_exact(4 * line).enumerate() {
                let of_lines: [_; 4] =
                    std::array::from_fn(|c| lines[c * line..][..line].as_chunks::<4>().0[four]);
                for (r, row) in rows.chunks_mut(stride).enumerate() {
                    let row = &mut row[4 * part..][..4];
                    for c in 0..4 {
                        row[c] = of_lines[c][r];
                    }
                }
            }
        }
    });
}

/// Costs from forms and what is added to them.
fn hold<T: Float, F: Float>(forms: &[T], added: f64, costs: &mut [F]) {
    vectorised!({
        for (cost, form) in costs.iter_mut().zip(forms) {
            *cost = held(form.to_f64() + added);
        }
    });
}

/// Squared Mahalanobis distances of all rows to `k` components in `f64`, shown to `see` with the component and the row.
pub(crate) fn forms<F: Float>(
    transforms: &impl Transforms,
    rows: &Rows<F>,
    k: usize,
    mut see: impl FnMut(usize, usize, f64),
) {
    let mut columns = Columns::<f64>::new(rows.len(), rows.dim, |i| rows.row(i));
    for c in 0..k {
        let Whitening { mean, factor, .. } = transforms.transform(c);
        columns.forms(mean, factor, |first, forms, _| {
            let rows = (first..).zip(forms);
            rows.for_each(|(i, form)| see(c, i, *form));
        });
    }
}

/// A cost, clamped so that it stays finite; NaN becomes the largest cost.
fn held<F: Float>(cost: f64) -> F {
    F::from_f64(cost.min(F::LARGEST_COST))
}

#[cfg(test)]
mod tests {
    use super::super::whitening::MOST_INFLATION;
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use ndarray::Array2;

    /// Components of 6 columns with about this variance inflation, and rows near them and far away.
    fn case<F: Float>(noise: f64) -> (Vec<Whitening>, Rows<F>) {
        let mut rng = Rng::from_seed(5);
        let turn = rng.normals(2, 6);
        let x = Array2::from_shape_fn((300, 6), |(i, j)| {
            let along = ((37 * i) % 101) as f64 / 30.0 + 3.0 * (i % 4) as f64;
            let size = if i == 0 { 1e6 } else { 1.0 };
            F::from_f64(size * (along * turn[[0, j]] + turn[[1, j]] + noise * rng.normal()))
        });
        let data = Dense::new(x.view()).unwrap();
        let mut rows = Rows::default();
        data.load(0..300, &data.frame(), &mut rows).unwrap();
        let components = (0..4).map(|c| {
            let row = |i: usize| rows.row(i)[..6].iter().map(|z| z.to_f64());
            let mean: Vec<f64> = row(c + 4).collect();
            let mut covariance = vec![0.0; 36];
            for i in (c..300).step_by(4).skip(1) {
                let u: Vec<f64> = row(i).zip(&mean).map(|(z, m)| z - m).collect();
                for (place, sum) in covariance.iter_mut().enumerate() {
                    *sum += u[place / 6] * u[place % 6] / 74.0;
                }
            }
            let whitening = Whitening::new(mean, &covariance, vec![0.0; 6], None);
            whitening.unwrap().unwrap()
        });
        (components.collect(), rows)
    }

    fn costs_are_direct<F: Float>(noise: f64, within: f64) {
        let (components, rows) = case::<F>(noise);
        let added = [0.3, -1.0, 2.0, 0.0];
        let mut fast = Vec::new();
        let mut direct = Vec::new();
        let observed = Observed {
            transforms: &components,
            precisions: &[],
            means: None,
            penalties: &added,
            ridge: &[],
            unit: 1.0,
        };
        let cost = Whitened::each(&added, observed);
        cost.all(&rows, &mut fast);
        for (i, fast) in fast.chunks_exact(4).enumerate() {
            cost.some(&rows, i, &[0, 1, 2, 3], &mut direct);
            let lower = |a: &usize, b: &usize| direct[*a].to_f64().total_cmp(&direct[*b].to_f64());
            let best = (0..4).min_by(lower).unwrap();
            assert_eq!(fast[best], direct[best]);
            for (fast, direct) in fast.iter().zip(&direct) {
                let fast = fast.to_f64();
                let direct = direct.to_f64();
                assert!(
                    (fast - direct).abs() <= within * direct.abs().max(6.0),
                    "{fast} {direct}"
                );
                assert!(fast >= direct.min(fast) && fast.is_finite());
            }
        }
    }

    /// Also where columns nearly determine one another: in `f32` alone costs would be off by whole nats.
    #[test]
    fn costs_have_their_digits() {
        for noise in [1.0, 1e-1, 1e-3] {
            costs_are_direct::<f64>(noise, 1e-9);
            costs_are_direct::<f32>(noise, 1e-5);
        }
        let wide = case::<f64>(1.0).0;
        let narrow = case::<f64>(1e-3).0;
        assert!(wide.iter().all(|c| c.inflation < MOST_INFLATION));
        assert!(narrow.iter().all(|c| c.inflation > MOST_INFLATION));
    }
}
