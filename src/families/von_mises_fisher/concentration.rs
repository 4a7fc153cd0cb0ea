//! Concentrations of directions: Bessel functions of large orders, and the ratio of two of them turned round.

use std::f64::consts::TAU;

/// Limits of kappa. Rows that coincide have the upper one: it stands for angles of 1e-5 between rows, which `f32` still resolves.
/// The lower one is as good as uniform on the sphere.
pub(super) const LIMITS: (f64, f64) = (1e-6, 1e10);

/// ln C(kappa) + kappa, the logarithm of the density at the direction itself, in `dim` columns.
pub(super) fn log_peak(dim: usize, kappa: f64) -> f64 {
    let nu = dim as f64 / 2.0 - 1.0;
    nu * kappa.ln() - (nu + 1.0) * TAU.ln() - bessel(nu, kappa).0
}

/// ln(I_nu(kappa) e^-kappa), and 1 - A = 1 - I_(nu+1)(kappa) / I_nu(kappa), to about 9 digits.
///
/// An order of 100 or more has the uniform expansion for large orders (DLMF 10.41.3). From there the recurrence
/// 1 / A_nu = 2 (nu + 1) / kappa + A_(nu+1) goes down (DLMF 10.29.1), which lessens errors.
pub(super) fn bessel(nu: f64, kappa: f64) -> (f64, f64) {
    let steps = (100.0 - nu).ceil().max(0.0);
    let expansion = |v: f64| {
        let root = v.hypot(kappa);
        let p = v / root;
        let s = (v / root).powi(2);
        let u1 = p * (3.0 - 5.0 * s) / 24.0;
        let u2 = s * (81.0 + s * (385.0 * s - 462.0)) / 1152.0;
        let u3 = s * (30375.0 + s * (s * (765765.0 - 425425.0 * s) - 369603.0)) * p / 414720.0;
        let series = (u1 + (u2 + u3 / v) / v) / v;
        (
            root,
            v * v / (root + kappa) - v * (v / kappa).asinh() + series.ln_1p(),
        )
    };
    let (root, log) = expansion(nu + steps);
    let (next_root, next) = expansion(nu + steps + 1.0);
    let mut fall = -(next - log + (root / next_root).ln() / 2.0).exp_m1();
    let mut log = log - (TAU * root).ln() / 2.0;
    for step in (0..steps as usize).rev() {
        let more = 2.0 * (nu + step as f64 + 1.0) / kappa - fall;
        fall = more / (1.0 + more);
        log += more.ln_1p();
    }
    (log, fall)
}

/// A'(kappa) in `d` dimensions, where 1 - A is `fall`: the variance along the mean direction. For large kappa nearly all of it cancels,
/// and it has the first two terms of its series.
pub(super) fn slope(d: f64, kappa: f64, fall: f64) -> f64 {
    // Both are right to about 1e-6 there.
    if kappa.powi(3) > 5e8 * d * d {
        return (d - 1.0) / kappa * (1.0 - (d - 3.0) / (2.0 * kappa)) / (2.0 * kappa);
    }
    fall * (2.0 - fall) - (d - 1.0) * (1.0 - fall) / kappa
}

