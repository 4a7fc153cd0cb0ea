//! Scores of two labellings that need their contingency table alone.

use super::contingency::Contingency;
use crate::base::error::Result;
use ndarray::ArrayView1;

/// The fraction of points that belong to the most frequent class of their cluster.
///
/// $$\text{purity} = \frac 1N \sum_i \max_j n_{ij}$$
///
/// where $n_{ij}$ counts the points of class $j$ in cluster $i$ and $N$ is their number (E23; Manning, Raghavan and
/// Schuetze, *Introduction to Information Retrieval*, 2008, Eq. 16.1). In `(0, 1]`; not symmetric, and not corrected for the
/// number of clusters: one cluster per point scores 1.
///
/// # Errors
/// [`Error::Empty`](crate::Error::Empty) without labels, [`Error::LengthMismatch`](crate::Error::LengthMismatch) if
/// lengths differ.
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

/// Normalised mutual information of two labellings, with the arithmetic mean of the entropies as the norm.
///
/// $$\text{NMI} = \frac{2 I}{H_a + H_b}, \qquad I = \sum_{ij} \frac{n_{ij}}{N} \ln \frac{N n_{ij}}{a_i b_j}, \qquad H_a = -\sum_i \frac{a_i}{N} \ln \frac{a_i}{N}$$
///
/// where $n_{ij}$ counts the points with label $i$ in the first and $j$ in the second labelling, $a_i$ and $b_j$ are its row
/// and column sums, and $H_b$ is that of the $b_j$ (E23). It is `NMI_sum` in Table 2 of Vinh, Epps and Bailey (JMLR 2010),
/// and the default of scikit-learn's `normalized_mutual_info_score`. In `[0, 1]`, symmetric up to rounding, not corrected
/// for chance. Exactly 1 if the two partitions are the same, which includes one single class on both sides (0/0); exactly 0
/// if only one side is a single class.
///
/// # Errors
/// [`Error::Empty`](crate::Error::Empty) without labels, [`Error::LengthMismatch`](crate::Error::LengthMismatch) if
/// lengths differ.
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
    // The classes do not correspond one to one, so at least one side has two and the sum of entropies is positive.
    Ok((2.0 * information / entropies).clamp(0.0, 1.0))
}

/// The Rand index of two labellings, corrected for chance: 1 for equal partitions, 0 on average for random ones.
///
/// It is over the $N (N - 1) / 2$ pairs of points: $a$ of them are together in both labellings, $b$ only in the first, $c$
/// only in the second, and $e$ are apart in both.
///
/// $$\text{ARI} = \frac{2 (a e - b c)}{(a + b)(b + e) + (a + c)(c + e)}$$
///
/// which is (E23) in pairs (Hubert and Arabie, *Comparing partitions*, Journal of Classification 1985, in the form that
/// scikit-learn's `adjusted_rand_score` uses). In `[-0.5, 1]`, symmetric. Exactly 1 if the partitions are the same, a single
/// point included.
///
/// The pair counts are exact integers, and so is the numerator for every `n` below `2^32`; only the quotient is rounded.
///
/// # Errors
/// [`Error::Empty`](crate::Error::Empty) without labels, [`Error::LengthMismatch`](crate::Error::LengthMismatch) if
/// lengths differ.
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
    let both: i128 = table.cells.iter().map(|cell| pairs(cell.count)).sum();
    let in_rows: i128 = table.rows.iter().map(|&count| pairs(count)).sum();
    let in_columns: i128 = table.columns.iter().map(|&count| pairs(count)).sum();
    let one = in_rows - both;
    let other = in_columns - both;
    let neither = pairs(table.total) - both - one - other;
    Ok(adjusted_rand(both, one, other, neither))
}

/// `sum_i n_i/n ln(n/n_i)`, in nats.
fn entropy(counts: &[u64], n: u128) -> f64 {
    let term = |&count: &u64| count as f64 / n as f64 * ln_ratio(n, u128::from(count));
    counts.iter().map(term).sum()
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
fn pairs(count: u64) -> i128 {
    i128::from(count) * (i128::from(count) - 1) / 2
}

fn adjusted_rand(both: i128, only_rows: i128, only_columns: i128, neither: i128) -> f64 {
    if only_rows == 0 && only_columns == 0 {
        return 1.0;
    }
    let [a, b, c, e] = [both, only_rows, only_columns, neither].map(|count| count as f64);
    // Near chance the two products agree in most digits, so they are subtracted as integers where these hold them.
    let exact = || {
        let agree = both.checked_mul(neither)?;
        let differ = only_rows.checked_mul(only_columns)?;
        Some((agree - differ) as f64)
    };
    let numerator = exact().unwrap_or(a * e - b * c);
    2.0 * numerator / ((a + b) * (b + e) + (a + c) * (c + e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(computed: f64, expected: f64) {
        let error = (computed - expected).abs();
        assert!(
            error <= 1e-13 * expected.abs().max(1.0),
            "{computed} is not {expected}"
        );
    }

    #[test]
    fn pair_counts_of_huge_tables_neither_overflow_nor_cancel() {
        // 2^29 points in each of 2 x 2 cells, then one moved.
        let cell = 1_u64 << 29;
        let both = 2 * (pairs(cell + 1) + pairs(cell - 1));
        let only = 2 * pairs(2 * cell) - both;
        let neither = pairs(4 * cell) - both - 2 * only;
        // The pair counts written out as polynomials of m = 2^29; with products rounded to f64 a third of the digits
        // would go.
        let m = cell as f64;
        let expected = (4.0 * m - m * m - 1.0) / (4.0 * m * m * m - 2.0 * m * m);
        assert!((adjusted_rand(both, only, only, neither) / expected - 1.0).abs() < 1e-14);
        // Products of counts of 2^64 pairs or more leave i128: an approximate answer, and no panic.
        let beyond = adjusted_rand(i128::MAX / 8, 1 << 100, 1 << 90, i128::MAX / 8);
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
}
