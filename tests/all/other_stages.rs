//! Coresets, seeders and searches from outside that break the laws of `coremix::testing`: these find it.

use crate::stages::{points, refused};
use coremix::coreset::{Coreset, Subset};
use coremix::costs::{Cost, OwnCost};
use coremix::data::{Rows, View};
use coremix::e_step::{EStep, Search};
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::{Block, Rng, Stage};
use coremix::{Float, testing};

/// Every other row, with its own weight or with twice as much.
#[derive(Clone, Copy, Debug)]
struct Half {
    factor: f64,
    also_weight_0: bool,
}

impl Stage for Half {}

impl<F: Float> Coreset<F> for Half {
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>> {
        let data = view.data;
        let chosen =
            |n: &usize| rng.uniform() < 0.5 && (self.also_weight_0 || data.weight(*n) > 0.0);
        let rows: Vec<usize> = (0..data.len()).filter(chosen).collect();
        let weights = rows.iter().map(|n| data.weight(*n) * self.factor).collect();
        let evaluations = 0;
        Ok(Some(Subset {
            rows,
            weights,
            evaluations,
        }))
    }
}

/// The first rows, whatever their weights.
#[derive(Clone, Copy, Debug)]
struct First;

impl Stage for First {}

impl<F: Float> Seeder<F> for First {
    fn seed(&self, view: View<'_, F>, k: usize, _: &mut Rng) -> Result<Seeds<F>> {
        Seeds::at_rows(view, &(0..k).collect::<Vec<_>>(), 0)
    }
}

/// A component at random, whatever the row had before: not by `keep_best`, which keeps what is better, but on its own.
#[derive(Clone, Copy, Debug, Default)]
struct Drifting {
    passes: u64,
}

impl Stage for Drifting {}

impl<F: Float> EStep<F> for Drifting {
    fn begin(
        &self,
        _: &dyn Mixture<F>,
        saved: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let passes = saved.and_then(|bytes| bytes.try_into().ok());
        let passes = passes.map_or(0, u64::from_le_bytes);
        Ok(Box::new(Self { passes }))
    }
}

impl<F: Float> Search<F> for Drifting {
    fn width(&self) -> usize {
        1
    }

    /// Blocks that depend on who counts: the number of passes is no state of a row.
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let k = model.components() as u32;
        for i in 0..rows.len() {
            let id = (block.row(i) as u64 + self.passes) as u32 % k;
            block.keep_best(i, model, rows, &[id]);
        }
    }

    fn end_pass(&mut self) {
        self.passes += 1;
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(self.passes.to_le_bytes().to_vec())
    }
}

/// Costs that are worse than those of a model by a factor.
struct Worse<'a, F: Float>(Cost<'a, F>, f64);

impl<F: Float> OwnCost<F> for Worse<'_, F> {
    fn components(&self) -> usize {
        self.0.components()
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        self.0.some(rows, i, ids, out);
        for cost in out {
            *cost = F::from_f64(cost.to_f64() * self.1);
        }
    }
}

/// All components, by scores that get worse with each pass: those of the model would never lower the free energy.
#[derive(Clone, Copy, Debug, Default)]
struct Falling {
    passes: u64,
}

impl Stage for Falling {}

impl<F: Float> EStep<F> for Falling {
    fn begin(
        &self,
        _: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        Ok(Box::new(Self::default()))
    }
}

impl<F: Float> Search<F> for Falling {
    fn width(&self) -> usize {
        1
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let ids: Vec<u32> = (0..model.components() as u32).collect();
        let worse = Worse(model.cost(), (self.passes + 1) as f64);
        for i in 0..rows.len() {
            block.keep_best(i, Cost::Own(&worse), rows, &ids);
        }
    }

    fn end_pass(&mut self) {
        self.passes += 1;
    }
}

#[test]
fn the_laws_find_other_stages_that_break_them() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    let half = |factor, also_weight_0| Half {
        factor,
        also_weight_0,
    };
    testing::coreset(&half(2.0, false), &data).unwrap();
    let off = testing::coreset(&half(1.0, false), &data);
    refused(off, "Half", "the sum of the weights is off");
    let zero = testing::coreset(&half(2.0, true), &data);
    refused(zero, "Half", "of weight 0 was chosen");
    testing::coreset(&Lightweight::new(200), &data).unwrap();
    testing::coreset(&UniformCoreset::new(200), &data).unwrap();
    let first = testing::seeder(&First, &data, 5);
    refused(first, "First", "row 2 of weight 0 is seed 2");
    testing::seeder(&KMeansPlusPlus::default(), &data, 5).unwrap();
    testing::seeder(&AfkMc2::default(), &data, 5).unwrap();
    // A search that keeps what is better never lowers the free energy, however it finds it.
    testing::e_step(&Drifting::default(), &data, 5).unwrap();
    let falling = testing::e_step(&Falling::default(), &data, 5);
    refused(falling, "Falling", "with the model fixed");
    testing::e_step(&Neighborhood::new(2, 3), &data, 5).unwrap();
    testing::e_step(&Bounded::default(), &data, 5).unwrap();
}
