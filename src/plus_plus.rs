//! The seeds of algorithms by name.

use crate::coreset::Lightweight;
use crate::data::{Data, Frame, Rows};
use crate::e_step::Bounded;
use crate::error::Result;
use crate::fit::{Clusterer, MeansOf};
use crate::rng::Rng;
use crate::seed::{HierarchicalKMeansPlusPlus, KMeansPlusPlus, Seeder, Seeds};
use crate::stage::Stage;

/// Seeds of k-means++, or what k-means made of such: one type, so that each algorithm is compiled once.
#[derive(Clone, Debug)]
pub(crate) enum PlusPlus {
    Plain(KMeansPlusPlus),
    Refined(Box<MeansOf<Fast>>),
}

pub(crate) type Fast = Clusterer<Lightweight, HierarchicalKMeansPlusPlus, Bounded>;

impl Stage for PlusPlus {
    fn check(&self, clusters: usize) -> Result<()> {
        match self {
            Self::Plain(seeder) => seeder.check(clusters),
            Self::Refined(seeder) => seeder.check(clusters),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Plain(seeder) => seeder.name(),
            Self::Refined(seeder) => seeder.name(),
        }
    }

    fn settings(&self) -> String {
        match self {
            Self::Plain(seeder) => seeder.settings(),
            Self::Refined(seeder) => seeder.settings(),
        }
    }
}

impl<R: Rows> Seeder<R> for PlusPlus {
    fn seed(
        &self,
        data: &dyn Data<Rows = R>,
        frame: &Frame<R::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<R::Float>> {
        match self {
            Self::Plain(seeder) => seeder.seed(data, frame, k, rng),
            Self::Refined(seeder) => seeder.seed(data, frame, k, rng),
        }
    }
}
