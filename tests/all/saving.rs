//! Models that outlive the process: what is loaded is what was saved, bit for bit, and what is damaged is an error.

use coremix::costs::Cost;
use coremix::data::{Centres, Frame, View};
use coremix::families::{DirichletProcessMixture, GaussianMixture};
use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::seed::Seeder;
use coremix::stage::{LogJoint, Rng};
use coremix::{BoxedMixture, FileFault, Float, ModelInfo, load_model};
use ndarray::{Array1, Array2, Array3, Axis, Dimension, array};
use std::any::Any;
use std::fmt::Debug;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

const NOTES: [(&str, &str); 2] = [("seed", "42"), ("algorithm", "gmm = \"EM\", ü")];

/// A family of the crate.
trait Known<F: Float>: Save + Mixture<F> + Clone + Debug + PartialEq {
    fn drawn(&self) -> Vec<u64>;
    fn own_means(&self) -> Array2<F>;
}

macro_rules! known {
    ($($family:ident)*) => {$(
        impl<F: Float> Known<F> for $family<F> {
            fn drawn(&self) -> Vec<u64> {
                let (points, labels) = self.sample(50, 7).unwrap();
                let labels = labels.iter().map(|l| u64::from(*l));
                bits(&points).into_iter().chain(labels).collect()
            }
            fn own_means(&self) -> Array2<F> {
                self.means().to_owned()
            }
        }
    )*};
}
known!(GaussianMixture DirichletProcessMixture);

fn bits<F: Float, D: Dimension>(values: &ndarray::Array<F, D>) -> Vec<u64> {
    values.iter().map(|x| x.to_f64().to_bits()).collect()
}

/// All that a model says of itself and of some rows, bit for bit.
fn answers<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Vec<Vec<u64>> {
    let score = model.score(data).unwrap();
    vec![
        bits(&model.means()),
        bits(&model.proportions()),
        bits(&model.variances()),
        bits(&model.responsibilities(data).unwrap()),
        bits(&model.log_densities(data).unwrap()),
        bits(&array![
            model.quantization_error(data).unwrap(),
            model.log_likelihood(data).unwrap(),
            score.quantization_error,
            score.log_likelihood,
            model.prior_terms()
        ]),
        model
            .predict(data)
            .unwrap()
            .iter()
            .map(|l| u64::from(*l))
            .collect(),
    ]
}

/// Five clusters in five columns, far from the origin, with weights.
pub(crate) fn points<F: Float>() -> (Array2<F>, Array1<f64>) {
    let mut rng = Rng::from_seed(11);
    let x = Array2::from_shape_fn((300, 5), |(n, j)| {
        let centre = ((n % 5) * (j + 2) % 7) as f64;
        F::from_f64(1e3 + 3.0 * centre + (1.0 + 0.2 * j as f64) * rng.normal())
    });
    (x, Array1::from_shape_fn(300, |n| 0.5 + (n % 3) as f64))
}

