//! A search of one's own: the components a row has, and some at random.

use coremix::data::Rows;
use coremix::datasets::Birch;
use coremix::e_step::{EStep, Search};
use coremix::prelude::*;
use coremix::stage::{Block, Rng, Stage};
use coremix::{Float, testing};

/// Supports of `c_prime` components. Each search compares them with `random` others, drawn anew for every row.
#[derive(Clone, Copy, Debug)]
struct RandomSearch {
    c_prime: usize,
    random: usize,
}

impl Stage for RandomSearch {}

impl<F: Float> EStep<F> for RandomSearch {
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let c_prime = self.c_prime.min(model.components());
        Ok(Box::new(Self { c_prime, ..*self }))
    }
}

impl<F: Float> Search<F> for RandomSearch {
    fn width(&self) -> usize {
        self.c_prime
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng) {
        let mut ids = Vec::new();
        for i in 0..rows.len() {
            rng.distinct(&mut ids, self.random.max(self.c_prime), model.components());
            block.keep_best(i, model, rows, &ids);
        }
    }
}

fn main() -> Result<()> {
    let birch = Birch::grid(100).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;
    let e_step = RandomSearch {
        c_prime: 3,
        random: 5,
    };
    testing::e_step(&e_step, &data, 25)?;
    println!("the laws of searches hold");
    let own = algorithms::gmm(25).e_step(e_step).fit(&data)?;
    let all = algorithms::gmm(25)
        .e_step(Exhaustive::truncated(3))
        .fit(&data)?;
    for (name, fit) in [("random components", own), ("all components", all)] {
        let (error, cost) = (
            fit.model.quantization_error(&data)?,
            fit.report.evaluations.search,
        );
        println!("{name}: quantization error {error:.4e}, {cost} distance evaluations");
    }
    Ok(())
}
