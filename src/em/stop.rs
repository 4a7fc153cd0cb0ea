//! When a phase ends.

use super::SearchResult;
use crate::model::posterior::Likelihood;
use std::ops::Range;

/// Why a phase or a fit ended. None of these loses the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Stop {
    /// The change of the free energy fell to the tolerance (E19; see
    /// [`tolerance`](crate::Builder::tolerance)).
    Converged,
    /// The iterations allowed were used up.
    MaxIterations,
    /// The observer asked to stop.
    Observer,
    /// The fit was [cancelled](crate::Cancel), or its time was up.
    Cancelled,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::MaxIterations => "iterations used up",
            Self::Observer => "stopped by the observer",
            Self::Cancelled => "cancelled",
        })
    }
}

/// The rule by which a change of the free energy counts as small ([E19](crate::equations#e19)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Rule {
    /// Half a nat per coordinate of every row:
    ///
    /// $$|F_t - F_{t-1}| \le \frac{\text{tolerance}}{2} \sum_n w_n D_n$$
    ///
    /// It has no unit. For hard supports and one shared variance it is, to first order, a relative change of the
    /// quantization error.
    #[default]
    PerCoordinate,
    /// The free energy itself, as in the papers:
    ///
    /// $$|F_t - F_{t-1}| \le \text{tolerance} \cdot \max(|F_t|, W), \qquad W = \sum_n w_n$$
    ///
    /// F changes with the unit of the data; W is used where F is near 0.
    RelativeToFreeEnergy,
    /// The rest that $F$ has still to gain, estimated from its last changes ([E43](crate::equations#e43)). With $\Delta_t = F_t
    /// - F_{t-1}$:
    ///
    /// $$\frac{\rho}{1 - \rho} |\Delta_t| \le \frac{\text{tolerance}}{2} \sum_n w_n D_n, \qquad \rho = \frac{|\Delta_t|}{|\Delta_{t-1}|}$$
    ///
    /// with $\rho$ held between 0.5 and 0.95. Fits that gain little in each of many iterations go on longer than by
    /// [`PerCoordinate`](Self::PerCoordinate), others as long.
    Remaining,
}

/// Limits of the ratio of two changes: a very small ratio may be chance, and near 1 the estimated rest has no bound.
const RATIOS: Range<f64> = 0.5..0.95;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopRule {
    pub(crate) rule: Rule,
    /// Largest change of the free energy that counts as settled, in units of what the rule compares to.
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
}

impl StopRule {
    /// Whether to stop after the searches that found these free energies, one more than there were M-steps. While moves or
    /// restricted steps are pending, a small change says nothing.
    pub(crate) fn decide(
        &self,
        free_energies: &[f64],
        found: &SearchResult,
        stopped: Option<Stop>,
    ) -> Option<Stop> {
        let before = &free_energies[..free_energies.len() - 1];
        if stopped.is_some() {
            stopped
        } else if !found.pending && self.settles(before, found.free_energy, &found.likelihood) {
            Some(Stop::Converged)
        } else {
            (before.len() >= self.max_iterations).then_some(Stop::MaxIterations)
        }
    }

    /// Whether the free energy counts as settled with `last`, after the searches before (E19).
    pub(crate) fn settles(&self, before: &[f64], last: f64, likelihood: &Likelihood) -> bool {
        self.rule.settles(self.tolerance, before, last, likelihood)
    }
}

impl Rule {
    /// Whether the free energy counts as settled with `last`, after those of the searches before (E19).
    #[doc(hidden)]
    #[must_use]
    pub fn settles(
        self,
        tolerance: f64,
        before: &[f64],
        last: f64,
        likelihood: &Likelihood,
    ) -> bool {
        let [earlier @ .., before] = before else {
            return false;
        };
        let change = (last - before).abs();
        let (change, unit) = match self {
            Self::PerCoordinate => (change, likelihood.entries / 2.0),
            Self::RelativeToFreeEnergy => (change, last.abs().max(likelihood.weight)),
            // Nothing remains, and there is no ratio.
            Self::Remaining if change == 0.0 => return true,
            Self::Remaining => {
                let ratio = |e: &f64| change / (before - e).abs();
                let ratio = earlier.last().map_or(RATIOS.end, ratio);
                let ratio = ratio.clamp(RATIOS.start, RATIOS.end);
                (change * ratio / (1.0 - ratio), likelihood.entries / 2.0)
            }
        };
        change <= tolerance * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule after searches with these free energies: 100 points of 4 coordinates.
    fn decide(rule: Rule, tolerance: f64, free_energies: &[f64], pending: bool) -> Option<Stop> {
        let found = SearchResult {
            likelihood: Likelihood {
                weight: 100.0,
                entries: 400.0,
                best: 0.0,
                spread: 0.0,
                units: 0.0,
            },
            free_energy: free_energies[free_energies.len() - 1],
            pending,
        };
        let rule = StopRule {
            rule,
            tolerance,
            max_iterations: 3,
        };
        let stopped = Some(Stop::Observer);
        assert_eq!(rule.decide(free_energies, &found, stopped), stopped);
        rule.decide(free_energies, &found, None)
    }

    #[test]
    fn stops_for_the_first_reason_that_holds() {
        let converged = Some(Stop::Converged);
        let (of_f, of_coordinates) = (Rule::RelativeToFreeEnergy, Rule::default());
        for (rule, free_energies, pending, stop) in [
            (of_f, &[-500.0][..], false, None),
            (of_f, &[-500.0, -490.0], false, None),
            (of_f, &[-500.0, -496.0], false, converged),
            (of_f, &[-500.0, -496.0], true, None),
            // Near zero the weight decides: one nat per point is the unit.
            (of_f, &[-1.0, 0.5], false, None),
            (of_f, &[-0.1, 0.5], false, converged),
            (of_f, &[-900.0, -800.0, -700.0], false, None),
            // Moves that are pending do not lengthen a phase.
            (
                of_f,
                &[-9e2, -8e2, -7e2, -6e2],
                true,
                Some(Stop::MaxIterations),
            ),
            // Half a nat for each of 400 coordinates is the unit, wherever F is.
            (of_coordinates, &[1e6, 1e6 + 2.1], false, None),
            (of_coordinates, &[1e6, 1e6 + 1.9], false, converged),
            (of_coordinates, &[0.0, 1.9], false, converged),
        ] {
            let found = decide(rule, 1e-2, free_energies, pending);
            assert_eq!(found, stop, "{free_energies:?} {pending}");
        }
    }

    #[test]
    fn tolerance_zero_waits_until_nothing_changes() {
        for rule in [
            Rule::PerCoordinate,
            Rule::RelativeToFreeEnergy,
            Rule::Remaining,
        ] {
            assert_eq!(decide(rule, 0.0, &[-5.0, -4.999_999], false), None);
            for same in [&[-5.0, -5.0][..], &[-5.0, -5.0, -5.0], &[-6.0, -5.0, -5.0]] {
                assert_eq!(decide(rule, 0.0, same, false), Some(Stop::Converged));
            }
        }
    }
}
