//! The laws of data.

use super::{LOOKED_AT, broken, same};
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
    let wrong = |what: &str| {
        Err(broken::<D>(format!(
            "{what} is not that of the same rows in memory"
        )))
    };
    if own.summary() != same_rows.summary() {
        return wrong("the summary");
    }
    let (n, frame) = (same_rows.len(), same_rows.frame());
    if (own.len(), own.dim()) != (n, same_rows.dim()) {
        return wrong("the shape");
    }
    if own.frame() != frame {
        return wrong("the frame");
    }
    let list: Vec<usize> = (0..n.min(LOOKED_AT)).map(|i| (7 * i + 3) % n).collect();
    let weights: Vec<f64> = list.iter().map(|n| (n % 3) as f64 + 0.5).collect();
    let (selected, expected) = (
        own.select(&list, weights.clone())?,
        same_rows.select(&list, weights)?,
    );
    if selected.summary() != expected.summary() {
        return wrong("the summary of selected rows");
    }
    let pairs: [(&dyn Data<_>, &dyn Data<_>, _); 2] = [
        (own, same_rows, "rows"),
        (&*selected, &*expected, "selected rows"),
    ];
    for (own, other, what) in pairs {
        let (n, mut loaded) = (other.len(), [Rows::default(), Rows::default()]);
        if own.len() != n {
            return wrong(&format!("the number of {what}"));
        }
        for from in (0..n).step_by(LOOKED_AT) {
            let range = from..(from + LOOKED_AT).min(n);
            own.load(range.clone(), &frame, &mut loaded[0])?;
            other.load(range, &frame, &mut loaded[1])?;
            if let Some(i) = differing(&loaded) {
                return wrong(&format!("{what}: loaded row {}", from + i));
            }
        }
        let list: Vec<usize> = (0..n.min(LOOKED_AT)).map(|i| (5 * i + 1) % n).collect();
        own.gather(&list, &frame, &mut loaded[0])?;
        other.gather(&list, &frame, &mut loaded[1])?;
        if let Some(i) = differing(&loaded) {
            return wrong(&format!("{what}: gathered row {}", list[i]));
        }
        if let Some(i) = (0..n).find(|&i| own.weight(i) != other.weight(i)) {
            return wrong(&format!("{what}: the weight of row {i}"));
        }
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
        let (a, b) = (estimator.fit(own)?, estimator.fit(same_rows)?);
        same::<D, T::Float, _, _>((&a, &*a.model), (&b, &*b.model), name)?;
        let of = format!("{name}: what the model predicts");
        if a.model.predict(own)? != b.model.predict(same_rows)? {
            return wrong(&of);
        }
    }
    Ok(())
}

/// The first row in which two blocks differ.
fn differing<F: Float>([a, b]: &[Rows<F>; 2]) -> Option<usize> {
    if a.len() != b.len() {
        return Some(a.len().min(b.len()));
    }
    (0..a.len()).find(|&i| a.to_centre(i) != b.to_centre(i) || a.weight(i) != b.weight(i))
}
