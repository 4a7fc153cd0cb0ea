//! All integration tests, as one program: the crate and what it uses are linked once. A file is a module here, and its
//! name is the first part of the names of its tests: `cargo test --release --test all laws::` runs one file.
//!
//! A new file `tests/all/NAME.rs` joins by a line `mod NAME;` below and says `use crate::common::..` for what is shared.
//! Cases that proptest found once lie where it looks for them: `tests/proptest-regressions/NAME.txt`.

#[allow(dead_code)]
mod base;
mod common;
/// Kinds of rows that are hard to cluster.
#[path = "../../reproduce/src/hard.rs"]
#[allow(unreachable_pub)]
mod hard;
/// The naive assignment problem.
#[path = "../../src/metrics/least_cost.rs"]
mod least_cost;
/// Data and a family that lie: the targets of `fuzz` have them as well.
#[path = "../../fuzz/src/liars/data.rs"]
#[allow(dead_code)]
mod lying_data;
#[path = "../../fuzz/src/liars/family.rs"]
mod lying_family;
/// The family of the guide.
#[path = "../../examples/own_family_poisson.rs"]
#[allow(dead_code)]
mod poisson;

mod abilities;
mod algorithm;
mod blocks;
mod bounded;
mod cancel;
mod checkpoints;
mod chosen;
mod conditional;
mod contract;
mod coresets;
mod costs;
mod datasets;
mod directions;
mod dirichlet_process;
mod dirichlet_scales;
mod equations;
mod every_kind;
mod factors;
mod families;
mod family_scales;
mod fast;
mod floors;
mod frame;
mod golden;
mod halves;
mod hostile;
mod laws;
mod linalg;
mod low_rank;
mod means_of;
mod metrics;
mod missing;
mod observed;
mod one_pass;
mod other_stages;
mod own_families;
mod own_stages;
mod phases;
mod pools;
mod predictor;
mod prior;
mod processes;
mod product;
mod public_api;
mod quality;
mod reference;
mod restarts;
mod ridge;
mod saving;
mod scoring;
mod selection;
mod sketch;
mod slices;
mod sparse;
mod stages;
mod standardised;
mod table;
mod vacant;
mod warm_start;