/// The kappa with 1 - A(kappa) = `fall` in `d` dimensions: Newton's steps from the estimate of Banerjee et al. (2005; Sra 2012),
/// between the bounds that follow from those of Amos (1974) on A.
pub(super) fn concentration(d: f64, fall: f64) -> f64 {
    // Without a number, where masses leave the range of the type, nothing is known of the direction.
    let fall = if fall.is_nan() {
        1.0
    } else {
        fall.clamp(0.0, 1.0)
    };
    let r = 1.0 - fall;
    let b = (d - 1.0) / 2.0;
    let open = fall * (2.0 - fall); // 1 - r^2
    let bound = |c: f64| r * (b + (b * r).hypot(c * open.sqrt())) / open;
    let clamped = |kappa: f64| {
        kappa
            .clamp(bound(b), bound(b + 1.0))
            .clamp(LIMITS.0, LIMITS.1)
    };
    let mut kappa = clamped(r * (d - r * r) / open);
    for _ in 0..8 {
        let (_, current) = bessel(d / 2.0 - 1.0, kappa);
        kappa = clamped(kappa + (current - fall) / slope(d, kappa, current).max(f64::MIN_POSITIVE));
    }
    kappa
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::gamma::log_gamma;
    use std::f64::consts::PI;

    /// The integral over the sphere of exp(kappa (cos - 1)), in logarithms, and the mean of 1 - cos under it: by Simpson's rule over
    /// the angle to the mean direction.
    fn integrals(d: usize, kappa: f64) -> (f64, f64) {
        const NODES: usize = 40_000;
        let widest = (20.0 + 2.0 * (d as f64).sqrt()) / kappa.sqrt();
        let step = widest.min(PI) / NODES as f64;
        // 1 - cos, and the logarithm of what there is at the angle.
        let at = |i: usize| {
            let angle = i as f64 * step;
            let off = 2.0 * (angle / 2.0).sin().powi(2);
            let surface = (d - 2) as f64 * angle.sin().abs().max(1e-300).ln();
            (off, surface - kappa * off)
        };
        let largest = (0..=NODES).map(|i| at(i).1).fold(f64::MIN, f64::max);
        let mut sum = 0.0;
        let mut falls = 0.0;
        for i in 0..=NODES {
            let simpson = [1.0, 4.0, 2.0][if i == 0 || i == NODES { 0 } else { 2 - i % 2 }];
            let (off, log) = at(i);
            let part = simpson * (log - largest).exp();
            sum += part;
            falls += off * part;
        }
        // The surface of the sphere of rows at one angle: 2 pi^((d - 1) / 2) / Gamma((d - 1) / 2).
        let half = (d - 1) as f64 / 2.0;
        let surface = 2f64.ln() + half * PI.ln() - log_gamma(half);
        (surface + largest + (sum * step / 3.0).ln(), falls / sum)
    }

    #[test]
    fn densities_on_the_sphere_integrate_to_one() {
        for d in [2, 3, 4, 7, 50, 201, 300, 2000] {
            for kappa in [1e-6, 1e-3, 0.5, 3.0, 30.0, 400.0, 5e3, 1e5, 1e7, 1e10] {
                let (_, fall) = bessel(d as f64 / 2.0 - 1.0, kappa);
                let (integral, expected) = integrals(d, kappa);
                let off = log_peak(d, kappa) + integral;
                assert!(off.abs() < 1e-8, "{d} {kappa}: {off}");
                let near = (fall - expected).abs() < 1e-9_f64.min(1e-5 * expected);
                assert!(near, "{d} {kappa}: {fall} {expected}");
                // The slope of 1 - A is what tells kappa.
                let back = concentration(d as f64, fall);
                assert!((back / kappa - 1.0).abs() < 1e-5, "{d} {kappa}: {back}");
            }
            assert_eq!(concentration(d as f64, 0.0), LIMITS.1);
            assert_eq!(concentration(d as f64, 1.0), LIMITS.0);
            assert_eq!(concentration(d as f64, 1.1), LIMITS.0);
            assert_eq!(concentration(d as f64, f64::NAN), LIMITS.0);
        }
    }

    /// In three dimensions A' = 1 / kappa^2 - 1 / sinh(kappa)^2, and it has no step where the series takes over.
    #[test]
    fn slopes_do_not_cancel() {
        for kappa in [20.0, 400.0, 1e3, 2e3, 1e4, 1e6, 1e8, LIMITS.1] {
            let computed = slope(3.0, kappa, bessel(0.5, kappa).1);
            assert!(
                (computed * kappa * kappa - 1.0).abs() < 1e-5,
                "{kappa}: {computed}"
            );
        }
        for d in [2.0, 10.0, 384.0, 5_000.0_f64] {
            let at = (5e8 * d * d).cbrt();
            let slope_at = |kappa: f64| slope(d, kappa, bessel(d / 2.0 - 1.0, kappa).1);
            let before = slope_at(at * (1.0 - 1e-9));
            let after = slope_at(at * (1.0 + 1e-9));
            assert!((before / after - 1.0).abs() < 1e-4, "{d}: {before} {after}");
        }
    }

    /// Uniform on the sphere of three dimensions, 1 / 4 pi, as kappa vanishes; and kappa / 2 pi where it is large.
    #[test]
    fn densities_integrate_to_one() {
        let uniform = -(2.0 * TAU).ln();
        assert!((log_peak(3, 1e-6) - uniform).abs() < 1e-5);
        let kappa: f64 = 500.0;
        assert!((log_peak(3, kappa) - (kappa / TAU).ln()).abs() < 1e-7);
    }
}
