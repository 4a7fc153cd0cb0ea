//! Weighted sums of dense rows, component by component (E5).

use super::Moments;
use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::kernels::accumulate::{Share, add_rows};
use crate::kernels::columns::{Columns, ROWS};
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::{Centres, Rows};

/// So few components that all rows add to the sums of each of them, most with a share of 0: sums that stay in registers take
/// less time than those that a row chooses.
const FEW: usize = 4;

impl<F: Float> Rows<F> {
    /// [`Rows::accumulate`](Rows::accumulate).
    pub(super) fn add_up(&self, block: &Block<F>, centres: &Centres<F>, moments: &mut Moments) {
        if let Some(terms) = &block.terms
            && self.add_products(block, terms, centres, moments)
        {
            return;
        }
        let listed = moments.is_total() && !block.is_full();
        match stride(self.dim) {
            4 if listed => return self.accumulate_short::<4>(block, centres, moments),
            8 if listed => return self.accumulate_short::<8>(block, centres, moments),
            _ if listed && block.components() <= 16 * self.len() => {
                return self.accumulate_by_component(block, centres, moments);
            }
            _ => (),
        }
        vectorised!({
            for i in 0..self.len() {
                let (row, shares) = (self.row(i), block.responsibilities(i));
                for (place, &q) in shares.iter().enumerate() {
                    let share = self.weights[i] * q.to_f64();
                    if share > 0.0 {
                        let c = match block.is_full() {
                            true => place,
                            false => block.support(i)[place] as usize,
                        };
                        moments.add(c, share, row, centres);
                    }
                }
            }
        });
    }

    /// What each row adds to the components of its support (len, width), and to their masses.
    fn shares(&self, block: &Block<F>, moments: &mut Moments) -> Vec<f64> {
        let width = block.width();
        let shares = block.responsibilities[..block.supports.len()].iter();
        let mut shares: Vec<f64> = shares.map(|q| q.to_f64()).collect();
        let supports = block.supports.chunks_exact(width);
        let of_rows = shares.chunks_exact_mut(width).zip(supports);
        for ((shares, support), weight) in of_rows.zip(&self.weights) {
            for (share, &c) in shares.iter_mut().zip(support) {
                *share *= weight;
                moments.add_mass(c as usize, *share);
            }
        }
        shares
    }

