//! The table of iterations.

use coremix::prelude::Progress;
use coremix::{Float, Report};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Writes one line per search: while the fit runs, or for the best of several runs once it is known.
pub(crate) struct Iterations<'a> {
    out: &'a mut dyn Write,
    /// One table per run, if there are several.
    kept: Option<Vec<String>>,
    before: Option<f64>,
    /// What the closure of a fit cannot return.
    written: io::Result<()>,
}

impl<'a> Iterations<'a> {
    /// A table for one run, or for several.
    pub(crate) fn new(out: &'a mut dyn Write, several: bool) -> Self {
        Self {
            out,
            kept: several.then(Vec::new),
            before: None,
            written: Ok(()),
        }
    }

    /// Shows one step; stops the fit when nobody reads any more.
    pub(crate) fn see<F: Float>(&mut self, progress: &Progress<'_, F>) -> ControlFlow<()> {
        let line = match progress {
            // A restart may have several starts: they are in one table.
            Progress::Seeded { start: 0, .. } => {
                if let Some(tables) = &mut self.kept {
                    tables.push(String::new());
                }
                let titles = ["rows", "iteration", "free energy", "change", "evaluations"];
                row(titles, "elapsed / ms")
            }
            Progress::Iteration {
                rows,
                iteration,
                free_energy,
                evaluations,
                elapsed,
                ..
            } => {
                // Free energies compare on the same rows alone: in each phase there is a first one.
                let before = self.before.replace(*free_energy);
                let before = before.filter(|_| *iteration > 0);
                let change = before.map(|before| format!("{:+.3}", free_energy - before));
                let [rows, iteration] = [rows, iteration].map(usize::to_string);
                let evaluations = evaluations.to_string();
                let free_energy = format!("{free_energy:.3}");
                let change = change.unwrap_or_default();
                let elapsed = format!("{:.1}", elapsed.as_secs_f64() * 1e3);
                row(
                    [&rows, &iteration, &free_energy, &change, &evaluations],
                    &elapsed,
                )
            }
            _ => return ControlFlow::Continue(()),
        };
        match self.kept.as_mut().and_then(|tables| tables.last_mut()) {
            Some(table) => *table += &line,
            None => self.written = self.out.write_all(line.as_bytes()),
        }
        match self.written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Writes what is left to say, or returns what went wrong before.
    pub(crate) fn finish(&mut self, report: &Report) -> io::Result<()> {
        std::mem::replace(&mut self.written, Ok(()))?;
        let Some(tables) = &self.kept else {
            return Ok(());
        };
        for (restart, free_energy) in report.restarts.iter().enumerate() {
            let kept = if restart == report.restart {
                ", kept"
            } else {
                ""
            };
            writeln!(
                self.out,
                "  restart {restart}: free energy {free_energy:.3}{kept}"
            )?;
        }
        self.out.write_all(tables[report.restart].as_bytes())
    }
}

fn row([rows, iteration, free_energy, change, evaluations]: [&str; 5], elapsed: &str) -> String {
    format!(
        "{rows:>11}{iteration:>11}{free_energy:>20}{change:>18}{evaluations:>16}{elapsed:>14}\n"
    )
}
