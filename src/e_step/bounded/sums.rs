//! Mass, first and second moments of the components, kept from iteration to iteration: only changes are added.

use super::assignment::{Assignment, Change, TASK_ROWS};
use super::list_search::BATCH_ROWS;
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::simd::vectorised;
use crate::base::sort;
use crate::data::View;
use crate::io::{all_finite, rule};
use crate::kernels::accumulate::{Share, add_rows};
use crate::kernels::stride;
use crate::m_step::Moments;
use crate::rows::{Centres, Rows};

/// Sums over the rows of every component about a fixed point, its anchor (E36): mass m, first moments f and second moment s. A row
/// that changes its component is taken from the sums of one and added to those of the other; the rest of the data is not read.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct KeptSums<F> {
    anchors: Centres<F>,
    /// (k, 2 + stride): m, s, f.
    sums: Vec<f64>,
    line: usize,
    /// The largest m and s of each component since its anchor was set (k): they bound the rounding error of the current ones.
    largest: Vec<[f64; 2]>,
}

/// Sums are recomputed once catastrophic cancellation has taken ten binary digits of the second moment, or twenty of the mass.
const LARGER: [f64; 2] = [1e6, 1024.0];

/// Components whose sums are put together at a time.
const COMPONENTS: usize = 16;

/// Sums of one component over some rows.
pub(super) struct Part {
    component: usize,
    sums: Vec<f64>,
}

/// Sums over rows that come one by one: of the components that they enter or leave.
pub(super) struct Parts {
    /// (k): the place of each component, plus 1.
    places: Vec<u32>,
    parts: Vec<Part>,
}

impl Parts {
    pub(super) fn of(k: usize) -> Self {
        Self {
            places: vec![0; k],
            parts: Vec::new(),
        }
    }

    /// All of them, by component.
    pub(super) fn joined(several: Vec<Self>) -> Vec<Part> {
        let mut parts: Vec<Part> = several.into_iter().flat_map(|sums| sums.parts).collect();
        parts.sort_by_key(|part| part.component);
        parts
    }

    /// A row that enters a component, or leaves it: then its weight is negative.
    pub(super) fn add<F: Float>(
        &mut self,
        about: &KeptSums<F>,
        row: &[F],
        weight: f64,
        label: u32,
    ) {
        let component = label as usize;
        if self.places[component] == 0 {
            let sums = vec![0.0; about.line];
            self.parts.push(Part { component, sums });
            self.places[component] = self.parts.len() as u32;
        }
        let part = &mut self.parts[self.places[component] as usize - 1];
        let one = [Share {
            row: 0,
            share: weight,
        }];
        add_to(row, &one, about.anchors.row(component), &mut part.sums);
    }
}

/// The mass of a component, and how far the mean of its rows is from a place; 0 without rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    pub(crate) mass: f64,
    pub(crate) distance: f64,
}

impl<F: Float> KeptSums<F> {
    pub(crate) fn of(
        view: View<'_, F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
    ) -> Result<Self> {
        let mut sums = Self::without_rows(centres);
        sums.renew(view, centres, assignment, &vec![true; centres.len()])?;
        Ok(sums)
    }

    fn without_rows(centres: &Centres<F>) -> Self {
        let line = centres.row(0).len() + 2;
        Self {
            anchors: centres.clone(),
            sums: vec![0.0; centres.len() * line],
            line,
            largest: vec![[0.0; 2]; centres.len()],
        }
    }

    /// The sums of rows that are read in their order.
    pub(super) fn of_rows(
        view: View<'_, F>,
        centres: &Centres<F>,
        shard_rows: usize,
        label: impl Fn(usize) -> u32 + Sync,
    ) -> Result<Self> {
        let mut sums = Self::without_rows(centres);
        let blocks = parallel::map_blocks(view.len(), shard_rows, |_, range| {
            let mut parts = Parts::of(centres.len());
            let mut rows = Rows::default();
            for from in range.clone().step_by(BATCH_ROWS) {
                let range = from..range.end.min(from + BATCH_ROWS);
                view.data.load(range.clone(), view.frame, &mut rows)?;
                for (i, n) in range.enumerate() {
                    parts.add(&sums, rows.row(i), rows.weight(i), label(n));
                }
            }
            Ok(parts)
        });
        sums.add_parts(Parts::joined(parallel::all(blocks)?));
        Ok(sums)
    }

