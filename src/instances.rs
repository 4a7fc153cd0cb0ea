//! Generic code that is compiled inside this crate, for the number types of the features `f32` and `f64`.
//!
//! Generic code is compiled where its types become known, unless a crate below has done it already: functions that
//! are `#[inline(never)]` are linked from there. These statics make the types known here. Without them a program that uses
//! the crate means the same, and compiles what it calls whenever it is built, as its own profile says.

use crate::algorithms::by_name::Algorithm;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::costs::Cost;
use crate::data::{Data, Dense, Sketch};
use crate::fit::Estimator;
use crate::model::facts::Facts;
use crate::model::predict::{self, Classified};
use crate::model::{BoxedMixture, Score};
use crate::model::{clusters, predictor};
use crate::rows::{Frame, Rows};
use ndarray::{Array1, Array2};

type Model<'a, F> = &'a Facts<'a, F>;
type DataOf<'a, F> = &'a dyn Data<F>;

/// Functions from which all others are reached.
#[expect(dead_code, reason = "they are compiled, not called")]
#[expect(clippy::type_complexity, reason = "signatures are what they are")]
struct Instances<F: Float> {
    algorithms: fn(&Algorithm) -> Result<Box<dyn Estimator<F>>>,
    predict: fn(Model<'_, F>, DataOf<'_, F>) -> Result<Array1<u32>>,
    responsibilities: fn(Model<'_, F>, DataOf<'_, F>) -> Result<Array2<F>>,
    truncated: fn(Model<'_, F>, DataOf<'_, F>, usize) -> Result<(Array2<u32>, Array2<F>)>,
    log_densities: fn(Model<'_, F>, DataOf<'_, F>) -> Result<Array1<f64>>,
    log_likelihood: fn(Model<'_, F>, DataOf<'_, F>) -> Result<f64>,
    classify: fn(Model<'_, F>, DataOf<'_, F>) -> Result<Classified>,
    score: fn(Model<'_, F>, DataOf<'_, F>) -> Result<(Score, u64)>,
    impute: fn(Model<'_, F>, &Array2<F>, &Dense<'_, F>, bool) -> Result<Array2<F>>,
    density_threshold: fn(Model<'_, F>, DataOf<'_, F>, f64) -> Result<f64>,
    sizes: fn(Model<'_, F>, DataOf<'_, F>) -> Result<Array1<f64>>,
    medoids: fn(Model<'_, F>, &Array2<f64>, DataOf<'_, F>) -> Result<Vec<Option<(usize, f64)>>>,
    quantization_error: fn(Model<'_, F>, DataOf<'_, F>) -> Result<f64>,
    densities: fn(Model<'_, F>, &Rows<F>) -> Vec<f64>,
    smallest: fn(Cost<'_, F>, &Rows<F>, &[u32], &mut Vec<F>, &mut [u32], &mut [F]),
    load: fn(&[F], Cost<'_, F>, &Frame<F>, bool, &mut Rows<F>) -> Result<()>,
    dense: fn(Dense<'static, F>) -> Box<dyn Data<F>>,
    sketch: fn(Sketch<F>) -> Box<dyn Data<F>>,
    #[cfg(feature = "files")]
    read: fn(&[u8]) -> Result<BoxedMixture<F>>,
    #[cfg(feature = "files")]
    written: fn(&BoxedMixture<F>, &[(&str, &str)]) -> Result<Vec<u8>>,
}

macro_rules! instances {
    ($($feature:literal $name:ident: $float:ty),*) => {$(
        #[cfg(feature = $feature)]
        #[used]
        static $name: Instances<$float> = Instances {
            algorithms: Algorithm::boxed,
            predict: predict::predict,
            responsibilities: predict::responsibilities,
            truncated: predict::truncated_responsibilities,
            log_densities: predict::log_densities,
            log_likelihood: predict::log_likelihood,
            classify: predict::classify,
            score: predict::score,
            impute: predict::impute,
            density_threshold: predict::density_threshold,
            sizes: clusters::sizes,
            medoids: clusters::medoids,
            quantization_error: predict::quantization_error,
            densities: predict::densities,
            smallest: predictor::smallest,
            load: predictor::load,
            dense: |data| Box::new(data),
            sketch: |data| Box::new(data),
            #[cfg(feature = "files")]
            read: crate::families::saved::Save::from_bytes,
            #[cfg(feature = "files")]
            written: crate::families::saved::Save::to_bytes,
        };
    )*};
}
instances!("f32" F32: f32, "f64" F64: f64);

#[cfg(feature = "f32")]
#[used]
static BYTES: fn(Dense<'static, u8>) -> Box<dyn Data<f32>> = |data| Box::new(data);
