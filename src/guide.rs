//! The chapters of `docs/guide`: their Rust is compiled and run by `cargo test --doc guide`.
//!
//! Two chapters need other members of the workspace, and are tested there: `bigger-than-memory` in `coremix-files`,
//! `bigger-than-one-machine` in `coremix-cluster`.

#[doc = include_str!("../docs/guide/src/ten-lines.md")]
struct TenLines;

#[doc = include_str!("../docs/guide/src/coming-from.md")]
struct ComingFrom;

#[doc = include_str!("../docs/guide/src/which-algorithm.md")]
struct WhichAlgorithm;

#[doc = include_str!("../docs/guide/src/how-many-clusters.md")]
struct HowManyClusters;

#[doc = include_str!("../docs/guide/src/kinds-of-rows.md")]
struct KindsOfRows;

#[doc = include_str!("../docs/guide/src/faq.md")]
struct QuestionsAndTroubles;

#[doc = include_str!("../docs/guide/src/how-large-a-coreset.md")]
struct HowLargeACoreset;

#[doc = include_str!("../docs/guide/src/free-energy.md")]
struct FreeEnergy;

#[doc = include_str!("../docs/guide/src/weights.md")]
struct Weights;

#[doc = include_str!("../docs/guide/src/reproducibility.md")]
struct Reproducibility;

#[doc = include_str!("../docs/guide/src/own-stage.md")]
struct OwnStage;

#[doc = include_str!("../docs/guide/src/own-family.md")]
struct OwnFamily;

#[doc = include_str!("../docs/guide/src/inside.md")]
struct Inside;
