//! Scores under the best one-to-one matching: of clusters with classes, and of centres with centres.

use super::contingency::{Cell, Contingency};
use crate::base::error::{Error, Result, same_columns, same_length};
use crate::base::float::Float;
use crate::metrics::assignment::matching;
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The fraction of points whose cluster is the one matched to their class, under the best one-to-one matching.
///
/// $$\text{accuracy} = \frac 1N \max_\pi \sum_i n_{i \pi(i)}$$
///
/// where $n_{ij}$ counts the points of class $j$ in cluster $i$, $N$ is their number, and $\pi$ matches each cluster to a
/// class of its own, or to none (E23). In `(0, 1]`, symmetric; at most the [`purity`](super::purity).
///
/// `labels` are the clusters and `truth` the classes, both `(n,)`. With $k$ distinct labels on one side and $m \ge k$ on the
/// other, the matching takes $O(k^2 m)$ time and allocates $8 k m$ bytes besides the $O(n)$: 800 MB for 10,000 of each.
///
/// # Errors
///
/// [`Error::Empty`] if there are no labels, [`Error::LengthMismatch`] if the two lengths differ.
///
/// # Examples
///
/// ```
/// # use ndarray::array;
/// let labels = array![0, 0, 0, 1, 2];
/// let truth = array![7, 7, 9, 9, 9];
/// assert_eq!(coremix::metrics::accuracy(labels.view(), truth.view())?, 0.6);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn accuracy(labels: ArrayView1<u32>, truth: ArrayView1<u32>) -> Result<f64> {
    let table = Contingency::new(labels, truth)?;
    // The side with fewer labels is matched to the other. Counts are whole numbers, so all sums are exact.
    let (clusters, classes) = (table.rows.len(), table.columns.len());
    let mut costs = Array2::zeros((clusters.min(classes), clusters.max(classes)));
    let place = |cell: &Cell| {
        if clusters <= classes {
            [cell.row, cell.column]
        } else {
            [cell.column, cell.row]
        }
    };
    for cell in &table.cells {
        costs[place(cell)] = -(cell.count as f64);
    }
    let matching = matching(costs.view());
    let gains = matching.iter().enumerate().map(|(i, &j)| -costs[[i, j]]);
    Ok(gains.sum::<f64>() / table.total as f64)
}

/// Root mean squared distance between two sets of centres after the best one-to-one matching.
///
/// $$\sqrt{ \frac 1k \min_\pi \sum_{c=1}^k \lVert a_c - b_{\pi(c)} \rVert^2 }$$
///
/// with the minimum over all permutations $\pi$ of the $k$ centres (E23): the error of recovered against true centres as
/// reported for D-GMM (Exarchakis, Oubari and Lenz, CVPR 2022). The mean is over centres, not over coordinates: divide by
/// `sqrt(d)` for the latter. In the unit of the data, symmetric up to rounding, and 0 if one set is a reordering of the
/// other.
///
/// `a` and `b` are `(k, d)`; arithmetic is in f64. The matching takes `O(k^3)` time in the worst case. It allocates a table
/// of $k^2$ f64, $8 k^2$ bytes: 800 MB for 10,000 centres. That suits up to several thousand centres.
///
/// # Errors
///
/// [`Error::Empty`] if `k` or `d` is 0, [`Error::LengthMismatch`] if `k` differs, [`Error::DimensionMismatch`] if `d`
/// differs, [`Error::NotFinite`] for a NaN or infinite coordinate, [`Error::Parameter`] if the result exceeds the largest
/// f64.
///
/// # Examples
///
/// ```
/// # use ndarray::array;
/// let a = array![[0.0, 0.0], [10.0, 0.0]];
/// let b = array![[10.0, 4.0], [0.0, 3.0]];
/// let rmse = coremix::metrics::matched_rmse(a.view(), b.view())?;
/// assert!((rmse - 12.5_f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn matched_rmse<F: Float>(a: ArrayView2<F>, b: ArrayView2<F>) -> Result<f64> {
    let (k, d) = a.dim();
    if k == 0 || d == 0 {
        return Err(Error::Empty { what: "centres" });
    }
    same_length("centres", k, b.nrows())?;
    same_columns("centres", d, b.ncols())?;
    let a = finite_values(a, "centres a")?;
    let b = finite_values(b, "centres b")?;

    // Squares of finite values may over- or underflow, so differences are taken at a quarter of their size where they could
    // overflow (a power of two: exact), and are divided by the largest of them before they are squared.
    let largest = a.iter().chain(&b).fold(0.0_f64, |m, v| m.max(v.abs()));
    let shrink = if largest > f64::MAX / 4.0 { 0.25 } else { 1.0 };
    let differences = |i: usize, j: usize| {
        let (row, other) = (&a[i * d..(i + 1) * d], &b[j * d..(j + 1) * d]);
        row.iter()
            .zip(other)
            .map(move |(x, y)| x * shrink - y * shrink)
    };
    let spread = (0..d)
        .map(|column| {
            let values = || a.iter().chain(&b).skip(column).step_by(d);
            let high = values().fold(f64::NEG_INFINITY, |m, &v| m.max(v));
            let low = values().fold(f64::INFINITY, |m, &v| m.min(v));
            high * shrink - low * shrink
        })
        .fold(0.0_f64, f64::max);
    if spread == 0.0 {
        return Ok(0.0);
    }

    // Costs are finite and at most d, so sums of them are finite as well.
    let costs = Array2::from_shape_fn((k, k), |(i, j)| {
        let squares = differences(i, j).map(|v| (v / spread) * (v / spread));
        squares.sum::<f64>()
    });
    let matching = matching(costs.view());

    // Matched centres can be far closer than the spread of all: they get their own unit.
    let matched = || {
        matching
            .iter()
            .enumerate()
            .flat_map(|(i, &j)| differences(i, j))
    };
    let unit = matched().fold(0.0_f64, |m, v| m.max(v.abs()));
    if unit == 0.0 {
        return Ok(0.0);
    }
    let mean = matched().map(|v| (v / unit) * (v / unit)).sum::<f64>() / k as f64;
    let rmse = mean.sqrt() * unit / shrink;
    if !rmse.is_finite() {
        return Err(Error::parameter(
            "centres",
            "too far apart",
            "their root mean squared distance must not exceed the largest f64",
        ));
    }
    Ok(rmse)
}

