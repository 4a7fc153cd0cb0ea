//! Files that the first version wrote: models that all later ones must load, and a checkpoint.
//!
//! `NEW_MODEL_FILES=1 cargo test --release --test all golden_files::` writes those that are missing. A file that is there is
//! never written again. Only the checkpoint belongs to one version: when the version changes, remove it and write another.

use crate::{golden, saving};
use coremix::Float;
use coremix::data::Transform;
use coremix::m_step::{DiagonalMixture, IsotropicMixture, SharedIsotropicMixture};
use coremix::prelude::*;
use coremix::{BoxedMixture, FileFault, ModelInfo, load_model};
use ndarray::{array, s};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

const NOTES: [(&str, &str); 2] = [("seed", "42"), ("algorithm", "gmm = \"EM\", ü")];

/// The version that wrote them.
const WRITTEN_BY: &str = "0.1.0";

fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.join("tests/fixtures").join(name)
}

/// Writes a file that is missing, if that is asked for.
fn write_new(name: &str, write: impl FnOnce(PathBuf)) {
    if std::env::var_os("NEW_MODEL_FILES").is_some() && !path(name).exists() {
        write(path(name));
    }
}

/// The header, and the bytes: those that this version would write, if the version is still the same.
fn same_file(name: &str, family: &str, number: &str, shape: (usize, usize), bytes: &[u8]) {
    let info = ModelInfo::of_file(path(name)).unwrap();
    assert_eq!((info.format, &info.crate_version[..]), (1, WRITTEN_BY));
    assert_eq!((&info.family[..], &info.number[..]), (family, number));
    assert_eq!((info.components, info.columns), shape);
    // The first format byte by byte, in which only the version of the crate may differ.
    if WRITTEN_BY == env!("CARGO_PKG_VERSION") {
        assert!(bytes == fs::read(path(name)).unwrap(), "{name}");
    }
}

/// What a model said of these rows on some machine, in its notes: others differ in the last digits.
fn says_the_same<F: Float>(name: &str, model: &BoxedMixture<F>, data: &dyn Data<F>) {
    let info = ModelInfo::of_file(path(name)).unwrap();
    let said: f64 = info.note("log-likelihood").unwrap().parse().unwrap();
    let says = model.log_likelihood(data).unwrap();
    assert!((says - said).abs() < 1e-9 * said.abs(), "{says} {said}");
}

/// Known parameters are found as they were.
#[test]
fn golden_files_hold_these_parameters() {
    let means = array![[0.5, -2.0, 1.25], [3.0, 0.75, -8.0]];
    let proportions = array![0.25, 0.75];
    let variances = array![[0.25, 1.0, 2.0], [4.0, 0.5, 0.125]];
    let diagonal =
        DiagonalMixture::from_parameters(means.view(), variances.view(), proportions.view());
    let diagonal = diagonal.unwrap();
    write_new("diagonal.model", |path| {
        diagonal.save_with_notes(path, &NOTES).unwrap();
    });
    let loaded = DiagonalMixture::<f64>::load(path("diagonal.model")).unwrap();
    assert_eq!((&loaded, loaded.means()), (&diagonal, means.view()));
    let bytes = loaded.to_bytes(&NOTES).unwrap();
    same_file("diagonal.model", "Diagonal", "f64", (2, 3), &bytes);
    let info = ModelInfo::of_file(path("diagonal.model")).unwrap();
    assert_eq!(info.note("algorithm"), Some(NOTES[1].1));

    let shared = SharedIsotropicMixture::from_parameters(means.view(), 0.375).unwrap();
    write_new("shared.model", |path| {
        shared.save_with_notes(path, &NOTES).unwrap();
    });
    let loaded = SharedIsotropicMixture::<f64>::load(path("shared.model")).unwrap();
    assert_eq!((&loaded, loaded.means()), (&shared, means.view()));
    let bytes = loaded.to_bytes(&NOTES).unwrap();
    same_file("shared.model", "SharedIsotropic", "f64", (2, 3), &bytes);

    let narrow = means.mapv(|x| x as f32);
    let variances = array![0.5, 2.0];
    let isotropic =
        IsotropicMixture::from_parameters(narrow.view(), variances.view(), proportions.view());
    let isotropic = isotropic.unwrap();
    write_new("isotropic.model", |path| {
        isotropic.save_with_notes(path, &NOTES).unwrap();
    });
    let loaded = IsotropicMixture::<f32>::load(path("isotropic.model")).unwrap();
    assert_eq!((&loaded, loaded.means()), (&isotropic, narrow.view()));
    let bytes = loaded.to_bytes(&NOTES).unwrap();
    same_file("isotropic.model", "Isotropic", "f32", (2, 3), &bytes);
}

