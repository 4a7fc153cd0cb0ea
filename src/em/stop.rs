//! When a phase ends.

/// Why a phase or a fit ended. None of these loses the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The relative change of the free energy fell to the tolerance (E19; see
    /// [`tolerance`](crate::Builder::tolerance)).
    Converged,
    /// The iterations allowed were used up.
    MaxIterations,
    /// The observer asked to stop.
    Observer,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::MaxIterations => "iterations used up",
            Self::Observer => "stopped by the observer",
        })
    }
}

/// The stop rule of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopRule {
    /// Largest relative change of the free energy that counts as settled.
    pub(crate) tolerance: f64,
    /// Most M-steps.
    pub(crate) max_iterations: usize,
}

impl StopRule {
    /// Whether to stop after `steps` M-steps and the searches that found these free energies (E19); of the
    /// first searches some may be left out, whose change says nothing.
    ///
    /// The change is divided by max(|F|, W): F passes through zero for some unit of the data, and W nats
    /// is one nat per point.
    pub(crate) fn decide(
        &self,
        free_energies: &[f64],
        steps: usize,
        weight: f64,
        stopped: bool,
    ) -> Option<Stop> {
        if stopped {
            return Some(Stop::Observer);
        }
        if let [.., before, last] = free_energies
            && (last - before).abs() <= self.tolerance * last.abs().max(weight)
        {
            return Some(Stop::Converged);
        }
        (steps >= self.max_iterations).then_some(Stop::MaxIterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_for_the_first_reason_that_holds() {
        let rule = StopRule {
            tolerance: 1e-2,
            max_iterations: 3,
        };
        assert_eq!(rule.decide(&[-500.0], 0, 100.0, false), None);
        assert_eq!(rule.decide(&[-500.0, -490.0], 1, 100.0, false), None);
        assert_eq!(
            rule.decide(&[-500.0, -496.0], 1, 100.0, false),
            Some(Stop::Converged)
        );
        // Near zero the weight decides: one nat per point is the unit.
        assert_eq!(rule.decide(&[-1.0, 0.5], 1, 100.0, false), None);
        assert_eq!(
            rule.decide(&[-0.1, 0.5], 1, 100.0, false),
            Some(Stop::Converged)
        );
        let four = [-900.0, -800.0, -700.0, -600.0];
        assert_eq!(rule.decide(&four[..3], 2, 1.0, false), None);
        assert_eq!(rule.decide(&four, 3, 1.0, false), Some(Stop::MaxIterations));
        assert_eq!(rule.decide(&four[..1], 0, 1.0, true), Some(Stop::Observer));
    }

    #[test]
    fn tolerance_zero_waits_until_nothing_changes() {
        let rule = StopRule {
            tolerance: 0.0,
            max_iterations: 10,
        };
        assert_eq!(rule.decide(&[-5.0, -4.999_999], 1, 1.0, false), None);
        assert_eq!(
            rule.decide(&[-5.0, -5.0], 1, 1.0, false),
            Some(Stop::Converged)
        );
    }
}
