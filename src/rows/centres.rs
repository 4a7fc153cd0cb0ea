//! A set of centres in the coordinates of a frame.

use super::linear::{Linear, Part, Seen};
use super::{Frame, Rows};
use crate::base::cached::Cached;
use crate::base::float::{Float, held_in_range};
use crate::kernels::distance::Normed;
use crate::kernels::panels::Panels;
use crate::kernels::sparse::{Absent, Known};
use crate::kernels::zeros::{self, NonZeros, Origin};
use crate::kernels::{distance, sparse, stride};
use ndarray::{Array2, ArrayView2};

/// `k` centres in `d` dimensions, in the coordinates of a [`Frame`], padded.
#[derive(Clone, Debug, PartialEq)]
pub struct Centres<F> {
    dim: usize,
    pub(crate) values: Vec<F>,
    /// The variances of columns (d) about seeds, where a seeder knows them, in the unit of the frame, squared.
    spread: Vec<f64>,
    by_coordinate: Cached<Vec<F>>,
    non_zeros: Cached<Option<NonZeros<F>>>,
    origins: Cached<Vec<Origin>>,
    expanded: Cached<Expanded<F>>,
    products: Cached<Linear<F>>,
}

/// Distances are expanded about another point than the origin if the mean squared norm becomes more than this many times
/// smaller: the shift costs a difference per coordinate.
const SHIFT_RATIO: f64 = 4.0;

/// Centres as seen from a point near most of them, for distances by expansion about it (E21).
#[derive(Clone, Debug)]
pub(crate) struct Expanded<F> {
    dim: usize,
    /// The point, padded, and the differences, padded; `None` at the origin.
    relative: Option<(Vec<F>, Vec<F>)>,
    norms: Vec<F>,
    pub(crate) largest_norm: f64,
    panels: Cached<Panels<F>>,
}

impl<F: Float> Expanded<F> {
    fn of(centres: &Centres<F>) -> Self {
        let stride = stride(centres.dim);
        let relative = about(centres).map(|about| {
            let mut values = vec![F::zero(); centres.values.len()];
            distance::minus(&centres.values, &about, &mut values);
            (about, values)
        });
        let rows = relative.as_ref().map_or(&centres.values, |(_, rows)| rows);
        let norm = |row: &[F]| row.iter().map(|x| x.to_f64() * x.to_f64()).sum();
        let norms: Vec<F> = rows
            .chunks_exact(stride)
            .map(norm)
            .map(F::from_f64)
            .collect();
        let largest = |most: f64, norm: &F| most.max(norm.to_f64());
        Self {
            dim: centres.dim,
            largest_norm: norms.iter().fold(0.0, largest),
            norms,
            relative,
            panels: Cached::default(),
        }
    }

    /// The point, padded; `None` for the origin.
    pub(crate) fn about(&self) -> Option<&[F]> {
        self.relative.as_ref().map(|(about, _)| &about[..])
    }

    /// The differences, of the centres that this was made of, and their squared norms.
    pub(crate) fn normed<'a>(&'a self, centres: &'a Centres<F>) -> Normed<'a, F> {
        let relative = self.relative.as_ref();
        Normed {
            rows: relative.map_or(&centres.values, |(_, values)| values),
            norms: &self.norms,
        }
    }

    /// The centres for a search over all of them. Made when first asked for.
    pub(crate) fn panels(&self, centres: &Centres<F>) -> &Panels<F> {
        let stride = stride(self.dim);
        self.panels
            .get(|| Panels::pack(self.normed(centres).rows, stride, self.dim, &self.norms))
    }
}

/// The point near most of the centres: in every coordinate their mean, or the origin where that is no farther from them than
/// they are from their mean. An outlier moves the mean, but not so far from the origin. `None` if it is the origin, or no
/// better.
fn about<F: Float>(centres: &Centres<F>) -> Option<Vec<F>> {
    let stride = stride(centres.dim);
    let k = centres.len() as f64;
    let mut sums = vec![0.0; stride];
    let mut squares = vec![0.0; stride];
    for centre in centres.values.chunks_exact(stride) {
        for ((sum, square), x) in sums.iter_mut().zip(&mut squares).zip(centre) {
            let x = x.to_f64();
            *sum += x;
            *square += x * x;
        }
    }
    // The mean squared norms, as sums over coordinates.
    let mut from_origin = 0.0;
    let mut from_about = 0.0;
    let about = sums.iter().zip(&squares).map(|(sum, square)| {
        let mean = sum / k;
        let square = square / k;
        let variance = square - mean * mean;
        from_origin += square;
        if mean * mean > variance {
            from_about += variance;
            F::from_f64(mean)
        } else {
            from_about += square;
            F::zero()
        }
    });
    let about: Vec<F> = about.collect();
    (from_origin > SHIFT_RATIO * from_about).then_some(about)
}

