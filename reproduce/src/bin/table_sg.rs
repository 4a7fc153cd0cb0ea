//! The experiments of \[SG\] Section IV: sparsified mixtures against dense ones.
//!
//! `cargo run --release -p reproduce --bin table_sg -- [PART ..] [TRIALS] [MEANS.svg]` with the parts `digits`, `large`, `small`
//! (default: all), the number of trials (default 20; 3 for `large`) and where to draw the one-pass means (default:
//! nowhere). `table_sg none` is a small version of the part that needs no data. Run it on an otherwise idle machine.
//!
//! - `digits`: the digits 0, 3 and 9 of the first 60,000 of MNIST, 30 of 784 coordinates. Accuracy is under the best
//!   one-to-one matching of clusters to digits.
//! - `large`: those 60,000, 200 clusters: searches and coresets that \[SG\] has not.
//! - `small`: two large clusters and a small one, see [`small_cluster`]. The score is the balanced accuracy: the mean
//!   over the true clusters of the share of its points that is found, so that the small one counts as much as the others.
//!
//! Figures are means over trials with their standard error in brackets, times are medians.

use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Float, algorithms, metrics};
use ndarray::{Array1, Array2, Axis, s};
use ndarray_npy::{ReadNpyError, read_npy};
use plotters::prelude::*;
use reproduce::{TOLERANCE, as_published, heading, mean, median, row, signed, with_error};
use std::time::Instant;

const DIGITS: [u32; 3] = [0, 3, 9];
const TRAINING: usize = 60_000;
const Q: usize = 30;
const RESTARTS: usize = 3;

const LARGE_CLUSTERS: usize = 200;
const LARGE_CORESET: usize = 8_192;

type AnyError = Box<dyn std::error::Error>;

/// Images (n, 784), and their digits (n).
type Images = (Array2<u8>, Array1<u32>);

fn main() -> std::result::Result<(), AnyError> {
    let (mut parts, mut trials, mut picture) = (Vec::new(), None, None);
    for argument in std::env::args().skip(1) {
        if argument.ends_with(".svg") {
            picture = Some(argument);
        } else if let Ok(number) = argument.parse::<u64>() {
            trials = Some(number.max(1));
        } else if ["digits", "large", "small", "none"].contains(&&*argument) {
            parts.push(argument);
        } else {
            eprintln!(
                "error: {argument}: digits, large, small, none, a number or a path to an SVG file"
            );
            std::process::exit(2);
        }
    }
    let wanted = |part: &str| {
        let alone = parts.is_empty() && (trials.is_some() || picture.is_none());
        alone || parts.iter().any(|p| p == part)
    };
    if wanted("digits") || wanted("large") || picture.is_some() {
        match mnist()? {
            None => println!("SKIPPED MNIST: {MNIST} or its labels are absent"),
            Some((x, labels)) => {
                let (three, truth) = digits(&x, &labels, &DIGITS);
                if wanted("digits") {
                    of_digits(&three, &truth, trials.unwrap_or(20))?;
                }
                if wanted("large") {
                    of_large(&x, &labels, trials.unwrap_or(3))?;
                }
                if let Some(path) = &picture {
                    draw_means(&three, &truth, path)?;
                }
            }
        }
    }
    if wanted("small") {
        of_small(Small::default(), trials.unwrap_or(20))?;
    } else if wanted("none") {
        let small = Small {
            large: 500,
            small: 50,
            columns: 256,
            q: 64,
        };
        of_small(small, 2)?;
    }
    Ok(())
}

const MNIST: &str = "../shared/data/mnist_u8.npy";

/// The training images (60,000, 784) and their digits; `None` if they are absent.
fn mnist() -> std::result::Result<Option<Images>, AnyError> {
    match (
        read_npy::<_, Array2<u8>>(MNIST),
        read_npy::<_, Array1<u32>>(MNIST.replace(".npy", ".labels.npy")),
    ) {
        (Err(ReadNpyError::Io(_)), _) | (_, Err(ReadNpyError::Io(_))) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error.into()),
        (Ok(x), Ok(labels)) => {
            let training: Vec<usize> = (0..TRAINING.min(x.nrows())).collect();
            Ok(Some((
                x.select(Axis(0), &training),
                labels.select(Axis(0), &training),
            )))
        }
    }
}

