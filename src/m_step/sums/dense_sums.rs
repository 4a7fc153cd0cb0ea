//! Weighted sums of dense rows, component by component (E5).

use super::moments::Moments;
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
    /// Adds dense rows about centres.
    pub(super) fn sum_dense(&self, block: &Block<F>, centres: &Centres<F>, moments: &mut Moments) {
        let listed = moments.has_totals() && !block.is_full();
        match stride(self.dim) {
            4 if listed => self.sum_short::<4>(block, centres, moments),
            8 if listed => self.sum_short::<8>(block, centres, moments),
            _ if listed && block.components() <= 16 * self.len() => {
                self.sum_by_component(block, centres, moments);
            }
            _ => self.sum_by_row(block, centres, moments),
        }
    }

    /// Adds dense rows to all components of their supports: as products, or row by row. Rows may have another type than their
    /// shares.
    pub(super) fn sum_by_row<B: Float>(
        &self,
        block: &Block<B>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        if let Some(terms) = &block.terms
            && self.sum_products(block, terms, centres, moments)
        {
            return;
        }
        vectorised!({
            for i in 0..self.len() {
                let row = self.row(i);
                let shares = block.responsibilities(i);
                for (place, &q) in shares.iter().enumerate() {
                    let share = self.weights[i] * q.to_f64();
                    if share > 0.0 {
                        let c = if block.is_full() {
                            place
                        } else {
                            block.support(i)[place] as usize
                        };
                        moments.add_row(c, share, row, centres);
                    }
                }
            }
        });
    }

    /// The shares of each row in the components of its support (len, width), added to their masses.
    fn shares(&self, block: &Block<F>, moments: &mut Moments) -> Vec<f64> {
        let width = block.width();
        let shares = block.responsibilities[..block.supports.len()].iter();
        let mut shares: Vec<f64> = shares.map(|q| q.to_f64()).collect();
        let supports = block.supports.chunks_exact(width);
        let of_rows = shares.chunks_exact_mut(width).zip(supports);
        for ((shares, support), weight) in of_rows.zip(&self.weights) {
            for (share, &c) in shares.iter_mut().zip(support) {
                *share *= weight;
                moments.mass[c as usize] += *share;
            }
        }
        shares
    }

    /// Masses and first moments row by row, of rows of `D` numbers with their padding: so few that nothing is gained by an
    /// order.
    fn sum_short<const D: usize>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments,
    ) {
        let k = block.components();
        let width = block.width();
        if k <= self.len() {
            moments.meet(0..k);
        } else {
            moments.meet(block.supports.iter().map(|c| *c as usize));
        }
        let mass = &mut moments.mass;
        let places = &moments.places;
        let (first, _) = moments.first.as_chunks_mut::<D>();
        let (rows, _) = self.values.as_chunks::<D>();
        let (centres, _) = centres.values.as_chunks::<D>();
        let memberships = block.supports.chunks_exact(width);
        let memberships = memberships.zip(block.responsibilities.chunks_exact(width));
        vectorised!({
            if width == 1 && k <= FEW {
                let mut sums = [Abreast::new(); FEW];
                self.sum_abreast(block, rows, centres, &mut sums);
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
            for ((row, weight), (support, shares)) in weighted.zip(memberships) {
                for (&c, &share) in support.iter().zip(shares) {
                    let c = c as usize;
                    let share = share.to_f64() * weight;
                    mass[c] += share;
                    // Copies: what is changed in place is not compiled for vectors.
                    let centre = centres[c];
                    let place = places[c] as usize;
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
    fn sum_abreast<const D: usize>(
        &self,
        block: &Block<F>,
        rows: &[[F; D]],
        centres: &[[F; D]],
        sums: &mut [Abreast<D>; FEW],
    ) {
        let mut columns = Columns::new();
        let rows = rows.chunks(ROWS).zip(self.weights.chunks(ROWS));
        let memberships = block.supports.chunks(ROWS);
        let memberships = memberships.zip(block.responsibilities.chunks(ROWS));
        for ((rows, weights), (supports, shares)) in rows.zip(memberships) {
            columns.take(rows, |_, x| x);
            let mut of_rows = [0.0; ROWS];
            let mut labels = [0; ROWS];
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
    fn sum_by_component(&self, block: &Block<F>, centres: &Centres<F>, moments: &mut Moments) {
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

/// Abreast of one component, each in several parts, so that rows side by side are not added up across lanes.
#[derive(Clone, Copy)]
struct Abreast<const D: usize> {
    mass: [f64; PARTS],
    first: [[f64; PARTS]; D],
}

const PARTS: usize = 8;

impl<const D: usize> Abreast<D> {
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
            let mut sums = *first;
            let mu = mu.to_f64();
            for (values, shares) in column.as_chunks::<PARTS>().0.iter().zip(shares) {
                for l in 0..PARTS {
                    sums[l] += shares[l] * (values[l].to_f64() - mu);
                }
            }
            *first = sums;
        }
    }
}
