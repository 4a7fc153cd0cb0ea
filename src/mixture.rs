//! A fitted model: what every component family offers.

use crate::block::Block;
use crate::data::{Centres, Data, Frame, Rows, Scores};
use crate::error::{Error, Result, positive};
use crate::float::Float;
use crate::parallel;
use crate::posterior::{self, LogJoint};
use crate::search::{self, Exact, Together};
use ndarray::{Array1, Array2};

/// A mixture model fitted to data of type `D`; usable as a trait object.
///
/// The questions a user asks of a model are answered over all components and all rows, exactly, in
/// blocks (nothing of size n x k is stored unless it is the answer), with their weights.
pub trait Mixture<D: Data>: Scores<D::Rows> + Send {
    /// The means, in the coordinates of the [frame](Self::frame).
    fn centres(&self) -> &Centres<D::Float>;

    /// The coordinates of the model (E24).
    fn frame(&self) -> &Frame<D::Float>;

    /// From scores to log-joints (E1).
    fn log_joint(&self) -> LogJoint;

    /// What the free energy has besides the points, in nats: 0, unless the model has distributions of its own. Then
    /// it is minus their divergence from the prior (E30).
    fn prior_terms(&self) -> f64 {
        0.0
    }

    /// The component with the largest posterior for every row (n); ties go to the lower index.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) if the data has another number of columns than the model;
    /// [`Error::BasisMismatch`](crate::Error::BasisMismatch) for a sketch in other coordinates.
    fn predict(&self, data: &D) -> Result<Array1<u32>> {
        let blocks = by_blocks(self, data, |rows| best(self, rows, 1).supports)?;
        Ok(blocks.concat().into())
    }

    /// The posteriors of all components: (n, k), each row sums to 1.
    ///
    /// $$p(c \mid y_n, \theta) = \frac{p(c, y_n \mid \theta)}{\sum_{c' = 1}^{k} p(c', y_n \mid \theta)}$$
    ///
    /// which is (E2) with all components in the support.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn responsibilities(&self, data: &D) -> Result<Array2<D::Float>> {
        let blocks = by_blocks(self, data, |rows| {
            rounded(&all::<D, Self>(self, rows).responsibilities)
        })?;
        Ok(table(blocks, data.len(), self.components()))
    }

    /// The `c_prime` likeliest components of every row, best first, and their posteriors renormalised over
    /// them: (n, c_prime) each. `c_prime` larger than the number of components is clamped.
    ///
    /// $$q_{nc} = \frac{p(c, y_n \mid \theta)}{\sum_{c' \in K(n)} p(c', y_n \mid \theta)}, \qquad c \in K(n)$$
    ///
    /// with $K(n)$ the components returned for row $n$ (E2).
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) if `c_prime` is 0.
    fn truncated_responsibilities(
        &self,
        data: &D,
        c_prime: usize,
    ) -> Result<(Array2<u32>, Array2<D::Float>)> {
        positive("c_prime", c_prime)?;
        let width = c_prime.min(self.components());
        let blocks = by_blocks(self, data, |rows| {
            let mut block = best(self, rows, width);
            posterior::normalise(rows, &mut block, self.log_joint());
            (block.supports, rounded(&block.responsibilities))
        })?;
        let (supports, responsibilities) = blocks.into_iter().unzip();
        Ok((
            table(supports, data.len(), width),
            table(responsibilities, data.len(), width),
        ))
    }

    /// The log-densities of a block of rows, in nats, for densities in the data's own unit: what
    /// [`log_densities`](Self::log_densities), [`log_likelihood`](Self::log_likelihood) and [`score`](Self::score)
    /// are made of. If labels are asked for, it leaves what [`predict`](Self::predict) says of the rows.
    #[doc(hidden)]
    fn judge(&self, rows: &D::Rows, labels: Option<&mut [u32]>) -> Vec<f64> {
        let log_joint = self.log_joint();
        let found = search::together(self, log_joint.beta, rows, &mut Exact::default());
        if let Some(labels) = labels {
            for (label, found) in labels.iter_mut().zip(&found) {
                *label = found.label;
            }
        }
        let known = log_joint.alpha + rows.entries() as f64 * log_joint.gamma;
        let density = |found: &Together| known - log_joint.beta * found.best + found.sum.ln();
        found.iter().map(density).collect()
    }

    /// Whether the likeliest component of a row is the one with the nearest mean, whatever the row.
    #[doc(hidden)]
    fn likeliest_is_nearest(&self) -> bool {
        false
    }

    /// How often [`judge`](Self::judge) looks at every component of a row.
    #[doc(hidden)]
    fn looks(&self) -> u64 {
        1
    }

    /// The log-density of every row (n), in nats, for densities in the data's own unit; weights do not enter.
    ///
    /// $$\ln p(y_n \mid \theta) = \ln \sum_{c=1}^{k} p(c, y_n \mid \theta)$$
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn log_densities(&self, data: &D) -> Result<Array1<f64>> {
        let blocks = by_blocks(self, data, |rows| self.judge(rows, None))?;
        Ok(blocks.concat().into())
    }

    /// The weighted log-likelihood over all components, in nats, for densities in the data's own unit.
    ///
    /// $$\sum_n w_n \ln p(y_n \mid \theta) = \sum_n w_n \ln \sum_{c=1}^{k} p(c, y_n \mid \theta)$$
    ///
    /// The free energy (E3) of any supports is at most this, if the model has parameters and no distribution over them.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn log_likelihood(&self, data: &D) -> Result<f64> {
        let blocks = by_blocks(self, data, |rows| weighted(rows, &self.judge(rows, None)))?;
        Ok(blocks.iter().sum())
    }

    /// Labels, quantization error and log-likelihood together, in fewer searches than one by one.
    ///
    /// # Errors
    /// As [`quantization_error`](Self::quantization_error).
    fn score(&self, data: &D) -> Result<Score> {
        let blocks = by_blocks(self, data, |rows| {
            let mut labels = vec![0; rows.len()];
            let densities = self.judge(rows, Some(&mut labels));
            let error = if self.likeliest_is_nearest() {
                error_of(self.centres(), rows, &labels)
            } else {
                quantization_error(self.centres(), rows)
            };
            (labels, error, weighted(rows, &densities))
        })?;
        Ok(Score {
            quantization_error: in_data_unit(self.frame(), blocks.iter().map(|block| block.1))?,
            log_likelihood: blocks.iter().map(|block| block.2).sum(),
            labels: blocks.into_iter().flat_map(|block| block.0).collect(),
        })
    }

    /// The weighted squared distance to the nearest mean, in the data's own unit, squared (E22).
    ///
    /// $$\Phi(\mu) = \sum_n w_n \min_c \lVert y_n - \mu_c \rVert^2$$
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`Error::Parameter`](crate::Error::Parameter) if the sum leaves the range of `f64`.
    fn quantization_error(&self, data: &D) -> Result<f64> {
        let blocks = by_blocks(self, data, |rows| quantization_error(self.centres(), rows))?;
        in_data_unit(self.frame(), blocks.into_iter())
    }
}

