//! Every public type can be sent to other threads and shared with them. The compiler checks the types that are named here; the
//! test checks that these are all of `tests/fixtures/public_api.txt`.

use coremix::coreset::{OnePass, Subset};
use coremix::data::{
    Basis, Blocks, Centres, Chosen, Frame, Linear, Moments, NpyFile, OnDisk, PerComponent,
    PerCoordinate, ReadAhead, Rows, Scales, SketchBuilder, Subspace, Summary, Transform,
    VectorFile, VectorFormat,
};
use coremix::datasets::{Birch, Hard, Labelled};
use coremix::e_step::PerShard;
use coremix::m_step::{
    DiagonalMixture, DirichletProcessMixture, IsotropicMixture, SharedIsotropicMixture,
};
use coremix::prelude::*;
use coremix::seed::Seeds;
use coremix::selection::{Candidate, Criteria, Criterion, Selection, Sweep};
use coremix::{
    Block, BoxedMixture, Evaluations, FileFault, Likelihood, LogJoint, ModelInfo, PhaseReport, Rng,
    Score, Shape, Timings,
};
use std::collections::BTreeSet;

fn is_both<T: Send + Sync + ?Sized>(names: &mut BTreeSet<String>) {
    // `path::Name<..>` without the path and the parameters.
    let path = std::any::type_name::<T>().split('<').next().unwrap();
    names.insert(path.rsplit("::").next().unwrap().to_string());
}

macro_rules! both {
    ($names:expr; $($type:ty),* $(,)?) => { $(is_both::<$type>($names);)* };
}

fn named() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    both!(&mut names;
        Algorithm, coremix::Family, Block<f32>, Cancel, Checkpoint, Subset, Full, Lightweight,
        OnePass<f32>, UniformCoreset, Basis, Transform, Blocks<NpyFile<f32>>, Centres<f32>,
        Chosen<'static>, Dense<'static, u8>, OnDisk, Frame<f64>, Linear<f32>, Moments,
        Moments<PerComponent>, NpyFile<u8>, Subspace<f32>, ReadAhead<NpyFile<f32>>, Scales<f32>,
        PerComponent, PerCoordinate, Sketch<f32>, SketchBuilder<f32>, Rows<f64>, Summary,
        VectorFormat, VectorFile<f32>, Labelled<f32>, Birch, Hard, PerShard<()>, Bounded, Exhaustive,
        Lazy, Start, Neighborhood, SimilaritySampling, Progress<'static, dyn Mixture<f64>>, PhaseRows,
        Evaluations, Timings, PhaseReport, Report, Rule, Stop, Error, FileFault, Builder<f32>, Clusterer<f32>,
        Columns, Shape, Phase<f32>, Fit<BoxedMixture<f64>>, Diagonal,
        DiagonalMixture<f32>, DirichletProcess, DirichletProcessMixture<f64>, Isotropic,
        IsotropicMixture<f32>, SharedIsotropic, SharedIsotropicMixture<f32>, Score, Likelihood,
        LogJoint, Rng, ModelInfo, Seeds<f32>, AfkMc2, Given<f32>, HierarchicalKMeansPlusPlus,
        KMeansPlusPlus, MeansOf<f32>, UniformSeeder, Candidate<f64>, Criteria, Criterion, Selection<f64>,
        Sweep, dyn Estimator<f64>, dyn Mixture<f64>,
    );
    names
}

#[test]
fn every_public_type_is_send_and_sync() {
    let list = include_str!("../fixtures/public_api.txt");
    let (mut listed, named) = (0, named());
    for line in list.lines() {
        let found = ["pub struct ", "pub enum "]
            .iter()
            .find_map(|kind| line.split(kind).nth(1));
        let Some(item) =
            found.filter(|_| !line.starts_with("struct ") && !line.starts_with("enum "))
        else {
            continue;
        };
        let name: String = item.chars().take_while(|c| c.is_alphanumeric()).collect();
        assert!(named.contains(&name), "{name} is not checked here");
        listed += 1;
    }
    assert!(listed > 60, "{listed}");
}
