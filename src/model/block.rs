//! The result of a search for a block of rows: supports, costs and, once normalised, responsibilities.

use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::costs::Cost;
use crate::kernels::{select, weighted};
use crate::rows::{Rows, Terms};

/// Marks a place in a support or a neighbor list that is not filled.
pub(crate) const UNSET: u32 = u32::MAX;

/// The supports K(n) of a block of rows, the costs of their members, and their responsibilities.
///
/// An E-step fills supports and costs, an M-step reads all three. Costs have the unit of the
/// [frame](crate::data::Frame), responsibilities none: $q_{nc} = 0$ outside $K(n)$ ([E2](crate::equations#e2)).
///
/// A support narrower than the number of components is a list of indices per row, best first. A support of
/// all components is not listed: place `c` is component `c`. Its rows are padded to whole vectors.
#[derive(Clone, Debug, Default)]
pub struct Block<F> {
    components: usize,
    width: usize,
    /// Places of a row of costs: `width`, or more with the padding of full supports.
    pub(crate) stride: usize,
    /// Whether all components share every row, in their order, and there are several: rows of costs and shares are padded.
    pub(crate) shared: bool,
    /// (rows, width); empty when every component is in every support.
    pub(crate) supports: Vec<u32>,
    /// (rows, stride): the lower, the better; infinite in the padding.
    pub(crate) costs: Vec<F>,
    /// (rows, stride), and [`weighted::SPARE`] numbers more: sum to 1 in each row, zeros in the padding. Responsibilities below
    /// 2^-60 are lost in all sums (E41), so the type of the data can hold all that count.
    pub(crate) responsibilities: Vec<F>,
    /// The expected cost of each row, where supports have several members.
    pub(crate) expected: Vec<f64>,
    /// The best component of each row, where responsibilities of all components were made.
    pub(crate) likeliest: Vec<u32>,
    /// Facts that sums need about costs computed as products (E46).
    pub(crate) terms: Option<Terms>,
    /// The rows as one transform for all components whitens them (E52), if a search did so; else none.
    pub(crate) seen: Rows<f64>,
    /// The numbers of the rows in the data.
    numbers: Vec<usize>,
    evaluations: u64,
    /// The fault of a support that a search chose, if one was found.
    pub(crate) fault: Option<String>,
    /// Scratch of a search: components, and their costs.
    pub(crate) candidates: Vec<u32>,
    pub(crate) candidate_costs: Vec<F>,
    /// At most the squared distance of each row to any centre but that of its support, if an exact search found it; else none.
    pub(crate) others: Vec<F>,
    pub(crate) wants_bounds: bool,
    /// The shard of the pass that the rows are in.
    pub(crate) shard: usize,
}

impl<F: Float> Block<F> {
    /// An empty block for supports of `width` out of `components`.
    pub(crate) fn new(components: usize, width: usize) -> Self {
        let shared = width == components && width > 1;
        let stride = if shared {
            width.next_multiple_of(LANES)
        } else {
            width
        };
        Self {
            components,
            width,
            stride,
            shared,
            ..Self::default()
        }
    }

    /// An empty block of supports that are lists, also if they list every component.
    pub(crate) fn listed(components: usize, width: usize) -> Self {
        Self {
            stride: width,
            shared: false,
            ..Self::new(components, width)
        }
    }

    /// Makes room for `rows` rows; `supports` holds their supports from the last search (none if full).
    pub(crate) fn reset(&mut self, rows: usize, supports: &[u32]) {
        self.supports.clear();
        self.supports.extend_from_slice(supports);
        // A search leaves the padding as it is.
        self.costs.resize(rows * self.stride, F::INFINITY);
        // NaN left after a search means that the search left out the row.
        let without_cost = F::from_f64(f64::NAN);
        if self.stride == 1 {
            self.costs.fill(without_cost);
        } else {
            let firsts = self.costs.iter_mut().step_by(self.stride);
            firsts.for_each(|first| *first = without_cost);
        }
        self.expected.clear();
        self.likeliest.clear();
        self.terms = None;
        self.seen.weights.clear();
        self.others.clear();
        self.evaluations = 0;
        self.fault = None;
    }

