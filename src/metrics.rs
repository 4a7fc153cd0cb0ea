//! Scores that compare a clustering with something known: true classes, true centres, or a reference solution.
//!
//! [`purity`], [`accuracy`], [`nmi`] and [`adjusted_rand_index`] compare two labellings of the same `n` points. Labels are names only: any
//! `u32` values, in any order, with gaps. The cost is `O(n log n)` time and `O(n)` memory whatever the values are; [`accuracy`]
//! costs a matching as well.
//! [`matched_rmse`] compares two sets of centres whose order means nothing, [`relative_error`] two quantization errors.
//!
//! All scores are unitless, except [`matched_rmse`], which has the unit of the data.

use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::error::{Error, Result};
use crate::float::Float;
use crate::matching::matching;

/// The fraction of points that belong to the most frequent class of their cluster.
///
/// $$\text{purity} = \frac 1N \sum_i \max_j n_{ij}$$
///
/// where $n_{ij}$ counts the points of class $j$ in cluster $i$ and $N$ is their number (E23; Manning, Raghavan and Schuetze,
/// *Introduction to Information Retrieval*, 2008, Eq. 16.1). In `(0, 1]`; not symmetric, and not corrected for the number of
/// clusters: one cluster per point scores 1.
///
/// `labels` are the clusters and `truth` the classes, both `(n,)`.
///
/// # Errors
///
/// [`Error::Empty`] if there are no labels, [`Error::LengthMismatch`] if the two lengths differ.
///
/// # Examples
///
/// ```
/// # use ndarray::array;
/// let labels = array![0, 0, 0, 1, 1];
/// let truth = array![7, 7, 9, 9, 9];
/// assert_eq!(coremix::metrics::purity(labels.view(), truth.view())?, 0.8);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn purity(labels: ArrayView1<u32>, truth: ArrayView1<u32>) -> Result<f64> {
    let table = Contingency::new(labels, truth)?;
    let mut largest = vec![0_u64; table.rows.len()];
    for cell in &table.cells {
        largest[cell.row] = largest[cell.row].max(cell.count);
    }
    Ok(largest.iter().sum::<u64>() as f64 / table.total as f64)
}

/// The fraction of points whose cluster is the one matched to their class, under the best one-to-one matching.
///
/// $$\text{accuracy} = \frac 1N \max_\pi \sum_i n_{i \pi(i)}$$
///
/// where $n_{ij}$ counts the points of class $j$ in cluster $i$, $N$ is their number, and $\pi$ matches each cluster to a class of
/// its own, or to none (E23). In `(0, 1]`, symmetric; at most the [`purity`].
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

/// Normalised mutual information of two labellings, with the arithmetic mean of the entropies as the norm.
///
/// $$\text{NMI} = \frac{2 I}{H_a + H_b}, \qquad I = \sum_{ij} \frac{n_{ij}}{N} \ln \frac{N n_{ij}}{a_i b_j}, \qquad H_a = -\sum_i \frac{a_i}{N} \ln \frac{a_i}{N}$$
///
/// where $n_{ij}$ counts the points with label $i$ in the first and $j$ in the second labelling, $a_i$ and $b_j$ are its row and
/// column sums, and $H_b$ is that of the $b_j$ (E23; Vinh, Epps and Bailey, JMLR 2010, Table 2, `NMI_sum`; the default of
/// scikit-learn's `normalized_mutual_info_score`). In `[0, 1]`, symmetric up to rounding, not corrected for chance. Exactly 1 if
/// the two partitions are the same, which includes one single class on both sides (0/0); exactly 0 if only one side is a single
/// class.
///
/// `labels` and `truth` are `(n,)`.
///
/// # Errors
///
/// [`Error::Empty`] if there are no labels, [`Error::LengthMismatch`] if the two lengths differ.
///
/// # Examples
///
/// ```
/// # use ndarray::array;
/// let labels = array![4, 4, 0, 0];
/// let truth = array![1, 1, 2, 2];
/// assert_eq!(coremix::metrics::nmi(labels.view(), truth.view())?, 1.0);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn nmi(labels: ArrayView1<u32>, truth: ArrayView1<u32>) -> Result<f64> {
    let table = Contingency::new(labels, truth)?;
    if table.is_bijection() {
        return Ok(1.0);
    }
    let n = u128::from(table.total);
    let mut information = 0.0;
    for cell in &table.cells {
        let count = u128::from(cell.count);
        let expected = u128::from(table.rows[cell.row]) * u128::from(table.columns[cell.column]);
        information += cell.count as f64 / n as f64 * ln_ratio(count * n, expected);
    }
    let entropies = entropy(&table.rows, n) + entropy(&table.columns, n);
    // Not a bijection, so at least one side has two classes and the sum of entropies is positive.
    Ok((2.0 * information / entropies).clamp(0.0, 1.0))
}

