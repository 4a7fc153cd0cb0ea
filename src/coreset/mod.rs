//! Stage 2, the coreset: fewer rows, with weights so that they represent all rows.
//!
//! [`Full`] is all rows, for data that is small enough. [`Lightweight`] is for larger data, and [`Uniform`] is a
//! baseline. [`OnePass`] is for rows that come once, before any fit. The expectation of a weighted sum over the coreset
//! is the sum over all rows. The coreset is drawn once per fit, and restarts share it.

mod full;
mod lightweight;
mod one_pass;
mod uniform;

pub use full::Full;
pub use lightweight::Lightweight;
pub use one_pass::{OnePass, Stopped};
pub use uniform::Uniform;
pub(crate) use uniform::some_rows;

use crate::base::error::{Result, sound_total, sound_weight};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Data, View};

/// Rows of a data set with new weights.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct Subset {
    /// Row numbers from 0, in any order; a row may occur several times.
    pub rows: Vec<usize>,
    /// Their new weights, as many.
    pub weights: Vec<f64>,
    /// Distance evaluations spent on the choice.
    pub evaluations: u64,
}

impl Subset {
    /// Checks a choice out of `n` rows; the error says what is wrong.
    pub(crate) fn check(&self, n: usize) -> std::result::Result<(), String> {
        let rows = self.rows.len();
        let weights = self.weights.len();
        if rows != weights {
            return Err(format!(
                "{rows} rows with {weights} weights: each row needs one"
            ));
        }
        if let Some(row) = self.rows.iter().find(|row| **row >= n) {
            return Err(format!(
                "row {row} of {n} does not exist: rows are numbered from 0"
            ));
        }
        let mut pairs = self.rows.iter().zip(&self.weights);
        let sound = pairs.try_for_each(|(row, weight)| sound_weight(*row, *weight));
        // The sum starts at 0, because the sum of no numbers is -0.
        let total = self.weights.iter().fold(0.0, |sum, w| sum + w);
        let sound = sound.and_then(|()| sound_total(total));
        sound.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Entropy of the chances that the rows had in each draw, over that of equal chances (E15): its estimate from the draws. A
    /// row whose weight grew from w to w' had the chance w / (N' w'). `None` where weights say no chances.
    pub(crate) fn entropy<F: Float>(&self, data: &dyn Data<F>) -> Option<f64> {
        let draws = self.rows.len() as f64;
        let pairs = self.rows.iter().zip(&self.weights);
        let nats = pairs.map(|(&row, weight)| (draws * (weight / data.weight(row))).ln());
        let share = nats.sum::<f64>() / draws / (data.summary().rows as f64).ln();
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }
}

/// A way to choose a [`Subset`].
///
/// Law: the expected new weight of every row is its old weight, so the expected sum of the new weights is the total weight
/// of the data. Rows of weight 0 are never chosen.
///
/// `examples/own_coreset.rs` writes one; [`testing::coreset`](crate::testing::coreset) holds it against the laws.
#[diagnostic::on_unimplemented(
    note = "a coreset is one of `coremix::coreset`, or a struct of yours that implements `Coreset<F>`: `examples/own_coreset.rs` writes one"
)]
pub trait Coreset<F: Float>: Stage + Send + Sync {
    /// Chooses rows, or `None` for all rows as they are.
    ///
    /// # Errors
    /// None of the coresets here fails on checked data; others may.
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>>;
}

impl<F: Float, C: Coreset<F> + ?Sized> Coreset<F> for Box<C> {
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>> {
        (**self).sample(view, rng)
    }
}
