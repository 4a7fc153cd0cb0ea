//! A bar for a fit, and one for rows that are read.

use coremix::{Float, Progress};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;

/// A bar on the terminal; nothing where there is none, or nobody wants it.
pub(crate) struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    /// Of the iterations of a fit.
    pub(crate) fn of_fit(quiet: bool) -> Self {
        Self::new(quiet, 1, "{elapsed:>6} {spinner} {wide_msg} {pass}")
    }

    /// Counts the rows of a pass over a file: each step of the fit begins a new one.
    pub(crate) fn of_passes(&self, rows: usize) -> ProgressBar {
        self.bar.set_length(rows as u64);
        self.bar.clone()
    }

    /// Of rows.
    pub(crate) fn of_rows(quiet: bool, rows: usize) -> Self {
        let template = "{elapsed:>6} [{bar:24}] {human_pos} of {human_len} rows, {eta} left";
        Self::new(quiet, rows, template)
    }

    fn new(quiet: bool, rows: usize, template: &str) -> Self {
        let bar = match quiet {
            true => ProgressBar::hidden(),
            // indicatif draws nothing where the standard error is no terminal.
            false => ProgressBar::new(rows as u64),
        };
        // Nothing while no rows of files are read, as in steps on rows in memory.
        let pass = |state: &ProgressState, text: &mut dyn Write| {
            if state.pos() > 0 {
                let (share, left) = (100.0 * state.fraction(), state.eta().as_secs());
                write!(text, "{share:.0} % of a pass, {left} s left").ok();
            }
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("pass", pass));
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        Self { bar, quiet }
    }

    /// Says what happens.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.bar.set_position(0);
        self.bar.set_message(what.into());
    }

    /// Rows that are done.
    pub(crate) fn at(&self, rows: usize) {
        self.bar.set_position(rows as u64);
    }

    /// Shows the progress of a fit.
    pub(crate) fn see<F: Float>(&self, progress: &Progress<'_, F>) {
        match progress {
            Progress::Coreset { rows, .. } => self.say(format!("{rows} rows to begin with")),
            Progress::Seeded { restart, .. } => self.say(format!("restart {restart}: seeds")),
            Progress::Iteration {
                restart,
                rows,
                iteration,
                limit,
                free_energy,
                ..
            } => {
                let restart = match restart {
                    0 => String::new(),
                    restart => format!("restart {restart}, "),
                };
                let phase = format!("{restart}fitting {rows} rows");
                // Where there is no terminal, a line for each phase.
                if *iteration == 0 && self.bar.is_hidden() && !self.quiet {
                    eprintln!("coremix: {phase}");
                }
                self.say(format!(
                    "{phase}: iteration {iteration} of {limit}, F {free_energy:.4e}"
                ));
            }
            _ => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
