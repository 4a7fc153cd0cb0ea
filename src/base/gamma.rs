//! The logarithm of the gamma function, and its derivative.

/// $\ln \Gamma(x)$ of a positive number.
pub(crate) fn log_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The derivative of $\ln \Gamma$ at a positive number: the first terms of its series, whose error is below rounding from 8 on
/// (Abramowitz and Stegun, 6.3.18). Smaller numbers are raised by $\psi(x) = \psi(x + 1) - 1 / x$.
pub(crate) fn digamma(x: f64) -> f64 {
    /// $B_{2 i} / 2 i$ for $i = 1, 2, \dots$ with the numbers of Bernoulli.
    const TERMS: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32_760.0,
        1.0 / 12.0,
        -3617.0 / 8160.0,
    ];

    if x <= 8.0 {
        return digamma(x + 1.0) - x.recip();
    }
    let step = x.recip();
    let square = step * step;
    let terms = TERMS.iter().rev();
    x.ln() - 0.5 * step - square * terms.fold(0.0, |sum, term| square * sum + term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use special::Gamma;

    #[test]
    fn both_are_those_of_another_library() {
        for i in 1..4_000 {
            for unit in [1e-3, 0.37, 1e9] {
                let x = unit * f64::from(i);
                assert_eq!(digamma(x), x.digamma(), "{x}");
                assert_eq!(log_gamma(x), Gamma::ln_gamma(x).0, "{x}");
            }
        }
    }
}
