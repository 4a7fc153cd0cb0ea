//! What libFuzzer kept, once more: each input of `fuzz/corpus` keeps the promises of its target.

use coremix::ndarray::Array2;
use coremix::prelude::*;
use coremix_fuzz::{TARGETS, memory, run};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: memory::Limited = memory::Limited;

/// One target at a time: they share a thread and a file.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs every input of a target; the number of them.
fn replay(name: &str) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    for path in &inputs {
        let bytes = std::fs::read(path).unwrap();
        // Shown if the test fails.
        println!("{}", path.display());
        run(*target, &bytes);
    }
    inputs.len()
}

#[test]
fn fit() {
    assert!(replay("fit") > 50);
}

#[test]
fn readers() {
    assert!(replay("readers") > 50);
}

#[test]
fn resume() {
    assert!(replay("resume") > 50);
}

#[test]
fn stages() {
    assert!(replay("stages") > 50);
}

/// Files of models for the target `readers`, after a change of the format: `cargo test -p coremix-fuzz -- --ignored`.
#[test]
#[ignore = "writes to the corpus"]
fn renew_models() {
    let x = Array2::from_shape_fn((20, 2), |(n, j)| {
        ((n % 4) * (j + 1)) as f32 + 0.01 * n as f32
    });
    let data = Dense::new(x.view()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/readers");
    for name in ["k-means", "gmm", "dp-gmm"] {
        let fit = name.parse::<Algorithm>().unwrap().clusters(3);
        let fit = fit.boxed::<f32>().unwrap().fit(&data).unwrap();
        let file = fit.model.to_bytes(&[("of", name)]).unwrap();
        // As it is, and with a checksum that is made right.
        for target in [3, 4] {
            let input = [&[target], &file[..]].concat();
            std::fs::write(folder.join(format!("model-{name}-{target}")), input).unwrap();
        }
    }
}

/// Short inputs are whole descriptions too.
#[test]
fn plain_inputs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, target) in TARGETS {
        run(target, &[]);
        for byte in (0..=255).step_by(5) {
            for length in [1, 7, 64] {
                run(target, &vec![byte; length]);
            }
        }
    }
}
