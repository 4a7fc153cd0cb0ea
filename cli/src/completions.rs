//! `coremix completions`

use crate::arguments::Completions;
use crate::failure::{Failure, Result};
use crate::help;
use crate::messages::say;
use clap::ValueEnum;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use std::path::Path;

pub(crate) fn run(completions: &Completions) -> Result<()> {
    let mut text = Vec::new();
    let name = &*completions.shell;
    if name == "man" {
        let written = Man::new(help::command()).render(&mut text);
        written.map_err(|error| Failure::file(Path::new("standard output"), error))?;
    } else {
        let shell = Shell::from_str(name, true).map_err(|_| {
            Failure::arguments(format!(
                "{name}: choose from bash, elvish, fish, powershell, zsh and man"
            ))
        })?;
        generate(shell, &mut help::command(), "coremix", &mut text);
    }
    say(String::from_utf8_lossy(&text).trim_end())
}
