//! Rows unlike the others: the lowest log densities under a mixture.
//!
//! `cargo run --release -p gallery --bin anomalies -- [--out anomalies.svg]`: three clusters of different shapes and 9
//! scattered rows. A density with a threshold at its lowest percent finds most of them. Distance to the nearest mean alone would
//! not: in the wide cluster, far is common.

use clap::Parser;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use plotters::prelude::*;
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Rows unlike the others, by their log density")]
struct Arguments {
    #[arg(long, default_value = "anomalies.svg")]
    out: PathBuf,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Rows of the clusters, and scattered rows.
const ROWS: usize = 900;
const ODD: usize = 9;

/// Centre and deviations of each cluster.
const CLUSTERS: [[f64; 4]; 3] = [
    [-4.0, 2.0, 0.4, 0.4],
    [3.0, 3.0, 2.0, 0.5],
    [0.0, -3.0, 0.6, 1.2],
];

fn main() -> std::process::ExitCode {
    gallery::run(program)
}

fn program() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let x = rows(arguments.seed);
    let data = Dense::new(x.view())?;
    let fit = algorithms::gmm(3)
        .covariance(Covariance::Diagonal)
        .restarts(5)
        .seed(arguments.seed)
        .build()?
        .fit(&data)?;
    let densities = fit.model.log_densities(&data)?;

    // As many as are to be looked at: the lowest percent.
    let mut order: Vec<usize> = (0..x.nrows()).collect();
    order.sort_by(|&a, &b| densities[a].total_cmp(&densities[b]));
    let lowest = &order[..x.nrows() / 100];
    let found = lowest.iter().filter(|&&row| row >= ROWS).count();
    println!(
        "{found} of the {} rows with the lowest density are among the {ODD} that belong to no cluster",
        lowest.len()
    );

    let mut marked = vec![false; x.nrows()];
    lowest.iter().for_each(|&row| marked[row] = true);
    draw(&arguments.out, &x, &marked)?;
    println!("{}", arguments.out.display());
    Ok(())
}

fn rows(seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    Array2::from_shape_fn((ROWS + ODD, 2), |(n, j)| match n {
        ..ROWS => CLUSTERS[n % 3][j] + CLUSTERS[n % 3][2 + j] * rng.normal(),
        _ => 16.0 * rng.uniform() - 8.0,
    })
}

fn draw(
    path: &std::path::Path,
    x: &Array2<f64>,
    marked: &[bool],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (900, 640)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(15)
        .caption(
            "Rows unlike the others: low density under a mixture",
            ("sans-serif", 20),
        )
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(-10.0..10.0, -8.5..8.5)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("column 0")
        .y_desc("column 1")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    let at = |n: usize| (x[[n, 0]], x[[n, 1]]);
    let (blue, red) = (RGBColor(46, 107, 180), RGBColor(205, 55, 66));
    let clusters = (0..ROWS).map(|n| Circle::new(at(n), 2, blue.mix(0.35).filled()));
    chart
        .draw_series(clusters)?
        .label("rows of the three clusters")
        .legend(move |at| Circle::new(at, 3, blue.filled()));
    let odd = (ROWS..x.nrows()).map(|n| Circle::new(at(n), 4, BLACK.filled()));
    chart
        .draw_series(odd)?
        .label("scattered rows")
        .legend(|at| Circle::new(at, 4, BLACK.filled()));
    let rings = (0..x.nrows()).filter(|&n| marked[n]);
    chart
        .draw_series(rings.map(|n| Circle::new(at(n), 8, red.stroke_width(2))))?
        .label("the percent of rows with the lowest density")
        .legend(move |at| Circle::new(at, 6, red.stroke_width(2)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}