    /// Masses and first moments row by row, of rows of `D` numbers with their padding: so few that nothing is gained by an
    /// order.
    fn accumulate_short<const D: usize>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        let (k, width) = (block.components(), block.width());
        let (mass, places, first) = match k <= self.len() {
            true => moments.short_of::<D>(0..k as u32),
            false => moments.short_of::<D>(block.supports.iter().copied()),
        };
        let (rows, _) = self.values.as_chunks::<D>();
        let (centres, _) = centres.values().as_chunks::<D>();
        let found = block.supports.chunks_exact(width);
        let found = found.zip(block.responsibilities.chunks_exact(width));
        vectorised!({
            if width == 1 && k <= FEW {
                let mut sums = [Sums::new(); FEW];
                self.add_abreast(block, rows, centres, &mut sums);
                for (c, sums) in sums[..k].iter().enumerate() {
                    mass[c] += sums.mass.iter().sum::<f64>();
                    let first = &mut first[places[c] as usize];
                    for (first, sums) in first.iter_mut().zip(sums.first) {
                        *first += sums.iter().sum::<f64>();
                    }
                }
                return;
            }
            let weighted = rows.iter().zip(&self.weights);
            for ((row, weight), (support, shares)) in weighted.zip(found) {
                for (&c, &share) in support.iter().zip(shares) {
                    let (c, share) = (c as usize, share.to_f64() * weight);
                    mass[c] += share;
                    // Copies: what is changed in place is not compiled for vectors.
                    let (centre, place) = (centres[c], places[c] as usize);
                    let mut total = first[place];
                    for j in 0..D {
                        total[j] += share * (row[j].to_f64() - centre[j].to_f64());
                    }
                    first[place] = total;
                }
            }
        });
    }

    /// Masses and first moments of few components: every row adds to each, to most with a share of 0.
    #[inline(always)]
    fn add_abreast<const D: usize>(
        &self,
        block: &Block<F>,
        rows: &[[F; D]],
        centres: &[[F; D]],
        sums: &mut [Sums<D>; FEW],
    ) {
        let mut columns = Columns::new();
        let rows = rows.chunks(ROWS).zip(self.weights.chunks(ROWS));
        let found = block.supports.chunks(ROWS);
        let found = found.zip(block.responsibilities.chunks(ROWS));
        for ((rows, weights), (supports, shares)) in rows.zip(found) {
            columns.take(rows, |_, x| x);
            let (mut of_rows, mut labels) = ([0.0; ROWS], [0; ROWS]);
            labels[..supports.len()].copy_from_slice(supports);
            for ((out, weight), share) in of_rows.iter_mut().zip(weights).zip(shares) {
                *out = weight * share.to_f64();
            }
            for ((c, centre), sums) in (0..).zip(centres).zip(sums.iter_mut()) {
                let mut of_component = [0.0; ROWS];
                for r in 0..ROWS {
                    of_component[r] = if labels[r] == c { of_rows[r] } else { 0.0 };
                }
                sums.add(&columns, self.dim, &of_component, centre);
            }
        }
    }

    /// First moments component by component: its sums stay in registers while all of its rows add to them.
    fn accumulate_by_component(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        let width = block.width();
        let shares = self.shares(block, moments);
        let mut starts = vec![0u32; block.components() + 1];
        for (&c, share) in block.supports.iter().zip(&shares) {
            starts[c as usize + 1] += u32::from(*share > 0.0);
        }
        for c in 0..block.components() {
            starts[c + 1] += starts[c];
        }
        let mut next = starts.clone();
        let mut entries = vec![Share::default(); next[block.components()] as usize];
        for (i, shares) in shares.chunks_exact(width).enumerate() {
            for (&c, &share) in block.support(i).iter().zip(shares) {
                if share > 0.0 {
                    let next = &mut next[c as usize];
                    let row = i as u32;
                    entries[*next as usize] = Share { row, share };
                    *next += 1;
                }
            }
        }
        vectorised!({
            for (c, ends) in starts.windows(2).enumerate() {
                let entries = &entries[ends[0] as usize..ends[1] as usize];
                if !entries.is_empty() {
                    let sums = moments.first_mut(c);
                    add_rows::<F, false>(&self.values, entries, centres.row(c), sums);
                }
            }
        });
    }
}

/// Sums of one component, each in several parts, so that rows side by side are not added up across lanes.
#[derive(Clone, Copy)]
struct Sums<const D: usize> {
    mass: [f64; PARTS],
    first: [[f64; PARTS]; D],
}

const PARTS: usize = 8;

impl<const D: usize> Sums<D> {
    fn new() -> Self {
        Self {
            mass: [0.0; PARTS],
            first: [[0.0; PARTS]; D],
        }
    }

