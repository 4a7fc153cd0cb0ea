//! Quantization errors relative to a reference.

use crate::base::error::{Error, Result, not_negative};

/// The relative difference `(q - q_ref) / q_ref` of a quantization error from a reference one.
///
/// $$\eta = \frac{\Phi - \Phi_{\text{ref}}}{\Phi_{\text{ref}}}$$
///
/// with $\Phi$ the quantization error (E22). Negative where `q` is the better one. Eq. 9 of Hirschberger, Forster and Luecke
/// (vc-GMM, TPAMI 2022), where the reference is the error of k-means on all points.
///
/// # Errors
/// [`Error::Parameter`] if `q` is not finite or is negative, if `q_ref` is not finite or not positive, or if the quotient
/// exceeds the largest f64.
///
/// ```
/// assert_eq!(coremix::metrics::relative_error(105.0, 100.0)?, 0.05);
/// # Ok::<(), coremix::Error>(())
/// ```
pub fn relative_error(q: f64, q_ref: f64) -> Result<f64> {
    not_negative("q", q)?;
    let wrong = |rule| Err(Error::parameter("q_ref", q_ref, rule));
    if !(q_ref.is_finite() && q_ref > 0.0) {
        return wrong("must be finite and positive");
    }
    let error = (q - q_ref) / q_ref;
    if error.is_finite() {
        Ok(error)
    } else {
        wrong("must be large enough for (q - q_ref) / q_ref to fit into an f64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_error_is_signed_and_refuses_meaningless_references() {
        assert_eq!(relative_error(3.0, 2.0).unwrap(), 0.5);
        assert_eq!(relative_error(1.0, 2.0).unwrap(), -0.5);
        assert_eq!(relative_error(0.0, 2.0).unwrap(), -1.0);
        let wrong = |q, q_ref| matches!(relative_error(q, q_ref), Err(Error::Parameter { .. }));
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(wrong(bad, 1.0) && wrong(1.0, bad));
        }
        assert!(wrong(1.0, 0.0) && wrong(1e300, 1e-300));
    }
}
