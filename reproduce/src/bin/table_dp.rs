//! The figures of \[DP\] on the data in `../shared/data`: Dirichlet process mixtures on all rows and on coresets.
//!
//! `cargo run --release -p reproduce --bin table_dp -- [SET ..] [OPTIONS]`, sets `kdd04bio`, `song`, `mnist` (default: all;
//! `none` shows a small generated set instead). Each set is split into 80 % for fitting and 20 % held out. Coresets of
//! every size are drawn from the first part, in two ways; the table has the predictive log-likelihood per held-out
//! point and what the fit took, coreset and seeds included. Draw `i` uses split `i` modulo the number of splits and the
//! seed `i` of its own. Means have their standard error in brackets; times are medians. Run it on an otherwise idle
//! machine. The full protocol is `--splits 5 --full 5 --draws 25`; one full fit takes minutes.
//!
//! `--picture FILE.svg` draws the posterior ellipses of a two-dimensional set instead, for all rows and for a coreset.

use clap::Parser;
use coremix::coreset::Coreset;
use coremix::families::DirichletProcessMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, algorithms};
use faer::{MatRef, Side};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use plotters::prelude::*;
use reproduce::{as_published, heading, load, mean, median, row, with_error};
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, Parser)]
struct Settings {
    /// `kdd04bio`, `song`, `mnist`; `none` for a small generated set
    sets: Vec<String>,
    /// Splits into 80 % and 20 %
    #[arg(long, default_value_t = 5)]
    splits: usize,
    /// Splits with a fit to all rows
    #[arg(long, default_value_t = 0)]
    full: usize,
    /// Coresets of each size and kind, over all splits
    #[arg(long, default_value_t = 5)]
    draws: usize,
    /// Sizes of coresets
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 2_000, 4_000, 8_000, 16_000])]
    sizes: Vec<usize>,
    /// Components
    #[arg(long, default_value_t = 100)]
    truncation: usize,
    /// Concentration
    #[arg(long, default_value_t = 1.0)]
    concentration: f64,
    /// The priors of the paper instead of those of the data
    #[arg(long)]
    paper_priors: bool,
    /// The likeliest components that share a point, instead of all
    #[arg(long)]
    c_prime: Option<usize>,
    #[arg(long, default_value_t = 1e-4)]
    tolerance: f64,
    #[arg(long, default_value_t = 200)]
    max_iterations: usize,
    /// Draw a picture here instead
    #[arg(long)]
    picture: Option<PathBuf>,
}

fn main() -> Outcome<()> {
    let mut settings = Settings::parse();
    if let Some(path) = settings.picture.clone() {
        return picture(&settings, &path);
    }
    if settings.sets.is_empty() {
        settings.sets = ["kdd04bio", "song", "mnist"].map(String::from).into();
    }
    for set in settings.sets.clone() {
        match set.as_str() {
            "none" => {
                settings.truncation = settings.truncation.min(12);
                settings.max_iterations = settings.max_iterations.min(20);
                settings.sizes = vec![100, 300];
                (settings.full, settings.splits) = (1, 2);
                table("generated", "5 blobs", &generated(1_500), &settings)?;
            }
            "kdd04bio" => {
                let x: Option<Array2<f32>> = load(&set)?;
                if let Some(x) = x {
                    table(
                        &set,
                        "74 columns, standardised",
                        &standardised(x.view()),
                        &settings,
                    )?;
                }
            }
            "song" => {
                let x: Option<Array2<f32>> = load(&set)?;
                if let Some(x) = x {
                    // The 12 averages of the timbre, and the first 13 of its covariances.
                    let x = standardised(x.slice(s![.., ..25]));
                    table(&set, "its first 25 columns, standardised", &x, &settings)?;
                }
            }
            "mnist" => {
                let x: Option<Array2<u8>> = load("mnist_u8")?;
                if let Some(x) = x {
                    let x = whitened(&x, 10)?;
                    table(&set, "10 whitened principal components", &x, &settings)?;
                }
            }
            other => println!("SKIPPED {other}: not one of kdd04bio, song, mnist, none"),
        }
    }
    Ok(())
}

