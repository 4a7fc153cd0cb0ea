//! Costs of components as products: linear in the coordinates of a row and in squares of them (E46).

use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::kernels::panels::Panels;
use crate::kernels::{features, panels, stride};
use std::sync::Arc;

/// Costs of all components as one product: a constant per component, and factors for what a row is turned into.
///
/// A scaled squared distance is a product with the row, as seen from a point near the means, and its squared norm; with a factor
/// per coordinate the square of every coordinate takes the place of the norm.
#[derive(Clone, Debug)]
pub(crate) struct Linear<F> {
    dim: usize,
    /// One factor per coordinate, not one for all.
    scaled: bool,
    /// The point, padded; `None` is the origin.
    about: Option<Vec<F>>,
    panels: Panels<F>,
    /// Bounds on the rounding errors of components (padded), besides [`relative`](Self::relative) times the cost.
    pub(crate) errors: Vec<F>,
    /// Bounds on the sum of the absolute terms of a cost, less twice the cost (k).
    terms: Vec<f64>,
    /// How far each mean is from the point in a column, squared, at most: in costs (k).
    farness: Vec<f64>,
    /// Costs as squared distances (k): only where there is one factor for all coordinates.
    parts: Arc<[Part]>,
}

/// Means as seen from a point near them.
pub(crate) struct Seen<'a, F> {
    pub(crate) dim: usize,
    /// The point, padded; `None` is the origin.
    pub(crate) about: Option<&'a [F]>,
    /// The differences (k, d), padded.
    pub(crate) differences: &'a [F],
}

impl<F: Float> Seen<'_, F> {
    fn rows(&self) -> impl Iterator<Item = &[F]> {
        let rows = self.differences.chunks_exact(stride(self.dim));
        rows.map(|row| &row[..self.dim])
    }
}

/// Facts that sums over rows need about costs computed as products (E46).
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Components so far from the point, for their variance, that sums about it would lose their second moments: rows are
    /// added to these about their own means.
    pub(crate) tight: Vec<u32>,
    /// They, and others so far from the point in a column that sums of squares in the type of the data would lose too many digits.
    pub(crate) far: Vec<u32>,
    /// Costs as squared distances (k): only where there is one factor for all coordinates.
    pub(crate) parts: Arc<[Part]>,
}

/// The cost of a component at a squared distance: a factor, and what is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) factor: f64,
    pub(crate) added: f64,
}

/// A cost with absolute terms of more nats than this is computed directly. `width` is the length of the
/// product: a log-density of as many coordinates has about half a nat for each. In `f32` and 100 columns a cost is then off
/// by about $10^{-4}$ nats, in `f64` by about $10^{-13}$.
fn largest_terms(width: usize) -> f64 {
    (32.0 * width as f64).min(8192.0)
}

/// Bound on the rounding error of a sum of `width` products, relative to the sum of its absolute terms (E46).
fn gamma<F: Float>(width: usize) -> f64 {
    (width + 8) as f64 * F::EPSILON
}

/// The largest rounding bound, in nats, that costs of a row may have where they can have a share of it.
pub(crate) fn largest_error<F: Float>(width: usize) -> f64 {
    gamma::<F>(width) * largest_terms(width)
}

/// Means at most this far from the point in every column, in variances, have sums of squares in the type of the data: these lose a
/// factor of this size of their digits.
pub(crate) const FARTHEST: f64 = 64.0;

impl<F: Float> Linear<F> {
    /// Squared distances with a factor $a_c$ and a constant $b_c$ of each component.
    pub(crate) fn new(means: Seen<'_, F>, part: impl Fn(usize) -> Part) -> Self {
        let mut forms = Forms::new(means.dim + 1);
        let mut parts = Vec::new();
        for (c, mean) in means.rows().enumerate() {
            let part = part(c);
            let square = [F::from_f64(part.factor)];
            forms.push(mean, |_| part.factor, &square, part.added);
            parts.push(part);
        }
        Self::of(forms, &means, parts)
    }

    /// Squared distances with factors (k, d), padded, and a constant of each component.
    pub(crate) fn by_column(
        means: Seen<'_, F>,
        factors: &[F],
        added: impl Fn(usize) -> f64,
    ) -> Self {
        let dim = means.dim;
        let mut forms = Forms::new(2 * dim);
        let factors = factors.chunks_exact(stride(dim));
        for (c, (mean, factors)) in means.rows().zip(factors).enumerate() {
            let factor = |j: usize| factors[j].to_f64();
            forms.push(mean, factor, &factors[..dim], added(c));
        }
        Self::of(forms, &means, Vec::new())
    }