/// The Rand index of two labellings, corrected for chance: 1 for equal partitions, 0 on average for random ones.
///
/// Over the $N (N - 1) / 2$ pairs of points, with $a$ pairs together in both labellings, $b$ only in the first, $c$ only in the
/// second and $e$ apart in both:
///
/// $$\text{ARI} = \frac{2 (a e - b c)}{(a + b)(b + e) + (a + c)(c + e)}$$
///
/// which is (E23) in pairs (Hubert and Arabie, *Comparing partitions*, Journal of Classification 1985, in the form that
/// scikit-learn's `adjusted_rand_score` uses). In `[-0.5, 1]`, symmetric. Exactly 1 if the partitions are the same, a single
/// point included.
///
/// The pair counts are exact integers, and so is the numerator for every `n` below `2^32`; only the quotient is rounded.
///
/// `labels` and `truth` are `(n,)`.
///
/// # Errors
///
/// [`Error::Empty`] if there are no labels, [`Error::LengthMismatch`] if the two lengths differ.
///
/// # Examples
///
/// ```
/// # use ndarray::array;
/// let labels = array![0, 0, 1, 2];
/// let truth = array![0, 0, 1, 1];
/// let ari = coremix::metrics::adjusted_rand_index(labels.view(), truth.view())?;
/// assert!((ari - 4.0 / 7.0).abs() < 1e-15);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn adjusted_rand_index(labels: ArrayView1<u32>, truth: ArrayView1<u32>) -> Result<f64> {
    let table = Contingency::new(labels, truth)?;
    let both = table
        .cells
        .iter()
        .map(|cell| pairs(cell.count))
        .sum::<u128>();
    let in_rows = table.rows.iter().map(|&count| pairs(count)).sum::<u128>();
    let in_columns = table
        .columns
        .iter()
        .map(|&count| pairs(count))
        .sum::<u128>();
    let only_rows = in_rows - both;
    let only_columns = in_columns - both;
    let neither = pairs(table.total) - in_rows - only_columns;
    Ok(adjusted_rand(both, only_rows, only_columns, neither))
}

/// Root mean squared distance between two sets of centres after the best one-to-one matching.
///
/// $$\sqrt{ \frac 1k \min_\pi \sum_{c=1}^k \lVert a_c - b_{\pi(c)} \rVert^2 }$$
///
/// with the minimum over all permutations $\pi$ of the $k$ centres (E23): the error of recovered against true centres as
/// reported for D-GMM (Exarchakis, Oubari and Lenz, CVPR 2022). The mean is over centres, not over coordinates: divide by
/// `sqrt(d)` for the latter. In the unit of the data, symmetric up to rounding, and 0 if one set is a reordering of the other.
///
/// `a` and `b` are `(k, d)`; arithmetic is in f64. The matching takes `O(k^3)` time in the worst case and allocates a table of
/// $k^2$ f64, $8 k^2$ bytes (800 MB for 10,000 centres), which suits up to several thousand centres.
///
/// # Errors
///
/// [`Error::Empty`] if `k` or `d` is 0, [`Error::LengthMismatch`] if `k` differs, [`Error::DimensionMismatch`] if `d` differs,
/// [`Error::NotFinite`] for a NaN or infinite coordinate, [`Error::Parameter`] if the result exceeds the largest f64.
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
    if b.nrows() != k {
        return Err(Error::LengthMismatch {
            what: "centres",
            expected: k,
            found: b.nrows(),
        });
    }
    if b.ncols() != d {
        return Err(Error::DimensionMismatch {
            what: "centres",
            expected: d,
            found: b.ncols(),
        });
    }
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

