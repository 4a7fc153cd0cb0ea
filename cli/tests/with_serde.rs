//! Models and reports through the formats of serde: text and binary.

use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{BoxedMixture, datasets::Birch};

#[test]
fn models_of_all_families_come_back_bit_for_bit() {
    let points = Birch::grid(20).generate::<f32>(1).unwrap().points;
    let data = Dense::new(&points).unwrap();
    let own = [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
    ]
    .map(Some);
    let named = ["k-means", "fast", "dp-gmm"].map(|name| (name, None));
    for (name, family) in named.into_iter().chain(own.map(|family| ("gmm", family))) {
        let mut algorithm = name.parse::<Algorithm>().unwrap().clusters(6);
        if let Some(family) = family {
            algorithm = algorithm.covariance(family);
        }
        let name = format!("{name} {family:?}");
        let model = algorithm.boxed().unwrap().fit(&data).unwrap().model;
        let bytes = model.to_bytes(&[]).unwrap();
        let text = serde_json::to_string(&model).unwrap();
        let back: BoxedMixture<f32> = serde_json::from_str(&text).unwrap();
        assert_eq!(back.to_bytes(&[]).unwrap(), bytes, "{name}");
        let mut binary = Vec::new();
        ciborium::into_writer(&model, &mut binary).unwrap();
        let back: BoxedMixture<f32> = ciborium::from_reader(&binary[..]).unwrap();
        assert_eq!(back.to_bytes(&[]).unwrap(), bytes, "{name}");

        let gaussian = serde_json::from_str::<GaussianMixture<f32>>(&text);
        assert_eq!(gaussian.is_ok(), !name.starts_with("dp-gmm"), "{name}");
        // Another number type, and fewer components in one place than in another.
        let first = text
            .find("\"sticks\":[[")
            .or(text.find("\"proportions\":{\"values\":["));
        let (start, rest) = text.split_at(first.unwrap());
        let fewer = format!("{start}{}", rest.replacen('[', "[0.0,", 1));
        for changed in [text.replace("\"f32\"", "\"f64\""), fewer] {
            assert_ne!(changed, text);
            assert!(serde_json::from_str::<BoxedMixture<f32>>(&changed).is_err());
        }
    }
}

#[test]
fn reports_come_back() {
    let points = Birch::grid(40).generate::<f64>(1).unwrap().points;
    let data = Dense::new(&points).unwrap();
    let coreset = Lightweight::new(300);
    let clusterer = algorithms::fast(25).coreset(coreset).restarts(2).build();
    let report = clusterer.unwrap().fit(&data).unwrap().report;
    let text = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    assert_eq!(back.free_energies, report.free_energies);
    assert_eq!(back.phases.len(), report.phases.len());
    assert_eq!(back.to_string(), report.to_string());
}
