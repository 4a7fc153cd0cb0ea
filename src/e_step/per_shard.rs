//! Values that a search keeps per shard of a pass.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// One value for each shard of a pass over the rows: scratch, and what a search learns for the next pass.
///
/// A shard is a fixed sequence of blocks, searched in order by one thread; [`Block::shard`](crate::stage::Block::shard) numbers
/// it. So sums by shard, added up in their order, are the same on any number of threads.
#[derive(Debug)]
pub struct PerShard<T>(Mutex<BTreeMap<usize, T>>);

impl<T> Default for PerShard<T> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<T> PerShard<T> {
    /// Works with the value of a shard, which is made where there is none yet.
    pub fn with<R>(
        &self,
        shard: usize,
        make: impl FnOnce() -> T,
        work: impl FnOnce(&mut T) -> R,
    ) -> R {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that other shards need not wait.
        let taken = all().remove(&shard);
        let mut value = taken.unwrap_or_else(make);
        let result = work(&mut value);
        all().insert(shard, value);
        result
    }

    /// The values of all shards, in their order.
    pub(crate) fn into_values(self) -> Vec<T> {
        let all = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.into_values().collect()
    }

    /// The values of all shards, in their order; none are left.
    pub fn take(&mut self) -> Vec<T> {
        std::mem::take(self).into_values()
    }
}
