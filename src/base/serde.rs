//! The traits of serde; without the feature `files`, traits in their place that every type has.

#[cfg(not(feature = "files"))]
pub(crate) use absent::{Loaded as DeserializeOwned, Saved as Serialize};
#[cfg(feature = "files")]
pub(crate) use serde::{Serialize, de::DeserializeOwned};

#[cfg(not(feature = "files"))]
mod absent {
    pub trait Saved {}
    impl<T: ?Sized> Saved for T {}

    pub trait Loaded: Sized {}
    impl<T> Loaded for T {}
}
