//! Values that a search keeps per shard of a pass.

use std::sync::{Mutex, PoisonError};

/// One value for each shard of a pass over the rows: scratch, and what a search learns for the next pass.
///
/// A shard is a fixed sequence of blocks, searched in order by one thread; [`Block::shard`](crate::stage::Block::shard) numbers
/// it. So sums by shard, added up in their order, are the same on any number of threads.
#[derive(Debug)]
pub(crate) struct PerShard<T>(Mutex<Vec<(usize, T)>>);

impl<T> Default for PerShard<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> PerShard<T> {
    /// Works with the value of a shard, which is made where there is none yet.
    pub(crate) fn with<R>(
        &self,
        shard: usize,
        make: impl FnOnce() -> T,
        work: impl FnOnce(&mut T) -> R,
    ) -> R {
        // Taken out, so that other shards need not wait.
        let mut value = self.taken(shard).unwrap_or_else(make);
        let result = work(&mut value);
        self.put(shard, value);
        result
    }

    fn taken(&self, shard: usize) -> Option<T> {
        let mut by_shard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = by_shard.iter().position(|(other, _)| *other == shard)?;
        Some(by_shard.remove(place).1)
    }

    fn put(&self, shard: usize, value: T) {
        let mut by_shard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // There are few, so each goes to its place.
        let place = by_shard.partition_point(|(other, _)| *other < shard);
        by_shard.insert(place, (shard, value));
    }

    /// The values of all shards, in their order.
    pub(crate) fn into_values(self) -> Vec<T> {
        let by_shard = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        by_shard.into_iter().map(|(_, value)| value).collect()
    }

    /// The values of all shards, in their order; none are left.
    pub(crate) fn take(&mut self) -> Vec<T> {
        std::mem::take(self).into_values()
    }
}