/// Mean 0 and variance 1 in every column, over all rows.
fn standardised(x: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut x = x.mapv(f64::from);
    for mut column in x.columns_mut() {
        let mean = column.mean().expect("a set has rows");
        column -= mean;
        let deviation = column.dot(&column) / column.len() as f64;
        column /= deviation.sqrt().max(f64::MIN_POSITIVE);
    }
    x.mapv(|value| value as f32)
}

/// The principal components of largest variance, each of variance 1, over all rows.
fn whitened(x: &Array2<u8>, components: usize) -> Outcome<Array2<f32>> {
    let (n, d) = x.dim();
    let mut mean = Array1::<f64>::zeros(d);
    let mut second = Array2::<f64>::zeros((d, d));
    for rows in x.axis_chunks_iter(Axis(0), 4_096) {
        let rows = rows.mapv(f64::from);
        mean += &rows.sum_axis(Axis(0));
        second += &rows.t().dot(&rows);
    }
    mean /= n as f64;
    let column = mean.view().insert_axis(Axis(1));
    let covariance = second / n as f64 - column.dot(&column.t());
    let values = covariance.as_slice().expect("contiguous");
    let eigen = MatRef::from_row_major_slice(values, d, d)
        .self_adjoint_eigen(Side::Lower)
        .map_err(|error| format!("{error:?}"))?;
    // In increasing order.
    let (vectors, variances) = (eigen.U(), eigen.S().column_vector());
    let basis = Array2::from_shape_fn((d, components), |(j, c)| {
        vectors[(j, d - 1 - c)] / variances[d - 1 - c].sqrt()
    });
    let mut out = Array2::zeros((n, components));
    let chunks = out.axis_chunks_iter_mut(Axis(0), 4_096);
    for (mut out, rows) in chunks.zip(x.axis_chunks_iter(Axis(0), 4_096)) {
        let rows = rows.mapv(f64::from) - &mean;
        out.assign(&rows.dot(&basis).mapv(|value| value as f32));
    }
    Ok(out)
}

/// Five stretched blobs of different size in two dimensions.
fn generated(n: usize) -> Array2<f32> {
    let mut rng = Rng::from_seed(7);
    let blobs: Vec<[f64; 6]> = (0..5)
        .map(|_| std::array::from_fn(|i| rng.normal() * if i < 2 { 5.0 } else { 1.0 }))
        .collect();
    let mut x = Array2::zeros((n, 2));
    for mut row in x.rows_mut() {
        let share = rng.uniform();
        let [mx, my, xx, xy, yx, yy] = blobs[(5.0 * share * share) as usize];
        let (u, v) = (rng.normal(), rng.normal());
        row[0] = (mx + xx * u + xy * v) as f32;
        row[1] = (my + yx * u + yy * v) as f32;
    }
    x
}

/// Rows to fit and rows held out.
fn split(x: &Array2<f32>, split: u64) -> (Array2<f32>, Array2<f32>) {
    let mut rng = Rng::from_seed(1_000 + split);
    let mut rows: Vec<usize> = (0..x.nrows()).collect();
    for i in (1..rows.len()).rev() {
        rows.swap(i, rng.below(i + 1));
    }
    let (held_out, fitted) = rows.split_at(x.nrows() / 5);
    (x.select(Axis(0), fitted), x.select(Axis(0), held_out))
}

/// Results of the fits to one kind of rows.
#[derive(Default)]
struct Column {
    /// Predictive log-likelihood per held-out point.
    likelihoods: Vec<f64>,
    seconds: Vec<f64>,
    iterations: Vec<f64>,
    per_iteration: Vec<f64>,
    occupied: Vec<f64>,
    effective: Vec<f64>,
}

