//! A search of one's own: the components a row has, and some at random.

use coremix::data::Rows;
use coremix::datasets::Birch;
use coremix::e_step::EStep;
use coremix::prelude::*;
use coremix::{Block, Float, Rng, Stage, testing};

/// Supports of `c_prime` components. Each search compares them with `looks` others, drawn anew for every row.
#[derive(Clone, Copy, Debug)]
struct RandomLooks {
    c_prime: usize,
    looks: usize,
}

impl Stage for RandomLooks {}

impl<F: Float, M: Mixture<F>> EStep<F, M> for RandomLooks {
    type State = ();
    /// Numbers of components, and memory for their scores.
    type Worker = (Vec<u32>, Vec<F>);

    fn width(&self, k: usize) -> usize {
        self.c_prime.min(k)
    }

    fn search(
        &self,
        (): &(),
        model: &M,
        rows: &Rows<F>,
        block: &mut Block<F>,
        rng: &mut Rng,
        (ids, scratch): &mut Self::Worker,
    ) {
        for i in 0..rows.len() {
            rng.distinct(ids, self.looks.max(self.c_prime), model.components());
            block.keep_best(i, model, rows, ids, scratch);
        }
    }
}

fn main() -> Result<()> {
    let birch = Birch::grid(100).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;
    let looks = RandomLooks {
        c_prime: 3,
        looks: 5,
    };
    testing::e_step(&looks, &data, 25)?;
    println!("the laws of searches hold");
    let own = algorithms::gmm(25).e_step(looks).build()?.fit(&data)?;
    let all = algorithms::gmm(25)
        .e_step(Exhaustive::truncated(3))
        .build()?
        .fit(&data)?;
    for (name, fit) in [("random looks", own), ("all components", all)] {
        let (error, cost) = (
            fit.model.quantization_error(&data)?,
            fit.report.evaluations.search,
        );
        println!("{name}: quantization error {error:.4e}, {cost} distance evaluations");
    }
    Ok(())
}
