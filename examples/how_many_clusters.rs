//! How many clusters are there? Prints a table, and draws the curves:
//! `cargo run --release --example how_many_clusters -- [PICTURE.svg [ALGORITHM [ROWS.npy [MOST]]]]`.
//!
//! The default is `gmm` with up to 12 clusters, on generated rows of 6 clusters.

use coremix::prelude::*;
use coremix::selection::{Criterion, Selection, Sweep};
use coremix::stage::Rng;
use ndarray::Array2;
use ndarray_npy::read_npy;
use plotters::coord::types::{RangedCoordf64, RangedCoordu32};
use plotters::prelude::*;
use std::error::Error as StdError;
use std::fs;
use std::path::Path;

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordu32, RangedCoordf64>>;

/// Clusters in the generated rows.
const CLUSTERS: usize = 6;

const INK: RGBColor = RGBColor(33, 37, 41);
const BLUE: RGBColor = RGBColor(46, 107, 180);
const RED: RGBColor = RGBColor(205, 55, 66);

/// Rows around centres on a circle, near enough to overlap a little.
fn points() -> Array2<f64> {
    let mut rng = Rng::from_seed(1);
    Array2::from_shape_fn((3_000, 2), |(n, j)| {
        let angle = (n % CLUSTERS) as f64 / CLUSTERS as f64 * std::f64::consts::TAU;
        5.0 * [angle.cos(), angle.sin()][j] + rng.normal()
    })
}

/// Rows of a file of `f64`, `f32` or `u8`.
fn read(path: &str) -> std::result::Result<Array2<f64>, ndarray_npy::ReadNpyError> {
    read_npy::<_, Array2<f64>>(path)
        .or_else(|_| read_npy::<_, Array2<f32>>(path).map(|x| x.mapv(f64::from)))
        .or_else(|_| read_npy::<_, Array2<u8>>(path).map(|x| x.mapv(f64::from)))
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let mut arguments = std::env::args().skip(1);
    let picture = arguments.next();
    let picture = picture.unwrap_or_else(|| "target/how_many_clusters.svg".into());
    let algorithm = arguments.next().unwrap_or_else(|| "gmm".into());
    let algorithm: Algorithm = algorithm.parse()?;

    let x = match arguments.next() {
        Some(path) => read(&path)?,
        None => points(),
    };
    let most = arguments.next().map_or(Ok(12), |most| most.parse())?;
    let data = Dense::new(x.view())?;
    let sweep = Sweep::new(1..=most).held_out(0.2);
    let selection = sweep.run(&data, |k| algorithm.clone().clusters(k).boxed())?;
    println!("{algorithm}\n{selection}");

    // The Dirichlet process uses as many of its components as it needs.
    let process = algorithms::dp_gmm(most, 1.0).build()?;
    let beside = sweep.beside(&data, most, &process)?;
    let (used, held_out) = (beside.criteria.in_use, beside.held_out.unwrap_or(f64::NAN));
    println!("dp-gmm uses {used} of {most} components, held-out {held_out:.5}");

    draw(Path::new(&picture), &selection)?;
    println!("drawn in {picture}");
    Ok(())
}

/// One panel per criterion.
fn draw(path: &Path, selection: &Selection<f64>) -> std::result::Result<(), Box<dyn StdError>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (1_200, 760)).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, criterion) in root.split_evenly((2, 2)).iter().zip(Criterion::ALL) {
            panel(area, selection, criterion)?;
        }
        root.present()?;
    }
    fs::write(path, &svg)?;
    Ok(())
}

fn panel(
    area: &Panel<'_>,
    selection: &Selection<f64>,
    criterion: Criterion,
) -> std::result::Result<(), Box<dyn StdError>> {
    let values = selection.candidates.iter();
    let values = values.filter_map(|one| Some((one.clusters as u32, one.value(criterion)?)));
    let values: Vec<(u32, f64)> = values.collect();
    let title = match criterion {
        Criterion::HeldOut => "log-likelihood per held-out row: higher is better".into(),
        _ => format!("{criterion}: lower is better"),
    };
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| {
        (low.min(v.1), high.max(v.1))
    });
    if low > high {
        return Ok(()); // No model has a value.
    }
    let room = (0.08 * (high - low)).max(1e-9);
    let digits = (1.0 - (high - low).log10()).clamp(0.0, 9.0) as usize;
    let last = values.last().map_or(1, |v| v.0);
    let mut chart: Chart<'_, '_> = ChartBuilder::on(area)
        .margin(16)
        .caption(&title, ("sans-serif", 20).into_font().color(&INK))
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0..last + 1, low - room..high + room)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc("clusters; red is the best")
        .y_label_formatter(&|value| format!("{value:.digits$}"))
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .draw()?;
    let line = PathElement::new(values.clone(), BLUE.stroke_width(2));
    chart.draw_series(std::iter::once(line))?;
    let best = selection.best(criterion).map(|one| one.clusters as u32);
    chart.draw_series(values.iter().map(|&point| match best == Some(point.0) {
        true => Circle::new(point, 7, RED.filled()),
        false => Circle::new(point, 4, BLUE.filled()),
    }))?;
    Ok(())
}
