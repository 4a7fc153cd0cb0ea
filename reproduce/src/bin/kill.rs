//! Fits that are killed at random moments and go on from their checkpoints: they must end in the same bits as fits that
//! were left alone.
//!
//! `kill KILLS` divides this number of kills among five algorithms. Each fit runs in a process of its own, which gets SIGKILL
//! after a random time, and is started again until the fit has ended. Then the next one begins, until there were kills
//! enough.
//!
//! ```sh
//! cargo run --release -p reproduce --bin kill -- 100
//! ```

use clap::Parser;
use coremix::BoxedMixture;
use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::stage::Rng;
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

/// A process is killed within this part of the time that a whole fit takes.
const KILLED_WITHIN: f64 = 0.4;

/// Fits of an algorithm, however few of their processes were killed in time.
const MOST: usize = 200;

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
    let algorithm = name.parse::<Algorithm>()?.clusters(clusters);
    let algorithm = algorithm
        .max_iterations(15)
        .tolerance(1e-7)
        .restarts(2)
        .checkpoint(&checkpoint.resume_if_there());
    let fit = algorithm.boxed::<f32>()?.fit(&data)?;
    let done = folder.join("fit.part");
    fs::write(&done, bits(&fit)?)?;
    // Whole or not there: a kill may come here too.
    fs::rename(done, folder.join("fit.done"))?;
    Ok(())
}

/// Model, labels, free energies and evaluations.
fn bits(fit: &Fit<BoxedMixture<f32>>) -> Result<Vec<u8>> {
    let mut bytes = fit.model.to_bytes(&[])?;
    bytes.extend(
        fit.search_labels
            .iter()
            .flat_map(|label| label.to_le_bytes()),
    );
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
    let (mut all_same, mut left) = (true, arguments.kills);
    println!("algorithm    kills   starts  resumed  fits  same bits");
    for (i, name) in ALGORITHMS.into_iter().enumerate() {
        let wanted = left / (ALGORITHMS.len() - i);
        left -= wanted;
        let folders = ["calm", "killed"].map(|of| folder.join(name).join(of));
        let [calm, killed] = &folders;
        fs::create_dir_all(calm)?;
        let begun = Instant::now();
        if !start(arguments, name, calm)?.wait()?.success() {
            return Err(format!("{name}: the fit that is left alone failed").into());
        }
        let time = begun.elapsed().as_secs_f64();
        let (mut kills, mut starts, mut resumed, mut fits, mut same) = (0, 0, 0, 0, 0);
        while kills < wanted && fits < MOST || fits == 0 {
            // From the beginning again, for the kills that are left.
            fs::remove_dir_all(killed).ok();
            fs::create_dir_all(killed)?;
            loop {
                resumed += usize::from(killed.join("fit.ckp").exists());
                starts += 1;
                let mut fit = start(arguments, name, killed)?;
                if kills < wanted {
                    std::thread::sleep(Duration::from_secs_f64(
                        time * KILLED_WITHIN * rng.uniform(),
                    ));
                    fit.kill()?;
                }
                match fit.wait()?.code() {
                    Some(0) => break,
                    None => kills += 1,
                    Some(code) => return Err(format!("{name}: the fit ended with {code}").into()),
                }
            }
            fits += 1;
            let [calm, killed] = [calm, killed].map(|folder| fs::read(folder.join("fit.done")));
            same += usize::from(calm? == killed?);
        }
        println!("{name:<10}{kills:>8}{starts:>9}{resumed:>9}{fits:>6}{same:>11}");
        all_same &= same == fits;
    }
    Ok(all_same)
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
