//! The experiments of \[SG\] next to the figures of the paper.
//!
//! `cargo run --release -p reproduce --bin table_sg -- [PART ..] [MEANS.svg]` with the parts `bias` (Fig. 1), `digits` (Fig. 2: accuracy
//! and time over Q, on the digits 0, 3 and 9 of the first 60,000 of MNIST), `small` (Fig. 3: small clusters), `means` (Fig. 4: fitted
//! means, which are drawn into the file) and `cost` (time and bytes over Q and P); default: all. `none` is a small version of what needs
//! no data. Figures are means over trials with standard errors in brackets, times are medians. Run it on an otherwise idle machine.

use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Float, algorithms, metrics};
use ndarray::{Array1, Array2, Axis, concatenate, s};
use plotters::prelude::*;
use reproduce::{
    TOLERANCE, as_published, beside, heading, load, mean, median, row, signed, slope, with_error,
};
use std::time::Instant;

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

const DIGITS: [u32; 3] = [0, 3, 9];
const TRAINING: usize = 60_000;
const RESTARTS: usize = 3;
const TRIALS: u64 = 20;

fn main() -> Outcome {
    let (pictures, parts): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|part| part.ends_with(".svg"));
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|own| own == part);
    if wanted("bias") {
        bias((10_000, 100), &[1, 2, 5, 10, 20, 50, 80, 100], TRIALS)?;
    }
    if (wanted("digits") || wanted("means"))
        && let Some(x) = load("mnist_u8")?
        && let Some(labels) = load("mnist_u8.labels")?
    {
        let (x, truth) = digits(&x, &labels);
        if wanted("digits") {
            accuracy(&x, &truth, &[10, 20, 30, 60, 120, 240], TRIALS)?;
        }
        if wanted("means") {
            means(&x, &truth, pictures.first())?;
        }
    }
    if wanted("small") {
        small_clusters([250, 250, 250, 50, 50], TRIALS)?;
    }
    if wanted("cost") {
        cost(
            10_000,
            &[16, 32, 64, 128, 256],
            &[256, 512, 1_024, 2_048, 4_096],
        )?;
    }
    if parts.iter().any(|part| part == "none") {
        bias((200, 16), &[2, 8], 2)?;
        small_clusters([50, 50, 50, 10, 10], 2)?;
        cost(200, &[4, 8], &[16, 32])?;
    }
    Ok(())
}

/// The sketched squared distance to the mean of a standard normal distribution, P/Q times that of the known coordinates, and the density
/// that it gives. Columns are means over rows: of a relative error, of the logarithm of a ratio, and of the ratio.
fn bias((n, columns): (usize, usize), kept: &[usize], trials: u64) -> Result<()> {
    println!("\n{n} rows of N(0, 1) in {columns} columns per trial, {trials} trials");
    heading(&[
        "distance, %: published",
        "here",
        "density / true: published",
        "here",
        "median",
        "ln density, nats",
        "deviation of distances, %",
    ]);
    for &q in kept {
        let share = q as f64 / columns as f64;
        let mut table: [Vec<f64>; 5] = Default::default();
        for seed in 0..trials {
            let x = normal((n, columns), &mut Rng::from_seed(seed));
            let sketch = Sketch::new(x.view(), q, seed)?;
            let known = (sketch.values() * sketch.values()).sum_axis(Axis(1)) / share;
            let distances = (&x * &x).sum_axis(Axis(1));
            let errors = (&known / &distances - 1.0) * 100.0;
            let nats = (&distances - &known) / 2.0;
            let ratios = nats.mapv(f64::exp);
            table[0].push(errors.mean().expect("rows"));
            table[1].push(errors.std(0.0));
            table[2].push(nats.mean().expect("rows"));
            table[3].push(ratios.mean().expect("rows"));
            table[4].push(median(&ratios.to_vec()));
        }
        let [errors, spread, nats, ratios, medians] = &table;
        let (ratio, error) = mean(ratios);
        let here = [
            signed(mean(errors), 3),
            format!("{ratio:.1e} ({error:.1e})"),
        ];
        let mut cells = beside(&["0", "1"], here);
        cells.extend([
            format!("{:.1e}", mean(medians).0),
            signed(mean(nats), 3),
            format!("{:.1}", mean(spread).0),
        ]);
        row(&format!("Q / P = {share:.2}"), &cells);
    }
    Ok(())
}

