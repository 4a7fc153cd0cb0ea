//! Weighted statistics of components: what a block of rows adds to an M-step.

use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::kernels::sparse::Known;
use crate::kernels::stride;
use crate::rows::Centres;
use std::ops::Range;

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

/// Mass, first and [second](SecondMoments) moments of every component about its current mean (E5), in `f64`, in
/// the coordinates of the frame.
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} (z_n - \mu_c)$$
///
/// About the mean nothing cancels in the new variance. Rows that know only some of their coordinates (a
/// [`Sketch`](crate::data::Sketch)) add to those alone: then every coordinate has a mass of its own (E28). Moments of disjoint
/// blocks add up ([`merge`](Self::merge)): of rows, of blocks from disk, of partitions of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    pub(crate) dim: usize,
    /// (k).
    pub(crate) mass: Vec<f64>,
    /// How far centres move, in distances to their means (E62): 1, unless a phase says otherwise.
    pub(crate) step: f64,
    /// (k, d), padded: the mass per coordinate. Empty as long as every row knows every coordinate: then each
    /// coordinate has the mass of its component.
    observed: Vec<f64>,
    /// (k): which of the rows of `first` each component has; 0 for none yet.
    places: Vec<u32>,
    /// (1 + components met, d), padded: a row of zeros, and the first moments. Rows that come in the order of their
    /// components meet few of them.
    first: Vec<f64>,
    pub(crate) kind: SecondMoments,
    pub(crate) second: Vec<f64>,
    /// Whether coordinates that rows do not have are 0, and are yet to be added.
    others_are_zero: bool,
    /// Whether second moments of all components together are about their means.
    pub(crate) about_means: bool,
    /// Whether second moments of coordinates may be sums in the type of the data, and whether they are.
    pub(crate) may_be_narrow: bool,
    pub(crate) narrow: bool,
    /// Whether first moments are those of rows that one transform whitens.
    pub(crate) whitened: bool,
    /// Whether second moments about a fixed point are known already, and left out.
    pub(crate) scatter_known: bool,
    /// The weight of the rows that they are of, if they do not depend on responsibilities; else 0.
    pub(crate) scatter_weight: f64,
    /// Sparse rows that are yet to be added, while they take less memory than sums of all coordinates.
    waiting: Vec<Waiting>,
    own: Vec<f64>,
    /// The sums of the parts of a product, each of its columns.
    pub(crate) parts: Vec<Self>,
    /// (k): the products of differences from the mean with each factor (q, d), padded, of components met; none for the others.
    pub(crate) products: Vec<Vec<f64>>,
    factors: usize,
}

/// Sparse rows, with their shares.
#[derive(Clone, Debug, Default, PartialEq)]
struct Waiting {
    ids: Vec<u32>,
    values: Vec<f64>,
    /// Component, share, and where the entries of the row are.
    shares: Vec<(u32, f64, Range<usize>)>,
}

impl Waiting {
    fn row(&self, entries: &Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let ids = self.ids[entries.clone()].iter().map(|j| *j as usize);
        ids.zip(self.values[entries.clone()].iter().copied())
    }
}

/// The sums of [`Moments`], to be added to.
pub(crate) struct Parts<'a> {
    /// (k).
    pub(crate) mass: &'a mut [f64],
    /// (k): which row of `first` each component has.
    pub(crate) places: &'a [u32],
    /// Padded rows.
    pub(crate) first: &'a mut [f64],
    /// (k), if there is one for each component, and none otherwise.
    pub(crate) per_component: &'a mut [f64],
    /// (k, d), padded, if there is one for each coordinate, and none otherwise.
    pub(crate) per_coordinate: &'a mut [f64],
}

impl Moments {
    /// No rows added yet, for `k` components in `d` dimensions.
    #[must_use]
    pub fn zeros(k: usize, dim: usize, kind: SecondMoments) -> Self {
        let second = match kind {
            SecondMoments::Total => 2,
            SecondMoments::PerComponent => k,
            SecondMoments::PerCoordinate => k * stride(dim),
            SecondMoments::Pairs => dim * dim,
            SecondMoments::PerPair => k * dim * dim,
        };
        Self {
            dim,
            mass: vec![0.0; k],
            step: 1.0,
            observed: Vec::new(),
            places: vec![0; k],
            first: vec![0.0; stride(dim)],
            kind,
            second: vec![0.0; second],
            others_are_zero: false,
            about_means: false,
            may_be_narrow: false,
            narrow: false,
            whitened: false,
            scatter_known: false,
            scatter_weight: 0.0,
            waiting: Vec::new(),
            own: Vec::new(),
            parts: Vec::new(),
            products: Vec::new(),
            factors: 0,
        }
    }

