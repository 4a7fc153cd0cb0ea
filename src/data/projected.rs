//! Rows in fewer coordinates: those of the principal subspace of the data.

use super::{Centres, Data, Frame, Rows, Special, Summary};
use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::kernels::distance::{self, matrix};
use crate::kernels::panels::{self, project};
use crate::kernels::stride;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2};
use std::ops::Range;

/// Coordinates in which the rows of a data set vary most (E39): p orthonormal directions in those of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Subspace<F> {
    /// (p, d): the directions.
    directions: Array2<F>,
    /// The frame of all coordinates.
    frame: Frame<F>,
    /// That frame with its origin at the mean, from which directions are measured.
    centred: Frame<F>,
    /// The origin of `centred` in `frame`, padded.
    origin: Vec<F>,
}

/// The part of rows outside the space that their coordinates span: nothing, unless they are in a subspace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Residual {
    /// Coordinates that each row stands for and does not have.
    pub(crate) coordinates: usize,
    /// The weighted squared distances of all rows from that space, in the unit of the frame, squared.
    pub(crate) squared: f64,
}

/// Rows in a subspace: data whose rows report all d entries, with the part outside the subspace as a total residual, so
/// that free energies are those of the rows as they are. For one shared variance.
#[derive(Debug)]
pub(crate) struct Projected<F: Float> {
    /// (n, p), in the coordinates of the frame.
    values: Vec<F>,
    weights: Vec<f64>,
    summary: Summary,
    frame: Frame<F>,
    residual: Residual,
    cancel: Cancel,
}

impl<F: Float> Projected<F> {
    fn fill(&self, rows: impl ExactSizeIterator<Item = usize>, into: &mut Rows<F>) -> Result<()> {
        self.cancel.check()?;
        let p = self.dim();
        into.reset(rows.len(), p);
        for (n, out) in rows.zip(into.values.chunks_exact_mut(stride(p))) {
            out[..p].copy_from_slice(&self.values[n * p..(n + 1) * p]);
            into.weights.push(self.weights[n]);
        }
        into.stand_for(p + self.residual.coordinates);
        Ok(())
    }
}

impl<F: Float> Data<F> for Projected<F> {
    fn len(&self) -> usize {
        self.weights.len()
    }

    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn weights(&self) -> Option<&[f64]> {
        Some(&self.weights)
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn frame(&self) -> Frame<F> {
        self.frame.clone()
    }

    #[inline(never)]
    fn special(&self) -> Special<'_> {
        Special {
            cancel: Some(&self.cancel),
            residual: self.residual,
            ..Special::of::<Self>()
        }
    }

    /// The values are in the coordinates of their own frame already.
    #[inline(never)]
    fn load(&self, rows: Range<usize>, _: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows, into)
    }

    #[inline(never)]
    fn gather(&self, rows: &[usize], _: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows.iter().copied(), into)
    }
}

/// Rows that are summed up together, and the most that are loaded together.
const ROWS: usize = 512;

/// Rows of many columns are loaded in smaller blocks: between two of them a fit can be cancelled.
fn rows_of(columns: usize) -> usize {
    const NUMBERS: usize = 1 << 20;
    (NUMBERS / columns).clamp(8, ROWS)
}

/// Rows whose principal directions are computed: this many per direction, and at least `MIN_SAMPLE`.
const SAMPLE: usize = 32;
const MIN_SAMPLE: usize = 1024;

/// Steps of subspace iteration: one is a range finder.
const STEPS: usize = 2;

