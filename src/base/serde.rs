//! The traits of serde; without the feature `files`, traits of the same names that every type has.

#[cfg(not(feature = "files"))]
pub(crate) use absent::{DeserializeOwned, Serialize};
#[cfg(feature = "files")]
pub(crate) use serde::{Serialize, de::DeserializeOwned};

#[cfg(not(feature = "files"))]
mod absent {
    pub trait Serialize {}
    impl<T: ?Sized> Serialize for T {}

    pub trait DeserializeOwned: Sized {}
    impl<T> DeserializeOwned for T {}
}
