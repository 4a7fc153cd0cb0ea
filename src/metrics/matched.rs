//! Scores under the best one-to-one matching: of clusters with classes, and of centres with centres.

use super::contingency::{Cell, Contingency};
use crate::base::error::{Error, Result, ensure, require, same_columns, same_length};
use crate::base::float::Float;
use crate::data::check_rows;
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
/// [`Error::Empty`] without labels, [`Error::LengthMismatch`] if lengths differ.
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
    let clusters = table.rows.len();
    let classes = table.columns.len();
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
/// [`Error::Empty`] if `k` or `d` is 0, [`Error::LengthMismatch`] if `k` differs, [`Error::DimensionMismatch`] if `d`
/// differs, [`Error::NotFinite`] for a NaN or infinite coordinate, [`Error::Parameter`] if a difference exceeds the largest
/// f64.
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
    ensure(k > 0 && d > 0, || Error::Empty { what: "centres" })?;
    same_length("centres", k, b.nrows())?;
    same_columns("centres", d, b.ncols())?;
    check_rows(a, None, "centres a", f64::INFINITY, 0)?;
    check_rows(b, None, "centres b", f64::INFINITY, 0)?;
    let [a, b] = [a, b].map(|centres| centres.iter().map(|x| x.to_f64()).collect::<Vec<f64>>());

    // Squares are in units of the largest difference, because its own may over- or underflow.
    let difference = |i: usize, j: usize, column: usize| a[i * d + column] - b[j * d + column];
    let largest = (0..d).map(|column| {
        let values = || a.iter().chain(&b).skip(column).step_by(d);
        let high = values().copied().fold(f64::NEG_INFINITY, f64::max);
        high - values().copied().fold(f64::INFINITY, f64::min)
    });
    let unit = largest.fold(0.0, f64::max);
    if unit == 0.0 {
        return Ok(0.0);
    }
    let rule = "their differences must not exceed the largest f64";
    require(unit.is_finite(), "centres", "too far apart", rule)?;
    let costs = Array2::from_shape_fn((k, k), |(i, j)| {
        let squares = (0..d).map(|column| (difference(i, j, column) / unit).powi(2));
        squares.sum::<f64>()
    });
    let matched = matching(costs.view()).into_iter().enumerate();
    let mean = matched.map(|pair| costs[pair]).sum::<f64>() / k as f64;
    Ok(mean.sqrt() * unit)
}