    pub(crate) fn make_room(&mut self) {
        let places = self.costs.len() + weighted::SPARE;
        self.responsibilities.resize(places, F::zero());
    }

    /// The numbers of the rows in the data, in their order.
    pub(crate) fn number(&mut self, numbers: impl Iterator<Item = usize>) {
        self.numbers.clear();
        self.numbers.extend(numbers);
    }

    /// The number of the shard of the pass that the rows are in. A shard is a fixed sequence of blocks, searched in order by one thread: sums by
    /// shard, added up in their order, are the same on any number of threads.
    #[must_use]
    pub fn shard(&self) -> usize {
        self.shard
    }

    pub(crate) fn count(&mut self, evaluations: usize) {
        self.evaluations += evaluations as u64;
    }

    /// Checks the supports that a search chose; the error says what is wrong.
    pub(crate) fn check(&mut self) -> std::result::Result<(), String> {
        let fault = self.fault.take();
        let missing = || {
            let (row, c) = self.foreign()?;
            let row = self.numbers[row];
            Some(match c {
                UNSET => {
                    format!("row {row} has no support: a search calls `keep_best` for every row")
                }
                _ => format!("component {c} of row {row} does not exist"),
            })
        };
        let without_cost = || {
            let without_cost = |cost: &F| cost.to_f64().is_nan();
            let row = match self.stride {
                // Most often there is none: a search without branches says so sooner than one that ends at the first.
                1 if !any(&self.costs, without_cost) => return None,
                stride => self.costs.iter().step_by(stride).position(without_cost)?,
            };
            Some(format!(
                "row {} has no cost: a search calls `keep_best` for every row",
                self.numbers[row]
            ))
        };
        match fault.or_else(missing).or_else(without_cost) {
            Some(what) => Err(what),
            None => Ok(()),
        }
    }

