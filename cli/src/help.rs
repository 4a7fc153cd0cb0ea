//! Help: a screen of each command with the options that are used most, and the others by subject.

use crate::arguments::{Arguments, Help};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};

const COMMANDS: [&str; 10] = [
    "fit",
    "clusters",
    "assign",
    "score",
    "explain",
    "impute",
    "sample",
    "info",
    "completions",
    "help",
];

/// Options that belong together, and what is to be known of them.
struct Subject {
    name: &'static str,
    about: &'static str,
    /// Identities of options, which no screen shows.
    options: &'static [&'static str],
    text: &'static str,
}

const SUBJECTS: [Subject; 8] = [
    Subject {
        name: "files",
        about: "Formats, weights and number types; results over older files",
        options: &["format", "weights", "float", "spool", "force"],
        text: "\
Rows come from .csv .csv.gz .tsv .parquet .arrow .npy .fvecs .bvecs .fbin and .u8bin, sparse rows from .npz and \
.svmlight. Several files, a folder or a 'pattern*' are read one after the other.

A model, labels or a report are written over older ones of their kind. Any other file needs --force, and \
files that are read are never written over.",
    },
    Subject {
        name: "csv",
        about: "Separators, headers and encodings of CSV files",
        options: &[
            "delimiter",
            "decimal",
            "thousands",
            "comment",
            "encoding",
            "header",
            "no_header",
        ],
        text: "",
    },
    Subject {
        name: "missing",
        about: "Rows with missing values",
        options: &["drop_missing", "missing"],
        text: "\
Without one of these options a missing value is an error that names the line. 'coremix info' counts them.",
    },
    Subject {
        name: "algorithms",
        about: "Which algorithm; coresets, restarts and settings of algorithms",
        options: &[
            "coreset",
            "restarts",
            "metric",
            "c_prime",
            "neighbors",
            "coordinates",
            "concentration",
        ],
        text: "\
Which algorithm?
  fast             k-means for large data: start here; beyond --memory, too
  k-means, gmm     exact k-means, EM: all rows against all clusters
  vc-gmm           truncated EM on a coreset: many clusters, little memory
  var-gmm-s, d-gmm truncated EM on all rows
  lwcs-k-means     k-means on a coreset
  dp-gmm           a Dirichlet process: merges clusters that are not needed
  table            columns of different kinds: see 'coremix help tables'
  others           see the documentation of the crate",
    },
    Subject {
        name: "covariances",
        about: "Variances and covariances of clusters, and what keeps them from 0",
        options: &[
            "covariance",
            "factors",
            "prior_rows",
            "prior_variance",
            "prior_proportions",
            "ridge",
        ],
        text: "\
fast has one variance for all columns: give --standardise, if their units differ. With '-a gmm' each cluster \
has a variance for each column, with '--covariance full' a matrix.",
    },
    Subject {
        name: "tables",
        about: "Columns that are counts or categories",
        options: &["counts", "categories"],
        text: "\
These are for '-a table'. Its other columns are numbers: each has a variance of its own, or, with --covariance, \
all have one family together.",
    },
    Subject {
        name: "limits",
        about: "Memory, iterations, and fits that are interrupted",
        options: &["memory", "tolerance", "max_iterations", "checkpoint_every"],
        text: "\
A fit that is interrupted goes on where it was, if the same command is run again: once it has chosen \
where to begin, its state is saved every minute next to the model, in MODEL.checkpoint, and removed at the \
end. The result is the same as without the interruption.",
    },
    Subject {
        name: "criteria",
        about: "BIC, AIC, ICL and held-out rows, which clusters prints",
        options: &[],
        text: "\
A star marks the best number by each criterion. BIC, AIC and ICL: lower is better. BIC is for densities, and \
ICL for clusters: components that overlap count as one more often. For k-means and fast, use ICL. Held-out is \
the mean log-likelihood of rows that no model was fitted to: higher is better. Its star is the fewest clusters \
within one standard error of the best.

For columns in different units give --standardise: otherwise the widest one decides where fits begin and, with \
one variance for all columns, how they end.",
    },
];

impl Subject {
    fn has(&self, option: &Arg) -> bool {
        self.options.contains(&option.get_id().as_str())
    }

    fn is_of(&self, command: &Command) -> bool {
        command.get_arguments().any(|option| self.has(option))
    }