impl Column {
    fn fit(
        &mut self,
        settings: &Settings,
        (fitted, held_out): &(Array2<f32>, Array2<f32>),
        coreset: impl Coreset<f32> + 'static,
        seed: u64,
    ) -> Outcome<()> {
        let started = Instant::now();
        let data = Dense::new(fitted.view())?;
        let fit = run(settings, builder(settings, coreset, seed), &data)?;
        self.seconds.push(started.elapsed().as_secs_f64());
        let held_out = Dense::new(held_out.view())?;
        let densities = fit.model.log_densities(&held_out)?;
        self.likelihoods.push(densities.mean().expect("rows"));
        self.iterations.push(fit.report.iterations as f64);
        let search = fit.report.timings.search + fit.report.timings.update;
        let searches = fit.report.iterations as f64 + 1.0;
        self.per_iteration.push(search.as_secs_f64() / searches);
        self.occupied.push(fit.model.components_above(0.001) as f64);
        self.effective.push(fit.model.effective_components());
        Ok(())
    }

    fn print(&self, name: &str, full: Option<&Self>) {
        let seconds = median(&self.seconds);
        let times = |full: &Self| format!("{:.1}x", median(&full.seconds) / seconds);
        let cells = [
            with_error(mean(&self.likelihoods), 4),
            format!("{seconds:.2}"),
            full.map_or_else(String::new, times),
            format!("{:.1}", mean(&self.iterations).0),
            format!("{:.3}", median(&self.per_iteration)),
            format!("{:.0}", mean(&self.occupied).0),
            format!("{:.1}", mean(&self.effective).0),
        ];
        row(name, &cells);
    }
}

fn family(settings: &Settings) -> DirichletProcess {
    // As published: components that are not needed empty by themselves.
    let family = DirichletProcess::new(settings.concentration).merges(false);
    if settings.paper_priors {
        family.paper_priors()
    } else {
        family
    }
}

type Pipeline = Builder<f32, DirichletProcess>;

fn builder(settings: &Settings, coreset: impl Coreset<f32> + 'static, seed: u64) -> Pipeline {
    let builder = algorithms::dp_gmm(settings.truncation, settings.concentration)
        .m_step(family(settings))
        .coreset(coreset);
    as_published(builder, settings.tolerance)
        .max_iterations(settings.max_iterations)
        .seed(seed)
}

fn run(
    settings: &Settings,
    builder: Pipeline,
    data: &Dense<'_, f32>,
) -> Result<Fit<DirichletProcessMixture<f32>>> {
    match settings.c_prime {
        Some(c_prime) => builder.e_step(Exhaustive::truncated(c_prime)),
        None => builder,
    }
    .build()?
    .fit(data)
}

fn table(set: &str, what: &str, x: &Array2<f32>, settings: &Settings) -> Outcome<()> {
    let (n, d) = x.dim();
    println!(
        "\n{set} ({n} x {d}: {what}), T = {}, concentration {}, {} priors, tolerance {}, {} splits, {} full fits, {} draws",
        settings.truncation,
        settings.concentration,
        if settings.paper_priors {
            "the paper's"
        } else {
            "the data's"
        },
        settings.tolerance,
        settings.splits,
        settings.full.min(settings.splits),
        settings.draws
    );
    heading(&[
        "held-out nats",
        "s",
        "times as fast",
        "iterations",
        "s, each",
        "of 0.1 % or more",
        "effective",
    ]);
    let splits: Vec<_> = (0..settings.splits as u64).map(|i| split(x, i)).collect();
    let mut full = Column::default();
    for (seed, split) in splits.iter().enumerate().take(settings.full) {
        full.fit(settings, split, Full, seed as u64)?;
    }
    let full = (!full.seconds.is_empty()).then_some(full);
    if let Some(full) = &full {
        full.print("all rows", None);
    }
    for &size in &settings.sizes {
        let (mut lightweight, mut uniform) = (Column::default(), Column::default());
        for draw in 0..settings.draws {
            let split = &splits[draw % splits.len()];
            lightweight.fit(settings, split, Lightweight::new(size), draw as u64)?;
            uniform.fit(settings, split, UniformCoreset::new(size), draw as u64)?;
        }
        lightweight.print(&format!("lightweight {size}"), full.as_ref());
        uniform.print(&format!("uniform {size}"), full.as_ref());
    }
    Ok(())
}

