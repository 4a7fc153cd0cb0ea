//! Rows times panels of centres or directions: how they are packed, and the inner loop of all that goes by them.

use crate::base::float::Float;
use crate::base::simd::{LANES, Once, kernel, lanes};
use pulp::Simd;

/// Rows by coordinate, times a factor: (panels, d, [`LANES`]) numbers, and (panels, [`LANES`]) constants, such as $-2 \mu$
/// and $\lVert \mu \rVert^2$. Places without a row are infinitely far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Panels<F> {
    pub(super) dim: usize,
    pub(super) values: Vec<F>,
    pub(super) norms: Vec<F>,
}

impl<F: Float> Panels<F> {
    /// Packs padded centres with their squared norms.
    pub(crate) fn pack(centres: &[F], stride: usize, dim: usize, norms: &[F]) -> Self {
        Self::scaled(centres, stride, dim, F::from_f64(-2.0), norms)
    }

    /// Packs padded rows times a factor, each with a constant in place of a squared norm.
    pub(crate) fn scaled(
        rows: &[F],
        stride: usize,
        dim: usize,
        factor: F,
        constants: &[F],
    ) -> Self {
        let mut panels = Self::default();
        panels.make_room(rows.len() / stride, dim);
        for (place, row) in rows.chunks_exact(stride).enumerate() {
            panels.put(place, row, factor, constants[place]);
        }
        panels
    }

    pub(super) fn make_room(&mut self, rows: usize, dim: usize) {
        let places = rows.next_multiple_of(LANES);
        self.dim = dim;
        self.values.clear();
        self.values.resize(places * dim, F::zero());
        self.norms.clear();
        self.norms.resize(places, F::INFINITY);
    }

    #[inline(always)]
    pub(super) fn put(&mut self, place: usize, row: &[F], factor: F, constant: F) {
        let panel = place / LANES;
        let lane = place % LANES;
        let lines = &mut self.values[panel * LANES * self.dim..][..LANES * self.dim];
        for (line, &x) in lines.chunks_exact_mut(LANES).zip(row) {
            line[lane] = factor * x;
        }
        self.norms[place] = constant;
    }

    /// A panel out of padded rows, one for each lane, times a factor.
    #[inline(always)]
    pub(super) fn put_panel(&mut self, panel: usize, rows: &[F], stride: usize, factor: F) {
        let dim = self.dim;
        let lines = &mut self.values[panel * LANES * dim..][..LANES * dim];
        let lines = lines.as_chunks_mut::<LANES>().0;
        // Four lanes and four lines at a time: numbers move within registers.
        for lane in (0..LANES).step_by(4) {
            let four: [_; 4] =
                std::array::from_fn(|r| rows[(lane + r) * stride..][..stride].as_chunks::<4>().0);
            for (j, lines) in lines.chunks_mut(4).enumerate() {
                let from = [four[0][j], four[1][j], four[2][j], four[3][j]];
                for (i, line) in lines.iter_mut().enumerate() {
                    for r in 0..4 {
                        line[lane + r] = factor * from[r][i];
                    }
                }
            }
        }
    }

    /// Parts of at most `most` panels, small enough to stay in a near cache ([`NUMBERS`]) while rows go by; each with the
    /// number of its first panel.
    #[inline(always)]
    pub(super) fn parts(&self, most: usize) -> impl Iterator<Item = (usize, Part<'_, F>)> + Clone {
        let line = self.dim * LANES;
        let panels = (NUMBERS / line / 2 * 2).clamp(2, most);
        let parts = self.values.chunks(panels * line);
        let parts = parts.zip(self.norms.chunks(panels * LANES)).enumerate();
        parts.map(
            #[inline(always)]
            move |(part, (values, norms))| {
                let dim = self.dim;
                let part_of = Part { dim, values, norms };
                (part * panels, part_of)
            },
        )
    }
}

/// Numbers of panels that a near cache holds together with the rows.
const NUMBERS: usize = 1 << 16;

/// The most rows that share one read of a panel.
pub(super) const ROWS: usize = 12;

#[derive(Clone, Copy)]
pub(super) struct Part<'a, F> {
    dim: usize,
    values: &'a [F],
    pub(super) norms: &'a [F],
}

/// The constants of some panels plus the products of the first rows, of `stride` numbers, with their values: into rows of
/// `width` numbers. Returns how many rows: as many as there are registers for their sums.
#[inline(always)]
pub(super) fn costs_of_first<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    stride: usize,
    part: Part<'_, F>,
    out: &mut [F],
    width: usize,
) -> usize {
    match rows.len() / stride {
        ROWS.. if S::REGISTER_COUNT >= 32 => {
            by_twos::<F, S, ROWS>(simd, rows, stride, part, out, width)
        }
        6.. => by_twos::<F, S, 6>(simd, rows, stride, part, out, width),
        2.. => by_twos::<F, S, 2>(simd, rows, stride, part, out, width),
        _ => by_twos::<F, S, 1>(simd, rows, stride, part, out, width),
    }
}

