//! The commands and options after `coremix`.

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use coremix::Algorithm;
use coremix_files::Bytes;
use std::path::PathBuf;
use std::str::FromStr;

/// Clusters the rows of files, larger than memory if need be, and labels them.
#[derive(Debug, Parser)]
#[command(
    name = "coremix",
    version,
    max_term_width = 80,
    arg_required_else_help = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
#[command(after_help = "\
Examples:
  coremix clusters points.csv --key id --to 20
  coremix fit points.csv --key id -k 8 --model points.cmx --labels labels.csv
  coremix fit points.csv --key id -k 8 --labels - | sort -t, -k2
  coremix assign points.cmx more.csv --key id --labels more-labels.csv
  coremix score points.cmx more.csv
  coremix info points.cmx

Exit codes: 0 done, 1 failed, 2 wrong arguments, 130 interrupted.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Threads to compute with; results are the same on any number [default: one per processor]
    #[arg(long, global = true, value_name = "N", display_order = 100)]
    pub(crate) threads: Option<usize>,
    /// No progress bar, no report and no warnings: errors alone
    #[arg(long, short, global = true, display_order = 101)]
    pub(crate) quiet: bool,
    /// Print help
    #[arg(long, short, global = true, display_order = 102, action = ArgAction::HelpShort)]
    pub(crate) help: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fit a model to the rows of files, and save it
    Fit(Fit),
    /// Print how well models with different numbers of clusters fit rows
    #[command(after_help = CLUSTERS_HELP)]
    Clusters(Clusters),
    /// Write the cluster of every row
    #[command(alias = "predict")]
    Assign(Assign),
    /// Print how well a model fits rows
    Score(Score),
    /// Print which columns set each cluster of a model apart
    Explain(Explain),
    /// Write rows with what is missing filled in
    Impute(Impute),
    /// Draw rows from a model
    Sample(Sample),
    /// Print what a model is, in place of rows, or which rows a file has
    Info(Info),
    /// Print completions for a shell, or with 'man' the page of the manual
    Completions(Completions),
    /// Print the help of a command or a subject
    Help(Help),
}

#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// bash, elvish, fish, powershell or zsh; or man
    #[arg(value_name = "SHELL")]
    pub(crate) shell: String,
}

const CLUSTERS_HELP: &str = "\
'coremix help criteria' says how to read the table. Then fit the number that you choose, with the same options: \
coremix fit ... -a gmm -k K --model FILE";

/// Which rows, and which columns of them.
#[derive(Args, Clone, Debug)]
pub(crate) struct Input {
    /// Files of rows, a folder of them, or a 'pattern*'; - for standard input
    #[arg(required = true, value_name = "ROWS")]
    pub(crate) rows: Vec<PathBuf>,
    /// The format, where the name of the file does not say it: its usual ending, such as parquet
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Columns with the numbers, by name, or one column of lists [default: all of numbers but --key and --weights; for a model, those of its fit]. A name with a comma stands in quotes: 'x,"y, m"'
    #[arg(long, value_name = "NAME,..")]
    pub(crate) columns: Vec<Names>,
    /// The column with the weights of the rows
    #[arg(long, value_name = "NAME")]
    pub(crate) weights: Option<String>,
    /// Columns that name the rows: no model sees them, and files of labels repeat them
    #[arg(long, value_name = "NAME,..")]
    pub(crate) key: Vec<Names>,
    /// Numbers to compute with, where columns would need f64 to be exact
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) float: Option<Number>,
    /// The separator of the fields of CSV files; '\t' is a tab, ' ' any number of blanks [default: a comma, a semicolon with
    /// --decimal ',', or a tab for .tsv]
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    pub(crate) delimiter: Option<char>,
    /// The decimal sign of CSV files [default: a point]
    #[arg(long, value_name = "SIGN")]
    pub(crate) decimal: Option<char>,
    /// The separator of thousands in numbers of CSV files [default: none]
    #[arg(long, value_name = "SIGN")]
    pub(crate) thousands: Option<char>,
    /// Lines of CSV files that begin with this are left out
    #[arg(long, value_name = "SIGN")]
    pub(crate) comment: Option<char>,
    /// The encoding of CSV files, such as windows-1252, latin1 or utf-16 [default: UTF-8, or UTF-16 with its mark]
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<String>,
    /// The first line of CSV files names the columns [default: unless all of it are numbers like those below]
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// The first line of CSV files is a row: columns are column_1, column_2 and so on
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Leave out rows with a missing value: a null, NaN, an empty field, NA; they have no labels
    #[arg(long, conflicts_with = "missing")]
    pub(crate) drop_missing: bool,
    /// Take rows with missing values, by what is known of them: nulls, NaN, empty fields, NA and the like; and, in text files, these
    /// texts, such as --missing=-,-999. A model that was fitted so takes them without it
    #[arg(long, value_name = "TEXT,..")]
    pub(crate) missing: Option<Option<Names>>,
    /// The folder for temporary files, of what cannot be read at any place, such as .csv.gz and standard input
    #[arg(long, value_name = "FOLDER")]
    pub(crate) spool: Option<PathBuf>,
}

