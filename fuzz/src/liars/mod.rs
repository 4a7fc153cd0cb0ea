//! Stages and data from outside that break their rules, or keep them: one type of each kind. `tests/all/stages.rs` has `data` and
//! `family` as well, with lies that it chooses.

mod coreset;
/// Some of its lies are told by the tests of the core alone.
#[allow(dead_code)]
mod data;
mod drawn;
mod family;
mod search;
mod seeder;

pub(crate) use coreset::LyingCoreset;
pub(crate) use data::LyingData;
pub(crate) use family::LyingFamily;
pub(crate) use search::LyingSearch;
pub(crate) use seeder::LyingSeeder;

use crate::bytes::Bytes;

/// Numbers that a liar puts where a sound one should be.
fn wrong(bytes: &mut Bytes<'_>) -> f64 {
    bytes.choose(&[
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -1.0,
        1e300,
        -1e300,
        5e-324,
    ])
}
