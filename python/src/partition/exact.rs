//! Sums that do not depend on their order: numbers of fixed point, added as integers.
//!
//! A number is cut off at 2^-60 of a unit and becomes an integer of 128 bits. It may be 2^40 times the unit, and 2^27 such
//! numbers may be added; of usual ones, as many as there are.

/// Binary digits below the unit.
const DIGITS: i32 = 60;

/// The largest integer of a single number.
const LARGEST: f64 = (1u128 << 100) as f64;

/// A power of two, for exponents that normal numbers have.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// The least exponent whose power of two is not below this positive number; within what can be squared.
pub(super) fn exponent(size: f64) -> i32 {
    let exponent = (size.to_bits() >> 52) as i32 - 1022;
    exponent.clamp(-400, 400)
}

/// The number in units of 2^exponent; None if it is too large.
pub(super) fn cut(x: f64, exponent: i32) -> Option<i128> {
    // Two factors: their product alone can be beyond the range.
    let scaled = x * power(-exponent) * power(DIGITS);
    (scaled.abs() <= LARGEST).then_some(scaled as i128)
}

/// The nearest number to a sum in such units.
pub(super) fn value(sum: i128, exponent: i32) -> f64 {
    sum as f64 * power(-DIGITS) * power(exponent)
}

/// A sum of weights.
pub(super) fn weight(sum: i128) -> f64 {
    value(sum, 0)
}

/// A sum of weighted log-densities: in units of 2^20.
pub(super) fn nats(sum: i128) -> f64 {
    value(sum, NATS)
}

/// The exponent of log-densities.
pub(super) const NATS: i32 = 20;
