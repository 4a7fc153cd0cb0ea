//! Spans and events of a fit, as a subscriber of `tracing` sees them: `cargo test --features tracing --test tracing`.

use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The fields of a span or an event.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }
}

impl Fields {
    fn number(&self, name: &str) -> f64 {
        self.0[name].parse().unwrap()
    }
}

/// Writes down all spans and events.
#[derive(Clone, Default)]
struct Log {
    next: Arc<AtomicU64>,
    spans: Arc<Mutex<Vec<(String, Fields)>>>,
    events: Arc<Mutex<Vec<Fields>>>,
    open: Arc<Mutex<i64>>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "coremix"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let name = span.metadata().name().to_string();
        self.spans.lock().unwrap().push((name, fields));
        Id::from_u64(1 + self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.events.lock().unwrap().push(fields);
    }

    fn enter(&self, _: &Id) {
        *self.open.lock().unwrap() += 1;
    }

    fn exit(&self, _: &Id) {
        *self.open.lock().unwrap() -= 1;
    }
}

#[test]
fn a_fit_is_seen_from_the_coreset_to_the_last_iteration() {
    let mut rng = Rng::from_seed(1);
    let x = Array2::from_shape_fn((400, 2), |(n, _)| (n % 5) as f64 + 0.1 * rng.normal());
    let data = Dense::new(x.view()).unwrap();
    let log = Log::default();
    let fit = tracing::subscriber::with_default(log.clone(), || {
        let algorithm = algorithms::vc_gmm(5, 200, 2, 3).seed(3);
        // One thread: subscribers are set for threads.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread();
        let pool = pool.build().unwrap();
        pool.install(|| algorithm.build().unwrap().fit(&data).unwrap())
    });
    assert_eq!(*log.open.lock().unwrap(), 0);
    let spans = log.spans.lock().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| &*span.0).collect();
    assert_eq!(names, ["fit", "phase"]);
    let numbers = ["rows", "columns", "clusters", "seed"].map(|name| spans[0].1.number(name));
    assert_eq!(numbers, [400.0, 2.0, 5.0, 3.0]);
    assert_eq!(spans[1].1.number("rows") as usize, fit.report.coreset_size);

    let events = log.events.lock().unwrap();
    let of = |name: &str| -> Vec<&Fields> {
        events
            .iter()
            .filter(|event| event.0["message"] == name)
            .collect()
    };
    assert_eq!((of("coreset").len(), of("seeded").len()), (1, 1));
    let energies: Vec<f64> = of("iteration")
        .iter()
        .map(|e| e.number("free_energy"))
        .collect();
    assert_eq!(energies, fit.report.free_energies);
}
