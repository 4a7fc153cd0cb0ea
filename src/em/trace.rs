//! Spans and events of a fit for `tracing`, with the feature of that name; without the feature there are none, at no cost.
//!
//! Spans: `fit`, and a `phase` for each phase of each restart. Events within them: `coreset`, `seeded`, `iteration`. All are
//! of the target `coremix`.

use super::{PhaseReport, Progress};
use crate::base::float::Float;

/// This thread is in a span until this is dropped.
#[must_use]
pub(crate) struct Entered {
    #[cfg(feature = "tracing")]
    _span: tracing::span::EnteredSpan,
}

macro_rules! enter {
    ($name:literal, $($field:ident),*) => {{
        let _ = ($($field),*);
        Entered {
            #[cfg(feature = "tracing")]
            _span: tracing::info_span!(target: "coremix", $name, $($field),*).entered(),
        }
    }};
}

macro_rules! event {
    ($level:ident, $name:literal, $($field:ident),*; $elapsed:expr) => {
        #[cfg(feature = "tracing")]
        {
            let milliseconds = 1e3 * $elapsed.as_secs_f64();
            tracing::event!(target: "coremix", tracing::Level::$level, $($field,)* milliseconds, $name);
        }
        let _ = ($($field,)* $elapsed);
    };
}

pub(crate) fn fit(rows: usize, columns: usize, clusters: usize, seed: u64) -> Entered {
    enter!("fit", rows, columns, clusters, seed)
}

pub(crate) fn phase(report: &PhaseReport) -> Entered {
    let [restart, phase, rows, columns] =
        [report.restart, report.phase, report.rows, report.columns];
    enter!("phase", restart, phase, rows, columns)
}

/// The current span, for work on other threads.
pub(crate) struct Place {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

pub(crate) fn here() -> Place {
    Place {
        #[cfg(feature = "tracing")]
        span: tracing::Span::current(),
    }
}

impl Place {
    pub(crate) fn enter(&self) -> Entered {
        Entered {
            #[cfg(feature = "tracing")]
            _span: self.span.clone().entered(),
        }
    }
}

pub(crate) fn iteration(report: &PhaseReport) {
    let iteration = report.iterations;
    let evaluations = report.evaluations;
    let free_energy = report.free_energies[iteration];
    event!(DEBUG, "iteration", iteration, free_energy, evaluations; report.elapsed);
}

pub(crate) fn before<F: Float>(progress: &Progress<'_, F>) {
    match *progress {
        Progress::Coreset {
            rows,
            weight,
            elapsed,
            ..
        } => {
            event!(INFO, "coreset", rows, weight; elapsed);
        }
        Progress::Seeded {
            restart,
            start,
            elapsed,
            ..
        } => {
            event!(INFO, "seeded", restart, start; elapsed);
        }
        Progress::Seeding { .. } | Progress::Iteration { .. } => {}
    }
}
