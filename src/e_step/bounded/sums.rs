//! Mass, first and second moments of the components, kept from iteration to iteration: only changes are added.

use super::assignment::{Assignment, Change, PART};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::simd::vectorised;
use crate::base::sort;
use crate::data::{Centres, Data, Frame, Moments, Rows, Second};

/// Sums over the rows of every component about a fixed point, the anchor $a_c$ of the component (E36):
///
/// $$m_c = \sum_n w_n, \qquad f_c = \sum_n w_n (z_n - a_c), \qquad s_c = \sum_n w_n \lVert z_n - a_c \rVert^2$$
///
/// A row that changes its component is taken from the sums of one and added to those of the other; the rest of the
/// data is not read.
#[derive(Debug)]
pub(crate) struct Sums<F> {
    anchors: Centres<F>,
    /// (k, 2 + stride): m, s, f.
    sums: Vec<f64>,
    line: usize,
    /// The largest s of each component since its anchor was set (k): it bounds the rounding error of the current one.
    largest: Vec<f64>,
}

/// A sum is recomputed if it was once more than so many times larger: ten binary digits are lost.
const LARGER: f64 = 1024.0;

/// Components whose sums are put together at a time.
const COMPONENTS: usize = 16;

/// Rows gathered together.
const GATHER: usize = 256;

/// A row that enters (1) or leaves (-1) a component.
#[derive(Clone, Copy, Debug)]
struct Entry {
    row: u32,
    sign: f64,
}

impl<F: Float> Sums<F> {
    /// The sums of an assignment, about the centres.
    pub(crate) fn of(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
    ) -> Self {
        let line = centres.row(0).len() + 2;
        let mut sums = Self {
            anchors: centres.clone(),
            sums: vec![0.0; centres.len() * line],
            line,
            largest: vec![0.0; centres.len()],
        };
        sums.renew(data, frame, centres, assignment, &vec![true; centres.len()]);
        sums
    }

    /// Anchors, sums, and the largest sum of each component.
    pub(super) fn parts(&self) -> (&Centres<F>, &[f64], &[f64]) {
        (&self.anchors, &self.sums, &self.largest)
    }

    /// From these.
    pub(super) fn from_parts(anchors: Centres<F>, sums: Vec<f64>, largest: Vec<f64>) -> Self {
        Self {
            line: anchors.row(0).len() + 2,
            anchors,
            sums,
            largest,
        }
    }

    /// Recomputes the sums of the `stale` components, about their current centres.
    pub(crate) fn renew(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        stale: &[bool],
    ) {
        self.anchors.update_where(stale, centres);
        let entry = |place| Entry {
            row: assignment.member(place).row,
            sign: 1.0,
        };
        let found = self.gathered(data, frame, assignment.starts(), |c| stale[c], entry);
        let line = self.line;
        for (sums, stale) in self.sums.chunks_exact_mut(line).zip(stale) {
            if *stale {
                sums.fill(0.0);
            }
        }
        let _ = self.add(&found);
        for (c, largest) in self.largest.iter_mut().enumerate() {
            if stale[c] {
                *largest = self.sums[c * line + 1];
            }
        }
    }

    /// Sums of the `wanted` components over the entries between their `starts`, by component. A component whose entries
    /// are cut into several parts occurs once per part.
    fn gathered(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        starts: &[usize],
        wanted: impl Fn(usize) -> bool + Sync,
        entry: impl Fn(usize) -> Entry + Sync,
    ) -> Vec<(usize, Vec<f64>)> {
        let parts = parallel::map_blocks(starts[starts.len() - 1], PART, |_, places| {
            let mut gather = Gather::default();
            let wanted = sort::among(starts, places).filter(|(c, _)| wanted(*c));
            let sums = wanted.map(|(c, places)| {
                let mut sums = vec![0.0; self.line];
                let entries = places.map(&entry);
                gather.add(data, frame, self.anchors.row(c), entries, &mut sums);
                (c, sums)
            });
            sums.collect::<Vec<_>>()
        });
        parts.into_iter().flatten().collect()
    }

