//! Supports and reports in a checkpoint, and back.

use super::{PhaseReport, PhaseRows, Stop, Supports, Timings};
use crate::coreset::Lightweight;
use crate::io::{FileFault, Sections, Stream};
use crate::model::block::UNSET;
use std::time::{Duration, Instant};

type Read<T> = std::result::Result<T, FileFault>;

/// What an E-step and an M-step need to go on in the middle of a phase.
#[derive(Debug)]
pub(crate) struct SavedStages {
    /// The model in the coordinates of the phase, as the bytes of a file.
    pub(crate) model: Vec<u8>,
    /// The model in all coordinates, where these are others.
    pub(crate) whole: Option<Vec<u8>>,
    /// The state of the E-step.
    pub(crate) state: Vec<u8>,
}

impl SavedStages {
    pub(crate) fn write(&self, out: &mut Stream<'_>) {
        out.numbers("model", &self.model);
        if let Some(whole) = &self.whole {
            out.numbers("whole model", whole);
        }
        out.numbers("state", &self.state);
    }

    /// The model in all coordinates.
    pub(crate) fn whole_model(&self) -> &[u8] {
        self.whole.as_ref().unwrap_or(&self.model)
    }

    pub(crate) fn read(file: &mut Sections<'_>) -> Read<Self> {
        let whole = file.has("whole model").then(|| file.all("whole model"));
        Ok(Self {
            model: file.all("model")?,
            whole: whole.transpose()?,
            state: file.all("state")?,
        })
    }
}

impl Supports {
    /// Into sections whose names begin with `of`.
    pub(crate) fn write(&self, of: &str, out: &mut Stream<'_>) {
        let (labels, supports, order) = self.parts();
        out.numbers(&format!("{of}labels"), labels);
        if !supports.is_empty() {
            out.numbers(&format!("{of}supports"), supports);
        }
        if !order.is_empty() {
            let order_of_rows = order.iter().map(|row| *row as u64);
            out.section(&format!("{of}order"), order.len(), order_of_rows);
        }
    }

    /// Those of `n` rows and `k` components.
    pub(crate) fn read(of: &str, file: &mut Sections<'_>, n: usize, k: usize) -> Read<Self> {
        let labels = file.below(&format!("{of}labels"), &[n], k)?;
        let (name, mut supports) = (format!("{of}supports"), Vec::new());
        if file.has(&name) {
            supports = file.all::<u32>(&name)?;
            let width = supports.len() / n.max(1);
            let sound = width < k && supports.len() == n * width;
            if !sound
                || !supports
                    .chunks_exact(width.max(1))
                    .all(|s| is_support(s, k))
            {
                let rule = "must be different components of each row, or none";
                return Err(FileFault::content(&name, rule));
            }
        }
        let (name, mut order) = (format!("{of}order"), Vec::new());
        if file.has(&name) {
            let rows = file.numbers::<u64>(&name, &[n])?;
            let mut seen = vec![false; n];
            for row in rows {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                match seen.get_mut(row) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(FileFault::content(&name, "must be all rows, each once")),
                }
                order.push(row);
            }
        }
        Ok(Self::from_parts(labels, supports, order))
    }
}

/// Whether these are different ones of `k` components, or all unset.
fn is_support(support: &[u32], k: usize) -> bool {
    if support.iter().all(|c| *c == UNSET) {
        return true;
    }
    let repeated = |(i, c): (usize, &u32)| support[..i].contains(c);
    support.iter().all(|c| (*c as usize) < k) && !support.iter().enumerate().any(repeated)
}

/// Stop reasons by their number in a file.
const STOPS: [Stop; 4] = [
    Stop::Converged,
    Stop::MaxIterations,
    Stop::Observer,
    Stop::Cancelled,
];