fn normal((n, columns): (usize, usize), rng: &mut Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn((n, columns), || rng.normal())
}

/// The images of three digits, and which they are.
fn digits(x: &Array2<u8>, labels: &Array1<u32>) -> (Array2<u8>, Array1<u32>) {
    let rows: Vec<usize> = (0..TRAINING.min(labels.len()))
        .filter(|&n| DIGITS.contains(&labels[n]))
        .collect();
    (x.select(Axis(0), &rows), labels.select(Axis(0), &rows))
}

/// The mean of each class.
fn class_means<T: Copy + Into<f64>>(
    x: &Array2<T>,
    truth: &Array1<u32>,
    classes: &[u32],
) -> Array2<f64> {
    let mut means = Array2::zeros((classes.len(), x.ncols()));
    for (mut mean, class) in means.outer_iter_mut().zip(classes) {
        let rows: Vec<usize> = (0..truth.len()).filter(|&n| truth[n] == *class).collect();
        for &n in &rows {
            mean.zip_mut_with(&x.row(n), |sum, &x| *sum += x.into());
        }
        mean /= rows.len() as f64;
    }
    means
}

/// Results of the trials of one method.
#[derive(Default)]
struct Trials {
    scores: Vec<f64>,
    iterations: Vec<f64>,
    /// Seconds of checking the rows, or of making the sketch.
    making: Vec<f64>,
    fitting: Vec<f64>,
}

impl Trials {
    /// One trial on rows that are made anew. `score` judges the labels of these rows.
    fn run<D: Data<F>, F: Float>(
        &mut self,
        make: impl FnOnce() -> Result<D>,
        builder: Builder<F>,
        score: impl FnOnce(&Array1<u32>) -> Result<f64>,
    ) -> Result<()> {
        let started = Instant::now();
        let data = make()?;
        self.making.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let fit = builder.build()?.fit(&data)?;
        self.fitting.push(started.elapsed().as_secs_f64());
        self.iterations.push(fit.report.iterations as f64);
        self.scores.push(score(&fit.model.predict(&data)?)?);
        Ok(())
    }
}

/// Accuracy, by the best matching of clusters to digits, and time over Q. All shares are of dense EM in the coordinates of the sketch:
/// a diagonal covariance is another model in other coordinates.
fn accuracy(x: &Array2<u8>, truth: &Array1<u32>, kept: &[usize], trials: u64) -> Result<()> {
    let (n, columns) = x.dim();
    println!(
        "\ndigits {DIGITS:?} of MNIST ({n} x {columns}), diagonal covariances, {RESTARTS} initialisations, {trials} trials; \
         shares are of the dense fit of preconditioned rows"
    );
    let mut dense = [Trials::default(), Trials::default()];
    let mut sketched: Vec<Trials> = kept.iter().map(|_| Trials::default()).collect();
    for seed in 0..trials {
        let builder = || {
            let builder = as_published(algorithms::sparsified_gmm(DIGITS.len()), TOLERANCE);
            builder.restarts(RESTARTS).seed(seed)
        };
        let score = |labels: &Array1<u32>| metrics::accuracy(labels.view(), truth.view());
        let basis = Sketch::new(x.slice(s![..1, ..]), 1, seed)?;
        let preconditioned = basis.basis().forward(x.mapv(f64::from).view())?;
        let preconditioned = preconditioned.mapv(|x| x as f32);
        dense[0].run(|| Dense::new(preconditioned.view()), builder(), score)?;
        dense[1].run(|| Dense::new(x.view()), builder(), score)?;
        for (own, &q) in sketched.iter_mut().zip(kept) {
            own.run(|| Sketch::new(x.view(), q, seed), builder(), score)?;
        }
    }
    heading(&[
        "accuracy: published",
        "here",
        "of dense accuracy: published",
        "here",
        "of its time: published",
        "here",
        "with the making",
        "iterations",
        "making, s",
        "fit, s",
    ]);
    let base = &dense[0];
    let mut names = ["dense, preconditioned", "dense"]
        .map(str::to_owned)
        .to_vec();
    names.extend(kept.iter().map(|q| format!("Q = {q}")));
    for (name, own) in names.iter().zip(dense.iter().chain(&sketched)) {
        let percent = |own: f64, base: f64| format!("{:.1} %", 100.0 * own / base);
        let whole = |own: &Trials| median(&own.making) + median(&own.fitting);
        let here = [
            with_error(mean(&own.scores), 4),
            percent(mean(&own.scores).0, mean(&base.scores).0),
            percent(median(&own.fitting), median(&base.fitting)),
        ];
        let published = match &**name {
            "Q = 30" => ["0.86", "92 %", "12.9 %"],
            _ => [""; 3],
        };
        let mut cells = beside(&published, here);
        cells.extend([
            percent(whole(own), whole(base)),
            format!("{:.1}", mean(&own.iterations).0),
            format!("{:.3}", median(&own.making)),
            format!("{:.3}", median(&own.fitting)),
        ]);
        row(name, &cells);
    }
    Ok(())
}

