//! What is compiled inside the crate, once per kind of rows.
//!
//! Generic code is compiled where it is used. The loop, the searches and the answers of a model are generic over rows, and
//! a program that fits a model would compile them all again. So they are called through this trait, whose implementations
//! for the four kinds of rows are not generic.
//! It belongs to the number type, so that code generic over numbers can name it.
//!
//! Each function is written once, in `functions!`: from that the trait takes its head, and every implementation its body. In
//! both, `R` is the kind of rows, and `Self` its number type.
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
type DataOf<'a, R> = &'a dyn Data<Rows = R>;
type PassOf<'a, R> = std::result::Result<Box<dyn Pass<R> + 'a>, FileFault>;

/// Hands all functions that are the same for every kind of rows to a macro.
macro_rules! functions {
    ($to:ident) => {
        $to! {
            fn fit(run: Run<'_, R>, watch: &mut Watch<'_>) -> Result<Fitted> {
                fit::run(run, watch)
            }
            fn predict(model: Model<'_, R>, data: DataOf<'_, R>, epsilon: f64) -> Result<Array1<u32>> {
                scoring::predict(model, data, epsilon)
            }
            fn responsibilities(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<Array2<Self>> {
                scoring::responsibilities(model, data)
            }
            fn truncated_responsibilities(
                model: Model<'_, R>,
                data: DataOf<'_, R>,
                c_prime: usize
            ) -> Result<(Array2<u32>, Array2<Self>)> {
                scoring::truncated_responsibilities(model, data, c_prime)
            }
            fn judge(model: Model<'_, R>, rows: &R, labels: Option<&mut [u32]>) -> Vec<f64> {
                scoring::judge(model, rows, labels)
            }
            fn log_densities(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<Array1<f64>> {
                scoring::log_densities(model, data)
            }
            fn log_likelihood(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<f64> {
                scoring::log_likelihood(model, data)
            }
            fn classify(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<Classified> {
                scoring::classify(model, data)
            }
            fn score(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<Score> {
                scoring::score(model, data)
            }
            fn quantization_error(model: Model<'_, R>, data: DataOf<'_, R>) -> Result<f64> {
                scoring::quantization_error(model, data)
            }
            fn search_all(model: Model<'_, R>, rows: &R, block: &mut Block<Self>, worker: &mut Exact<Self>) {
                search::exhaustive(model, rows, block, worker)
            }
            fn search_lazily(
                epsilon: f64,
                model: Model<'_, R>,
                rows: &R,
                block: &mut Block<Self>,
                worker: &mut LazyWorker<Self>
            ) {
                e_step::lazy::search(epsilon, model, rows, block, worker)
            }
            fn first_neighbors(e_step: &Neighborhood, model: Model<'_, R>, rng: &mut Rng) -> Started<Neighbors> {
                e_step.first_neighbors(model, rng)
            }
            fn search_neighborhood(
                e_step: &Neighborhood,
                state: &Neighbors,
                model: Model<'_, R>,
                rows: &R,
                block: &mut Block<Self>,
                rng: &mut Rng,
                worker: &mut NeighborhoodWorker<Self>
            ) {
                e_step.search_rows(state, model, rows, block, rng, worker)
            }
            fn search_by_similarity(
                e_step: &SimilaritySampling,
                state: &Similarity,
                model: Model<'_, R>,
                rows: &R,
                block: &mut Block<Self>,
                rng: &mut Rng,
                worker: &mut SimilaritySamplingWorker<Self>
            ) {
                e_step.search_rows(state, model, rows, block, rng, worker)
            }
            fn distances(rows: &R, centres: &Centres<Self>, out: &mut Vec<Self>) {
                Arithmetic::distances(rows, centres, out)
            }
            fn margin(rows: &R, i: usize, centres: &Centres<Self>, reach: Self) -> Self {
                Arithmetic::margin(rows, i, centres, reach)
            }
            fn nearest_of_all(rows: &R, centres: &Centres<Self>, ids: &mut [u32], squared: &mut [Self]) -> bool {
                Arithmetic::nearest(rows, centres, ids, squared)
            }
            fn nearest_by_cells(
                rows: &R,
                centres: &Centres<Self>,
                epsilon: f64,
                ids: &mut [u32],
                squared: &mut [Self]
            ) -> Option<u64> {
                Arithmetic::nearest_by_cells(rows, centres, epsilon, ids, squared)
            }
            fn together(rows: &R, centres: &Centres<Self>, beta: f64, found: &mut Vec<(u32, f64, f64)>) -> bool {
                Arithmetic::together(rows, centres, beta, found)
            }
            fn linear(rows: &R, scores: &Linear<Self>, features: &mut Vec<Self>, out: &mut [Self]) -> bool {
                Arithmetic::linear(rows, scores, features, out)
            }
            fn distances_to(rows: &R, i: usize, centres: &Centres<Self>, ids: &[u32], out: &mut Vec<Self>) {
                Arithmetic::distances_to(rows, i, centres, ids, out)
            }
            fn scaled_distances(rows: &R, centres: &Centres<Self>, scales: &Scales<Self>, out: &mut Vec<Self>) {
                Arithmetic::scaled_distances(rows, centres, scales, out)
            }
            fn scaled_distances_to(
                rows: &R,
                i: usize,
                centres: &Centres<Self>,
                scales: &Scales<Self>,
                ids: &[u32],
                out: &mut Vec<Self>
            ) {
                Arithmetic::scaled_distances_to(rows, i, centres, scales, ids, out)
            }
            fn lower(rows: &R, first: usize, centre: &[Self], nearest: &mut [Self]) {
                Arithmetic::lower(rows, first, centre, nearest)
            }
            fn distances_of_rows(rows: &R, centre: &[Self], out: &mut [Self]) {
                Arithmetic::distances_from(rows, centre, out)
            }
            fn typical(rows: &R) -> Option<f64> {
                Arithmetic::typical(rows)
            }
            fn accumulate(rows: &R, block: &Block<Self>, centres: &Centres<Self>, moments: Which<'_>) {
                match moments {
                    Which::None(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                    Which::PerComponent(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                    Which::PerCoordinate(moments) => Arithmetic::accumulate(rows, block, centres, moments),
                }
            }
            fn seed_k_means_plus_plus(
                seeder: &KMeansPlusPlus,
                data: DataOf<'_, R>,
                frame: &Frame<Self>,
                seeds: (usize, Option<&Centres<Self>>),
                rng: &mut Rng
            ) -> Result<Seeds<Self>> {
                seeder.choose(data, frame, seeds, rng)
            }
            fn seed_afk_mc2(
                seeder: &AfkMc2,
                data: DataOf<'_, R>,
                frame: &Frame<Self>,
                k: usize,
                rng: &mut Rng
            ) -> Result<Seeds<Self>> {
                seeder.choose(data, frame, k, rng)
            }
            fn seed_hierarchically(
                seeder: &HierarchicalKMeansPlusPlus,
                data: DataOf<'_, R>,
                frame: &Frame<Self>,
                k: usize,
                rng: &mut Rng
            ) -> Result<Seeds<Self>> {
                seeder.choose(data, frame, k, rng)
            }
            fn sample_lightly(
                coreset: &Lightweight,
                data: DataOf<'_, R>,
                frame: &Frame<Self>,
                rng: &mut Rng
            ) -> Result<Option<Subset>> {
                coreset.draw(data, frame, rng)
            }
            fn blank(rows: &mut R, n: usize, frame: &Frame<Self>) {
                rows.blank(n, frame)
            }
            fn unsound(rows: &R, frame: &Frame<Self>) -> Option<(usize, String)> {
                rows.unsound(frame)
            }
        }
    };
}

/// The heads of functions.
macro_rules! declared {
    ($(fn $name:ident($($argument:ident: $of:ty),*) $(-> $out:ty)? $body:block)*) => {$(
        fn $name($($argument: $of),*) $(-> $out)?
        where
            R: Rows<Float = Self>;
    )*};
}

/// The functions themselves.
macro_rules! defined {
    ($(fn $name:ident($($argument:ident: $of:ty),*) $(-> $out:ty)? $body:block)*) => {$(
        fn $name($($argument: $of),*) $(-> $out)? $body
    )*};
}

/// What [`Rows`](crate::data::Rows) can do by code that is compiled inside the crate. Sealed.
pub trait Compiled<R>: Sized {
    functions! { declared }

    /// A named algorithm for such rows.
    fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<R>>>
    where
        R: Rows<Float = Self>;
    /// The principal subspace of some rows, and a sample of them in it. Rows of a sketch have none.
    fn principal(
        data: DataOf<'_, R>,
        frame: &Frame<Self>,
        dim: usize,
        rng: &mut Rng,
    ) -> Option<(Subspace<Self>, Box<dyn Data<Rows = R> + Send>)>
    where
        R: Rows<Float = Self>;
    /// Rows in a subspace.
    fn project(
        subspace: &Subspace<Self>,
        data: DataOf<'_, R>,
    ) -> Option<Box<dyn Data<Rows = R> + Send>>
    where
        R: Rows<Float = Self>;
    /// Whether most of the quantization error of some centres lies beside a subspace, on a sample of rows in it.
    fn outside(
        data: DataOf<'_, R>,
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

/// The functions for one kind of rows, beside those that are its own.
macro_rules! compiled {
    ($module:ident, $float:ty, $rows:ty { $($own:item)* }) => {
        mod $module {
            use super::*;

            type R = $rows;

            impl Compiled<R> for $float {
                functions! { defined }
                $($own)*
            }
        }
    };
}

macro_rules! dense {
    ($module:ident, $float:ty) => {
        compiled!($module, $float, DenseRows<$float> {
            fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<R>>> {
                match algorithm.is_dirichlet_process() {
                    true => algorithm.dirichlet_process(),
                    false => algorithm.of_rows(),
                }
            }
            fn principal(
                data: DataOf<'_, R>,
                frame: &Frame<$float>,
                dim: usize,
                rng: &mut Rng,
            ) -> Option<(Subspace<$float>, Box<dyn Data<Rows = R> + Send>)> {
                let (subspace, sample) = Subspace::principal(data, frame, dim, rng);
                let sample = subspace.project(&*sample);
                Some((subspace, Box::new(sample)))
            }
            fn project(subspace: &Subspace<$float>, data: DataOf<'_, R>) -> Option<Box<dyn Data<Rows = R> + Send>> {
                Some(Box::new(subspace.project(data)))
            }
            fn outside(data: DataOf<'_, R>, frame: &Frame<$float>, centres: &Centres<$float>, near: usize) -> bool {
                em::outside(data, frame, centres, near)
            }
            fn kept_pass<'a>(set_up: SetUp<'a, R>, resumed: Option<&mut Sections<'_>>) -> PassOf<'a, R> {
                Ok(match resumed {
                    Some(file) => Box::new(Kept::resumed(set_up, file)?),
                    None => Box::new(Kept::new(set_up)),
                })
            }
        });
    };
}

macro_rules! sketch {
    ($module:ident, $float:ty) => {
        compiled!($module, $float, SketchRows<$float> {
            fn boxed(algorithm: &Algorithm) -> Result<Box<dyn Estimator<R>>> {
                algorithm.of_rows()
            }
            fn principal(
                _: DataOf<'_, R>,
                _: &Frame<$float>,
                _: usize,
                _: &mut Rng,
            ) -> Option<(Subspace<$float>, Box<dyn Data<Rows = R> + Send>)> {
                None
            }
            fn project(_: &Subspace<$float>, _: DataOf<'_, R>) -> Option<Box<dyn Data<Rows = R> + Send>> {
                None
            }
            fn outside(_: DataOf<'_, R>, _: &Frame<$float>, _: &Centres<$float>, _: usize) -> bool {
                true
            }
            fn kept_pass<'a>(set_up: SetUp<'a, R>, resumed: Option<&mut Sections<'_>>) -> PassOf<'a, R> {
                Ok(match resumed {
                    Some(file) => Box::new(Fresh::resumed(set_up, file)?),
                    None => Box::new(Fresh::new(set_up)),
                })
            }
        });
    };
}

dense!(dense_f32, f32);
dense!(dense_f64, f64);
sketch!(sketch_f32, f32);
sketch!(sketch_f64, f64);
