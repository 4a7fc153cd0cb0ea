//! Truncated searches, compared with the authors' program: seconds, errors, and the rate of evaluations, in turn and in one
//! run.
//!
//! `cargo run --release -p reproduce --bin truncated -- [DATA_FOLDER] [--authors PATH] [--errors] [SET ..]`. Without the
//! path there are figures of this crate alone. Times are medians over the seeds, of checking the data and fitting it. Theirs are
//! those that the program prints, without loading. Run it on an otherwise idle machine.

use clap::Parser;
use coremix::e_step::Start;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{Element, algorithms};
use ndarray::Array2;
use ndarray_npy::{ReadableElement, read_npy};
use reproduce::{TOLERANCE, as_published, mean, median};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

#[derive(Parser)]
struct Options {
    /// The folder of the data.
    #[arg(default_value = "../shared/data")]
    folder: PathBuf,
    /// Sets; all, if none is named.
    sets: Vec<String>,
    /// The authors' program.
    #[arg(long)]
    authors: Option<PathBuf>,
    /// Seeds of each figure.
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Lengths of the chains of AFK-MC2.
    #[arg(long, value_delimiter = ',', default_value = "2,20")]
    chains: Vec<usize>,
    /// Algorithms: vc-gmm, var-gmm-s, d-gmm.
    #[arg(long, value_delimiter = ',', default_value = "vc-gmm,var-gmm-s")]
    algorithms: Vec<String>,
    /// Errors on all rows, too. They are outside the times.
    #[arg(long)]
    errors: bool,
    /// In place of times: how much of var-GMM-S changes from one iteration to the next.
    #[arg(long)]
    changes: bool,
    /// Time by stage of every fit of this crate, too.
    #[arg(long)]
    stages: bool,
    /// Supports and neighbors of vc-GMM and var-GMM-S start from the seeds.
    #[arg(long)]
    from_seeds: bool,
    /// Threads of either program.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// A set, its clusters, the rows of its coreset, and the reference error of converged greedy k-means++.
struct Set {
    name: &'static str,
    clusters: usize,
    coreset: usize,
    reference: f64,
}

const SETS: [Set; 4] = [
    Set {
        name: "kdd04bio",
        clusters: 500,
        coreset: 8_192,
        reference: 1.116946e11,
    },
    Set {
        name: "song",
        clusters: 1_000,
        coreset: 16_384,
        reference: 2.495159e11,
    },
    Set {
        name: "mnist_u8",
        clusters: 500,
        coreset: 8_192,
        reference: 1.020308e11,
    },
    Set {
        name: "cod_rna",
        clusters: 500,
        coreset: 32_768,
        reference: 1.157249e6,
    },
];

/// Members of a support and neighbors of a component.
const G: usize = 5;

/// Results of the runs of a program.
#[derive(Default)]
struct Runs {
    seconds: Vec<f64>,
    iterations: Vec<f64>,
    errors: Vec<f64>,
    /// Evaluations of a coordinate per second of all searches and thread, in units of 10^9.
    rates: Vec<f64>,
    /// Seconds per search.
    searches: Vec<f64>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads);
    pool.build()?.install(|| run(&options))
}

fn run(options: &Options) -> Result<()> {
    println!(
        "{:<10}{:<11}{:>3}{:>9}{:>9}{:>7}{:>11}{:>11}{:>9}{:>11}{:>10}{:>10}",
        "set",
        "algorithm",
        "m",
        "s",
        "authors",
        "times",
        "iterations",
        "authors",
        "ms/pass",
        "G/s/thread",
        "error %",
        "authors"
    );
    let wanted = |set: &&Set| options.sets.is_empty() || options.sets.iter().any(|s| s == set.name);
    for set in SETS.iter().filter(wanted) {
        let path = options.folder.join(format!("{}.npy", set.name));
        if set.name == "mnist_u8" {
            of_set(options, set, &path, &read_npy::<_, Array2<u8>>(&path)?)?;
        } else {
            of_set(options, set, &path, &read_npy::<_, Array2<f32>>(&path)?)?;
        }
    }
    Ok(())
}

fn of_set<T>(options: &Options, set: &Set, path: &Path, x: &Array2<T>) -> Result<()>
where
    T: Element + ReadableElement + Into<f64>,
    T::Float: Into<f64>,
{
    if options.changes {
        return changes(set, x);
    }
    for algorithm in &options.algorithms {
        for &chain in &options.chains {
            let (mut ours, mut theirs) = (Runs::default(), Runs::default());
            for seed in 1..=options.seeds {
                fit_ours(options, set, algorithm, chain, seed, x, &mut ours)?;
                if let Some(program) = &options.authors
                    && algorithm != "d-gmm"
                {
                    fit_theirs(
                        options,
                        set,
                        (program, path),
                        algorithm,
                        chain,
                        seed,
                        &mut theirs,
                    )?;
                }
            }
            show(set, algorithm, chain, &ours, &theirs);
        }
    }
    Ok(())
}

