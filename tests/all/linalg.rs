//! The linear algebra of the core, held against naive products and against nalgebra. It is private: this program compiles it a
//! second time, so that only tests need nalgebra.

use crate::base::cancel::Patience;
use crate::base::linalg::{
    Cholesky, cholesky, eigen, inverse_of_lower, orthonormal, packed, square, unpacked, whitening,
};
use approx::{assert_abs_diff_eq, assert_relative_eq};
use coremix::stage::Rng;
use ndarray::{Array2, Axis, Slice};

/// Below, at and beyond one block, and several.
const SIZES: [usize; 9] = [1, 2, 3, 7, 31, 32, 33, 64, 101];

fn normals(rng: &mut Rng, rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_simple_fn((rows, columns), || rng.normal())
}

fn random(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    normals(&mut Rng::from_seed(seed), rows, columns)
}

fn of(values: &[f64], dim: usize) -> Array2<f64> {
    Array2::from_shape_vec((dim, dim), values.to_vec()).unwrap()
}

/// The one lower triangle of positive diagonal whose square is the matrix.
#[test]
fn cholesky_is_the_root_and_reads_the_lower_half_alone() {
    for n in SIZES {
        let x = random(n, n + 3, n as u64);
        let a = x.dot(&x.t()) + Array2::<f64>::eye(n) * 0.1;
        let mut values: Vec<f64> = a
            .indexed_iter()
            .map(|((i, j), x)| if j > i { f64::NAN } else { *x })
            .collect();
        let found = cholesky(&mut values, n, None).unwrap();
        assert!(found);
        let factor = of(&values, n);
        assert_relative_eq!(factor.dot(&factor.t()), a, epsilon = 1e-11 * n as f64);
        for ((i, j), x) in factor.indexed_iter() {
            assert!(j < i || (i == j) == (*x > 0.0) && (i == j || *x == 0.0));
        }

        let inverse = inverse_of_lower(&values, n, None).unwrap();
        let inverse = of(&inverse, n);
        assert_abs_diff_eq!(inverse.dot(&factor), Array2::eye(n), epsilon = 1e-10);
        for ((i, j), x) in inverse.indexed_iter() {
            assert!(j <= i || *x == 0.0);
        }
    }
}

#[test]
fn no_cholesky_of_what_is_not_positive_definite() {
    for n in SIZES {
        for bad in [0, n / 2, n - 1] {
            for entry in [0.0, -1.0, f64::NAN] {
                let mut a = Array2::<f64>::eye(n);
                a[[bad, bad]] = entry;
                let mut values = a.into_raw_vec_and_offset().0;
                let found = cholesky(&mut values, n, None).unwrap();
                assert!(!found, "{n} {bad} {entry}");
            }
        }
    }
    // A matrix of rank 1: the second pivot is exactly 0.
    assert_eq!(cholesky(&mut [4.0, 2.0, 2.0, 1.0], 2, None), Ok(false));
    assert_eq!(cholesky(&mut [], 0, None), Ok(true));
}

#[test]
fn cholesky_takes_columns_of_any_unit() {
    let units = [1e-140, 1.0, 1e140];
    let correlations = [1.0, 0.5, 0.2, 0.5, 1.0, 0.4, 0.2, 0.4, 1.0];
    let entry = |i: usize| correlations[i] * units[i / 3] * units[i % 3];
    let matrix: Vec<f64> = (0..9).map(entry).collect();
    let found = |matrix: &[f64], dim| Cholesky::of(matrix, dim, None).unwrap();
    let Cholesky { factor, log_det } = found(&matrix, 3).unwrap();
    let again = square(&factor, 3, None).unwrap();
    for (a, b) in again.iter().zip(&matrix) {
        assert_abs_diff_eq!(a, b, epsilon = 1e-14 * b);
    }
    assert_abs_diff_eq!(log_det, f64::ln(0.63), epsilon = 1e-12);
    assert_eq!(unpacked(&packed(&factor, 3), 3), factor);
    assert!(found(&[1.0, 1.0, 1.0, 1.0 - 1e-9], 2).is_none());
    assert!(found(&[f64::NAN], 1).is_none());
}

/// One variance is far larger than the others: each eigenvalue keeps its own digits, wherever its column is.
#[test]
fn small_eigenvalues_stay_beside_a_large_one() {
    let variances = [1.0, 2.0, 3.0, 1e18];
    let all = |order: [usize; 4], dim: usize| {
        let entry = |i: usize, j: usize| match i == j {
            true => variances[order[i]],
            false => 0.1 + 0.05 * (order[i] + order[j]) as f64,
        };
        let matrix = Array2::from_shape_fn((dim, dim), |(i, j)| entry(i, j));
        let (mut values, _) = eigen(matrix.as_slice().unwrap(), dim, None).unwrap();
        values.sort_by(f64::total_cmp);
        values
    };
    let mut expected = all([0, 1, 2, 3], 3);
    // A large variance moves the others by the square of a covariance over it.
    expected.push(1e18);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        for (value, expected) in all(order, 4).iter().zip(&expected) {
            assert_relative_eq!(value, expected, max_relative = 1e-9);
        }
    }
}

