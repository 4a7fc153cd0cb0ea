//! Facts about each cluster: its weight, the row nearest to its mean, and the columns that set it apart.

use super::facts::Facts;
use super::predict::{by_blocks, label, predict};
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::data::{Data, RowKind};
use ndarray::{Array1, Array2, ArrayView1};

#[inline(never)]
pub(crate) fn sizes<F: Float>(model: &Facts<'_, F>, data: &dyn Data<F>) -> Result<Array1<f64>> {
    let mut sizes = Array1::zeros(model.components);
    for (n, label) in predict(model, data)?.into_iter().enumerate() {
        sizes[label as usize] += data.weight(n);
    }
    Ok(sizes)
}

/// The first of the rows that are nearest to each mean, among the rows of its cluster, with its squared distance.
#[inline(never)]
pub(crate) fn medoids<F: Float>(
    model: &Facts<'_, F>,
    variances: &Array2<f64>,
    data: &dyn Data<F>,
) -> Result<Vec<Option<(usize, f64)>>> {
    let rule = "has columns of categories, whose codes are labels and have no distances: ask for the log-densities";
    require(model.cost.has_distances(), "model", "a table", rule)?;
    let frame = model.frame;
    let dim = frame.dim();
    // A missing value is expected to be as far from the mean as the variance of its column says.
    let is_partial = data.kind() == RowKind::Partial;
    let mut expected = variances.clone();
    for ((_, j), v) in expected.indexed_iter_mut() {
        *v = frame.enter_product(j, j, *v);
    }
    let blocks = by_blocks(model, data, |rows| {
        let mut squared = Vec::new();
        let distance = |(i, label): (usize, u32)| {
            rows.distances_to(i, model.centres, &[label], &mut squared);
            let of_missing = match rows.known(i) {
                0 => f64::INFINITY,
                known if is_partial && known < dim => {
                    let mut missing = expected.row(label as usize).to_vec();
                    rows.each_known(i, |j, _| missing[j] = 0.0);
                    missing.iter().sum()
                }
                _ => 0.0,
            };
            (label, i, squared[0].to_f64() + of_missing)
        };
        let labels = label(model.cost, rows).into_iter().enumerate();
        let counted = labels.filter(|(i, _)| rows.weight(*i) > 0.0);
        let mut nearest: Vec<_> = counted.map(distance).collect();
        nearest.retain(|(_, _, squared)| squared.is_finite());
        // The order is stable: the first of equally near rows stays.
        nearest.sort_by(|a, b| a.0.cmp(&b.0).then(a.2.total_cmp(&b.2)));
        nearest.dedup_by_key(|(label, _, _)| *label);
        // Without what it has room for: there are many blocks.
        (rows.len(), nearest.into_boxed_slice())
    })?;
    let mut medoids: Vec<Option<(usize, f64)>> = vec![None; model.components];
    let mut first = 0;
    for (rows, nearest) in blocks {
        for (label, i, squared) in nearest {
            let least = &mut medoids[label as usize];
            if least.is_none_or(|(_, least)| squared < least) {
                *least = Some((first + i, squared));
            }
        }
        first += rows;
    }
    let leave = |(n, squared): (usize, f64)| (n, frame.leave_square(squared));
    let each = medoids.into_iter().map(|of_one| of_one.map(leave));
    Ok(each.collect())
}

/// How much each column sets each component apart (k, d), where columns are normal.
pub(super) fn explain(means: &Array2<f64>, variances: &Array2<f64>, shares: &[f64]) -> Array2<f64> {
    let mut nats = Array2::zeros(means.dim());
    let columns = means.columns().into_iter().zip(variances.columns());
    for (mut out, (means, variances)) in nats.columns_mut().into_iter().zip(columns) {
        out.assign(&explain_column(means, variances, shares));
    }
    nats
}

/// Divergences (k) in one column: of each normal distribution from the one with the mean and the variance of their mixture.
pub(crate) fn explain_column(
    means: ArrayView1<'_, f64>,
    variances: ArrayView1<'_, f64>,
    shares: &[f64],
) -> Array1<f64> {
    let each = || means.iter().zip(variances).map(|(mean, v)| [*mean, *v]);
    let mixed = mixed_normal(each(), shares);
    // Rounding may leave a little less than 0.
    each()
        .map(|normal| normal_divergence(normal, mixed).max(0.0))
        .collect()
}

/// The mean and the variance of a mixture of distributions with such ones.
pub(crate) fn mixed_normal(
    each: impl Iterator<Item = [f64; 2]> + Clone,
    shares: &[f64],
) -> [f64; 2] {
    let pairs = || each.clone().zip(shares);
    let mean: f64 = pairs().map(|([m, _], share)| share * m).sum();
    let variance = pairs().map(|([m, v], share)| share * (v + (m - mean).powi(2)));
    [mean, variance.sum()]
}

/// The divergence of the normal distribution of a mean and a variance from another one, in nats.
pub(crate) fn normal_divergence(normal: [f64; 2], other: [f64; 2]) -> f64 {
    let [mean, variance] = normal;
    let [other_mean, other_variance] = other;
    let ratio = variance / other_variance;
    let squared = (mean - other_mean).powi(2);
    0.5 * (squared / other_variance + ratio - 1.0 - ratio.ln())
}
