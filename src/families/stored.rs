//! The table of families: which there are, and their parameters as files have them, checked when they are read.

use super::dirichlet_process::DirichletProcessMixture;
use super::dirichlet_process::Distribution;
use super::gaussian::covariances::Parameters;
use super::gaussian::mixture::GaussianMixture;
use super::product::{self, ProductMixture};
use super::saved::Save;
use super::von_mises_fisher::{self, VonMisesFisherMixture};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::io::{self, ModelInfo, rule, serde_through};
use crate::model::{BoxedMixture, Mixture};
use std::any::Any;
use std::borrow::Cow;

type Read<T> = std::result::Result<T, FileFault>;

/// The families of the library: the name of each, in files as well, its model, and what is stored of it.
macro_rules! families {
    ($($name:ident: $model:ident, $stored:ty, $write:expr, $read:expr;)*) => {
        /// A model of the library by its family, for what only that family has.
        ///
        /// ```
        /// use coremix::families::Family;
        /// use coremix::prelude::*;
        /// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
        /// # let data = Dense::new(birch.points.view())?;
        /// let model = "gmm".parse::<coremix::Algorithm>()?.clusters(25).boxed()?.fit(&data)?.model;
        /// if let Some(Family::Gaussian(mixture)) = Family::of(&*model) {
        ///     assert_eq!(mixture.covariances().dim(), (25, 2, 2));
        /// }
        /// # Ok::<(), Error>(())
        /// ```
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub enum Family<'a, F> {
            $(#[doc = concat!("A [`", stringify!($model), "`].")] $name(&'a $model<F>),)*
        }

        impl<'a, F: Float> Family<'a, F> {
            /// The family of a model; `None` if it is from outside the library.
            #[must_use]
            pub fn of(model: &'a dyn Mixture<F>) -> Option<Self> {
                let any: &dyn Any = model;
                $(if let Some(model) = any.downcast_ref() {
                    return Some(Self::$name(model));
                })*
                None
            }
        }

        #[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize), serde(bound = "F: Float"))]
        enum Stored<'a, F: Clone> {
            $($name(Cow<'a, $stored>),)*
        }

        serde_through! {
            Stored: $($model),*;
        }

        impl<F: Float> Stored<'_, F> {
            /// The name of the family in headers; Gaussian ones have that of their covariances.
            fn family(&self) -> String {
                match self {
                    Self::Gaussian(theta) => format!("{:?}", theta.covariance()),
                    $(#[allow(unreachable_patterns)] Self::$name(_) => stringify!($name).to_string(),)*
                }
            }

            #[inline(never)]
            fn boxed(self) -> Read<BoxedMixture<F>> {
                Ok(match self {
                    $(Self::$name(_) => Box::new($model::try_from(self)?),)*
                })
            }
        }

        /// The stored form of a boxed model; an error for families from outside.
        fn stored_of<F: Float>(model: &dyn Mixture<F>) -> Read<Stored<'_, F>> {
            match Family::of(model).ok_or(FileFault::NoFormat)? {
                $(Family::$name(model) => Ok(Stored::from(model)),)*
            }
        }

        $(impl<'a, F: Float> From<&'a $model<F>> for Stored<'a, F> {
            fn from(model: &'a $model<F>) -> Self {
                let write: fn(&'a $model<F>) -> Cow<'a, $stored> = $write;
                Self::$name(write(model))
            }
        }

        impl<F: Float> TryFrom<Stored<'_, F>> for $model<F> {
            type Error = FileFault;

            fn try_from(stored: Stored<'_, F>) -> Read<Self> {
                match stored {
                    Stored::$name(stored) => in_range($read(stored.into_owned())?),
                    other => Err(FileFault::Family {
                        expected: stringify!($name),
                        found: other.family(),
                    }),
                }
            }
        }

        impl<F: Float> Save for $model<F> {
            fn info(&self) -> Result<ModelInfo> {
                Ok(ModelInfo::new(&Stored::from(self).family(), self))
            }

            fn of_values(header: &ModelInfo, values: &[u8]) -> Read<Self> {
                stored::<F>(header, values)?.try_into()
            }
        })*
    };
}

