//! Reports of fits: phases, free energies, evaluations, times.

use super::{PhaseRows, Stop};
use crate::io::{FileFault, all_counts, all_finite, rule};
use std::fmt;
use std::time::{Duration, Instant};

/// The report of a fit. Where restarts differ it is about the one that was kept.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// Why the last phase ended.
    pub stop: Stop,
    /// M-steps, over all phases.
    pub iterations: usize,
    /// Free energy ([E3](crate::equations#e3)) after every search of the last phase, in nats, on the rows that phase ran
    /// on: one more than its M-steps. It never falls, except for rounding.
    pub free_energies: Vec<f64>,
    /// One entry per phase that led to the model; what others cost is in [`evaluations`](Self::evaluations) alone.
    pub phases: Vec<PhaseReport>,
    /// Distance evaluations of the whole fit, all restarts: one is one point against one component, seed
    /// or the data mean.
    pub distance_evaluations: u64,
    /// Distance evaluations by stage.
    pub evaluations: Evaluations,
    /// Rows of the first phase: those of the coreset, or all.
    pub coreset_size: usize,
    /// Entropy of the chances by which the coreset of the first phase was drawn, over that of equal chances of all rows, from
    /// 0 to 1 ([E15](crate::equations#e15)). Near 1 a uniform coreset is as good. It is estimated from the draws.
    pub coreset_entropy: Option<f64>,
    /// Components without mass after the last search. Where k-means has converged there are some only if there are
    /// fewer distinct rows than clusters ([E54](crate::equations#e54)).
    pub zero_mass: usize,
    /// Components that a floor of variances holds ([E20](crate::equations#e20)) after the last search, though they have more rows
    /// than columns: their rows are equal in a column, or columns determine one another among them, and densities there are
    /// those of the floor.
    pub at_floor: usize,
    /// Time by stage, all restarts.
    pub timings: Timings,
    /// The restart that was kept, from 0: its place in `restarts`.
    pub restart: usize,
    /// The last free energy of every restart. A fit that was cancelled leaves out those that found nothing.
    pub restarts: Vec<f64>,
    /// Why the last [checkpoint](crate::Checkpoint) could not be written, if it could not. Its file is then an earlier one.
    pub checkpoint_fault: Option<String>,
}

/// The report of a phase.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PhaseReport {
    /// Which rows it ran on.
    pub ran_on: PhaseRows,
    /// How many they are.
    pub rows: usize,
    /// Coordinates it worked in: all, or those of a subspace.
    pub columns: usize,
    /// M-steps.
    pub iterations: usize,
    /// Free energy after every search, in nats.
    pub free_energies: Vec<f64>,
    /// Why it ended.
    pub stop: Stop,
    /// Distance evaluations of its searches.
    pub evaluations: u64,
    /// Components without mass after the last search.
    pub zero_mass: usize,
    /// Unobserved coordinates of components with mass after the last search, over all of these: only rows of a sketch
    /// leave any.
    pub unobserved: usize,
    /// Components that a floor of variances holds after the last search, though they have more rows than columns.
    pub at_floor: usize,
    /// How often the neighbour lists of the [bounded search](crate::e_step::Bounded) were doubled, because a search over all
    /// centres found much that they had missed. It counts from the first phase on: the next ones begin with longer lists.
    pub longer_lists: usize,
    /// Time of its stages.
    pub timings: Timings,
    /// Time taken.
    pub elapsed: Duration,
    #[cfg_attr(feature = "files", serde(skip, default = "Instant::now"))]
    pub(crate) began: Instant,
    /// Its number among the phases of the restart.
    pub(crate) phase: usize,
    pub(crate) restart: usize,
}

impl PhaseReport {
    pub(crate) fn new(
        restart: usize,
        phase: usize,
        ran_on: PhaseRows,
        rows: usize,
        columns: usize,
    ) -> Self {
        Self {
            ran_on,
            rows,
            columns,
            iterations: 0,
            free_energies: Vec::new(),
            stop: Stop::Converged,
            evaluations: 0,
            zero_mass: 0,
            unobserved: 0,
            at_floor: 0,
            longer_lists: 0,
            timings: Timings::default(),
            elapsed: Duration::ZERO,
            began: Instant::now(),
            phase,
            restart,
        }
    }

