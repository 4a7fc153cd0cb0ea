//! Promises across processes: the same bits in each, and whole files whenever one is killed.

use crate::common::blobs;
use coremix::Float;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array1, Array2};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where a child writes.
const FILE: &str = "COREMIX_TEST_FILE";

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("coremix-processes-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A process that runs the ignored test of this name, with `threads` threads in rayon's pool.
fn process(test: &str, path: &Path, threads: usize) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", test, "--ignored"]).env(FILE, path);
    let child = child.env("RAYON_NUM_THREADS", threads.to_string());
    child.stdout(Stdio::null()).spawn().unwrap()
}

/// All bits of a fit, as text.
fn text<F: Float>(name: &str, data: &dyn Data<F>, to: &mut String) {
    let algorithm = name.parse::<Algorithm>().unwrap().clusters(8);
    let algorithm = algorithm.coreset(300).restarts(2).seed(9);
    let algorithm = algorithm.max_iterations(6).tolerance(1e-9);
    let fit = algorithm.boxed::<F>().unwrap().fit(data).unwrap();
    let energies = fit.report.phases.iter().flat_map(|p| &p.free_energies);
    let energies: Vec<u64> = energies.map(|f| f.to_bits()).collect();
    let model = fit.model.to_bytes(&[]).unwrap();
    let score = fit.model.score(data).unwrap();
    let sums = [score.log_likelihood, score.quantization_error].map(f64::to_bits);
    let work = fit.report.evaluations;
    writeln!(to, "{name} {energies:?} {sums:?} {work:?}").unwrap();
    writeln!(to, "{model:?} {:?} {:?}", fit.search_labels, fit.supports).unwrap();
    let coreset = fit.coreset.map(|c| (c.rows, c.weights));
    writeln!(to, "{coreset:?} {:?}", score.labels).unwrap();
}

/// Every named algorithm, on rows with weights and on a sketch.
fn all() -> String {
    let (x, y) = (blobs::<f32>(2_500, 3, 9, 1), blobs::<f64>(600, 5, 8, 2));
    let weights = Array1::from_shape_fn(2_500, |n| [1.0, 0.25, 2.0, 0.0][n % 4]);
    let dense = Dense::weighted(x.view(), weights.view()).unwrap();
    let sketch = Sketch::new(y.view(), 3, 7).unwrap();
    let mut found = String::new();
    for name in Algorithm::NAMES {
        text::<f32>(name, &dense, &mut found);
        if !matches!(name, "dp-gmm" | "table") {
            text::<f64>(name, &sketch, &mut found);
        }
    }
    found
}

#[test]
#[ignore = "a process of the next test"]
fn fitting() {
    if let Some(path) = std::env::var_os(FILE) {
        std::fs::write(path, all()).unwrap();
    }
}

/// Results of one build are equal in several processes: nothing that differs between them, such as addresses, is in a result.
#[test]
fn another_process_gives_the_same_bits() {
    let folder = Folder::new("bits");
    let children = [1, 3].map(|threads| {
        let path = folder.0.join(threads.to_string());
        (process("processes::fitting", &path, threads), path)
    });
    let own = all();
    for (mut child, path) in children {
        assert!(child.wait().unwrap().success());
        let found = std::fs::read_to_string(&path).unwrap();
        for (found, own) in found.lines().zip(own.lines()) {
            let name = own.split(' ').next().unwrap();
            assert!(found == own, "{name}: {}", path.display());
        }
        assert_eq!(found.len(), own.len());
    }
}

/// A model of some megabytes: it takes a while to write.
fn large(value: f64) -> GaussianMixture<f64> {
    let means = Array2::from_elem((2_000, 200), value);
    GaussianMixture::tied_spherical(means.view(), 1.0).unwrap()
}

#[test]
#[ignore = "the process that the next test kills"]
fn saving() {
    if let Some(path) = std::env::var_os(FILE) {
        let models = [large(1.0), large(2.0)];
        for model in models.iter().cycle() {
            model.save(&path).unwrap();
        }
    }
}

/// Processes that save one model after the other to the same path, killed at random moments.
#[test]
fn a_save_that_is_killed_leaves_a_whole_file() {
    let mut rng = Rng::from_seed(3);
    let (old, models) = (large(0.0), [large(1.0), large(2.0)]);
    let (mut begun, mut new) = (0, 0);
    for round in 0..10 {
        let folder = Folder::new(&format!("saves-{round}"));
        let path = folder.0.join("model");
        old.save(&path).unwrap();
        // A second file in the folder is one that is being written.
        let beside = || std::fs::read_dir(&folder.0).unwrap().count() - 1;
        let mut child = process("processes::saving", &path, 1);
        while beside() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_secs_f64(0.002 * rng.uniform()));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        begun += usize::from(beside() > 0);
        let found = GaussianMixture::load(&path).unwrap();
        new += usize::from(models.contains(&found));
        assert!(found == old || models.contains(&found));
    }
    assert!(
        begun > 2,
        "{begun} of 10 kills came while a file was written, {new} after one"
    );
}
