//! The laws of data.

use super::trial::same;
use super::{LOOKED_AT, law};
use crate::algorithms::by_name::Algorithm;
use crate::base::error::Result;
use crate::base::float::{Element, Float};
use crate::data::{Data, Dense, Rows};

/// Data: it loads what the `same` rows in memory load, range or list, selected or not, with the same summary and frame; and
/// algorithms of every kind give the same fits, bit for bit.
///
/// # Errors
/// [`Error::Stage`](crate::Error::Stage) with the law; what the fits return.
pub fn data<T, D>(own: &D, same_rows: &Dense<'_, T>) -> Result<()>
where
    T: Element,
    D: Data<T::Float>,
{
    let equal = |holds: bool, what: &str| {
        law::<D>(holds, || {
            format!("{what} is not that of the same rows in memory")
        })
    };
    equal(own.summary() == same_rows.summary(), "the summary")?;
    let n = same_rows.len();
    let frame = same_rows.frame();
    let shape = (own.len(), own.dim()) == (n, same_rows.dim());
    equal(shape, "the shape")?;
    equal(own.frame() == frame, "the frame")?;
    let list: Vec<usize> = (0..n.min(LOOKED_AT)).map(|i| (7 * i + 3) % n).collect();
    let weights: Vec<f64> = list.iter().map(|n| (n % 3) as f64 + 0.5).collect();
    let selected = own.select(&list, weights.clone())?;
    let expected = same_rows.select(&list, weights)?;
    let summary = selected.summary() == expected.summary();
    equal(summary, "the summary of selected rows")?;
    let pairs: [(&dyn Data<_>, &dyn Data<_>, _); 2] = [
        (own, same_rows, "rows"),
        (&*selected, &*expected, "selected rows"),
    ];
    for (rows, expected, what) in pairs {
        let n = expected.len();
        let mut loaded = [Rows::default(), Rows::default()];
        equal(rows.len() == n, &format!("the number of {what}"))?;
        for from in (0..n).step_by(LOOKED_AT) {
            let range = from..(from + LOOKED_AT).min(n);
            rows.load(range.clone(), &frame, &mut loaded[0])?;
            expected.load(range, &frame, &mut loaded[1])?;
            let block = format!("a block of loaded {what} from row {from} on");
            equal(are_equal(&loaded), &block)?;
        }
        let list: Vec<usize> = (0..n.min(LOOKED_AT)).map(|i| (5 * i + 1) % n).collect();
        rows.gather(&list, &frame, &mut loaded[0])?;
        expected.gather(&list, &frame, &mut loaded[1])?;
        equal(are_equal(&loaded), &format!("a list of gathered {what}"))?;
        let weights = (0..n).all(|i| rows.weight(i) == expected.weight(i));
        equal(weights, &format!("a weight of {what}"))?;
    }
    let k = 5.min(same_rows.summary().rows);
    for name in ["k-means", "gmm", "vc-gmm", "d-gmm", "fast", "dp-gmm"] {
        let algorithm = name.parse::<Algorithm>()?.clusters(k);
        let algorithm = match name {
            "vc-gmm" => algorithm.neighbors(3).coreset((n / 2).max(k)),
            "fast" => algorithm.coreset((n / 2).max(k)),
            _ => algorithm,
        };
        let estimator = algorithm.max_iterations(10).boxed::<T::Float>()?;
        let a = estimator.fit(own)?;
        let b = estimator.fit(same_rows)?;
        same::<D, T::Float, _, _>(&a, &b, name)?;
        let labels = a.model.predict(own)? == b.model.predict(same_rows)?;
        equal(labels, &format!("{name}: what the model predicts"))?;
    }
    Ok(())
}

fn are_equal<F: Float>([a, b]: &[Rows<F>; 2]) -> bool {
    let same = |i| a.coordinates(i) == b.coordinates(i) && a.weight(i) == b.weight(i);
    a.len() == b.len() && (0..a.len()).all(same)
}
