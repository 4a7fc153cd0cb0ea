//! A bar for a fit, and one for rows that are read.

use crate::messages::{self, is_quiet, locked, note};
use coremix::{Float, Progress, Share};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// A bar on the terminal; nothing where there is none, or nobody wants it.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// How much of a stage is done that counts no rows.
    share: Arc<Mutex<Option<Share>>>,
    /// The last line that was printed where there is no terminal.
    line: Mutex<String>,
}

impl Bar {
    /// A bar for the iterations of a fit.
    pub(crate) fn of_fit() -> Self {
        let template = "{elapsed:>6} {spinner} {wide_msg} {pass}";
        Self::new(1, template, is_quiet())
    }

    /// Counts the rows of a pass over a file: each step of the fit begins a new one.
    pub(crate) fn of_passes(&self, rows: usize) -> ProgressBar {
        self.bar.set_length(rows as u64);
        self.bar.clone()
    }

    /// A bar for rows.
    pub(crate) fn of_rows(rows: usize) -> Self {
        let template = "{elapsed:>6} [{bar:24}] {human_pos} of {human_len} rows, {eta} left";
        let hidden = is_quiet() || messages::labels_are_shown();
        Self::new(rows, template, hidden)
    }

    fn new(rows: usize, template: &str, hidden: bool) -> Self {
        let bar = if hidden {
            ProgressBar::hidden()
        } else {
            // indicatif draws nothing where the standard error is no terminal.
            ProgressBar::new(rows as u64)
        };
        let share: Arc<Mutex<Option<Share>>> = Arc::default();
        let of_stage = Arc::clone(&share);
        // Nothing while no rows of files are read, as in steps on rows in memory.
        let pass = move |state: &ProgressState, text: &mut dyn Write| {
            if let Some(share) = &*locked(&of_stage) {
                write!(text, "{:.0} %", 100.0 * share.get()).ok();
            } else if state.pos() > 0 {
                let share = 100.0 * state.fraction();
                let left = state.eta().as_secs();
                write!(text, "{share:.0} % of a pass, {left} s left").ok();
            }
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("pass", pass));
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        messages::show(Some(bar.clone()));
        let line = Mutex::default();
        Self { bar, share, line }
    }

    /// Says what happens.
    pub(crate) fn say(&self, what: impl Into<String>) {
        *locked(&self.share) = None;
        self.bar.set_position(0);
        self.bar.set_message(what.into());
    }

    /// Rows that are done.
    pub(crate) fn at(&self, rows: usize) {
        self.bar.set_position(rows as u64);
    }

    /// Says what begins; where there is no terminal, in a line, but not again and again.
    fn begin(&self, what: &str) {
        let mut line = locked(&self.line);
        if self.bar.is_hidden() && !is_quiet() && *line != what {
            note(&format!("coremix: {what}"));
            what.clone_into(&mut line);
        }
    }

    /// Shows the progress of a fit.
    pub(crate) fn see<F: Float>(&self, progress: &Progress<'_, F>) {
        let prefix = |restart: &usize| match restart {
            0 => String::new(),
            restart => format!("restart {restart}, "),
        };
        match progress {
            Progress::Seeding {
                restart,
                rows,
                clusters,
                share,
                ..
            } => {
                let what = format!(
                    "{}choosing {clusters} of {rows} rows to begin with",
                    prefix(restart)
                );
                self.begin(&what);
                self.say(what);
                *locked(&self.share) = Some((*share).clone());
            }
            Progress::Iteration {
                restart,
                rows,
                iteration,
                limit,
                free_energy,
                ..
            } => {
                let phase = format!("{}fitting {rows} rows", prefix(restart));
                if *iteration == 0 {
                    self.begin(&phase);
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
        messages::show(None);
        self.bar.finish_and_clear();
    }
}
