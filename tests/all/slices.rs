//! Rows, centres and answers as slices and vectors; rows that come from a sequence with errors of its own.

use coremix::coreset::{OnePass, Stopped};
use coremix::datasets::Birch;
use coremix::prelude::*;
use std::error::Error as _;
use std::num::ParseFloatError;

fn points() -> (Vec<f32>, Vec<f32>) {
    let birch = Birch::grid(40).generate::<f32>(1).unwrap();
    let flat = |rows: ndarray::Array2<f32>| rows.into_iter().collect::<Vec<_>>();
    (flat(birch.points), flat(birch.centres))
}

#[test]
fn rows_of_slices_and_vectors_are_those_of_arrays() {
    let (values, centres) = points();
    let array = ndarray::ArrayView2::from_shape((1_000, 2), &values).unwrap();
    let fit = |data: &dyn Data<f32>| {
        let seeder = Given::of_rows(&centres, 2).unwrap();
        let fit = algorithms::k_means(25).seeder(seeder).fit(data).unwrap();
        (
            fit.model.means().to_owned(),
            fit.search_labels,
            fit.report.free_energies,
        )
    };
    let expected = fit(&Dense::new(array).unwrap());
    assert_eq!(fit(&Dense::of_rows(&values, 2).unwrap()), expected);
    assert_eq!(fit(&Dense::of_rows(values.clone(), 2).unwrap()), expected);
    assert_eq!(fit(&Dense::of_rows(&values[..], 2).unwrap()), expected);
    let twos = vec![2.0; 1_000];
    let weighted = Dense::of_weighted_rows(&values, 2, &twos).unwrap();
    assert_eq!(
        fit(&weighted).0,
        fit(&Dense::weighted(array, ndarray::aview1(&twos)).unwrap()).0
    );
    let own = ndarray::ArrayView2::from_shape((25, 2), &centres).unwrap();
    assert_eq!(Given::of_rows(&centres, 2), Ok(Given::new(own)));
}

#[test]
fn what_is_no_table_of_rows_is_refused() {
    let (values, centres) = points();
    let refused =
        |numbers: &[f32], columns| Dense::of_rows(numbers, columns).unwrap_err().to_string();
    assert!(refused(&values, 0).contains("empty"));
    for columns in [3, 2_001, usize::MAX] {
        let rule = "must divide the number of values";
        assert!(refused(&values, columns).contains(rule), "{columns}");
        assert!(
            Given::of_rows(&centres, columns)
                .unwrap_err()
                .to_string()
                .contains(rule)
        );
        let weights = vec![1.0; 1_000];
        let weighted = Dense::of_weighted_rows(&values, columns, weights);
        assert!(weighted.unwrap_err().to_string().contains(rule));
    }
    assert!(refused(&values, 3).starts_with("columns = 3, of 2000 values: "));
    let mut broken = values.clone();
    broken[7] = f32::NAN;
    assert!(refused(&broken, 2).contains("row 3, column 1 is NaN"));
    assert!(refused(&broken, 2).ends_with("or NaN in data with missing values"));
    assert!(Given::of_rows(&centres, 0).is_err());
    let few = Dense::of_weighted_rows(&values, 2, &[1.0][..]).unwrap_err();
    assert!(matches!(
        few,
        Error::LengthMismatch {
            expected: 1_000,
            found: 1,
            ..
        }
    ));
    // No rows may be asked about, but nothing can be fitted to them.
    let none = Dense::<f32>::of_rows(Vec::new(), 2).unwrap();
    let k_means = algorithms::k_means(25).build().unwrap();
    assert!(matches!(
        k_means.fit(&none).unwrap_err(),
        Error::Empty { .. }
    ));
    let model = k_means
        .fit(&Dense::of_rows(&values, 2).unwrap())
        .unwrap()
        .model;
    assert_eq!(model.predict(&none).unwrap().len(), 0);
}