/// `N` rows, and two panels at a time: with one alone, sums would wait for each other.
#[inline(always)]
fn by_twos<F: Float, S: Simd, const N: usize>(
    simd: S,
    rows: &[F],
    stride: usize,
    part: Part<'_, F>,
    out: &mut [F],
    width: usize,
) -> usize {
    let Part { dim, values, norms } = part;
    let rows = &rows[..N * stride];
    let twos = values.chunks_exact(2 * dim * LANES);
    let last = twos.remainder();
    let mut place = 0;
    for values in twos {
        let norms = &norms[place..];
        let out = &mut out[place..];
        separate_tile::<F, S, N, 2>(simd, rows, dim, values, norms, out, width);
        place += 2 * LANES;
    }
    if !last.is_empty() {
        let norms = &norms[place..];
        let out = &mut out[place..];
        separate_tile::<F, S, N, 1>(simd, rows, dim, last, norms, out, width);
    }
    N
}

/// A [`tile`] as a function of its own: inlined among others, its sums left the registers now and then.
#[inline(always)]
fn separate_tile<F: Float, S: Simd, const N: usize, const P: usize>(
    simd: S,
    rows: &[F],
    columns: usize,
    panels: &[F],
    norms: &[F],
    out: &mut [F],
    width: usize,
) {
    let once = Once;
    simd.vectorize(
        #[inline(always)]
        || {
            let _moved: Once = once;
            tile::<F, S, N, P>(simd, rows, columns, panels, norms, out, width);
        },
    );
}

/// `N` rows and `P` panels, one vector of their lines after the other. All sums are in registers.
#[inline(always)]
fn tile<F: Float, S: Simd, const N: usize, const P: usize>(
    simd: S,
    rows: &[F],
    columns: usize,
    panels: &[F],
    norms: &[F],
    out: &mut [F],
    width: usize,
) {
    // Known when this is compiled, and the lengths are the same: nothing is left to check in the loop. Rows are that far from
    // each other: their addresses take fewer registers than rows anywhere.
    let per_line = LANES / lanes::<F, S>();
    let stride = rows.len() / N;
    let mut of_rows = [rows; N];
    for (r, row) in of_rows.iter_mut().enumerate() {
        *row = &rows[r * stride..][..columns];
    }
    let mut lines = [F::vectors::<S>(&panels[..columns * LANES]).0; P];
    for (p, lines) in lines.iter_mut().enumerate() {
        *lines = &F::vectors::<S>(&panels[p * columns * LANES..]).0[..columns * per_line];
    }
    let (norms, _) = F::vectors::<S>(&norms[..P * LANES]);
    for v in 0..per_line {
        let mut sums = [[F::splat(simd, F::zero()); N]; P];
        for (p, sums) in sums.iter_mut().enumerate() {
            *sums = [norms[p * per_line + v]; N];
        }
        for j in 0..columns {
            let mut line = [F::splat(simd, F::zero()); P];
            for (line, lines) in line.iter_mut().zip(&lines) {
                *line = lines[j * per_line + v];
            }
            for (r, row) in of_rows.iter().enumerate() {
                let x = F::splat(simd, row[j]);
                for (sums, &line) in sums.iter_mut().zip(&line) {
                    sums[r] = F::times_plus(simd, x, line, sums[r]);
                }
            }
        }
        for r in 0..N {
            let (out, _) = F::vectors_mut::<S>(&mut out[r * width..][..P * LANES]);
            for (p, sums) in sums.iter().enumerate() {
                out[p * per_line + v] = sums[r];
            }
        }
    }
}

kernel! {
    /// $\lVert \mu_c \rVert^2 - 2 x^\top \mu_c$ for padded rows and all centres, both as seen from the same point, into `out`
    /// (rows, places of the panels): expanded distances (E21), less the squared norms of the rows. Meant for so few rows that
    /// `out` stays in a cache.
    pub(crate) fn costs[F: Float](rows: &[F], stride: usize, panels: &Panels<F>, out: &mut [F]) = all_costs
}

#[inline(always)]
fn all_costs<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    stride: usize,
    panels: &Panels<F>,
    out: &mut [F],
) {
    let count = rows.len() / stride;
    let width = panels.norms.len();
    for (panel, part) in panels.parts(2) {
        let mut first = 0;
        while first < count {
            let out = &mut out[first * width + panel * LANES..];
            first += costs_of_first(simd, &rows[first * stride..], stride, part, out, width);
        }
    }
}

