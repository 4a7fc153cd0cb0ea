//! The BIRCH data: 25 clusters in two dimensions.

use super::Labelled;
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use ndarray::{Array2, Axis};

/// The BIRCH data of \[KM\]: 25 isotropic Gaussian clusters of standard deviation 1 in two dimensions.
///
/// ```
/// let birch = coremix::datasets::Birch::grid(100).generate::<f64>(1)?;
/// assert_eq!(birch.points.dim(), (2_500, 2));
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birch {
    per_cluster: usize,
    placement: Placement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Grid,
    Random,
}

/// Clusters per side of the grid.
const SIDE: usize = 5;

/// Distance of neighboring centres on the grid, in standard deviations.
const SPACING: f64 = 4.0 * std::f64::consts::SQRT_2;

impl Birch {
    /// Centres on a 5 x 5 grid at spacing 4 sqrt(2) standard deviations, `per_cluster` points each.
    #[must_use]
    pub fn grid(per_cluster: usize) -> Self {
        Self {
            per_cluster,
            placement: Placement::Grid,
        }
    }

    /// 25 centres uniform on the area of the grid, `per_cluster` points each.
    #[must_use]
    pub fn random(per_cluster: usize) -> Self {
        Self {
            per_cluster,
            placement: Placement::Random,
        }
    }

    /// The points (25 `per_cluster`, 2), cluster by cluster. Points depend on `seed` alone.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if there are no points per cluster.
    pub fn generate<F: Float>(&self, seed: u64) -> Result<Labelled<F>> {
        positive("per_cluster", self.per_cluster)?;
        let mut rng = Rng::from_seed(seed);
        let k = SIDE * SIDE;
        let centres = Array2::from_shape_fn((k, 2), |(c, j)| match self.placement {
            Placement::Grid => [c % SIDE, c / SIDE][j] as f64 * SPACING,
            Placement::Random => (rng.uniform() * SIDE as f64 - 0.5) * SPACING,
        });
        let points = 0..k * self.per_cluster;
        let labels: Vec<usize> = points.map(|n| n / self.per_cluster).collect();
        let points = rng.normals(labels.len(), 2) + centres.select(Axis(0), &labels);
        Ok(Labelled {
            points: points.mapv(F::from_f64),
            labels: labels.iter().map(|&c| c as u32).collect(),
            centres: centres.mapv(F::from_f64),
        })
    }
}