/// Names in a list with commas, as a line of a CSV file has them.
#[derive(Clone, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = vec![String::new()];
        let mut quoted = false;
        let mut signs = text.chars().peekable();
        while let Some(sign) = signs.next() {
            let name = names.last_mut().ok_or("no name")?;
            match sign {
                '"' if quoted && signs.next_if_eq(&'"').is_some() => name.push('"'),
                '"' if quoted || name.is_empty() => quoted = !quoted,
                ',' if !quoted => names.push(String::new()),
                sign => name.push(sign),
            }
        }
        if quoted {
            Err("a quote is not closed".into())
        } else {
            Ok(Self(names))
        }
    }
}

/// A sign, or `\t` for a tab.
fn sign(text: &str) -> Result<char, String> {
    let sign = if text == r"\t" { "\t" } else { text };
    sign.parse()
        .map_err(|_| "must be one sign, or '\\t' for a tab".into())
}

/// A finite number that is at least 0. The error is printed with the name of the option.
fn not_negative(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "must be a finite number, 0 or more".into())
}

/// A part of all.
fn part(text: &str) -> Result<f64, String> {
    let number = not_negative(text).ok().filter(|number| *number < 1.0);
    number.ok_or_else(|| "must be a number, at least 0 and below 1".into())
}

/// A whole number that is at least 1.
fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "must be a whole number, 1 or more".into())
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse();
    number.map_err(|_| "must be a whole number, 0 or more".into())
}

/// A whole number of 64 bits.
fn seed(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| "must be a whole number, 0 to 2^64 - 1".into())
}

/// A number type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Number {
    /// 4 bytes; values are rounded
    F32,
    /// 8 bytes
    F64,
}

/// How rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Metric {
    Euclidean,
    Cosine,
}

