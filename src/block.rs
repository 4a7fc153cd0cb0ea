//! What a search leaves for a block of rows: supports, scores and, once normalised, responsibilities.

use crate::float::Float;

/// Marks a place in a support or a neighbor list that nothing fills yet.
pub(crate) const UNSET: u32 = u32::MAX;

/// The supports K(n) of a block of rows, the scores of their members, and their responsibilities.
///
/// An E-step fills supports and scores, an M-step reads all three. Scores have the unit of the
/// [frame](crate::data::Frame), responsibilities none: $q_{nc} = 0$ outside $K(n)$ (E2).
///
/// A support narrower than the number of components is a list of indices per row, best first. A support of
/// all components is not listed: place `c` is component `c`.
#[derive(Clone, Debug)]
pub struct Block<F> {
    components: usize,
    width: usize,
    /// (rows, width); empty when every component is in every support.
    pub(crate) supports: Vec<u32>,
    /// (rows, width): the lower, the better.
    pub(crate) scores: Vec<F>,
    /// (rows, width): sum to 1 in each row. In `f64` whatever the data: a component that a point hardly
    /// belongs to lives on shares far below the smallest `f32`.
    pub(crate) responsibilities: Vec<f64>,
}

impl<F: Float> Block<F> {
    /// An empty block for supports of `width` out of `components`.
    pub(crate) fn new(components: usize, width: usize) -> Self {
        let (supports, scores, responsibilities) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            components,
            width,
            supports,
            scores,
            responsibilities,
        }
    }

    /// Makes room for `rows` rows; `supports` holds their supports from the last search (none if full).
    pub(crate) fn reset(&mut self, rows: usize, supports: &[u32]) {
        self.supports.clear();
        self.supports.extend_from_slice(supports);
        self.scores.resize(rows * self.width, F::zero());
        self.responsibilities.resize(rows * self.width, 0.0);
    }

    /// Number of components, k.
    #[must_use]
    pub fn components(&self) -> usize {
        self.components
    }

    /// Members of a support, C'.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether every support holds every component, in order.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.width == self.components
    }

    /// The support of row `i`, best first (empty when [full](Self::is_full)).
    #[inline(always)]
    #[must_use]
    pub fn support(&self, i: usize) -> &[u32] {
        &self.supports[i * self.width..(i + 1) * self.width]
    }

    /// The scores of the members of the support of row `i` (C'): the lower, the better.
    #[inline(always)]
    #[must_use]
    pub fn scores(&self, i: usize) -> &[F] {
        &self.scores[i * self.width..(i + 1) * self.width]
    }

    /// The responsibilities of the members of the support of row `i` (C'); they sum to 1 (E2).
    #[inline(always)]
    #[must_use]
    pub fn responsibilities(&self, i: usize) -> &[f64] {
        &self.responsibilities[i * self.width..(i + 1) * self.width]
    }

    /// The score of row `i` as its responsibilities expect it.
    #[inline(always)]
    pub(crate) fn expected_score(&self, i: usize) -> f64 {
        if self.width == 1 {
            return self.scores[i].to_f64();
        }
        let shares = self.responsibilities(i).iter();
        let terms = shares.zip(self.scores(i)).map(|(q, s)| q * s.to_f64());
        terms.sum()
    }
}