    /// Recomputes the sums of the `stale` components, about their current centres.
    pub(crate) fn renew(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        stale: &[bool],
    ) -> Result<()> {
        self.anchors.update_where(stale, centres);
        let entry = |place: usize| Share {
            row: assignment.members[place].row,
            share: 1.0,
        };
        let parts = self.gathered(view, &assignment.starts, |c| stale[c], entry)?;
        let stale = (0..stale.len()).filter(|c| stale[*c]);
        stale.for_each(|c| self.clear(c));
        self.add_parts(parts);
        Ok(())
    }

    /// Sums of the `wanted` components over the entries between their `starts`, by component: rows that enter (1) or leave (-1).
    /// A component whose entries are cut into several parts occurs once per part.
    fn gathered(
        &self,
        view: View<'_, F>,
        starts: &[usize],
        wanted: impl Fn(usize) -> bool + Sync,
        entry: impl Fn(usize) -> Share + Sync,
    ) -> Result<Vec<Part>> {
        let parts = parallel::map_blocks(starts[starts.len() - 1], TASK_ROWS, |_, places| {
            let mut rows = Rows::default();
            let wanted = sort::among(starts, places).filter(|(c, _)| wanted(*c));
            let parts = wanted.map(|(component, places)| {
                let mut sums = vec![0.0; self.line];
                for from in places.clone().step_by(BATCH_ROWS) {
                    let entries = || (from..places.end.min(from + BATCH_ROWS)).map(&entry);
                    view.gather_into(entries().map(|entry| entry.row), &mut rows)?;
                    let shares = entries().enumerate().map(|(i, entry)| Share {
                        row: i as u32,
                        share: entry.share * rows.weight(i),
                    });
                    let shares: Vec<Share> = shares.collect();
                    let anchor = self.anchors.row(component);
                    add_to(&rows.values, &shares, anchor, &mut sums);
                }
                Ok(Part { component, sums })
            });
            parts.collect::<Result<Vec<_>>>()
        });
        parallel::joined(parts)
    }

    /// Adds parts in the order of their components.
    pub(super) fn add_parts(&mut self, parts: Vec<Part>) {
        let line = self.line;
        parallel::map_chunks(&mut self.sums, line * COMPONENTS, |_, range, sums| {
            for (c, sums) in (range.start / line..).zip(sums.chunks_exact_mut(line)) {
                let first = parts.partition_point(|part| part.component < c);
                for part in parts[first..].iter().take_while(|part| part.component == c) {
                    for (sum, more) in sums.iter_mut().zip(&part.sums) {
                        *sum += more;
                    }
                }
            }
        });
        // Rows that leave are in the sum before, rows that come are in the sum after: the larger one covers both.
        (0..self.largest.len()).for_each(|c| self.see(c));
    }

    /// Moves rows between components, and recomputes the sums that have lost their digits. `assignment` contains the changes
    /// already.
    pub(crate) fn apply(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        changes: &[Change],
    ) -> Result<()> {
        let k = assignment.components();
        // Each change is two entries.
        let entry = |i: usize| {
            let Change { row, from, to, .. } = changes[i / 2];
            let (c, share) = [(from, -1.0), (to, 1.0)][i % 2];
            (c, Share { row, share })
        };
        let (starts, entries) = sort::sorted_apart(k, Share::default(), 2 * changes.len(), entry);
        // The sums of a component are made anew if they cost no more than its changes.
        let most = |c: usize| starts[c + 1] - starts[c] >= assignment.members(c).len().max(1);
        let parts = self.gathered(view, &starts, |c| !most(c), |place| entries[place])?;
        self.add_parts(parts);
        self.renew_where(view, centres, assignment, most)
    }

    /// Recomputes sums where that is `due`, and where only rounding is left of them: of components that lost nearly all of their
    /// mass, or of their squared distances. An update of the means can cause such a loss as well, without any change.
    pub(crate) fn renew_where(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        due: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut stale = self.lost_digits(centres);
        (0..stale.len()).for_each(|c| stale[c] |= due(c));
        if stale.contains(&true) {
            self.renew(view, centres, assignment, &stale)?;
        }
        Ok(())
    }

