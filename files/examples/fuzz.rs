//! Damages files at random and reads them: each is an error or rows. Ends with an error if one panicked.
//!
//! ```text
//! cargo run --release -p coremix-files --example fuzz -- 100000
//! ```
//!
//! A panic within a decoder is caught and counted. To see that nothing large is allocated, limit the memory of the process
//! first: `ulimit -v 1000000`.

#[path = "../tests/files/damage.rs"]
mod damage;
#[path = "../tests/files/samples.rs"]
#[allow(dead_code)]
mod samples;

mod common {
    pub(crate) fn below(rng: &mut impl proptest::prelude::Rng, n: usize) -> usize {
        (rng.next_u64() % n.max(1) as u64) as usize
    }
}

use clap::Parser;
use damage::{ALL, Kind, damaged, good, keys, open};
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::panic::catch_unwind;
use std::process::ExitCode;

/// Damages files at random and reads them.
#[derive(Parser)]
struct Arguments {
    /// Number of files.
    #[arg(default_value_t = 100_000)]
    files: u64,
    /// Seed of the accidents.
    #[arg(long, default_value_t = 1)]
    seed: u8,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Panics are counted, not shown.
    std::panic::set_hook(Box::new(|_| {}));
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[arguments.seed; 32]);
    let mut counts = [[0u64; 4]; ALL.len()];
    let mut panics = 0;
    for round in 0..arguments.files {
        // Half of them are Parquet, which has the most to damage.
        let place = if round % 2 == 0 {
            0
        } else {
            (round / 2) as usize % ALL.len()
        };
        let kind = ALL[place];
        let file = damaged(&good(kind, &mut rng), &mut rng);
        let copy = file.clone();
        let is_table = matches!(kind, Kind::Parquet | Kind::Arrow | Kind::Csv);
        let became = catch_unwind(move || match round / 16 % 7 {
            5 | 6 if is_table => keys(kind, copy),
            0 => open::<u8>(kind, copy),
            1 | 2 => open::<f32>(kind, copy),
            _ => open::<f64>(kind, copy),
        });
        match became {
            Ok(became) => counts[place][became as usize] += 1,
            Err(_) => {
                panics += 1;
                let path = std::env::temp_dir().join(format!("coremix-panic-{round}"));
                println!("panic: {kind:?}, {}", path.display());
                std::fs::write(path, file).ok();
            }
        }
    }
    println!("                          refused   broken   caught     read");
    for (kind, [refused, broken, caught, read]) in ALL.iter().zip(counts) {
        println!(
            "{:24} {refused:8} {broken:8} {caught:8} {read:8}",
            format!("{kind:?}")
        );
    }
    println!("{} files, {panics} panics", arguments.files);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status
            .lines()
            .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmPeak"))
            .for_each(|line| println!("{line}"));
    }
    if panics > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