/// The images of some digits.
fn digits(x: &Array2<u8>, labels: &Array1<u32>, wanted: &[u32]) -> Images {
    let rows: Vec<usize> = (0..labels.len())
        .filter(|&n| wanted.contains(&labels[n]))
        .collect();
    (x.select(Axis(0), &rows), labels.select(Axis(0), &rows))
}

/// Results of the trials of one method.
#[derive(Default)]
struct Column {
    scores: Vec<f64>,
    errors: Vec<f64>,
    iterations: Vec<f64>,
    /// Checking the data, or making the sketch.
    making: Vec<f64>,
    fitting: Vec<f64>,
    unobserved: Vec<f64>,
}

impl Column {
    /// One trial on data that is made anew. `score` judges the labels that the model gives to that data; the
    /// quantization error is that of the means on `rows`.
    fn run<D, F, M>(
        &mut self,
        make: impl FnOnce() -> Result<D>,
        builder: Builder<F, M>,
        rows: Option<&dyn Data<F>>,
        score: impl FnOnce(&Array1<u32>) -> Result<f64>,
    ) -> Result<()>
    where
        D: Data<F>,
        F: Float,
        M: MStep<F, Model: Mixture<F>>,
    {
        let started = Instant::now();
        let data = make()?;
        self.making.push(started.elapsed().as_secs_f64());
        let clusterer = builder.build()?;
        let started = Instant::now();
        let fit = clusterer.fit(&data)?;
        self.fitting.push(started.elapsed().as_secs_f64());
        self.iterations.push(fit.report.iterations as f64);
        self.unobserved.push(fit.report.unobserved as f64);
        let labels = Mixture::<F>::predict(&fit.model, &data)?;
        self.scores.push(score(&labels)?);
        if let Some(rows) = rows {
            let error = Mixture::<F>::quantization_error(&fit.model, rows)?;
            self.errors.push(error);
        }
        Ok(())
    }
}

/// Must-show figures of \[SG\] Section IV-A.
fn of_digits(x: &Array2<u8>, truth: &Array1<u32>, trials: u64) -> Result<()> {
    const NAMES: [&str; 8] = [
        "GMM, diagonal, dense, preconditioned",
        "GMM, diagonal, dense",
        "GMM, diagonal, sketch",
        "GMM, isotropic, dense",
        "GMM, isotropic, sketch",
        "k-means, dense",
        "k-means, sketch",
        "GMM, diagonal, coreset of 4,096 of the sketch",
    ];
    let (n, p) = x.dim();
    println!(
        "\ndigits {DIGITS:?} of MNIST ({n} x {p}), Q = {Q}, {RESTARTS} initialisations, {trials} trials"
    );
    let mut table = NAMES.map(|_| Column::default());
    for seed in 0..trials {
        let accuracy = |labels: &Array1<u32>| metrics::accuracy(labels.view(), truth.view());
        let dense = || Dense::new(x.view());
        let sketch = || Sketch::new(x.view(), Q, seed);
        let diagonal = || {
            let builder = as_published(algorithms::sparsified_gmm(3), TOLERANCE);
            builder.restarts(RESTARTS).seed(seed)
        };
        let isotropic = || diagonal().covariance(Covariance::Spherical);
        let k_means = || {
            let builder = as_published(algorithms::k_means(3), TOLERANCE);
            builder.restarts(RESTARTS).seed(seed)
        };
        let coreset = || diagonal().coreset(Lightweight::new(4_096));
        // A diagonal covariance is another model in other coordinates: this one has those of the sketch. Its time is
        // that of the fit alone.
        let basis = Sketch::new(x.slice(s![..1, ..]), 1, seed)?;
        let rotated = basis.basis().forward(x.mapv(f64::from).view())?;
        let rotated = rotated.mapv(|x| x as f32);
        let preconditioned = || Dense::new(rotated.view());
        let [p, a, b, c, d, e, f, g] = &mut table;
        p.run(preconditioned, diagonal(), None, accuracy)?;
        a.run(dense, diagonal(), None, accuracy)?;
        b.run(sketch, diagonal(), None, accuracy)?;
        c.run(dense, isotropic(), None, accuracy)?;
        d.run(sketch, isotropic(), None, accuracy)?;
        e.run(dense, k_means(), None, accuracy)?;
        f.run(sketch, k_means(), None, accuracy)?;
        g.run(sketch, coreset(), None, accuracy)?;
    }
    heading(&[
        "accuracy",
        "least",
        "most",
        "iterations",
        "making, s",
        "fit, s",
    ]);
    for (name, column) in NAMES.iter().zip(&table) {
        let least = column.scores.iter().copied().fold(f64::INFINITY, f64::min);
        let most = column.scores.iter().copied().fold(0.0, f64::max);
        let cells = [
            with_error(mean(&column.scores), 4),
            format!("{least:.3}"),
            format!("{most:.3}"),
            with_error(mean(&column.iterations), 1),
            format!("{:.3}", median(&column.making)),
            format!("{:.3}", median(&column.fitting)),
        ];
        row(name, &cells);
    }
    println!();
    for (name, dense, sketch) in [
        ("diagonal", &table[1], &table[2]),
        ("diagonal, both preconditioned", &table[0], &table[2]),
        ("isotropic", &table[3], &table[4]),
        ("k-means", &table[5], &table[6]),
    ] {
        let accuracy = mean(&sketch.scores).0 / mean(&dense.scores).0;
        let fitting = median(&sketch.fitting) / median(&dense.fitting);
        let whole = |c: &Column| median(&c.fitting) + median(&c.making);
        println!(
            "- {name}: the sketch has {:.1} % of the dense accuracy, in {:.1} % of the time of the fit, {:.1} % with the sketch",
            100.0 * accuracy,
            100.0 * fitting,
            100.0 * whole(sketch) / whole(dense)
        );
    }
    println!("- [SG], diagonal: 92 % of the dense accuracy in 12.9 % of the time");
    Ok(())
}

