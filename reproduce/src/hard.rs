//! Rows on which clustering programs fail: what real data does, one trait at a time.
//!
//! Where there are clusters, their centres are standard normal and their deviation is 0.1 unless the kind says otherwise.

use coremix::stage::Rng;
use ndarray::{Array2, Axis};

/// All kinds of rows.
pub const KINDS: [&str; 14] = [
    // The scale of each cluster, of its centre and deviation, is log-normal, over about 8 orders of magnitude.
    "scales",
    // Deviations from the centres follow Student's t; the number is that of the degrees of freedom.
    "student-t-1",
    "student-t-2",
    "student-t-3",
    // Sizes of clusters follow a Pareto law: few have most of the rows.
    "pareto-sizes",
    // One row in 10,000, and three at least, lies about 1e8 away in some columns.
    "outliers",
    // Columns are 0 in most rows, and exponential in the others.
    "zero-inflated",
    // Deviations of columns from 1e-3 to 1e3.
    "column-scales",
    // A row for every 20, repeated. A few are repeated very often.
    "repeated",
    // Tiny, narrow clusters with one row in 100 between huge, wide ones.
    "tiny-between-huge",
    // Uniform on the cube: no clusters.
    "noise",
    // A curved surface of three dimensions, with a little noise.
    "low-dimension",
    // Whole numbers: many equal distances.
    "lattice",
    // Records of network traffic: repeated rows, zeros, columns of very different size, and a few rows at 1e8.
    "records",
];

/// Rows and columns, and the number of clusters, where the kind has clusters.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
    pub clusters: usize,
}

/// Rows of a kind; `None` if there is no such kind.
#[must_use]
pub fn generate(kind: &str, shape: Shape, seed: u64) -> Option<Array2<f32>> {
    let Shape {
        rows,
        columns,
        clusters,
    } = shape;
    let rng = &mut Rng::from_seed(seed);
    let points = match kind {
        "scales" => {
            let scale = |_| 10f64.powf(8.0 / 6.0 * rng.normal());
            let scales: Vec<f64> = (0..clusters).map(scale).collect();
            Blobs::new(shape, rng).draw(rows, rng, |c, _, x| *x *= scales[c])
        }
        "student-t-1" | "student-t-2" | "student-t-3" => {
            let degrees: f64 = kind["student-t-".len()..].parse().ok()?;
            let blobs = Blobs::new(shape, rng);
            let mut points = Array2::zeros((rows, columns));
            for mut row in points.outer_iter_mut() {
                let c = rng.below(clusters);
                let stretch = (degrees / rng.chi_squared(degrees)).sqrt();
                for (x, centre) in row.iter_mut().zip(blobs.centres.row(c)) {
                    *x = centre + DEVIATION * stretch * rng.normal();
                }
            }
            points
        }
        "pareto-sizes" => {
            let mut blobs = Blobs::new(shape, rng);
            blobs.set_pareto_sizes(rng);
            blobs.draw(rows, rng, |_, _, _| {})
        }
        "outliers" => {
            let mut points = Blobs::new(shape, rng).draw(rows, rng, |_, _, _| {});
            add_outliers(&mut points, rng);
            points
        }
        "zero-inflated" => {
            let share: Vec<f64> = (0..columns).map(|_| 0.5 + 0.49 * rng.uniform()).collect();
            let levels = normals((clusters, columns), rng).mapv(f64::exp);
            let mut points = Array2::zeros((rows, columns));
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
        "column-scales" => {
            let scales = column_scales(columns, rng);
            Blobs::new(shape, rng).draw(rows, rng, |_, j, x| *x *= scales[j])
        }
        "repeated" => {
            let different = Blobs::new(shape, rng).draw(rows.div_ceil(20), rng, |_, _, _| {});
            repeat(&different, rows, rng)
        }
        "tiny-between-huge" => {
            let mut blobs = Blobs::new(shape, rng);
            let huge = clusters.div_ceil(2);
            let tiny = (clusters - huge).max(1) as f64;
            for c in 0..clusters {
                (blobs.sizes[c], blobs.deviations[c]) = match c < huge {
                    true => (0.99 / huge as f64, 0.5),
                    false => (0.01 / tiny, 1e-3),
                };
            }
            blobs.draw(rows, rng, |_, _, _| {})
        }
        "noise" => Array2::from_shape_simple_fn((rows, columns), || rng.uniform()),
        "low-dimension" => {
            let straight = normals((3, columns), rng);
            let bent = normals((3, columns), rng);
            let inner = Array2::from_shape_simple_fn((rows, 3), || 2.0 * rng.uniform() - 1.0);
            let noise = normals((rows, columns), rng);
            inner.dot(&straight) + inner.dot(&bent).mapv(|t| (2.0 * t).sin()) + 0.02 * noise
        }
        "lattice" => Blobs::new(shape, rng).draw(rows, rng, |_, _, x| *x = (4.0 * *x).round()),
        "records" => {
            let mut blobs = Blobs::new(shape, rng);
            let scales = column_scales(columns, rng);
            let zero: Vec<f64> = (0..columns).map(|_| rng.uniform()).collect();
            blobs.set_pareto_sizes(rng);
            let mut different = blobs.draw(rows.div_ceil(5), rng, |_, _, _| {});
            for mut row in different.outer_iter_mut() {
                let stretch = rng.normal().exp();
                for (j, x) in row.iter_mut().enumerate() {
                    let kept = rng.uniform() >= zero[j];
                    let value = (*x * scales[j] * stretch).abs();
                    *x = if kept { value } else { 0.0 };
                }
            }
            let mut points = repeat(&different, rows, rng);
            add_outliers(&mut points, rng);
            points
        }
        _ => return None,
    };
    Some(points.mapv(|x| x as f32))
}

/// Deviation of clusters, where the centres have 1.
const DEVIATION: f64 = 0.1;

/// Gaussian clusters.
struct Blobs {
    centres: Array2<f64>,
    deviations: Vec<f64>,
    /// Shares of the rows, up to a factor.
    sizes: Vec<f64>,
}

impl Blobs {
    fn new(shape: Shape, rng: &mut Rng) -> Self {
        Self {
            centres: normals((shape.clusters, shape.columns), rng),
            deviations: vec![DEVIATION; shape.clusters],
            sizes: vec![1.0; shape.clusters],
        }
    }

    fn set_pareto_sizes(&mut self, rng: &mut Rng) {
        let sizes = self.sizes.iter_mut();
        sizes.for_each(|size| *size = 1.0 / (1.0 - rng.uniform()));
    }

    /// Rows of drawn clusters. The last function may change each number, given its cluster and column.
    fn draw(
        &self,
        rows: usize,
        rng: &mut Rng,
        change: impl Fn(usize, usize, &mut f64),
    ) -> Array2<f64> {
        let mut total = 0.0;
        let ends = self.sizes.iter().map(|size| {
            total += size;
            total
        });
        let ends: Vec<f64> = ends.collect();
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

fn normals(shape: (usize, usize), rng: &mut Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn(shape, || rng.normal())
}

fn column_scales(columns: usize, rng: &mut Rng) -> Vec<f64> {
    let scale = |_| 10f64.powf(6.0 * rng.uniform() - 3.0);
    (0..columns).map(scale).collect()
}

/// Drawn rows, the first ones far more often than the last.
fn repeat(different: &Array2<f64>, rows: usize, rng: &mut Rng) -> Array2<f64> {
    let count = different.nrows();
    let drawn = |_| (((count as f64).powf(rng.uniform()) - 1.0) as usize).min(count - 1);
    let drawn: Vec<usize> = (0..rows).map(drawn).collect();
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
