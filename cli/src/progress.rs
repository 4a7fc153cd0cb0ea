//! A bar for a fit, and one for rows that are read.

use coremix::{Float, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on the terminal; nothing where there is none, or nobody wants it.
pub(crate) struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    /// Of the iterations of a fit.
    pub(crate) fn of_fit(quiet: bool) -> Self {
        Self::new(quiet, "{elapsed:>6} {spinner} {msg}")
    }

    /// Of rows.
    pub(crate) fn of_rows(quiet: bool, rows: usize) -> Self {
        let bar = Self::new(
            quiet,
            "{elapsed:>6} [{bar:24}] {human_pos} of {human_len} rows, {eta} left",
        );
        bar.bar.set_length(rows as u64);
        bar
    }

    fn new(quiet: bool, template: &str) -> Self {
        let bar = match quiet {
            true => ProgressBar::hidden(),
            // indicatif draws nothing where the standard error is no terminal.
            false => ProgressBar::new(1),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        Self { bar, quiet }
    }

    /// Says what happens.
    pub(crate) fn say(&self, what: impl Into<String>) {
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
                phase,
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
                let phase = format!("{restart}phase {phase}, {rows} rows");
                // Where there is no terminal, a line for each phase.
                if *iteration == 0 && self.bar.is_hidden() && !self.quiet {
                    eprintln!("coremix: {phase}");
                }
                self.say(format!(
                    "{phase}: iteration {iteration}, at most {limit}; F = {free_energy:.5e}"
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