    /// With products with this many factors.
    pub(crate) fn with_factors(self, factors: usize) -> Self {
        let products = match factors {
            0 => Vec::new(),
            _ => vec![Vec::new(); self.mass.len()],
        };
        Self {
            products,
            factors,
            ..self
        }
    }

    /// The products of component `c` with its factors, to be added to.
    pub(crate) fn products_mut(&mut self, c: usize) -> &mut [f64] {
        let own = &mut self.products[c];
        own.resize(self.factors * stride(self.dim), 0.0);
        own
    }

    /// With this many sums of the family's own, which add up like the others.
    #[must_use]
    pub fn with_own(self, sums: usize) -> Self {
        let own = vec![0.0; sums];
        Self { own, ..self }
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
    pub fn entries(&self, c: usize) -> f64 {
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
    fn place(&mut self, c: usize) -> usize {
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
    fn track_observed(&mut self) {
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
        let of_pairs = match self.kind {
            SecondMoments::Pairs | SecondMoments::PerPair => self.second.len(),
            _ => self.products.len() * self.factors * stride(self.dim),
        };
        let of_parts = self.parts.iter().map(Self::further);
        of_pairs + self.own.len() + of_parts.sum::<usize>()
    }

    /// Adds squared distances to the current means, and the weight of the coordinates they are over, to the
    /// [totals](SecondMoments::Total).
    pub(crate) fn add_total(&mut self, squared: f64, entries: f64) {
        if let (SecondMoments::Total, [all, known]) = (self.kind, &mut self.second[..]) {
            *all += squared;
            *known += entries;
        }
    }

    /// Which of the second moments an entry of component `c` belongs to, at `place` among the (k, d) padded numbers.
    #[inline(always)]
    fn sum_of(&self, c: usize, place: usize) -> usize {
        match self.kind {
            SecondMoments::Total | SecondMoments::Pairs | SecondMoments::PerPair => 0,
            SecondMoments::PerComponent => c,
            SecondMoments::PerCoordinate => place,
        }
    }

    #[inline(always)]
    fn add_second(&mut self, c: usize, place: usize, value: f64) {
        if self.kind != SecondMoments::Total {
            let sum = self.sum_of(c, place);
            self.second[sum] += value;
        }
    }

    /// The first moment of component `c`, to be added to.
    pub(crate) fn first_mut(&mut self, c: usize) -> &mut [f64] {
        let place = self.place(c);
        let stride = stride(self.dim);
        &mut self.first[place..place + stride]
    }

    /// The sums of `k` components, to be added to.
    pub(crate) fn all(&mut self, k: usize) -> Parts<'_> {
        for c in 0..k {
            self.place(c);
        }
        let (per_component, per_coordinate) = match self.kind {
            SecondMoments::PerComponent => (&mut self.second[..], Default::default()),
            SecondMoments::PerCoordinate => (Default::default(), &mut self.second[..]),
            _ => Default::default(),
        };
        Parts {
            mass: &mut self.mass,
            places: &self.places,
            first: &mut self.first,
            per_component,
            per_coordinate,
        }
    }

    /// The masses, and the first moments in rows of `D` numbers, with which of these each component has: any, where it is
    /// not among `wanted`.
    pub(crate) fn short_of<const D: usize>(
        &mut self,
        wanted: impl Iterator<Item = u32>,
    ) -> (&mut [f64], &[u32], &mut [[f64; D]]) {
        debug_assert_eq!(D, stride(self.dim));
        for c in wanted {
            self.place(c as usize);
        }
        (&mut self.mass, &self.places, self.first.as_chunks_mut().0)
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
            SecondMoments::Total | SecondMoments::Pairs | SecondMoments::PerPair => (),
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
        }
    }

    /// Adds a row that knows only some coordinates, as [`add_row`](Self::add_row).
    #[inline(always)]
    pub(crate) fn add_entries<F: Float>(
        &mut self,
        c: usize,
        share: f64,
        row: Known<'_, F>,
        centres: &Centres<F>,
    ) {
        let values = row.values.iter().map(|x| x.to_f64());
        let ids = row.ids.iter().map(|j| *j as usize);
        self.add_known(c, share, ids.zip(values), centres);
    }

    #[inline(always)]
    fn add_known<F: Float>(
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
            self.add_second(c, place, share * (t * t));
        }
    }