/// The values of a `(k, d)` array as f64, row by row, or the place of the first that is not finite.
fn finite_values<F: Float>(array: ArrayView2<F>, what: &'static str) -> Result<Vec<f64>> {
    array
        .indexed_iter()
        .map(|((row, column), &value)| {
            let value = Float::to_f64(value);
            if value.is_finite() {
                Ok(value)
            } else {
                Err(Error::NotFinite { what, row, column })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::{Lcg, close, fixture};
    use ndarray::{Array1, Axis, array};

    #[test]
    fn accuracy_is_the_best_of_all_matchings() {
        let mut rng = Lcg(3);
        // Permutations of four classes; fewer clusters than classes, and more.
        let permutations: Vec<Vec<usize>> = (0..256)
            .map(|p| (0..4).map(|i| p >> (2 * i) & 3).collect::<Vec<usize>>())
            .filter(|p| (0..4).all(|j| p.contains(&j)))
            .collect();
        assert_eq!(permutations.len(), 24);
        for (clusters, classes) in [(4, 4), (3, 4), (4, 2), (1, 3)] {
            let labels = Array1::from_shape_simple_fn(60, || (rng.next() % clusters) as u32);
            let truth = Array1::from_shape_simple_fn(60, || (rng.next() % classes) as u32);
            let right = |p: &Vec<usize>| {
                let pairs = labels.iter().zip(&truth);
                pairs
                    .filter(|&(&a, &b)| p[a as usize] == b as usize)
                    .count()
            };
            let best = permutations.iter().map(right).max().unwrap();
            let far = labels.mapv(|l| l.wrapping_mul(2_654_435_769));
            assert_eq!(
                accuracy(far.view(), truth.view()),
                Ok(best as f64 / 60.0),
                "{clusters} {classes}"
            );
        }
        let none: Array1<u32> = array![];
        assert!(accuracy(none.view(), none.view()).is_err());
        assert!(accuracy(array![1].view(), array![1, 2].view()).is_err());
    }

    fn naive_matched_rmse(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        fn best(a: &Array2<f64>, b: &Array2<f64>, used: &mut Vec<usize>) -> f64 {
            let i = used.len();
            if i == a.nrows() {
                return 0.0;
            }
            let mut least = f64::INFINITY;
            for j in 0..b.nrows() {
                if !used.contains(&j) {
                    let cost = (&a.row(i) - &b.row(j)).mapv(|v| v * v).sum();
                    used.push(j);
                    least = least.min(cost + best(a, b, used));
                    used.pop();
                }
            }
            least
        }
        (best(a, b, &mut Vec::new()) / a.nrows() as f64).sqrt()
    }

    #[test]
    fn matched_rmse_agrees_with_all_permutations() {
        let mut rng = Lcg(3);
        for k in 1..=6 {
            for d in [1, 2, 5] {
                let (a, b) = (rng.centres(k, d), rng.centres(k, d));
                close(
                    matched_rmse(a.view(), b.view()).unwrap(),
                    naive_matched_rmse(&a, &b),
                );
                close(
                    matched_rmse(b.view(), a.view()).unwrap(),
                    naive_matched_rmse(&a, &b),
                );
                // Columns stored first, and f32.
                let columns_first = a.t().as_standard_layout().into_owned();
                close(
                    matched_rmse(columns_first.t(), b.view()).unwrap(),
                    naive_matched_rmse(&a, &b),
                );
                let (a, b) = (a.mapv(|v| v as f32), b.mapv(|v| v as f32));
                let exact = naive_matched_rmse(&a.mapv(f64::from), &b.mapv(f64::from));
                close(matched_rmse(a.view(), b.view()).unwrap(), exact);
            }
        }
    }

    #[test]
    fn matched_rmse_of_reordered_centres_is_zero() {
        let mut rng = Lcg(4);
        let a = rng.centres(40, 3);
        let mut b = a.clone();
        b.invert_axis(Axis(0));
        assert_eq!(matched_rmse(a.view(), b.view()).unwrap(), 0.0);
        // Duplicates and a constant set.
        let same = Array2::from_elem((5, 2), 1e30_f32);
        assert_eq!(matched_rmse(same.view(), same.view()).unwrap(), 0.0);
    }

    #[test]
    fn matched_rmse_holds_at_every_magnitude() {
        let mut rng = Lcg(5);
        let (a, b) = (rng.centres(5, 3), rng.centres(5, 3));
        let expected = naive_matched_rmse(&a, &b);
        for exponent in [-1000, -600, -30, 30, 600, 1000] {
            let scale = 2.0_f64.powi(exponent);
            let found = matched_rmse((&a * scale).view(), (&b * scale).view()).unwrap();
            close(found / scale, expected);
        }
        // A match much closer than the spread of the centres.
        let (a, b) = (array![[0.0], [1.0]], array![[1.0], [1e-200]]);
        close(
            matched_rmse(a.view(), b.view()).unwrap() * 1e200,
            0.5_f64.sqrt(),
        );
        // Differences that leave the range of f64 on the way, and one that leaves it for good.
        let (a, b) = (
            array![[f64::MAX], [-f64::MAX]],
            array![[-f64::MAX], [f64::MAX]],
        );
        assert_eq!(matched_rmse(a.view(), b.view()).unwrap(), 0.0);
        let (a, b) = (array![[f64::MAX]], array![[-f64::MAX]]);
        assert!(matches!(
            matched_rmse(a.view(), b.view()),
            Err(Error::Parameter { .. })
        ));
    }

    #[test]
    fn matched_rmse_refuses_hostile_input() {
        let good = array![[0.0, 1.0], [2.0, 3.0]];
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut other = good.clone();
            other[[1, 0]] = bad;
            for result in [
                matched_rmse(good.view(), other.view()),
                matched_rmse(other.view(), good.view()),
            ] {
                assert!(matches!(
                    result,
                    Err(Error::NotFinite {
                        row: 1,
                        column: 0,
                        ..
                    })
                ));
            }
        }
        let rows = good.slice_axis(Axis(0), (..1).into());
        assert!(matches!(
            matched_rmse(good.view(), rows),
            Err(Error::LengthMismatch {
                expected: 2,
                found: 1,
                ..
            })
        ));
        let columns = good.slice_axis(Axis(1), (..1).into());
        assert!(matches!(
            matched_rmse(good.view(), columns),
            Err(Error::DimensionMismatch {
                expected: 2,
                found: 1,
                ..
            })
        ));
        for empty in [
            Array2::<f64>::zeros((0, 3)),
            Array2::zeros((3, 0)),
            Array2::zeros((0, 0)),
        ] {
            assert!(matches!(
                matched_rmse(empty.view(), empty.view()),
                Err(Error::Empty { .. })
            ));
        }
    }

    #[test]
    fn the_score_agrees_with_the_fixtures() {
        let centres = |text| Array2::from_shape_vec((12, 3), fixture(text).concat()).unwrap();
        let a = centres(include_str!("../../tests/fixtures/metrics_centres_a.csv"));
        let b = centres(include_str!("../../tests/fixtures/metrics_centres_b.csv"));
        let expected = fixture(include_str!(
            "../../tests/fixtures/metrics_centres_rmse.csv"
        ))[0][0];
        close(matched_rmse(a.view(), b.view()).unwrap(), expected);
    }
}
