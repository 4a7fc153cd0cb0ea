//! Reads all rows of a file once and sums them up: no algorithm can be faster than this in a pass.
//!
//! ```text
//! cargo run --release -p coremix-files --example scan -- points.parquet --key id
//! ```

use clap::Parser;
use coremix::data::Source;
use coremix::{Element, Float};
use coremix_files::{AnySource, Options, open};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// Reads all rows of a file once.
#[derive(Parser)]
struct Arguments {
    /// A file, a folder or a pattern.
    file: PathBuf,
    /// A column that is no coordinate.
    #[arg(long)]
    key: Vec<String>,
    /// Rows that are read at once.
    #[arg(long, default_value_t = 4_096)]
    block: usize,
    /// Threads, each of which reads a part of the rows.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let options = arguments.key.iter().fold(Options::new(), Options::key);
    let begun = Instant::now();
    let rows = open(&arguments.file, &options)?.rows;
    println!("opened in {:.3} s: {rows:?}", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let sum = match &rows {
        AnySource::U8(rows) => scan(&**rows, &arguments)?,
        AnySource::I8(rows) => scan(&**rows, &arguments)?,
        AnySource::F16(rows) => scan(&**rows, &arguments)?,
        AnySource::F32(rows) => scan(&**rows, &arguments)?,
        AnySource::F64(rows) => scan(&**rows, &arguments)?,
        other => return Err(format!("{other:?}").into()),
    };
    println!(
        "scanned in {:.3} s, sum {sum:e}",
        begun.elapsed().as_secs_f64()
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("{}", peak.unwrap_or_default());
    }
    Ok(())
}

fn scan<T: Element + Default>(
    source: &dyn Source<Element = T>,
    arguments: &Arguments,
) -> std::io::Result<f64> {
    let (n, d) = (source.len(), source.dim());
    let (threads, block) = (arguments.threads.max(1), arguments.block.max(1));
    let part = |thread: usize| {
        let (from, to) = (n * thread / threads, n * (thread + 1) / threads);
        let (mut out, mut sum) = (vec![T::default(); block * d], 0.0);
        for first in (from..to).step_by(block) {
            let out = &mut out[..block.min(to - first) * d];
            source.read(first, out)?;
            sum += out.iter().map(|x| x.widen().to_f64()).sum::<f64>();
        }
        Ok(sum)
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|i| scope.spawn(move || part(i))).collect();
        let parts = parts.into_iter();
        parts
            .map(|part| {
                part.join()
                    .unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")))
            })
            .sum()
    })
}