    /// Adds a row whose coordinates are 0 where they are not there, with its shares of components. The zeros come
    /// [at last](Self::settle).
    pub(crate) fn add_sparse<F: Float>(
        &mut self,
        row: Known<'_, F>,
        shares: impl Iterator<Item = (u32, f64)>,
        centres: &Centres<F>,
    ) {
        self.others_are_zero = true;
        if !self.observed.is_empty() {
            return shares.for_each(|(c, share)| self.add_entries(c as usize, share, row, centres));
        }
        self.waiting.resize_with(1, Waiting::default);
        let waiting = &mut self.waiting[0];
        let start = waiting.ids.len();
        waiting.ids.extend_from_slice(row.ids);
        waiting.values.extend(row.values.iter().map(|x| x.to_f64()));
        let entries = start..waiting.ids.len();
        (waiting.shares).extend(shares.map(|(c, share)| (c, share, entries.clone())));
        // In numbers of 8 bytes.
        let numbers = 3 * waiting.ids.len() / 2 + 4 * waiting.shares.len();
        if numbers > 2 * self.mass.len() * stride(self.dim) {
            for waiting in std::mem::take(&mut self.waiting) {
                for (c, share, entries) in &waiting.shares {
                    self.add_known(*c as usize, *share, waiting.row(entries), centres);
                }
            }
        }
    }

    /// Adds the rows that wait, and the zeros of all, about these centres.
    ///
    /// The mass of the rows that lack a coordinate is a difference. Where none does, both masses are sums of the same numbers in the
    /// same order, and nothing is left of it.
    pub(crate) fn settle<F: Float>(&mut self, centres: &Centres<F>) {
        if !std::mem::take(&mut self.others_are_zero) {
            return;
        }
        let stride = stride(self.dim);
        let dim = self.dim;
        let waiting = std::mem::take(&mut self.waiting);
        let observed = std::mem::take(&mut self.observed);
        let places = || {
            let all = (0..).zip(&waiting);
            all.flat_map(|(w, own)| {
                (0..)
                    .zip(&own.shares)
                    .map(move |(s, share)| (share.0, (w, s)))
            })
        };
        let (starts, shares) = sort::sorted(self.mass.len(), (0_usize, 0_usize), places);
        let width = match self.kind {
            SecondMoments::PerComponent => 1,
            SecondMoments::PerCoordinate => stride,
            _ => 0,
        };
        let mut second = self.second.chunks_exact_mut(width.max(1));
        let sums = self
            .mass
            .iter_mut()
            .zip(self.first[stride..].chunks_exact_mut(stride));
        let sums = sums.map(|sums| (sums, second.by_ref().next().filter(|_| width > 0)));
        parallel::map_parts(sums.collect(), |c, ((mass, first), second)| {
            let mut none = [0.0];
            let second = second.unwrap_or(&mut none);
            let last = second.len() - 1;
            let centre = centres.row(c);
            let mut known = vec![0.0; stride];
            if !observed.is_empty() {
                known.copy_from_slice(&observed[c * stride..][..stride]);
            }
            let mut add = |j: usize, share: f64, x: f64| {
                let t = x - centre[j].to_f64();
                first[j] += share * t;
                second[j.min(last)] += share * (t * t);
            };
            for (w, s) in &shares[starts[c]..starts[c + 1]] {
                let (_, share, entries) = &waiting[*w].shares[*s];
                *mass += share;
                for (j, x) in waiting[*w].row(entries) {
                    known[j] += share;
                    add(j, *share, x);
                }
            }
            for j in (0..dim).filter(|j| centre[*j] != F::zero()) {
                add(j, *mass - known[j], 0.0);
            }
        });
    }

    /// Adds the mass, first and second moment of some rows to coordinate `j` of component `c`.
    #[inline(always)]
    pub(crate) fn add_coordinate(
        &mut self,
        c: usize,
        j: usize,
        [observed, first, second]: [f64; 3],
    ) {
        self.track_observed();
        let place = c * stride(self.dim) + j;
        self.observed[place] += observed;
        let of_first = self.place(c) + j;
        self.first[of_first] += first;
        self.add_second(c, place, second);
    }

