//! The laws of coresets.

use super::{broken, coordinates, law, reweighted, same_on_threads};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::coreset::{Coreset, Subset};
use crate::data::{Data, View};

/// Coresets: what they choose is sound and the same for the same seed, and rows of weight 0 are never chosen. On average
/// over seeds, weighted sums over the coreset are those over all rows: of 1, of every eighth row alone, of every coordinate
/// and its square. The data is also tried with weights of many sizes.
///
/// # Errors
/// [`Error::Stage`](crate::Error::Stage) with the law; what the coreset returns.
pub fn coreset<F: Float, C: Coreset<F>>(coreset: &C, data: &dyn Data<F>) -> Result<()> {
    coreset_on(coreset, data)?;
    coreset_on(coreset, &*reweighted(data)?)
}

fn coreset_on<F: Float, C: Coreset<F>>(coreset: &C, data: &dyn Data<F>) -> Result<()> {
    /// Coresets that are drawn, and how many standard errors their mean may be off.
    const SEEDS: u64 = 300;
    const ERRORS: f64 = 6.0;

    let frame = data.frame();
    let draw = |seed| -> Result<Option<Subset>> {
        let subset = coreset.sample(View::new(data, &frame), &mut Rng::from_seed(seed))?;
        if let Some(subset) = &subset {
            subset.check(data.len()).map_err(broken::<C>)?;
            let light = subset.rows.iter().find(|n| data.weight(**n) <= 0.0);
            let what = || format!("row {} of weight 0 was chosen", light.unwrap_or(&0));
            law::<C>(light.is_none(), what)?;
        }
        Ok(subset)
    };
    let same = |a: &Option<Subset>, b: &Option<Subset>, case: &str| {
        let what = || format!("{case}: the same seed chose other rows, or weights");
        law::<C>(a == b, what)
    };
    same_on_threads(|| draw(0), same)?;
    if draw(0)?.is_none() {
        return Ok(());
    }
    // The functions that are summed: 1, every eighth row, coordinates and their squares.
    let values = coordinates(data, &frame)?;
    let d = values.ncols();
    let sums = |rows: &[usize], weight: &dyn Fn(usize) -> f64| {
        let mut sums = vec![0.0; 9 + 2 * d];
        for (i, &n) in rows.iter().enumerate() {
            let w = weight(i);
            sums[0] += w;
            sums[1 + n % 8] += w;
            for (j, z) in values.row(n).iter().enumerate() {
                sums[9 + j] += w * z;
                sums[9 + d + j] += w * (z * z);
            }
        }
        sums
    };
    let all_rows: Vec<usize> = (0..data.len()).collect();
    let expected = sums(&all_rows, &|n| data.weight(n));
    let mut first = vec![0.0; expected.len()];
    let mut second = vec![0.0; expected.len()];
    for seed in 0..SEEDS {
        let Some(subset) = draw(seed)? else {
            return Err(broken::<C>("some seeds choose rows, and others all"));
        };
        let sums = sums(&subset.rows, &|i| subset.weights[i]);
        for (f, (sum, expected)) in sums.iter().zip(&expected).enumerate() {
            first[f] += (sum - expected) / SEEDS as f64;
            second[f] += (sum - expected).powi(2) / SEEDS as f64;
        }
    }
    let name = |f| match f {
        0 => "weights".to_owned(),
        1..9 => format!("weights of every eighth row from row {} on", f - 1),
        _ if f < 9 + d => format!("weighted coordinates {}", f - 9),
        _ => format!("weighted squares of coordinate {}", f - 9 - d),
    };
    for (f, (off, square)) in first.iter().zip(&second).enumerate() {
        let error = ((square - off * off).max(0.0) / SEEDS as f64).sqrt();
        let near = off.abs() <= ERRORS * error + 1e-9 * expected[0].abs();
        law::<C>(near, || {
            let summed = name(f);
            format!(
                "the sum of the {summed} is off by {off:e} on average over {SEEDS} seeds (standard error {error:e})"
            )
        })?;
    }
    Ok(())
}
