//! Quick.
#![allow(dead_code)]
mod algorithm;
mod common;
mod factors;
mod golden;
mod laws;
mod missing;
mod prior;
mod saving;
mod sparse;
mod standardised;
mod table;
