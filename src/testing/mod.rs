//! The laws that stages keep, to hold a stage of your own against.
//!
//! Each function runs a stage many times on all rows of your data, so give it some hundreds. It returns [`Error::Stage`] with
//! the law that is broken. Results depend on the data and the stage alone: randomness comes from fixed seeds. They look for
//! mistakes; they prove nothing.
//!
//! ```
//! use coremix::prelude::*;
//! use coremix::{datasets::Birch, testing};
//!
//! let birch = Birch::grid(10).generate::<f64>(1)?;
//! let data = Dense::new(birch.points.view())?;
//! testing::coreset(&Lightweight::new(50), &data)?;
//! testing::seeder(&KMeansPlusPlus::default(), &data, 5)?;
//! testing::e_step(&Neighborhood::default(), &data, 5)?;
//! testing::family(&Gaussian::new(Covariance::Diagonal), &data, 5)?;
//! # Ok::<(), Error>(())
//! ```

mod coreset;
mod data;
mod family;
mod seeder;
mod trial;

pub use coreset::coreset;
pub use data::data;
pub use family::family;
pub use seeder::seeder;
pub use trial::e_step;

use crate::base::error::{Error, Result, ensure};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::stage;
use crate::data::{Data, Frame, Rows};
use ndarray::Array2;

/// Rows that the direct checks look at.
const LOOKED_AT: usize = 300;

/// A law that the stage `S` broke.
fn broken<S: ?Sized>(what: impl Into<String>) -> Error {
    Error::stage(stage::name::<S>(), what)
}

/// An error of the stage `S` that says what is wrong, unless the law holds.
fn law<S: ?Sized>(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    ensure(holds, || broken::<S>(what()))
}

fn same_on_threads<T: Send>(
    work: impl Fn() -> Result<T> + Sync,
    same: impl Fn(&T, &T, &str) -> Result<()>,
) -> Result<()> {
    let once = work()?;
    for threads in [1, 2, 3] {
        let again = parallel::with_threads(threads, &work)?;
        same(&once, &again, &format!("on {threads} threads"))?;
    }
    Ok(())
}

/// How much of itself a sum may be off by.
fn tolerance<F: Float>() -> f64 {
    if F::EPSILON < 1e-10 { 1e-9 } else { 1e-6 }
}

/// Rows with other weights: every third one 0, the others larger and smaller.
fn reweighted<'a, F: Float>(data: &'a dyn Data<F>) -> Result<Box<dyn Data<F> + 'a>> {
    let rows: Vec<usize> = (0..data.len()).collect();
    let weight = |&n: &usize| match n % 3 {
        2 => 0.0,
        _ => data.weight(n) * (1 + n % 4) as f64,
    };
    data.select(&rows, rows.iter().map(weight).collect())
}

fn coordinates<F: Float>(data: &dyn Data<F>, frame: &Frame<F>) -> Result<Array2<f64>> {
    let mut rows = Rows::default();
    data.load(0..data.len(), frame, &mut rows)?;
    let centres: Vec<_> = (0..rows.len()).map(|i| rows.coordinates(i)).collect();
    let shape = (rows.len(), frame.dim());
    Ok(Array2::from_shape_fn(shape, |(i, j)| {
        centres[i][j].to_f64()
    }))
}

/// Steps of EM for unit tests. A fit would compile the driver for each family of theirs.
#[cfg(test)]
pub(crate) mod stepped {
    use crate::base::cancel::Watch;
    use crate::base::error::Result;
    use crate::base::float::Float;
    use crate::base::rng::Rng;
    use crate::data::{Data, Rows, View};
    use crate::e_step::{EStep, Exhaustive};
    use crate::m_step::{MStep, Moments};
    use crate::model::Mixture;
    use crate::model::block::Block;
    use crate::model::posterior::{self, Likelihood};
    use crate::seed::Seeds;

    /// A model from the first k rows, and the responsibilities of all rows.
    pub(crate) struct Stepped<F: Float, M: MStep<F>> {
        pub(crate) family: M,
        pub(crate) model: M::Model,
        pub(crate) rows: Rows<F>,
        pub(crate) block: Block<F>,
    }

    impl<F: Float, M: MStep<F>> Stepped<F, M> {
        pub(crate) fn new(family: M, data: &dyn Data<F>, k: usize) -> Self {
            let frame = data.frame();
            let first: Vec<usize> = (0..k).collect();
            let seeds = Seeds::at_rows(View::new(data, &frame), &first, 0).unwrap();
            let started = family.start(seeds.centres, frame, data, None).unwrap();
            let mut rows = Rows::default();
            let frame = started.model.frame();
            data.load(0..data.len(), frame, &mut rows).unwrap();
            let mut of_all = Self {
                family,
                model: started.model,
                rows,
                block: Block::new(k, k),
            };
            let first = of_all.search();
            if of_all.family.needs().searches_first {
                of_all.family.calibrate(&mut of_all.model, &first);
                of_all.search();
            }
            of_all
        }

        pub(crate) fn search(&mut self) -> Likelihood {
            let model = &self.model;
            let rng = &mut Rng::from_seed(1);
            let search = Exhaustive::all().begin(model, None, rng).unwrap();
            self.block.reset(self.rows.len(), &[]);
            search.search(model, &self.rows, &mut self.block, rng);
            posterior::normalise(&self.rows, &mut self.block, model.log_joint())
        }

        pub(crate) fn sums(&self, block: &Block<F>) -> Moments {
            let mut sums = self.family.statistics(&self.model);
            self.family
                .accumulate(&self.rows, block, &self.model, &mut sums);
            sums
        }

        pub(crate) fn update(&mut self, watch: Watch<'_>) -> Result<()> {
            let sums = self.sums(&self.block);
            self.family.update(sums, &mut self.model, false, watch)
        }
    }
}
