//! Data of every shape: empty, degenerate, of another number of columns, in any order in memory, of bytes.

use super::*;

fn empty<T: Element + Default>() {
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let x = Array2::<T>::default(shape);
        refused!(Dense::new(x.view()), Error::Empty { what: "data" }, "data");
        let w = unit_weights(shape.0);
        let weighted = Dense::weighted(x.view(), w.view());
        refused!(weighted, Error::Empty { what: "data" }, "data");
    }
}

#[test]
fn empty_data() {
    empty::<f32>();
    empty::<f64>();
    empty::<u8>();
}

/// No rows, and as many columns as the model has: empty answers, and sums of 0.
#[track_caller]
fn answers_about_nothing<F: Float>(name: &str, model: &dyn Mixture<F>, d: usize) {
    let x = Array2::<F>::zeros((0, d));
    let data = Dense::batch(&x).unwrap();
    let k = Mixture::<F>::centres(model).len();
    assert!(data.len() == 0 && data.points().dim() == (0, d), "{name}");
    assert_eq!(model.predict(&data).unwrap().len(), 0, "{name}");
    let shares = model.responsibilities(&data).unwrap();
    assert_eq!(shares.dim(), (0, k), "{name}");
    let (ids, shares) = model.truncated_responsibilities(&data, 2).unwrap();
    assert_eq!((ids.dim(), shares.dim()), ((0, 2), (0, 2)), "{name}");
    assert_eq!(model.log_densities(&data).unwrap().len(), 0, "{name}");
    let score = model.score(&data).unwrap();
    assert_eq!(score.labels.len(), 0, "{name}");
    let sums = [
        model.log_likelihood(&data).unwrap(),
        model.quantization_error(&data).unwrap(),
        score.log_likelihood,
        score.quantization_error,
    ];
    // Not -0 either.
    assert_eq!(sums.map(f64::to_bits), [0; 4], "{name}: {sums:?}");
    let wider = Array2::<F>::zeros((0, d + 1));
    refused!(
        model.predict(&Dense::batch(&wider).unwrap()),
        Error::DimensionMismatch { expected, found, .. } if (*expected, *found) == (d, d + 1),
        "data"
    );
}

fn empty_batches_of<F: Float>() {
    let x = blobs::<F>(120, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>() {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 3)).unwrap();
        answers_about_nothing(algorithm.name, &*fit.model, 3);
    }
    let fit = algorithms::dp_gmm(4, 1.0).build().unwrap().fit(&data);
    let fit = fit
        .unwrap()
        .map(|model| -> Box<dyn Mixture<F>> { Box::new(model) });
    answers_about_nothing("dp-gmm, boxed", &fit.model, 3);
    // Rows are as they are in other data.
    let batch = Dense::batch(&x).unwrap();
    assert_eq!(fit.model.predict(&batch), fit.model.predict(&data));
    refused!(
        Dense::batch(&Array2::<F>::zeros((3, 0))),
        Error::Empty { what: "data" },
        "data"
    );
}

#[test]
fn empty_batches_have_empty_answers() {
    empty_batches_of::<f32>();
    empty_batches_of::<f64>();
    let bytes = Array2::<u8>::zeros((0, 3));
    let fit = algorithms::k_means(2).build().unwrap();
    let fit = fit.fit(&Dense::new(&blobs::<f32>(20, 3, 2, 5)).unwrap());
    let labels = fit.unwrap().model.predict(&Dense::batch(&bytes).unwrap());
    assert_eq!(labels.unwrap().len(), 0);
}

/// A batch without rows is nothing to fit.
#[test]
fn empty_batches_are_not_fitted() {
    let x = Array2::<f64>::zeros((0, 3));
    let data = Dense::batch(&x).unwrap();
    for algorithm in all::<f64>().iter().filter(|a| a.rows == Known::Dense) {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 3));
        refused!(fit, Error::Empty { what: "data" }, "at least one row");
    }
    refused!(
        Sketch::of_dense(&data, 2, 1),
        Error::Empty { what: "data" },
        "at least one row"
    );
}