/// Truncated searches and coresets on a sketch, with many clusters.
fn of_large(x: &Array2<u8>, truth: &Array1<u32>, trials: u64) -> Result<()> {
    const NAMES: [&str; 10] = [
        "k-means, dense",
        "k-means, sketch",
        "var-GMM-S, dense",
        "var-GMM-S, sketch",
        "vc-GMM, dense",
        "vc-GMM, sketch",
        "D-GMM, dense",
        "D-GMM, sketch",
        "var-GMM-S, isotropic, sketch",
        "var-GMM-S, diagonal, sketch",
    ];
    let ((n, p), k) = (x.dim(), LARGE_CLUSTERS);
    println!(
        "\nMNIST ({n} x {p}), {k} clusters, Q = {Q}, C' = H = G = R = 5, N' = {LARGE_CORESET}, {trials} trials; \
         purity of the labels of the data that was fitted, error of the means on the dense rows over dense k-means"
    );
    let mut table = NAMES.map(|_| Column::default());
    let rows = Dense::new(x.view())?;
    for seed in 0..trials {
        let purity = |labels: &Array1<u32>| metrics::purity(labels.view(), truth.view());
        let dense = || Dense::new(x.view());
        let sketch = || Sketch::new(x.view(), Q, seed);
        let k_means = || {
            let builder = algorithms::k_means(k).seeder(AfkMc2::default());
            as_published(builder, TOLERANCE).seed(seed)
        };
        let var = || as_published(algorithms::var_gmm_s(k, 5, 5), TOLERANCE).seed(seed);
        let vc = || {
            let builder = algorithms::vc_gmm(k, LARGE_CORESET, 5, 5);
            as_published(builder, TOLERANCE).seed(seed)
        };
        let d = || as_published(algorithms::d_gmm(k, 5, 5), TOLERANCE).seed(seed);
        let rows: Option<&dyn Data<_>> = Some(&rows);
        table[0].run(dense, k_means(), rows, purity)?;
        table[1].run(sketch, k_means(), rows, purity)?;
        table[2].run(dense, var(), rows, purity)?;
        table[3].run(sketch, var(), rows, purity)?;
        table[4].run(dense, vc(), rows, purity)?;
        table[5].run(sketch, vc(), rows, purity)?;
        table[6].run(dense, d(), rows, purity)?;
        table[7].run(sketch, d(), rows, purity)?;
        table[8].run(
            sketch,
            var().covariance(Covariance::Spherical),
            rows,
            purity,
        )?;
        table[9].run(sketch, var().covariance(Covariance::Diagonal), rows, purity)?;
    }
    heading(&[
        "error, %",
        "purity",
        "iterations",
        "making, s",
        "fit, s",
        "unobserved",
    ]);
    let base = mean(&table[0].errors).0;
    for (name, column) in NAMES.iter().zip(&table) {
        let over: Vec<f64> = (column.errors.iter().map(|e| 100.0 * (e / base - 1.0))).collect();
        let cells = [
            signed(mean(&over), 1),
            with_error(mean(&column.scores), 3),
            format!("{:.1}", mean(&column.iterations).0),
            format!("{:.3}", median(&column.making)),
            format!("{:.3}", median(&column.fitting)),
            format!("{:.0}", mean(&column.unobserved).0),
        ];
        row(name, &cells);
    }
    Ok(())
}

