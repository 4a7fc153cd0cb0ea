//! What a block of rows adds to moments; for rows that know some of their coordinates, all of it.

use super::Moments;
use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::kernels::sparse::{self, Entries, Known};
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::{Centres, Rows};

impl<F: Float> Rows<F> {
    /// Adds the rows, shared out by the responsibilities of `block`, to `moments` about `centres` (E5).
    #[inline(never)]
    pub fn accumulate(&self, block: &Block<F>, centres: &Centres<F>, moments: &mut Moments) {
        if let Some(known) = self.known() {
            return self.add_sparse(known, block, centres, moments);
        }
        self.add_up(block, centres, moments);
    }

    /// [`accumulate`](Self::accumulate) of sparse rows.
    fn add_sparse(
        &self,
        known: Entries<'_, F>,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        // Sums of their own pay where they are looked at more often than they are coordinates.
        if block.is_full() && self.values.len() >= self.dim {
            if block.components() <= 4 {
                self.accumulate_full::<4>(known, block, centres, moments);
            } else {
                self.accumulate_full::<8>(known, block, centres, moments);
            }
            return;
        }
        let all: Vec<u32> = (0..block.components() as u32).collect();
        for (i, row) in known.rows().enumerate() {
            let support = if block.is_full() {
                &all[..]
            } else {
                block.support(i)
            };
            for (&c, &q) in support.iter().zip(block.responsibilities(i)) {
                let share = self.weights[i] * q.to_f64();
                if share > 0.0 {
                    moments.add_entries(c as usize, share, row, centres);
                }
            }
        }
    }

    /// Adds all rows to all components: few sums are looked at per coordinate, `L` components at a time.
    fn accumulate_full<const L: usize>(
        &self,
        known: Entries<'_, F>,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        let (k, stride) = (block.components(), stride(block.components()));
        let table = centres.by_coordinate();
        // Mass, first and second moments.
        let mut sums = vec![[[0.0; L]; 3]; self.dim];
        for first in (0..k).step_by(L) {
            let components = first..k.min(first + L);
            vectorised!({
                for (i, Known { ids, values }) in known.rows().enumerate() {
                    let mut shares = [0.0; L];
                    let responsibilities = &block.responsibilities(i)[components.clone()];
                    for (l, q) in responsibilities.iter().enumerate() {
                        shares[l] = self.weights[i] * q.to_f64();
                        moments.add_mass(first + l, shares[l]);
                    }
                    if self.weights[i] <= 0.0 {
                        continue;
                    }
                    for (&j, x) in ids.iter().zip(values) {
                        let j = j as usize;
                        let mu = *sparse::at::<F, L>(table, j * stride + first);
                        // A copy and back: the compiler sees that nothing overlaps, and takes whole vectors.
                        let [mut observed, mut firsts, mut seconds] = sums[j];
                        for l in 0..L {
                            let t = x.to_f64() - mu[l].to_f64();
                            let part = shares[l] * t;
                            observed[l] += shares[l];
                            firsts[l] += part;
                            seconds[l] += part * t;
                        }
                        sums[j] = [observed, firsts, seconds];
                    }
                }
            });
            for (j, sums) in sums.iter_mut().enumerate() {
                for (l, c) in components.clone().enumerate() {
                    moments.add_coordinate(c, j, [sums[0][l], sums[1][l], sums[2][l]]);
                }
                *sums = [[0.0; L]; 3];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Sketch};
    use crate::m_step::Second;
    use crate::model::posterior::{self, LogJoint};
    use ndarray::{Array1, Array2, Axis};

    /// Rows of a sketch in its own frame, and as many centres as asked for, at the first rows.
    fn rows_and_centres(n: usize, d: usize, q: usize, k: usize) -> (Rows<f64>, Centres<f64>) {
        let mut rng = Rng::from_seed(3);
        let x = Array2::from_shape_fn((n, d), |(n, j)| (n % 3 * j) as f64 + rng.normal());
        let w = Array1::from_shape_fn(n, |n| (n % 4) as f64);
        let sketch = Sketch::weighted(x.view(), w.view(), q, 7).unwrap();
        let (frame, mut rows) = (sketch.frame(), Rows::default());
        sketch.load(0..n, &frame, &mut rows).unwrap();
        let centres = Centres::enter(x.slice_axis(Axis(0), (0..k).into()), &frame);
        (rows, centres)
    }

    /// The naive sums: mass, then per coordinate mass, first and second moment.
    fn naive(
        rows: &Rows<f64>,
        centres: &Centres<f64>,
        block: &Block<f64>,
        c: usize,
    ) -> (f64, Vec<[f64; 3]>) {
        let (mut mass, mut sums) = (0.0, vec![[0.0; 3]; centres.dim()]);
        for i in 0..rows.len() {
            let place = if block.is_full() {
                Some(c)
            } else {
                block.support(i).iter().position(|&s| s as usize == c)
            };
            let share = place.map_or(0.0, |p| block.responsibilities(i)[p] * rows.weight(i));
            mass += share;
            let Known { ids, values } = rows.known().unwrap().row(i);
            for (&j, &z) in ids.iter().zip(values) {
                let t = z - centres.row(c)[j as usize];
                let sums = &mut sums[j as usize];
                sums[0] += share;
                sums[1] += share * t;
                sums[2] += share * t * t;
            }
        }
        (mass, sums)
    }

    fn accumulated(n: usize, q: usize, k: usize, width: usize, kind: Second) {
        let d = 13;
        let (rows, centres) = rows_and_centres(n, d, q, k);
        let mut block = Block::new(k, width);
        let supports = (0..n * width).map(|i| ((i / width + i % width * 2) % k) as u32);
        let supports: Vec<u32> = supports.collect();
        block.reset(n, if width < k { &supports } else { &[] });
        let mut rng = Rng::from_seed(1);
        for i in 0..n {
            block.scores_mut(i).fill_with(|| rng.uniform());
        }
        let log_joint = LogJoint {
            alpha: 0.0,
            gamma: 0.0,
            beta: 2.0,
        };
        posterior::normalise(&rows, &mut block, log_joint);
        let mut moments = Moments::zeros(k, d, kind);
        rows.accumulate(&block, &centres, &mut moments);
        for c in 0..k {
            let (mass, sums) = naive(&rows, &centres, &block, c);
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-11, "{a} {b}");
            near(moments.mass(c), mass);
            near(moments.entries(c), sums.iter().map(|s| s[0]).sum());
            for (j, sums) in sums.iter().enumerate() {
                near(moments.observed(c, j), sums[0]);
                near(moments.first(c)[j], sums[1]);
                if kind == Second::PerCoordinate {
                    near(moments.second()[c * stride(d) + j], sums[2]);
                }
            }
            if kind == Second::PerComponent {
                near(moments.second()[c], sums.iter().map(|s| s[2]).sum());
            }
        }
    }

    #[test]
    fn moments_are_the_naive_sums() {
        // Sums of their own or not; full or truncated supports; few and many components.
        for (n, q, k, width) in [
            (40, 5, 3, 3),
            (3, 2, 3, 3),
            (60, 13, 4, 4),
            (40, 5, 7, 7),
            (90, 6, 33, 33),
            (40, 5, 7, 2),
            (40, 5, 3, 1),
        ] {
            for kind in [Second::Total, Second::PerComponent, Second::PerCoordinate] {
                accumulated(n, q, k, width, kind);
            }
        }
    }
}
