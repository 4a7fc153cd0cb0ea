//! Fits that are killed at random moments and go on from their checkpoints: they must end in the same bits as fits that
//! were left alone.
//!
//! `kill KILLS` shares so many kills among five algorithms. Each fit runs in a process of its own, which gets SIGKILL
//! after a random time. It is started again until it has been killed often enough, and is then left to its end.
//!
//! ```sh
//! cargo run --release -p reproduce --bin kill -- 100
//! ```

use clap::Parser;
use coremix::data::DenseRows;
use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::{BoxedMixture, Rng};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Kills fits with checkpoints, and compares what they end in.
#[derive(Parser)]
struct Arguments {
    /// Kills, over all algorithms.
    #[arg(default_value_t = 100)]
    kills: usize,
    /// Rows of the data.
    #[arg(long, default_value_t = 40_000)]
    rows: usize,
    /// The seed of the moments.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The process that is killed: its algorithm, and where its files are.
    #[arg(long, hide = true)]
    child: Option<String>,
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
}

const ALGORITHMS: [&str; 5] = ["fast", "vc-gmm", "d-gmm", "k-means", "dp-gmm"];

/// Starts of one process after another, at most, for each kill that is wanted.
const STARTS: usize = 4;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match (&arguments.child, &arguments.folder) {
        (Some(name), Some(folder)) => child(name, folder, arguments.rows).map(|()| true),
        _ => parent(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

/// Fits with a checkpoint after every iteration, and writes down all that does not depend on time.
fn child(name: &str, folder: &Path, rows: usize) -> std::result::Result<(), Failure> {
    let birch = Birch::grid(rows.div_ceil(25)).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;
    let clusters = if name == "dp-gmm" { 30 } else { 200 };
    let checkpoint = Checkpoint::to(folder.join("fit.ckp")).every(Duration::ZERO);
    let algorithm = name.parse::<Algorithm>()?.with_clusters(clusters);
    let algorithm = algorithm
        .with_max_iterations(15)
        .with_tolerance(1e-7)
        .with_restarts(2)
        .with_checkpoint(&checkpoint.resume_if_there());
    let fit = algorithm.boxed::<DenseRows<f32>>()?.fit(&data)?;
    let done = folder.join("fit.part");
    fs::write(&done, bits(&fit)?)?;
    // Whole or not there: a kill may come here too.
    fs::rename(done, folder.join("fit.done"))?;
    Ok(())
}

/// Model, labels, free energies and evaluations.
fn bits(fit: &Fit<BoxedMixture<DenseRows<f32>>>) -> Result<Vec<u8>> {
    let mut bytes = fit.model.saved(&[])?;
    bytes.extend(fit.labels.iter().flat_map(|label| label.to_le_bytes()));
    for phase in &fit.report.phases {
        bytes.extend(phase.free_energies.iter().flat_map(|f| f.to_le_bytes()));
        bytes.extend(phase.evaluations.to_le_bytes());
    }
    bytes.extend(fit.report.distance_evaluations.to_le_bytes());
    bytes.extend(fit.report.restarts.iter().flat_map(|f| f.to_le_bytes()));
    Ok(bytes)
}

fn parent(arguments: &Arguments) -> std::result::Result<bool, Failure> {
    let folder = std::env::temp_dir().join(format!("coremix-kill-{}", std::process::id()));
    let found = all(arguments, &folder);
    fs::remove_dir_all(&folder).ok();
    found
}

fn all(arguments: &Arguments, folder: &Path) -> std::result::Result<bool, Failure> {
    let mut rng = Rng::from_seed(arguments.seed);
    let (mut same, mut left) = (true, arguments.kills);
    println!("{:<10}{:>8}{:>10}  bits", "algorithm", "kills", "starts");
    for (i, name) in ALGORITHMS.into_iter().enumerate() {
        let wanted = left / (ALGORITHMS.len() - i);
        left -= wanted;
        let (calm, troubled) = (
            folder.join(name).join("calm"),
            folder.join(name).join("killed"),
        );
        fs::create_dir_all(&calm)?;
        fs::create_dir_all(&troubled)?;
        let begun = Instant::now();
        if !start(arguments, name, &calm)?.wait()?.success() {
            return Err(format!("{name}: the fit that is left alone failed").into());
        }
        let time = begun.elapsed().as_secs_f64();
        let (mut kills, mut starts) = (0, 0);
        while !troubled.join("fit.done").exists() {
            let mut fit = start(arguments, name, &troubled)?;
            starts += 1;
            if kills < wanted && starts <= STARTS * wanted {
                std::thread::sleep(Duration::from_secs_f64(time * 0.4 * rng.uniform()));
                fit.kill()?;
            }
            let ended = match fit.wait()?.code() {
                Some(0) => true,
                None => false,
                Some(code) => return Err(format!("{name}: the fit ended with {code}").into()),
            };
            kills += usize::from(!ended);
            if ended && kills < wanted && starts <= STARTS * wanted {
                // From the beginning again, for the kills that are left.
                same &= compare(name, kills, starts, &calm, &troubled)?;
                fs::remove_dir_all(&troubled)?;
                fs::create_dir_all(&troubled)?;
            }
        }
        same &= compare(name, kills, starts, &calm, &troubled)?;
    }
    Ok(same)
}

/// The process of a fit.
fn start(arguments: &Arguments, name: &str, folder: &Path) -> std::io::Result<std::process::Child> {
    Command::new(std::env::current_exe()?)
        .arg(arguments.kills.to_string())
        .args(["--rows", &arguments.rows.to_string(), "--child", name])
        .arg("--folder")
        .arg(folder)
        .spawn()
}

/// Whether a fit that was killed ended in the bits of the one that was not.
fn compare(
    name: &str,
    kills: usize,
    starts: usize,
    calm: &Path,
    troubled: &Path,
) -> std::io::Result<bool> {
    let same = fs::read(calm.join("fit.done"))? == fs::read(troubled.join("fit.done"))?;
    let bits = if same { "the same" } else { "OTHERS" };
    println!("{name:<10}{kills:>8}{starts:>10}  {bits}");
    Ok(same)
}