/// What [`Mixture::score`] finds on a data set, over all components.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// The likeliest component of each row (n).
    pub labels: Array1<u32>,
    /// $\sum_n w_n \min_c \lVert y_n - \mu_c \rVert^2$ (E22), in the data's own unit, squared.
    pub quantization_error: f64,
    /// $\sum_n w_n \ln p(y_n \mid \theta)$, in nats.
    pub log_likelihood: f64,
}

/// sum_n w_n min_c |z_n - mu_c|^2 of a block, in the unit of the frame. Where rows know only some of their
/// coordinates, these stand for all (E28).
fn quantization_error<R: Rows>(centres: &Centres<R::Float>, rows: &R) -> f64 {
    let block = best(centres, rows, 1);
    let squared = (0..rows.len()).map(|i| rows.weight(i) * block.scores(i)[0].to_f64());
    of_all_coordinates(squared.sum(), centres, rows)
}

/// The same where the nearest mean of each row is known.
fn error_of<R: Rows>(centres: &Centres<R::Float>, rows: &R, nearest: &[u32]) -> f64 {
    let mut squared = Vec::new();
    let of_row = |(i, id)| {
        rows.distances_to(i, centres, std::slice::from_ref(id), &mut squared);
        rows.weight(i) * squared[0].to_f64()
    };
    let known = nearest.iter().enumerate().map(of_row).sum();
    of_all_coordinates(known, centres, rows)
}

fn of_all_coordinates<R: Rows>(known: f64, centres: &Centres<R::Float>, rows: &R) -> f64 {
    known * (centres.dim() as f64 / rows.entries() as f64)
}

/// The quantization error of all blocks, in the data's own unit, squared.
fn in_data_unit<F: Float>(frame: &Frame<F>, blocks: impl Iterator<Item = f64>) -> Result<f64> {
    let error = frame.leave_square(blocks.sum());
    if error.is_finite() {
        return Ok(error);
    }
    let rule = "must be finite: divide the weights or the data by a constant";
    Err(Error::parameter("weighted squared distance", error, rule))
}

/// `work` on every block of rows, results in order.
fn by_blocks<D: Data, M: Mixture<D> + ?Sized, T: Send>(
    model: &M,
    data: &D,
    work: impl Fn(&D::Rows) -> T + Sync,
) -> Result<Vec<T>> {
    data.check(model.frame())?;
    let size = search::block_rows(model.components());
    Ok(parallel::map_blocks(data.len(), size, |_, range| {
        let mut rows = D::Rows::default();
        data.load(range, model.frame(), &mut rows);
        work(&rows)
    }))
}

/// The `width` best components of every row.
fn best<R: Rows, S: Scores<R> + ?Sized>(scorer: &S, rows: &R, width: usize) -> Block<R::Float> {
    let mut block = Block::new(scorer.components(), width);
    block.reset(rows.len(), &[]);
    search::best(scorer, rows, &mut block, &mut Exact::default());
    block
}

/// The best component of every row.
pub(crate) fn label<R: Rows, S: Scores<R> + ?Sized>(scorer: &S, rows: &R, labels: &mut [u32]) {
    labels.copy_from_slice(&best(scorer, rows, 1).supports);
}

/// The sum of some numbers, one per row, with the weights of the rows.
fn weighted<R: Rows>(rows: &R, values: &[f64]) -> f64 {
    let values = values.iter().enumerate();
    values.map(|(i, value)| rows.weight(i) * value).sum()
}

/// All components of every row, with their responsibilities.
fn all<D: Data, M: Mixture<D> + ?Sized>(model: &M, rows: &D::Rows) -> Block<D::Float> {
    let mut block = Block::new(model.components(), model.components());
    block.reset(rows.len(), &[]);
    search::all(
        model,
        model.log_joint().beta,
        rows,
        &mut block,
        &mut Exact::default(),
    );
    posterior::normalise(rows, &mut block, model.log_joint());
    block
}

/// Rows of `width` numbers, block by block, as one table (n, width).
fn table<T>(blocks: Vec<Vec<T>>, n: usize, width: usize) -> Array2<T> {
    let values = blocks.into_iter().flatten().collect();
    Array2::from_shape_vec((n, width), values).expect("n rows of `width` numbers")
}

/// Responsibilities in the type of the data.
fn rounded<F: Float>(responsibilities: &[f64]) -> Vec<F> {
    responsibilities.iter().map(|&q| F::from_f64(q)).collect()
}
