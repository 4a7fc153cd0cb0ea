//! Predictions of one row at a time.

use crate::base::error::{Result, same_columns};
use crate::base::float::Float;
use crate::costs::Cost;
use crate::data::{RowKind, check_rows, load_row};
use crate::kernels::select;
use crate::model::facts::Facts;
use crate::model::{Mixture, predict};
use crate::rows::{Frame, Rows};
use ndarray::{Axis, aview1};
use std::ops::Deref;

/// Predicts one row at a time: see [`Mixture::predictor`]. `M` holds the model, as a reference or a box does.
#[derive(Clone, Debug)]
pub struct Predictor<F, M> {
    model: M,
    row: Rows<F>,
    ids: Vec<u32>,
    costs: Vec<F>,
    may_miss: bool,
}

impl<F: Float, M: Deref<Target: Mixture<F>>> Predictor<F, M> {
    /// For this model.
    pub fn new(model: M) -> Self {
        Self {
            row: Rows::default(),
            ids: (0..model.components() as u32).collect(),
            costs: Vec::new(),
            may_miss: false,
            model,
        }
    }

    /// For rows in which values may be missing: NaN stands for a value that is not known, as in
    /// [`Dense::with_missing`](crate::data::Dense::with_missing).
    #[must_use]
    pub fn with_missing(self) -> Self {
        let may_miss = true;
        Self { may_miss, ..self }
    }

    /// The label of a row (d), as [`Mixture::predict`] finds it, and the squared distance to the mean of that component, in the
    /// data's own unit, squared: NaN where columns hold categories, whose codes are labels. Only the first call allocates memory; with full or tied covariances, models of a
    /// sketch and missing values, all take some vectors of d numbers. Errors are those of [`Dense::new`](crate::data::Dense::new) and `predict`.
    pub fn predict(&mut self, row: &[F]) -> Result<(u32, f64)> {
        let mut label = [0];
        let mut cost = [F::zero()];
        self.search(row, &mut label, &mut cost)?;
        (self.row).distances_to_own(self.model.centres(), &label, &mut cost);
        Ok((label[0], self.leave(cost[0])))
    }

    /// The `m` likeliest components of a row, best first, each with the squared distance to its mean, as [`predict`](Self::predict) has
    /// it: for k-means the nearest centres. All components, where there are fewer.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn likeliest(&mut self, row: &[F], m: usize) -> Result<Vec<(u32, f64)>> {
        let m = m.min(self.ids.len());
        let mut labels = vec![0; m];
        let mut costs = vec![F::zero(); m];
        self.search(row, &mut labels, &mut costs)?;
        (self.row).distances_to(0, self.model.centres(), &labels, &mut costs);
        let squared = costs.into_iter().map(|cost| self.leave(cost));
        Ok(labels.into_iter().zip(squared).collect())
    }

    /// The log-density of a row, as in [`Mixture::log_densities`]; errors as in [`predict`](Self::predict).
    pub fn log_density(&mut self, row: &[F]) -> Result<f64> {
        self.load(row)?;
        Ok(predict::densities(&Facts::of(&*self.model), &self.row)[0])
    }

    /// Loads a row and finds its likeliest components, best first, with their costs.
    fn search(&mut self, row: &[F], labels: &mut [u32], costs: &mut [F]) -> Result<()> {
        self.load(row)?;
        let cost = self.model.cost();
        smallest(cost, &self.row, &self.ids, &mut self.costs, labels, costs);
        Ok(())
    }

    /// A squared distance in the data's own unit, if there are distances. Known columns stand for all, as in the quantization error.
    fn leave(&self, squared: F) -> f64 {
        if self.model.cost().has_distances() {
            let frame = self.model.frame();
            let stands_for = frame.dim() as f64 / self.row.known(0).max(1) as f64;
            frame.leave_square(squared.to_f64() * stands_for)
        } else {
            f64::NAN
        }
    }

    fn load(&mut self, row: &[F]) -> Result<()> {
        let may_miss = self.may_miss;
        load(
            row,
            self.model.cost(),
            self.model.frame(),
            may_miss,
            &mut self.row,
        )
    }
}

/// Loads a row: apart from the type of the model, so that it is compiled once.
#[inline(never)]
pub(crate) fn load<F: Float>(
    row: &[F],
    cost: Cost<'_, F>,
    frame: &Frame<F>,
    may_miss: bool,
    into: &mut Rows<F>,
) -> Result<()> {
    same_columns("data", frame.dim(), row.len())?;
    if may_miss && row.iter().any(|x| x.to_f64().is_nan()) {
        cost.check(RowKind::Partial)?;
        load_row(row, frame, into)?;
    } else {
        check_rows(aview1(row).insert_axis(Axis(0)), None, "data", F::LIMIT, 0)?;
        into.reset(1, row.len());
        into.weights.push(1.0);
        frame.enter(row.iter().copied(), &mut into.values);
    }
    let own_cost = cost.own();
    own_cost.map_or(Ok(()), |cost| cost.takes(into, 0))
}

/// The likeliest components of the first row, best first, with their costs.
#[inline(never)]
pub(crate) fn smallest<F: Float>(
    cost: Cost<'_, F>,
    rows: &Rows<F>,
    ids: &[u32],
    costs: &mut Vec<F>,
    labels: &mut [u32],
    least: &mut [F],
) {
    cost.some(rows, 0, ids, costs);
    select::smallest(ids, costs, labels, least);
}