    /// Adds the gathered sums. Returns for every component whether it lost nearly all of its mass.
    fn add(&mut self, found: &[(usize, Vec<f64>)]) -> Vec<bool> {
        let line = self.line;
        let fell = parallel::map_chunks(&mut self.sums, line * COMPONENTS, |_, range, sums| {
            let lines = (range.start / line..).zip(sums.chunks_exact_mut(line));
            let fell = lines.map(|(c, sums)| {
                let before = sums[0];
                let first = found.partition_point(|(of, _)| *of < c);
                for (_, more) in found[first..].iter().take_while(|(of, _)| *of == c) {
                    for (sum, more) in sums.iter_mut().zip(more) {
                        *sum += more;
                    }
                }
                // Catastrophic cancellation: only rounding is left of the sum.
                sums[0] < 1e-6 * before
            });
            fell.collect::<Vec<bool>>()
        });
        fell.concat()
    }

    /// Moves rows between components. Sums of components that lost nearly all of their mass or of their squared distances
    /// are recomputed from `assignment`, which already contains the changes. An update of the means can cause such a loss
    /// as well, without any change.
    pub(crate) fn apply(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        changes: &[Change],
    ) {
        let k = assignment.components();
        let entries = || {
            changes.iter().flat_map(|&Change { row, from, to, .. }| {
                [(from, -1.0), (to, 1.0)].map(|(c, sign)| (c, Entry { row, sign }))
            })
        };
        let (starts, entries) = sort::sorted(k, Entry { row: 0, sign: 0.0 }, entries);
        let lost = |c: usize| starts[c + 1] - starts[c] >= assignment.members(c).len().max(1);
        let found = self.gathered(data, frame, &starts, |c| !lost(c), |place| entries[place]);
        // Rows that leave are in the sum before, rows that come are in the sum after: the larger one covers both.
        let fell = self.add(&found);
        let about = parallel::map(k, |c| self.about(c, centres.row(c)));
        for (largest, sums) in self
            .largest
            .iter_mut()
            .zip(self.sums.chunks_exact(self.line))
        {
            *largest = largest.max(sums[1]);
        }
        let mean = about.iter().sum::<f64>() / k as f64;
        let collapsed = |c: usize| self.largest[c] > LARGER * about[c].max(mean);
        let stale: Vec<bool> = (0..k).map(|c| fell[c] || lost(c) || collapsed(c)).collect();
        if stale.contains(&true) {
            self.renew(data, frame, centres, assignment, &stale);
        }
    }

    /// Mass of component `c`.
    pub(crate) fn mass(&self, c: usize) -> f64 {
        self.sums[c * self.line]
    }

    /// The mean of the rows of component `c`, padded; its anchor if it has none.
    pub(crate) fn mean(&self, c: usize) -> impl Iterator<Item = f64> {
        let sums = &self.sums[c * self.line..][..self.line];
        let mass = if sums[0] > 0.0 {
            sums[0]
        } else {
            f64::INFINITY
        };
        let places = self.anchors.row(c).iter().zip(&sums[2..]);
        places.map(move |(anchor, first)| anchor.to_f64() + first / mass)
    }

    /// The squared distance of a row to the [mean](Self::mean) of the rows of component `c`.
    pub(crate) fn squared_to(&self, c: usize, row: &[F]) -> f64 {
        let places = row.iter().zip(self.mean(c));
        places.map(|(z, mean)| (z.to_f64() - mean).powi(2)).sum()
    }

    /// Number of components without mass.
    pub(crate) fn zero_mass(&self) -> usize {
        (0..self.anchors.len())
            .filter(|&c| self.mass(c) <= 0.0)
            .count()
    }

