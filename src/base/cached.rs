//! A value that follows from others, made when it is first asked for.

use std::sync::{Arc, OnceLock};

/// Two are always equal, whether made yet or not. Clones share what was made.
#[derive(Debug)]
pub(crate) struct Cached<T>(OnceLock<Arc<T>>);

impl<T> Cached<T> {
    /// The value; `make` must not use the thread pool, whose other threads may be waiting here.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Arc::new(make()))
    }
}

impl<T> Clone for Cached<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
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