families! {
    Gaussian: GaussianMixture, Parameters<F>, |model| Cow::Borrowed(&model.theta), |theta: Parameters<F>| theta.check().map(|()| Self::whole(theta));
    DirichletProcess: DirichletProcessMixture, Distribution<F>, |model| Cow::Borrowed(&model.q), |q: Distribution<F>| q.try_into();
    VonMisesFisher: VonMisesFisherMixture, von_mises_fisher::Theta<F>, |model| Cow::Borrowed(&model.theta), |theta: von_mises_fisher::Theta<F>| theta.check().map(|()| Self::new(theta));
    Product: ProductMixture, product::Theta<F>, |model| Cow::Borrowed(&model.theta), |theta: product::Theta<F>| theta.check().map(|()| Self::new(theta));
}

impl<F: Float> Save for BoxedMixture<F> {
    fn info(&self) -> Result<ModelInfo> {
        let stored = stored_of(&**self).map_err(FileFault::of_bytes)?;
        Ok(ModelInfo::new(&stored.family(), &**self))
    }

    fn of_values(header: &ModelInfo, values: &[u8]) -> Read<Self> {
        stored::<F>(header, values)?.boxed()
    }
}

/// Values of a family of the crate, or the error of another number type.
#[inline(never)]
fn stored<F: Float>(header: &ModelInfo, values: &[u8]) -> Read<Stored<'static, F>> {
    if header.number == F::NAME {
        io::only("model", values)
    } else {
        Err(FileFault::Number {
            expected: F::NAME,
            found: header.number.clone(),
        })
    }
}

/// The model, if all that it says of itself is finite in the data's own unit as well.
fn in_range<F: Float, M: Mixture<F>>(model: M) -> Read<M> {
    let unit = "must be finite in the unit of the data";
    let means = model.means();
    rule(means.iter().all(|x| x.is_finite()), "centres", unit)?;
    let variances = model.variances();
    rule(variances.iter().all(|x| x.is_finite()), "variances", unit)?;
    Ok(model)
}

