//! How a fit works, step by step: `cargo run --release -p gallery --bin steps -- [steps.svg]`.
//!
//! Six panels of the same rows. Written as text: a path of many points is a tenth as long as their circles.

use coremix::Progress;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, ArrayView1};
use std::ops::ControlFlow;

const CLUSTERS: usize = 9;
const GREY: &str = "#adb5bd";
const BLUE: &str = "#2e6bb4";
const RED: &str = "#cd3742";

fn main() -> std::process::ExitCode {
    gallery::run(program)
}

fn program() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args().nth(1).unwrap_or("steps.svg".into());
    let mut rng = Rng::from_seed(1);
    let x = Array2::from_shape_fn((540, 2), |(n, j)| {
        let place = [n % CLUSTERS % 3, n % CLUSTERS / 3][j] as f64;
        6.0 * place + (0.5 + 0.1 * (n % CLUSTERS) as f64) * rng.normal()
    });
    let data = Dense::new(&x)?;

    // k-means on a coreset; from where it ends, on all rows with split and merge.
    let mut means = Vec::new();
    let fit = algorithms::lwcs_k_means(CLUSTERS, 60)
        .seeder(KMeansPlusPlus::default())
        .build()?
        .fit_observed(&data, |progress| {
            if let Progress::Iteration { model, .. } = progress {
                means.push(model.means());
            }
            ControlFlow::Continue(())
        })?;
    let (seeds, second, last) = (&means[0], &means[1], &means[means.len() - 1]);
    let moves = Clusterer::builder()
        .clusters(CLUSTERS)
        .phases(|_| vec![Phase::new(Bounded::default()).split_and_merge(3)])
        .start_from(&fit.model);
    let end = moves.build()?.fit(&data)?.model.means().to_owned();

    let subset = fit.coreset.as_ref().ok_or("all rows are the coreset")?;
    let drawn = subset.rows.iter().zip(&subset.weights);
    let coreset = drawn.map(|(&n, weight)| dots([x.row(n)], BLUE, 1.5 * weight.sqrt()));

    let (components, shares) = fit.model.truncated_responsibilities(&data, 3)?;
    let some = (0..x.nrows()).step_by(17);
    let supports = some.flat_map(|n| (0..3).map(move |place| (n, place)));
    let supports = supports.map(|(n, place)| {
        let mean = last.row(components[[n, place]] as usize);
        line([x.row(n), mean], BLUE, 0.5 + 2.0 * shares[[n, place]]) + &dots([x.row(n)], BLUE, 6.0)
    });
    let supports = supports.chain([crosses(last)]);

    let update = (0..CLUSTERS).map(|c| line(means.iter().map(|at| at.row(c)), RED, 1.5));
    let update = update.chain([crosses(last)]);

    // A row is settled if its mean stays the nearest, although all of them move.
    let moved = |c| distance(seeds.row(c), second.row(c));
    let most = (0..CLUSTERS).map(moved).fold(0.0, f64::max);
    let open = x.rows().into_iter().filter(|row| {
        let mut near: Vec<usize> = (0..CLUSTERS).collect();
        let from = |c: usize| distance(*row, seeds.row(c));
        near.sort_by(|&a, &b| from(a).total_cmp(&from(b)));
        from(near[0]) + moved(near[0]) > from(near[1]) - most
    });
    let open = dots(open, BLUE, 4.0);

    let shift = (0..CLUSTERS).map(|c| line([last.row(c), end.row(c)], RED, 1.0));
    let shift = shift.chain([dots(last.rows(), "black", 9.0), crosses(&end)]);

    let panels: [(&str, String); 6] = [
        ("1. Coreset: size is weight", coreset.collect()),
        ("2. Seeds", crosses(seeds)),
        ("3. E-step: some rows, their supports", supports.collect()),
        ("4. M-step: the means move", update.collect()),
        ("5. Bounds: grey rows are not read", open + &crosses(second)),
        ("6. Split and merge: black to red", shift.collect()),
    ];
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 936 546" font-size="14" stroke-linecap="round">
<path fill="white" d="M-8-8h936v546h-936z"/><defs><g id="rows">{}</g></defs>"##,
        dots(x.rows(), GREY, 3.0)
    );
    for (i, (title, marks)) in panels.iter().enumerate() {
        svg += &format!(
            r##"
<g transform="translate({} {})"><text y="14" font-family="sans-serif">{title}</text>
<path fill="none" stroke="grey" d="M0 20h300v240H0z"/><use href="#rows"/>{marks}</g>"##,
            310 * (i % 3),
            270 * (i / 3)
        );
    }
    std::fs::write(&out, svg + "</svg>\n")?;
    println!("{out}");
    Ok(())
}

fn distance(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Where a point lies in its panel.
fn at(point: ArrayView1<f64>) -> String {
    let (x, y) = (65.0 + 13.0 * point[0], 218.0 - 12.0 * point[1]);
    format!("{x:.1} {y:.1}")
}

fn path(colour: &str, width: f64, path: &str) -> String {
    format!(r#"<path fill="none" stroke="{colour}" stroke-width="{width:.1}" d="{path}"/>"#)
}

fn dots<'a>(
    points: impl IntoIterator<Item = ArrayView1<'a, f64>>,
    colour: &str,
    width: f64,
) -> String {
    let dots: String = points
        .into_iter()
        .map(|point| format!("M{}h0", at(point)))
        .collect();
    path(colour, width, &dots)
}

fn line<'a>(
    points: impl IntoIterator<Item = ArrayView1<'a, f64>>,
    colour: &str,
    width: f64,
) -> String {
    let points: Vec<String> = points.into_iter().map(at).collect();
    path(colour, width, &format!("M{}", points.join("L")))
}

fn crosses(points: &Array2<f64>) -> String {
    let cross = |point| format!("M{}m-5-5l10 10m0-10l-10 10", at(point));
    let crosses: String = points.rows().into_iter().map(cross).collect();
    path(RED, 2.0, &crosses)
}