/// Symmetric matrices of many kinds, with zeros and equal values, of every rank and size, and far from one another in size.
fn kinds(dim: usize, seed: u64) -> Vec<Array2<f64>> {
    let mut rng = Rng::from_seed(seed);
    let rank = 1 + rng.below(dim);
    let whole = |x: f64| (3.0 * x).round();
    let of_rows = |x: Array2<f64>| x.t().dot(&x);
    let turned = |values: &dyn Fn(usize) -> f64, rng: &mut Rng| {
        let q = orthonormal(&normals(rng, dim, dim), None).unwrap();
        let scaled = &q.t() * &ndarray::Array1::from_shape_fn(dim, values);
        scaled.dot(&q)
    };
    let low = normals(&mut rng, rank, dim);
    let one = Array2::from_shape_fn((1, dim), |(_, j)| [255.0, 31.0, 0.0][j % 3] + j as f64);
    let graded = 10f64.powf(32.0 / dim as f64);
    let unit: Vec<f64> = (0..dim).map(|j| 1e-16 * graded.powi(j as i32)).collect();
    let products = of_rows(normals(&mut rng, dim + 3, dim));
    let cells = Array2::from_shape_fn((rank, dim), |(i, j)| f64::from((i * 7 + 3) % dim == j));
    let counts = Array2::from_shape_fn((rank + 3, dim), |_| rng.exponential().floor());
    let mut blocks = Array2::zeros((dim, dim));
    for start in (0..dim).step_by(1 + rng.below(dim)) {
        let end = dim.min(start + 1 + rng.below(9));
        let x = normals(&mut rng, 2, end - start) * 10f64.powi(rng.below(9) as i32);
        for ((i, j), x) in of_rows(x).indexed_iter() {
            blocks[[start + i, start + j]] = *x;
        }
    }
    let mut all = vec![
        of_rows(low.clone()),
        of_rows(low.mapv(whole)),
        of_rows(one.clone()),
        of_rows(normals(&mut rng, 1, dim).mapv(whole) * 1e3),
        turned(&|i| f64::from(i as u32 % 2), &mut rng),
        turned(&|i| graded.powi(i as i32) * 1e-16, &mut rng),
        Array2::from_shape_fn((dim, dim), |(i, j)| products[[i, j]] * unit[i] * unit[j]),
        blocks,
        Array2::ones((dim, dim)),
        Array2::zeros((dim, dim)),
        of_rows(cells),
        of_rows(counts),
        Array2::from_shape_fn((dim, dim), |(i, j)| low[[0, i]] + low[[0, j]]),
    ];
    // These are at most 1e8 times as large as floors.
    let deviation = one.mapv(|x| 1e4 * f64::from(x > 0.0));
    all.push(of_rows(deviation));
    all.extend([1e-300, 1e-150, 1e150, 1e300].map(|unit| &products * unit));
    all
}

#[test]
fn all_eigenvalues_are_found() {
    let (mut matrices, mut known) = (0, 0);
    for dim in (1..=48).chain([64, 99, 128, 200, 400]) {
        for (kind, matrix) in kinds(dim, dim as u64).into_iter().enumerate() {
            let name = || format!("kind {kind}, {dim} columns");
            let values = matrix.as_slice().unwrap();
            let (mut found, vectors) = eigen(values, dim, None).unwrap();
            let q = of(&vectors, dim);
            let off = q.dot(&q.t()) - Array2::<f64>::eye(dim);
            assert!(off.iter().all(|x| x.abs() < 1e-12), "{}", name());
            // Errors are those of rounding in the matrix, and of what counts as 0.
            let size = values.iter().fold(1e-300f64, |most, x| most.max(x.abs()));
            let within = 1e-14 * dim as f64 + 2e-12 / size;
            let image = q.dot(&(&matrix / size));
            for (i, value) in found.iter().enumerate() {
                let apart = &image.row(i) - &(&q.row(i) * (value / size));
                let length = apart.dot(&apart).sqrt();
                assert!(length <= within, "{}: {length:e} of {within:e}", name());
            }
            matrices += 1;
            let other = nalgebra::DMatrix::from_row_slice(dim, dim, values);
            let other = nalgebra::SymmetricEigen::try_new(other, f64::EPSILON, 40 * dim);
            let Some(other) = other else { continue };
            known += 1;
            let mut other: Vec<f64> = other.eigenvalues.iter().copied().collect();
            found.sort_by(f64::total_cmp);
            other.sort_by(f64::total_cmp);
            for (a, b) in found.iter().zip(&other) {
                assert!((a - b).abs() <= within * size, "{}: {a} and {b}", name());
            }
        }
    }
    assert!(known > 900 && known == matrices, "{known} of {matrices}");
}