#[cfg(feature = "files")]
mod boxed {
    use super::{BoxedMixture, Float, Mixture, Stored, stored_of};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl<F: Float> Serialize for dyn Mixture<F> {
        fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
            let stored = stored_of(self).map_err(serde::ser::Error::custom);
            stored?.serialize(to)
        }
    }

    impl<'de, F: Float> Deserialize<'de> for BoxedMixture<F> {
        fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
            let stored = Stored::<F>::deserialize(from)?;
            stored.boxed().map_err(serde::de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gaussian::covariance::Covariance;
    use super::super::gaussian::covariances::Covariances;
    use super::super::gaussian::spherical::Spherical;
    use super::super::gaussian::triangles::Tied;
    use super::super::proportions::{Mixing, Proportions};
    use super::*;
    use crate::rows::Centres;
    use ndarray::{Array2, array};

    type Change = fn(&mut Parameters<f32>, f64);

    #[test]
    fn values_that_no_gaussians_have_are_errors_that_name_the_section() {
        let means = array![[0.0f32, 1.0], [3.0, 5.0], [2.0, -4.0]];
        let means = means.view();
        let proportions = array![0.25, 0.5, 0.25];
        let tied = GaussianMixture::tied_spherical(means, 0.3).unwrap();
        let model_of = |kind, variances: Array2<f64>| {
            let proportions = proportions.view();
            GaussianMixture::from_parameters(kind, means, variances.view(), proportions).unwrap()
        };
        let diagonal = &model_of(
            Covariance::Diagonal,
            array![[0.3, 1.0], [0.5, 0.1], [2.0, 1.5]],
        );
        let pairs = &model_of(Covariance::Tied, array![[2.0, 0.3], [0.3, 1.0]]);
        let refuse = |model: &GaussianMixture<f32>, section: &str, change: Change, bad: &[f64]| {
            for bad in bad {
                let mut theta = model.theta.clone();
                change(&mut theta, *bad);
                match Stored::Gaussian(Cow::Owned(theta)).boxed().map(|_| ()) {
                    Err(FileFault::Content { section: found, .. }) => assert_eq!(found, section),
                    other => panic!("{section} {bad}: {other:?}"),
                }
            }
        };
        let improper = &[f64::NAN, f64::INFINITY, 0.0, -1.0];
        for model in [&tied, diagonal, pairs] {
            let variance: Change = |s, x| match &mut s.covariances {
                Covariances::TiedSpherical(covariances) => covariances.variance = x,
                Covariances::Diagonal(covariances) => covariances.variances[0] = x,
                Covariances::Tied(covariances) => covariances.triangles[0] = x,
                _ => unreachable!(),
            };
            refuse(model, "variances", variance, improper);
            let least: Change = |s, x| s.common.floors.least = x;
            refuse(model, "least variance", least, improper);
            refuse(model, "unit of costs", |s, x| s.common.unit = x, improper);
            let far: Change = |s, x| {
                let far = array![[x as f32, 0.0], [0.0, 0.0], [1.0, 1.0]];
                s.common.centres = Centres::of_coordinates(far.view());
            };
            refuse(model, "centres", far, &[3e38]);
            let narrow: Change = |s, x| {
                let narrow = array![[x as f32], [1.0], [2.0]];
                s.common.centres = Centres::of_coordinates(narrow.view());
            };
            refuse(model, "centres", narrow, &[0.0]);
            let means: Change = |s, x| s.common.means = Some(vec![x as f32; 6]);
            refuse(model, "means", means, &[f64::NAN, f64::INFINITY]);
            let learned: Change =
                |s, x| s.common.proportions = Proportions::learned([x, 0.5, 0.25].into_iter());
            refuse(model, "proportions", learned, &[f64::NAN, -0.5]);
        }
        let of_pairs: fn(&mut Parameters<f32>) -> &mut Tied = |s| match &mut s.covariances {
            Covariances::Tied(covariances) => covariances,
            _ => unreachable!(),
        };
        let change = |section: &str, to: fn(&mut Tied, f64), bad: &[f64]| {
            for bad in bad {
                let mut theta = pairs.theta.clone();
                to(of_pairs(&mut theta), *bad);
                match Stored::Gaussian(Cow::Owned(theta)).boxed().map(|_| ()) {
                    Err(FileFault::Content { section: found, .. }) => assert_eq!(found, section),
                    other => panic!("{section} {bad}: {other:?}"),
                }
            }
        };
        change("variances", |kind, x| kind.triangles.push(x), &[1.0]);
        change("exact means", |kind, x| kind.means.push(x), &[1.0]);
        change("least variances", |kind, x| kind.least[1] = x, improper);
        change(
            "exact means",
            |kind, x| kind.means[3] = x,
            &[f64::NAN, f64::INFINITY],
        );
        change("variances", |kind, x| kind.triangles[1] = x, &[0.1]);
        let more: Change = |s, x| match &mut s.covariances {
            Covariances::Diagonal(covariances) => covariances.variances.push(x),
            _ => unreachable!(),
        };
        refuse(diagonal, "variances", more, &[1.0]);
        let columns: Change = |s, x| match &mut s.covariances {
            Covariances::Diagonal(covariances) => covariances.columns = x as usize,
            _ => unreachable!(),
        };
        refuse(diagonal, "variances", columns, &[0.0, 1.0, 3.0]);
        let small: Change = |s, x| match &mut s.covariances {
            Covariances::TiedSpherical(covariances) => covariances.variance = x,
            _ => unreachable!(),
        };
        refuse(&tied, "variances", small, &[1e-300]);
        let kind: Change = |s, x| {
            s.covariances = Covariances::Spherical(Spherical {
                variances: vec![x; 2],
            });
        };
        refuse(&tied, "variances", kind, &[1.0]);
        for (values, mixing) in [
            (vec![0.999, 0.5, 0.25], Mixing::Learned),
            (vec![0.5, 0.5], Mixing::Learned),
            (vec![0.25, 0.5, 0.25], Mixing::Equal),
        ] {
            let list = Proportions { values, mixing };
            assert!(list.check_stored(3).is_err(), "{list:?}");
        }
    }
}
