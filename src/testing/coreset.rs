//! The laws of coresets.

use super::{THREADS, broken, coordinates, reweighted};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::coreset::{Coreset, Subset};
use crate::data::Data;

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
        let subset = coreset.sample(data, &frame, &mut Rng::from_seed(seed))?;
        if let Some(subset) = &subset {
            subset.check(data.len()).map_err(broken::<C>)?;
            if let Some(row) = subset.rows.iter().find(|n| data.weight(**n) <= 0.0) {
                return Err(broken::<C>(format!("row {row} of weight 0 was chosen")));
            }
        }
        Ok(subset)
    };
    let once = draw(0)?;
    for threads in THREADS {
        if parallel::with_threads(threads, || draw(0))? != once {
            return Err(broken::<C>("the same seed chose other rows, or weights"));
        }
    }
    if once.is_none() {
        return Ok(());
    }
    // What is summed: (n, functions).
    let values = coordinates(data, &frame)?;
    let of_row = |n: usize| {
        let group = (0..8).map(move |g| if n % 8 == g { 1.0 } else { 0.0 });
        let row = values.row(n);
        let squares = row.to_vec().into_iter().map(|z| z * z);
        let all = std::iter::once(1.0).chain(group).chain(row.to_vec());
        all.chain(squares).collect::<Vec<f64>>()
    };
    let sum = |rows: &[usize], weight: &dyn Fn(usize) -> f64| {
        let mut sums = vec![0.0; 9 + 2 * values.ncols()];
        for (i, &n) in rows.iter().enumerate() {
            for (sum, value) in sums.iter_mut().zip(of_row(n)) {
                *sum += weight(i) * value;
            }
        }
        sums
    };
    let all: Vec<usize> = (0..data.len()).collect();
    let expected = sum(&all, &|n| data.weight(n));
    let (mut first, mut second) = (vec![0.0; expected.len()], vec![0.0; expected.len()]);
    for seed in 0..SEEDS {
        let Some(subset) = draw(seed)? else {
            return Err(broken::<C>("some seeds choose rows, and others all"));
        };
        let sums = sum(&subset.rows, &|i| subset.weights[i]);
        for (f, (sum, expected)) in sums.iter().zip(&expected).enumerate() {
            first[f] += (sum - expected) / SEEDS as f64;
            second[f] += (sum - expected).powi(2) / SEEDS as f64;
        }
    }
    let what = |f| match f {
        0 => "weights".to_owned(),
        1..9 => format!("weights of every eighth row from row {} on", f - 1),
        _ if f < 9 + values.ncols() => format!("weighted coordinates {}", f - 9),
        _ => format!("weighted squares of coordinate {}", f - 9 - values.ncols()),
    };
    let size = expected[0].abs();
    for (f, (off, square)) in first.iter().zip(&second).enumerate() {
        let error = ((square - off * off).max(0.0) / SEEDS as f64).sqrt();
        if off.abs() > ERRORS * error + 1e-9 * size {
            return Err(broken::<C>(format!(
                "the sum of the {} is off by {off:e} on average over {SEEDS} seeds (standard error {error:e})",
                what(f)
            )));
        }
    }
    Ok(())
}