#[test]
fn eigenvalues_are_raised_and_vectors_stay() {
    for n in SIZES {
        let vectors = orthonormal(&random(n, n, 3), None).unwrap();
        let values: Vec<f64> = (0..n).map(|i| 10f64.powi(i as i32 % 9 - 6)).collect();
        let of_values = |values: &[f64]| {
            let scaled = &vectors.t() * &ndarray::Array1::from(values.to_vec());
            scaled.dot(&vectors)
        };
        for least in [1e-9, 1e-3] {
            // Columns in units of their own.
            let unit = |i: usize| 10f64.powi(i as i32 % 3);
            let of_units = |x: Array2<f64>| {
                Array2::from_shape_fn((n, n), |(i, j)| x[[i, j]] * unit(i) * unit(j))
            };
            let matrix: Vec<f64> = of_units(of_values(&values)).iter().copied().collect();
            let floors: Vec<f64> = (0..n).map(|i| least * unit(i).powi(2)).collect();
            let found = whitening(&matrix, &floors, None).unwrap();
            let found = of(&found, n);
            let raised: Vec<f64> = values.iter().map(|v| v.max(least)).collect();
            let white = found.dot(&of_units(of_values(&raised))).dot(&found.t());
            assert_abs_diff_eq!(white, Array2::eye(n), epsilon = 1e-8);
            assert!(found.indexed_iter().all(|((i, j), x)| j <= i || *x == 0.0));
        }
        // A matrix of rank 0.
        let found = whitening(&vec![0.0; n * n], &vec![0.25; n], None).unwrap();
        let found = of(&found, n);
        assert_abs_diff_eq!(found, Array2::eye(n) * 2.0, epsilon = 1e-14);
    }
}

/// It ends at whatever check says so, and a check comes before each few hundred operations for every entry of a matrix.
#[test]
fn work_ends_where_it_is_stopped() {
    for dim in [96, 160] {
        let low = random(dim / 2, dim, 1);
        let low = low.t().dot(&low) * 1e4;
        let full = &low + Array2::<f64>::eye(dim) * 9.0;
        let least = vec![1.0; dim];
        let work = |matrix: &Array2<f64>, patience: &Patience| {
            whitening(matrix.as_slice().unwrap(), &least, Some(patience))
        };
        // Operations for every entry: two Cholesky factors and an inverse; eigenvectors and directions of all columns too.
        for (matrix, each) in [(&full, dim), (&low, 12 * dim)] {
            let never = Patience::new(usize::MAX);
            assert!(work(matrix, &never).is_ok());
            let checks = never.asked();
            assert!(256 * checks >= each, "{checks} checks");
            for at in (0..checks).step_by(1 + checks / 50) {
                let patience = Patience::new(at);
                assert_eq!(work(matrix, &patience), Err(()));
                assert_eq!(patience.asked(), at + 1);
            }
        }
    }
}

/// Orthonormal directions with the spans of the rows up to each are unique, except for their signs.
fn check(rows: &Array2<f64>) {
    let q = orthonormal(rows, None).unwrap();
    assert_abs_diff_eq!(q.dot(&q.t()), Array2::eye(rows.nrows()), epsilon = 1e-13);
    // Each row lies in the span of the directions up to its own.
    let most = rows
        .iter()
        .fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let rows = rows / most;
    for i in 0..rows.nrows() {
        let q = q.slice_axis(Axis(0), Slice::from(..=i));
        let back = q.dot(&rows.row(i)).dot(&q);
        assert_abs_diff_eq!(back, rows.row(i).to_owned(), epsilon = 1e-12);
    }
}

#[test]
fn directions_are_orthonormal_whatever_the_rank_and_the_unit() {
    for (p, d) in [(1, 1), (1, 5), (3, 3), (4, 9), (16, 40)] {
        check(&random(p, d, 7));
        check(&Array2::zeros((p, d)));
        check(&Array2::ones((p, d)));
        check(&Array2::from_shape_fn((p, d), |(i, j)| {
            f64::from(i + d - p == j)
        }));
        // Matrices of rank 1 and 2, up to rounding; rows that nearly depend on others; one row of zeros between others.
        check(&random(p, 1, 1).dot(&random(1, d, 2)));
        check(&random(p, 2, 3).dot(&random(2, d, 4)));
        check(&(random(p, 1, 5).dot(&random(1, d, 6)) + 1e-12 * random(p, d, 7)));
        let mut gap = random(p, d, 8);
        gap.row_mut(p / 2).fill(0.0);
        check(&gap);
        for unit in [1e-300, 1e300] {
            check(&(random(p, d, 9) * unit));
        }
    }
}
