//! When a phase ends.

use super::{SearchResult, Tolerance};
use crate::model::posterior::Likelihood;

/// Why a phase or a fit ended. None of these loses the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Stop {
    /// The gain of the free energy, or the gain that is left, fell to the tolerance (E19, E43; see
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
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
    /// This rest in nats per row:
    ///
    /// $$\frac{\rho}{1 - \rho} |\Delta_t| \le \frac{\text{tolerance}}{2} W, \qquad W = \sum_n w_n$$
    ///
    /// with $\rho$ held between 0.5 and 0.99. It asks for half of the tolerance, because the ratio comes nearer to 1 in most fits: then
    /// about the tolerance is left.
    RemainingPerRow,
}

/// A ratio of two changes that is smaller may be chance.
const LEAST_RATIO: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopRule {
    /// None: that of the search.
    pub(crate) rule: Option<Rule>,
    pub(crate) tolerance: Tolerance,
    pub(crate) max_iterations: usize,
}

impl StopRule {
    /// Whether to stop after the searches that found these free energies, one more than there were M-steps. While moves or
    /// restricted steps are pending, a small change says nothing.
    pub(crate) fn decide(
        &self,
        free_energies: &[f64],
        search: &SearchResult,
        stopped: Option<Stop>,
    ) -> Option<Stop> {
        let before = &free_energies[..free_energies.len() - 1];
        if stopped.is_some() {
            stopped
        } else if !search.pending && self.settles(before, search.free_energy, &search.likelihood) {
            Some(Stop::Converged)
        } else {
            (before.len() >= self.max_iterations).then_some(Stop::MaxIterations)
        }
    }

    /// Whether the free energy counts as settled with `last`, after the searches before (E19).
    pub(crate) fn settles(&self, before: &[f64], last: f64, likelihood: &Likelihood) -> bool {
        let rule = self.rule.unwrap_or_default();
        rule.settles(self.tolerance.share(), before, last, likelihood)
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
        let change = last - before;
        let (most, unit) = match self {
            Self::PerCoordinate => (LEAST_RATIO, likelihood.entries / 2.0),
            Self::RelativeToFreeEnergy => (LEAST_RATIO, last.abs().max(likelihood.weight)),
            Self::Remaining => (0.95, likelihood.entries / 2.0),
            Self::RemainingPerRow => (0.99, likelihood.weight / 2.0),
        };
        // Two changes of different signs are rounding.
        let ratio = |e: &f64| change / (before - e);
        let ratio = earlier.last().map_or(most, ratio);
        // Two changes of 0 have no ratio.
        let ratio = ratio.max(LEAST_RATIO).min(most);
        change.abs() * ratio / (1.0 - ratio) <= Tolerance::new(tolerance).of(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule after searches with these free energies: 100 points of 4 coordinates.
    fn decide(rule: Rule, tolerance: f64, free_energies: &[f64], pending: bool) -> Option<Stop> {
        let search = SearchResult {
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
            rule: Some(rule),
            tolerance: Tolerance::new(tolerance),
            max_iterations: 3,
        };
        let stopped = Some(Stop::Observer);
        assert_eq!(rule.decide(free_energies, &search, stopped), stopped);
        rule.decide(free_energies, &search, None)
    }

    #[test]
    fn stops_for_the_first_reason_that_holds() {
        let converged = Some(Stop::Converged);
        let of_f = Rule::RelativeToFreeEnergy;
        let of_coordinates = Rule::default();
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
            let decided = decide(rule, 1e-2, free_energies, pending);
            assert_eq!(decided, stop, "{free_energies:?} {pending}");
        }
    }

    /// Changes that fall by one rate leave what the rule says, whatever the rate is, and a plateau is no end.
    #[test]
    fn what_is_left_is_known_at_any_rate() {
        let likelihood = Likelihood {
            weight: 100.0,
            entries: 4e4,
            ..Likelihood::default()
        };
        let settles = |before: &[f64], last: f64| {
            Rule::RemainingPerRow.settles(1e-2, before, last, &likelihood)
        };
        for rate in [0.6f64, 0.9, 0.98] {
            let left: Vec<f64> = (0..2_000).map(|t| 300.0 * rate.powi(t)).collect();
            let f: Vec<f64> = left.iter().map(|left| -left).collect();
            let end = (1..f.len()).find(|&t| settles(&f[..t], f[t])).unwrap();
            assert!(
                left[end] <= 0.5 + 1e-9 && left[end - 1] > 0.5 - 1e-9,
                "{rate}: {end}"
            );
        }
        assert!(!settles(&[0.0, 0.1], 0.25));
        // Rounding goes up and down.
        assert!(settles(&[0.0, 0.1], 0.05));
    }

    #[test]
    fn tolerance_zero_waits_until_nothing_changes() {
        for rule in [
            Rule::PerCoordinate,
            Rule::RelativeToFreeEnergy,
            Rule::Remaining,
            Rule::RemainingPerRow,
        ] {
            assert_eq!(decide(rule, 0.0, &[-5.0, -4.999_999], false), None);
            for same in [&[-5.0, -5.0][..], &[-5.0, -5.0, -5.0], &[-6.0, -5.0, -5.0]] {
                assert_eq!(decide(rule, 0.0, same, false), Some(Stop::Converged));
            }
        }
    }
}
