//! Rows that come once, from an iterator whose errors are of its own type: a coreset of them is kept, and the model fitted to it.

use coremix::coreset::{OnePass, Stopped};
use coremix::prelude::*;
use std::num::ParseFloatError;

/// Draws of the coreset.
const DRAWS: usize = 1_000;

/// The centres of lines with two numbers each.
fn centres(lines: impl Iterator<Item = String>) -> Result<Vec<f64>, Stopped<ParseFloatError>> {
    let rows = lines.map(|line| {
        line.split(' ')
            .map(str::parse)
            .collect::<Result<Vec<f64>, _>>()
    });
    let mut coreset = OnePass::new(2, DRAWS, 1)?;
    coreset.push_all(rows)?;
    let (rows, weights) = coreset.finish()?;
    let fit = algorithms::k_means(3).fit(&Dense::weighted(&rows, &weights)?)?;
    Ok(fit.model.means().iter().copied().collect())
}

fn main() -> Result<(), Stopped<ParseFloatError>> {
    let mut rng = coremix::stage::Rng::from_seed(5);
    let mut line = |i: usize| format!("{} {}", 9 * (i % 3), rng.normal());
    let lines: Vec<String> = (0..100_000).map(&mut line).collect();
    println!(
        "centres of {} lines: {:.1?}",
        lines.len(),
        centres(lines.iter().cloned())?
    );
    let broken = lines.into_iter().chain(["1 or 2".to_owned()]);
    if let Err(Stopped::Rows(error)) = centres(broken) {
        println!("the last line: {error}");
    }
    Ok(())
}