    /// The components of whose sums only rounding is left.
    fn lost_digits(&self, centres: &Centres<F>) -> Vec<bool> {
        let k = centres.len();
        let about = parallel::map(k, |c| self.about(c, centres.row(c)));
        let mean = about.iter().sum::<f64>() / k as f64;
        let is_lost = |c: usize| {
            let [mass, second] = self.largest[c];
            mass > LARGER[0] * self.mass(c) || second > LARGER[1] * about[c].max(mean)
        };
        (0..k).map(is_lost).collect()
    }

    pub(super) fn have_lost_digits(&self, centres: &Centres<F>) -> bool {
        self.lost_digits(centres).contains(&true)
    }

    /// Moves one row from a component to another. One that had no rows gets its anchor there: its own may be far away.
    pub(super) fn move_row(&mut self, row: &[F], weight: f64, change: &Change) {
        for (c, share) in [(change.from, -weight), (change.to, weight)] {
            let c = c as usize;
            if self.mass(c) <= 0.0 {
                self.anchors.replace(c, row);
                self.clear(c);
            }
            let sums = &mut self.sums[c * self.line..][..self.line];
            add_to(row, &[Share { row: 0, share }], self.anchors.row(c), sums);
            self.see(c);
        }
    }

    fn clear(&mut self, c: usize) {
        self.sums[c * self.line..][..self.line].fill(0.0);
        self.largest[c] = [0.0; 2];
    }

    /// Keeps the largest sums of a component.
    fn see(&mut self, c: usize) {
        let sums = &self.sums[c * self.line..];
        let largest = &mut self.largest[c];
        *largest = [largest[0].max(sums[0]), largest[1].max(sums[1])];
    }

    /// Checks those of a file, for `k` components in `dim` coordinates.
    pub(crate) fn check(&self, k: usize, dim: usize) -> std::result::Result<(), FileFault> {
        let shape = [self.anchors.len(), self.anchors.dim(), self.largest.len()];
        let sized = shape == [k, dim, k] && self.line == stride(dim) + 2;
        rule(sized, "sums", "must be of each component")?;
        all_finite("sums", &self.sums, k * self.line)?;
        all_finite("largest sums", self.largest.as_flattened(), 2 * k)
    }

    pub(crate) fn mass(&self, c: usize) -> f64 {
        self.sums[c * self.line]
    }

    /// The mean of the rows of component `c`, padded; its anchor if it has none.
    pub(crate) fn mean(&self, c: usize) -> impl Iterator<Item = f64> {
        let sums = &self.sums[c * self.line..][..self.line];
        let mass = Some(sums[0]).filter(|mass| *mass > 0.0);
        let mass = mass.unwrap_or(f64::INFINITY);
        let places = self.anchors.row(c).iter().zip(&sums[2..]);
        places.map(move |(anchor, first)| anchor.to_f64() + first / mass)
    }

    /// The mean of component `c` as seen from a padded row.
    pub(super) fn offset(&self, c: usize, row: &[F]) -> Offset {
        let places = row.iter().zip(self.mean(c));
        let squared: f64 = places.map(|(z, mean)| (z.to_f64() - mean).powi(2)).sum();
        let mass = self.mass(c);
        let distance = if mass > 0.0 { squared.sqrt() } else { 0.0 };
        Offset { mass, distance }
    }

    pub(super) fn components(&self) -> usize {
        self.largest.len()
    }

    pub(crate) fn zero_mass(&self) -> usize {
        let components = 0..self.components();
        components.filter(|&c| self.mass(c) <= 0.0).count()
    }

    /// Mass and first moments about the current means, and the squared distances to them: what an M-step needs (E36).
    pub(crate) fn moments_about(&self, centres: &Centres<F>) -> (Moments, f64) {
        let mut moments = Moments::totals(centres.len(), centres.dim());
        for (c, sums) in self.sums.chunks_exact(self.line).enumerate() {
            let places = centres.row(c).iter().zip(self.anchors.row(c));
            let first = places
                .zip(&sums[2..])
                .map(|((mu, anchor), first)| first - sums[0] * (mu.to_f64() - anchor.to_f64()));
            moments.set(c, sums[0], first);
        }
        (moments, self.squared(centres))
    }