/// A sparsified mixture with a variance for each component.
fn spherical<F: Float>(clusters: usize, tolerance: f64) -> Builder<F> {
    let builder = algorithms::sparsified_gmm(clusters).covariance(Covariance::Spherical);
    as_published(builder, tolerance)
}

/// Rows of Gaussians of 20 dimensions, each in a random subspace of all columns, and which they are of. The largest variances go from 10 of
/// the first to 1 of the last, the others of each are uniform below its own. Means have this standard deviation in each column.
fn in_subspaces(sizes: [usize; 5], spread: f64, rng: &mut Rng) -> (Array2<f64>, Array1<u32>) {
    const COLUMNS: usize = 100;
    const DIMENSIONS: usize = 20;
    let cluster = |(c, n): (usize, usize)| {
        let norm = 10.0 - 9.0 * c as f64 / (sizes.len() - 1) as f64;
        let mut axes = normal((DIMENSIONS, COLUMNS), rng);
        for i in 0..DIMENSIONS {
            let (before, mut own) = axes.view_mut().split_at(Axis(0), i);
            let mut own = own.row_mut(0);
            for axis in before.outer_iter() {
                let shadow = axis.dot(&own);
                own.scaled_add(-shadow, &axis);
            }
            let length = own.dot(&own).sqrt();
            own /= length;
        }
        let mut variances = Array1::from_shape_simple_fn(DIMENSIONS, || norm * rng.uniform());
        variances[0] = norm;
        let inside = normal((n, DIMENSIONS), rng) * variances.sqrt();
        inside.dot(&axes) + spread * normal((1, COLUMNS), rng)
    };
    let clusters: Vec<Array2<f64>> = sizes.into_iter().enumerate().map(cluster).collect();
    let views: Vec<_> = clusters.iter().map(|rows| rows.view()).collect();
    let of = |(c, n)| std::iter::repeat_n(c as u32, n);
    let truth = sizes.into_iter().enumerate().flat_map(of).collect();
    (concatenate(Axis(0), &views).expect("equal columns"), truth)
}

/// The share of the rows of the two small clusters that are in a cluster with more of their own than of any other.
fn recovered(labels: &Array1<u32>, truth: &Array1<u32>) -> f64 {
    let mut counts = [[0u32; 5]; 5];
    for (&label, &class) in labels.iter().zip(truth) {
        counts[label as usize][class as usize] += 1;
    }
    let own = |counts: &[u32; 5], class: usize| match counts.iter().max() {
        Some(&most) if most == counts[class] => f64::from(most),
        _ => 0.0,
    };
    let found = counts.map(|counts| own(&counts, 3) + own(&counts, 4));
    found.iter().sum::<f64>() / truth.iter().filter(|&&class| class >= 3).count() as f64
}

