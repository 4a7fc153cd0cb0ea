//! When a phase ends.

use super::Found;
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

/// What a change of the free energy is compared to ([E19](crate::equations#e19)).
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
    /// What $F$ is still to gain, as its last changes tell ([E43](crate::equations#e43)). With $\Delta_t = F_t - F_{t-1}$:
    ///
    /// $$\frac{\rho}{1 - \rho} |\Delta_t| \le \frac{\text{tolerance}}{2} \sum_n w_n D_n, \qquad \rho = \frac{|\Delta_t|}{|\Delta_{t-1}|}$$
    ///
    /// with $\rho$ held between 0.5 and 0.95. Fits that gain little in each of many iterations go on longer than by
    /// [`PerCoordinate`](Self::PerCoordinate), others as long.
    Remaining,
}

/// What the ratio of two changes is held between: one that happens to be small says little, and one near 1 would wait for
/// nothing in particular.
const RATIOS: Range<f64> = 0.5..0.95;

/// The stop rule of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopRule {
    pub(crate) rule: Rule,
    /// Largest change of the free energy that counts as settled, in units of what the rule compares to.
    pub(crate) tolerance: f64,
    /// Most M-steps.
    pub(crate) max_iterations: usize,
}

impl StopRule {
    /// Whether to stop after the searches that found these free energies, one more than there were M-steps. While moves or
    /// restricted steps are pending, a small change says nothing.
    pub(crate) fn decide(
        &self,
        free_energies: &[f64],
        found: &Found,
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
        let [earlier @ .., before] = before else {
            return false;
        };
        let change = (last - before).abs();
        let (change, unit) = match self.rule {
            Rule::PerCoordinate => (change, likelihood.entries / 2.0),
            Rule::RelativeToFreeEnergy => (change, last.abs().max(likelihood.weight)),
            // Nothing remains, and there is no ratio.
            Rule::Remaining if change == 0.0 => return true,
            Rule::Remaining => {
                let ratio = earlier
                    .last()
                    .map_or(RATIOS.end, |e| change / (before - e).abs());
                let ratio = ratio.clamp(RATIOS.start, RATIOS.end);
                (change * ratio / (1.0 - ratio), likelihood.entries / 2.0)
            }
        };
        change <= self.tolerance * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        rule: StopRule,
        free_energies: &[f64],
        pending: bool,
        stopped: Option<Stop>,
    ) -> Option<Stop> {
        let found = Found {
            likelihood: Likelihood {
                weight: 100.0,
                entries: 400.0,
                best: 0.0,
                spread: 0.0,
            },
            free_energy: free_energies[free_energies.len() - 1],
            pending,
        };
        rule.decide(free_energies, &found, stopped)
    }

    #[test]
    fn stops_for_the_first_reason_that_holds() {
        let rule = StopRule {
            rule: Rule::RelativeToFreeEnergy,
            tolerance: 1e-2,
            max_iterations: 3,
        };
        let converged = Some(Stop::Converged);
        for (free_energies, pending, stop) in [
            (&[-500.0][..], false, None),
            (&[-500.0, -490.0], false, None),
            (&[-500.0, -496.0], false, converged),
            (&[-500.0, -496.0], true, None),
            // Near zero the weight decides: one nat per point is the unit.
            (&[-1.0, 0.5], false, None),
            (&[-0.1, 0.5], false, converged),
            (&[-900.0, -800.0, -700.0], false, None),
            // Moves that are pending do not lengthen a phase.
            (&[-9e2, -8e2, -7e2, -6e2], true, Some(Stop::MaxIterations)),
        ] {
            let found = decide(rule, free_energies, pending, None);
            assert_eq!(found, stop, "{free_energies:?} {pending}");
        }
        let stopped = decide(rule, &[-900.0], false, Some(Stop::Observer));
        assert_eq!(stopped, Some(Stop::Observer));
    }

    /// Half a nat for each of 400 coordinates is the unit, wherever F is.
    #[test]
    fn the_default_rule_counts_coordinates() {
        let rule = StopRule {
            rule: Rule::default(),
            tolerance: 1e-2,
            max_iterations: 9,
        };
        for at in [0.0, 1e6, -1e6] {
            assert_eq!(decide(rule, &[at, at + 2.1], false, None), None);
            let stop = decide(rule, &[at, at + 1.9], false, None);
            assert_eq!(stop, Some(Stop::Converged));
        }
    }

    #[test]
    fn tolerance_zero_waits_until_nothing_changes() {
        for rule in [
            Rule::PerCoordinate,
            Rule::RelativeToFreeEnergy,
            Rule::Remaining,
        ] {
            let rule = StopRule {
                rule,
                tolerance: 0.0,
                max_iterations: 10,
            };
            assert_eq!(decide(rule, &[-5.0, -4.999_999], false, None), None);
            for same in [&[-5.0, -5.0][..], &[-5.0, -5.0, -5.0], &[-6.0, -5.0, -5.0]] {
                assert_eq!(decide(rule, same, false, None), Some(Stop::Converged));
            }
        }
    }
}