/// Options of each fit, by `fit` or by `clusters`.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Draws of the coreset [default: that of the algorithm; for clusters, all rows]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) coreset: Option<usize>,
    /// Fits from different seeds, of which the best is kept [default: 1; of table 8]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) restarts: Option<usize>,
    /// For table: columns that are counts, 0, 1, 2 and so on
    #[arg(long, value_name = "NAME,..")]
    pub(crate) counts: Vec<Names>,
    /// For table: columns that are categories: text, or whole numbers from 0 on
    #[arg(long, value_name = "NAME,..")]
    pub(crate) categories: Vec<Names>,
    /// Fit to columns of deviation 1, for columns of different units. The model is for rows as they are
    #[arg(long)]
    pub(crate) standardise: bool,
    /// How rows are compared: by distance, or by cosine, where rows and centres have length 1
    #[arg(long, value_enum, default_value = "euclidean", value_name = "NAME")]
    pub(crate) metric: Metric,
    /// Covariances of the components [default: diagonal for gmm and sparsified-gmm, otherwise tied-spherical]. With table, of its
    /// numbers together [default: each has a variance of its own]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) covariance: Option<Covariance>,
    /// Covariances of this many factors and a variance for each column: factor analysers, for many columns
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "covariance")]
    pub(crate) factors: Option<usize>,
    /// Rows that each covariance has in advance, so that none collapses on few rows: 1 is enough
    #[arg(long, value_name = "X", value_parser = not_negative)]
    pub(crate) prior_rows: Option<f64>,
    /// The variance of these rows in each column [default: that of the column, divided among the components]
    #[arg(long, value_name = "X", value_parser = not_negative, requires = "prior_rows")]
    pub(crate) prior_variance: Option<f64>,
    /// Rows that each component has in advance in its mixing proportion [default: 0, and components without rows are discarded]
    #[arg(long, value_name = "X", value_parser = not_negative)]
    pub(crate) prior_proportions: Option<f64>,
    /// A variance that each column of every cluster has in addition, as reg_covar of scikit-learn
    #[arg(long, value_name = "X", value_parser = not_negative)]
    pub(crate) ridge: Option<f64>,
    /// Seed of all random numbers: the same seed gives the same model
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = seed)]
    pub(crate) seed: u64,
    /// Memory that a fit may take: rows that fit are loaded; otherwise fast works on coresets and streams all rows, and
    /// others refuse if they need more
    #[arg(long, default_value = "2GiB", value_name = "SIZE")]
    pub(crate) memory: Bytes,
}

#[derive(Args, Debug)]
#[command(
    allow_negative_numbers = true,
    override_usage = "coremix fit [OPTIONS] -k <K> <-m FILE|-l FILE|--report FILE> <ROWS>..."
)]
#[command(group = clap::ArgGroup::new("results").args(["model", "labels", "report"]).required(true).multiple(true))]
pub(crate) struct Fit {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The algorithm, by its name
    #[arg(
        long,
        short,
        default_value = "fast",
        value_name = "NAME",
        hide_possible_values = true
    )]
    #[arg(value_parser = PossibleValuesParser::new(Algorithm::NAMES))]
    pub(crate) algorithm: String,
    /// The number of clusters; for dp-gmm, the most
    #[arg(long, short = 'k', value_name = "K", value_parser = positive)]
    pub(crate) clusters: usize,
    /// Where to save the model
    #[arg(long, short, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Where to write the cluster of every row: .csv, .csv.gz, .parquet or .arrow, with the --key columns, or .npy; - for the standard output; with --model 'labels/*.csv' for a file per file of rows
    #[arg(long, short, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Where to write what the fit did and cost, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// How small an improvement ends a fit: for k-means, about the relative change of the error [default: that of the
    /// algorithm]
    #[arg(long, value_name = "X", value_parser = not_negative)]
    pub(crate) tolerance: Option<f64>,
    /// The most iterations [default: that of the algorithm]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) max_iterations: Option<usize>,
    /// Components that share a row, C', for the truncated algorithms
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) c_prime: Option<usize>,
    /// Neighbors of a component, G, for the truncated algorithms
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) neighbors: Option<usize>,
    /// Coordinates that the fit keeps of each row, mixed of all columns by the seed: a sketch, for many columns. The files are
    /// read once, and once more for --labels [default: all columns]
    #[arg(long, value_name = "Q", value_parser = positive)]
    #[arg(conflicts_with_all = ["missing", "standardise", "factors", "counts", "categories"])]
    pub(crate) coordinates: Option<usize>,
    /// Concentration of dp-gmm
    #[arg(long, value_name = "X")]
    pub(crate) concentration: Option<f64>,
    /// Print also what each stage cost, and the free energy
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Seconds between checkpoints; 0 writes none
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = not_negative)]
    pub(crate) checkpoint_every: f64,
    #[command(flatten)]
    pub(crate) over: Over,
}

