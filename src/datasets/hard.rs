//! Families of rows on which clustering programs fail: what real data does, one trait at a time.

use crate::base::error::{Error, Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use ndarray::{Array2, Axis};
use std::str::FromStr;

/// Rows that are hard to cluster, each family for a reason of its own.
///
/// Where there are clusters, their centres are standard normal and their deviation is 0.1 unless the family says otherwise.
///
/// ```
/// use coremix::datasets::Hard;
///
/// let x = Hard::StudentT(1).generate::<f32>(1_000, 8, 20, 0)?;
/// assert_eq!(x.dim(), (1_000, 8));
/// assert_eq!("zero-inflated".parse::<Hard>()?, Hard::ZeroInflated);
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hard {
    /// The scale of each cluster, of its centre and deviation, is log-normal, over about 8 orders of magnitude.
    Scales,
    /// Deviations from the centres follow Student's t with so many degrees of freedom (1 to 3 are heavy tails).
    StudentT(u32),
    /// Sizes of clusters follow a Pareto law: few have most of the rows.
    ParetoSizes,
    /// One row in 10,000, and three at least, lies about 1e8 away in some columns.
    Outliers,
    /// Columns that are 0 in most rows, and exponential in the others.
    ZeroInflated,
    /// Deviations of columns from 1e-3 to 1e3.
    ColumnScales,
    /// A row for every 20, repeated. A few are repeated very often.
    Repeated,
    /// Tiny, narrow clusters with one row in 100 between huge, wide ones.
    TinyBetweenHuge,
    /// Uniform on the cube: no clusters.
    Noise,
    /// On a curved surface of three dimensions, with a little noise.
    LowDimension,
    /// Whole numbers: many equal distances.
    Lattice,
    /// All at once, as records of network traffic are: repeated rows, zeros, columns of very different size, and a few rows
    /// at 1e8.
    Records,
}

impl Hard {
    /// Every family.
    pub const ALL: [Self; 14] = [
        Self::Scales,
        Self::StudentT(1),
        Self::StudentT(2),
        Self::StudentT(3),
        Self::ParetoSizes,
        Self::Outliers,
        Self::ZeroInflated,
        Self::ColumnScales,
        Self::Repeated,
        Self::TinyBetweenHuge,
        Self::Noise,
        Self::LowDimension,
        Self::Lattice,
        Self::Records,
    ];

    /// The name, in lower case with hyphens; [`FromStr`] reads it.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self {
            Self::Scales => "scales",
            Self::StudentT(degrees) => return format!("student-t-{degrees}"),
            Self::ParetoSizes => "pareto-sizes",
            Self::Outliers => "outliers",
            Self::ZeroInflated => "zero-inflated",
            Self::ColumnScales => "column-scales",
            Self::Repeated => "repeated",
            Self::TinyBetweenHuge => "tiny-between-huge",
            Self::Noise => "noise",
            Self::LowDimension => "low-dimension",
            Self::Lattice => "lattice",
            Self::Records => "records",
        };
        name.to_owned()
    }

    /// Rows (`rows`, `columns`) from `clusters` clusters, where the family has clusters. The same `seed` gives the same
    /// rows.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if one of the three numbers is 0, or there are 0 degrees of freedom.
    pub fn generate<F: Float>(
        &self,
        rows: usize,
        columns: usize,
        clusters: usize,
        seed: u64,
    ) -> Result<Array2<F>> {
        positive("rows", rows)?;
        positive("columns", columns)?;
        positive("clusters", clusters)?;
        let mut rng = Rng::from_seed(seed);
        let shape = (rows, columns);
        let points = match *self {
            Self::Scales => {
                let scales: Vec<f64> = (0..clusters)
                    .map(|_| 10f64.powf(ORDERS / 6.0 * rng.normal()))
                    .collect();
                let blobs = Blobs::new(columns, clusters, &mut rng);
                blobs.draw(rows, &mut rng, |c, _, x| *x *= scales[c])
            }
            Self::StudentT(degrees) => {
                positive("degrees of freedom", degrees as usize)?;
                let blobs = Blobs::new(columns, clusters, &mut rng);
                let degrees = f64::from(degrees);
                let mut points = Array2::zeros(shape);
                for mut row in points.outer_iter_mut() {
                    let c = rng.below(clusters);
                    let stretch = (degrees / rng.chi_squared(degrees)).sqrt();
                    for (x, centre) in row.iter_mut().zip(blobs.centres.row(c)) {
                        *x = centre + DEVIATION * stretch * rng.normal();
                    }
                }
                points
            }
            Self::ParetoSizes => {
                let mut blobs = Blobs::new(columns, clusters, &mut rng);
                let sizes = (0..clusters).map(|_| 1.0 / (1.0 - rng.uniform()));
                blobs.sizes = sizes.collect();
                blobs.draw(rows, &mut rng, |_, _, _| {})
            }
            Self::Outliers => {
                let blobs = Blobs::new(columns, clusters, &mut rng);
                let mut points = blobs.draw(rows, &mut rng, |_, _, _| {});
                add_outliers(&mut points, &mut rng);
                points
            }
            Self::ZeroInflated => {
                let share: Vec<f64> = (0..columns).map(|_| 0.5 + 0.49 * rng.uniform()).collect();
                let levels = rng.normals((clusters, columns)).mapv(f64::exp);
                let mut points = Array2::zeros(shape);
                for mut row in points.outer_iter_mut() {
                    let c = rng.below(clusters);
                    for (j, x) in row.iter_mut().enumerate() {
                        if rng.uniform() >= share[j] {
                            *x = levels[[c, j]] * rng.exponential();
                        }
                    }
                }
                points
            }
            Self::ColumnScales => {
                let scales: Vec<f64> = (0..columns)
                    .map(|_| 10f64.powf(6.0 * rng.uniform() - 3.0))
                    .collect();
                let blobs = Blobs::new(columns, clusters, &mut rng);
                blobs.draw(rows, &mut rng, |_, j, x| *x *= scales[j])
            }
            Self::Repeated => {
                let blobs = Blobs::new(columns, clusters, &mut rng);
                let different = blobs.draw(rows.div_ceil(20), &mut rng, |_, _, _| {});
                repeat(&different, rows, &mut rng)
            }
            Self::TinyBetweenHuge => {
                let mut blobs = Blobs::new(columns, clusters, &mut rng);
                let huge = clusters.div_ceil(2);
                let tiny = (clusters - huge).max(1) as f64;
                blobs.sizes = (0..clusters)
                    .map(|c| {
                        if c < huge {
                            0.99 / huge as f64
                        } else {
                            0.01 / tiny
                        }
                    })
                    .collect();
                blobs.deviations = (0..clusters)
                    .map(|c| if c < huge { 0.5 } else { 1e-3 })
                    .collect();
                blobs.draw(rows, &mut rng, |_, _, _| {})
            }
            Self::Noise => Array2::from_shape_simple_fn(shape, || rng.uniform()),
            Self::LowDimension => {
                let (straight, bent) = (rng.normals((3, columns)), rng.normals((3, columns)));
                let inner = Array2::from_shape_simple_fn((rows, 3), || 2.0 * rng.uniform() - 1.0);
                let noise = rng.normals(shape);
                inner.dot(&straight) + inner.dot(&bent).mapv(|t| (2.0 * t).sin()) + 0.02 * noise
            }
            Self::Lattice => {
                let blobs = Blobs::new(columns, clusters, &mut rng);
                blobs.draw(rows, &mut rng, |_, _, x| *x = (4.0 * *x).round())
            }
            Self::Records => {
                let mut blobs = Blobs::new(columns, clusters, &mut rng);
                let scales: Vec<f64> = (0..columns)
                    .map(|_| 10f64.powf(6.0 * rng.uniform() - 3.0))
                    .collect();
                let zero: Vec<f64> = (0..columns).map(|_| rng.uniform()).collect();
                let sizes = (0..clusters).map(|_| 1.0 / (1.0 - rng.uniform()));
                blobs.sizes = sizes.collect();
                let mut different = blobs.draw(rows.div_ceil(5), &mut rng, |_, _, _| {});
                for mut row in different.outer_iter_mut() {
                    let stretch = rng.normal().exp();
                    for (j, x) in row.iter_mut().enumerate() {
                        let kept = rng.uniform() >= zero[j];
                        *x = if kept {
                            (*x * scales[j] * stretch).abs()
                        } else {
                            0.0
                        };
                    }
                }
                let mut points = repeat(&different, rows, &mut rng);
                add_outliers(&mut points, &mut rng);
                points
            }
        };
        Ok(points.mapv(F::from_f64))
    }
}

