//! Seeds given by the user.

use super::{KMeansPlusPlus, Seeder, Seeds};
use crate::base::error::{Error, Result, ensure, same_columns, same_length, whole_rows};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, View, check_rows};
use crate::io::hash_of;
use ndarray::{Array2, ArrayView2};
use std::fmt;

/// Start centres (k, d), in the data's own unit. No distance evaluations, no randomness.
///
/// They are checked by [`build`](crate::Builder::build) (k rows, finite, not too large) and by the fit (d columns).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let seeder = Given::new(birch.centres.view()); // the true centres
/// let fit = algorithms::k_means(25).seeder(seeder).build()?.fit(&data)?;
/// assert!(metrics::matched_rmse(fit.model.means(), birch.centres.view())? < 1.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Given<F> {
    centres: Array2<F>,
    /// Whether k-means++ adds what is missing.
    and_more: bool,
}

/// The numbers are left out, as there may be many.
impl<F: Float> fmt::Debug for Given<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = hash_of(self.centres.iter().map(|x| x.to_f64()));
        write!(f, "Given {:?} {hash}", self.centres.dim())
    }
}

/// Name of the centres in errors.
const WHAT: &str = "given centres";

impl<F: Float> Given<F> {
    /// Starts from these centres (k, d); k must be the builder's number of clusters.
    #[must_use]
    pub fn new(centres: ArrayView2<'_, F>) -> Self {
        Self {
            centres: centres.to_owned(),
            and_more: false,
        }
    }

    /// Starts from these centres, one after the other, of this number of columns.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the columns do not divide the number of values, [`Error::Empty`] without columns.
    pub fn of_rows(centres: &[F], columns: usize) -> Result<Self> {
        let rows = whole_rows(WHAT, centres.len(), columns)?;
        let view = ArrayView2::from_shape((rows, columns), centres);
        Ok(Self::new(view.expect("n x d numbers")))
    }

    /// With as many seeds by greedy k-means++ as are missing.
    pub(crate) fn and_more(self) -> Self {
        Self {
            and_more: true,
            ..self
        }
    }

    /// An error for a seed so far out that weighted sums of squared distances to it would not stay finite: only weights far beyond
    /// numbers of rows make any fail.
    fn check_distances(&self, seeds: &Centres<F>, view: View<'_, F>) -> Result<()> {
        let dim = view.frame.dim() as f64;
        let most = f64::MAX / 64.0;
        let weight = view.data.summary().total_weight;
        let is_far = |row: &usize| {
            let squares = seeds.row(*row).iter().map(|x| x.to_f64().powi(2));
            weight * (squares.sum::<f64>() + dim) >= most
        };
        let Some(row) = (0..seeds.len()).find(is_far) else {
            return Ok(());
        };
        let values = self.centres.row(row).mapv(|x| x.to_f64());
        let by_size = |a: &usize, b: &usize| values[*a].abs().total_cmp(&values[*b].abs());
        let column = (0..values.len()).max_by(by_size).unwrap_or_default();
        Err(Error::TooLarge {
            what: "given centres, for rows of these weights",
            row,
            column,
            value: values[column],
            limit: (most / weight / dim).sqrt() * view.frame.unit(),
        })
    }
}

impl<F: Float> Stage for Given<F> {
    fn check(&self, clusters: usize) -> Result<()> {
        ensure(!self.centres.is_empty(), || Error::Empty { what: WHAT })?;
        if !(self.and_more && self.centres.nrows() < clusters) {
            same_length(WHAT, clusters, self.centres.nrows())?;
        }
        check_rows(self.centres.view(), None, WHAT, F::LIMIT, 0)
    }
}

impl<F: Float> Seeder<F> for Given<F> {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let frame = view.frame;
        same_columns(WHAT, frame.dim(), self.centres.ncols())?;
        let centres = Centres::enter(self.centres.view(), frame);
        self.check_distances(&centres, view)?;
        if self.and_more {
            return KMeansPlusPlus::greedy().choose(view, k, Some(&centres), rng);
        }
        Ok(Seeds {
            centres,
            evaluations: 0,
        })
    }
}
