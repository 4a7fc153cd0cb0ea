//! The experiments of \[KM\] next to the figures of the paper: k-means, k-means-C' and lazy-k-means.
//!
//! `cargo run --release -p reproduce --bin table_km -- [PART ..] [RUNS] [PICTURE.svg]` with the parts `table` (Table S1: the grid and random
//! positions), `members` (the bound over C' on the grid), `gap` (Fig. 1 G, H: kdd04bio) and a picture of the bound and the
//! log-likelihood by iteration (Fig. 1 A to F, S4); default: all parts, 100 runs. `none` is a small version of `table`. All algorithms of a
//! run start from the same greedy k-means++ seeds, so that they can be compared run by run. Standard errors are in brackets.

use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Element, Float, algorithms, metrics};
use ndarray::{Array1, Array2};
use plotters::prelude::*;
use rayon::prelude::*;
use reproduce::{as_published, beside, heading, load, mean, row, signed, with_error};

const PER_CLUSTER: usize = 100;
const CLUSTERS: usize = 25;
const KDD_CLUSTERS: usize = 500;
const KDD_RUNS: u64 = 5;

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut parts = Vec::new();
    let mut picture = None;
    let mut runs = 100;
    for argument in std::env::args().skip(1) {
        if argument.ends_with(".svg") {
            picture = Some(argument);
        } else if let Ok(number) = argument.parse::<u64>() {
            runs = number.max(2);
        } else {
            parts.push(argument);
        }
    }
    let all = parts.is_empty() && picture.is_none();
    let wanted = |part: &str| all || parts.iter().any(|own| own == part);
    if wanted("table") {
        table(runs)?;
    } else if wanted("none") {
        table(5)?;
    }
    if wanted("members") {
        members(runs)?;
    }
    if wanted("gap")
        && let Some(x) = load::<f32, _>("kdd04bio")?
    {
        gap(&x)?;
    }
    if let Some(path) = picture {
        draw(&path)?;
    }
    Ok(())
}

/// Figures of one run: the log-likelihood and the free energy of a row, the quantization error, purity and NMI.
type Scores = [f64; 5];

/// Scores of a fit, run until nothing changes.
fn scores<F: Float>(
    builder: Builder<F>,
    data: &dyn Data<F>,
    truth: Option<&Array1<u32>>,
) -> Result<Scores> {
    let fit = builder.max_iterations(1_000).build()?.fit(data)?;
    let rows = data.len() as f64;
    let bound = fit.report.free_energies.last().copied();
    let [purity, nmi] = match truth {
        None => [f64::NAN; 2],
        Some(truth) => {
            let labels = fit.model.predict(data)?;
            [
                metrics::purity(labels.view(), truth.view())?,
                metrics::nmi(labels.view(), truth.view())?,
            ]
        }
    };
    Ok([
        fit.model.log_likelihood(data)? / rows,
        bound.unwrap_or(f64::NAN) / rows,
        fit.model.quantization_error(data)?,
        purity,
        nmi,
    ])
}

/// Greedy k-means++ seeds, in the unit of the data.
fn greedy_seeds<F: Float>(data: &dyn Data<F>, clusters: usize, seed: u64) -> Result<Array2<F>> {
    let fit = algorithms::k_means(clusters)
        .seeder(KMeansPlusPlus::greedy())
        .max_iterations(0)
        .seed(seed)
        .build()?
        .fit(data)?;
    Ok(fit.model.means().to_owned())
}

/// k-means-C' from these seeds, with a stop at rounding.
fn members_of<F: Float>(c_prime: usize, seeds: &Array2<F>) -> Builder<F> {
    let builder = algorithms::k_means_c_prime(seeds.nrows(), c_prime);
    as_published(builder.seeder(Given::new(seeds.view())), 1e-9)
}

/// Scores of `runs` runs of each of some algorithms, made from the seeds of a run, on a data set of the seed `of(run)`.
fn of_runs<const N: usize>(
    runs: u64,
    birch: Birch,
    of: impl Fn(u64) -> u64 + Sync,
    builders: impl Fn(&Array2<f64>) -> [Builder<f64>; N] + Sync,
) -> Result<[Vec<Scores>; N]> {
    let runs: Vec<[Scores; N]> = (0..runs)
        .into_par_iter()
        .map(|seed| {
            let made = birch.generate::<f64>(of(seed))?;
            let data = Dense::new(made.points.view())?;
            let seeds = greedy_seeds(&data, CLUSTERS, seed)?;
            let mut each = [[0.0; 5]; N];
            for (own, builder) in each.iter_mut().zip(builders(&seeds)) {
                *own = scores(builder, &data, Some(&made.labels))?;
            }
            Ok(each)
        })
        .collect::<Result<_>>()?;
    Ok(std::array::from_fn(|i| {
        runs.iter().map(|scores| scores[i]).collect()
    }))
}

