//! A fit that is stopped anywhere and goes on from its checkpoint: the same bits. A damaged one: an error, or some fit.

use crate::bits::Bits;
use crate::bytes::Bytes;
use crate::damage::damaged;
use crate::estimators::{self, Boxed, Control};
use crate::table::{FloatOf, Number, Shape, Table};
use coremix::Float;
use coremix::data::Data;
use coremix::prelude::*;
use coremix::{BoxedMixture, Cancel};
use std::ops::ControlFlow;
use std::time::Duration;

pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    match bytes.below(4) {
        0 => dense::<f32>(bytes),
        1 | 2 => dense::<f64>(bytes),
        _ => sketch(bytes),
    }
}

/// Makes the estimator, with a checkpoint or without one.
type Make<'a, F> = &'a dyn Fn(&Control) -> Result<Boxed<F>>;

/// How a fit ends early.
#[derive(Clone, Copy, Debug)]
enum End {
    Observer,
    Cancel,
}

/// When a fit is stopped, and what becomes of its file.
#[derive(Clone, Debug)]
struct Accidents<'a> {
    /// Consecutive stops, each after this many calls of the observer.
    stops: Vec<(usize, End)>,
    /// Iterations from one checkpoint to the next.
    every: Option<usize>,
    /// Whether the file is damaged, and how.
    damage: Option<Bytes<'a>>,
}

impl<'a> Accidents<'a> {
    fn new(bytes: &mut Bytes<'a>) -> Self {
        let ends = [End::Observer, End::Observer, End::Cancel];
        let stops = 1 + bytes.few(2);
        Self {
            stops: (0..stops)
                .map(|_| (1 + bytes.few(20), bytes.choose(&ends)))
                .collect(),
            every: bytes.choose(&[Some(1), Some(1), Some(2), Some(3), None]),
            damage: match bytes.below(3) {
                0 => Some(bytes.part(40)),
                _ => None,
            },
        }
    }
}

fn dense<T: Number>(mut bytes: Bytes<'_>) {
    let bytes = &mut bytes;
    let (shape, accidents) = (Shape::new(bytes), Accidents::new(bytes));
    let (kind, settings) = (bytes.below(4), bytes.part(96));
    let make = |control: &Control| -> Result<Boxed<FloatOf<T>>> {
        let bytes = &mut settings.clone();
        match kind {
            0 | 1 => estimators::by_name(control, bytes).boxed(),
            2 => estimators::of_stages(shape.columns, control, bytes),
            _ => estimators::dirichlet_process::<T::Float>(shape.columns, control, bytes),
        }
    };
    let table = Table::<T>::new(shape, bytes);
    if let Ok(data) = table.data() {
        goes_on(&make, &data, &accidents);
    }
}

fn sketch(mut bytes: Bytes<'_>) {
    let bytes = &mut bytes;
    let (shape, accidents) = (Shape::new(bytes), Accidents::new(bytes));
    let (kind, settings) = (bytes.below(2), bytes.part(96));
    let make = |control: &Control| -> Result<Boxed<f32>> {
        let bytes = &mut settings.clone();
        match kind {
            0 => estimators::by_name(control, bytes).boxed(),
            _ => estimators::of_stages(shape.columns, control, bytes),
        }
    };
    let (q, seed) = (1 + bytes.below(6), u64::from(bytes.byte()));
    let table = Table::<f32>::new(shape, bytes);
    let dense = table.data();
    if let Ok(data) = dense.and_then(|dense| Sketch::of_dense(&dense, q, seed)) {
        goes_on(&make, &data, &accidents);
    }
}

fn goes_on<F: Float>(make: Make<'_, F>, data: &dyn Data<F>, accidents: &Accidents<'_>) {
    let whole = make(&Control::default()).and_then(|fit| fit.fit(data));
    let Ok(whole) = whole else {
        return;
    };
    // No other process uses it, and one target runs at a time.
    let path = std::env::temp_dir().join(format!("coremix-fuzz-{}.ckp", std::process::id()));
    std::fs::remove_file(&path).ok();
    let checkpoint = Checkpoint::to(&path).every(Duration::MAX);
    let checkpoint = match accidents.every {
        Some(every) => checkpoint.every_iterations(every),
        None => checkpoint,
    };
    let mut control = Control {
        checkpoint: Some(checkpoint.resume_if_there()),
        cancel: None,
    };
    for (seen, end) in &accidents.stops {
        let cancel = Cancel::default();
        control.cancel = matches!(end, End::Cancel).then(|| cancel.clone());
        let fit = make(&control).expect("the settings of a fit");
        match stopped(&fit, data, (*seen, *end), &cancel) {
            // Before the first search: there is no model, but there may be a file.
            Err(Error::Cancelled) => assert!(cancel.is_cancelled()),
            found => drop(found.expect("a part of a fit")),
        }
    }
    control.cancel = None;
    let fit = make(&control).expect("the settings of a fit");
    let Some(damage) = &accidents.damage else {
        let resumed = fit.fit(data).expect("the rest of a fit");
        assert_eq!(Bits::of(&resumed), Bits::of(&whole));
        return;
    };
    let Ok(file) = std::fs::read(&path) else {
        return;
    };
    // Mostly behind the header, which is compared whole.
    let header = file[24..32].try_into().expect("the length of the header");
    let mut damage = damage.clone();
    let first = match damage.one_in(8) {
        true => 0,
        false => 32 + u64::from_le_bytes(header) as usize,
    };
    let forged = damaged(file, first, &mut damage);
    std::fs::write(&path, forged).expect("a file");
    if let Ok(fit) = fit.fit(data) {
        let k = whole.model.components();
        assert!(fit.search_labels.iter().all(|label| (*label as usize) < k));
        fit.model.predict(data).ok();
    }
}

/// A fit that ends after `seen` calls of the observer, if it does not end before.
fn stopped<F: Float>(
    fit: &Boxed<F>,
    data: &dyn Data<F>,
    (seen, end): (usize, End),
    cancel: &Cancel,
) -> Result<Fit<BoxedMixture<F>>> {
    let mut left = seen;
    fit.fit_observed(data, &mut |_| {
        left = left.saturating_sub(1);
        match (left, end) {
            (0, End::Observer) => return ControlFlow::Break(()),
            (0, End::Cancel) => cancel.cancel(),
            _ => {}
        }
        ControlFlow::Continue(())
    })
}