    /// Number of components without mass.
    #[must_use]
    pub fn zero_mass(&self) -> usize {
        self.mass.iter().filter(|mass| **mass <= 0.0).count()
    }

    /// How many of these components have rows enough for a covariance of full rank: of their own, or the one that all share.
    pub(crate) fn with_enough_rows(&self, components: &[usize]) -> usize {
        let all: f64 = self.mass.iter().sum();
        let enough = |mass: &&f64| match self.kind {
            SecondMoments::Pairs => **mass > 0.0 && all > (self.mass.len() + self.dim) as f64,
            // Half a row more, for the rounding of masses.
            _ => **mass > self.dim as f64 + 0.5,
        };
        let masses = components.iter().filter_map(|c| self.mass.get(*c));
        masses.filter(enough).count()
    }

    /// Number of coordinates that no point knows, over all components with mass.
    #[must_use]
    pub fn unobserved(&self) -> usize {
        let with_mass = (0..self.mass.len()).filter(|&c| self.mass[c] > 0.0);
        let of = |c| (0..self.dim).filter(move |&j| self.observed(c, j) <= 0.0);
        let of_parts = self.parts.iter().map(Self::unobserved);
        with_mass.flat_map(of).count() + of_parts.sum::<usize>()
    }

    /// The moments of all rows from the moments of some (at least one of these), added up in their order. The parts
    /// become moments of no rows, which keep their memory.
    #[must_use]
    pub fn merge<'a>(parts: impl Iterator<Item = &'a mut Self>) -> Self {
        Self::merge_all(parts.collect())
    }

    fn merge_all(mut parts: Vec<&mut Self>) -> Self {
        /// Components added up together.
        const COMPONENTS: usize = 32;

        let first = parts.first().expect("moments of some rows");
        let k = first.mass.len();
        let stride = stride(first.dim);
        let mut total = Self::zeros(k, first.dim, first.kind).with_own(first.own.len());
        if parts.iter().any(|part| !part.observed.is_empty()) {
            total.track_observed();
        }
        add_all(&mut total.mass, &parts, |part| &part.mass);
        add_all(&mut total.observed, &parts, |part| &part.observed);
        add_all(&mut total.second, &parts, |part| &part.second);
        add_all(&mut total.own, &parts, |part| &part.own);
        total.others_are_zero = parts.iter().any(|part| part.others_are_zero);
        total.about_means = parts.iter().any(|part| part.about_means);
        total.narrow = parts.iter().any(|part| part.narrow);
        total.whitened = parts.iter().any(|part| part.whitened);
        total.scatter_known = parts.iter().all(|part| part.scatter_known);
        total.scatter_weight = parts.iter().map(|part| part.scatter_weight).sum();
        total.places = (1..=k as u32).collect();
        total.first = vec![0.0; (1 + k) * stride];
        let sums = &mut total.first[stride..];
        parallel::map_chunks(sums, COMPONENTS * stride, |_, range, sums| {
            for (c, sums) in (range.start / stride..).zip(sums.chunks_exact_mut(stride)) {
                for part in parts.iter().filter(|part| part.places[c] > 0) {
                    for (sum, first) in sums.iter_mut().zip(part.first(c)) {
                        *sum += first;
                    }
                }
            }
        });
        for part in &mut parts {
            total.waiting.append(&mut part.waiting);
        }
        total = total.with_factors(parts[0].factors);
        total.merge_products(&mut parts);
        for p in 0..parts[0].parts.len() {
            let of_part = parts.iter_mut().map(|part| &mut part.parts[p]);
            total.parts.push(Self::merge_all(of_part.collect()));
        }
        parallel::map_chunks(&mut parts, 1, |_, _, parts| parts[0].clear());
        total
    }

    /// The products of all parts, in the memory of the first that has them: they may take most of all there is.
    fn merge_products(&mut self, parts: &mut [&mut Self]) {
        let mut first = Vec::with_capacity(self.products.len());
        for (c, own) in self.products.iter_mut().enumerate() {
            let met = parts.iter().position(|part| !part.products[c].is_empty());
            first.push(met.unwrap_or(parts.len()));
            if let Some(met) = met {
                *own = std::mem::take(&mut parts[met].products[c]);
            }
        }
        let parts = &*parts;
        parallel::map_chunks(&mut self.products, 1, |c, _, own| {
            for part in parts.iter().skip(first[c] + 1) {
                for (sum, x) in own[0].iter_mut().zip(&part.products[c]) {
                    *sum += x;
                }
            }
        });
    }

    /// No rows added, in the memory there is.
    fn clear(&mut self) {
        self.mass.fill(0.0);
        self.observed.clear();
        self.places.fill(0);
        self.first.truncate(stride(self.dim));
        self.second.fill(0.0);
        self.others_are_zero = false;
        (self.about_means, self.narrow) = (false, false);
        (self.whitened, self.scatter_known, self.scatter_weight) = (false, false, 0.0);
        self.own.fill(0.0);
        self.products.iter_mut().for_each(Vec::clear);
    }

    /// Moves every centre to its mean, and returns the second moments about the new ones (E32, E34).
    pub fn about_new_means<F: Float>(&self, centres: &mut Centres<F>) -> Vec<f64> {
        let stride = stride(self.dim);
        let mut squared = self.second().to_vec();
        self.move_centres(centres, |c, j, fall| {
            squared[self.sum_of(c, c * stride + j)] -= fall;
        });
        // Far seeds: nearly all of the old sum goes, and what is left is its rounding: that of costs, in totals.
        let rounding = match self.kind {
            SecondMoments::Total => (self.dim + 8) as f64 * F::EPSILON,
            _ => 8.0 * f64::EPSILON,
        };
        for (rest, old) in squared.iter_mut().zip(self.second()) {
            *rest = rest.max(rounding * old);
        }
        squared
    }

    /// The second moment of all coordinates of all components together, about the new means, and the mass that it is over.
    pub(crate) fn squares_of_all(&self, squared: &[f64]) -> (f64, f64) {
        match self.kind {
            SecondMoments::Total => (squared[0], self.second[1]),
            _ => {
                let entries = (0..self.mass.len()).map(|c| self.entries(c)).sum();
                (squared.iter().sum(), entries)
            }
        }
    }

    /// The second moment that coordinate `j` of component `c` has among these, and the mass that it is over.
    pub(crate) fn second_of(&self, squared: &[f64], c: usize, j: usize) -> (f64, f64) {
        let mass = match self.kind {
            SecondMoments::Total => self.second[1],
            SecondMoments::PerComponent => self.entries(c),
            _ => self.observed(c, j),
        };
        (squared[self.sum_of(c, c * stride(self.dim) + j)], mass)
    }

    /// Moves every coordinate of every centre to its mean (E6), or beyond (E62), rounded to the type of the data; one without mass
    /// stays.
    /// Shows `moved` each step: component, coordinate, and by how much the sum of w q |z - mu|^2 falls in it (E7).
    pub(crate) fn move_centres<F: Float>(
        &self,
        centres: &mut Centres<F>,
        mut moved: impl FnMut(usize, usize, f64),
    ) {
        // Coordinates whose squares the type cannot hold are 0: arithmetic on such numbers takes many times as long, and
        // soft supports leave them wherever a column is mostly 0.
        let least = 2f64.powi(-(F::MAX_EXPONENT + 1) / 2);
        let held = |mean: f64| if mean.abs() < least { 0.0 } else { mean };
        centres.update(|c, centre| {
            if self.mass(c) <= 0.0 {
                return;
            }
            let both = centre.iter_mut().zip(self.first(c)).enumerate();
            // In sparse rows most columns of a component are 0.
            let some = both.filter(|(_, (mu, first))| **first != 0.0 || **mu != F::zero());
            for (j, (mu, &first)) in some {
                let mass = self.observed(c, j);
                if mass > 0.0 {
                    let old = mu.to_f64();
                    *mu = F::from_f64(held(old + self.step * first / mass));
                    let step = mu.to_f64() - old;
                    moved(c, j, step * (2.0 * first - mass * step));
                }
            }
        });
    }
}

/// Adds the sums of every part to `total`, element by element in the order of the parts; a part without sums adds
/// nothing.
fn add_all(total: &mut [f64], parts: &[&mut Moments], of: impl Fn(&Moments) -> &[f64] + Sync) {
    const ELEMENTS: usize = 1 << 13;
    parallel::map_chunks(total, ELEMENTS, |_, range, total| {
        for part in parts.iter().filter(|part| !of(part).is_empty()) {
            for (total, sum) in total.iter_mut().zip(&of(part)[range.clone()]) {
                *total += sum;
            }
        }
    });
}
