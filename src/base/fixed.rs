//! Sums that do not depend on the order of their terms: numbers of fixed point, added as integers.

/// Binary digits below the unit.
const DIGITS: i32 = 60;

/// The largest integer of a single term: 2^27 of them can be added.
const LARGEST: f64 = (1u128 << 100) as f64;

/// Numbers that are cut off at 2^-60 of a unit, a power of two, and become integers of 128 bits. A number may be up to 2^40
/// times the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct Fixed {
    exponent: i32,
}

impl Fixed {
    /// In units of 2^`exponent`.
    pub(crate) const fn of(exponent: i32) -> Self {
        Self { exponent }
    }

    /// The unit is the least power of two above this size.
    #[must_use]
    pub fn bounding(size: f64) -> Self {
        Self::of((size.abs().to_bits() >> 52) as i32 - 1022)
    }

    /// For products of numbers of these two kinds.
    pub(crate) const fn times(self, other: Self) -> Self {
        Self::of(self.exponent + other.exponent)
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self::of(self.exponent.max(other.exponent))
    }

    pub(crate) fn unit(self) -> f64 {
        power(self.exponent)
    }

    /// The number as an integer; `None` if it is too large, or none.
    #[inline(always)]
    #[must_use]
    pub fn cut(self, x: f64) -> Option<i128> {
        // Two factors: their product alone can be beyond the range.
        let scaled = x * power(-self.exponent) * power(DIGITS);
        (scaled.abs() <= LARGEST).then_some(scaled as i128)
    }

    /// Takes a number into a sum of such integers; `None` if either is too large.
    #[inline(always)]
    pub(crate) fn count(self, x: f64, sum: &mut i128) -> Option<()> {
        *sum = sum.checked_add(self.cut(x)?)?;
        Some(())
    }

    /// The nearest number to a sum of such integers.
    #[must_use]
    pub fn value(self, sum: i128) -> f64 {
        sum as f64 * power(-DIGITS) * power(self.exponent)
    }
}

/// A power of two, for exponents that normal numbers have.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers down to 2^-7 of the unit are exact; others lose less than 2^-60 of it.
    #[test]
    fn what_is_cut_off_is_less_than_the_last_digit() {
        for size in [1.0, 999.123_456_789, 1e-200, 3e200] {
            let fixed = Fixed::bounding(size);
            assert!(fixed.unit() > size && fixed.unit() <= 2.0 * size);
            let mut x = size;
            for octave in 0..100 {
                let back = fixed.value(fixed.cut(x).unwrap());
                assert!((back - x).abs() < fixed.unit() * 2f64.powi(-DIGITS));
                assert!(back == x || octave > 6, "{size} {octave}");
                x *= -0.5;
            }
            assert_eq!(fixed.cut(size * 2f64.powi(42)), None);
        }
        assert_eq!(Fixed::bounding(1.0).cut(f64::NAN), None);
    }
}