/// Rows that are looked at for changes, about.
const ROWS: usize = 4_000;

/// The state of a fit of var-GMM-S after some iterations: means, the variance, and supports of some rows.
struct State {
    means: Array2<f64>,
    variance: f64,
    supports: Vec<Vec<u32>>,
    shares: Vec<Vec<f64>>,
}

/// Fits of more and more iterations, and what is different between them. A memo could save the rows that do not change.
fn changes<T>(set: &Set, x: &Array2<T>) -> Result<()>
where
    T: Element + Into<f64>,
    T::Float: Into<f64>,
{
    println!(
        "{}: % of rows with the same support, best, shares within 1e-2, 1e-6; steps in deviations: median, 90 %, most",
        set.name
    );
    let data = Dense::new(x.view())?;
    let mut before: Option<State> = None;
    for iterations in 1..=24 {
        let builder = as_published(algorithms::var_gmm_s(set.clusters, G, G), TOLERANCE);
        let builder = builder.seeder(AfkMc2::new(2)).seed(1);
        let fit = builder.max_iterations(iterations).build()?.fit(&data)?;
        let ended = fit.report.iterations < iterations;
        let now = state(x, &fit);
        if let Some(before) = &before {
            show_changes(iterations, before, &now);
        }
        before = Some(now);
        if ended {
            break;
        }
    }
    Ok(())
}

fn state<T>(x: &Array2<T>, fit: &Fit<GaussianMixture<T::Float>>) -> State
where
    T: Element + Into<f64>,
    T::Float: Into<f64>,
{
    let means = fit.model.means().mapv(Into::into);
    let variance = fit.model.variance();
    let (mut supports, mut shares) = (Vec::new(), Vec::new());
    let Some(found) = &fit.supports else {
        unreachable!("supports of a truncated search")
    };
    let rows = x.outer_iter().zip(found.outer_iter());
    for (row, support) in rows.step_by(x.nrows().div_ceil(ROWS)) {
        let mut members = support.to_vec();
        let best = members[0];
        members[1..].sort_unstable();
        let squared = |&c: &u32| -> f64 {
            let pairs = row.iter().zip(means.row(c as usize));
            pairs.map(|(&x, mu)| (x.into() - mu).powi(2)).sum()
        };
        let least = squared(&best);
        let terms = members
            .iter()
            .map(|c| ((least - squared(c)) / (2.0 * variance)).exp());
        let terms: Vec<f64> = terms.collect();
        let sum: f64 = terms.iter().sum();
        shares.push(terms.iter().map(|t| t / sum).collect());
        supports.push(members);
    }
    State {
        means,
        variance,
        supports,
        shares,
    }
}

fn show_changes(iterations: usize, before: &State, now: &State) {
    let mut same = [0usize; 4];
    for (n, (support, old)) in now.supports.iter().zip(&before.supports).enumerate() {
        let (mut set, mut old_set) = (support.clone(), old.clone());
        set.sort_unstable();
        old_set.sort_unstable();
        same[0] += usize::from(set == old_set);
        same[1] += usize::from(support[0] == old[0]);
        // The share of a component that is no member is 0.
        let share = |state: &State, c: &u32| {
            let place = state.supports[n].iter().position(|other| other == c);
            place.map_or(0.0, |place| state.shares[n][place])
        };
        let members = support.iter().chain(old);
        let most = members
            .map(|c| (share(now, c) - share(before, c)).abs())
            .fold(0.0, f64::max);
        same[2] += usize::from(most <= 1e-2);
        same[3] += usize::from(most <= 1e-6);
    }
    let percent = same.map(|count| 100.0 * count as f64 / now.supports.len() as f64);
    let deviation = now.variance.sqrt();
    let moves = now.means.outer_iter().zip(before.means.outer_iter());
    let mut steps: Vec<f64> = moves
        .map(|(a, b)| (&a - &b).mapv(|t| t * t).sum().sqrt() / deviation)
        .collect();
    steps.sort_by(f64::total_cmp);
    let k = steps.len();
    println!(
        "{iterations:>4}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>10.4}{:>10.4}{:>10.4}",
        percent[0],
        percent[1],
        percent[2],
        percent[3],
        steps[k / 2],
        steps[k * 9 / 10],
        steps[k - 1]
    );
}