/// The relative difference `(q - q_ref) / q_ref` of a quantization error from a reference one.
///
/// $$\eta = \frac{\Phi - \Phi_{\text{ref}}}{\Phi_{\text{ref}}}$$
///
/// with $\Phi$ the quantization error (E22). Negative where `q` is the better one. Eq. 9 of Hirschberger, Forster and Luecke
/// (vc-GMM, TPAMI 2022), where the reference is the error of k-means on all points.
///
/// # Errors
///
/// [`Error::Parameter`] if `q` is not finite or is negative, if `q_ref` is not finite or not positive, or if the quotient exceeds
/// the largest f64.
///
/// # Examples
///
/// ```
/// assert_eq!(coremix::metrics::relative_error(105.0, 100.0)?, 0.05);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn relative_error(q: f64, q_ref: f64) -> Result<f64> {
    if !(q.is_finite() && q >= 0.0) {
        return Err(Error::parameter("q", q, "must be finite and not negative"));
    }
    if !(q_ref.is_finite() && q_ref > 0.0) {
        return Err(Error::parameter(
            "q_ref",
            q_ref,
            "must be finite and positive",
        ));
    }
    let error = (q - q_ref) / q_ref;
    if !error.is_finite() {
        return Err(Error::parameter(
            "q_ref",
            q_ref,
            "must be large enough for (q - q_ref) / q_ref to fit into an f64",
        ));
    }
    Ok(error)
}

/// The non-zero cells of the table `n_ij` of two labellings, ordered by row and then column, and its margins.
struct Contingency {
    cells: Vec<Cell>,
    /// Points per distinct value of the first labelling, in ascending order of the value.
    rows: Vec<u64>,
    /// Points per distinct value of the second labelling, in ascending order of the value.
    columns: Vec<u64>,
    total: u64,
}

struct Cell {
    row: usize,
    column: usize,
    count: u64,
}

impl Contingency {
    /// Sorts the pairs of labels: sums over the table then run in one fixed order, which hashing would not give.
    fn new(first: ArrayView1<u32>, second: ArrayView1<u32>) -> Result<Self> {
        if first.is_empty() && second.is_empty() {
            return Err(Error::Empty { what: "labels" });
        }
        if first.len() != second.len() {
            return Err(Error::LengthMismatch {
                what: "labels",
                expected: first.len(),
                found: second.len(),
            });
        }
        let mut keys: Vec<(u32, u32)> = first.iter().copied().zip(second.iter().copied()).collect();
        keys.sort_unstable();

        let mut classes: Vec<u32> = keys
            .chunk_by(|x, y| x == y)
            .filter_map(|run| run.first())
            .map(|&(_, class)| class)
            .collect();
        classes.sort_unstable();
        classes.dedup();

        let mut cells = Vec::new();
        let mut rows = Vec::new();
        let mut columns = vec![0; classes.len()];
        for (row, of_row) in keys.chunk_by(|x, y| x.0 == y.0).enumerate() {
            rows.push(of_row.len() as u64);
            for run in of_row.chunk_by(|x, y| x.1 == y.1) {
                let count = run.len() as u64;
                let column = classes.partition_point(|&class| class < run[0].1);
                columns[column] += count;
                cells.push(Cell { row, column, count });
            }
        }
        Ok(Self {
            cells,
            rows,
            columns,
            total: keys.len() as u64,
        })
    }

    /// Whether the two labellings are one partition under two sets of names.
    fn is_bijection(&self) -> bool {
        self.cells.len() == self.rows.len() && self.cells.len() == self.columns.len()
    }
}

/// `sum_i n_i/n ln(n/n_i)`, in nats.
fn entropy(counts: &[u64], n: u128) -> f64 {
    counts
        .iter()
        .map(|&count| count as f64 / n as f64 * ln_ratio(n, u128::from(count)))
        .sum()
}

