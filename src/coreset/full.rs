//! No coreset: every row as it is.

use super::{Coreset, Subset};
use crate::data::{Data, Frame, Rows};
use crate::error::Result;
use crate::rng::Rng;
use crate::stage::Stage;

/// All rows with their own weights. Costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Full;

impl Stage for Full {
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }
}

impl<R: Rows> Coreset<R> for Full {
    fn sample(
        &self,
        _: &dyn Data<Rows = R>,
        _: &Frame<R::Float>,
        _: &mut Rng,
    ) -> Result<Option<Subset>> {
        Ok(None)
    }
}