    /// Sets the support of row `i` of the block to the best components among `ids` and the members of its last support.
    /// Repeated ones count once. Counts the evaluations.
    ///
    /// Fewer candidates than a support has members, or a row or a component that does not exist, is an error of the search,
    /// which the fit returns ([`Error::Stage`](crate::Error::Stage)). The first search has no last supports, so there `ids` needs
    /// as many different components as a support has members. If every support holds every component, the costs of all
    /// are computed, and `ids` is ignored. Costs are those of a model, or [`Cost::Own`].
    pub fn keep_best<'m>(
        &mut self,
        i: usize,
        cost: impl Into<Cost<'m, F>>,
        rows: &Rows<F>,
        ids: &[u32],
    ) {
        let k = self.components();
        let width = self.width();
        if i >= rows.len() || (i + 1) * self.stride > self.costs.len() {
            let n = self.len();
            let known = rows.len();
            self.fault.get_or_insert_with(|| {
                format!("row {i} of a block of {n} does not exist among {known} rows: they are numbered from 0")
            });
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut costs = std::mem::take(&mut self.candidate_costs);
        candidates.clear();
        if self.is_full() {
            candidates.extend(0..k as u32);
        } else {
            candidates.extend(self.support(i).iter().filter(|c| **c != UNSET));
            candidates.extend(ids);
            candidates.sort_unstable();
            candidates.dedup();
        }
        let fault = match candidates.last() {
            Some(&c) if c as usize >= k => Some(format!(
                "component {c} of {k} does not exist: they are numbered from 0 to {}",
                k - 1
            )),
            _ if candidates.len() < width => Some(format!(
                "{} candidates for a support of {width}: at least {width} different ones are needed; \
                 the last support counts, but the first search has none",
                candidates.len()
            )),
            _ => None,
        };
        if let Some(what) = fault {
            let row = self.row(i);
            self.fault
                .get_or_insert_with(|| format!("row {row}: {what}"));
        } else {
            cost.into().some(rows, i, &candidates, &mut costs);
            self.count(candidates.len());
            if self.is_full() {
                self.costs_mut(i).copy_from_slice(&costs)
            } else {
                self.set_best(i, &candidates, &costs)
            }
        }
        (self.candidates, self.candidate_costs) = (candidates, costs);
    }

    /// Sets the support of row `i`, a list, to the best of some components by their costs.
    #[inline(always)]
    pub(crate) fn set_best(&mut self, i: usize, ids: &[u32], costs: &[F]) {
        let places = i * self.width..(i + 1) * self.width;
        let support = &mut self.supports[places.clone()];
        select::smallest(ids, costs, support, &mut self.costs[places]);
    }

    /// The first row with a member that is none of the components, and that member.
    pub(crate) fn foreign(&self) -> Option<(usize, u32)> {
        let foreign = |c: &u32| *c as usize >= self.components;
        if !any(&self.supports, foreign) {
            return None;
        }
        let place = self.supports.iter().position(foreign)?;
        Some((place / self.width, self.supports[place]))
    }

    /// The number of row `i` of the block in the data.
    #[must_use]
    pub fn row(&self, i: usize) -> usize {
        self.numbers.get(i).copied().unwrap_or(i)
    }

    /// Rows in the block.
    #[must_use]
    pub fn len(&self) -> usize {
        self.costs.len() / self.stride
    }

    /// Whether there are no rows in the block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// Distance evaluations of the search so far.
    pub(crate) fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// Number of components, k.
    #[must_use]
    pub(crate) fn components(&self) -> usize {
        self.components
    }

    /// Members of a support, C'.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether every support holds every component, in order.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.width == self.components
    }

    /// The support of row `i`, best first (empty when all components are in it). In the first search of a phase it is that of
    /// the phase before, if supports have one member; otherwise its members are `u32::MAX`.
    #[inline(always)]
    #[must_use]
    pub fn support(&self, i: usize) -> &[u32] {
        let places = i * self.width..(i + 1) * self.width;
        self.supports.get(places).unwrap_or_default()
    }

    /// The members of the support of row `i` with their responsibilities, of all components or of those listed.
    pub fn members(&self, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let support = self.support(i);
        let shares = self.responsibilities(i);
        shares.iter().enumerate().map(move |(place, q)| {
            let c = support.get(place).map_or(place as u32, |c| *c);
            (c, q.to_f64())
        })
    }

    /// This block with other shares in place of the responsibilities: `share` gives the share of a row and a place in
    /// its support. It is for sums with other factors than the responsibilities. Shares need not sum to 1.
    #[must_use]
    pub fn with_shares(&self, mut share: impl FnMut(usize, usize) -> f64) -> Self {
        let mut block = self.clone();
        block.expected.clear();
        block.make_room();
        for i in 0..self.len() {
            let mut expected = 0.0;
            for (place, cost) in self.costs(i).iter().enumerate() {
                let share = share(i, place);
                block.responsibilities[i * self.stride + place] = F::from_f64(share);
                expected += share * cost.to_f64();
            }
            block.expected.push(expected);
        }
        block
    }

    /// The costs of the members of the support of row `i` (C'): the lower, the better.
    #[inline(always)]
    pub(crate) fn costs(&self, i: usize) -> &[F] {
        &self.costs[i * self.stride..][..self.width]
    }

    /// The responsibilities of the members of the support of row `i` (C'); they sum to 1 ([E2](crate::equations#e2)).
    #[inline(always)]
    pub(crate) fn responsibilities(&self, i: usize) -> &[F] {
        &self.responsibilities[i * self.stride..][..self.width]
    }

    pub(crate) fn costs_mut(&mut self, i: usize) -> &mut [F] {
        &mut self.costs[i * self.stride..][..self.width]
    }
}

/// Whether any of these is so, without a branch for each.
fn any<T>(items: &[T], is: impl Fn(&T) -> bool) -> bool {
    items.iter().fold(false, |any, one| any | is(one))
}
