//! Messages on the terminal, around a bar, and the standard output.

use crate::failure::{Failure, Result};
use indicatif::ProgressBar;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether messages are printed, and where: set once, by the arguments.
static QUIET: AtomicBool = AtomicBool::new(false);
static OUTPUT_IS_TAKEN: AtomicBool = AtomicBool::new(false);
static OUTPUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// From now on nothing but results and errors is said.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing but results and errors is said.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// From now on the standard output is for labels alone: whatever else is said goes to the standard error.
pub(crate) fn leave_output_to_labels() {
    OUTPUT_IS_TAKEN.store(true, Ordering::Relaxed);
}

/// The standard output, for labels.
pub(crate) struct StandardOutput(BufWriter<io::Stdout>);

impl StandardOutput {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    /// Whether nobody reads it any more, as after `| head`.
    pub(crate) fn is_closed() -> bool {
        OUTPUT_IS_CLOSED.load(Ordering::Relaxed)
    }
}

/// The result, or nothing where nobody reads any more.
fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            OUTPUT_IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(otherwise)
        }
        result => result,
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// The bar that is shown.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on this bar is shown, or none.
pub(crate) fn show(bar: Option<ProgressBar>) {
    *locked(&SHOWN) = bar;
}

/// Prints something while no bar is on the line.
fn aside<T>(print: impl FnOnce() -> T) -> T {
    let shown = locked(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints what something is: its name, and as many lines as its words need.
pub(crate) fn item(name: &str, text: impl Display) -> Result<()> {
    /// Where the words begin, without the blank before each.
    const AT: usize = 15;
    say(&wrapped(&format!("{name:<AT$}"), AT, &text.to_string()))
}

/// Says on the standard error what may be wrong.
pub(crate) fn warn(what: &str) {
    if !is_quiet() {
        note(&wrapped("coremix: warning:", 2, what));
    }
}

/// Text as it is shown: names from files may hold signs that a terminal takes for commands.
pub(crate) fn seen(text: &str) -> String {
    let show = |sign: char| {
        if sign.is_control() && sign != '\n' {
            sign.escape_default().collect::<String>()
        } else {
            sign.into()
        }
    };
    text.chars().map(show).collect()
}

/// Prints a line on the standard error, on a line of its own.
pub(crate) fn note(line: &str) {
    let line = seen(line);
    aside(|| eprintln!("{line}"));
}

/// Words after the first ones, in lines of 80 signs: those after the first have blanks before them.
fn wrapped(first: &str, blanks: usize, text: &str) -> String {
    const WIDTH: usize = 80;
    let mut lines = String::new();
    let mut line = first.to_string();
    let mut begun = false;
    for word in text.split(' ') {
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{line}\n");
            line = " ".repeat(blanks);
        }
        line += " ";
        line += word;
        begun = true;
    }
    lines + &line
}

/// A number of six digits that count.
pub(crate) fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size @ 1e-3..1e9 => format!("{x:.0$}", (5 - size.log10().floor() as i32).max(0) as usize),
        _ => format!("{x:.5e}"),
    }
}

/// Prints a line, unless nobody reads it any more.
pub(crate) fn say(text: &str) -> Result<()> {
    if OUTPUT_IS_TAKEN.load(Ordering::Relaxed) {
        note(text);
        return Ok(());
    }
    let text = seen(text);
    let said = aside(|| writeln!(io::stdout().lock(), "{text}"));
    unless_closed(said, ()).map_err(|error| Failure::file(Path::new("standard output"), error))
}

/// Whether labels are seen on the terminal, where a bar would stand among them.
pub(crate) fn labels_are_shown() -> bool {
    OUTPUT_IS_TAKEN.load(Ordering::Relaxed) && io::stdout().is_terminal()
}
