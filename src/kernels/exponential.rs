//! Exponentials of many numbers at once, with the vectors of the processor.

use crate::base::float::Float;
use crate::base::simd::{SimdFloat, vectorised};

/// Puts every number's exponential in its place, for numbers of at most 0: to 4 units in the last place, and 0 below e^-708.
pub(crate) fn exponentials(values: &mut [f64]) {
    vectorised!({
        for x in values {
            *x = exponential(*x);
        }
    });
}

/// $e^x = 2^n e^r$ with $r = x - n \ln 2$ at most half of ln 2 in size: there the Taylor series to the 13th power
/// is good to the last place.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    let held = x.max(f64::LEAST_EXPONENT);
    let shifted = held * std::f64::consts::LOG2_E + f64::WHOLE;
    let n = shifted - f64::WHOLE;
    let [high, low] = <f64 as SimdFloat>::LN_2;
    let r = (held - n * high) - n * low;
    let mut sum = INVERSE_FACTORIALS[0];
    for factor in &INVERSE_FACTORIALS[1..] {
        sum = sum * r + factor;
    }
    // Lost in any sum.
    let lost = x < f64::LEAST_EXPONENT;
    let within = if lost {
        0.0
    } else {
        sum * f64::power_of_two(shifted)
    };
    if x.is_nan() { x } else { within }
}

/// 1 / 13! .. 1 / 0!.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut all = [1.0; 14];
    let mut place = 13;
    let mut factorial = 1.0;
    let mut n = 0.0;
    while place > 0 {
        place -= 1;
        n += 1.0;
        factorial *= n;
        all[place] = 1.0 / factorial;
    }
    all
};

/// The exponential of a number of at most 0, whose few last digits do not matter: to a few units in the last place of an
/// `f32`, or a hundred in that of an `f64`. What would be no normal number is the least one that is, or near it.
#[inline(always)]
pub(super) fn quick<F: Float>(x: F) -> F {
    // As above.
    let held = if x > F::LEAST_EXPONENT {
        x
    } else {
        F::LEAST_EXPONENT
    };
    let shifted = held * F::from_f64(std::f64::consts::LOG2_E) + F::WHOLE;
    let n = shifted - F::WHOLE;
    let r = (held - n * F::LN_2[0]) - n * F::LN_2[1];
    let mut sum = F::from_f64(INVERSE_FACTORIALS[14 - F::TERMS]);
    for factor in &INVERSE_FACTORIALS[15 - F::TERMS..] {
        sum = sum * r + F::from_f64(*factor);
    }
    sum * F::power_of_two(shifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_ones_are_those_of_the_library() {
        for i in 0..200_000 {
            let x = -4.3e-4 * f64::from(i);
            let (got, of) = (quick(x), x.exp());
            assert!((got - of).abs() <= 2e-14 * of, "{x}: {got}");
            let x = x as f32;
            let (got, of) = (f64::from(quick(x)), f64::from(x).exp());
            assert!((got - of).abs() <= 4e-7 * of, "{x}: {got} {of}");
        }
        assert_eq!((quick(0f32), quick(0f64)), (1.0, 1.0));
        for x in [-88.0, -1e30, f32::NEG_INFINITY] {
            assert!(quick(x) < 2e-38 && quick(x) >= 0.0);
            assert!(quick(f64::from(9.0 * x)) < 1e-307);
        }
    }

    #[test]
    fn exponentials_are_those_of_the_library() {
        let values: Vec<f64> = (0..100_000).map(|i| -0.00707 * i as f64).collect();
        for some in [&values[..], &[0.0, -0.0, -1e-300, -707.9, 1e-16]] {
            let mut got = some.to_vec();
            exponentials(&mut got);
            for (x, got) in some.iter().zip(got) {
                let expected = x.exp();
                assert!(
                    (got - expected).abs() <= 4.0 * f64::EPSILON * expected,
                    "{x}: {got}"
                );
            }
        }
        let mut beyond = [-709.0, -1e9, f64::NEG_INFINITY];
        exponentials(&mut beyond);
        assert_eq!(beyond, [0.0; 3]);
        let mut unknown = [f64::NAN];
        exponentials(&mut unknown);
        assert!(unknown[0].is_nan());
    }
}
