//! Generic code that is compiled inside this crate, for the number types of the features `f32` and `f64`.
//!
//! Generic code is compiled where its types become known, unless a crate below has done it already: functions that
//! are `#[inline(never)]` are linked from there. These statics make the types known here. Without them a program that uses
//! the crate means the same, and compiles what it calls whenever it is built, as its own profile says.

use crate::algorithms::by_name::Algorithm;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Data, Dense, Sketch};
use crate::fit::Estimator;
use crate::model::Score;
use crate::model::facts::Facts;
use crate::model::predict::{self, Classified};
use ndarray::{Array1, Array2};

type Model<'a, F> = &'a Facts<'a, F>;
type Rows<'a, F> = &'a dyn Data<F>;
type Labels = Array1<u32>;
/// A score, and its evaluations.
type Scored = Result<(Score, u64)>;
/// Components and their shares, per row.
type Shares<F> = Result<(Array2<u32>, Array2<F>)>;

/// Functions from which all others are reached.
#[expect(dead_code, reason = "they are compiled, not called")]
struct Instances<F: Float> {
    algorithms: fn(&Algorithm) -> Result<Box<dyn Estimator<F>>>,
    predict: fn(Model<'_, F>, Rows<'_, F>) -> Result<Labels>,
    responsibilities: fn(Model<'_, F>, Rows<'_, F>) -> Result<Array2<F>>,
    truncated: fn(Model<'_, F>, Rows<'_, F>, usize) -> Shares<F>,
    log_densities: fn(Model<'_, F>, Rows<'_, F>) -> Result<Array1<f64>>,
    log_likelihood: fn(Model<'_, F>, Rows<'_, F>) -> Result<f64>,
    classify: fn(Model<'_, F>, Rows<'_, F>) -> Result<Classified>,
    score: fn(Model<'_, F>, Rows<'_, F>) -> Scored,
    quantization_error: fn(Model<'_, F>, Rows<'_, F>) -> Result<f64>,
    dense: fn(Dense<'static, F>) -> Box<dyn Data<F>>,
    sketch: fn(Sketch<F>) -> Box<dyn Data<F>>,
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
            quantization_error: predict::quantization_error,
            dense: |data| Box::new(data),
            sketch: |data| Box::new(data),
        };
    )*};
}
instances!("f32" F32: f32, "f64" F64: f64);

#[cfg(feature = "f32")]
#[used]
static BYTES: fn(Dense<'static, u8>) -> Box<dyn Data<f32>> = |data| Box::new(data);