    /// Mass and first moments about the current means, and the squared distances to them: what an M-step needs (E36).
    ///
    /// $$f_c - m_c e_c, \qquad e_c = \mu_c - a_c$$
    pub(crate) fn moments_about(&self, centres: &Centres<F>) -> (Moments, f64) {
        let mut moments = Moments::zeros(centres.len(), centres.dim(), Second::Total);
        for (c, sums) in self.sums.chunks_exact(self.line).enumerate() {
            let places = centres.row(c).iter().zip(self.anchors.row(c));
            let first = places
                .zip(&sums[2..])
                .map(|((mu, anchor), first)| first - sums[0] * (mu.to_f64() - anchor.to_f64()));
            moments.set(c, sums[0], first);
        }
        (moments, self.squared(centres))
    }

    /// Weighted squared distances of all rows to the centres of their components (E36), from the sums alone:
    ///
    /// $$\sum_c \left( s_c - 2 f_c^\top e_c + m_c \lVert e_c \rVert^2 \right), \qquad e_c = \mu_c - a_c$$
    pub(crate) fn squared(&self, centres: &Centres<F>) -> f64 {
        let all = 0..self.anchors.len();
        all.map(|c| self.about(c, centres.row(c))).sum()
    }

    /// The same of one component.
    fn about(&self, c: usize, centre: &[F]) -> f64 {
        let sums = &self.sums[c * self.line..][..self.line];
        let (mut along, mut moved) = (0.0, 0.0);
        let places = centre.iter().zip(self.anchors.row(c)).zip(&sums[2..]);
        for ((mu, anchor), first) in places {
            let e = mu.to_f64() - anchor.to_f64();
            along += first * e;
            moved += e * e;
        }
        (sums[1] - 2.0 * along + sums[0] * moved).max(0.0)
    }