impl FromStr for Hard {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let degrees = name.strip_prefix("student-t-").map(str::parse);
        if let Some(Ok(degrees @ 1..)) = degrees {
            return Ok(Self::StudentT(degrees));
        }
        Self::ALL
            .into_iter()
            .find(|family| family.name() == name)
            .ok_or_else(|| {
                Error::parameter(
                    "family",
                    name,
                    "not one of those of coremix::datasets::Hard",
                )
            })
    }
}

/// Deviation of clusters, where the centres have 1.
const DEVIATION: f64 = 0.1;

/// Orders of magnitude of scales, three deviations to each side.
const ORDERS: f64 = 8.0;

/// Gaussian clusters.
struct Blobs {
    centres: Array2<f64>,
    deviations: Vec<f64>,
    /// Shares of the rows, up to a factor.
    sizes: Vec<f64>,
}

impl Blobs {
    fn new(columns: usize, clusters: usize, rng: &mut Rng) -> Self {
        Self {
            centres: rng.normals((clusters, columns)),
            deviations: vec![DEVIATION; clusters],
            sizes: vec![1.0; clusters],
        }
    }

    /// Rows of drawn clusters. The last function may change each number, given its cluster and column.
    fn draw(
        &self,
        rows: usize,
        rng: &mut Rng,
        change: impl Fn(usize, usize, &mut f64),
    ) -> Array2<f64> {
        let mut ends = Vec::with_capacity(self.sizes.len());
        let mut total = 0.0;
        for size in &self.sizes {
            total += size;
            ends.push(total);
        }
        let mut points = Array2::zeros((rows, self.centres.ncols()));
        for mut row in points.outer_iter_mut() {
            let at = rng.uniform() * total;
            let c = ends.partition_point(|end| *end <= at).min(ends.len() - 1);
            for (j, (x, centre)) in row.iter_mut().zip(self.centres.row(c)).enumerate() {
                *x = centre + self.deviations[c] * rng.normal();
                change(c, j, x);
            }
        }
        points
    }
}