/// Sizes of the small-cluster example.
#[derive(Clone, Copy)]
struct Small {
    /// Points of each of the two large clusters.
    large: usize,
    /// Points of the small one.
    small: usize,
    columns: usize,
    q: usize,
}

impl Default for Small {
    fn default() -> Self {
        Self {
            large: 2_000,
            small: 100,
            columns: 256,
            q: 64,
        }
    }
}

/// Standard deviations of the columns of the three clusters, the small one last.
const DEVIATIONS: [f64; 3] = [1.0, 2.0, 0.25];

/// Standard deviation of the means' columns: that of the differences is sqrt(2) times as large.
const SPREAD: f64 = 0.3;

/// Three isotropic Gaussian clusters: two large ones, and a small one, tight and of few points. Means are normal with
/// standard deviation [`SPREAD`] in each column. k-means gains more by cutting the wide cluster in two than by giving
/// the small one a centre.
fn small_cluster(sizes: Small, seed: u64) -> (Array2<f64>, Array1<u32>) {
    let mut rng = Rng::from_seed(seed);
    let means = Array2::from_shape_fn((3, sizes.columns), |_| SPREAD * rng.normal());
    let counts = [sizes.large, sizes.large, sizes.small];
    let labels = (0..3u32).flat_map(|c| std::iter::repeat_n(c, counts[c as usize]));
    let labels: Array1<u32> = labels.collect();
    let points = Array2::from_shape_fn((labels.len(), sizes.columns), |(n, j)| {
        let c = labels[n] as usize;
        means[[c, j]] + DEVIATIONS[c] * rng.normal()
    });
    (points, labels)
}