/// A folder for one test.
fn folder(name: &str) -> PathBuf {
    let name = format!("coremix-saving-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names_in(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The version of the crate.
fn version() -> &'static str {
    let manifest = include_str!("../../Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    version.expect("a version").trim_matches('"')
}

/// A model is the same after every way there and back.
fn check<F: Float, M: Known<F>>(name: &str, model: &M) {
    let (x, w) = points::<F>();
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let same = |back: &M, way: &str| {
        assert_eq!(back, model, "{name}: {way}");
        assert_eq!(back.drawn(), model.drawn(), "{name}: {way}");
        let means = [back, model].map(|m| bits(&m.own_means()));
        assert_eq!(means[0], means[1], "{name}: {way}");
        assert_eq!(answers(back, &data), answers(model, &data), "{name}: {way}");
    };
    let bytes = model.to_bytes(&NOTES).unwrap();
    let back = M::from_bytes(&bytes).unwrap();
    same(&back, "bytes");
    assert_eq!(back.to_bytes(&NOTES).unwrap(), bytes, "{name}");

    let folder = folder(&format!("{name}-{}", std::any::type_name::<F>()));
    let path = folder.join("model");
    model.save(&path).unwrap();
    same(&M::load(&path).unwrap(), "a file");
    // In place of an older file, and nothing else is left.
    model.save_with_notes(&path, &NOTES).unwrap();
    assert_eq!(names_in(&folder), ["model"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let info = ModelInfo::of_file(&path).unwrap();
    assert_eq!(info.format, 1);
    assert_eq!(info.crate_version, version());
    let is_process = std::any::type_name::<M>().contains("::DirichletProcessMixture<");
    assert_eq!(info.family == "DirichletProcess", is_process);
    assert_eq!(info.number, std::any::type_name::<F>());
    assert_eq!((info.components, info.columns), model.own_means().dim());
    let notes = NOTES.map(|(name, value)| (name.to_string(), value.to_string()));
    assert_eq!(info.notes, notes);
    assert_eq!((info.note("seed"), info.note("none")), (Some("42"), None));

    let boxed = load_model::<F>(&path).unwrap();
    assert_eq!(
        answers(&*boxed, &data),
        answers(model, &data),
        "{name}: boxed"
    );
    assert_eq!(boxed.to_bytes(&NOTES).unwrap(), bytes, "{name}: boxed");
    boxed.save_with_notes(&path, &NOTES).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes, "{name}: boxed");
    let any: Box<dyn Any> = BoxedMixture::<F>::from_bytes(&bytes).unwrap();
    same(&any.downcast::<M>().unwrap(), "boxed");
    fs::remove_dir_all(folder).unwrap();
}

fn families<F: Float>() {
    let (x, w) = points::<F>();
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let gmm = || algorithms::gmm(5).max_iterations(6).seed(3);
    let shared = gmm().build().unwrap().fit(&data).unwrap().model;
    check("gmm", &shared);
    let fit = algorithms::k_means(49).build().unwrap().fit(&data).unwrap();
    check("k-means", &fit.model);
    let fit = algorithms::fast(4).build().unwrap().fit(&data).unwrap();
    check("fast", &fit.model);
    let fit = gmm().covariance(Covariance::Spherical).build().unwrap();
    check("isotropic", &fit.fit(&data).unwrap().model);
    // 49 times 1 / 49 is not 1.
    let equal = algorithms::k_means_c_prime(49, 3)
        .m_step(Gaussian::new(Covariance::Spherical).equal_proportions());
    check("equal", &equal.build().unwrap().fit(&data).unwrap().model);
    let fit = gmm().covariance(Covariance::Diagonal).build().unwrap();
    check("diagonal", &fit.fit(&data).unwrap().model);
    for kind in [Covariance::Tied, Covariance::Full, Covariance::Factors(2)] {
        let fit = gmm().covariance(kind).build().unwrap();
        check("pairs", &fit.fit(&data).unwrap().model);
    }
    // More components than there are clusters, some of which are discarded.
    let many = algorithms::k_means(60).covariance(Covariance::Diagonal);
    check("many", &many.build().unwrap().fit(&data).unwrap().model);
    let fit = algorithms::dp_gmm(7, 0.7)
        .max_iterations(6)
        .build()
        .unwrap();
    check("dirichlet", &fit.fit(&data).unwrap().model);

    // Before the first M-step.
    let (frame, mut rng) = (data.frame(), Rng::from_seed(5));
    let seeds = KMeansPlusPlus::default()
        .seed(View::new(&data, &frame), 4, &mut rng)
        .unwrap();
    let model = DirichletProcess::new(1.0).start(seeds.centres, frame, &data, None);
    check("dirichlet at its start", &model.unwrap().model);

    // Known parameters: means that are kept as they were given.
    let means = x.slice(ndarray::s![..3, ..]);
    let proportions = array![0.25, 0.75, 0.0];
    let model = GaussianMixture::tied_spherical(means, 0.3).unwrap();
    check("shared parameters", &model);
    // Means that the frame rounds in f32.
    let wide = Array2::from_shape_fn((3, 5), |(c, j)| {
        F::from_f64([1e-30, 2e-30, 1e30][(c + j) % 3])
    });
    let model = GaussianMixture::tied_spherical(wide.view(), 1e50).unwrap();
    check("wide parameters", &model);
    let variances = array![0.1, 2.0, 1e-3];
    let model = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means,
        variances.view(),
        proportions.view(),
    )
    .unwrap();
    check("isotropic parameters", &model);
    let variances = Array2::from_shape_fn((3, 5), |(c, j)| 0.1 + (c * j) as f64);
    let model = GaussianMixture::from_parameters(
        Covariance::Diagonal,
        means,
        variances.view(),
        proportions.view(),
    )
    .unwrap();
    check("diagonal parameters", &model);
    let entry = |(c, i, j)| if i == j { 1.5 + c as f64 } else { 0.3 };
    let covariances = Array3::from_shape_fn((3, 5, 5), entry);
    let model = GaussianMixture::from_parameters(
        Covariance::Full,
        means,
        covariances.view(),
        proportions.view(),
    )
    .unwrap();
    check("full parameters", &model);
    let covariance = covariances.index_axis(Axis(0), 1);
    let model =
        GaussianMixture::from_parameters(Covariance::Tied, means, covariance, proportions.view())
            .unwrap();
    check("tied parameters", &model);
}

#[test]
fn every_family_comes_back_bit_for_bit_f32() {
    families::<f32>();
}

#[test]
fn every_family_comes_back_bit_for_bit_f64() {
    families::<f64>();
}

fn sketches<F: Float>() {
    let (x, w) = points::<F>();
    let mut sketch = Sketch::builder(5, 3, 9);
    sketch.push_weighted(x.view(), w.view()).unwrap();
    let sketch = sketch.finish().unwrap();
    let gmm = || algorithms::sparsified_gmm(4).max_iterations(5);
    let shared = gmm().covariance(Covariance::TiedSpherical).build().unwrap();
    let shared = shared.fit(&sketch).unwrap().model;
    let isotropic = gmm().covariance(Covariance::Spherical).build().unwrap();
    let isotropic = isotropic.fit(&sketch).unwrap().model;
    let diagonal = gmm().build().unwrap().fit(&sketch).unwrap().model;
    let name = |family| format!("{family}-sketch");
    check(&name("shared"), &shared);
    check(&name("isotropic"), &isotropic);
    check(&name("diagonal"), &diagonal);

    for model in [&shared, &isotropic, &diagonal] {
        let bytes = model.to_bytes(&NOTES).unwrap();
        let info = ModelInfo::read_from(&bytes[..]).unwrap();
        assert_eq!(info.columns, 5);
        let back = BoxedMixture::<F>::from_bytes(&bytes).unwrap();
        assert_eq!(answers(&*back, &sketch), answers(model, &sketch));
        assert_eq!(back.frame().basis(), model.frame().basis());
        assert_eq!(back.to_bytes(&NOTES).unwrap(), bytes);
    }
}

#[test]
fn models_of_sketches_come_back_bit_for_bit() {
    sketches::<f32>();
    sketches::<f64>();
}

/// A small model of every family, as files.
fn small() -> Vec<Vec<u8>> {
    let (x, _) = points::<f32>();
    let x = x.slice(ndarray::s![..60, ..2]);
    let data = Dense::new(x).unwrap();
    let mut sketch = Sketch::<f32>::builder(3, 2, 9);
    sketch
        .push(points::<f32>().0.slice(ndarray::s![.., ..3]))
        .unwrap();
    let sketch = sketch.finish().unwrap();
    let gmm = || algorithms::gmm(2).max_iterations(4);
    let shared = gmm().build().unwrap().fit(&data).unwrap().model;
    let isotropic = gmm().covariance(Covariance::Spherical).build().unwrap();
    let isotropic = isotropic.fit(&data).unwrap().model;
    let diagonal = gmm().covariance(Covariance::Diagonal).build().unwrap();
    let on_sketch = diagonal.fit(&sketch).unwrap().model;
    let dirichlet = algorithms::dp_gmm(3, 1.0)
        .max_iterations(4)
        .build()
        .unwrap();
    let dirichlet = dirichlet.fit(&data).unwrap().model;
    // Means that the frame rounds: they are in the file.
    let means = array![[1e-30f32, 0.0], [2e-30, 1.0], [1e30, 0.5]];
    let given = GaussianMixture::tied_spherical(means.view(), 0.3).unwrap();
    vec![
        shared.to_bytes(&NOTES).unwrap(),
        isotropic.to_bytes(&[]).unwrap(),
        on_sketch.to_bytes(&[]).unwrap(),
        dirichlet.to_bytes(&[]).unwrap(),
        given.to_bytes(&[]).unwrap(),
    ]
}

fn load(bytes: &[u8]) -> Result<BoxedMixture<f32>> {
    BoxedMixture::<f32>::from_bytes(bytes)
}

fn fault_of<T>(result: Result<T>) -> FileFault {
    match result.map(|_| ()) {
        Err(Error::Model { fault, .. }) => fault,
        other => panic!("not an error of a file: {other:?}"),
    }
}

/// The file with the length and the checksum that belong to it.
fn repaired(mut bytes: Vec<u8>) -> Vec<u8> {
    let (length, end) = ((bytes.len() as u64).to_le_bytes(), bytes.len() - 4);
    bytes[16..24].copy_from_slice(&length);
    let sum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Where the header of a file ends, and its values begin.
fn values_of(bytes: &[u8]) -> usize {
    32 + u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize
}

#[test]
fn every_flip_and_every_truncation_is_an_error() {
    for bytes in small() {
        assert!(load(&bytes).is_ok());
        let mut damaged = bytes.clone();
        for i in 0..bytes.len() {
            for flip in [1, 0x80, 0xff, 1 << (i % 8)] {
                damaged[i] ^= flip;
                let fault = fault_of(load(&damaged));
                match i {
                    0..12 => assert_eq!(fault, FileFault::Foreign),
                    12..16 => assert!(matches!(fault, FileFault::Version { .. })),
                    16..24 => assert!(matches!(fault, FileFault::Truncated | FileFault::Longer)),
                    _ => {}
                }
                damaged[i] ^= flip;
            }
        }
        for length in 0..bytes.len() {
            let fault = fault_of(load(&bytes[..length]));
            let empty = length == 0;
            let expected = if empty {
                FileFault::Foreign
            } else {
                FileFault::Truncated
            };
            assert_eq!(fault, expected, "{length} of {}", bytes.len());
            if length < 36 {
                assert_eq!(fault_of(ModelInfo::read_from(&bytes[..length])), expected);
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(fault_of(load(&longer)), FileFault::Longer);
    }
}

/// The places of interesting numbers, with values that are most likely to be trouble.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const WORDS: [u64; 12] = [
        0,
        1,
        2,
        u64::MAX,
        1 << 63,
        1 << 32,
        1 << 61,
        0x7ff0_0000_0000_0000, // infinity
        0x7fef_ffff_ffff_ffff, // the largest number
        0x7ff8_0000_0000_0000, // NaN
        0x0000_0000_0000_0001, // the smallest number
        0xbff0_0000_0000_0000, // -1
    ];
    let at = 24 + rng.below(bytes.len() - 24 - 4);
    match rng.below(6) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.below(256) as u8,
        2 => {
            let word = WORDS[rng.below(WORDS.len())].to_le_bytes();
            let end = (at + 8).min(bytes.len() - 4);
            bytes[at..end].copy_from_slice(&word[..end - at]);
        }
        3 => {
            let more = (rng.below(40) + at).min(bytes.len() - 4);
            bytes.drain(at..more);
        }
        4 => {
            let more = bytes[at..(at + 16).min(bytes.len() - 4)].to_vec();
            bytes.splice(at..at, more);
        }
        // A digit of the header.
        _ => {
            let end = bytes.len().min(2_000);
            let digits = (32..end).filter(|&i| bytes[i].is_ascii_digit());
            let digits: Vec<usize> = digits.collect();
            if !digits.is_empty() {
                bytes[digits[rng.below(digits.len())]] = b'0' + rng.below(10) as u8;
            }
        }
    }
}

#[test]
fn what_a_mutated_file_holds_is_an_error_or_a_model() {
    let (x, _) = points::<f32>();
    let mut rng = Rng::from_seed(17);
    let mut valid = 0;
    // More of them: `MUTATIONS=20000 cargo test --release --test all mutated`.
    let each = std::env::var("MUTATIONS").map_or(3_000, |text| text.parse().unwrap());
    for bytes in small() {
        for _ in 0..each {
            let mut mutated = bytes.clone();
            for _ in 0..=rng.below(3) {
                mutate(&mut mutated, &mut rng);
            }
            let mutated = repaired(mutated);
            ModelInfo::read_from(&mutated[..]).ok();
            let Ok(model) = load(&mutated) else {
                fault_of(load(&mutated));
                continue;
            };
            valid += 1;
            let variances = model.variances();
            assert!(model.means().iter().all(|x| x.is_finite()));
            assert!(variances.iter().all(|v| v.is_finite()));
            let columns = model.means().ncols();
            let data = Dense::new(x.slice(ndarray::s![..8, ..columns])).unwrap();
            assert_eq!(model.predict(&data).unwrap().len(), 8);
            assert_eq!(model.log_densities(&data).unwrap().len(), 8);
            model.quantization_error(&data).ok();
            assert!(model.to_bytes(&[]).is_ok());
            let any: Box<dyn Any> = model;
            if let Ok(model) = any.downcast::<DirichletProcessMixture<f32>>() {
                assert!(model.sample(3, 1).is_ok());
            }
        }
    }
    // Low bits of numbers, and notes.
    assert!(valid > 500, "{valid}");
}

/// The file with another header.
fn with_header(bytes: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let end = values_of(bytes);
    let header = change(std::str::from_utf8(&bytes[32..end]).unwrap());
    let length = (header.len() as u64).to_le_bytes();
    repaired([&bytes[..24], &length, header.as_bytes(), &bytes[end..]].concat())
}

#[test]
fn a_header_that_is_not_as_it_is_written_is_an_error() {
    for bytes in small() {
        assert_eq!(with_header(&bytes, str::to_string), bytes);
        // A field twice, one more, another name, another order, white space, another number, none.
        for (own, other) in [
            ("components: ", "components: 2\ncomponents: "),
            ("family: ", "more: 1\nfamily: "),
            ("crate_version", "version"),
            ("family: ", "number: "),
            (": ", ":  "),
            ("\n", "\r\n"),
            ("\n", "\n\n"),
            ("columns: ", "columns: 0"),
            ("columns: ", "columns: +"),
            ("columns: ", ""),
        ] {
            let changed = with_header(&bytes, |header| header.replace(own, other));
            let fault = fault_of(load(&changed)).to_string();
            assert!(fault.contains("each once"), "{fault}");
        }
        // Other numbers than those of the model.
        let info = ModelInfo::read_from(&bytes[..]).unwrap();
        for (name, own) in [("components", info.components), ("columns", info.columns)] {
            let [own, other] = [own, own + 1].map(|size| format!("{name}: {size}\n"));
            let fault = fault_of(load(&with_header(&bytes, |text| {
                text.replace(&own, &other)
            })));
            assert!(fault.to_string().contains("that of the model"), "{fault}");
        }
        let other = with_header(&bytes, |text| text.replace(&info.family, "Own"));
        assert!(
            fault_of(load(&other))
                .to_string()
                .contains("that of the model")
        );
    }
}

/// Lengths that no file has, in any place: they take no memory.
#[test]
fn endless_lengths_are_errors() {
    for bytes in small() {
        for at in values_of(&bytes)..bytes.len() - 4 {
            for bits in [32, 40, 62, 64] {
                // The number 2^bits - 1, seven bits at a time.
                let mut length = vec![0xff; bits / 7];
                length.push((1 << (bits % 7)) - 1);
                let mut endless = bytes.clone();
                endless.splice(at..=at, length);
                if let Ok(model) = load(&repaired(endless)) {
                    assert!(model.means().len() < bytes.len());
                }
            }
        }
    }
}

/// Models in formats of text: the same bits, and what contradicts itself is refused.
#[test]
fn models_are_values_of_serde() {
    for bytes in small() {
        let model = load(&bytes).unwrap();
        let value = serde_json::to_value(&model).unwrap();
        let back: BoxedMixture<f32> = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(back.to_bytes(&[]).unwrap(), model.to_bytes(&[]).unwrap());
        assert!(serde_json::from_value::<BoxedMixture<f64>>(value.clone()).is_err());
        let gaussian = serde_json::from_value::<GaussianMixture<f32>>(value.clone());
        let process = serde_json::from_value::<DirichletProcessMixture<f32>>(value.clone());
        assert!(gaussian.is_ok() != process.is_ok());
        let (family, fields) = value.as_object().unwrap().iter().next().unwrap();
        for (field, own) in fields.as_object().unwrap() {
            let others = match own {
                serde_json::Value::Number(_) => vec![(-1.0).into(), "1".into()],
                serde_json::Value::Array(list) => {
                    let mut more = list.clone();
                    more.push(list.first().cloned().unwrap_or(0.5.into()));
                    vec![more.into(), serde_json::Value::Null]
                }
                _ => vec![serde_json::Value::Null, 7.into()],
            };
            for other in others.into_iter().filter(|other| other != own) {
                let mut changed = value.clone();
                changed[family][field] = other;
                // The means may be left out; a process has a first variance or not.
                let changed = serde_json::from_value::<BoxedMixture<f32>>(changed);
                let optional = ["means", "first_variance"].contains(&&field[..]);
                assert!(changed.is_err() || optional, "{family}: {field}");
            }
        }
    }
}

#[test]
fn other_families_types_versions_and_files_are_told_apart() {
    let files = small();
    let expected = FileFault::Family {
        expected: "Gaussian",
        found: "DirichletProcess".into(),
    };
    assert_eq!(
        fault_of(GaussianMixture::<f32>::from_bytes(&files[3])),
        expected
    );
    let expected = FileFault::Number {
        expected: "f64",
        found: "f32".into(),
    };
    for bytes in &files {
        let found = fault_of(BoxedMixture::<f64>::from_bytes(bytes));
        assert_eq!(found, expected);
    }
    for found in [0, 2, u32::MAX] {
        let mut newer = files[0].clone();
        newer[12..16].copy_from_slice(&found.to_le_bytes());
        let fault = fault_of(load(&repaired(newer.clone())));
        assert_eq!(fault, FileFault::Version { found, known: 1 });
        // Whatever comes after the version in another format.
        assert_eq!(fault_of(load(&newer[..16])), fault);
        assert_eq!(fault_of(ModelInfo::read_from(&newer[..])), fault);
    }
    for foreign in [
        &b""[..],
        b"P",
        b"\x93NUMPY\x01\x00 and so on and so on",
        &[0; 100],
    ] {
        assert_eq!(fault_of(load(foreign)), FileFault::Foreign);
        assert_eq!(fault_of(ModelInfo::read_from(foreign)), FileFault::Foreign);
    }
    // Lengths without end take no memory: of the file, of the header.
    for at in [16, 24] {
        for length in [u64::MAX, 1 << 62, 1 << 40] {
            let mut endless = files[0].clone();
            endless[at..at + 8].copy_from_slice(&length.to_le_bytes());
            let endless = if at == 16 { endless } else { repaired(endless) };
            assert_eq!(fault_of(load(&endless)), FileFault::Truncated, "{at}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one_whole() {
    let folder = folder("writing");
    let model = GaussianMixture::tied_spherical(array![[0.5f64]].view(), 1.0).unwrap();
    let system = |path: &PathBuf, kinds: &[ErrorKind]| {
        let error = model.save(path).unwrap_err();
        assert!(
            error.to_string().starts_with(&path.display().to_string()),
            "{error}"
        );
        match fault_of::<()>(Err(error)) {
            FileFault::System { kind, message } => {
                assert!(
                    kinds.contains(&kind) && !message.is_empty(),
                    "{kind:?} {message}"
                );
            }
            other => panic!("{other:?}"),
        }
    };
    system(&folder.join("none").join("model"), &[ErrorKind::NotFound]);
    fs::create_dir(folder.join("taken")).unwrap();
    system(&folder.join("taken"), &[ErrorKind::IsADirectory]);
    system(
        &PathBuf::from("/"),
        &[ErrorKind::IsADirectory, ErrorKind::InvalidInput],
    );
    system(&PathBuf::new(), &[ErrorKind::InvalidInput]);
    assert_eq!(names_in(&folder), ["taken"]);

    let path = folder.join("model");
    model.save(&path).unwrap();
    for notes in [
        &[("a b", "x")],
        &[("", "x")],
        &[("a", "x\ny")],
        &[("a", "\u{7f}")],
    ] {
        let error = model.save_with_notes(&path, notes).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
    assert_eq!(GaussianMixture::load(&path).unwrap(), model);
    assert_eq!(names_in(&folder), ["model", "taken"]);

    let missing = fault_of(load_model::<f64>(folder.join("none")));
    assert!(matches!(
        missing,
        FileFault::System {
            kind: ErrorKind::NotFound,
            ..
        }
    ));
    fault_of(load_model::<f64>(folder.join("taken")));
    fault_of(ModelInfo::of_file(folder.join("taken")));
    fs::write(&path, [&fs::read(&path).unwrap()[..], b"more"].concat()).unwrap();
    assert_eq!(fault_of(load_model::<f64>(&path)), FileFault::Longer);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn threads_that_save_to_one_path_leave_one_whole_file() {
    let folder = folder("threads");
    let path = folder.join("model");
    let model = |c: usize| {
        let means = Array2::from_elem((40, 30), c as f64);
        GaussianMixture::tied_spherical(means.view(), 1.0).unwrap()
    };
    std::thread::scope(|scope| {
        for c in 0..4 {
            let (path, model) = (&path, model(c));
            scope.spawn(move || {
                for _ in 0..10 {
                    model.save(path).unwrap();
                    GaussianMixture::<f64>::load(path).unwrap();
                }
            });
        }
    });
    let last = GaussianMixture::load(&path).unwrap();
    assert!((0..4).any(|c| last == model(c)));
    assert_eq!(names_in(&folder), ["model"]);
    fs::remove_dir_all(folder).unwrap();
}

/// A family from outside, which says nothing of files.
struct Own(GaussianMixture<f64>);

impl Mixture<f64> for Own {
    fn cost(&self) -> Cost<'_, f64> {
        Mixture::<f64>::cost(&self.0)
    }
    fn centres(&self) -> &Centres<f64> {
        Mixture::<f64>::centres(&self.0)
    }
    fn frame(&self) -> &Frame<f64> {
        Mixture::<f64>::frame(&self.0)
    }
    fn log_joint(&self) -> LogJoint {
        Mixture::<f64>::log_joint(&self.0)
    }
    fn variances(&self) -> Array2<f64> {
        Mixture::<f64>::variances(&self.0)
    }
}

#[test]
fn a_family_from_outside_says_that_it_cannot_be_saved() {
    let model = GaussianMixture::tied_spherical(array![[0.5]].view(), 1.0).unwrap();
    let boxed: BoxedMixture<f64> = Box::new(Own(model));
    let folder = folder("own");
    let path = folder.join("model");
    let error = boxed.save(&path).unwrap_err();
    let expected = format!(
        "{}: boxed models of this family cannot be saved: save them with their type",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fault_of(boxed.to_bytes(&[])), FileFault::NoFormat);
    assert!(names_in(&folder).is_empty());
    fs::remove_dir_all(folder).unwrap();
}