impl<F: Float> Centres<F> {
    pub(crate) fn with_capacity(k: usize, dim: usize) -> Self {
        let values = Vec::with_capacity(k * stride(dim));
        Self {
            dim,
            values,
            spread: Vec::new(),
            by_coordinate: Cached::default(),
            non_zeros: Cached::default(),
            origins: Cached::default(),
            expanded: Cached::default(),
            products: Cached::default(),
        }
    }

    /// Centres (k, d) in the data's own unit, into the frame.
    pub(crate) fn enter(centres: ArrayView2<'_, F>, frame: &Frame<F>) -> Self {
        let mut entered = Self::with_capacity(centres.nrows(), frame.dim());
        let mut row = vec![F::zero(); stride(frame.dim())];
        for centre in centres.rows() {
            frame.enter(centre.iter().copied(), &mut row);
            entered.push(&row);
        }
        entered
    }

    /// Centres (k, d) in the columns of a frame, not rounded.
    pub(crate) fn enter_wide(centres: &Array2<f64>, frame: &Frame<F>) -> Self {
        let mut entered = Self::with_capacity(centres.nrows(), frame.dim());
        let mut row = vec![F::zero(); stride(frame.dim())];
        for centre in centres.rows() {
            frame.enter_exact(&centre.to_vec(), &mut row);
            entered.push(&row);
        }
        entered
    }

    /// Seeds about which columns have these variances (d), in the unit of the frame, squared.
    pub(crate) fn with_spread(self, spread: Vec<f64>) -> Self {
        Self { spread, ..self }
    }

