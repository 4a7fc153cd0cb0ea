//! Weighted statistics of components: what a block of rows adds to an M-step.

use super::products::Products;
use super::scatter::Scatter;
use super::sparse::Sparse;
use crate::base::float::Float;
use crate::kernels::stride;
use crate::rows::Centres;

/// Which second moments a component family needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecondMoments {
    /// None of rows, but the sum of all squared distances, and the weight of all coordinates.
    #[default]
    Total,
    /// One per component (k): $\sum_n w_n q_{nc} \lVert z_n - \mu_c \rVert^2$.
    PerComponent,
    /// One per component and coordinate (k, d): $\sum_n w_n q_{nc} (z_{nj} - \mu_{cj})^2$.
    PerCoordinate,
    /// One per pair of coordinates (d, d), of all components together, about one point.
    Pairs,
    /// One per component and pair of coordinates (k, d, d).
    PerPair,
}

/// An axis of second moments, or of the covariances that follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Components,
    Columns,
}

impl SecondMoments {
    pub(crate) const fn axes(self) -> &'static [Axis] {
        match self {
            Self::Total => &[],
            Self::PerComponent => &[Axis::Components],
            Self::PerCoordinate => &[Axis::Components, Axis::Columns],
            Self::Pairs => &[Axis::Columns, Axis::Columns],
            Self::PerPair => &[Axis::Components, Axis::Columns, Axis::Columns],
        }
    }

    /// How many there are.
    fn number(self, k: usize, dim: usize) -> usize {
        match self.axes() {
            [] => 2,
            [Axis::Columns, _] => dim * dim,
            [_, _, _] => k * dim * dim,
            _ => k * self.of_component(dim),
        }
    }

    /// How many a component has for its coordinates, one by one or all together.
    pub(super) fn of_component(self, dim: usize) -> usize {
        match self {
            Self::PerComponent => 1,
            Self::PerCoordinate => stride(dim),
            _ => 0,
        }
    }

    /// Which of them an entry of component `c` belongs to, at `place` among the (k, d) padded numbers.
    #[inline(always)]
    pub(super) fn sum_of(self, c: usize, place: usize) -> Option<usize> {
        match self {
            Self::PerComponent => Some(c),
            Self::PerCoordinate => Some(place),
            _ => None,
        }
    }
}

/// Mass, first and [second](SecondMoments) moments of every component about its current mean (E5), in `f64`, in
/// the coordinates of the frame.
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} (z_n - \mu_c)$$
///
/// About the mean nothing cancels in the new variance. Rows that know only some of their coordinates (a
/// [`Sketch`](crate::data::Sketch)) add to those alone: then every coordinate has a mass of its own (E28). Moments of disjoint
/// blocks add up: of rows, of blocks from disk, of partitions of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    pub(crate) dim: usize,
    /// (k).
    pub(crate) mass: Vec<f64>,
    /// How far centres move, in distances to their means (E62): 1, unless a phase says otherwise.
    pub(crate) step: f64,
    /// (k, d), padded: the mass per coordinate. Empty as long as every row knows every coordinate: then each
    /// coordinate has the mass of its component.
    pub(super) observed: Vec<f64>,
    /// (k): which of the rows of `first` each component has; 0 for none yet.
    pub(super) places: Vec<u32>,
    /// (1 + components met, d), padded: a row of zeros, and the first moments. Rows that come in the order of their
    /// components meet few of them.
    pub(super) first: Vec<f64>,
    pub(crate) kind: SecondMoments,
    pub(crate) second: Vec<f64>,
    /// Sparse rows whose zeros are yet to be added.
    pub(super) sparse: Sparse,
    pub(super) own: Vec<f64>,
    pub(crate) of_kind: OfKind,
}

/// Sums that a kind of components has besides masses, first and second moments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OfKind {
    None,
    /// Second moments of coordinates may be sums in the type of the data: whether some are.
    Narrow(bool),
    /// Second moments of all components together.
    Shared(Scatter),
    Products(Products),
    /// The sums of the parts of a product, each of its columns.
    Parts(Vec<Moments>),
}

impl OfKind {
    pub(super) fn scatter(&mut self) -> Option<&mut Scatter> {
        match self {
            Self::Shared(scatter) => Some(scatter),
            _ => None,
        }
    }

