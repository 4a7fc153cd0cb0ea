//! The algorithms of coremix behind linfa's traits `Fit` and `Predict`.
//!
//! [`Linfa`] wraps any algorithm. It fits linfa's data sets, with their weights, and gives a [`Model`] that predicts.
//!
//! ```
//! use coremix::algorithms;
//! use coremix_linfa::Linfa;
//! use linfa::prelude::*;
//! use ndarray::Array2;
//!
//! let rows = Array2::from_shape_fn((60, 2), |(n, j)| (n % 3 * (j + 1)) as f64 + 0.01 * (n / 3) as f64);
//! let data = Dataset::from(rows);
//! let model = Linfa::new(algorithms::k_means(3).build()?).fit(&data)?;
//! let labels = model.predict(&data);
//! assert_eq!(labels.len(), 60);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! linfa takes arrays of ndarray 0.16, and coremix those of 0.17. Arrays in standard layout (row by row) are passed on as
//! they are, without a copy. Others are copied once. Targets of a data set are ignored.

use coremix::data::Dense;
use coremix::ndarray::ArrayView2 as RowsView;
use coremix::{BoxedMixture, Element, Estimator, Fit as Fitted, Mixture};
use linfa::DatasetBase;
use linfa::traits::{Fit, PredictInplace};
use ndarray::{Array1, Array2, ArrayBase, CowArray, Data, Ix2};

/// An algorithm of coremix as one of linfa: any [`Estimator`], such as a [`Clusterer`](coremix::Clusterer) or a boxed one.
#[derive(Clone, Debug)]
pub struct Linfa<E> {
    estimator: E,
}

impl<E> Linfa<E> {
    /// Wraps an algorithm.
    #[must_use]
    pub fn new(estimator: E) -> Self {
        Self { estimator }
    }
}

/// Why a fit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// coremix says why.
    #[error(transparent)]
    Coremix(#[from] coremix::Error),
    /// linfa says why. No fit here does.
    #[error(transparent)]
    Linfa(#[from] linfa::error::Error),
}

/// A fitted model, as linfa predicts with it.
#[derive(Debug)]
pub struct Model<F: Element<Float = F> + coremix::Float> {
    /// The result of the fit: the model of coremix, labels, and the report.
    pub fit: Fitted<BoxedMixture<F>>,
}

impl<F, D, T, E> Fit<ArrayBase<D, Ix2>, T, Error> for Linfa<E>
where
    F: Element<Float = F> + coremix::Float + linfa::Float,
    D: Data<Elem = F>,
    E: Estimator<F>,
{
    type Object = Model<F>;

    /// Fits the records with the weights of the data set. Rows of weight 0 count as absent.
    fn fit(&self, dataset: &DatasetBase<ArrayBase<D, Ix2>, T>) -> Result<Model<F>, Error> {
        let rows = in_standard_layout(&dataset.records);
        let view = view(&rows);
        let data = match dataset.weights() {
            Some(weights) => Dense::weighted(view, weights)?,
            None => Dense::new(view)?,
        };
        let fit = self.estimator.fit(&data)?;
        Ok(Model { fit })
    }
}

impl<F, D> PredictInplace<ArrayBase<D, Ix2>, Array1<usize>> for Model<F>
where
    F: Element<Float = F> + coremix::Float + linfa::Float,
    D: Data<Elem = F>,
{
    /// The likeliest component of every row. As linfa's own models do, it panics if there are as many targets not as rows,
    /// if the columns are not those of the fit, or if a number is not finite. Use
    /// [`Mixture::predict`] of [`fit`](Model::fit) for an error instead.
    fn predict_inplace<'a>(&'a self, x: &'a ArrayBase<D, Ix2>, y: &mut Array1<usize>) {
        assert_eq!(x.nrows(), y.len(), "as many targets as rows");
        let rows = in_standard_layout(x);
        let labels = Dense::batch(view(&rows)).and_then(|data| self.fit.model.predict(&data));
        let labels = labels.unwrap_or_else(|error| panic!("{error}"));
        for (y, label) in y.iter_mut().zip(labels) {
            *y = label as usize;
        }
    }

    fn default_target(&self, x: &ArrayBase<D, Ix2>) -> Array1<usize> {
        Array1::zeros(x.nrows())
    }
}

/// Rows one after the other: as they are, or copied.
fn in_standard_layout<F: Copy, D: Data<Elem = F>>(x: &ArrayBase<D, Ix2>) -> CowArray<'_, F, Ix2> {
    match x.is_standard_layout() {
        true => x.view().into(),
        false => Array2::from_shape_fn(x.dim(), |at| x[at]).into(),
    }
}

/// These rows as an array of the other version.
fn view<'a, F>(rows: &'a CowArray<'_, F, Ix2>) -> RowsView<'a, F> {
    let values = rows.as_slice().unwrap_or_default();
    RowsView::from_shape(rows.dim(), values).expect("rows in standard layout")
}