/// One of the scores of some runs.
fn one_of(runs: &[Scores], score: usize) -> Vec<f64> {
    runs.iter().map(|scores| scores[score]).collect()
}

const NAMES: [&str; 4] = [
    "k-means",
    "k-means-C', C' = 2",
    "lazy-k-means, epsilon = 0.1",
    "lazy-k-means, 1 + epsilon = 1.1 of squared distances",
];

/// Mean and best run of Table S1: log-likelihood, error, purity, NMI, on the grid and at random positions.
const PUBLISHED: [[[&str; 4]; 2]; 3] = [
    [
        [
            "-6.127, -6.016",
            "5,503, 4,836",
            "0.971, 0.992",
            "0.977, 0.987",
        ],
        [
            "-5.842, -5.789",
            "4,535, 4,291",
            "0.819, 0.856",
            "0.879, 0.875",
        ],
    ],
    [
        [
            "-6.117, -6.016",
            "5,476, 4,837",
            "0.973, 0.992",
            "0.978, 0.986",
        ],
        [
            "-5.828, -5.771",
            "4,637, 4,331",
            "0.811, 0.864",
            "0.880, 0.880",
        ],
    ],
    [
        [
            "-6.117, -6.016",
            "5,452, 4,837",
            "0.974, 0.992",
            "0.978, 0.987",
        ],
        [
            "-5.850, -5.803",
            "4,592, 4,351",
            "0.809, 0.846",
            "0.876, 0.880",
        ],
    ],
];

/// Table S1, on one data set of each kind. Random positions are drawn anew in each run, too, for the differences.
fn table(runs: u64) -> Result<()> {
    println!(
        "BIRCH, {CLUSTERS} clusters of {PER_CLUSTER} rows, {runs} runs: mean, then the run of the highest log-likelihood"
    );
    let builders = |seeds: &Array2<f64>| {
        let given = || Given::new(seeds.view());
        let lazy = |epsilon: f64| algorithms::lazy_k_means(CLUSTERS, epsilon).seeder(given());
        [
            algorithms::k_means(CLUSTERS).seeder(given()).tolerance(0.0),
            members_of(2, seeds),
            lazy(0.1).tolerance(0.0),
            lazy(1.1f64.sqrt() - 1.0).tolerance(0.0),
        ]
    };
    let grid = Birch::grid(PER_CLUSTER);
    let random = Birch::random(PER_CLUSTER);
    let designs = [
        ("grid", of_runs(runs, grid, |_| 0, builders)?),
        ("random", of_runs(runs, random, |_| 0, builders)?),
        (
            "random, new in each run",
            of_runs(runs, random, |run| run, builders)?,
        ),
    ];
    heading(&["log-likelihood", "", "error", "", "purity", "", "NMI", ""]);
    for (place, (design, all)) in designs.iter().enumerate().take(2) {
        for ((name, own), published) in NAMES.iter().zip(all).zip(PUBLISHED) {
            let best = own.iter().max_by(|a, b| a[0].total_cmp(&b[0]));
            let here = [(0, 3), (2, 0), (3, 3), (4, 3)].map(|(score, digits)| {
                let best = best.map_or(f64::NAN, |best| best[score]);
                let mean = with_error(mean(&one_of(own, score)), digits);
                format!("{mean}, {best:.digits$}")
            });
            row(
                &format!("{design}: {name}"),
                &beside(&published[place], here),
            );
        }
    }
    println!("\nLess k-means, paired:");
    let columns = designs
        .iter()
        .flat_map(|(design, _)| [format!("log-likelihood, {design}"), "error".to_owned()]);
    let columns: Vec<String> = columns.collect();
    heading(&columns);
    for (i, name) in NAMES.iter().enumerate().skip(1) {
        let cells = designs.iter().flat_map(|(_, all)| {
            [(0, 4), (2, 1)].map(|(score, digits)| {
                let pairs = one_of(&all[i], score)
                    .into_iter()
                    .zip(one_of(&all[0], score));
                let less: Vec<f64> = pairs.map(|(own, base)| own - base).collect();
                signed(mean(&less), digits)
            })
        });
        row(name, &cells.collect::<Vec<_>>());
    }
    Ok(())
}

/// Members of supports in the tables of the bound.
const MEMBERS: [usize; 6] = [1, 2, 3, 5, 10, 25];

/// The end of k-means-C' over C'.
fn members(runs: u64) -> Result<()> {
    println!("\nk-means-C' on the grid, {runs} runs");
    heading(&["log-likelihood of a row", "less the bound", "error", "NMI"]);
    let all = of_runs(
        runs,
        Birch::grid(PER_CLUSTER),
        |_| 0,
        |seeds| MEMBERS.map(|c_prime| members_of(c_prime, seeds)),
    )?;
    for (c_prime, own) in MEMBERS.iter().zip(&all) {
        let gaps: Vec<f64> = own.iter().map(|scores| scores[0] - scores[1]).collect();
        let cells = [
            with_error(mean(&one_of(own, 0)), 3),
            format!("{:.4}", mean(&gaps).0),
            with_error(mean(&one_of(own, 2)), 0),
            with_error(mean(&one_of(own, 4)), 3),
        ];
        row(&format!("C' = {c_prime}"), &cells);
    }
    Ok(())
}

