//! Models of either number type.

use coremix::BoxedMixture;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The texts of columns that are categories, in the order of their codes.
pub(crate) type Texts = BTreeMap<String, Vec<String>>;

/// A mixture model of any family, the names of its columns, if they are known, and the texts of those that are categories. It does
/// not change. Rows with names are read by them.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Model(
    pub(crate) OfType,
    pub(crate) Option<Vec<String>>,
    pub(crate) Texts,
);

/// A model of either number type.
pub(crate) enum OfType {
    Single(BoxedMixture<f32>),
    Double(BoxedMixture<f64>),
}

/// Does something with a model of either number type: `$of` is the model, `$number` its type.
macro_rules! each {
    ($model:expr, $of:ident: $number:ident => $do:expr) => {
        match &$model.0 {
            $crate::fitted::OfType::Single($of) => {
                #[allow(dead_code, reason = "not all need it")]
                type $number = f32;
                $do
            }
            $crate::fitted::OfType::Double($of) => {
                #[allow(dead_code, reason = "not all need it")]
                type $number = f64;
                $do
            }
        }
    };
}
pub(crate) use each;
