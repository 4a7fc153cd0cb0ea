//! Scores of labels and of centres: scikit-learn's numbers, all permutations, and hostile input.

use crate::least_cost::least_cost;
use coremix::Error;
use coremix::metrics::{accuracy, adjusted_rand_index, matched_rmse, nmi, purity};
use coremix::stage::Rng;
use ndarray::{Array1, Array2, ArrayView2, Axis, array};

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-13 * expected.abs().max(1.0),
        "{found} is not {expected}"
    );
}

/// Reads a fixture: rows of comma-separated numbers.
fn fixture(text: &str) -> Vec<Vec<f64>> {
    text.lines()
        .map(|line| line.split(',').map(|v| v.parse().unwrap()).collect())
        .collect()
}

/// Purity, NMI and ARI.
fn scores(labels: &Array1<u32>, truth: &Array1<u32>) -> [f64; 3] {
    let scores = [purity, nmi, adjusted_rand_index];
    scores.map(|score| score(labels.view(), truth.view()).unwrap())
}

/// The scores of scikit-learn 1.9.1 (fixtures/make_fixtures.py).
#[test]
fn scores_agree_with_the_fixtures() {
    let columns = fixture(include_str!("../fixtures/metrics_labels.csv"));
    let expected = fixture(include_str!("../fixtures/metrics_scores.csv"));
    let column = |j: usize| -> Array1<u32> { columns.iter().map(|row| row[j] as u32).collect() };
    assert_eq!(expected.len(), 8);
    for (pair, expected) in expected.iter().enumerate() {
        let found = scores(&column(2 * pair), &column(2 * pair + 1));
        found.iter().zip(expected).for_each(|(a, b)| close(*a, *b));
    }
    // Worse than chance.
    let found = scores(&array![0, 0, 1, 1], &array![0, 1, 0, 1]);
    assert_eq!(found[1], 0.0);
    close(found[2], -0.5);
}

#[test]
fn equal_partitions_score_exactly_one() {
    let mut rng = Rng::from_seed(2);
    for k in [1, 2, 9, 400] {
        let labels = Array1::from_shape_simple_fn(300, || rng.below(k) as u32);
        assert_eq!(scores(&labels, &labels.mapv(|l| u32::MAX - l)), [1.0; 3]);
    }
    // A single class on one side carries no information about the other.
    assert_eq!(
        scores(&array![5, 5, 5], &array![5, 5, u32::MAX])[1..],
        [0.0; 2]
    );
}

#[test]
fn label_scores_accept_any_memory_order_and_refuse_unequal_lengths() {
    let labels = array![[0, 9], [0, 9], [1, 9], [1, 9]];
    let truth = array![3, 3, 8, 8];
    assert_eq!(nmi(labels.column(0), truth.view()), Ok(1.0));
    for score in [purity, nmi, adjusted_rand_index] {
        let (short, empty) = (array![1_u32], Array1::<u32>::zeros(0));
        for (first, second) in [(&truth, &short), (&empty, &short)] {
            let error = score(first.view(), second.view()).unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
        }
        let error = score(empty.view(), empty.view()).unwrap_err();
        assert!(matches!(error, Error::Empty { .. }), "{error}");
    }
}

fn centres(rng: &mut Rng, k: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_simple_fn((k, d), || rng.uniform())
}

#[test]
fn accuracy_is_the_best_of_all_matchings() {
    let mut rng = Rng::from_seed(3);
    // Fewer clusters than classes, and more.
    for (clusters, classes) in [(4, 4), (3, 4), (4, 2), (1, 3)] {
        let labels = Array1::from_shape_simple_fn(60, || rng.below(clusters) as u32);
        let truth = Array1::from_shape_simple_fn(60, || rng.below(classes) as u32);
        let mut costs = Array2::zeros((4, 4));
        for (&a, &b) in labels.iter().zip(&truth) {
            costs[[a as usize, b as usize]] -= 1.0;
        }
        let far = labels.mapv(|l| l.wrapping_mul(2_654_435_769));
        let found = accuracy(far.view(), truth.view());
        assert_eq!(found, Ok(-least_cost(&costs) / 60.0));
    }
    let none: Array1<u32> = array![];
    assert!(accuracy(none.view(), none.view()).is_err());
    assert!(accuracy(array![1].view(), array![1, 2].view()).is_err());
}