    pub(crate) fn products(&mut self) -> Option<&mut Products> {
        match self {
            Self::Products(products) => Some(products),
            _ => None,
        }
    }

    pub(crate) fn parts(&mut self) -> &mut [Moments] {
        match self {
            Self::Parts(parts) => parts,
            _ => &mut [],
        }
    }
}

impl Moments {
    /// No rows added yet, for `k` components in `d` dimensions.
    #[must_use]
    pub fn zeros(k: usize, dim: usize, kind: SecondMoments) -> Self {
        let of_kind = match kind.axes() {
            [Axis::Columns, ..] => OfKind::Shared(Scatter::default()),
            _ => OfKind::None,
        };
        Self {
            dim,
            mass: vec![0.0; k],
            step: 1.0,
            observed: Vec::new(),
            places: vec![0; k],
            first: vec![0.0; stride(dim)],
            kind,
            second: vec![0.0; kind.number(k, dim)],
            sparse: Sparse::default(),
            own: Vec::new(),
            of_kind,
        }
    }

    /// As above: masses and first moments, with the totals.
    pub(crate) fn totals(k: usize, dim: usize) -> Self {
        Self::zeros(k, dim, SecondMoments::Total)
    }

    /// As above: with those of all pairs of coordinates of each component.
    pub(crate) fn pairs(k: usize, dim: usize) -> Self {
        Self::zeros(k, dim, SecondMoments::PerPair)
    }

    /// Whether second moments are [totals](SecondMoments::Total).
    #[inline(always)]
    pub(crate) fn has_totals(&self) -> bool {
        self.kind == SecondMoments::Total
    }