#[test]
fn the_likeliest_components_of_a_row_are_those_of_all_rows() {
    let (values, _) = points();
    let data = Dense::of_rows(&values, 2).unwrap();
    let model = algorithms::k_means(25).fit(&data).unwrap().model;
    let (ids, _) = model.truncated_responsibilities(&data, 3).unwrap();
    let (mut one, means) = (model.predictor(), model.means());
    for (row, ids) in values.chunks_exact(2).zip(ids.outer_iter()) {
        let found = one.likeliest(row, 3).unwrap();
        assert_eq!(
            found.iter().map(|own| own.0).collect::<Vec<_>>(),
            ids.to_vec()
        );
        assert_eq!(found[0], one.predict(row).unwrap());
        for (id, squared) in found {
            let mean = means.row(id as usize);
            let direct: f32 = row.iter().zip(mean).map(|(x, y)| (x - y).powi(2)).sum();
            assert!(
                (squared - f64::from(direct)).abs() <= 1e-3 * (1.0 + squared),
                "{squared} {direct}"
            );
        }
    }
    assert_eq!(one.likeliest(&values[..2], 100).unwrap().len(), 25);
    assert_eq!(one.likeliest(&values[..2], 0).unwrap(), []);
    assert!(one.likeliest(&values[..3], 2).is_err() && one.likeliest(&[f32::NAN, 0.0], 2).is_err());
}

#[test]
fn sequences_end_with_their_own_errors() {
    let (values, _) = points();
    let whole = |take: &dyn Fn(&mut OnePass<f32>)| {
        let mut coreset = OnePass::new(2, 100, 3).unwrap();
        take(&mut coreset);
        coreset.finish().unwrap()
    };
    let array = ndarray::ArrayView2::from_shape((1_000, 2), &values).unwrap();
    let expected = whole(&|coreset| coreset.push(array).unwrap());
    assert_eq!(
        whole(&|coreset| coreset.push_rows(&values).unwrap()),
        expected
    );
    let rows = || values.chunks(14).map(Ok::<_, ParseFloatError>);
    assert_eq!(
        whole(&|coreset| coreset.push_all(rows()).unwrap()),
        expected
    );

    let mut coreset = OnePass::<f32>::new(2, 100, 3).unwrap();
    let lost = "x".parse::<f32>().unwrap_err();
    let stopped = coreset.push_all(rows().take(3).chain([Err(lost.clone())]).chain(rows()));
    let stopped = stopped.unwrap_err();
    assert_eq!(stopped, Stopped::Rows(lost.clone()));
    let source = stopped
        .source()
        .and_then(|error| error.downcast_ref::<ParseFloatError>());
    assert_eq!((source, coreset.rows()), (Some(&lost), 21));
    for (rows, what) in [
        ([1.0, f32::NAN], "row 21, column 1 is NaN"),
        ([1.0, f32::MAX], "row 21, column 1 is 3.4"),
    ] {
        let stopped = coreset
            .push_all([Ok::<_, ParseFloatError>(rows)])
            .unwrap_err();
        assert!(stopped.to_string().contains(what), "{stopped}");
    }
    let part = coreset.push_rows(&[1.0]).unwrap_err();
    assert!(part.to_string().contains("must divide"), "{part}");
    assert_eq!(coreset.rows(), 21);
}

#[test]
fn a_closure_ends_a_fit() {
    let (values, _) = points();
    let data = Dense::of_rows(&values, 2).unwrap();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let cancel =
        Cancel::when(move || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 40);
    let fit = |cancel: &Cancel| {
        algorithms::k_means(25)
            .tolerance(0.0)
            .cancel(cancel)
            .fit(&data)
    };
    match fit(&cancel) {
        Ok(fit) => assert_eq!(fit.report.stop, Stop::Cancelled),
        Err(error) => assert_eq!(error, Error::Cancelled),
    }
    assert!(asked.load(std::sync::atomic::Ordering::Relaxed) > 40);
    // Its word holds, even if it takes it back.
    let said = std::sync::atomic::AtomicBool::new(true);
    let once = Cancel::when(move || said.swap(false, std::sync::atomic::Ordering::Relaxed));
    assert!(once.is_cancelled() && once.is_cancelled() && once.clone().is_cancelled());
    let never = fit(&Cancel::when(|| false)).unwrap();
    assert_eq!(never.report.stop, Stop::Converged);
}