fn naive_matched_rmse(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let cost = |(i, j)| (&a.row(i) - &b.row(j)).mapv(|v| v * v).sum();
    let costs = Array2::from_shape_fn((a.nrows(), a.nrows()), cost);
    (least_cost(&costs) / a.nrows() as f64).sqrt()
}

/// In any order of memory, at every magnitude, and in f32.
#[test]
fn matched_rmse_agrees_with_all_permutations() {
    let mut rng = Rng::from_seed(3);
    for (k, d) in (1..=6).flat_map(|k| [(k, 1), (k, 2), (k, 5)]) {
        let (a, b) = (centres(&mut rng, k, d), centres(&mut rng, k, d));
        let expected = naive_matched_rmse(&a, &b);
        let columns_first = a.t().as_standard_layout().into_owned();
        close(matched_rmse(columns_first.t(), b.view()).unwrap(), expected);
        for exponent in [-1000, -30, 0, 30, 1000] {
            let scale = 2.0_f64.powi(exponent);
            let found = matched_rmse((&b * scale).view(), (&a * scale).view());
            close(found.unwrap() / scale, expected);
        }
        let (a, b) = (a.mapv(|v| v as f32), b.mapv(|v| v as f32));
        let exact = naive_matched_rmse(&a.mapv(f64::from), &b.mapv(f64::from));
        close(matched_rmse(a.view(), b.view()).unwrap(), exact);
    }
}

#[test]
fn matched_rmse_of_reordered_centres_is_zero() {
    let a = centres(&mut Rng::from_seed(4), 40, 3);
    let mut b = a.clone();
    b.invert_axis(Axis(0));
    assert_eq!(matched_rmse(a.view(), b.view()), Ok(0.0));
    let same = Array2::from_elem((5, 2), 1e30_f32);
    assert_eq!(matched_rmse(same.view(), same.view()), Ok(0.0));
}

#[test]
fn matched_rmse_refuses_hostile_input() {
    let good = array![[0.0, 1.0], [2.0, 3.0]];
    let of = |a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>| matched_rmse(a, b).unwrap_err();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut other = good.clone();
        other[[1, 0]] = bad;
        for (a, b) in [(&good, &other), (&other, &good)] {
            let error = of(a.view(), b.view());
            assert!(matches!(
                error,
                Error::NotFinite {
                    row: 1,
                    column: 0,
                    ..
                }
            ));
        }
    }
    let row = good.slice_axis(Axis(0), (..1).into());
    assert!(matches!(of(good.view(), row), Error::LengthMismatch { .. }));
    let column = good.slice_axis(Axis(1), (..1).into());
    assert!(matches!(
        of(good.view(), column),
        Error::DimensionMismatch { .. }
    ));
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let empty = Array2::zeros(shape);
        assert!(matches!(
            of(empty.view(), empty.view()),
            Error::Empty { .. }
        ));
    }
    let (a, b) = (array![[f64::MAX]], array![[-f64::MAX]]);
    assert!(matches!(of(a.view(), b.view()), Error::Parameter { .. }));
}

#[test]
fn the_score_agrees_with_the_fixtures() {
    let centres = |text| Array2::from_shape_vec((12, 3), fixture(text).concat()).unwrap();
    let a = centres(include_str!("../fixtures/metrics_centres_a.csv"));
    let b = centres(include_str!("../fixtures/metrics_centres_b.csv"));
    let expected = include_str!("../fixtures/metrics_centres_rmse.csv");
    let found = matched_rmse(a.view(), b.view()).unwrap();
    close(found, fixture(expected)[0][0]);
}
