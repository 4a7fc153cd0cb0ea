//! A value that follows from others, made when it is first asked for.

use std::sync::OnceLock;

/// Two are always equal, whether made yet or not.
#[derive(Clone, Debug)]
pub(crate) struct Cached<T>(OnceLock<T>);

impl<T> Cached<T> {
    /// The value; `make` must not use the thread pool, whose other threads may be waiting here.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PartialEq for Cached<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