/// All rows and a coreset: points, and the ellipses of two standard deviations of every component that has points.
fn picture(settings: &Settings, path: &Path) -> Outcome<()> {
    const INK: RGBColor = RGBColor(38, 38, 46);
    const FULL: RGBColor = RGBColor(38, 103, 190);
    const CORESET: RGBColor = RGBColor(206, 82, 36);
    let set = settings.sets.first().map_or("s1", String::as_str);
    let given: Option<Array2<f64>> = if set == "none" { None } else { load(set)? };
    let x = given.map_or_else(|| generated(2_000), |x| x.mapv(|value| value as f32));
    let size = settings.sizes[0]
        .min(x.nrows() / 10)
        .max(2 * settings.truncation);
    let data = Dense::new(x.view())?;
    let all = run(settings, builder(settings, Full, 1), &data)?;
    let few = run(
        settings,
        builder(settings, Lightweight::new(size), 1),
        &data,
    )?;

    let root = SVGBackend::new(path, (1_240, 640)).into_drawing_area();
    root.fill(&WHITE)?;
    let range = |column: usize| {
        let values = x.column(column);
        let (low, high) = values.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| {
            (low.min(v), high.max(v))
        });
        let margin = f64::from(high - low) * 0.15;
        f64::from(low) - margin..f64::from(high) + margin
    };
    let every: Vec<usize> = (0..x.nrows()).collect();
    let drawn = few.coreset.as_ref().map_or(&every, |coreset| &coreset.rows);
    let panels = root.split_evenly((1, 2));
    for (panel, (fit, rows, colour, name)) in panels.iter().zip([
        (&all, &every, FULL, "all rows"),
        (&few, drawn, CORESET, "lightweight coreset"),
    ]) {
        let per_point = fit.model.log_likelihood(&data)? / x.nrows() as f64;
        let caption = format!(
            "{name}: {} points, {per_point:.2} nats per point; two deviations, faint: few points",
            rows.len()
        );
        let mut chart = ChartBuilder::on(panel)
            .margin(18)
            .caption(caption, ("sans-serif", 18).into_font().color(&INK))
            .build_cartesian_2d(range(0), range(1))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_axes()
            .axis_style(INK.mix(0.5))
            .draw()?;
        let radius = if rows.len() > 1_000 { 1 } else { 2 };
        let dots = rows.iter().map(|&n| {
            let at = (f64::from(x[[n, 0]]), f64::from(x[[n, 1]]));
            Circle::new(at, radius, INK.mix(0.35).filled())
        });
        chart.draw_series(dots)?;
        let (proportions, covariances) = (fit.model.proportions(), fit.model.covariances());
        for (t, covariance) in covariances.outer_iter().enumerate() {
            // One that nobody needs is at the prior, as wide as the data.
            if proportions[t] * x.nrows() as f64 <= 2.0 {
                continue;
            }
            let means = fit.model.means();
            let (mx, my) = (f64::from(means[[t, 0]]), f64::from(means[[t, 1]]));
            let xx = covariance[[0, 0]].sqrt();
            let yx = covariance[[1, 0]] / xx;
            let yy = (covariance[[1, 1]] - yx * yx).max(0.0).sqrt();
            let ellipse = (0..=96).map(|i| {
                let (sin, cos) = (TAU * f64::from(i) / 96.0).sin_cos();
                (mx + 2.0 * xx * cos, my + 2.0 * (yx * cos + yy * sin))
            });
            let opacity = (proportions[t] * 20.0).clamp(0.25, 1.0);
            let style = colour.mix(opacity).stroke_width(2);
            chart.draw_series([PathElement::new(ellipse.collect::<Vec<_>>(), style)])?;
        }
    }
    root.present()?;
    println!("{}", path.display());
    Ok(())
}
