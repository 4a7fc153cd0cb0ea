//! Any settings on any data: an error that can be read, or a sound fit that depends on neither threads nor memory order.

use crate::bits::Bits;
use crate::bytes::Bytes;
use crate::estimators::{self, AnySeeder, Boxed, Control};
use crate::sound;
use crate::table::{FloatOf, Number, Read, Shape, Table};
use crate::threads;
use coremix::data::{Blocks, Data};
use coremix::prelude::*;
use coremix::{BoxedMixture, Float};
use std::ops::ControlFlow;

pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    match bytes.below(5) {
        0 => dense::<f32>(bytes),
        1 => dense::<f64>(bytes),
        2 => dense::<u8>(bytes),
        3 => sketch::<f32>(bytes),
        _ => sketch::<f64>(bytes),
    }
}

/// A way to run an estimator.
enum Way<F: Float> {
    Fit,
    /// Stopped by the observer after this many calls.
    Observed(usize),
    /// From other seeds.
    Seeded(AnySeeder<F>),
}

impl<F: Float> Way<F> {
    fn new(columns: usize, bytes: &mut Bytes<'_>) -> Self {
        match bytes.below(8) {
            0..=4 => Self::Fit,
            5 => Self::Observed(1 + bytes.few(9)),
            _ => Self::Seeded(estimators::any_seeder(columns, bytes)),
        }
    }

    fn go(&self, boxed: &Boxed<F>, data: &dyn Data<F>) -> Found<F> {
        match self {
            Self::Fit => boxed.fit(data),
            Self::Observed(seen) => {
                let mut left = *seen;
                boxed.fit_observed(data, &mut |_| {
                    assert!(left > 0, "asked again after it broke");
                    left -= 1;
                    match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                })
            }
            Self::Seeded(seeder) => boxed.fit_with(data, Some(seeder), None),
        }
    }
}

type Found<F> = Result<Fit<BoxedMixture<F>>>;

/// A change that must make no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    /// Two threads.
    Threads,
    /// Rows one after the other in memory.
    Copied,
    /// Rows that are read block by block.
    Blocks,
}

fn dense<T: Number>(mut bytes: Bytes<'_>) {
    let bytes = &mut bytes;
    let shape = Shape::new(bytes);
    let again = bytes.choose(&[
        Again::No,
        Again::No,
        Again::No,
        Again::Threads,
        Again::Copied,
        Again::Blocks,
    ]);
    let warm = bytes.one_in(8);
    let way = Way::<FloatOf<T>>::new(shape.columns, bytes);
    let (mut named, columns) = (None, shape.columns);
    let boxed = match bytes.below(4) {
        0 | 1 => {
            let algorithm = named.insert(estimators::by_name(&Control::default(), bytes));
            algorithm.boxed::<FloatOf<T>>()
        }
        2 => estimators::of_stages::<FloatOf<T>>(columns, &Control::default(), bytes),
        _ => estimators::dirichlet_process::<T::Float>(columns, &Control::default(), bytes),
    };
    let table = Table::<T>::new(shape, bytes);
    let (Some(boxed), Some(data)) = (known(boxed), known(table.data())) else {
        return;
    };
    let found = way.go(&boxed, &data);
    check(&found, &data);
    match again {
        Again::No => {}
        Again::Threads => same(&found, &threads::on(2, || way.go(&boxed, &data))),
        Again::Copied => {
            let copied = table.copied();
            let copied = match &table.weights {
                Some(weights) => Dense::weighted(&copied, &weights[..]),
                None => Dense::new(&copied),
            };
            same(&found, &way.go(&boxed, &copied.expect("the same rows")));
        }
        Again::Blocks => {
            let read = Read { rows: table.view() };
            let blocks = match &table.weights {
                Some(weights) => Blocks::weighted(read, weights.clone()),
                None => Blocks::new(read),
            };
            same(&found, &way.go(&boxed, &blocks.expect("the same rows")));
        }
    }
    if let (true, Some(algorithm), Ok(fit)) = (warm, named, &found) {
        let algorithm = algorithm.start_from(&fit.model);
        if let Some(boxed) = known(algorithm.boxed::<FloatOf<T>>()) {
            check(&boxed.fit(&data), &data);
        }
    }
}

fn sketch<F: Number + Float>(mut bytes: Bytes<'_>) {
    let bytes = &mut bytes;
    let shape = Shape::new(bytes);
    let threaded = bytes.one_in(4);
    let way = Way::<F>::new(shape.columns, bytes);
    let boxed = match bytes.below(2) {
        0 => estimators::by_name(&Control::default(), bytes).boxed(),
        _ => estimators::of_stages(shape.columns, &Control::default(), bytes),
    };
    let (q, seed) = (bytes.count(6), u64::from(bytes.byte()));
    let shared = bytes.few(3) * usize::from(bytes.one_in(2));
    let together = 1 + bytes.below(64);
    let table = Table::<F>::new(shape, bytes);
    let mut builder = Sketch::<F>::builder(shape.columns, q, seed).shared(shared);
    // Some rows at a time.
    let rows = table.view();
    for (block, rows) in rows
        .axis_chunks_iter(coremix::ndarray::Axis(0), together)
        .enumerate()
    {
        let pushed = match &table.weights {
            Some(weights) => {
                let weights = &weights[block * together..][..rows.nrows()];
                builder.push_weighted(rows, weights.into())
            }
            None => builder.push(rows),
        };
        known(pushed);
    }
    let (Some(boxed), Some(data)) = (known(boxed), known(builder.finish())) else {
        return;
    };
    let found = way.go(&boxed, &data);
    check(&found, &data);
    if threaded {
        same(&found, &threads::on(2, || way.go(&boxed, &data)));
    }
}

/// The value; an error must have a text.
fn known<T>(result: Result<T>) -> Option<T> {
    result.map_err(|error| said(&error)).ok()
}

fn said(error: &Error) {
    assert!(!error.to_string().is_empty(), "{error:?}");
    // Nobody but the crate has stages here. Weights times squared distances may leave the range of numbers all the same, and
    // so may the weights of a coreset of a row or two of many.
    let sums = ["the free energy is", "the weights sum to"];
    let out_of_range = sums.iter().any(|sum| error.to_string().contains(sum));
    assert!(
        out_of_range || !matches!(error, Error::Stage { .. }),
        "{error}"
    );
}

/// A sound fit, or an error of its input.
fn check<F: Float>(found: &Found<F>, data: &dyn Data<F>) {
    match found {
        Ok(fit) => sound::fit(fit, data),
        Err(error) => said(error),
    }
}

/// Checks that bits or errors are equal.
fn same<F: Float>(a: &Found<F>, b: &Found<F>) {
    let bits = |found: &Found<F>| match found {
        Ok(fit) => Ok(Bits::of(fit)),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(bits(a), bits(b));
}