    /// Weighted squared distances of all rows to the centres of their components, from the sums alone (E36).
    pub(crate) fn squared(&self, centres: &Centres<F>) -> f64 {
        let components = 0..self.anchors.len();
        components.map(|c| self.about(c, centres.row(c))).sum()
    }

    /// Weighted squared distance of the rows of component `c` to `centre`.
    fn about(&self, c: usize, centre: &[F]) -> f64 {
        let sums = &self.sums[c * self.line..][..self.line];
        let mut along = 0.0;
        let mut moved = 0.0;
        let places = centre.iter().zip(self.anchors.row(c)).zip(&sums[2..]);
        for ((mu, anchor), first) in places {
            let e = mu.to_f64() - anchor.to_f64();
            along += first * e;
            moved += e * e;
        }
        (sums[1] - 2.0 * along + sums[0] * moved).max(0.0)
    }

    /// The means of all components as seen from their centres.
    pub(crate) fn offsets(&self, centres: &Centres<F>) -> Vec<Offset> {
        parallel::map(centres.len(), |c| self.offset(c, centres.row(c)))
    }

    /// Moves every centre to the mean of its rows; one without mass stays.
    pub(crate) fn move_centres(&self, centres: &mut Centres<F>) {
        centres.update(|c, centre| {
            if self.mass(c) > 0.0 {
                for (mu, mean) in centre.iter_mut().zip(self.mean(c)) {
                    *mu = F::from_f64(mean);
                }
            }
        });
    }
}

/// Adds padded rows to the sums of one component about its anchor.
fn add_to<F: Float>(rows: &[F], shares: &[Share], anchor: &[F], sums: &mut [f64]) {
    let (head, first) = sums.split_at_mut(2);
    head[0] += shares.iter().map(|share| share.share).sum::<f64>();
    // This is no function pointer: such a function would be compiled for the oldest processor.
    head[1] += vectorised!(add_rows::<F, true>(rows, shares, anchor, first));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use ndarray::Array2;

    /// Far rows come and leave: what is kept has the digits of sums made anew.
    #[test]
    fn kept_sums_are_fresh_sums_after_far_rows_left() {
        for seed in 0..30 {
            let mut rng = Rng::from_seed(seed);
            let n = 400;
            let d = 1 + rng.below(6);
            let k = 2 + rng.below(20);
            let far = 10f64.powi(2 + rng.below(6) as i32);
            let x = Array2::from_shape_fn((n, d), |(i, _)| {
                rng.normal() + if i.is_multiple_of(20) { far } else { 0.0 }
            });
            let data = Dense::new(x.view()).unwrap();
            let frame = data.frame();
            let view = View::new(&data, &frame);
            // The last component is the far rows' own; they visit others for a while.
            let mut label = |i: usize| match i % 20 {
                0 => rng.below(k + 1) as u32,
                _ => (i % k) as u32,
            };
            let labels: Vec<u32> = (0..n).map(&mut label).collect();
            let mut assignment = Assignment::<f64>::of_labels(&labels, k + 1);
            let start = x.select(ndarray::Axis(0), &(0..=k).collect::<Vec<_>>());
            let mut centres = Centres::enter(start.view(), &frame);
            let mut sums = KeptSums::of(view, &centres, &assignment).unwrap();
            for round in 0..6 {
                let mut changes = Vec::new();
                for c in 0..=k {
                    for place in assignment.places(c) {
                        let to = match (assignment.members[place].row % 20, round) {
                            (0, 0..4) => rng.below(k + 1) as u32,
                            (0, _) => k as u32,
                            _ if rng.below(8) == 0 => rng.below(k) as u32,
                            _ => c as u32,
                        };
                        if to != c as u32 {
                            changes.push(assignment.change(place, c, to));
                        }
                    }
                }
                sums.move_centres(&mut centres);
                assignment.apply(&changes);
                sums.apply(view, &centres, &assignment, &changes).unwrap();
                let kept = sums.squared(&centres);
                let fresh = KeptSums::of(view, &centres, &assignment).unwrap();
                let fresh = fresh.squared(&centres);
                assert!((kept - fresh).abs() <= 1e-12 * fresh, "{seed} {round}");
            }
        }
    }
}