/// Fitted models, which know more than parameters: they say what they said.
#[test]
fn golden_files_of_fits_say_the_same() {
    let (narrow, _) = saving::points::<f32>();
    let data = Dense::new(narrow.slice(s![..60, ..2])).unwrap();
    write_new("dirichlet.model", |path| {
        let fit = algorithms::dp_gmm(3, 1.0).max_iterations(10).build();
        let model = fit.unwrap().fit(&data).unwrap().model;
        let says = model.log_likelihood(&data).unwrap().to_string();
        let notes = [("log-likelihood", &*says)];
        model.save_with_notes(path, &notes).unwrap();
    });
    let loaded = load_model::<f32>(path("dirichlet.model")).unwrap();
    says_the_same("dirichlet.model", &loaded, &data);

    let (wide, _) = saving::points::<f64>();
    let mut sketch = Sketch::builder(5, 3, 9).transform(Transform::Hadamard);
    sketch.push(wide.view()).unwrap();
    let sketch = sketch.finish().unwrap();
    write_new("sketch.model", |path| {
        let fit = algorithms::sparsified_gmm(4).max_iterations(5).build();
        let model = fit.unwrap().fit(&sketch).unwrap().model;
        let says = Mixture::<f64>::log_likelihood(&model, &sketch);
        let says = says.unwrap().to_string();
        let notes = [("log-likelihood", &*says)];
        model.save_with_notes(path, &notes).unwrap();
    });
    let loaded: BoxedMixture<f64> = Save::load(path("sketch.model")).unwrap();
    says_the_same("sketch.model", &loaded, &sketch);
    // And of rows that are no sketch.
    let loaded = load_model::<f64>(path("sketch.model")).unwrap();
    assert_eq!(loaded.means().dim(), (4, 5));
    let labels = loaded.predict(&Dense::new(wide.view()).unwrap()).unwrap();
    assert!(labels.iter().all(|label| *label < 4));
}

/// The fit of the checkpoint, in the middle of which it was written. Sums over its rows are exact, so its header is the same
/// on any processor.
fn fit(data: &Dense<'_, f64>, checkpoint: Checkpoint, searches: usize) -> Result<Report> {
    let algorithm = algorithms::gmm(4).m_step(Isotropic::new()).tolerance(0.0);
    let algorithm = algorithm.max_iterations(6).restarts(2).seed(5);
    let mut left = searches;
    let fit = algorithm.checkpoint(&checkpoint).build()?;
    let fit = fit.fit_observed(data, |progress| {
        left -= usize::from(matches!(progress, Progress::Iteration { .. }));
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    Ok(fit?.report)
}

/// The version that wrote it goes on from it; any other one says that it is of another version.
#[test]
fn a_golden_checkpoint_is_gone_on_from_or_refused() {
    let (x, weights) = (golden::points::<f64>(), golden::weights());
    let data = Dense::weighted(x.view(), weights.view()).unwrap();
    write_new("fit.checkpoint", |path| {
        let checkpoint = Checkpoint::to(path).every_iterations(1);
        fit(&data, checkpoint, 10).unwrap();
    });
    // A fit writes to the file that it goes on from.
    let folder = std::env::temp_dir().join(format!("coremix-golden-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("fit.checkpoint");
    fs::copy(path("fit.checkpoint"), &copy).unwrap();
    let resumed = fit(&data, Checkpoint::to(&copy).resume(), usize::MAX);
    let fresh = fit(&data, Checkpoint::to(folder.join("other")), usize::MAX);
    let (same, fresh) = (WRITTEN_BY == env!("CARGO_PKG_VERSION"), fresh.unwrap());
    match resumed {
        Ok(report) if same => {
            // Other machines differ in the last digits.
            assert_eq!(report.restarts.len(), fresh.restarts.len());
            for (a, b) in report.restarts.iter().zip(&fresh.restarts) {
                assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
            }
        }
        Err(Error::Checkpoint {
            fault: FileFault::OtherFit { what, .. },
            ..
        }) if !same => assert_eq!(what, "crate version"),
        other => panic!("{other:?}"),
    }
    fs::remove_dir_all(folder).unwrap();
}