    /// Adds rows side by side with these shares.
    #[inline(always)]
    fn add<F: Float>(
        &mut self,
        columns: &Columns<F, D>,
        dim: usize,
        shares: &[f64; ROWS],
        centre: &[F; D],
    ) {
        let (shares, _) = shares.as_chunks::<PARTS>();
        let mut mass = self.mass;
        for shares in shares {
            for l in 0..PARTS {
                mass[l] += shares[l];
            }
        }
        self.mass = mass;
        let columns = columns.0[..dim].iter().zip(centre);
        for ((column, mu), first) in columns.zip(&mut self.first) {
            let (mut sums, mu) = (*first, mu.to_f64());
            for (values, shares) in column.as_chunks::<PARTS>().0.iter().zip(shares) {
                for l in 0..PARTS {
                    sums[l] += shares[l] * (values[l].to_f64() - mu);
                }
            }
            *first = sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::m_step::Second;
    use crate::rows::Frame;
    use ndarray::{Array1, Array2};

    /// Short rows, rows of one vector, and rows of some; supports of one component and of several.
    #[test]
    fn moments_are_the_naive_ones() {
        let n = 70;
        let shapes = [(1, 1), (2, 1), (3, 2), (7, 1), (8, 3), (9, 1), (80, 2)];
        let few = [(2, 1, 3), (4, 1, 4), (6, 1, 2), (8, 1, 4)];
        let shapes = shapes.map(|(d, width)| (d, width, 9));
        for (d, width, k) in shapes.into_iter().chain(few) {
            let mut rng = Rng::from_seed(d as u64);
            let x = Array2::from_shape_fn((n, d), |_| rng.normal());
            let weights = Array1::from_shape_fn(n, |i| (i % 4) as f64);
            let data = Dense::weighted(x.view(), weights.view()).unwrap();
            let frame = Frame::of(data.summary());
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut rows, mut block) = (Rows::default(), Block::new(k, width));
            data.load(0..n, &frame, &mut rows).unwrap();
            let supports: Vec<u32> = (0..n * width).map(|i| (i * i % (k - 1)) as u32).collect();
            block.reset(n, &supports);
            let block = block.with_shares(|i, place| (1 + (i * width + place) % 3) as f64 / 6.0);
            let mut moments = Moments::zeros(k, d, Second::Total);
            rows.accumulate(&block, &centres, &mut moments);

            let (mut mass, mut first) = (vec![0.0; k], Array2::<f64>::zeros((k, d)));
            for (place, &c) in supports.iter().enumerate() {
                let (i, c) = (place / width, c as usize);
                let share = weights[i] * block.responsibilities[place];
                mass[c] += share;
                for j in 0..d {
                    let z = (x[[i, j]] - frame.offset()[j]) * frame.inverse_unit();
                    first[[c, j]] += share * (z - centres.row(c)[j]);
                }
            }
            for c in 0..k {
                assert!((moments.mass(c) - mass[c]).abs() <= 1e-12 * (1.0 + mass[c]));
                for j in 0..d {
                    let (got, naive) = (moments.first(c)[j], first[[c, j]]);
                    assert!(
                        (got - naive).abs() <= 1e-12 * (1.0 + naive.abs()),
                        "{d} {c} {j}"
                    );
                }
            }
        }
    }

    /// Shares over eighty powers of ten, and the smaller the farther out: sums over all components are the naive ones.
    fn small_shares_far_away(kind: Second) {
        let (n, d, k) = (200, 5, 3);
        let mut rng = Rng::from_seed(12);
        let power: Vec<f64> = (0..n).map(|_| 20.0 * rng.uniform()).collect();
        let x = Array2::from_shape_fn((n, d), |(i, _)| rng.normal() * 10f64.powf(power[i]));
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
        let (mut rows, mut block) = (Rows::default(), Block::new(k, k));
        data.load(0..n, &frame, &mut rows).unwrap();
        block.reset(n, &[]);
        let block = block.with_shares(|i, _| 10f64.powf(-2.0 * power[i] - 40.0 * rng.uniform()));
        let mut moments = Moments::zeros(k, d, kind);
        rows.accumulate(&block, &centres, &mut moments);
        for c in 0..k {
            let (mut mass, mut second) = (0.0, 0.0);
            let mut largest = vec![0.0f64; d];
            let (mut first, mut per_column) = (vec![0.0; d], vec![0.0; d]);
            for i in 0..n {
                let share = block.responsibilities(i)[c];
                mass += share;
                for j in 0..d {
                    let t = rows.row(i)[j] - centres.row(c)[j];
                    first[j] += share * t;
                    largest[j] = largest[j].max(share * t.abs());
                    per_column[j] += share * t * t;
                    second += share * t * t;
                }
            }
            assert!((moments.mass(c) - mass).abs() <= 1e-13 * mass);
            for j in 0..d {
                let off = (moments.first(c)[j] - first[j]).abs();
                assert!(off <= 1e-13 * largest[j], "{c} {j}: {off} {}", largest[j]);
            }
            let seconds = match kind {
                Second::Total => continue,
                Second::PerComponent => (&moments.second()[c..=c], vec![second]),
                _ => (&moments.second()[c * stride(d)..][..d], per_column),
            };
            for (got, naive) in seconds.0.iter().zip(seconds.1) {
                assert!((got - naive).abs() <= 1e-13 * naive, "{c}: {got} {naive}");
            }
        }
    }

    #[test]
    fn shares_are_left_out_only_where_they_are_lost_in_every_sum() {
        small_shares_far_away(Second::Total);
        small_shares_far_away(Second::PerComponent);
        small_shares_far_away(Second::PerCoordinate);
    }
}
