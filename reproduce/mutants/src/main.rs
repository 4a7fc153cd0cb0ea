//! Weaves mutants into a copy of the crate, all at once, and tests them one by one: see ../run.
//!
//! A mutant is one operator or one method in place of another: `a + b` becomes `if mutant(17) { a - b } else { a + b }`. So the
//! crate is compiled once for all of them, and the tests run with one chosen by the environment.

mod trial;
mod weave;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["weave", tree, list, files @ ..] => weave::files(Path::new(tree), Path::new(list), files),
        ["try", list, found, every, programs @ ..] => {
            trial::all(Path::new(list), Path::new(found), every, programs)
        }
        _ => Err("mutants weave TREE LIST FILE.. | mutants try LIST FOUND EVERY PROGRAM..".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