impl PhaseReport {
    /// Into sections whose names begin with `of`.
    pub(crate) fn write(&self, of: &str, out: &mut Stream<'_>) {
        let (rows, draws) = match self.ran_on {
            PhaseRows::Coreset => (0, 0),
            PhaseRows::Larger(larger) => (1, larger.draws()),
            PhaseRows::All => (2, 0),
        };
        let stop = STOPS.iter().position(|stop| *stop == self.stop);
        let numbers = [
            rows,
            draws,
            self.rows,
            self.columns,
            self.iterations,
            stop.unwrap_or_default(),
            self.emptied,
            self.unobserved,
            self.phase,
            self.restart,
            self.widened,
        ];
        let numbers = numbers.map(|x| x as u64);
        out.numbers(&format!("{of}report"), &numbers);
        out.numbers(&format!("{of}evaluations"), &[self.evaluations]);
        out.numbers(&format!("{of}free energies"), &self.free_energies);
        let times = self.timings.seconds().into_iter();
        let times: Vec<f64> = times.chain([self.elapsed.as_secs_f64()]).collect();
        out.numbers(&format!("{of}times"), &times);
    }

    /// From such sections.
    pub(crate) fn read(of: &str, file: &mut Sections<'_>) -> Read<Self> {
        let name = format!("{of}report");
        let numbers = file.counts::<11>(&name)?;
        let count = |i: usize| usize::try_from(numbers[i]).unwrap_or(usize::MAX);
        let ran_on = match numbers[0] {
            0 => PhaseRows::Coreset,
            1 => PhaseRows::Larger(Lightweight::new(count(1))),
            2 => PhaseRows::All,
            _ => return Err(FileFault::content(&name, "must name known rows")),
        };
        let stop = STOPS.get(count(5)).copied();
        let stop = stop.ok_or_else(|| FileFault::content(&name, "must name a known stop"))?;
        let free_energies = file.all::<f64>(&format!("{of}free energies"))?;
        if free_energies.len().saturating_sub(1) != count(4) {
            let rule = "must have as many iterations as free energies follow the first";
            return Err(FileFault::content(&name, rule));
        }
        if !free_energies.iter().all(|f| f.is_finite()) {
            let name = format!("{of}free energies");
            return Err(FileFault::content(&name, "must be finite"));
        }
        let times = file.numbers::<f64>(&format!("{of}times"), &[7])?;
        let elapsed = time_of(times[6]);
        Ok(Self {
            ran_on,
            rows: count(2),
            columns: count(3),
            iterations: count(4),
            free_energies,
            stop,
            evaluations: file.counts::<1>(&format!("{of}evaluations"))?[0],
            emptied: count(6),
            unobserved: count(7),
            timings: Timings::of_seconds(&times),
            elapsed,
            began: Instant::now()
                .checked_sub(elapsed)
                .unwrap_or_else(Instant::now),
            phase: count(8),
            restart: count(9),
            widened: count(10),
        })
    }
}

/// A time of so many seconds. No fit takes 2^48 of them, and sums of such times do not overflow.
fn time_of(seconds: f64) -> Duration {
    let seconds = if seconds < 2f64.powi(48) {
        seconds
    } else {
        0.0
    };
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl Timings {
    /// In seconds, in the order of the stages.
    pub(crate) fn seconds(&self) -> [f64; 6] {
        let Self {
            coreset,
            projection,
            seeding,
            search,
            update,
            scoring,
        } = self;
        [coreset, projection, seeding, search, update, scoring].map(Duration::as_secs_f64)
    }

    /// From these; what is no time of a fit is 0.
    pub(crate) fn of_seconds(seconds: &[f64]) -> Self {
        let time = |i: usize| time_of(seconds.get(i).copied().unwrap_or_default());
        Self {
            coreset: time(0),
            projection: time(1),
            seeding: time(2),
            search: time(3),
            update: time(4),
            scoring: time(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_no_fit_are_none() {
        let seconds = [1.5, 1e19, f64::NAN, -1.0, f64::INFINITY, 0.25];
        let timings = Timings::of_seconds(&seconds);
        assert_eq!(timings.seconds(), [1.5, 0.0, 0.0, 0.0, 0.0, 0.25]);
        assert_eq!(timings.total(), Duration::from_secs_f64(1.75));
    }
}