fn degenerate<F: Float>() {
    let f = F::from_f64;
    for value in [0.0, 0.1, -7.0, 1e6, 3e-30, -1e30] {
        for (n, k) in [(1, 1), (2, 2), (3, 1), (90, 1), (90, 7), (700, 3)] {
            let x = Array2::from_shape_fn((n, 3), |(_, j)| f(value * (j + 1) as f64));
            let what = format!("{n} rows at {value:e}, k = {k}");
            every_algorithm(&what, x.view(), None, k);
            let data = Dense::new(x.view()).unwrap();
            for algorithm in all::<F>() {
                if let Ok(fit) = (algorithm.fit)(&data, &Settings::new(k, 2)) {
                    // There and back through a transform costs the last digits.
                    let exact = algorithm.rows == Known::Dense;
                    let digits = if exact { 0.0 } else { 8.0 * F::EPSILON };
                    let largest = x.iter().fold(0.0f64, |most, v| most.max(v.to_f64().abs()));
                    for (mean, x) in fit.means.rows().into_iter().flatten().zip(x.iter().cycle()) {
                        let off = (mean.to_f64() - x.to_f64()).abs();
                        assert!(off <= digits * largest, "{what}, {}", algorithm.name);
                    }
                    let error = fit.model.quantization_error(&data).unwrap();
                    assert!(error <= 3.0 * n as f64 * (digits * largest).powi(2));
                }
            }
        }
    }
    // Fewer distinct rows than clusters.
    for (n, k) in [(4, 4), (90, 5), (1_100, 9)] {
        let x = Array2::from_shape_fn((n, 2), |(i, j)| f((i % 3 * (j + 1)) as f64 - 0.3));
        every_algorithm(
            &format!("three distinct rows of {n}, k = {k}"),
            x.view(),
            None,
            k,
        );
        let data = Dense::new(x.view()).unwrap();
        // A prior draws means away from the rows.
        for algorithm in all::<F>()
            .iter()
            .filter(|a| a.deterministic && !a.has_prior())
        {
            let fit = (algorithm.fit)(&data, &Settings::new(k, 2)).unwrap();
            let error = fit.model.quantization_error(&data).unwrap();
            let largest = n as f64 * 9.0 * F::EPSILON * F::EPSILON;
            assert!(error <= 16.0 * largest, "{}: {error:e}", algorithm.name);
        }
    }
    // Constant columns among others.
    let mut x = blobs::<F>(300, 4, 4, 6);
    x.column_mut(0).fill(f(0.1));
    x.column_mut(2).fill(f(-3e9));
    every_algorithm("constant columns", x.view(), None, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
        let fit = (algorithm.fit)(&data, &Settings::new(5, 2)).unwrap();
        for mean in fit.means.rows() {
            assert_eq!((mean[0], mean[2]), (f(0.1), f(-3e9)), "{}", algorithm.name);
        }
    }
    // One column; one cluster; a row more or less than a block.
    for n in [2, 3, 31, 33, 511, 513, 1_025] {
        let x = blobs::<F>(n, 1, 3, 7);
        every_algorithm(&format!("{n} rows of one column"), x.view(), None, 2);
        every_algorithm("one cluster", x.view(), None, 1);
    }
    // Many columns, few rows.
    every_algorithm("300 columns", blobs::<F>(5, 300, 2, 7).view(), None, 2);
}

#[test]
fn degenerate_data_f32() {
    degenerate::<f32>();
}

#[test]
fn degenerate_data_f64() {
    degenerate::<f64>();
}

/// Strided, reversed and column-major views give the bits of their row-major copies.
fn memory_order<F: Float>() {
    let wide = blobs::<F>(800, 6, 5, 16);
    let weights = Array1::from_shape_fn(1_600, |n| 0.5 + (n % 5) as f64);
    let columns = wide.t().as_standard_layout().into_owned();
    let views = [
        ("every other row", wide.slice(s![..;2, ..])),
        ("every other column", wide.slice(s![..400, 1..;2])),
        ("rows reversed", wide.slice(s![..400;-1, ..])),
        ("columns reversed", wide.slice(s![..400, ..;-1])),
        ("column-major", columns.t().slice_move(s![..400, ..])),
        ("broadcast", wide.slice(s![0..1, ..]).broadcast_to(400)),
    ];
    for (what, view) in &views {
        assert_eq!(view.nrows(), 400);
        let copy = Array2::from_shape_fn(view.dim(), |at| view[at]);
        let w = weights.slice(s![..800;-2]);
        let w_copy = w.to_vec();
        let data = Dense::weighted(*view, w).unwrap();
        let copied = Dense::weighted(copy.view(), ndarray::aview1(&w_copy)).unwrap();
        for algorithm in all::<F>() {
            let name = format!("{what}, {}", algorithm.name);
            let (a, b) = (
                (algorithm.fit)(&data, &few_steps(4)).unwrap(),
                (algorithm.fit)(&copied, &few_steps(4)).unwrap(),
            );
            assert_eq!(a.means, b.means, "{name}");
            assert_eq!(a.report.free_energies, b.report.free_energies, "{name}");
            assert_eq!(a.labels, b.labels, "{name}");
            let predicted = a.model.predict(&data).unwrap();
            assert_eq!(predicted, b.model.predict(&copied).unwrap(), "{name}");
        }
    }
}