/// The mean over true clusters of the share of their points that is in the cluster matched to them, at its best.
fn balanced_accuracy(labels: &Array1<u32>, truth: &Array1<u32>) -> f64 {
    const MATCHINGS: [[u32; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let share = |class: u32, cluster: u32| {
        let of_class = truth.iter().zip(labels).filter(|(t, _)| **t == class);
        let (all, found) = of_class.fold((0.0, 0.0), |(all, found), (_, &label)| {
            (all + 1.0, found + f64::from(u8::from(label == cluster)))
        });
        found / all
    };
    let of = |matching: [u32; 3]| (0..3).map(|t| share(t, matching[t as usize])).sum::<f64>() / 3.0;
    MATCHINGS.into_iter().map(of).fold(0.0, f64::max)
}

/// \[SG\] Section IV-B: a small cluster that k-means does not find.
fn of_small(sizes: Small, trials: u64) -> Result<()> {
    const NAMES: [&str; 4] = [
        "k-means, dense",
        "k-means, sketch",
        "GMM, spherical, dense",
        "GMM, spherical, sketch",
    ];
    const RUNS: usize = 64;
    // In hundreds of columns 1e-4 of the free energy is far more than the small cluster adds to it.
    const TOLERANCE: f64 = 1e-7;
    let Small {
        large,
        small,
        columns,
        q,
    } = sizes;
    println!(
        "\nsmall cluster: {large} + {large} + {small} points in {columns} columns, standard deviations {DEVIATIONS:?}, \
         means' {SPREAD}, Q = {q}, {RUNS} initialisations, tolerance {TOLERANCE:e}, {trials} trials; balanced accuracy"
    );
    let mut table = NAMES.map(|_| Column::default());
    for seed in 0..trials {
        let (x, truth) = small_cluster(sizes, seed);
        let score = |labels: &Array1<u32>| Ok(balanced_accuracy(labels, &truth));
        let dense = || Dense::new(x.view());
        let sketch = || Sketch::new(x.view(), q, seed);
        let k_means = || {
            let k_means = as_published(algorithms::k_means(3), TOLERANCE);
            k_means.max_iterations(1_000).restarts(RUNS).seed(seed)
        };
        let gmm = || {
            let gmm = algorithms::sparsified_gmm(3).covariance(Covariance::Spherical);
            let gmm = as_published(gmm, TOLERANCE).max_iterations(1_000);
            gmm.restarts(RUNS).seed(seed)
        };
        table[0].run(dense, k_means(), None, score)?;
        table[1].run(sketch, k_means(), None, score)?;
        table[2].run(dense, gmm(), None, score)?;
        table[3].run(sketch, gmm(), None, score)?;
    }
    heading(&["balanced accuracy, %", "least", "fit, s"]);
    for (name, column) in NAMES.iter().zip(&table) {
        let least = column.scores.iter().copied().fold(f64::INFINITY, f64::min);
        let (score, error) = mean(&column.scores);
        let cells = [
            with_error((100.0 * score, 100.0 * error), 2),
            format!("{:.2}", 100.0 * least),
            format!("{:.3}", median(&column.fitting)),
        ];
        row(name, &cells);
    }
    Ok(())
}

/// The mean of every coordinate over the images that know it, as an image. One that none knows is 0 here, as in
/// \[SG\]; a fit would take that of the first image, so that an origin far from 0 does no harm.
fn one_pass_mean(sketch: &Sketch<f32>) -> Result<Array1<f64>> {
    let mut sums = Array2::<f64>::zeros((1, sketch.dim()));
    let mut known = Array2::<f64>::zeros((1, sketch.dim()));
    for (&j, value) in sketch.indices().iter().zip(&sketch.values()) {
        sums[[0, j as usize]] += value;
        known[[0, j as usize]] += 1.0;
    }
    let means = sums / known.mapv(|n| n.max(1.0));
    Ok(sketch.basis().inverse(means.view())?.row(0).to_owned())
}

/// Draws the mean of each digit from its sketch, for Q = 10 and three numbers of shared coordinates.
fn draw_means(
    x: &Array2<u8>,
    truth: &Array1<u32>,
    path: &str,
) -> std::result::Result<(), AnyError> {
    const KEPT: usize = 10;
    const SHARED: [usize; 3] = [0, 5, 10];
    const SIDE: usize = 28;
    const PIXEL: i32 = 6;
    const GAP: i32 = 12;
    const LEFT: i32 = 84;
    let cell = SIDE as i32 * PIXEL + GAP;
    let columns = DIGITS.len() as i32;
    let rows = SHARED.len() as i32 + 1;
    let size = ((LEFT + columns * cell) as u32, (GAP + rows * cell) as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let text = ("sans-serif", 15).into_font();
    for row in 0..rows as usize {
        let shared = SHARED.get(row);
        let (top, name) = (
            GAP + row as i32 * cell,
            shared.map_or("all".to_owned(), |s| format!("{s} shared by all rows")),
        );
        let place = (8, top + cell / 2 - GAP);
        area.draw(&Text::new(name, place, text.clone()))?;
        for (column, digit) in DIGITS.iter().enumerate() {
            let (images, _) = digits(x, truth, &[*digit]);
            let mean = match shared {
                None => images.mapv(f64::from).mean_axis(Axis(0)).expect("images"),
                Some(&shared) => {
                    let mut builder = Sketch::builder(images.ncols(), KEPT, 1).shared(shared);
                    // One pass: as if the images came in blocks and could not be kept.
                    for block in images.axis_chunks_iter(Axis(0), 500) {
                        builder.push(block)?;
                    }
                    one_pass_mean(&builder.finish()?)?
                }
            };
            let left = LEFT + column as i32 * cell;
            for (j, &value) in mean.iter().enumerate() {
                let corner = (
                    left + (j % SIDE) as i32 * PIXEL,
                    top + (j / SIDE) as i32 * PIXEL,
                );
                let opposite = (corner.0 + PIXEL, corner.1 + PIXEL);
                let grey = 255 - value.clamp(0.0, 255.0) as u8;
                let style = RGBColor(grey, grey, grey).filled();
                area.draw(&Rectangle::new([corner, opposite], style))?;
            }
        }
    }
    area.present()?;
    println!("\none-pass means, Q = {KEPT} of 784, Q_S = {SHARED:?}, and of all pixels: {path}");
    Ok(())
}
