//! Sums that do not depend on their order: numbers of fixed point, added as integers.
//!
//! A number x with |x| <= 2^e is cut off at the unit 2^(e - 80) and becomes an integer. Integers are added exactly, so any
//! order and any grouping of the rows gives the same bits. A cut costs less than one unit: 2^-80 of the bound. An `f64`
//! that is at least 2^-27 of the bound has no digit below the unit, and loses nothing.

/// Binary digits between the bound and the unit.
const DIGITS: i32 = 80;

/// Terms whose sum stays within an `i128`.
pub(crate) const MOST_TERMS: u64 = 1 << 46;

/// Numbers of fixed point, up to a power of two in size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    exponent: i32,
}

impl Fixed {
    /// For numbers of at most this size.
    pub(crate) fn bounding(size: f64) -> Self {
        let bits = (size.abs().to_bits() >> 52) as i32;
        // 2^(bits - 1023) <= size < 2^(bits - 1022).
        Self {
            exponent: (bits - 1022).clamp(-1022, 1024),
        }
    }

    /// As it came with a message; exponents that no number has are brought into range.
    pub(crate) fn of_exponent(exponent: i32) -> Self {
        Self {
            exponent: exponent.clamp(-1022, 1024),
        }
    }

    pub(crate) fn exponent(self) -> i32 {
        self.exponent
    }

    /// Factors whose product is 2^(80 - e): that alone may be beyond the range of `f64`.
    pub(crate) fn factors(self) -> (f64, f64) {
        halves(DIGITS - self.exponent)
    }

    /// The number in units, cut off towards 0. Beyond the bound, and for NaN, it is some integer.
    #[inline(always)]
    pub(crate) fn cut(factors: (f64, f64), x: f64) -> i128 {
        (x * factors.0 * factors.1) as i128
    }

    /// A sum of such numbers, rounded once to the nearest `f64`.
    pub(crate) fn value(self, sum: i128) -> f64 {
        let (first, second) = halves(self.exponent - DIGITS);
        sum as f64 * first * second
    }
}

/// Two powers of two whose product is 2^exponent, for exponents of at most 2,000 in size.
fn halves(exponent: i32) -> (f64, f64) {
    let first = exponent / 2;
    (power(first), power(exponent - first))
}

fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_powers_of_two_above() {
        for size in [1.0, 1.5, 2.0, 3.9, 1e-300, 1e300, f64::MAX, 5e-324, 0.0] {
            let fixed = Fixed::bounding(size);
            let bound = 2f64.powi(fixed.exponent().min(1023));
            assert!(bound >= size || fixed.exponent() == 1024, "{size}");
            let cut = Fixed::cut(fixed.factors(), size);
            assert!(cut.unsigned_abs() <= 1 << DIGITS, "{size}");
            if size >= 1e-290 || size == 0.0 {
                assert_eq!(fixed.value(cut), size);
            }
        }
    }

    /// Numbers of 27 octaves are exact; the others lose less than a unit.
    #[test]
    fn a_cut_is_less_than_a_unit() {
        let fixed = Fixed::bounding(1000.0);
        let unit = 2f64.powi(fixed.exponent() - DIGITS);
        let mut x = 999.123_456_789;
        for octave in 0..120 {
            let back = fixed.value(Fixed::cut(fixed.factors(), x));
            assert!((back - x).abs() < unit);
            assert!(back == x || octave > 26);
            x *= -0.5;
        }
    }

    #[test]
    fn any_order_gives_the_same_sum() {
        let numbers: Vec<f64> = (1..1000)
            .map(|i| (f64::from(i) * 0.7).sin() / f64::from(i))
            .collect();
        let fixed = Fixed::bounding(1.0);
        let cut = |x: &f64| Fixed::cut(fixed.factors(), *x);
        let forward: i128 = numbers.iter().map(cut).sum();
        let backward: i128 = numbers.iter().rev().map(cut).sum();
        assert_eq!(forward, backward);
        let floats: f64 = numbers.iter().sum();
        assert!((fixed.value(forward) - floats).abs() < 1e-13);
    }
}