/// Drawn rows, the first ones far more often than the last.
fn repeat(different: &Array2<f64>, rows: usize, rng: &mut Rng) -> Array2<f64> {
    let count = different.nrows();
    let drawn: Vec<usize> = (0..rows)
        .map(|_| (((count as f64).powf(rng.uniform()) - 1.0) as usize).min(count - 1))
        .collect();
    different.select(Axis(0), &drawn)
}

/// Moves a few rows about 1e8 away, each in one column or two.
fn add_outliers(points: &mut Array2<f64>, rng: &mut Rng) {
    let (rows, columns) = points.dim();
    for _ in 0..(rows / 10_000).max(3) {
        let row = rng.below(rows);
        for _ in 0..1 + rng.below(2) {
            points[[row, rng.below(columns)]] = 1e8 * rng.normal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_finite_rows_a_name_and_a_seed() {
        for family in Hard::ALL {
            let x = family.generate::<f32>(500, 7, 12, 3).unwrap();
            assert_eq!(x.dim(), (500, 7));
            assert!(x.iter().all(|x| x.is_finite()), "{family:?}");
            assert_eq!(x, family.generate::<f32>(500, 7, 12, 3).unwrap());
            assert_ne!(x, family.generate::<f32>(500, 7, 12, 4).unwrap());
            assert_eq!(family.name().parse::<Hard>().unwrap(), family);
            for (rows, columns, clusters) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
                assert!(family.generate::<f64>(rows, columns, clusters, 0).is_err());
            }
            assert_eq!(family.generate::<f64>(1, 1, 1, 0).unwrap().dim(), (1, 1));
        }
        assert!(Hard::StudentT(0).generate::<f64>(1, 1, 1, 0).is_err());
        assert!("nothing".parse::<Hard>().is_err());
    }

    /// What each family is there for.
    #[test]
    fn families_are_as_hard_as_they_say() {
        let of = |family: Hard| family.generate::<f64>(20_000, 6, 50, 1).unwrap();
        let largest = |x: &Array2<f64>| x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let zeros =
            |x: &Array2<f64>| x.iter().filter(|v| **v == 0.0).count() as f64 / x.len() as f64;
        let different = |x: &Array2<f64>| {
            let bits = |row: ndarray::ArrayView1<'_, f64>| {
                row.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            x.outer_iter()
                .map(bits)
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        assert!(largest(&of(Hard::Scales)) > 100.0);
        assert!(largest(&of(Hard::StudentT(1))) > 100.0);
        assert!(largest(&of(Hard::StudentT(3))) < 100.0);
        assert!(largest(&of(Hard::Outliers)) > 1e7);
        assert!(zeros(&of(Hard::ZeroInflated)) > 0.5);
        assert!(different(&of(Hard::Repeated)) <= 1_000);
        assert!(of(Hard::Lattice).iter().all(|v| v.fract() == 0.0));
        let deviations = of(Hard::ColumnScales).std_axis(Axis(0), 0.0);
        let (low, high) = deviations
            .iter()
            .fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
        assert!(high > 100.0 * low);
        let records = of(Hard::Records);
        assert!(largest(&records) > 1e7 && zeros(&records) > 0.2 && different(&records) < 5_000);
    }
}