/// Directions of `dim` coordinates each, for [`project`].
pub(crate) fn directions<F: Float>(directions: &[F], dim: usize) -> Panels<F> {
    let none = vec![F::zero(); directions.len() / dim];
    Panels::scaled(directions, dim, dim, F::from_f64(1.0), &none)
}

kernel! {
    /// The coordinates of rows, padded to `stride` numbers, along directions: into `out` (rows, all directions), where these
    /// directions come after `from` others.
    pub(crate) fn project[F: Float](
        rows: &[F],
        stride: usize,
        directions: &Panels<F>,
        from: usize,
        out: &mut [F],
    ) = along
}

#[inline(always)]
fn along<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    stride: usize,
    directions: &Panels<F>,
    from: usize,
    out: &mut [F],
) {
    let count = rows.len() / stride;
    let width = out.len().checked_div(count).unwrap_or(0);
    let number = directions.norms.len().min(width - from.min(width));
    // Whole panels are written in place; a last partial panel is first written to a buffer.
    let whole = number / LANES * LANES;
    let (values, last) = directions.values.split_at(whole * directions.dim);
    let (norms, last_norms) = directions.norms.split_at(whole);
    let dim = directions.dim;
    let mut partial = [F::zero(); ROWS * LANES];
    let mut first = 0;
    while first < count {
        let rows = &rows[first * stride..];
        let out = &mut out[first * width + from..];
        let mut taken = 0;
        if whole > 0 {
            let part = Part { dim, values, norms };
            taken = costs_of_first(simd, rows, stride, part, out, width);
        }
        if number > whole {
            let part = Part {
                dim,
                values: last,
                norms: last_norms,
            };
            taken = costs_of_first(simd, rows, stride, part, &mut partial, LANES);
            let rows = out.chunks_mut(width).zip(partial.chunks_exact(LANES));
            for (out, partial) in rows.take(taken) {
                out[whole..number].copy_from_slice(&partial[..number - whole]);
            }
        }
        first += taken;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::base::simd::on_every_processor;
    use crate::kernels::{distance, stride};

    pub(in crate::kernels) fn random<F: Float>(rng: &mut Rng, n: usize, d: usize) -> Vec<F> {
        let s = stride(d);
        let place = |i| if i % s < d { rng.normal() } else { 0.0 };
        (0..n * s).map(place).map(F::from_f64).collect()
    }

    /// Numbers of rows, coordinates and centres (n, d, k).
    pub(in crate::kernels) const SHAPES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (7, 3, 16),
        (30, 8, 17),
        (21, 74, 100),
        (50, 2, 600),
        (70, 300, 40),
        (119, 20, 33),
        (13, 33, 24),
        (25, 5, 56),
    ];

    pub(in crate::kernels) fn norms<F: Float>(rows: &[F], d: usize) -> Vec<F> {
        let zero = vec![F::zero(); stride(d)];
        let rows = rows.chunks(stride(d));
        rows.map(|c| F::from_f64(distance::exact(c, &zero)))
            .collect()
    }

    fn products_are_the_naive_ones<F: Float>(within: f64) {
        let mut rng = Rng::from_seed(1);
        for (n, d, k) in SHAPES {
            let s = stride(d);
            let rows: Vec<F> = random(&mut rng, n, d);
            let mu: Vec<F> = random(&mut rng, k, d);
            let norms = norms(&mu, d);
            let panels = Panels::pack(&mu, s, d, &norms);
            let unpadded: Vec<F> = mu.chunks(s).flat_map(|mu| &mu[..d]).copied().collect();
            let directions = directions(&unpadded, d);
            let places = panels.norms.len();
            on_every_processor(|| {
                let mut out = vec![F::INFINITY; n * places];
                costs(&rows, s, &panels, &mut out);
                let mut along = vec![F::INFINITY; n * k];
                project(&rows, s, &directions, 0, &mut along);
                for (i, (row, out)) in rows.chunks(s).zip(out.chunks(places)).enumerate() {
                    for (c, mu) in mu.chunks(s).enumerate() {
                        let products = row.iter().zip(mu).map(|(a, b)| a.to_f64() * b.to_f64());
                        let product = products.sum::<f64>();
                        let norm = norms[c].to_f64();
                        let off = (out[c].to_f64() - (norm - 2.0 * product)).abs();
                        assert!(off < within * (1.0 + norm));
                        let off = (along[i * k + c].to_f64() - product).abs();
                        assert!(off < within * (1.0 + norm));
                    }
                    assert!(out[k..].iter().all(|x| *x == F::INFINITY));
                }
            });
        }
    }

    #[test]
    fn costs_and_coordinates_are_the_naive_ones() {
        products_are_the_naive_ones::<f32>(1e-5);
        products_are_the_naive_ones::<f64>(1e-13);
    }
}
