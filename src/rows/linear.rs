//! Scores of components as products: linear in the coordinates of a row and in squares of them (E46).

use super::{Centres, Scales};
use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::kernels::distance::Scaled;
use crate::kernels::panels::Panels;
use crate::kernels::{features, panels, stride};
use std::sync::Arc;

/// Scores of all components as one product: a constant per component, and factors for what a row is turned into.
///
/// A scaled squared distance is a product with the row, as seen from a point near the means, and its squared norm; with a factor
/// per coordinate the square of every coordinate takes the place of the norm.
#[derive(Clone, Debug)]
pub struct Linear<F> {
    dim: usize,
    /// One factor per coordinate, not one for all.
    scaled: bool,
    /// The point, padded; `None` is the origin.
    about: Option<Vec<F>>,
    panels: Panels<F>,
    /// Bounds on the rounding errors of components (padded), besides [`relative`](Self::relative) times the score.
    pub(crate) errors: Vec<F>,
    pub(crate) terms: Arc<Terms>,
}

/// Facts that sums over rows need about scores computed as products (E46).
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Components so far from the point, for their variance, that sums about it would lose their second moments: rows are
    /// added to these about their own means.
    pub(crate) tight: Vec<u32>,
    /// Scores as squared distances (k): only where there is one factor for all coordinates.
    pub(crate) parts: Vec<Part>,
}

/// The score of a component at a squared distance: a factor, and what is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) factor: f64,
    pub(crate) added: f64,
}

/// A score with absolute terms of more nats than this is computed directly. `width` is the length of the
/// product: a log-density of as many coordinates has about half a nat for each. In `f32` and 100 columns a score is then off
/// by about $10^{-4}$ nats, in `f64` by about $10^{-13}$.
fn largest_terms(width: usize) -> f64 {
    (32.0 * width as f64).min(8192.0)
}

/// Bound on the rounding error of a sum of `width` products, relative to the sum of its absolute terms (E46).
fn gamma<F: Float>(width: usize) -> f64 {
    (width + 8) as f64 * F::EPSILON
}

/// The largest rounding bound, in nats, that scores of a row may have where they can have a share of it.
pub(crate) fn largest_error<F: Float>(width: usize) -> f64 {
    gamma::<F>(width) * largest_terms(width)
}

impl<F: Float> Linear<F> {
    /// Squared distances with a factor $a_c$ and a constant $b_c$ of each component, and `beta` nats for a score of 1.
    pub(crate) fn isotropic(centres: &Centres<F>, beta: f64, part: impl Fn(usize) -> Part) -> Self {
        let (seen, dim) = (centres.expanded(), centres.dim());
        let mut forms = Forms::new(dim + 1);
        let means = seen.normed(centres).rows.chunks_exact(stride(dim));
        let parts: Vec<Part> = (0..centres.len()).map(part).collect();
        for (mean, &Part { factor, added }) in means.zip(&parts) {
            let square = [F::from_f64(factor)];
            forms.add(&mean[..dim], |_| factor, &square, added);
        }
        Self::of(forms, seen.about(), dim, beta, parts)
    }

    /// Squared distances with a factor per coordinate; `penalties` are added to the constants, from the proportions.
    pub(crate) fn diagonal(
        centres: &Centres<F>,
        beta: f64,
        scales: &Scales<F>,
        penalties: &[f64],
    ) -> Self {
        let (seen, dim) = (centres.expanded(), centres.dim());
        let mut forms = Forms::new(2 * dim);
        let Scaled { factors, terms } = scales.of_rows();
        let means = seen.normed(centres).rows.chunks_exact(stride(dim));
        let rows = means.zip(factors.chunks_exact(stride(dim)));
        for ((mean, factors), (term, penalty)) in rows.zip(terms.iter().zip(penalties)) {
            let (factor, added) = (|j: usize| factors[j].to_f64(), term.to_f64() + penalty);
            forms.add(&mean[..dim], factor, &factors[..dim], added);
        }
        Self::of(forms, seen.about(), dim, beta, Vec::new())
    }

    fn of(forms: Forms<F>, about: Option<&[F]>, dim: usize, beta: f64, parts: Vec<Part>) -> Self {
        let Forms {
            width,
            values,
            constants,
            terms,
        } = forms;
        let mut errors = vec![F::zero(); terms.len().next_multiple_of(LANES)];
        let mut tight = Vec::new();
        for (c, &terms) in terms.iter().enumerate() {
            // Larger terms may leave the range of the type, and then nothing is known of the score.
            let is_finite = terms <= F::LARGEST_SCORE;
            let terms = if is_finite { terms } else { f64::INFINITY };
            errors[c] = F::from_f64(gamma::<F>(width) * terms);
            if beta * terms > largest_terms(width) {
                tight.push(c as u32);
            }
        }
        Self {
            dim,
            scaled: parts.is_empty(),
            about: about.map(<[F]>::to_vec),
            panels: Panels::scaled(&values, width, width, F::one(), &constants),
            errors,
            terms: Arc::new(Terms { tight, parts }),
        }
    }

    /// Scores of dense padded rows: (rows, k padded to whole vectors) into `out`, where the padding stays as it is; through
    /// `scratch`.
    #[inline(never)]
    pub(crate) fn scores(&self, rows: &[F], scratch: &mut Vec<F>, out: &mut [F]) {
        let (width, dim) = (stride(self.dim), self.dim);
        let per_row = self.width();
        scratch.resize(rows.len() / width * per_row, F::zero());
        let origin = vec![F::zero(); width];
        let about = &self.about.as_ref().unwrap_or(&origin)[..dim];
        match self.scaled {
            true => features::with_squares(rows, width, about, scratch),
            false => features::with_norms(rows, width, about, scratch),
        }
        panels::scores(scratch, per_row, &self.panels, out);
    }

    /// Bound on the part of the rounding error that grows with the score, relative to the score.
    pub(crate) fn relative(&self) -> f64 {
        2.0 * gamma::<F>(self.width())
    }

    pub(crate) fn width(&self) -> usize {
        match self.scaled {
            true => 2 * self.dim,
            false => self.dim + 1,
        }
    }
}

/// The parts of [`Linear`], component by component.
struct Forms<F> {
    width: usize,
    values: Vec<F>,
    constants: Vec<F>,
    /// Bound on the sum of the absolute terms of a score, less twice the score (E46).
    terms: Vec<f64>,
}

impl<F: Float> Forms<F> {
    fn new(width: usize) -> Self {
        Self {
            width,
            values: Vec::new(),
            constants: Vec::new(),
            terms: Vec::new(),
        }
    }

    /// A component with a factor for each coordinate, the factors for squares, and what is added to its constant: infinity for
    /// one that was discarded.
    fn add(&mut self, mean: &[F], factor: impl Fn(usize) -> f64, squares: &[F], added: f64) {
        let mut square = 0.0;
        for (j, mu) in mean.iter().enumerate() {
            let (mu, factor) = (mu.to_f64(), factor(j));
            square += factor * (mu * mu);
            self.values.push(F::from_f64(-2.0 * factor * mu));
        }
        self.values.extend_from_slice(squares);
        if added == f64::INFINITY {
            let start = self.values.len() - self.width;
            self.values[start..].fill(F::zero());
            self.constants.push(F::from_f64(10.0 * F::LARGEST_SCORE));
            self.terms.push(0.0);
        } else {
            self.constants.push(F::from_f64(square + added));
            self.terms.push(8.0 * square + 3.0 * added.abs());
        }
    }
}
