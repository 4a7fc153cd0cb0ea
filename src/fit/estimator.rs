//! Algorithms as trait objects: one bound in place of one per stage.

use super::builder::Clusterer;
use super::result::Fit;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::Data;
use crate::em::Progress;
use crate::m_step::MStep;
use crate::model::BoxedMixture;
use crate::seed::Seeder;
use std::ops::ControlFlow;

/// The observer of a fit.
pub type BoxedObserver<'a, F> = &'a mut dyn FnMut(&Progress<'_, F>) -> ControlFlow<()>;

/// Whatever fits a mixture to data; usable as a trait object.
///
/// Every [`Clusterer`] is one. [`Algorithm`](crate::Algorithm) makes one from a name.
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(x.view())?;
/// let algorithms: Vec<Box<dyn Estimator<f64>>> = vec![
///     Box::new(algorithms::k_means(6).build()?),
///     Box::new(algorithms::gmm(6).covariance(Covariance::Diagonal).build()?),
/// ];
/// for algorithm in &algorithms {
///     let fit = algorithm.fit(&data)?;
///     assert_eq!(fit.model.means().dim(), (6, 2));
/// }
/// # Ok::<(), Error>(())
/// ```
pub trait Estimator<F: Float>: Send + Sync {
    /// Fits the model, from the seeds of `seeder` in place of its own, and showing every step to `observer`, where there are
    /// such. A fit that [starts from a model](crate::Builder::start_from) has no seeds, and ignores the seeder.
    ///
    /// # Errors
    /// As [`Clusterer::fit`], and what the seeder says of its settings.
    fn fit_with(
        &self,
        data: &dyn Data<F>,
        seeder: Option<&dyn Seeder<F>>,
        observer: Option<BoxedObserver<'_, F>>,
    ) -> Result<Fit<BoxedMixture<F>>>;

    /// Fits the model to the data.
    fn fit(&self, data: &dyn Data<F>) -> Result<Fit<BoxedMixture<F>>> {
        self.fit_with(data, None, None)
    }

    /// Fits the model, showing every step to `observer`: a closure behind `&mut`, as in
    /// `fit_observed(&data, &mut |progress| ..)`.
    fn fit_observed(
        &self,
        data: &dyn Data<F>,
        observer: BoxedObserver<'_, F>,
    ) -> Result<Fit<BoxedMixture<F>>> {
        self.fit_with(data, None, Some(observer))
    }
}

impl<F: Float, E: Estimator<F> + ?Sized> Estimator<F> for Box<E> {
    fn fit_with(
        &self,
        data: &dyn Data<F>,
        seeder: Option<&dyn Seeder<F>>,
        observer: Option<BoxedObserver<'_, F>>,
    ) -> Result<Fit<BoxedMixture<F>>> {
        (**self).fit_with(data, seeder, observer)
    }
}

impl<F: Float, M: MStep<F>> Estimator<F> for Clusterer<F, M> {
    #[inline(never)]
    fn fit_with(
        &self,
        data: &dyn Data<F>,
        seeder: Option<&dyn Seeder<F>>,
        observer: Option<BoxedObserver<'_, F>>,
    ) -> Result<Fit<BoxedMixture<F>>> {
        if let Some(seeder) = seeder {
            seeder.check(self.pipeline.settings.clusters)?;
        }
        let seeder = seeder.unwrap_or(&*self.pipeline.seeder);
        Ok(self.run(data, seeder, observer)?.boxed())
    }
}
