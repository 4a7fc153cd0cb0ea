//! Columns of mean 0 and deviation 1 for a fit, and its model in the columns' own units.

use crate::failure::{Failure, Result};
use crate::progress::Bar;
use crate::rows::{self, Shared};
use coremix::data::{Source, Summary};
use coremix::m_step::{Covariance, GaussianMixture};
use coremix::prelude::*;
use coremix::{BoxedMixture, Element, Float};
use ndarray::{Array1, Array2};
use std::any::Any;
use std::io;
use std::sync::Arc;

/// Mean and deviation of every column (d) of the rows of a fit. The deviation of a constant column is 1.
#[derive(Clone)]
pub(crate) struct Scale {
    means: Array1<f64>,
    deviations: Array1<f64>,
}

/// Rows whose columns have mean 0 and deviation 1.
struct Scaled<T: Element>(Shared<T>, Scale);

impl Scale {
    /// Means and deviations of rows with these weights, from one pass.
    pub(crate) fn of<T: Element>(
        rows: &Shared<T>,
        weights: Option<&[f64]>,
        columns: &[String],
    ) -> Result<Self> {
        let bar = Bar::of_fit();
        bar.say("finding the scales of the columns");
        let rows = rows::data(rows.clone(), weights.map(<[f64]>::to_vec), false, &bar)?;
        rows::warn_of_columns(columns, rows.as_data().summary(), false);
        let Summary { mean, variance, .. } = rows.as_data().summary();
        let deviation = |v: &f64| if *v > 0.0 { v.sqrt() } else { 1.0 };
        Ok(Self {
            means: Array1::from(mean.clone()),
            deviations: variance.iter().map(deviation).collect(),
        })
    }

    /// The rows in units of it.
    pub(crate) fn apply<T: Element>(&self, rows: &Shared<T>) -> Shared<T::Float> {
        Arc::new(Box::new(Scaled(rows.clone(), self.clone())))
    }

    /// Log-density of a standardised row, less that of the row itself.
    pub(crate) fn log_density(&self) -> f64 {
        self.deviations.iter().map(|s| s.ln()).sum()
    }

    /// The mixture of standardised rows, changed back to the units of the rows. A variance that all columns share becomes one
    /// for each column.
    pub(crate) fn undo<F: Float>(&self, model: &dyn Mixture<F>) -> Result<BoxedMixture<F>> {
        let any: &dyn Any = model;
        let Some(model) = any.downcast_ref::<GaussianMixture<F>>() else {
            return Err(Failure::arguments(
                "--standardise does not work with models of this family",
            ));
        };
        let mut means = model.means().mapv(Float::to_f64);
        means = means * &self.deviations + &self.means;
        let means = means.mapv(F::from_f64);
        let (s, proportions) = (&self.deviations, model.proportions());
        let pair = |((i, j), v): ((usize, usize), &f64)| v * s[i] * s[j];
        let (k, d) = means.dim();
        let model = match model.covariance_kind() {
            kind @ Covariance::Tied => {
                let all = model.covariance(0)?;
                let all = Array2::from_shape_vec((d, d), all.indexed_iter().map(pair).collect());
                let all = all.expect("d x d covariances");
                GaussianMixture::from_parameters(kind, means.view(), all.view(), proportions)
            }
            kind @ Covariance::Full => {
                let mut all = model.covariances();
                all.indexed_iter_mut()
                    .for_each(|((_, i, j), v)| *v *= s[i] * s[j]);
                GaussianMixture::from_parameters(kind, means.view(), all.view(), proportions)
            }
            _ => {
                let all = model.column_variances() * s * s;
                debug_assert_eq!(all.dim(), (k, d));
                let kind = Covariance::Diagonal;
                GaussianMixture::from_parameters(kind, means.view(), all.view(), proportions)
            }
        };
        Ok(Box::new(model?))
    }
}

impl<T: Element> Source for Scaled<T> {
    type Element = T::Float;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn read(&self, first: usize, out: &mut [T::Float]) -> io::Result<()> {
        let mut own = vec![T::default(); out.len()];
        self.0.read(first, &mut own)?;
        let scale = self.1.means.iter().zip(&self.1.deviations).cycle();
        for ((out, x), (mean, deviation)) in out.iter_mut().zip(own).zip(scale) {
            *out = T::Float::from_f64((x.widen().to_f64() - mean) / deviation);
        }
        Ok(())
    }
}
