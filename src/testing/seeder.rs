//! The laws of seeders.

use super::{broken, coordinates, law, reweighted, same_on_threads};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::{Centres, Data, View};
use crate::seed::{Seeder, enough_rows};

/// Seeders: `k` finite seeds, the same for the same seed on any number of threads, and none at a row of weight 0.
///
/// # Errors
/// [`Error::Stage`](crate::Error::Stage) with the law; what the seeder returns.
pub fn seeder<F: Float, S: Seeder<F>>(seeder: &S, data: &dyn Data<F>, k: usize) -> Result<()> {
    const SEEDS: u64 = 20;

    let other = reweighted(data)?;
    for data in [data, &*other] {
        enough_rows(data, k, "data")?;
        let frame = data.frame();
        let values = coordinates(data, &frame)?;
        let choose = |seed| -> Result<Centres<F>> {
            let seeds = seeder.seed(View::new(data, &frame), k, &mut Rng::from_seed(seed))?;
            seeds.check(k, frame.dim()).map_err(broken::<S>)?;
            Ok(seeds.centres)
        };
        let same = |a: &Centres<F>, b: &Centres<F>, case: &str| {
            law::<S>(a == b, || {
                format!("{case}: the same seed chose other seeds")
            })
        };
        for seed in 0..SEEDS {
            let seeds = choose(seed)?;
            same(&seeds, &choose(seed)?, "again")?;
            for c in 0..k {
                let seed: Vec<f64> = seeds.row(c).iter().map(|z| z.to_f64()).collect();
                let here = |n: &usize| values.row(*n).iter().eq(&seed[..frame.dim()]);
                let mut rows = (0..data.len()).filter(here).peekable();
                if let Some(&row) = rows.peek() {
                    let has_weight = rows.any(|n| data.weight(n) > 0.0);
                    law::<S>(has_weight, || format!("row {row} of weight 0 is seed {c}"))?;
                }
            }
        }
        same_on_threads(|| choose(0), same)?;
    }
    Ok(())
}
