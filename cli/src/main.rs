//! The command `coremix`: clusters the rows of files, and labels them.

mod arguments;
mod assign;
mod clusters;
mod completions;
mod explain;
mod failure;
mod fit;
mod found;
mod help;
mod info;
mod interrupt;
mod labels;
mod made;
mod messages;
mod outputs;
mod parameters;
mod progress;
mod rows;
mod score;

use arguments::{Arguments, Command};
use clap::FromArgMatches;
use failure::{Failure, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut command = help::command();
    let matches = command.get_matches_mut();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.format(&mut command).exit(),
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // One line, whatever a file's name is.
            let text = messages::seen(&failure.to_string().replace(['\n', '\r'], " "));
            let text = text.replace(coremix_files::ALLOW, ", or give --missing");
            let lists = "say which columns to read";
            let text = text.replace(
                lists,
                "say by --columns which one to read, or by --key what names the rows",
            );
            let category = ": -a table takes it, where --categories names it";
            let text = text.replace(coremix_files::AS_CATEGORY, category);
            eprintln!("coremix: {text}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(threads) = arguments.threads {
        let most = coremix_files::most_threads();
        if threads > most {
            return Err(Failure::arguments(format!(
                "--threads {threads}: this machine takes {most} at most"
            )));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let built = pool.build_global();
        built.map_err(|error| Failure::arguments(format!("--threads: {error}")))?;
    }
    if arguments.quiet {
        messages::be_quiet();
    }
    match &arguments.command {
        Command::Fit(fit) => fit::run(fit, &interrupt::flag()?),
        Command::Clusters(clusters) => clusters::run(clusters, &interrupt::flag()?),
        Command::Assign(assign) => assign::run(assign, &interrupt::flag()?),
        Command::Score(score) => score::run(score),
        Command::Explain(explain) => explain::run(explain),
        Command::Impute(impute) => made::impute(impute, &interrupt::flag()?),
        Command::Sample(sample) => made::sample(sample),
        Command::Info(info) => info::run(info),
        Command::Completions(completions) => completions::run(completions),
        Command::Help(help) => messages::say(&help::text(help)),
    }
}
