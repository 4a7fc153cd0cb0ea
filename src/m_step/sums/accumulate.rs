//! The one way of rows and their shares into sums: [`Moments::add`], also about other points than centres. Beneath it are kernels, whose
//! names begin with `sum`, for rows of each kind and points of each kind.

use super::moments::Moments;
use super::outer::Pairs;
use crate::base::float::Float;
use crate::costs::LowRank;
use crate::kernels::sparse::Absent;
use crate::model::block::Block;
use crate::model::posterior::expected_total;
use crate::rows::{Centres, Rows};

/// The points of components that sums are about, which say what is summed up.
pub(crate) enum About<'a, F: Float> {
    /// Moments of columns.
    Centres(&'a Centres<F>),
    /// Moments of pairs of columns.
    Pairs(Pairs<'a, F>),
    /// Moments of columns, and their products with the factors of the means of analysers.
    Factors(LowRank<'a, F>),
}

impl Moments {
    /// Adds a block of rows, shared out by its responsibilities, about `centres` (E5); to
    /// [totals](crate::m_step::SecondMoments::Total) the costs as well, as squared distances.
    pub fn add<F: Float>(&mut self, rows: &Rows<F>, block: &Block<F>, centres: &Centres<F>) {
        self.add_about(rows, block, &About::Centres(centres));
    }

    /// As above, about points of any kind.
    #[inline(never)]
    pub(crate) fn add_about<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        about: &About<'_, F>,
    ) {
        match (about, rows.entries()) {
            (About::Centres(centres), entries) => {
                if self.has_totals() {
                    let (weight, squared) = expected_total(rows, block);
                    self.add_total(squared, rows.weight_known(weight));
                }
                match entries {
                    None => rows.sum_dense(block, centres, self),
                    Some(known) => match known.absent {
                        Absent::Unknown => rows.sum_known(known, block, centres, self),
                        Absent::Zero => rows.sum_sparse(known, block, centres, self),
                    },
                }
            }
            (About::Factors(known), Some(entries)) => {
                self.sum_completed(rows, entries, block, known, &[]);
            }
            (About::Factors(known), None) => self.sum_factors(rows, block, known),
            (About::Pairs(pairs), entries) => match (entries.zip(pairs.observed), pairs.shared) {
                (Some((entries, observed)), _) => {
                    self.sum_completed(rows, entries, block, &observed, pairs.points);
                }
                (None, Some(shared)) if block.is_full() && !pairs.origin.is_empty() => {
                    self.sum_whitened(rows, block, shared, pairs);
                }
                _ => self.sum_pairs(rows, block, pairs),
            },
        }
    }
}
