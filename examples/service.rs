//! A service that labels one vector at a time: the model comes from a file, and a predictor answers in microseconds.

use coremix::prelude::*;
use std::time::Instant;

const COLUMNS: usize = 64;

fn main() -> Result<()> {
    let mut rng = coremix::stage::Rng::from_seed(7);
    let mut vectors = |n: usize| (0..n * COLUMNS).map(|_| rng.normal() as f32).collect();
    let (known, asked): (Vec<f32>, Vec<f32>) = (vectors(20_000), vectors(10_000));
    let trained = algorithms::fast(200).fit(&Dense::of_rows(&known, COLUMNS)?)?;
    let path = std::env::temp_dir().join("coremix-service.cmx");
    trained.model.save(&path)?;

    // The service begins here. Each thread has a predictor of its own: it keeps the memory of an answer.
    let model = coremix::load_model::<f32>(&path)?;
    let mut predictor = model.predictor();
    let mut took = Vec::new();
    for vector in asked.chunks_exact(COLUMNS) {
        let began = Instant::now();
        let (label, squared) = predictor.predict(vector)?;
        took.push(began.elapsed());
        assert!(label < 200 && squared >= 0.0);
    }
    took.sort();
    let at = |share: f64| took[(share * took.len() as f64) as usize];
    println!(
        "p50 {:?}, p99 {:?}, p99.9 {:?}",
        at(0.5),
        at(0.99),
        at(0.999)
    );
    Ok(())
}
