//! The logarithm of the gamma function, and its differences.

use special::Gamma;

pub(super) fn log_gamma(x: f64) -> f64 {
    Gamma::ln_gamma(x).0
}

/// From here on the series of Stirling has all digits of a difference.
const LARGE: f64 = 1e4;

/// $\ln \Gamma(x + by) - \ln \Gamma(x)$ for positive numbers. For large $x$ both are about $x \ln x$, and their difference would
/// be rounded as they are (E30).
pub(super) fn log_gamma_rise(x: f64, by: f64) -> f64 {
    if x < LARGE {
        return log_gamma(x + by) - log_gamma(x);
    }
    // (z - 1/2) ln z - z + 1 / (12 z) + ..., of both.
    let above = x + by;
    (x - 0.5) * (by / x).ln_1p() + by * (above.ln() - 1.0) + (1.0 / above - 1.0 / x) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over whole numbers a rise is a sum of logarithms.
    #[test]
    fn rises_are_sums_of_logarithms() {
        for x in [0.5, 3.0, 9_999.0, LARGE, 12_345.5, 1e8, 1e12, 1e15, 1e200] {
            for by in [0, 1, 7, 300] {
                let naive: f64 = (0..by).map(|i| (x + f64::from(i)).ln()).sum();
                let got = log_gamma_rise(x, f64::from(by));
                // Where the series is not used, the rounding is that of both.
                let size = if x < LARGE {
                    log_gamma(x + 300.0)
                } else {
                    naive
                };
                let off = (got - naive).abs();
                assert!(off <= 1e-13 * (1.0 + size), "{x} {by}: {got} {naive}");
            }
        }
    }

    #[test]
    fn rises_by_parts_go_on() {
        for x in [2.0, 9_999.5, 5e4, 1e12] {
            let (whole, parts) = (
                log_gamma_rise(x, 3.25),
                log_gamma_rise(x, 1.5) + log_gamma_rise(x + 1.5, 1.75),
            );
            let size = log_gamma(x.min(LARGE));
            assert!((whole - parts).abs() <= 1e-13 * (1.0 + size), "{x}");
        }
    }
}
