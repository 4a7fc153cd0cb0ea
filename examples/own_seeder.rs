//! A seeder of one's own: the farthest row is the next seed (Gonzalez 1985).

use coremix::data::View;
use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::{Rng, Stage};
use coremix::{Float, testing};

/// The first seed is drawn by weight; each of the others is the row farthest from those before.
#[derive(Clone, Copy, Debug)]
struct Farthest;

impl Stage for Farthest {}

impl<F: Float> Seeder<F> for Farthest {
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let data = view.data;
        let rows = view.load(0..data.len())?;
        let there: Vec<usize> = (0..data.len()).filter(|&n| data.weight(n) > 0.0).collect();
        let mut left = rng.uniform() * data.summary().total_weight;
        let below = |n: &&usize| {
            left -= data.weight(**n);
            left < 0.0
        };
        let mut chosen = vec![*there.iter().find(below).unwrap_or(&there[0])];
        let mut nearest = vec![F::INFINITY; data.len()];
        while chosen.len() < k {
            rows.lower_to_distances(0, &rows.coordinates(chosen[chosen.len() - 1]), &mut nearest);
            let far =
                |a: &&usize, b: &&usize| nearest[**a].to_f64().total_cmp(&nearest[**b].to_f64());
            chosen.push(*there.iter().max_by(far).unwrap_or(&there[0]));
        }
        let evaluations = (data.len() * (k - 1)) as u64;
        Seeds::at_rows(view, &chosen, evaluations)
    }
}

fn main() -> Result<()> {
    let birch = Birch::grid(100).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;
    testing::seeder(&Farthest, &data, 25)?;
    println!("the laws of seeders hold");
    let own = algorithms::k_means(25).seeder(Farthest).fit(&data)?;
    let known = algorithms::k_means(25).fit(&data)?;
    for (name, fit) in [("farthest rows", own), ("k-means++", known)] {
        let error = fit.model.quantization_error(&data)?;
        println!("k-means from {name}: quantization error {error:.4e}");
    }
    Ok(())
}