    /// Checks that of a file, which begins as long ago as it took.
    pub(crate) fn checked(mut self) -> std::result::Result<Self, FileFault> {
        let counts = [
            self.rows,
            self.columns,
            self.iterations,
            self.zero_mass,
            self.unobserved,
            self.at_floor,
            self.longer_lists,
            self.phase,
            self.restart,
        ];
        all_counts("report", &counts.map(|count| count as u64))?;
        all_counts("report", &[self.evaluations])?;
        let energies = &self.free_energies;
        all_finite("free energies", energies, energies.len())?;
        let follow = energies.len().saturating_sub(1) == self.iterations;
        rule(follow, "free energies", "must be one more than iterations")?;
        let timed = self.timings.is_sound() && is_sound(self.elapsed);
        rule(timed, "report", "must have times of a fit")?;
        let began = Instant::now().checked_sub(self.elapsed);
        self.began = began.unwrap_or_else(Instant::now);
        Ok(self)
    }

    pub(crate) fn record(&mut self, free_energy: f64, started: Instant) {
        self.iterations = self.free_energies.len();
        self.free_energies.push(free_energy);
        self.timings.search += started.elapsed();
        self.elapsed = self.began.elapsed();
    }

    /// M-steps so far: between two searches as many as searches.
    pub(crate) fn steps(&self) -> usize {
        self.free_energies.len()
    }

    /// Counts distance evaluations. A stage from outside may have said any number.
    pub(crate) fn count(&mut self, evaluations: u64) {
        self.evaluations = self.evaluations.saturating_add(evaluations);
    }
}

/// Distance evaluations by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Evaluations {
    /// Rows against the data mean.
    pub coreset: u64,
    /// Rows against seeds.
    pub seeding: u64,
    /// Points against components, in E-steps.
    pub search: u64,
    /// Points against components, in [`Fit::score`](crate::Fit::score).
    pub scoring: u64,
}

impl Evaluations {
    /// All stages together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let others = [self.seeding, self.search, self.scoring].into_iter();
        others.fold(self.coreset, u64::saturating_add)
    }
}

/// Time by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Timings {
    /// Drawing coresets.
    pub coreset: Duration,
    /// Finding a subspace, and projecting rows on it.
    pub projection: Duration,
    /// Choosing seeds.
    pub seeding: Duration,
    /// Searches, together with the sums for the M-step.
    pub search: Duration,
    /// New parameters from the sums, and what moves components before: split and merge, transfers, merges.
    pub update: Duration,
    /// [`Fit::score`](crate::Fit::score).
    pub scoring: Duration,
}

impl Timings {
    /// All stages together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.stages().iter().sum()
    }

    fn stages(&self) -> [Duration; 6] {
        [
            self.coreset,
            self.projection,
            self.seeding,
            self.search,
            self.update,
            self.scoring,
        ]
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.stages().into_iter().all(is_sound)
    }
}

/// No fit takes 2^48 seconds, and sums of such times do not overflow.
fn is_sound(time: Duration) -> bool {
    time.as_secs() < 1 << 48
}

impl Report {
    /// The rows of all phases, in words: only of the first and the last where there are several numbers.
    fn rows(&self) -> String {
        let rows = |phase: Option<&PhaseReport>| phase.map_or(self.coreset_size, |p| p.rows);
        match (rows(self.phases.first()), rows(self.phases.last())) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.free_energies.last().copied().unwrap_or(f64::NAN);
        writeln!(
            f,
            "{} after {} iterations on {} rows",
            self.stop,
            self.iterations,
            self.rows()
        )?;
        writeln!(
            f,
            "free energy {last:.6e}, {} components without mass",
            self.zero_mass
        )?;
        if let Some(entropy) = self.coreset_entropy {
            writeln!(
                f,
                "coreset of normalised entropy {entropy:.3}: at 1, all rows have the same chance"
            )?;
        }
        if self.at_floor > 0 {
            writeln!(
                f,
                "a floor of variances holds {} components with more rows than columns: equal rows, constant or dependent columns",
                self.at_floor
            )?;
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let e = &self.evaluations;
        let t = &self.timings;
        writeln!(f, "{:<10}{:>18}{:>14}", "stage", "evaluations", "time / ms")?;
        for (stage, evaluations, time) in [
            ("coreset", Some(e.coreset), t.coreset),
            ("projection", None, t.projection),
            ("seeding", Some(e.seeding), t.seeding),
            ("search", Some(e.search), t.search),
            ("update", None, t.update),
            ("scoring", Some(e.scoring), t.scoring),
            ("total", Some(e.total()), t.total()),
        ] {
            let evaluations = evaluations.map(|e| e.to_string()).unwrap_or_default();
            writeln!(f, "{stage:<10}{evaluations:>18}{:>14.1}", ms(time))?;
        }
        Ok(())
    }
}
