//! Costs of rows that know some of their coordinates, under factor analysers ([E58](crate::equations#e58)): those of the known columns,
//! whose covariance has the rows of the loadings that belong to them.

use super::low_rank::{LowRank, whitened};
use super::patterns::{Expects, Pattern, Scratch};
use super::scaled::penalised;
use crate::base::float::Float;
use crate::base::linalg;
use crate::kernels::sparse::Known;
use crate::kernels::stride;
use ndarray::Array2;

/// All that follows from the known columns of a pattern under a component.
pub(crate) struct KnownFactors {
    /// $L_o$ (q, q), with $L_o L_o^T = I + W_o^T \Psi_o^{-1} W_o$.
    lower: Vec<f64>,
    /// $L_o^{-1} W_o^T \Psi_o^{-1}$, column by column (q).
    map: Vec<f64>,
    /// $\ln \lvert \Sigma_{oo} \rvert$, in the unit of costs.
    log_det: f64,
}

/// This is added to sums for the missing columns of a pattern, besides the completed rows.
pub(crate) struct Rest {
    /// The variances of what is missing, given what is known (m).
    pub(crate) variances: Vec<f64>,
    /// The products of their covariance with the rows of [`Factored::map`](super::low_rank::Factored::map) (q, m).
    pub(crate) products: Array2<f64>,
}

impl<F: Float> LowRank<'_, F> {
    /// The loadings of component `c` on each of its factors, padded.
    fn loadings_of(&self, c: usize) -> impl Iterator<Item = &[F]> {
        let size = self.factored.map(c).len();
        self.loadings[c * size..][..size].chunks_exact(stride(self.dim()))
    }

    /// The rows of some columns in tables (q, d): (q, number of columns).
    fn among<'a>(rows: impl Iterator<Item = &'a [F]>, columns: &[u32]) -> Array2<f64> {
        let values: Vec<f64> = rows
            .flat_map(|row| columns.iter().map(|&j| row[j as usize].to_f64()))
            .collect();
        let q = values.len() / columns.len();
        Array2::from_shape_vec((q, columns.len()), values).expect("numbers of all columns")
    }

    fn noise_of(&self, c: usize, columns: &[u32]) -> Vec<f64> {
        let own = &self.noise[c * self.dim()..];
        columns.iter().map(|&j| own[j as usize]).collect()
    }

    /// The differences of known columns from the mean into `u`, and the expected factors, $L_o^{-T} L_o^{-1} W_o^T \Psi_o^{-1} u$, into
    /// `z` (q).
    fn factors(
        &self,
        c: usize,
        given: &KnownFactors,
        row: Known<'_, impl Float>,
        (u, z): Scratch<'_>,
    ) {
        let (q, mean) = (self.factored.lower(c).len().isqrt(), self.centres.row(c));
        z.clear();
        z.resize(q, 0.0);
        let maps = given.map.chunks_exact(q);
        for ((&j, x), map) in row.ids.iter().zip(row.values).zip(maps) {
            let apart = x.to_f64() - mean[j as usize].to_f64();
            u[j as usize] = apart;
            z.iter_mut().zip(map).for_each(|(z, b)| *z += b * apart);
        }
        linalg::backward(&given.lower, q, z, 1);
    }

    /// With $V = L_o^{-1} W_m^T$ what is missing has the covariance $\Psi_m + V^T V$, given what is known.
    pub(crate) fn rest(&self, c: usize, (pattern, given): (&Pattern<'_>, &KnownFactors)) -> Rest {
        let missing = &pattern.missing;
        let mut scaled = Self::among(self.loadings_of(c), missing);
        let values = scaled.as_slice_mut().expect("rows one after the other");
        let q = values.len() / missing.len();
        linalg::forward(&given.lower, q, values, missing.len());
        let noise = ndarray::Array1::from_vec(self.noise_of(c, missing));
        let map = self.factored.map(c).chunks_exact(stride(self.dim()));
        let map = Self::among(map, missing);
        let squares = (&scaled * &scaled).sum_axis(ndarray::Axis(0));
        Rest {
            variances: (&noise + &squares).to_vec(),
            products: map.dot(&scaled.t()).dot(&scaled) + &map * &noise,
        }
    }
}

impl<F: Float> Expects for LowRank<'_, F> {
    type Given = KnownFactors;

    fn shape(&self) -> (usize, usize) {
        (self.components(), self.dim())
    }

    fn ridge(&self) -> &[f64] {
        self.ridge
    }

    fn given(&self, c: usize, pattern: &Pattern<'_>) -> KnownFactors {
        // A column of zeros, where nothing is known.
        let wide = pattern.known.len().max(1);
        let noise = self.noise_of(c, pattern.known);
        let mut rows = Vec::new();
        for loadings in self.loadings_of(c) {
            rows.extend(pattern.known.iter().map(|&j| loadings[j as usize].to_f64()));
            rows.resize(rows.len() + wide - pattern.known.len(), 0.0);
        }
        let (lower, log_det) = whitened(&mut rows, &noise, wide, self.factored.unit());
        let columns = noise.iter().enumerate();
        let map = columns.flat_map(|(place, v)| {
            let column = rows[place..].iter().step_by(wide);
            column.map(|x| x / v.sqrt())
        });
        KnownFactors {
            map: map.collect(),
            lower,
            log_det,
        }
    }

    fn mean(&self, c: usize) -> impl Iterator<Item = f64> {
        let row = &self.centres.row(c)[..self.dim()];
        row.iter().map(|m| m.to_f64())
    }

    fn complete<T: Float>(
        &self,
        c: usize,
        (pattern, given): (&Pattern<'_>, &KnownFactors),
        row: Known<'_, T>,
        (u, z): Scratch<'_>,
    ) {
        self.factors(c, given, row, (&mut *u, &mut *z));
        for &j in &pattern.missing {
            let terms = self.loadings_of(c).zip(&*z);
            let terms = terms.map(|(w, z)| w[j as usize].to_f64() * z);
            u[j as usize] = terms.sum();
        }
    }

    /// The sum of squares that has no difference of large terms.
    fn form<T: Float>(
        &self,
        c: usize,
        (_, given): (&Pattern<'_>, &KnownFactors),
        row: Known<'_, T>,
        (u, z): Scratch<'_>,
    ) -> f64 {
        self.factors(c, given, row, (&mut *u, &mut *z));
        for (loadings, z) in self.loadings_of(c).zip(&*z) {
            for &j in row.ids {
                u[j as usize] -= loadings[j as usize].to_f64() * z;
            }
        }
        let noise = &self.noise[c * self.dim()..];
        let squares = row
            .ids
            .iter()
            .map(|&j| u[j as usize].powi(2) / noise[j as usize]);
        let of_factors = z.iter().map(|z| z * z).sum::<f64>();
        self.factored.unit() * (squares.sum::<f64>() + of_factors)
    }

    fn cost<T: Float>(&self, c: usize, (_, given): (&Pattern<'_>, &KnownFactors), form: f64) -> T {
        // Infinite, or NaN where the row is so far away.
        let cost = form.min(T::LARGEST_COST) + self.factored.unit() * given.log_det;
        penalised(cost, self.penalties[c])
    }
}
