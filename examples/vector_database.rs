//! The call of a vector database: centres are trained on vectors that lie one after the other, and each vector goes to the lists of its
//! nearest centres. Slices go in, vectors come out, and the database says when to stop.

use coremix::prelude::*;

const COLUMNS: usize = 16;
const LISTS: usize = 64;
/// Lists that a vector is in.
const COPIES: usize = 2;

/// The centres, one after the other, and for each vector the numbers of its nearest ones.
fn build(
    vectors: &[f32],
    stop: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(Vec<f32>, Vec<u32>)> {
    let data = Dense::of_rows(vectors, COLUMNS)?;
    let algorithm = algorithms::fast(LISTS).cancel(&Cancel::when(stop));
    let model = algorithm.fit(&data)?.model;
    let (nearest, _) = model.truncated_responsibilities(&data, COPIES)?;
    let mut predictor = model.predictor(); // one vector at a time, as they come
    for (list, squared) in predictor.likeliest(&vectors[..COLUMNS], COPIES)? {
        println!(
            "vector 0 is in list {list}, at the squared distance {squared:.3} from its centre"
        );
    }
    Ok((
        model.means().iter().copied().collect(),
        nearest.into_iter().collect(),
    ))
}

fn main() -> Result<()> {
    let mut rng = coremix::stage::Rng::from_seed(7);
    let vectors: Vec<f32> = (0..20_000 * COLUMNS).map(|_| rng.normal() as f32).collect();
    let (centres, lists) = build(&vectors, || false)?;
    println!(
        "{} centres, {} entries of lists",
        centres.len() / COLUMNS,
        lists.len()
    );
    // As the server goes down.
    assert_eq!(build(&vectors, || true), Err(Error::Cancelled));
    Ok(())
}
