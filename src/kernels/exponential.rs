//! Exponentials of many numbers at once, with the vectors of the processor.

use crate::base::float::Float;
use pulp::Simd;
use pulp::bytemuck::cast_slice_mut;

/// 1 / 13! .. 1 / 0!.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut inverses = [1.0; 14];
    let mut place = 13;
    let mut factorial = 1.0;
    let mut n = 0.0;
    while place > 0 {
        place -= 1;
        n += 1.0;
        factorial *= n;
        inverses[place] = 1.0 / factorial;
    }
    inverses
};

/// The exponential of numbers of at most 0, whose few last digits do not matter: to a few units in the last place of an
/// `f32`, or a hundred in that of an `f64`. A result below the least normal number is that number, or near it.
#[inline(always)]
pub(super) fn quick<F: Float, S: Simd>(simd: S, x: F::Vector<S>) -> F::Vector<S> {
    // $e^x = 2^n e^r$ with $r = x - n \ln 2$ at most half of ln 2 in size. The Taylor series of $e^r$ ends where the next
    // term is lost. Adding `WHOLE` leaves a whole number in the low bits.
    let splat = |number: F| F::splat(simd, number);
    let bounded = F::higher(simd, x, splat(F::LEAST_EXPONENT));
    let log2_e = splat(F::from_f64(std::f64::consts::LOG2_E));
    let shifted = F::times_plus(simd, bounded, log2_e, splat(F::WHOLE));
    let n = F::minus(simd, shifted, splat(F::WHOLE));
    let mut r = bounded;
    for part in F::LN_2 {
        r = F::times_plus(simd, n, splat(-part), r);
    }
    let mut sum = splat(F::from_f64(INVERSE_FACTORIALS[14 - F::TERMS]));
    for factor in &INVERSE_FACTORIALS[15 - F::TERMS..] {
        sum = F::times_plus(simd, sum, r, splat(F::from_f64(*factor)));
    }
    let mut power = shifted;
    for power in cast_slice_mut(std::slice::from_mut(&mut power)) {
        *power = F::power_of_two(*power);
    }
    F::times(simd, sum, power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::simd::{LANES, kernel};

    kernel! {
        fn quick_of[F: Float](x: &mut [F]) = quick_in_place
    }

    fn quick_in_place<F: Float, S: Simd>(simd: S, x: &mut [F]) {
        for x in F::vectors_mut::<S>(x).0 {
            *x = super::quick::<F, S>(simd, *x);
        }
    }

    fn quick<F: Float>(x: F) -> F {
        let mut lanes = [x; LANES];
        quick_of(&mut lanes);
        lanes[LANES - 1]
    }

    #[test]
    fn quick_ones_are_those_of_the_library() {
        for i in 0..200_000 {
            let x = -4.3e-4 * f64::from(i);
            let got = quick(x);
            let expected = x.exp();
            assert!((got - expected).abs() <= 2e-14 * expected, "{x}: {got}");
            let x = x as f32;
            let got = f64::from(quick(x));
            let expected = f64::from(x).exp();
            assert!(
                (got - expected).abs() <= 4e-7 * expected,
                "{x}: {got} {expected}"
            );
        }
        assert_eq!((quick(0f32), quick(0f64)), (1.0, 1.0));
        for x in [-88.0, -1e30, f32::NEG_INFINITY] {
            assert!(quick(x) < 2e-38 && quick(x) >= 0.0);
            assert!(quick(f64::from(9.0 * x)) < 1e-307);
        }
    }
}