/// The option to write over files.
#[derive(Args, Clone, Debug)]
pub(crate) struct Over {
    /// Write over files that are no older results of this command
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Clusters {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The algorithm, by its name
    #[arg(
        long,
        short,
        default_value = "gmm",
        value_name = "NAME",
        hide_possible_values = true
    )]
    #[arg(value_parser = PossibleValuesParser::new(Algorithm::NAMES))]
    pub(crate) algorithm: String,
    /// The fewest clusters
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = positive)]
    pub(crate) from: usize,
    /// The most clusters
    #[arg(long, value_name = "K", value_parser = positive)]
    pub(crate) to: usize,
    /// How far apart the numbers of clusters are
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = positive)]
    pub(crate) step: usize,
    /// The part of the rows that no model is fitted to; 0 for none
    #[arg(long, default_value_t = 0.1, value_name = "PART", value_parser = part)]
    pub(crate) held_out: f64,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Also fit a Dirichlet process of --to components, which merges those that are not needed
    #[arg(long)]
    pub(crate) dirichlet_process: bool,
}

/// Variances and covariances of the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Covariance {
    /// One for all
    TiedSpherical,
    /// One each
    Spherical,
    /// One for each and each column
    Diagonal,
    /// All pairs of columns, one matrix for all
    Tied,
    /// All pairs of columns, one matrix each
    Full,
}

impl Covariance {
    pub(crate) fn of_crate(self) -> coremix::families::Covariance {
        use coremix::families::Covariance;
        match self {
            Self::TiedSpherical => Covariance::TiedSpherical,
            Self::Spherical => Covariance::Spherical,
            Self::Diagonal => Covariance::Diagonal,
            Self::Tied => Covariance::Tied,
            Self::Full => Covariance::Full,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Assign {
    /// The model
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Where to write the cluster of every row: .csv, .csv.gz, .parquet or .arrow, with the --key columns, or .npy; - for the standard output; 'labels/*.csv' for a file per file of rows
    #[arg(long, short, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// Write the M likeliest clusters of every row, best first, and how they share it (not to .npy)
    #[arg(long, value_name = "M", value_parser = positive)]
    pub(crate) top: Option<usize>,
    /// Write the log density of every row as well (not to .npy)
    #[arg(long)]
    pub(crate) densities: bool,
    #[command(flatten)]
    pub(crate) over: Over,
}

#[derive(Args, Debug)]
pub(crate) struct Score {
    /// The model
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The model
    pub(crate) model: PathBuf,
    /// The number of columns of each cluster
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = positive)]
    pub(crate) top: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Impute {
    /// The model
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Where to write the rows, with the --key columns: .csv, .csv.gz, .parquet or .arrow; - for the standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) over: Over,
}

#[derive(Args, Debug)]
pub(crate) struct Sample {
    /// The model
    pub(crate) model: PathBuf,
    /// The number of rows
    #[arg(long, short = 'n', value_name = "N", value_parser = positive)]
    pub(crate) number: usize,
    /// Seed of all random numbers: the same seed gives the same rows
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = seed)]
    pub(crate) seed: u64,
    /// Where to write the rows and their clusters: .csv, .csv.gz, .parquet or .arrow; - for the standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) over: Over,
}

#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write the parameters of the model for NumPy: means, variances, proportions, and what else its family has
    #[arg(long, value_name = "FILE.npz")]
    pub(crate) parameters: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) over: Over,
}

#[derive(Args, Debug)]
pub(crate) struct Help {
    /// A command or a subject
    #[arg(value_name = "COMMAND|SUBJECT", hide_possible_values = true)]
    pub(crate) name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_with_commas_stand_in_quotes() {
        for (text, names) in [
            ("x,y", &["x", "y"][..]),
            (r#"x,"y, m",z"#, &["x", "y, m", "z"]),
            (r#""a ""b"" c""#, &[r#"a "b" c"#]),
            (r#"5" pipe,z"#, &[r#"5" pipe"#, "z"]),
            ("", &[""]),
        ] {
            assert_eq!(text.parse::<Names>().unwrap().0, names);
        }
        assert!("\"x,y".parse::<Names>().is_err());
    }
}
