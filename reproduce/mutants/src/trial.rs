//! Runs the tests with each mutant.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Tests every so many-th mutant of the list, and writes what became of it; those that are known are not tested again.
///
/// A program that takes four times as long as without a mutant has failed.
pub(crate) fn all(
    list: &Path,
    found: &Path,
    every: &str,
    programs: &[&str],
) -> Result<(), Box<dyn Error>> {
    let every: usize = every.parse()?;
    let limits = programs
        .iter()
        .map(|program| {
            let started = Instant::now();
            match trial(program, "0", Duration::from_secs(3_600))? {
                Outcome::Passed => Ok(4 * started.elapsed() + Duration::from_secs(10)),
                Outcome::Failed(test) => Err(format!("{test} fails without a mutant").into()),
            }
        })
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    println!("longest runs of the programs: {limits:?}");
    let known = fs::read_to_string(found).unwrap_or_default();
    let mut found = OpenOptions::new().create(true).append(true).open(found)?;
    for line in fs::read_to_string(list)?.lines().step_by(every) {
        if known.lines().any(|known| known.ends_with(line)) {
            continue;
        }
        let number = line.split('\t').next().ok_or("no number")?;
        let mut outcome = "survived".to_string();
        for (program, limit) in programs.iter().zip(&limits) {
            if let Outcome::Failed(test) = trial(program, number, *limit)? {
                outcome = format!("killed by {test}");
                break;
            }
        }
        println!("{outcome}\t{line}");
        writeln!(found, "{outcome}\t{line}")?;
    }
    Ok(())
}

enum Outcome {
    Passed,
    Failed(String),
}

fn trial(program: &str, number: &str, limit: Duration) -> Result<Outcome, Box<dyn Error>> {
    let mut words = program.split_whitespace();
    let child = Command::new(words.next().ok_or("no program")?)
        .args(words)
        .env("MUTANT", number)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    watch(child, limit)
}

/// Until the first test that fails, the end, or the limit.
fn watch(mut child: Child, limit: Duration) -> Result<Outcome, Box<dyn Error>> {
    let output = child.stdout.take().ok_or("no output")?;
    let (send, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let started = Instant::now();
    let outcome = loop {
        match lines.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(line) => {
                let failed = line
                    .strip_prefix("test ")
                    .and_then(|line| line.strip_suffix(" ... FAILED"));
                if let Some(test) = failed {
                    break Outcome::Failed(test.to_string());
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Outcome::Failed("the time".into()),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                break match child.wait()?.success() {
                    true => Outcome::Passed,
                    false => Outcome::Failed("its end".into()),
                };
            }
        }
    };
    let _ = child.kill();
    child.wait()?;
    drop(lines);
    let _ = reader.join();
    Ok(outcome)
}