    fn of(forms: Forms<F>, means: &Seen<'_, F>, parts: Vec<Part>) -> Self {
        let Forms {
            width,
            values,
            constants,
            mut terms,
            farness,
        } = forms;
        let mut errors = vec![F::zero(); terms.len().next_multiple_of(LANES)];
        for (error, terms) in errors.iter_mut().zip(&mut terms) {
            // Larger terms may leave the range of the type, and then nothing is known of the cost.
            let is_finite = *terms <= F::LARGEST_COST;
            if !is_finite {
                *terms = f64::INFINITY;
            }
            *error = F::from_f64(gamma::<F>(width) * *terms);
        }
        Self {
            dim: means.dim,
            scaled: parts.is_empty(),
            about: means.about.map(<[F]>::to_vec),
            panels: Panels::scaled(&values, width, width, F::one(), &constants),
            errors,
            terms,
            farness,
            parts: parts.into(),
        }
    }

    /// Facts for sums, with `beta` nats for a cost of 1.
    pub(crate) fn terms(&self, beta: f64) -> Terms {
        let most = largest_terms(self.width());
        let is_tight = |c: usize| beta * self.terms[c] > most;
        let is_far = |c: usize| 2.0 * beta * self.farness[c] > FARTHEST || is_tight(c);
        let components = |is: &dyn Fn(usize) -> bool| {
            let numbers = (0..self.terms.len()).filter(|c| is(*c));
            numbers.map(|c| c as u32).collect()
        };
        Terms {
            tight: components(&is_tight),
            far: components(&is_far),
            parts: Arc::clone(&self.parts),
        }
    }

    /// Costs of dense padded rows: (rows, k padded to whole vectors) into `out`, where the padding stays as it is; through
    /// `scratch`.
    #[inline(never)]
    pub(crate) fn costs(&self, rows: &[F], scratch: &mut Vec<F>, out: &mut [F]) {
        let width = stride(self.dim);
        let dim = self.dim;
        let per_row = self.width();
        scratch.resize(rows.len() / width * per_row, F::zero());
        let origin = vec![F::zero(); width];
        let about = &self.about.as_ref().unwrap_or(&origin)[..dim];
        if self.scaled {
            features::with_squares(rows, width, about, scratch)
        } else {
            features::with_norms(rows, width, about, scratch)
        }
        panels::costs(scratch, per_row, &self.panels, out);
    }

    /// Bound on the part of the rounding error that grows with the cost, relative to the cost.
    pub(crate) fn relative(&self) -> f64 {
        2.0 * gamma::<F>(self.width())
    }

    pub(crate) fn width(&self) -> usize {
        if self.scaled {
            2 * self.dim
        } else {
            self.dim + 1
        }
    }
}

/// The parts of [`Linear`], component by component.
struct Forms<F> {
    width: usize,
    values: Vec<F>,
    constants: Vec<F>,
    /// Bound on the sum of the absolute terms of a cost, less twice the cost (E46).
    terms: Vec<f64>,
    farness: Vec<f64>,
}

impl<F: Float> Forms<F> {
    fn new(width: usize) -> Self {
        Self {
            width,
            values: Vec::new(),
            constants: Vec::new(),
            terms: Vec::new(),
            farness: Vec::new(),
        }
    }

    /// A component with a factor for each coordinate, the factors for squares, and what is added to its constant: infinity for
    /// one that was discarded.
    fn push(&mut self, mean: &[F], factor: impl Fn(usize) -> f64, squares: &[F], added: f64) {
        let mut square = 0.0;
        let mut farness = 0.0f64;
        for (j, mu) in mean.iter().enumerate() {
            let mu = mu.to_f64();
            let factor = factor(j);
            square += factor * (mu * mu);
            farness = farness.max(factor * (mu * mu));
            self.values.push(F::from_f64(-2.0 * factor * mu));
        }
        self.values.extend_from_slice(squares);
        self.farness.push(farness);
        if added == f64::INFINITY {
            let start = self.values.len() - self.width;
            self.values[start..].fill(F::zero());
            self.constants.push(F::from_f64(10.0 * F::LARGEST_COST));
            self.terms.push(0.0);
        } else {
            self.constants.push(F::from_f64(square + added));
            self.terms.push(8.0 * square + 3.0 * added.abs());
        }
    }
}
