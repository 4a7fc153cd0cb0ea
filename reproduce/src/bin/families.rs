//! Generated families of rows as `.npy` files (f32), for `reproduce/peers`.
//!
//! `cargo run --release -p reproduce --bin families -- FOLDER FAMILY:ROWS:COLUMNS:CLUSTERS[:SEED] ...` writes one file per
//! family, named after what is in it. Without any it prints the names of the families.

use reproduce::hard::{self, Shape};
use reproduce::overlapping_gaussians;
use std::path::Path;

/// As many Gaussians of deviation 1 as clusters, their means as far from the origin as their rows are from them.
const OVERLAPPING: &str = "overlapping";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, wanted @ ..] = &arguments[..] else {
        let all = hard::KINDS.iter().chain(&[OVERLAPPING]);
        all.for_each(|kind| println!("{kind}"));
        return Ok(());
    };
    for wanted in wanted {
        let parts: Vec<&str> = wanted.split(':').collect();
        let [name, rows, columns, clusters, seed @ ..] = &parts[..] else {
            return Err(format!("{wanted}: not FAMILY:ROWS:COLUMNS:CLUSTERS[:SEED]").into());
        };
        let (n, d, k) = (rows.parse()?, columns.parse()?, clusters.parse()?);
        let seed = seed.first().map_or(Ok(0), |seed| seed.parse())?;
        let file = Path::new(folder).join(format!("{name}-{n}x{d}-{k}.npy"));
        let shape = Shape {
            rows: n,
            columns: d,
            clusters: k,
        };
        let found = match *name {
            OVERLAPPING => Some(overlapping_gaussians((n, d, k))),
            _ => hard::generate(name, shape, seed),
        };
        ndarray_npy::write_npy(&file, &found.ok_or(format!("{name}: no such family"))?)?;
        println!("{}", file.display());
    }
    Ok(())
}
