//! What a fit tells `tracing`, with the feature of that name; without it, nothing, at no cost.
//!
//! Spans: `fit`, and a `phase` for each phase of each restart. Events within them: `coreset`, `seeded`, `iteration`. All are
//! of the target `coremix`.

#[cfg(feature = "tracing")]
mod with {
    use crate::base::float::Float;
    use crate::em::{PhaseReport, Progress};
    use std::time::Duration;
    use tracing::span::EnteredSpan;
    use tracing::{Level, Span, event, span};

    fn milliseconds(time: Duration) -> f64 {
        1e3 * time.as_secs_f64()
    }

    pub(crate) type Entered = EnteredSpan;

    /// A fit begins.
    pub(crate) fn fit(rows: usize, columns: usize, clusters: usize, seed: u64) -> Entered {
        span!(target: "coremix", Level::INFO, "fit", rows, columns, clusters, seed).entered()
    }

    /// A phase begins.
    pub(crate) fn phase(report: &PhaseReport) -> Entered {
        let PhaseReport {
            restart,
            phase,
            rows,
            columns,
            ..
        } = report;
        span!(target: "coremix", Level::INFO, "phase", restart, phase, rows, columns).entered()
    }

    /// Where this thread is, for work on others.
    #[derive(Clone)]
    pub(crate) struct Place(Span);

    pub(crate) fn here() -> Place {
        Place(Span::current())
    }

    impl Place {
        pub(crate) fn enter(&self) -> Entered {
            self.0.clone().entered()
        }
    }

    /// A search is done.
    pub(crate) fn iteration(report: &PhaseReport) {
        event!(
            target: "coremix",
            Level::DEBUG,
            iteration = report.iterations,
            free_energy = report.free_energies[report.iterations],
            evaluations = report.evaluations,
            milliseconds = milliseconds(report.elapsed),
            "iteration"
        );
    }

    /// A coreset is drawn, or seeds are chosen.
    pub(crate) fn before<F: Float>(progress: &Progress<'_, F>) {
        match progress {
            Progress::Coreset {
                rows,
                weight,
                elapsed,
                ..
            } => event!(
                target: "coremix",
                Level::INFO,
                rows,
                weight,
                milliseconds = milliseconds(*elapsed),
                "coreset"
            ),
            Progress::Seeded {
                restart,
                start,
                elapsed,
                ..
            } => event!(
                target: "coremix",
                Level::INFO,
                restart,
                start,
                milliseconds = milliseconds(*elapsed),
                "seeded"
            ),
            Progress::Iteration { .. } => {}
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod without {
    use crate::base::float::Float;
    use crate::em::{PhaseReport, Progress};

    /// Nothing.
    #[must_use]
    #[derive(Clone)]
    pub(crate) struct Entered;

    pub(crate) type Place = Entered;

    impl Entered {
        pub(crate) fn enter(&self) -> Self {
            Self
        }
    }

    pub(crate) fn fit(_: usize, _: usize, _: usize, _: u64) -> Entered {
        Entered
    }

    pub(crate) fn phase(_: &PhaseReport) -> Entered {
        Entered
    }

    pub(crate) fn here() -> Place {
        Entered
    }

    pub(crate) fn iteration(_: &PhaseReport) {}

    pub(crate) fn before<F: Float>(_: &Progress<'_, F>) {}
}

#[cfg(feature = "tracing")]
pub(crate) use with::{before, fit, here, iteration, phase};
#[cfg(not(feature = "tracing"))]
pub(crate) use without::{before, fit, here, iteration, phase};