fn fit_ours<T: Element>(
    options: &Options,
    set: &Set,
    algorithm: &str,
    chain: usize,
    seed: u64,
    x: &Array2<T>,
    runs: &mut Runs,
) -> Result<()> {
    let (k, seeder) = (set.clusters, AfkMc2::new(chain));
    let start = match options.from_seeds {
        true => Start::Seeds,
        false => Start::Random,
    };
    let search = Neighborhood::new(G, G).start(start);
    let started = Instant::now();
    let data = Dense::new(x.view())?;
    let fit: Fit<GaussianMixture<T::Float>> = match algorithm {
        "vc-gmm" => as_published(algorithms::vc_gmm(k, set.coreset, G, G), TOLERANCE)
            .e_step(search)
            .seeder(seeder)
            .seed(seed)
            .build()?
            .fit(&data)?,
        "var-gmm-s" => as_published(algorithms::var_gmm_s(k, G, G), TOLERANCE)
            .e_step(search)
            .seeder(seeder)
            .seed(seed)
            .build()?
            .fit(&data)?,
        "d-gmm" => as_published(algorithms::d_gmm(k, G, G), TOLERANCE)
            .seeder(seeder)
            .seed(seed)
            .build()?
            .fit(&data)?,
        other => return Err(format!("{other} is not an algorithm").into()),
    };
    runs.seconds.push(started.elapsed().as_secs_f64());
    let report = &fit.report;
    let search = report.timings.search.as_secs_f64();
    let coordinates = report.evaluations.search as f64 * x.ncols() as f64;
    runs.rates
        .push(coordinates / search / 1e9 / options.threads as f64);
    runs.searches
        .push(search / report.free_energies.len() as f64);
    runs.iterations.push(report.iterations as f64);
    if options.errors {
        runs.errors.push(fit.model.quantization_error(&data)?);
    }
    if options.stages {
        println!("{:?}", report.timings);
    }
    Ok(())
}

fn fit_theirs(
    options: &Options,
    set: &Set,
    (program, path): (&Path, &Path),
    algorithm: &str,
    chain: usize,
    seed: u64,
    runs: &mut Runs,
) -> Result<()> {
    let coreset = if algorithm == "vc-gmm" {
        set.coreset
    } else {
        0
    };
    let (g, chain) = (G.to_string(), chain.to_string());
    let output = Command::new(program)
        .arg(path)
        .args(["--k", &set.clusters.to_string()])
        .args(["--core", &coreset.to_string()])
        .args(["--cprime", &g, "--G", &g, "--m", &chain])
        .args(["--seed", &seed.to_string(), "--eps", "1e-4"])
        .args(["--threads", &options.threads.to_string()])
        .args(["--qe", if options.errors { "1" } else { "0" }])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let number = |name: &str| -> Result<f64> {
        let after = printed
            .split(&format!("\"{name}\":"))
            .nth(1)
            .ok_or_else(|| format!("{name} is missing in {printed}"))?;
        let end = after.find([',', '}']).unwrap_or(after.len());
        Ok(after[..end].trim().parse()?)
    };
    runs.seconds.push(number("total_s")?);
    runs.iterations.push(number("iterations")?);
    if options.errors {
        runs.errors.push(number("qe")?);
    }
    Ok(())
}

fn show(set: &Set, algorithm: &str, chain: usize, ours: &Runs, theirs: &Runs) {
    let of = |values: &[f64], digits: usize| match values {
        [] => "-".to_string(),
        some => format!("{:.digits$}", median(some)),
    };
    let percent = |errors: &[f64]| match errors {
        [] => "-".to_string(),
        some => format!("{:+.2}", 100.0 * (mean(some).0 / set.reference - 1.0)),
    };
    let times = match theirs.seconds.len() {
        0 => "-".to_string(),
        _ => format!("{:.2}", median(&theirs.seconds) / median(&ours.seconds)),
    };
    println!(
        "{:<10}{algorithm:<11}{chain:>3}{:>9}{:>9}{times:>7}{:>11}{:>11}{:>9.2}{:>11}{:>10}{:>10}",
        set.name,
        of(&ours.seconds, 4),
        of(&theirs.seconds, 4),
        of(&ours.iterations, 0),
        of(&theirs.iterations, 0),
        1e3 * median(&ours.searches),
        of(&ours.rates, 2),
        percent(&ours.errors),
        percent(&theirs.errors)
    );
}