    /// Its options, below the commands that have them, and its text.
    fn page(&self, commands: &Command) -> String {
        let mut groups: Vec<(String, Vec<Arg>)> = Vec::new();
        for identity in self.options {
            let having = commands.get_subcommands().filter_map(|command| {
                let mut options = command.get_arguments();
                let option = options.find(|option| option.get_id() == identity)?;
                Some((command.get_name(), option))
            });
            let (names, options): (Vec<_>, Vec<_>) = having.unzip();
            let shown = options.first().map(|&option| {
                let option = option.clone().hide_short_help(false);
                option.hide_long_help(false)
            });
            let title = format!("Options of {}:", listed(&names));
            match groups.iter_mut().find(|group| group.0 == title) {
                Some((_, group)) => group.extend(shown),
                None => groups.push((title, shown.into_iter().collect())),
            }
        }
        let part = |template: String, options: Vec<Arg>| {
            let part = Command::new(self.name).about(self.about);
            let part = part.after_help(self.text).disable_help_flag(true);
            let part = part.max_term_width(80).help_template(template);
            let text = part.args(options).render_long_help().to_string();
            text.trim_end().to_owned()
        };
        let mut parts = vec![part("{about}".into(), Vec::new())];
        let groups = groups.into_iter();
        parts.extend(groups.map(|(title, options)| part(title + "\n{options}", options)));
        if !self.text.is_empty() {
            let text = part("{after-help}".into(), Vec::new());
            parts.push(text.trim_start().to_owned());
        }
        parts.join("\n\n")
    }
}

/// The names for which there is help.
fn names() -> PossibleValuesParser {
    let subjects = SUBJECTS.iter().map(|subject| subject.name);
    PossibleValuesParser::new(COMMANDS.into_iter().chain(subjects))
}

/// Names as a sentence has them.
fn listed(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// Subjects with a line for each.
fn table<'a>(title: &str, subjects: impl Iterator<Item = &'a Subject>) -> String {
    let lines = subjects.map(|Subject { name, about, .. }| format!("\n  {name:<13}{about}"));
    title.to_owned() + &lines.collect::<String>()
}

/// The commands with their options, of which screens show those without a subject.
pub(crate) fn command() -> Command {
    let commands = Arguments::command();
    let examples = commands.get_after_help().map(ToString::to_string);
    let title = "Subjects, by 'coremix help SUBJECT':";
    let subjects = table(title, SUBJECTS.iter()) + "\n\n" + &examples.unwrap_or_default();
    commands
        .after_help(subjects)
        .mut_subcommand("help", |help| {
            help.mut_arg("name", |name| name.value_parser(names()))
        })
        .mut_subcommands(screen)
}

/// A command whose help leaves options of subjects to these.
fn screen(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let subjects = SUBJECTS.iter().filter(|subject| subject.is_of(&command));
    let more = table("More options, by 'coremix help SUBJECT':", subjects);
    let texts = [Some(more).filter(|more| more.contains('\n')), text];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    let command = command.after_help(texts.join("\n\n"));
    command.mut_args(|option| {
        let hidden = SUBJECTS.iter().any(|subject| subject.has(&option));
        option.hide_short_help(hidden).hide_long_help(hidden)
    })
}

/// The screen of all commands, that of one, or a subject.
pub(crate) fn text(help: &Help) -> String {
    let mut commands = command();
    commands.build();
    let name = help.name.as_deref().unwrap_or_default();
    let subject = SUBJECTS.iter().find(|subject| subject.name == name);
    let text = if let Some(subject) = subject {
        subject.page(&commands)
    } else if let Some(command) = commands.find_subcommand_mut(name) {
        command.render_help().to_string()
    } else {
        commands.render_help().to_string()
    };
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, SUBJECTS, command};
    use clap::Command;

    /// How often the help of a command shows an option.
    fn count(help: &str, option: &str) -> usize {
        // Descriptions stand further to the right.
        let is_it = |line: &&str| {
            let mut words = line.split_whitespace();
            (2..8).contains(&(line.len() - line.trim_start().len()))
                && words.find(|word| word.starts_with("--")) == Some(option)
        };
        help.lines().filter(is_it).count()
    }

    fn screen(command: &Command) -> String {
        command.clone().render_help().to_string()
    }

    #[test]
    fn arguments_are_sound() {
        command().debug_assert();
    }

    /// The parts of a page that are of a command.
    fn page_of(page: &str, command: &str) -> String {
        let parts = page.split("Options of ").skip(1);
        let words = |part: &str| {
            let title = part
                .lines()
                .next()
                .unwrap_or_default()
                .replace([',', ':'], "");
            title.split(' ').any(|name| name == command)
        };
        parts.filter(|part| words(part)).collect()
    }

    #[test]
    fn each_option_is_on_the_screen_or_in_one_subject() {
        let mut root = command();
        root.build();
        assert!(root.get_subcommands().map(Command::get_name).eq(COMMANDS));
        let pages = SUBJECTS.map(|subject| subject.page(&root));
        for command in root.get_subcommands() {
            let name = command.get_name();
            let help = screen(command);
            for option in command
                .get_arguments()
                .filter_map(|option| option.get_long())
            {
                let option = format!("--{option}");
                let of_pages = pages
                    .iter()
                    .map(|page| count(&page_of(page, name), &option));
                let times = count(&help, &option) + of_pages.sum::<usize>();
                assert_eq!(times, 1, "{name} {option}");
            }
        }
        for subject in SUBJECTS {
            for option in subject.options {
                let has =
                    |command: &Command| command.get_arguments().any(|arg| arg.get_id() == option);
                assert!(root.get_subcommands().any(has), "{option}");
            }
        }
    }
}