/// One row many times, without a copy of it in memory.
trait BroadcastTo<'a, F> {
    fn broadcast_to(self, n: usize) -> ArrayView2<'a, F>;
}

impl<'a, F> BroadcastTo<'a, F> for ArrayView2<'a, F> {
    fn broadcast_to(self, n: usize) -> ArrayView2<'a, F> {
        let d = self.ncols();
        let row = self.index_axis_move(Axis(0), 0);
        // `broadcast` borrows; a view of stride 0 made from the slice lives as long as the data.
        let slice = row.to_slice().expect("one row of row-major data");
        use ndarray::ShapeBuilder;
        ArrayView2::from_shape((n, d).strides((0, 1)), slice).expect("stride 0")
    }
}

#[test]
fn memory_order_does_not_matter() {
    memory_order::<f32>();
    memory_order::<f64>();
}

#[test]
fn bytes_are_the_floats_they_stand_for() {
    let x = blobs::<f64>(700, 3, 5, 17).mapv(|v| (128.0 + 8.0 * v).clamp(0.0, 255.0) as u8);
    let floats = x.mapv(f32::from);
    let (bytes, floats) = (
        Dense::new(x.view()).unwrap(),
        Dense::new(floats.view()).unwrap(),
    );
    macro_rules! same {
        ($builder:expr) => {{
            let clusterer = $builder.seed(5).build().unwrap();
            let (mut a, mut b) = (
                clusterer.fit(&bytes).unwrap(),
                clusterer.fit(&floats).unwrap(),
            );
            assert_eq!(a.model, b.model);
            assert_eq!(a.report.free_energies, b.report.free_energies);
            let (a, b) = (a.score(&bytes).unwrap(), b.score(&floats).unwrap());
            assert_eq!(a.labels, b.labels);
            assert_eq!(a.quantization_error, b.quantization_error);
            assert_eq!(a.log_likelihood, b.log_likelihood);
        }};
    }
    same!(algorithms::k_means(5));
    same!(algorithms::gmm(5));
    same!(algorithms::lazy_k_means(5, 0.1));
    same!(algorithms::lwcs_k_means(5, 100));
    same!(algorithms::vc_gmm(5, 100, 3, 3));
    same!(algorithms::d_gmm(5, 3, 2));
    let extremes = array![[0u8, 255], [255, 0], [0, 0], [255, 255]];
    let data = Dense::new(extremes.view()).unwrap();
    let fit = algorithms::k_means(4).build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.model.quantization_error(&data).unwrap(), 0.0);
}

#[test]
fn data_of_another_dimension() {
    let x = blobs::<f32>(100, 3, 4, 19);
    let data = Dense::new(x.view()).unwrap();
    for d in [1, 2, 4, 17] {
        let other = Array2::<f32>::zeros((5, d));
        let other = Dense::new(other.view()).unwrap();
        let found = format!("{d} columns");
        for algorithm in all::<f32>() {
            let fit = (algorithm.fit)(&data, &Settings::new(3, 1)).unwrap();
            let model = &*fit.model;
            macro_rules! mismatch {
                ($result:expr) => {
                    refused!(
                        $result,
                        Error::DimensionMismatch { what: "data", expected: 3, found: f } if *f == d,
                        "data", &found, "3 expected",
                    )
                };
            }
            mismatch!(model.predict(&other));
            mismatch!(model.responsibilities(&other));
            mismatch!(model.truncated_responsibilities(&other, 2));
            mismatch!(model.log_likelihood(&other));
            mismatch!(model.quantization_error(&other));
            mismatch!(model.score(&other));
        }
        let mut fit = algorithms::k_means(3).build().unwrap().fit(&data).unwrap();
        let before = fit.report.distance_evaluations;
        refused!(fit.score(&other), Error::DimensionMismatch { .. }, &found);
        assert_eq!(fit.report.distance_evaluations, before);
    }
}
