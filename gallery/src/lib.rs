//! Code that the programs share.

use std::process::ExitCode;

/// Runs a program, and says in one line what was wrong.
pub fn run(program: impl FnOnce() -> Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match program() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
