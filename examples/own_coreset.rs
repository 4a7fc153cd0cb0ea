//! A coreset of one's own: every row for itself, with a chance in proportion to its weight (Poisson sampling).

use coremix::coreset::{Coreset, Subset};
use coremix::data::View;
use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::stage::{Rng, Stage};
use coremix::{Float, testing};

/// About `size` rows: row n is chosen with probability p = min(1, size w / W), and stands for w / p.
#[derive(Clone, Copy, Debug)]
struct Poisson {
    size: f64,
}

impl Stage for Poisson {}

impl<F: Float> Coreset<F> for Poisson {
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>> {
        let data = view.data;
        let (mut rows, mut weights) = (Vec::new(), Vec::new());
        for n in 0..data.len() {
            let p = (self.size * data.weight(n) / data.summary().total_weight).min(1.0);
            if rng.uniform() < p {
                rows.push(n);
                weights.push(data.weight(n) / p);
            }
        }
        let evaluations = 0;
        Ok(Some(Subset {
            rows,
            weights,
            evaluations,
        }))
    }
}

fn main() -> Result<()> {
    let birch = Birch::grid(100).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;
    let poisson = Poisson { size: 500.0 };
    testing::coreset(&poisson, &data)?;
    println!("the laws of coresets hold");
    let fit = algorithms::fast(25).coreset(poisson).fit(&data)?;
    println!(
        "k-means of 25 clusters, from a coreset of {} rows:",
        fit.report.coreset_size
    );
    println!(
        "quantization error {:.4e}",
        fit.model.quantization_error(&data)?
    );
    Ok(())
}
