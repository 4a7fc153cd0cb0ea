//! How much of a stage is done, for whoever watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of a stage is done: any thread can look at it while the stage runs. A clone looks at the same stage.
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<[AtomicU64; 2]>);

impl Share {
    /// From 0 to 1. It stays 0 where a stage does not say how much it has to do.
    #[must_use]
    pub fn get(&self) -> f64 {
        let [done, expected] = self
            .0
            .each_ref()
            .map(|steps| steps.load(Ordering::Relaxed) as f64);
        (done / expected.max(1.0)).min(1.0)
    }

    pub(crate) fn expect(&self, steps: usize) {
        self.0[1].fetch_add(steps as u64, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, steps: usize) {
        self.0[0].fetch_add(steps as u64, Ordering::Relaxed);
    }
}
