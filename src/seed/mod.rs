//! Stage 3, the seeds: where the components start.
//!
//! [`KMeansPlusPlus`] is the usual choice. [`AfkMc2`] is its published approximation for many clusters, and
//! [`HierarchicalKMeansPlusPlus`] one for any number of them. [`Uniform`] costs nothing, and [`Given`] takes what the user
//! has. [`MeansOf`](crate::MeansOf) takes the means of another fit. All read only the rows of the first phase.

mod afk_mc2;
mod given;
mod hierarchical;
mod k_means_plus_plus;
mod uniform;

pub use afk_mc2::AfkMc2;
pub use given::Given;
pub use hierarchical::HierarchicalKMeansPlusPlus;
pub(crate) use k_means_plus_plus::InColumns;
pub use k_means_plus_plus::KMeansPlusPlus;
pub use uniform::Uniform;

use crate::base::error::{Error, Result, ensure};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::sort;
use crate::base::stage::Stage;
use crate::data::{Centres, Data, Rows, View};

/// Start centres and what they cost.
#[derive(Clone, Debug)]
pub struct Seeds<F> {
    /// `k` centres in the coordinates of the frame.
    pub centres: Centres<F>,
    /// Distance evaluations spent on the choice.
    pub evaluations: u64,
}

impl<F: Float> Seeds<F> {
    /// Seeds at the given rows of the data.
    ///
    /// # Errors
    /// As [`Data::gather`].
    pub fn at_rows(view: View<'_, F>, rows: &[usize], evaluations: u64) -> Result<Self> {
        let mut block = Rows::default();
        view.data.gather(rows, view.frame, &mut block)?;
        let mut centres = Centres::with_capacity(rows.len(), view.data.dim());
        for i in 0..rows.len() {
            centres.push(&block.coordinates(i));
        }
        Ok(Self {
            centres,
            evaluations,
        })
    }

    /// Adds seeds until there are `k`, at rows drawn by weight that are not `taken`: where every row coincides with a seed, and
    /// always will, any others are as good.
    fn complete(
        mut self,
        view: View<'_, F>,
        taken: &[usize],
        k: usize,
        rng: &mut Rng,
    ) -> Result<Self> {
        if self.centres.len() < k {
            let rows = by_weight(view.data, taken, k - self.centres.len(), rng);
            let others = Self::at_rows(view, &rows, 0)?.centres;
            (0..others.len()).for_each(|c| self.centres.push(others.row(c)));
        }
        Ok(self)
    }

    /// Checks that there are `k` seeds of `d` coordinates; the error says what is wrong.
    pub(crate) fn check(&self, k: usize, d: usize) -> std::result::Result<(), String> {
        let number = self.centres.len();
        let dim = self.centres.dim();
        if number != k {
            return Err(format!(
                "{number} seeds for {k} clusters: each cluster needs one"
            ));
        }
        if dim != d {
            return Err(format!(
                "seeds of {dim} coordinates for data of {d}: they must be as many"
            ));
        }
        let finite = |c: &usize| self.centres.row(*c).iter().all(|x| x.is_finite());
        match (0..k).find(|c| !finite(c)) {
            Some(c) => Err(format!("seed {c} is not finite: all of it must be")),
            None => Ok(()),
        }
    }
}

/// A way to choose seeds.
///
/// Laws: a row of weight 0 is never chosen; weight w is as good as w copies.
///
/// `examples/own_seeder.rs` writes one; [`testing::seeder`](crate::testing::seeder) holds it against the laws.
#[diagnostic::on_unimplemented(
    note = "a seeder is one of `coremix::seed`, or a struct of yours that implements `Seeder<F>`: `examples/own_seeder.rs` writes one"
)]
pub trait Seeder<F: Float>: Stage + Send + Sync {
    /// Chooses `k` seeds; the data has at least `k` rows of positive weight.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] for given centres of another dimension.
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>>;
}

impl<F: Float, S: Seeder<F> + ?Sized> Seeder<F> for Box<S> {
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        (**self).seed(view, k, rng)
    }
}

pub(crate) fn enough_rows<F: Float>(
    data: &dyn Data<F>,
    k: usize,
    rows_of: &'static str,
) -> Result<()> {
    let rows = data.summary().rows;
    ensure(k <= rows, || Error::TooManyClusters {
        clusters: k,
        rows,
        rows_of,
    })
}

/// Weights added up, to draw from them by bisection, again and again.
struct Cumulated(Vec<f64>);

impl Cumulated {
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let cumulate = |weight| {
            sum += weight;
            sum
        };
        Self(weights.map(cumulate).collect())
    }

    fn total(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// A number in proportion to the weights; there must be a positive one.
    fn draw(&self, rng: &mut Rng) -> usize {
        let total = self.total();
        let u = rng.uniform() * self.total();
        // The first whose cumulated weight exceeds u: never one of weight 0.
        let n = self.0.partition_point(|&sum| sum <= u);
        if n < self.0.len() {
            n
        } else {
            // u rounded up to the total: the last one that adds to it.
            self.0.partition_point(|&sum| sum < total)
        }
    }
}

/// `count` distinct rows, drawn one after the other in proportion to the weights among the rows that are not
/// in `taken`; fewer if there are no more of positive weight.
///
/// The smallest of Exp(1) / w are such a draw (Efraimidis and Spirakis, Weighted random sampling with a
/// reservoir, 2006).
fn by_weight<F: Float>(
    data: &dyn Data<F>,
    taken: &[usize],
    count: usize,
    rng: &mut Rng,
) -> Vec<usize> {
    let mut taken = taken.to_vec();
    taken.sort_unstable();
    let mut keys: Vec<(f64, usize)> = Vec::new();
    for n in 0..data.len() {
        let weight = data.weight(n);
        if weight > 0.0 && taken.binary_search(&n).is_err() {
            keys.push((rng.exponential() / weight, n));
            // No key of every row is kept: rows may be more than fit in memory.
            if keys.len() >= 2 * count + 4_096 {
                sort::keep_least(&mut keys, count);
            }
        }
    }
    sort::keep_least(&mut keys, count);
    sort::by_value(&mut keys);
    keys.into_iter().map(|(_, n)| n).collect()
}