/// Small clusters between large ones. The paper prints neither Q nor how far means are apart, nor the starts and the stop.
fn small_clusters(sizes: [usize; 5], trials: u64) -> Result<()> {
    const STARTS: usize = 10;
    /// In 100 columns 1e-4 of the free energy is far more than a small cluster adds to it.
    const TOLERANCE: f64 = 1e-7;
    println!(
        "\n{sizes:?} rows in subspaces of 20 of 100 columns, {STARTS} starts, tolerance {TOLERANCE:e}, {trials} trials; rows of the small \
         clusters that are recovered, in percent. Q, the means' spread, starts and stop are our own"
    );
    heading(&[
        "k-means, sketch: published",
        "here",
        "spherical, sketch: published",
        "here",
        "from the class means",
        "k-means, dense",
        "spherical, dense",
    ]);
    for (q, spread) in [(20, 0.5), (20, 1.0), (50, 0.5), (50, 1.0)] {
        let mut table: [Trials; 5] = Default::default();
        for seed in 0..trials {
            let (x, truth) = in_subspaces(sizes, spread, &mut Rng::from_seed(seed));
            let score = |labels: &Array1<u32>| Ok(100.0 * recovered(labels, &truth));
            let dense = || Dense::new(x.view());
            let sketch = || Sketch::new(x.view(), q, seed);
            let started = |builder: Builder<f64>| {
                let builder = builder.restarts(STARTS).seed(seed);
                builder.max_iterations(1_000)
            };
            let k_means = || started(as_published(algorithms::k_means(5), TOLERANCE));
            let gmm = || started(spherical(5, TOLERANCE));
            table[0].run(sketch, k_means(), score)?;
            table[1].run(sketch, gmm(), score)?;
            let known = Given::new(class_means(&x, &truth, &[0, 1, 2, 3, 4]).view());
            table[2].run(sketch, gmm().restarts(1).seeder(known), score)?;
            table[3].run(dense, k_means(), score)?;
            table[4].run(dense, gmm(), score)?;
        }
        let [k_means, gmm, others @ ..] = table.map(|own| with_error(mean(&own.scores), 1));
        let mut cells = beside(&["14.5", "98.5"], [k_means, gmm]);
        cells.extend(others);
        row(&format!("Q = {q}, means' deviation {spread}"), &cells);
    }
    Ok(())
}

/// Means of fits to sketches with shared coordinates: how far they are from those of the digits, and how they look.
fn means(x: &Array2<u8>, truth: &Array1<u32>, picture: Option<&String>) -> Outcome {
    const KEPT: usize = 10;
    const SHARED: [(usize, &str); 3] = [(0, "clear"), (5, "noisier"), (10, "meaningless")];
    const FITS: u64 = 10;
    let whole = class_means(x, truth, &DIGITS).mapv(|x| x as f32);
    println!("\nspherical fits of {DIGITS:?} of MNIST, Q = {KEPT}, {FITS} trials");
    heading(&["means: published", "here, RMSE to those of the digits"]);
    let mut drawn = vec![("all".to_owned(), whole.clone())];
    for (shared, published) in SHARED {
        let mut distances = Vec::new();
        for seed in 0..FITS {
            let mut sketch = Sketch::<f32>::builder(x.ncols(), KEPT, seed).shared(shared);
            sketch.push(x.view())?;
            let builder = spherical(DIGITS.len(), TOLERANCE).restarts(RESTARTS);
            let fit = builder.seed(seed).build()?.fit(&sketch.finish()?)?;
            distances.push(metrics::matched_rmse(fit.model.means(), whole.view())?);
            if seed == 0 {
                drawn.push((format!("{shared} shared"), fit.model.means().to_owned()));
            }
        }
        let here = with_error(mean(&distances), 1);
        row(&format!("Q_S = {shared}"), &beside(&[published], [here]));
    }
    picture.map_or(Ok(()), |path| draw(&drawn, path))
}