    /// Whether second moments are those of all components together.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.of_kind, OfKind::Shared(_))
    }

    /// With sums of a kind of components.
    pub(crate) fn with(self, of_kind: OfKind) -> Self {
        Self { of_kind, ..self }
    }

    /// With this many sums of the family's own, which add up like the others.
    #[must_use]
    pub fn with_own(self, sums: usize) -> Self {
        Self {
            own: vec![0.0; sums],
            ..self
        }
    }

    /// The sums of the family's own.
    #[must_use]
    pub fn own(&self) -> &[f64] {
        &self.own
    }

    /// The sums of the family's own, to be added to.
    pub fn own_mut(&mut self) -> &mut [f64] {
        &mut self.own
    }

    /// Mass $m_c$ of component `c`: the weight of the points of the component.
    #[must_use]
    pub fn mass(&self, c: usize) -> f64 {
        self.mass[c]
    }

    /// The masses as shares of their sum (k): new mixing proportions (E32). Each is at least the smallest normal number, so that
    /// its logarithm is finite.
    #[must_use]
    pub fn proportions(&self) -> Vec<f64> {
        let total: f64 = self.mass.iter().sum();
        let share = |mass: &f64| (mass / total).max(f64::MIN_POSITIVE);
        self.mass.iter().map(share).collect()
    }

    /// Mass of coordinate `j` of component `c`: the weight of the points of the component that know `j`.
    #[must_use]
    pub fn observed(&self, c: usize, j: usize) -> f64 {
        if self.observed.is_empty() {
            self.mass[c]
        } else {
            self.observed[c * stride(self.dim) + j]
        }
    }

    /// Mass of all coordinates of component `c` together: $d \thinspace m_c$ where every row knows all.
    #[must_use]
    pub(crate) fn entries(&self, c: usize) -> f64 {
        if self.observed.is_empty() {
            self.dim as f64 * self.mass[c]
        } else {
            (0..self.dim).map(|j| self.observed(c, j)).sum()
        }
    }

    /// First moment $f_c$ of component `c`: `d` numbers, padded with zeros.
    #[must_use]
    pub fn first(&self, c: usize) -> &[f64] {
        let stride = stride(self.dim);
        &self.first[self.places[c] as usize * stride..][..stride]
    }

    /// Where the first moment of component `c` starts.
    #[inline(always)]
    pub(super) fn place(&mut self, c: usize) -> usize {
        let stride = stride(self.dim);
        if self.places[c] == 0 {
            self.places[c] = (self.first.len() / stride) as u32;
            self.first.resize(self.first.len() + stride, 0.0);
        }
        self.places[c] as usize * stride
    }

    /// How far the mean of component `c` is from its centre: not known, so infinite, where rows know different coordinates.
    pub(crate) fn offset(&self, c: usize) -> f64 {
        if !self.observed.is_empty() {
            return f64::INFINITY;
        }
        let mass = Some(self.mass[c]).filter(|mass| *mass > 0.0);
        let mass = mass.unwrap_or(f64::INFINITY);
        let squared = self.first(c).iter().map(|first| (first / mass).powi(2));
        squared.sum::<f64>().sqrt()
    }

    /// Gives component `c` a mass and a first moment (d, or padded) in place of what it has.
    pub(crate) fn set(&mut self, c: usize, mass: f64, first: impl Iterator<Item = f64>) {
        self.mass[c] = mass;
        for (to, first) in self.first_mut(c).iter_mut().zip(first) {
            *to = first;
        }
    }

    /// The masses per coordinate, once some rows know only some of their coordinates.
    #[inline(always)]
    pub(super) fn track_observed(&mut self) {
        if self.observed.is_empty() {
            self.observed = vec![0.0; self.mass.len() * stride(self.dim)];
        }
    }

    /// The second moments: the two totals, (k), (k, d) padded, or the lower halves of (d, d) or (k, d, d).
    #[must_use]
    pub fn second(&self) -> &[f64] {
        &self.second
    }

    /// How many sums there are of pairs of coordinates, of coordinates and factors, and of the family's own.
    pub(crate) fn further(&self) -> usize {
        let of_pairs = match self.kind.axes() {
            [.., Axis::Columns, Axis::Columns] => self.second.len(),
            _ => 0,
        };
        let of_kind = match &self.of_kind {
            OfKind::Products(products) => self.mass.len() * products.factors * stride(self.dim),
            OfKind::Parts(parts) => parts.iter().map(Self::further).sum(),
            _ => 0,
        };
        of_pairs + self.own.len() + of_kind
    }

    /// Adds squared distances to the current means, and the weight of the coordinates they are over, to the
    /// [totals](SecondMoments::Total).
    pub(crate) fn add_total(&mut self, squared: f64, entries: f64) {
        if self.has_totals() {
            self.second[0] += squared;
            self.second[1] += entries;
        }
    }

    /// Sets the second moments of component `c`, one by one or all together, or adds them to the totals with the weight of its
    /// coordinates.
    pub(crate) fn set_second(&mut self, c: usize, second: &[f64], entries: f64) {
        let size = self.kind.of_component(self.dim);
        if size > 0 {
            self.second[c * size..][..second.len()].copy_from_slice(second);
        }
        self.add_total(second.iter().sum(), entries);
    }

    /// The second moments of coordinates, or of their pairs, of component `c` or of all, to be added to.
    pub(crate) fn second_mut(&mut self, c: usize) -> &mut [f64] {
        let size = match self.kind.of_component(self.dim) {
            0 => self.dim * self.dim,
            size => size,
        };
        let place = c * size % self.second.len();
        &mut self.second[place..][..size]
    }

    /// The first moment of component `c`, to be added to.
    pub(crate) fn first_mut(&mut self, c: usize) -> &mut [f64] {
        let place = self.place(c);
        let stride = stride(self.dim);
        &mut self.first[place..place + stride]
    }

    /// Makes room for the first moments of these components.
    pub(super) fn meet(&mut self, components: impl Iterator<Item = usize>) {
        components.for_each(|c| {
            self.place(c);
        });
    }

    /// Adds a padded row of weight times responsibility `share` to component `c`.
    #[inline(always)]
    pub(crate) fn add_row<F: Float>(
        &mut self,
        c: usize,
        share: f64,
        row: &[F],
        centres: &Centres<F>,
    ) {
        self.mass[c] += share;
        let place = self.place(c);
        let first = &mut self.first[place..place + row.len()];
        for ((first, &x), &mu) in first.iter_mut().zip(row).zip(centres.row(c)) {
            *first += share * (x.to_f64() - mu.to_f64());
        }
        let centre = centres.row(c);
        match self.kind {
            SecondMoments::PerComponent => {
                // Every stride is a multiple of 4.
                let mut sums = [0.0; 4];
                let (rows, _) = row.as_chunks::<4>();
                let (centres, _) = centre.as_chunks::<4>();
                for (x, mu) in rows.iter().zip(centres) {
                    for l in 0..4 {
                        let t = x[l].to_f64() - mu[l].to_f64();
                        sums[l] += t * t;
                    }
                }
                self.second[c] += share * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
            }
            SecondMoments::PerCoordinate => {
                let sums = &mut self.second[c * row.len()..(c + 1) * row.len()];
                for ((sum, &x), &mu) in sums.iter_mut().zip(row).zip(centre) {
                    let t = x.to_f64() - mu.to_f64();
                    *sum += share * (t * t);
                }
            }
            SecondMoments::Total | SecondMoments::Pairs | SecondMoments::PerPair => (),
        }
    }

    /// Adds a row that knows only some coordinates, as [`add_row`](Self::add_row).
    #[inline(always)]
    pub(super) fn add_known<F: Float>(
        &mut self,
        c: usize,
        share: f64,
        known: impl Iterator<Item = (usize, f64)>,
        centres: &Centres<F>,
    ) {
        self.track_observed();
        self.mass[c] += share;
        let centre = centres.row(c);
        let start = c * stride(self.dim);
        let first = self.place(c);
        for (j, x) in known {
            let place = start + j;
            let t = x - centre[j].to_f64();
            self.observed[place] += share;
            self.first[first + j] += share * t;
            if let Some(sum) = self.kind.sum_of(c, place) {
                self.second[sum] += share * (t * t);
            }
        }
    }

    /// The products of component `c` with its factors, to be added to.
    pub(crate) fn products_mut(&mut self, c: usize) -> &mut [f64] {
        let products = self.of_kind.products();
        products.map_or(&mut [], |products| products.component(c, self.dim))
    }

    /// Takes the products of components with their factors, and leaves none.
    pub(crate) fn take_products(&mut self) -> Vec<Vec<f64>> {
        let products = self.of_kind.products();
        products.map_or(Vec::new(), |products| std::mem::take(&mut products.of))
    }

    /// Second moments of all components together about a fixed point may be known already.
    pub(crate) fn know_scatter(&mut self, known: bool) {
        if let Some(scatter) = self.of_kind.scatter() {
            scatter.known = known;
        }
    }

    /// The state of second moments of all components together.
    pub(crate) fn scatter(&self) -> Scatter {
        match &self.of_kind {
            OfKind::Shared(scatter) => *scatter,
            _ => Scatter::default(),
        }
    }

    /// Number of components without mass.
    pub(crate) fn zero_mass(&self) -> usize {
        self.mass.iter().filter(|mass| **mass <= 0.0).count()
    }

    /// How many of these components have rows enough for a covariance of full rank: of their own, or the one that all share.
    pub(crate) fn with_enough_rows(&self, components: &[usize]) -> usize {
        let total: f64 = self.mass.iter().sum();
        let enough = |mass: &&f64| {
            if self.is_shared() {
                **mass > 0.0 && total > (self.mass.len() + self.dim) as f64
            } else {
                // Half a row more, for the rounding of masses.
                **mass > self.dim as f64 + 0.5
            }
        };
        let masses = components.iter().filter_map(|c| self.mass.get(*c));
        masses.filter(enough).count()
    }

    /// Number of coordinates that no point knows, over all components with mass.
    pub(crate) fn unobserved(&self) -> usize {
        let with_mass = (0..self.mass.len()).filter(|&c| self.mass[c] > 0.0);
        let unknown = |c| (0..self.dim).filter(move |&j| self.observed(c, j) <= 0.0);
        let of_parts = match &self.of_kind {
            OfKind::Parts(parts) => parts.iter().map(Self::unobserved).sum(),
            _ => 0,
        };
        with_mass.flat_map(unknown).count() + of_parts
    }

    /// The moments of all rows from the moments of some (at least one of these), added up in their order. The parts
    /// become moments of no rows, which keep their memory.
    pub(crate) fn merge<'a>(parts: impl Iterator<Item = &'a mut Self>) -> Self {
        Self::merge_all(parts.collect())
    }
}