/// The gap of log-likelihood and bound over C' on real rows.
fn gap<T: Element>(x: &Array2<T>) -> Result<()> {
    println!("\nkdd04bio, {KDD_CLUSTERS} clusters, {KDD_RUNS} runs");
    heading(&[
        "log-likelihood of a row",
        "less the bound",
        "share of the gap of C' = 1",
    ]);
    let data = Dense::new(x.view())?;
    let mut first = f64::NAN;
    for c_prime in MEMBERS {
        let mut likelihoods = Vec::new();
        let mut gaps = Vec::new();
        for seed in 0..KDD_RUNS {
            let builder = algorithms::k_means_c_prime(KDD_CLUSTERS, c_prime).seed(seed);
            let own = scores(as_published(builder, 1e-4), &data, None)?;
            likelihoods.push(own[0]);
            gaps.push(own[0] - own[1]);
        }
        let gap = mean(&gaps).0;
        if c_prime == 1 {
            first = gap;
        }
        let cells = [
            with_error(mean(&likelihoods), 3),
            format!("{gap:.4}"),
            format!("{:.1} %", 100.0 * gap / first),
        ];
        row(&format!("C' = {c_prime}"), &cells);
    }
    Ok(())
}

/// Log-likelihood and free energy of a row after each iteration of k-means-C'.
fn course(data: &dyn Data<f64>, seeds: &Array2<f64>, c_prime: usize) -> Result<Vec<[f64; 2]>> {
    let mut course = Vec::new();
    for iterations in 0..200 {
        let builder = members_of(c_prime, seeds).max_iterations(iterations);
        let fit = builder.build()?.fit(data)?;
        if fit.report.iterations < iterations {
            break;
        }
        let rows = data.len() as f64;
        let bound = fit.report.free_energies.last().copied();
        let bound = bound.unwrap_or(f64::NAN) / rows;
        course.push([fit.model.log_likelihood(data)? / rows, bound]);
    }
    Ok(course)
}

/// k-means on seven Gaussians that overlap: of 200 data sets the one where the log-likelihood falls the most while the bound rises.
fn fall() -> Result<Vec<[f64; 2]>> {
    let mut best = (0.0, Vec::new());
    for seed in 0..200 {
        let mut rng = Rng::from_seed(seed);
        let centres = Array2::from_shape_fn((7, 2), |_| 1.5 * rng.normal());
        let x = Array2::from_shape_fn((350, 2), |(n, j)| centres[[n % 7, j]] + rng.normal());
        let data = Dense::new(x.view())?;
        let course = course(&data, &greedy_seeds(&data, 7, seed)?, 1)?;
        let falls = course.windows(2).map(|pair| pair[0][0] - pair[1][0]);
        let most = falls.fold(0.0, f64::max);
        if most > best.0 {
            best = (most, course);
        }
    }
    Ok(best.1)
}

/// The bound and the log-likelihood by iteration: on the grid over C', and where a step of k-means lowers the latter.
fn draw(path: &str) -> Outcome {
    const LIKELIHOOD: RGBColor = RGBColor(38, 103, 190);
    const BOUND: RGBColor = RGBColor(206, 82, 36);
    let made = Birch::grid(PER_CLUSTER).generate::<f64>(0)?;
    let data = Dense::new(made.points.view())?;
    let seeds = greedy_seeds(&data, CLUSTERS, 1)?;
    let mut panels = Vec::new();
    for c_prime in [1, 2, 3, 5, 25] {
        let name = format!("grid, C' = {c_prime}");
        panels.push((name, course(&data, &seeds, c_prime)?));
    }
    panels.push(("seven Gaussians, C' = 1".into(), fall()?));
    let root = SVGBackend::new(path, (1_080, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (name, course)) in root.split_evenly((2, 3)).iter().zip(&panels) {
        let values = course.iter().flatten();
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        let margin = 0.1 * (high - low);
        let iterations = 0.0..course.len() as f64 - 1.0;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .caption(name, ("sans-serif", 16))
            .x_label_area_size(24)
            .y_label_area_size(52)
            .build_cartesian_2d(iterations, low - margin..high + margin)?;
        chart.configure_mesh().disable_mesh().y_labels(5).draw()?;
        for (place, colour) in [LIKELIHOOD, BOUND].into_iter().enumerate() {
            let points = course.iter().enumerate();
            let points = points.map(|(iteration, values)| (iteration as f64, values[place]));
            let line = PathElement::new(points.collect::<Vec<_>>(), colour.stroke_width(2));
            chart.draw_series([line])?;
        }
    }
    root.present()?;
    println!("log-likelihood (blue) and free energy (red) of a row by iteration: {path}");
    Ok(())
}