/// Draws a row of images for each set of means.
fn draw(sets: &[(String, Array2<f32>)], path: &str) -> Outcome {
    const SIDE: usize = 28;
    const PIXEL: i32 = 6;
    const GAP: i32 = 12;
    const LEFT: i32 = 84;
    let cell = SIDE as i32 * PIXEL + GAP;
    let width = LEFT + DIGITS.len() as i32 * cell;
    let height = GAP + sets.len() as i32 * cell;
    let area = SVGBackend::new(path, (width as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = ("sans-serif", 15).into_font();
    for ((name, means), top) in sets.iter().zip((GAP..).step_by(cell as usize)) {
        let place = (8, top + cell / 2 - GAP);
        area.draw(&Text::new(name.clone(), place, text.clone()))?;
        for (mean, left) in means.outer_iter().zip((LEFT..).step_by(cell as usize)) {
            for (j, &value) in mean.iter().enumerate() {
                let x = left + (j % SIDE) as i32 * PIXEL;
                let y = top + (j / SIDE) as i32 * PIXEL;
                let grey = 255 - value.clamp(0.0, 255.0) as u8;
                let style = RGBColor(grey, grey, grey).filled();
                area.draw(&Rectangle::new([(x, y), (x + PIXEL, y + PIXEL)], style))?;
            }
        }
    }
    area.present()?;
    println!("\nmeans of the fits with seed 0: {path}");
    Ok(())
}

/// Milliseconds of making a sketch and of an iteration, and bytes of a row: over Q with the P in the middle, over P with the second Q.
fn cost(n: usize, kept: &[usize], widths: &[usize]) -> Result<()> {
    const CLUSTERS: usize = 10;
    println!(
        "\n{n} rows of N(0, 1), {CLUSTERS} diagonal components, medians of 5; published: O(N P log P) once, O(N K Q) in an \
         iteration, O(N Q) numbers"
    );
    heading(&[
        "making, ms: published",
        "here",
        "an iteration, ms: published",
        "here",
        "bytes of a row: published",
        "here",
    ]);
    let columns = widths[widths.len() / 2];
    let of_q: Vec<(usize, usize)> = kept.iter().map(|&q| (q, columns)).collect();
    let of_p: Vec<(usize, usize)> = widths.iter().map(|&columns| (kept[1], columns)).collect();
    for (name, lines, sizes, published) in [
        ("exponent of Q", of_q, kept, ["0", "1", "1"]),
        ("exponent of P", of_p, widths, ["1, and ln P", "0", "0"]),
    ] {
        let mut values: [Vec<f64>; 3] = Default::default();
        for (q, columns) in lines {
            let x = normal((n, columns), &mut Rng::from_seed(1)).mapv(|x| x as f32);
            let mut making = Vec::new();
            let mut iterations = Vec::new();
            let mut bytes = 0;
            for seed in 0..5 {
                let started = Instant::now();
                let sketch = Sketch::new(x.view(), q, seed)?;
                making.push(1e3 * started.elapsed().as_secs_f64());
                bytes = sketch.indices().len() * (size_of::<u32>() + size_of::<f32>());
                let builder = algorithms::sparsified_gmm(CLUSTERS)
                    .seed(seed)
                    .tolerance(0.0);
                let report = builder.max_iterations(10).build()?.fit(&sketch)?.report;
                let seconds = (report.timings.search + report.timings.update).as_secs_f64();
                iterations.push(1e3 * seconds / (report.iterations + 1) as f64);
            }
            let line = [
                median(&making),
                median(&iterations),
                bytes as f64 / n as f64,
            ];
            values
                .iter_mut()
                .zip(line)
                .for_each(|(all, one)| all.push(one));
            let here = line.map(|value| format!("{value:.1}"));
            row(&format!("Q = {q}, P = {columns}"), &beside(&[""; 3], here));
        }
        let here = values.map(|values| format!("{:.2}", slope(sizes, &values)));
        row(name, &beside(&published, here));
    }
    Ok(())
}