    /// Mass of each component, and how far the mean of its rows is from its centre.
    pub(crate) fn offsets(&self, centres: &Centres<F>) -> Vec<(f64, f64)> {
        let offset = |(c, sums): (usize, &[f64])| {
            let places = centres.row(c).iter().zip(self.anchors.row(c));
            let squares = places.zip(&sums[2..]).map(|((mu, anchor), first)| {
                let t = first / sums[0] - (mu.to_f64() - anchor.to_f64());
                t * t
            });
            match sums[0] > 0.0 {
                true => (sums[0], squares.sum::<f64>().sqrt()),
                false => (0.0, 0.0),
            }
        };
        self.sums
            .chunks_exact(self.line)
            .enumerate()
            .map(offset)
            .collect()
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

/// Scratch for reading rows in any order.
#[derive(Debug, Default)]
struct Gather<F> {
    ids: Vec<usize>,
    /// Weights, negative for rows that leave.
    shares: Vec<f64>,
    rows: Rows<F>,
}

impl<F: Float> Gather<F> {
    /// Adds rows to the sums of one component.
    fn add(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        anchor: &[F],
        mut entries: impl Iterator<Item = Entry>,
        sums: &mut [f64],
    ) {
        loop {
            self.ids.clear();
            self.shares.clear();
            for entry in entries.by_ref().take(GATHER) {
                self.ids.push(entry.row as usize);
                self.shares.push(entry.sign);
            }
            if self.ids.is_empty() {
                return;
            }
            data.gather(&self.ids, frame, &mut self.rows);
            for (i, share) in self.shares.iter_mut().enumerate() {
                *share *= self.rows.weight(i);
            }
            let (rows, shares) = (self.rows.values(), &self.shares[..]);
            let (head, first) = sums.split_at_mut(2);
            head[0] += shares.iter().sum::<f64>();
            vectorised!({
                head[1] += add_rows(rows, shares, anchor, first);
            });
        }
    }
}

/// Adds the differences of some rows and an anchor, times their shares. Returns the squared distances, times these.
#[inline(always)]
fn add_rows<F: Float>(rows: &[F], shares: &[f64], anchor: &[F], first: &mut [f64]) -> f64 {
    let (stride, mut squared, mut from) = (anchor.len(), 0.0, 0);
    // Not through a function pointer: the function would be compiled for the oldest processor.
    while stride - from >= 32 {
        squared += add_columns::<F, 32>((rows, from), shares, anchor, first);
        from += 32;
    }
    while stride - from >= 8 {
        squared += add_columns::<F, 8>((rows, from), shares, anchor, first);
        from += 8;
    }
    if from < stride {
        squared += add_columns::<F, 4>((rows, from), shares, anchor, first);
    }
    squared
}

/// The same for `N` columns: their sums are not written before all rows are added.
#[inline(always)]
fn add_columns<F: Float, const N: usize>(
    (rows, from): (&[F], usize),
    shares: &[f64],
    anchor: &[F],
    first: &mut [f64],
) -> f64 {
    let stride = anchor.len();
    let mut about = [0.0; N];
    for (about, a) in about.iter_mut().zip(&anchor[from..]) {
        *about = a.to_f64();
    }
    let (mut total, mut squared) = ([0.0; N], [0.0; N]);
    for (row, &share) in rows.chunks_exact(stride).zip(shares) {
        let Some(row) = row[from..].first_chunk::<N>() else {
            break;
        };
        for j in 0..N {
            let t = row[j].to_f64() - about[j];
            total[j] += share * t;
            squared[j] += share * t * t;
        }
    }
    for (first, total) in first[from..].iter_mut().zip(total) {
        *first += total;
    }
    squared.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::Dense;
    use ndarray::Array2;

    /// Far rows come and leave: what is kept has the digits of sums made anew.
    #[test]
    fn kept_sums_are_fresh_sums_after_far_rows_left() {
        for seed in 0..30 {
            let mut rng = Rng::from_seed(seed);
            let (n, d, k) = (400, 1 + rng.below(6), 2 + rng.below(20));
            let far = 10f64.powi(2 + rng.below(6) as i32);
            let x = Array2::from_shape_fn((n, d), |(i, _)| {
                rng.normal() + if i.is_multiple_of(20) { far } else { 0.0 }
            });
            let data = Dense::new(x.view()).unwrap();
            let frame = data.frame();
            // The last component is the far rows' own; they visit others for a while.
            let own = |i: usize| {
                if i.is_multiple_of(20) {
                    k as u32
                } else {
                    (i % k) as u32
                }
            };
            let mut labels: Vec<u32> = (0..n).map(own).collect();
            for i in (0..n).step_by(20) {
                labels[i] = rng.below(k + 1) as u32;
            }
            let mut assignment = Assignment::<f64>::of_labels(&labels, k + 1);
            let start = x.select(ndarray::Axis(0), &(0..=k).collect::<Vec<_>>());
            let mut centres = Centres::enter(start.view(), &frame);
            let mut sums = Sums::of(&data, &frame, &centres, &assignment);
            for round in 0..6 {
                let mut changes = Vec::new();
                for c in 0..=k {
                    for place in assignment.places(c) {
                        let row = assignment.member(place).row;
                        let to = match (row % 20, round) {
                            (0, 0..4) => rng.below(k + 1) as u32,
                            (0, _) => k as u32,
                            _ if rng.below(8) == 0 => rng.below(k) as u32,
                            _ => c as u32,
                        };
                        if to != c as u32 {
                            changes.push(Change {
                                place,
                                row,
                                from: c as u32,
                                to,
                            });
                        }
                    }
                }
                sums.move_centres(&mut centres);
                assignment.apply(&changes);
                sums.apply(&data, &frame, &centres, &assignment, &changes);
                let kept = sums.squared(&centres);
                let fresh = Sums::of(&data, &frame, &centres, &assignment).squared(&centres);
                assert!(
                    (kept - fresh).abs() <= 1e-12 * fresh,
                    "{seed} {round}: {kept} {fresh}"
                );
            }
        }
    }
}
