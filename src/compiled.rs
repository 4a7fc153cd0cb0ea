//! What is compiled inside the crate, once per kind of rows.
//!
//! Generic code is compiled where it is used. The loop, the searches and the answers of a model are generic over rows, and
//! a program that fits a model would compile them all again. So they are called through this trait, whose implementations
//! for the four kinds of rows are not generic.
//! It belongs to the number type, so that code generic over numbers can name it.
// Every function is the one of the same name elsewhere. What they exchange with the loop is not public: nobody outside can
// name the trait.
#![allow(missing_docs, private_interfaces)]

use crate::algorithm::Algorithm;
use crate::block::Block;
use crate::coreset::{Lightweight, Subset};
use crate::data::{
    Arithmetic, Centres, Data, DenseRows, Frame, Linear, Rows, Scales, SketchRows, Subspace, Which,
};
use crate::e_step::{
    self, LazyWorker, Neighborhood, NeighborhoodWorker, Neighbors, Similarity, SimilaritySampling,
    SimilaritySamplingWorker, Started,
};
use crate::em::{self, Fresh, Kept, Pass, SetUp, Watch};
use crate::error::Result;
use crate::fit::{self, Estimator, Fitted, Run};
use crate::mixture::{Mixture, Score};
use crate::rng::Rng;
use crate::saving::{FileFault, Sections};
use crate::scoring::{self, Classified};
use crate::search::{self, Exact};
use crate::seed::{AfkMc2, HierarchicalKMeansPlusPlus, KMeansPlusPlus, Seeds};
use ndarray::{Array1, Array2};

type Model<'a, R> = &'a dyn Mixture<R>;
type Source<'a, R> = &'a dyn Data<Rows = R>;
type PassOf<'a, R> = std::result::Result<Box<dyn Pass<R> + 'a>, FileFault>;

