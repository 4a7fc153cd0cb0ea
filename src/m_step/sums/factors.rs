//! Sums of factor analysers (E58).

use super::members::members;
use super::moments::Moments;
use crate::base::float::Float;
use crate::base::simd::vectorised;
use crate::base::sort;
use crate::costs::LowRank;
use crate::kernels::accumulate::Share;
use crate::kernels::stride;
use crate::model::block::Block;
use crate::rows::Rows;

/// Rows whose products are added up together.
const ROWS: usize = 4;

impl Moments {
    /// Adds a block of dense rows, shared out by its responsibilities: masses, first moments, second moments of columns, and the
    /// products of differences $u$ from the mean with the coordinates $b$ of their expected factors.
    pub(super) fn sum_factors<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        known: &LowRank<'_, F>,
    ) {
        let wide = stride(rows.dim);
        let (starts, members) = members(rows, block);
        let mut differences = vec![0.0; ROWS * wide];
        for (c, places) in sort::among(&starts, 0..members.len()) {
            let mean = known.centres.row(c);
            let map = known.factored.map(c);
            let members = &members[places];
            for some in members.chunks(ROWS) {
                for (u, member) in differences.chunks_exact_mut(wide).zip(some) {
                    let row = rows.row(member.row as usize);
                    vectorised!({
                        for ((u, x), m) in u.iter_mut().zip(row).zip(mean) {
                            *u = x.to_f64() - m.to_f64();
                        }
                    });
                    self.mass[c] += member.share;
                }
                match some.len() {
                    ROWS => add_rows::<F, ROWS>(some, &differences, map, c, self),
                    _ => (some.iter().zip(differences.chunks_exact(wide))).for_each(|(one, u)| {
                        add_rows::<F, 1>(&[*one], u, map, c, self);
                    }),
                }
            }
            // A ridge (E59) adds nothing to masses and first moments.
            let share = members.iter().map(|member| member.share).sum();
            let first = self.first_mut(c).to_vec();
            for (j, ridge) in known.ridge.iter().enumerate() {
                let mut u = vec![0.0; wide];
                u[j] = ridge.sqrt();
                add_rows::<F, 1>(&[Share { row: 0, share }], &u, map, c, self);
            }
            self.first_mut(c).copy_from_slice(&first);
        }
    }
}

/// Adds `R` rows with their shares, given as differences from the mean of component `c`.
fn add_rows<F: Float, const R: usize>(
    members: &[Share],
    differences: &[f64],
    map: &[F],
    c: usize,
    sums: &mut Moments,
) {
    const LANES: usize = 4;
    let wide = differences.len() / R;
    let shares: [f64; R] = std::array::from_fn(|r| members[r].share);
    let rows: [&[f64]; R] = std::array::from_fn(|r| &differences[r * wide..][..wide]);
    let first = sums.first_mut(c);
    vectorised!(add_up(first, rows, shares));
    let second = sums.second_mut(c);
    vectorised!({
        for (u, share) in rows.iter().zip(shares) {
            for (sum, u) in second.iter_mut().zip(*u) {
                *sum += share * (u * u);
            }
        }
    });
    let products = sums.products_mut(c).chunks_exact_mut(wide);
    vectorised!({
        for (sums, row) in products.zip(map.chunks_exact(wide)) {
            let mut along = [[0.0; LANES]; R];
            for (j, b) in row.as_chunks::<LANES>().0.iter().enumerate() {
                for r in 0..R {
                    let u = &rows[r][LANES * j..][..LANES];
                    for l in 0..LANES {
                        along[r][l] += b[l].to_f64() * u[l];
                    }
                }
            }
            let mut factors = [0.0; R];
            for r in 0..R {
                let [a, b, c, d] = along[r];
                factors[r] = shares[r] * ((a + b) + (c + d));
            }
            add_up(sums, rows, factors);
        }
    });
}

/// Adds rows, times a factor each.
#[inline(always)]
fn add_up<const R: usize>(sums: &mut [f64], rows: [&[f64]; R], factors: [f64; R]) {
    for j in 0..sums.len() {
        for r in 0..R {
            sums[j] += factors[r] * rows[r][j];
        }
    }
}