    /// Gives these variances away, or none.
    pub(crate) fn take_spread(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.spread)
    }

    /// Centres (k, d) in the coordinates of a frame already.
    pub(crate) fn of_coordinates(centres: ArrayView2<'_, F>) -> Self {
        let mut padded = Self::with_capacity(centres.nrows(), centres.ncols());
        let mut row = vec![F::zero(); stride(centres.ncols())];
        for centre in centres.rows() {
            for (out, &x) in row.iter_mut().zip(centre) {
                *out = x;
            }
            padded.push(&row);
        }
        padded
    }

    /// The centres (k, columns) in the data's own unit, rounded once.
    pub(crate) fn leave(&self, frame: &Frame<F>) -> Array2<F> {
        self.leave_wide(frame).mapv(held_in_range)
    }

    /// As [`leave`](Self::leave), not rounded.
    pub(crate) fn leave_wide(&self, frame: &Frame<F>) -> Array2<f64> {
        let exact = |(c, j): (usize, usize)| frame.leave_exact(j, self.row(c)[j]);
        let mut centres = Array2::from_shape_fn((self.len(), self.dim), exact);
        if let Some(basis) = frame.basis() {
            for centre in centres
                .as_slice_mut()
                .unwrap_or_default()
                .chunks_exact_mut(self.dim)
            {
                basis.leave(centre);
            }
        }
        centres
    }

    /// `number` of the centres, at evenly spaced numbers.
    pub(crate) fn evenly(&self, number: usize) -> Self {
        let mut some = Self::with_capacity(number, self.dim);
        (0..number).for_each(|place| some.push(self.row(place * self.len() / number)));
        some
    }

    pub(crate) fn push(&mut self, row: &[F]) {
        debug_assert_eq!(row.len(), stride(self.dim));
        self.forget();
        self.values.extend_from_slice(row);
    }

    /// Number of centres, k.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / stride(self.dim)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of coordinates, d.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Centre `c`: `d` numbers, padded.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, c: usize) -> &[F] {
        let stride = stride(self.dim);
        &self.values[c * stride..(c + 1) * stride]
    }

    /// The coordinates of all centres (k, d), without padding.
    pub(crate) fn coordinates(&self) -> impl Iterator<Item = f64> {
        let rows = (0..self.len()).flat_map(|c| &self.row(c)[..self.dim()]);
        rows.map(|z| z.to_f64())
    }

    /// The centres by coordinate: (d, k), each row padded with zeros to a [`stride`] of `k`. Made when first asked for.
    pub(crate) fn by_coordinate(&self) -> &[F] {
        self.by_coordinate
            .get(|| sparse::by_coordinate([&self.values], self.dim, self.len()))
    }

    /// The coordinates that are not 0, if they are few. Made when first asked for.
    pub(crate) fn non_zeros(&self) -> Option<&NonZeros<F>> {
        self.non_zeros
            .get(|| NonZeros::of(&self.values, self.dim))
            .as_ref()
    }

    /// The centres as sparse rows see them, all of which have the coordinates `whole`: those of their frame.
    pub(crate) fn seen_by_sparse(&self, whole: &[u32]) -> zeros::Seen<'_, F> {
        let make = || Origin::of_all(&self.values, None, |_| 0.0, self.dim, whole);
        zeros::Seen {
            dim: self.dim,
            centres: &self.values,
            factors: None,
            origins: self.origins.get(make),
        }
    }

    /// The centres as rows see them that expand distances (E21). Made when first asked for.
    pub(crate) fn expanded(&self) -> &Expanded<F> {
        self.expanded.get(|| Expanded::of(self))
    }

    /// Squared distances as products (E46). Made when first asked for.
    pub(crate) fn products(&self) -> &Linear<F> {
        let distance = Part {
            factor: 1.0,
            added: 0.0,
        };
        self.products.get(|| Linear::new(self.seen(), |_| distance))
    }

    /// The centres as seen from a point near most of them.
    pub(crate) fn seen(&self) -> Seen<'_, F> {
        let expanded = self.expanded();
        Seen {
            dim: self.dim,
            about: expanded.about(),
            differences: expanded.normed(self).rows,
        }
    }

    /// Lets `update` change every centre (its number, and its `d` coordinates in the frame).
    pub fn update(&mut self, mut update: impl FnMut(usize, &mut [F])) {
        self.forget();
        let stride = stride(self.dim);
        let dim = self.dim;
        for (c, row) in self.values.chunks_exact_mut(stride).enumerate() {
            update(c, &mut row[..dim]);
        }
    }

    /// Puts a padded row in the place of centre `c`.
    pub(crate) fn replace(&mut self, c: usize, row: &[F]) {
        let stride = stride(self.dim);
        self.forget();
        self.values[c * stride..(c + 1) * stride].copy_from_slice(row);
    }

    /// Moves every centre to the weighted mean of the rows with its label, and each of its coordinates to that of the rows that know
    /// it; where there is none, it stays.
    pub(crate) fn move_to_means(
        &mut self,
        rows: &Rows<F>,
        weight: impl Fn(usize) -> f64,
        labels: &[u32],
    ) {
        let stride = stride(self.dim);
        let mut mass = vec![0.0; self.len()];
        let mut sums = vec![0.0; self.values.len()];
        let entries = rows.entries();
        let known = match entries.as_ref().map(|rows| rows.absent) {
            Some(Absent::Unknown) => sums.len(),
            Some(Absent::Zero) | None => 0,
        };
        let mut known = vec![0.0; known];
        for (i, &label) in labels.iter().enumerate() {
            let weight = weight(i);
            let first = label as usize * stride;
            mass[label as usize] += weight;
            let Some(entries) = &entries else {
                for (sum, x) in sums[first..][..stride].iter_mut().zip(rows.row(i)) {
                    *sum += weight * x.to_f64();
                }
                continue;
            };
            let Known { ids, values } = entries.row(i);
            for (&j, x) in ids.iter().zip(values) {
                sums[first + j as usize] += weight * x.to_f64();
            }
            let places = ids.iter().take(known.len());
            places.for_each(|j| known[first + *j as usize] += weight);
        }
        self.update(|c, centre| {
            for (j, mu) in centre.iter_mut().enumerate() {
                let place = c * stride + j;
                let mass = *known.get(place).unwrap_or(&mass[c]);
                if mass > 0.0 {
                    *mu = F::from_f64(sums[place] / mass);
                }
            }
        });
    }

    pub(crate) fn update_where(&mut self, wanted: &[bool], from: &Self) {
        self.update(|c, row| {
            if wanted[c] {
                let dim = row.len();
                row.copy_from_slice(&from.row(c)[..dim]);
            }
        });
    }

    fn forget(&mut self) {
        self.by_coordinate = Cached::default();
        self.non_zeros = Cached::default();
        self.origins = Cached::default();
        self.expanded = Cached::default();
        self.products = Cached::default();
    }
}
