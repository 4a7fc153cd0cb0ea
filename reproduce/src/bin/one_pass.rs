//! Coresets of rows that come once ([`OnePass`]) against those of two passes ([`Lightweight`]) and uniform samples of the
//! same size: k-means on each, and its error on all rows, over that of k-means on all rows.
//!
//! `cargo run --release -p reproduce --bin one_pass -- [SEEDS [SET ..]]`; 10 seeds and kdd04bio, song and cod_rna unless told.
//! Means over the seeds, with the standard error in brackets. Rows come in the order of the file and in a random one.

use coremix::Element;
use coremix::coreset::OnePass;
use coremix::prelude::*;
use coremix::seed::KMeansPlusPlus;
use coremix::stage::Rng;
use ndarray::{Array2, ArrayView2, Axis};
use ndarray_npy::{ReadNpyError, ReadableElement, read_npy};
use reproduce::{heading, mean, row, signed};

const CLUSTERS: usize = 100;
const SIZES: [usize; 3] = [2_000, 8_000, 32_000];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = arguments.first().map_or(Ok(10), |text| text.parse())?;
    let sets: Vec<&str> = match arguments.get(1..) {
        Some(sets) if !sets.is_empty() => sets.iter().map(String::as_str).collect(),
        _ => vec!["kdd04bio", "song", "cod_rna"],
    };
    for set in sets {
        let path = format!("../shared/data/{set}.npy");
        match read_npy::<_, Array2<f32>>(&path) {
            Ok(rows) => table(set, rows.view(), seeds)?,
            Err(ReadNpyError::WrongDescriptor(_)) => {
                table(set, read_npy::<_, Array2<u8>>(&path)?.view(), seeds)?;
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
    Ok(())
}

fn table<T>(set: &str, rows: ArrayView2<'_, T>, seeds: u64) -> Result<()>
where
    T: Element + ReadableElement,
{
    let (n, d) = rows.dim();
    let all = Dense::new(rows)?;
    let k_means = |seed| {
        let seeder = KMeansPlusPlus::greedy();
        algorithms::k_means(CLUSTERS).seeder(seeder).seed(seed)
    };
    let mut reference = Vec::new();
    for seed in 0..seeds.min(3) {
        let fit = k_means(seed).build()?.fit(&all)?;
        reference.push(fit.model.quantization_error(&all)?);
    }
    let reference = mean(&reference).0;
    let mut order: Vec<usize> = (0..n).collect();
    let mut rng = Rng::from_seed(1);
    (1..n).for_each(|i| order.swap(i, rng.below(i + 1)));
    let shuffled = rows.select(Axis(0), &order);

    println!("\n{set} ({n} x {d}), {CLUSTERS} clusters, {seeds} seeds: % over k-means on all rows");
    heading(&[
        "two passes (E15)",
        "one pass (E42)",
        "one pass, rows shuffled",
        "uniform",
    ]);
    for size in SIZES {
        let mut found = [const { Vec::new() }; 4];
        for seed in 0..seeds {
            let two = k_means(seed).coreset(Lightweight::new(size)).build()?;
            let uniform = k_means(seed).coreset(UniformCoreset::new(size)).build()?;
            found[0].push(two.fit(&all)?.model.quantization_error(&all)?);
            found[3].push(uniform.fit(&all)?.model.quantization_error(&all)?);
            for (place, rows) in [(1, rows), (2, shuffled.view())] {
                let mut coreset = OnePass::new(d, size, seed)?;
                for block in rows.axis_chunks_iter(Axis(0), 1_000) {
                    coreset.push(block)?;
                }
                let (rows, weights) = coreset.finish()?;
                let fit = k_means(seed)
                    .build()?
                    .fit(&Dense::weighted(&rows, &weights)?)?;
                found[place].push(fit.model.quantization_error(&all)?);
            }
        }
        let cells = found.map(|errors| {
            let percent: Vec<f64> = errors
                .iter()
                .map(|e| 100.0 * (e / reference - 1.0))
                .collect();
            signed(mean(&percent), 2)
        });
        row(&format!("{set}, {size} draws"), &cells);
    }
    Ok(())
}