impl<F: Float> Subspace<F> {
    /// About the `dim` principal directions of the rows, by subspace iteration from random ones on a sample, which comes
    /// back with them.
    pub(crate) fn principal<'a>(
        data: &'a dyn Data<F>,
        frame: &Frame<F>,
        dim: usize,
        rng: &mut Rng,
    ) -> Result<(Self, Box<dyn Data<F> + 'a>)> {
        let d = frame.dim();
        let rows: Vec<usize> = (0..data.len()).filter(|&n| data.weight(n) > 0.0).collect();
        let size = MIN_SAMPLE.max(SAMPLE * dim);
        let sample: Vec<usize> = if rows.len() <= size {
            rows
        } else {
            // One row from each of `size` parts, at random: the order of the rows may repeat.
            let part = |i: usize| i * rows.len() / size;
            let draw = |i: usize| rows[part(i) + rng.below(part(i + 1) - part(i))];
            (0..size).map(draw).collect()
        };
        let weights: Vec<f64> = sample.iter().map(|&n| data.weight(n)).collect();
        // Relative to the largest weight, products stay within the range of the type.
        let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let sample = data.select(&sample, weights)?;
        let (centred, origin) = frame.centred(&data.summary().mean);
        let mut directions = rng.normals(dim, d).mapv(F::from_f64);
        for _ in 0..STEPS {
            let blocks = parallel::map_blocks(sample.len(), ROWS, |_, range| {
                let mut rows = Rows::default();
                let mut sum = Array2::zeros((dim, d));
                for first in range.clone().step_by(rows_of(d)) {
                    let last = range.end.min(first + rows_of(d));
                    sample.load(first..last, &centred, &mut rows)?;
                    let x = matrix(&rows.values, rows.len(), d, stride(d));
                    let mut along = product(&x, &directions.t());
                    for (i, mut along) in along.outer_iter_mut().enumerate() {
                        let weight = F::from_f64(rows.weight(i) / most);
                        along.mapv_inplace(|x| x * weight);
                    }
                    general_mat_mul(F::one(), &along.t(), &x, F::one(), &mut sum);
                }
                Ok(sum)
            });
            let mut sum = Array2::<f64>::zeros((dim, d));
            for block in &parallel::all(blocks)? {
                sum.zip_mut_with(block, |sum, x| *sum += x.to_f64());
            }
            directions = linalg::orthonormal(&sum, data.cancel())?.mapv(F::from_f64);
        }
        let subspace = Self {
            directions,
            frame: frame.clone(),
            centred,
            origin,
        };
        Ok((subspace, sample))
    }

    pub(crate) fn frame(&self) -> Frame<F> {
        self.frame.of_directions(self.directions.nrows())
    }

    pub(crate) fn project(&self, data: &dyn Data<F>) -> Result<Projected<F>> {
        let (p, d) = self.directions.dim();
        let directions = self.directions.as_slice().expect("in order");
        let directions = panels::directions(directions, d);
        let mut values = vec![F::zero(); data.len() * p];
        let residuals = parallel::map_chunks(&mut values, rows_of(d) * p, |_, range, values| {
            let mut rows = Rows::default();
            data.load(range.start / p..range.end / p, &self.centred, &mut rows)?;
            project(&rows.values, stride(d), &directions, 0, values);
            let mut norms = Vec::new();
            distance::norms(&rows.values, stride(d), &mut norms);
            let pairs = values.chunks_exact(p).zip(&norms).enumerate();
            Ok(pairs
                .map(|(i, (kept, norm))| {
                    let kept: f64 = kept.iter().map(|x| x.to_f64() * x.to_f64()).sum();
                    rows.weight(i) * (norm.to_f64() - kept).max(0.0)
                })
                .sum::<f64>())
        });
        let weights: Vec<f64> = (0..data.len()).map(|n| data.weight(n)).collect();
        let residuals = parallel::all(residuals)?;
        // About 0, and of the order of 1.
        let unit = Summary {
            variance: vec![1.0; p],
            range: vec![(-1.0, 1.0); p],
            ..Summary::of_none(p)
        };
        Ok(Projected {
            values,
            summary: unit.reweighted(&weights),
            weights,
            frame: self.frame(),
            residual: Residual {
                coordinates: d - p,
                squared: residuals.iter().sum(),
            },
            cancel: data.cancel().cloned().unwrap_or_default(),
        })
    }

    /// Centres of the frame in the subspace.
    pub(crate) fn enter(&self, centres: &Centres<F>) -> Centres<F> {
        let d = centres.dim();
        let stride = stride(centres.dim());
        let mut relative = vec![F::zero(); centres.values.len()];
        distance::minus(&centres.values, &self.origin, &mut relative);
        let x = matrix(&relative, centres.len(), d, stride);
        Centres::of_coordinates(product(&x, &self.directions.t()).view())
    }

    /// Centres of the subspace in the frame.
    pub(crate) fn leave(&self, centres: &Centres<F>) -> Centres<F> {
        let q = centres.dim();
        let stride = stride(centres.dim());
        let x = matrix(&centres.values, centres.len(), q, stride);
        let mut back = product(&x, &self.directions.view());
        for mut centre in back.outer_iter_mut() {
            for (x, &origin) in centre.iter_mut().zip(&self.origin) {
                *x += origin;
            }
        }
        Centres::of_coordinates(back.view())
    }
}

fn product<F: Float>(a: &ArrayView2<'_, F>, b: &ArrayView2<'_, F>) -> Array2<F> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    general_mat_mul(F::one(), a, b, F::zero(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use approx::assert_abs_diff_eq;

    fn of_rows(x: &Array2<f64>, p: usize) -> (Subspace<f64>, f64, f64) {
        let data = Dense::new(x.view()).unwrap();
        let frame = data.frame();
        let (subspace, _) = Subspace::principal(&data, &frame, p, &mut Rng::from_seed(5)).unwrap();
        let projected = subspace.project(&data).unwrap();
        let total: f64 = data.summary().variance.iter().sum::<f64>() * x.nrows() as f64;
        let inside: f64 = projected.values.iter().map(|x| x * x).sum();
        let total = frame.enter_product(0, 0, total);
        assert_abs_diff_eq!(
            inside + projected.residual.squared,
            total,
            epsilon = 1e-9 * total.max(1e-300)
        );
        let products = subspace.directions.dot(&subspace.directions.t());
        let off = (&products - &Array2::<f64>::eye(p)).mapv(f64::abs);
        assert!(off.iter().all(|x| *x < 1e-12), "orthonormal");
        (subspace, inside, total)
    }

    /// Rows that lie in few dimensions, with little noise: these dimensions are found, and centres return from them.
    #[test]
    fn it_holds_nearly_all_there_is() {
        let mut rng = Rng::from_seed(1);
        let mut random = |n, d, scale: f64| Array2::from_shape_fn((n, d), |_| scale * rng.normal());
        let x = random(300, 5, 1.0).dot(&random(5, 40, 1.0)) + random(300, 40, 0.01);
        let (subspace, inside, total) = of_rows(&x, 5);
        assert!(inside > 0.999 * total);
        let data = Dense::new(x.view()).unwrap();
        let centres = Centres::enter(x.view(), &data.frame());
        let back = subspace.leave(&subspace.enter(&centres));
        for c in 0..300 {
            for (a, b) in centres.row(c).iter().zip(back.row(c)) {
                assert_abs_diff_eq!(a, b, epsilon = 0.05);
            }
        }
        assert!(of_rows(&x, 1).1 < 0.9 * total);
    }

    /// All rows equal, fewer rows than directions, columns that never vary.
    #[test]
    fn rows_of_few_dimensions_have_orthonormal_directions_too() {
        for (n, d, p) in [(50, 8, 3), (2, 20, 7), (30, 9, 8)] {
            of_rows(&Array2::ones((n, d)), p);
            of_rows(
                &Array2::from_shape_fn((n, d), |(n, j)| (n * usize::from(j == 1)) as f64),
                p,
            );
        }
    }
}