/// What [`Rows`](crate::data::Rows) can do by code that is compiled inside the crate. Sealed.
pub trait Compiled<R>: Sized {
    fn fit(run: Run<'_, R>, watch: &mut Watch<'_>) -> Result<Fitted>
    where
        R: Rows<Float = Self>;
    fn predict(model: Model<'_, R>, data: Source<'_, R>, epsilon: f64) -> Result<Array1<u32>>
    where
        R: Rows<Float = Self>;
    fn responsibilities(model: Model<'_, R>, data: Source<'_, R>) -> Result<Array2<Self>>
    where
        R: Rows<Float = Self>;
    fn truncated_responsibilities(
        model: Model<'_, R>,
        data: Source<'_, R>,
        c_prime: usize,
    ) -> Result<(Array2<u32>, Array2<Self>)>
    where
        R: Rows<Float = Self>;
    fn judge(model: Model<'_, R>, rows: &R, labels: Option<&mut [u32]>) -> Vec<f64>
    where
        R: Rows<Float = Self>;
    fn log_densities(model: Model<'_, R>, data: Source<'_, R>) -> Result<Array1<f64>>
    where
        R: Rows<Float = Self>;
    fn log_likelihood(model: Model<'_, R>, data: Source<'_, R>) -> Result<f64>
    where
        R: Rows<Float = Self>;
    fn classify(model: Model<'_, R>, data: Source<'_, R>) -> Result<Classified>
    where
        R: Rows<Float = Self>;
    fn score(model: Model<'_, R>, data: Source<'_, R>) -> Result<Score>
    where
        R: Rows<Float = Self>;
    fn quantization_error(model: Model<'_, R>, data: Source<'_, R>) -> Result<f64>
    where
        R: Rows<Float = Self>;
    fn search_all(model: Model<'_, R>, rows: &R, block: &mut Block<Self>, worker: &mut Exact<Self>)
    where
        R: Rows<Float = Self>;
    fn search_lazily(
        epsilon: f64,
        model: Model<'_, R>,
        rows: &R,
        block: &mut Block<Self>,
        worker: &mut LazyWorker<Self>,
    ) where
        R: Rows<Float = Self>;
    fn first_neighbors(
        e_step: &Neighborhood,
        model: Model<'_, R>,
        rng: &mut Rng,
    ) -> Started<Neighbors>
    where
        R: Rows<Float = Self>;
    fn search_neighborhood(
        e_step: &Neighborhood,
        state: &Neighbors,
        model: Model<'_, R>,
        rows: &R,
        block: &mut Block<Self>,
        rng: &mut Rng,
        worker: &mut NeighborhoodWorker<Self>,
    ) where
        R: Rows<Float = Self>;
    fn search_by_similarity(
        e_step: &SimilaritySampling,
        state: &Similarity,
        model: Model<'_, R>,
        rows: &R,
        block: &mut Block<Self>,
        rng: &mut Rng,
        worker: &mut SimilaritySamplingWorker<Self>,
    ) where
        R: Rows<Float = Self>;
    fn distances(rows: &R, centres: &Centres<Self>, out: &mut Vec<Self>)
    where
        R: Rows<Float = Self>;
    fn margin(rows: &R, i: usize, centres: &Centres<Self>, reach: Self) -> Self
    where
        R: Rows<Float = Self>;
    fn nearest_of_all(
        rows: &R,
        centres: &Centres<Self>,
        ids: &mut [u32],
        squared: &mut [Self],
    ) -> bool
    where
        R: Rows<Float = Self>;
    fn nearest_by_cells(
        rows: &R,
        centres: &Centres<Self>,
        epsilon: f64,
        ids: &mut [u32],
        squared: &mut [Self],
    ) -> Option<u64>
    where
        R: Rows<Float = Self>;
    fn together(
        rows: &R,
        centres: &Centres<Self>,
        beta: f64,
        found: &mut Vec<(u32, f64, f64)>,
    ) -> bool
    where
        R: Rows<Float = Self>;
    fn linear(rows: &R, scores: &Linear<Self>, features: &mut Vec<Self>, out: &mut [Self]) -> bool
    where
        R: Rows<Float = Self>;
    fn distances_to(rows: &R, i: usize, centres: &Centres<Self>, ids: &[u32], out: &mut Vec<Self>)
    where
        R: Rows<Float = Self>;
    fn scaled_distances(
        rows: &R,
        centres: &Centres<Self>,
        scales: &Scales<Self>,
        out: &mut Vec<Self>,
    ) where
        R: Rows<Float = Self>;
    fn scaled_distances_to(
        rows: &R,
        i: usize,
        centres: &Centres<Self>,
        scales: &Scales<Self>,
        ids: &[u32],
        out: &mut Vec<Self>,
    ) where
        R: Rows<Float = Self>;
    fn lower(rows: &R, first: usize, centre: &[Self], nearest: &mut [Self])
    where
        R: Rows<Float = Self>;
    fn distances_of_rows(rows: &R, centre: &[Self], out: &mut [Self])
    where
        R: Rows<Float = Self>;
    fn typical(rows: &R) -> Option<f64>
    where
        R: Rows<Float = Self>;
    fn accumulate(rows: &R, block: &Block<Self>, centres: &Centres<Self>, moments: Which<'_>)
    where
        R: Rows<Float = Self>;
    fn seed_k_means_plus_plus(
        seeder: &KMeansPlusPlus,
        data: Source<'_, R>,
        frame: &Frame<Self>,
        seeds: (usize, Option<&Centres<Self>>),
        rng: &mut Rng,
    ) -> Result<Seeds<Self>>
    where
        R: Rows<Float = Self>;
    fn seed_afk_mc2(
        seeder: &AfkMc2,
        data: Source<'_, R>,
        frame: &Frame<Self>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<Self>>
    where
        R: Rows<Float = Self>;
    fn seed_hierarchically(
        seeder: &HierarchicalKMeansPlusPlus,
        data: Source<'_, R>,
        frame: &Frame<Self>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<Self>>
    where
        R: Rows<Float = Self>;
    fn sample_lightly(
        coreset: &Lightweight,
        data: Source<'_, R>,
        frame: &Frame<Self>,
        rng: &mut Rng,
    ) -> Result<Option<Subset>>
    where
        R: Rows<Float = Self>;
    /// Makes it so many rows at the origin of a frame.
    fn blank(rows: &mut R, n: usize, frame: &Frame<Self>)
    where
        R: Rows<Float = Self>;
    /// The first row that is not sound, and what is wrong with it.
    fn unsound(rows: &R, frame: &Frame<Self>) -> Option<(usize, String)>
    where
        R: Rows<Float = Self>;
    /// A named algorithm for such rows.
    fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<R>>>
    where
        R: Rows<Float = Self>;
    /// The principal subspace of some rows, and a sample of them in it. Rows of a sketch have none.
    fn principal(
        data: Source<'_, R>,
        frame: &Frame<Self>,
        dim: usize,
        rng: &mut Rng,
    ) -> Option<(Subspace<Self>, Box<dyn Data<Rows = R> + Send>)>
    where
        R: Rows<Float = Self>;
    /// Rows in a subspace.
    fn project(
        subspace: &Subspace<Self>,
        data: Source<'_, R>,
    ) -> Option<Box<dyn Data<Rows = R> + Send>>
    where
        R: Rows<Float = Self>;
    /// Whether most of the quantization error of some centres lies beside a subspace, on a sample of rows in it.
    fn outside(
        data: Source<'_, R>,
        frame: &Frame<Self>,
        centres: &Centres<Self>,
        near: usize,
    ) -> bool
    where
        R: Rows<Float = Self>;
    /// Passes that keep bounds and statistics. Rows of a sketch, which know different coordinates, have no bounds: their
    /// passes are fresh. One that goes on from a checkpoint reads its sections.
    fn kept_pass<'a>(set_up: SetUp<'a, R>, resumed: Option<&mut Sections<'_>>) -> PassOf<'a, R>
    where
        R: Rows<Float = Self>;
}

macro_rules! compiled {
    ($float:ty, $rows:ty { $($own:item)* }) => {
        impl Compiled<$rows> for $float {
            $($own)*
            fn fit(run: Run<'_, $rows>, watch: &mut Watch<'_>) -> Result<Fitted> {
                fit::run(run, watch)
            }
            fn blank(rows: &mut $rows, n: usize, frame: &Frame<$float>) {
                rows.blank(n, frame)
            }
            fn unsound(rows: &$rows, frame: &Frame<$float>) -> Option<(usize, String)> {
                rows.unsound(frame)
            }
            fn predict(model: Model<'_, $rows>, data: Source<'_, $rows>, epsilon: f64) -> Result<Array1<u32>> {
                scoring::predict(model, data, epsilon)
            }
            fn responsibilities(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<Array2<$float>> {
                scoring::responsibilities(model, data)
            }
            fn truncated_responsibilities(model: Model<'_, $rows>, data: Source<'_, $rows>, c_prime: usize) -> Result<(Array2<u32>, Array2<$float>)> {
                scoring::truncated_responsibilities(model, data, c_prime)
            }
            fn judge(model: Model<'_, $rows>, rows: &$rows, labels: Option<&mut [u32]>) -> Vec<f64> {
                scoring::judge(model, rows, labels)
            }
            fn log_densities(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<Array1<f64>> {
                scoring::log_densities(model, data)
            }
            fn log_likelihood(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<f64> {
                scoring::log_likelihood(model, data)
            }
            fn classify(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<Classified> {
                scoring::classify(model, data)
            }
            fn score(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<Score> {
                scoring::score(model, data)
            }
            fn quantization_error(model: Model<'_, $rows>, data: Source<'_, $rows>) -> Result<f64> {
                scoring::quantization_error(model, data)
            }
            fn search_all(model: Model<'_, $rows>, rows: &$rows, block: &mut Block<$float>, worker: &mut Exact<$float>) {
                search::exhaustive(model, rows, block, worker)
            }
            fn search_lazily(epsilon: f64, model: Model<'_, $rows>, rows: &$rows, block: &mut Block<$float>, worker: &mut LazyWorker<$float>) {
                e_step::lazy::search(epsilon, model, rows, block, worker)
            }
            fn first_neighbors(e_step: &Neighborhood, model: Model<'_, $rows>, rng: &mut Rng) -> Started<Neighbors> {
                e_step.first_neighbors(model, rng)
            }
            fn search_neighborhood(e_step: &Neighborhood, state: &Neighbors, model: Model<'_, $rows>, rows: &$rows, block: &mut Block<$float>, rng: &mut Rng, worker: &mut NeighborhoodWorker<$float>) {
                e_step.search_rows(state, model, rows, block, rng, worker)
            }
            fn search_by_similarity(e_step: &SimilaritySampling, state: &Similarity, model: Model<'_, $rows>, rows: &$rows, block: &mut Block<$float>, rng: &mut Rng, worker: &mut SimilaritySamplingWorker<$float>) {
                e_step.search_rows(state, model, rows, block, rng, worker)
            }
            fn distances(rows: &$rows, centres: &Centres<$float>, out: &mut Vec<$float>) {
                Arithmetic::distances(rows, centres, out)
            }
            fn margin(rows: &$rows, i: usize, centres: &Centres<$float>, reach: $float) -> $float {
                Arithmetic::margin(rows, i, centres, reach)
            }
            fn nearest_of_all(rows: &$rows, centres: &Centres<$float>, ids: &mut [u32], squared: &mut [$float]) -> bool {
                Arithmetic::nearest(rows, centres, ids, squared)
            }
            fn nearest_by_cells(rows: &$rows, centres: &Centres<$float>, epsilon: f64, ids: &mut [u32], squared: &mut [$float]) -> Option<u64> {
                Arithmetic::nearest_by_cells(rows, centres, epsilon, ids, squared)
            }
            fn together(rows: &$rows, centres: &Centres<$float>, beta: f64, found: &mut Vec<(u32, f64, f64)>) -> bool {
                Arithmetic::together(rows, centres, beta, found)
            }
            fn linear(rows: &$rows, scores: &Linear<$float>, features: &mut Vec<$float>, out: &mut [$float]) -> bool {
                Arithmetic::linear(rows, scores, features, out)
            }
            fn distances_to(rows: &$rows, i: usize, centres: &Centres<$float>, ids: &[u32], out: &mut Vec<$float>) {
                Arithmetic::distances_to(rows, i, centres, ids, out)
            }
            fn scaled_distances(rows: &$rows, centres: &Centres<$float>, scales: &Scales<$float>, out: &mut Vec<$float>) {
                Arithmetic::scaled_distances(rows, centres, scales, out)
            }
            fn scaled_distances_to(rows: &$rows, i: usize, centres: &Centres<$float>, scales: &Scales<$float>, ids: &[u32], out: &mut Vec<$float>) {
                Arithmetic::scaled_distances_to(rows, i, centres, scales, ids, out)
            }
            fn lower(rows: &$rows, first: usize, centre: &[$float], nearest: &mut [$float]) {
                Arithmetic::lower(rows, first, centre, nearest)
            }
            fn distances_of_rows(rows: &$rows, centre: &[$float], out: &mut [$float]) {
                Arithmetic::distances_from(rows, centre, out)
            }
            fn typical(rows: &$rows) -> Option<f64> {
                Arithmetic::typical(rows)
            }
            fn accumulate(rows: &$rows, block: &Block<$float>, centres: &Centres<$float>, moments: Which<'_>) {
                match moments {
                    Which::None(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                    Which::PerComponent(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                    Which::PerCoordinate(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                }
            }
            fn seed_k_means_plus_plus(seeder: &KMeansPlusPlus, data: Source<'_, $rows>, frame: &Frame<$float>, seeds: (usize, Option<&Centres<$float>>), rng: &mut Rng) -> Result<Seeds<$float>> {
                seeder.choose(data, frame, seeds, rng)
            }
            fn seed_afk_mc2(seeder: &AfkMc2, data: Source<'_, $rows>, frame: &Frame<$float>, k: usize, rng: &mut Rng) -> Result<Seeds<$float>> {
                seeder.choose(data, frame, k, rng)
            }
            fn seed_hierarchically(seeder: &HierarchicalKMeansPlusPlus, data: Source<'_, $rows>, frame: &Frame<$float>, k: usize, rng: &mut Rng) -> Result<Seeds<$float>> {
                seeder.choose(data, frame, k, rng)
            }
            fn sample_lightly(coreset: &Lightweight, data: Source<'_, $rows>, frame: &Frame<$float>, rng: &mut Rng) -> Result<Option<Subset>> {
                coreset.draw(data, frame, rng)
            }
        }
    };
}

macro_rules! dense {
    ($float:ty) => {
        compiled!($float, DenseRows<$float> {
            fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<DenseRows<$float>>>> {
                match algorithm.is_dirichlet_process() {
                    true => algorithm.dirichlet_process(),
                    false => algorithm.of_rows(),
                }
            }
            fn principal(data: Source<'_, DenseRows<$float>>, frame: &Frame<$float>, dim: usize, rng: &mut Rng) -> Option<(Subspace<$float>, Box<dyn Data<Rows = DenseRows<$float>> + Send>)> {
                let (subspace, sample) = Subspace::principal(data, frame, dim, rng);
                let sample = subspace.project(&*sample);
                Some((subspace, Box::new(sample)))
            }
            fn project(subspace: &Subspace<$float>, data: Source<'_, DenseRows<$float>>) -> Option<Box<dyn Data<Rows = DenseRows<$float>> + Send>> {
                Some(Box::new(subspace.project(data)))
            }
            fn outside(data: Source<'_, DenseRows<$float>>, frame: &Frame<$float>, centres: &Centres<$float>, near: usize) -> bool {
                em::outside(data, frame, centres, near)
            }
            fn kept_pass<'a>(set_up: SetUp<'a, DenseRows<$float>>, resumed: Option<&mut Sections<'_>>) -> PassOf<'a, DenseRows<$float>> {
                Ok(match resumed {
                    Some(file) => Box::new(Kept::resumed(set_up, file)?),
                    None => Box::new(Kept::new(set_up)),
                })
            }
        });
    };
}

macro_rules! sketch {
    ($float:ty) => {
        compiled!($float, SketchRows<$float> {
            fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<SketchRows<$float>>>> {
                algorithm.of_rows()
            }
            fn principal(_: Source<'_, SketchRows<$float>>, _: &Frame<$float>, _: usize, _: &mut Rng) -> Option<(Subspace<$float>, Box<dyn Data<Rows = SketchRows<$float>> + Send>)> {
                None
            }
            fn project(_: &Subspace<$float>, _: Source<'_, SketchRows<$float>>) -> Option<Box<dyn Data<Rows = SketchRows<$float>> + Send>> {
                None
            }
            fn outside(_: Source<'_, SketchRows<$float>>, _: &Frame<$float>, _: &Centres<$float>, _: usize) -> bool {
                true
            }
            fn kept_pass<'a>(set_up: SetUp<'a, SketchRows<$float>>, resumed: Option<&mut Sections<'_>>) -> PassOf<'a, SketchRows<$float>> {
                Ok(match resumed {
                    Some(file) => Box::new(Fresh::resumed(set_up, file)?),
                    None => Box::new(Fresh::new(set_up)),
                })
            }
        });
    };
}

dense!(f32);
dense!(f64);
sketch!(f32);
sketch!(f64);