/// `ln(numerator / denominator)` for positive integers, accurate where the two are close.
fn ln_ratio(numerator: u128, denominator: u128) -> f64 {
    let ratio = numerator as f64 / denominator as f64;
    if (0.5..2.0).contains(&ratio) {
        // The difference is exact in integers; the logarithm of a rounded ratio near 1 would lose its leading digits.
        let difference = numerator.abs_diff(denominator) as f64 / denominator as f64;
        if numerator >= denominator {
            difference.ln_1p()
        } else {
            (-difference).ln_1p()
        }
    } else {
        ratio.ln()
    }
}

/// The number of unordered pairs among `count` points.
fn pairs(count: u64) -> u128 {
    let count = u128::from(count);
    count * count.saturating_sub(1) / 2
}

fn adjusted_rand(both: u128, only_rows: u128, only_columns: u128, neither: u128) -> f64 {
    if only_rows == 0 && only_columns == 0 {
        return 1.0;
    }
    let [a, b, c, e] = [both, only_rows, only_columns, neither].map(|count| count as f64);
    // Near chance the two products agree in most digits, so they are subtracted as integers.
    let numerator = match (
        both.checked_mul(neither),
        only_rows.checked_mul(only_columns),
    ) {
        (Some(agree), Some(differ)) if agree >= differ => (agree - differ) as f64,
        (Some(agree), Some(differ)) => -((differ - agree) as f64),
        _ => a * e - b * c,
    };
    2.0 * numerator / ((a + b) * (b + e) + (a + c) * (c + e))
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
    use approx::assert_abs_diff_eq;
    use ndarray::{Array1, Array2, Axis, array};

    /// A small generator, so that the oracles need no dependency: Knuth's 64-bit congruential constants.
    struct Lcg(u64);

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

    impl Lcg {
        fn next(&mut self) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 33
        }

        fn labels(&mut self, n: usize, k: u64) -> Array1<u32> {
            // Spread over the whole range of u32, so that a table indexed by label could not work.
            (0..n)
                .map(|_| ((self.next() % k) as u32).wrapping_mul(2_654_435_769))
                .collect()
        }

        fn centres(&mut self, k: usize, d: usize) -> Array2<f64> {
            Array2::from_shape_simple_fn((k, d), || self.next() as f64 / (1_u64 << 31) as f64)
        }
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-13 * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }

    fn naive_purity(labels: &Array1<u32>, truth: &Array1<u32>) -> f64 {
        let n = labels.len();
        let mut sum = 0;
        for j in 0..n {
            // Each cluster is visited once, at its first point.
            if (0..j).any(|i| labels[i] == labels[j]) {
                continue;
            }
            let of_class = |class| {
                (0..n)
                    .filter(|&i| labels[i] == labels[j] && truth[i] == class)
                    .count()
            };
            sum += truth.iter().map(|&class| of_class(class)).max().unwrap();
        }
        sum as f64 / n as f64
    }

    fn naive_nmi(labels: &Array1<u32>, truth: &Array1<u32>) -> f64 {
        let n = labels.len();
        let p =
            |keep: &dyn Fn(usize) -> bool| (0..n).filter(|&i| keep(i)).count() as f64 / n as f64;
        // Means over points are expectations over the table.
        let (mut information, mut entropies) = (0.0, 0.0);
        for j in 0..n {
            let p_label = p(&|i| labels[i] == labels[j]);
            let p_truth = p(&|i| truth[i] == truth[j]);
            let p_both = p(&|i| labels[i] == labels[j] && truth[i] == truth[j]);
            information += (p_both / (p_label * p_truth)).ln() / n as f64;
            entropies -= (p_label.ln() + p_truth.ln()) / n as f64;
        }
        if entropies == 0.0 {
            1.0
        } else {
            information / (0.5 * entropies)
        }
    }

    fn naive_ari(labels: &Array1<u32>, truth: &Array1<u32>) -> f64 {
        let (mut total, mut index, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        for i in 0..labels.len() {
            for j in 0..i {
                let (x, y) = (labels[i] == labels[j], truth[i] == truth[j]);
                total += 1.0;
                index += f64::from(u8::from(x && y));
                first += f64::from(u8::from(x));
                second += f64::from(u8::from(y));
            }
        }
        let expected = first * second / total;
        let maximum = 0.5 * (first + second);
        if total == 0.0 || maximum == expected {
            1.0
        } else {
            (index - expected) / (maximum - expected)
        }
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
    fn label_scores_agree_with_naive_oracles() {
        let mut rng = Lcg(1);
        for n in [1, 2, 3, 10, 60] {
            for k in [1, 2, 3, 7, 1000] {
                for k_truth in [1, 2, 5] {
                    let labels = rng.labels(n, k);
                    let mut truth = rng.labels(n, k_truth);
                    // Half of the cases have something in common.
                    if k_truth == 5 {
                        truth.zip_mut_with(&labels, |t, &l| *t = if *t % 3 == 0 { *t } else { l });
                    }
                    close(
                        purity(labels.view(), truth.view()).unwrap(),
                        naive_purity(&labels, &truth),
                    );
                    close(
                        nmi(labels.view(), truth.view()).unwrap(),
                        naive_nmi(&labels, &truth),
                    );
                    close(
                        adjusted_rand_index(labels.view(), truth.view()).unwrap(),
                        naive_ari(&labels, &truth),
                    );
                }
            }
        }
    }

    #[test]
    fn label_scores_agree_with_scikit_learn() {
        // normalized_mutual_info_score, adjusted_rand_score and contingency_matrix of scikit-learn 1.9.1.
        let labels = array![0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3];
        let truth = array![0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0, 3];
        close(
            purity(labels.view(), truth.view()).unwrap(),
            0.6666666666666666,
        );
        close(
            nmi(labels.view(), truth.view()).unwrap(),
            0.5028909422035811,
        );
        close(
            adjusted_rand_index(labels.view(), truth.view()).unwrap(),
            0.18518518518518517,
        );
        // Worse than chance.
        let (x, y) = (array![0, 0, 1, 1], array![0, 1, 0, 1]);
        close(adjusted_rand_index(x.view(), y.view()).unwrap(), -0.5);
        assert_eq!(nmi(x.view(), y.view()).unwrap(), 0.0);
    }

    /// Reads a fixture: rows of comma-separated numbers.
    fn fixture(text: &str) -> Vec<Vec<f64>> {
        text.lines()
            .map(|line| line.split(',').map(|v| v.parse().unwrap()).collect())
            .collect()
    }

    #[test]
    fn scores_agree_with_the_fixtures() {
        let columns = fixture(include_str!("../tests/fixtures/metrics_labels.csv"));
        let scores = fixture(include_str!("../tests/fixtures/metrics_scores.csv"));
        let column =
            |j: usize| -> Array1<u32> { columns.iter().map(|row| row[j] as u32).collect() };
        assert_eq!(scores.len(), 8);
        for (pair, expected) in scores.iter().enumerate() {
            let (labels, truth) = (column(2 * pair), column(2 * pair + 1));
            close(purity(labels.view(), truth.view()).unwrap(), expected[0]);
            close(nmi(labels.view(), truth.view()).unwrap(), expected[1]);
            close(
                adjusted_rand_index(labels.view(), truth.view()).unwrap(),
                expected[2],
            );
        }

        let centres = |text| Array2::from_shape_vec((12, 3), fixture(text).concat()).unwrap();
        let a = centres(include_str!("../tests/fixtures/metrics_centres_a.csv"));
        let b = centres(include_str!("../tests/fixtures/metrics_centres_b.csv"));
        let expected = fixture(include_str!("../tests/fixtures/metrics_centres_rmse.csv"))[0][0];
        close(matched_rmse(a.view(), b.view()).unwrap(), expected);
    }

    #[test]
    fn equal_partitions_score_exactly_one() {
        let mut rng = Lcg(2);
        for k in [1, 2, 9, 400] {
            let labels = rng.labels(300, k);
            let renamed = labels.mapv(|l| u32::MAX - l);
            assert_eq!(purity(labels.view(), renamed.view()).unwrap(), 1.0);
            assert_eq!(nmi(labels.view(), renamed.view()).unwrap(), 1.0);
            assert_eq!(
                adjusted_rand_index(labels.view(), renamed.view()).unwrap(),
                1.0
            );
        }
        // A single class on one side carries no information about the other.
        let (one, two) = (array![5, 5, 5], array![5, 5, u32::MAX]);
        assert_eq!(nmi(one.view(), two.view()).unwrap(), 0.0);
        assert_eq!(adjusted_rand_index(one.view(), two.view()).unwrap(), 0.0);
    }

    #[test]
    fn label_scores_accept_any_memory_order_and_refuse_unequal_lengths() {
        let labels = array![[0, 9], [0, 9], [1, 9], [1, 9]];
        let truth = array![3, 3, 8, 8];
        assert_eq!(nmi(labels.column(0), truth.view()).unwrap(), 1.0);
        for score in [purity, nmi, adjusted_rand_index] {
            let (short, empty) = (array![1_u32], Array1::<u32>::zeros(0));
            assert!(matches!(
                score(truth.view(), short.view()),
                Err(Error::LengthMismatch {
                    expected: 4,
                    found: 1,
                    ..
                })
            ));
            assert!(matches!(
                score(empty.view(), short.view()),
                Err(Error::LengthMismatch { .. })
            ));
            assert!(matches!(
                score(empty.view(), empty.view()),
                Err(Error::Empty { .. })
            ));
        }
    }

    #[test]
    fn pair_counts_of_huge_tables_neither_overflow_nor_cancel() {
        // A 2 x 2 table of 2^31 points, one point away from independence: 2^29 in each cell, then one moved.
        let cell = 1_u64 << 29;
        let table = Contingency {
            cells: vec![
                Cell {
                    row: 0,
                    column: 0,
                    count: cell + 1,
                },
                Cell {
                    row: 0,
                    column: 1,
                    count: cell - 1,
                },
                Cell {
                    row: 1,
                    column: 0,
                    count: cell - 1,
                },
                Cell {
                    row: 1,
                    column: 1,
                    count: cell + 1,
                },
            ],
            rows: vec![2 * cell; 2],
            columns: vec![2 * cell; 2],
            total: 4 * cell,
        };
        let both = table.cells.iter().map(|c| pairs(c.count)).sum::<u128>();
        let only = 2 * pairs(2 * cell) - both;
        let neither = pairs(4 * cell) - both - 2 * only;
        // The pair counts written out as polynomials of m = 2^29; with products rounded to f64 a third of the digits would go.
        let m = cell as f64;
        let expected = (4.0 * m - m * m - 1.0) / (4.0 * m * m * m - 2.0 * m * m);
        assert_abs_diff_eq!(
            adjusted_rand(both, only, only, neither) / expected,
            1.0,
            epsilon = 1e-14
        );
        // Products of counts of 2^64 pairs or more leave u128: an approximate answer, and no panic.
        let beyond = adjusted_rand(u128::MAX / 8, 1 << 100, 1 << 90, u128::MAX / 8);
        assert!((0.0..=1.0).contains(&beyond));
    }

    #[test]
    fn logarithms_of_ratios_keep_their_digits_near_one() {
        let n = 1_u128 << 62;
        close(ln_ratio(n + 1, n) * n as f64, 1.0);
        close(ln_ratio(n - 1, n) * n as f64, -1.0);
        close(ln_ratio(3, 1), 3.0_f64.ln());
        close(ln_ratio(1, 7), -7.0_f64.ln());
        assert_eq!(ln_ratio(n, n), 0.0);
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
    fn relative_error_is_signed_and_refuses_meaningless_references() {
        assert_eq!(relative_error(3.0, 2.0).unwrap(), 0.5);
        assert_eq!(relative_error(1.0, 2.0).unwrap(), -0.5);
        assert_eq!(relative_error(0.0, 2.0).unwrap(), -1.0);
        for (q, q_ref) in [
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (-1.0, 1.0),
            (1.0, 0.0),
            (1.0, -1.0),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
            (1e300, 1e-300),
        ] {
            assert!(matches!(
                relative_error(q, q_ref),
                Err(Error::Parameter { .. })
            ));
        }
    }
}
