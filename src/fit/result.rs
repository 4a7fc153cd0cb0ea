//! The result of a fit.

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::coreset::Subset;
use crate::data::Data;
use crate::em::Report;
use crate::model::facts::Facts;
use crate::model::{Mixture, Score, predict};
use ndarray::{Array1, Array2};
use std::time::Instant;

/// A model, what the last search under it found, and the report.
///
/// Labels, supports, model and the last free energy belong together: they are those of the last search, about the rows that it
/// ran on. [`Mixture::predict`] labels any rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit<M> {
    /// The fitted model.
    pub model: M,
    /// The report: phases, free energies, evaluations, times.
    pub report: Report,
    /// The best component of each row of the last search: the rows of the [coreset](Self::coreset), if there is one, and all
    /// rows otherwise. Labels of the data are `fit.model.predict(&data)?`.
    pub search_labels: Array1<u32>,
    /// Whether these labels are exact: the last search compared every row with every component, or bounds prove that the others
    /// are farther, up to the rounding of distances. Where it did not, [`relabel`](Fit::relabel) makes them so.
    pub exact: bool,
    /// The supports K(n) of these rows, best first: (rows, C'); `None` when all components are in each.
    pub supports: Option<Array2<u32>>,
    /// The rows EM ran on and their weights; `None` for all rows as they are.
    pub coreset: Option<Subset>,
}

impl<M> Fit<M> {
    /// This fit with a model of any family, boxed.
    pub(crate) fn boxed<F: Float>(self) -> Fit<Box<dyn Mixture<F>>>
    where
        M: Mixture<F>,
    {
        self.map(|model| Box::new(model) as Box<dyn Mixture<F>>)
    }

    /// This fit with `make(model)` in place of the model, such as a boxed model of a certain family.
    pub fn map<N>(self, make: impl FnOnce(M) -> N) -> Fit<N> {
        Fit {
            model: make(self.model),
            report: self.report,
            search_labels: self.search_labels,
            exact: self.exact,
            supports: self.supports,
            coreset: self.coreset,
        }
    }

    /// Makes the labels exact: those of [`predict`](Mixture::predict) for the rows of the last phase. Supports that are not
    /// full become these labels.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] or [`Error::LengthMismatch`] if `data` is not what was fitted.
    pub fn relabel<F: Float>(&mut self, data: &dyn Data<F>) -> Result<()>
    where
        M: Mixture<F>,
    {
        if self.exact {
            return Ok(());
        }
        let last = self.coreset.as_ref().and_then(|s| s.rows.iter().max());
        let fitted = last.map_or(self.search_labels.len(), |last| last + 1);
        let given = data.len();
        if given < fitted || self.coreset.is_none() && given != fitted {
            return Err(Error::LengthMismatch {
                what: "rows to label again, which must be those of the fit",
                expected: fitted,
                found: given,
            });
        }
        self.search_labels = match &self.coreset {
            Some(subset) => {
                let rows = data.select(&subset.rows, subset.weights.clone())?;
                self.model.predict(&*rows)?
            }
            None => self.model.predict(data)?,
        };
        if let Some(supports) = &mut self.supports {
            let labels = self.search_labels.clone().insert_axis(ndarray::Axis(1));
            *supports = labels;
        }
        self.exact = true;
        Ok(())
    }

    /// Labels, quantization error and log-likelihood of a data set, all exact; the distance evaluations
    /// and the time are added to the report as scoring. See [`Score`] for the formulas.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] if the data has another number of columns than the model.
    pub fn score<F: Float>(&mut self, data: &dyn Data<F>) -> Result<Score>
    where
        M: Mixture<F>,
    {
        let started = Instant::now();
        let (score, evaluations) = predict::score(&Facts::of(&self.model), data)?;
        let add = |count: &mut u64| *count = count.saturating_add(evaluations);
        add(&mut self.report.evaluations.scoring);
        add(&mut self.report.distance_evaluations);
        self.report.timings.scoring += started.elapsed();
        Ok(score)
    }
}
