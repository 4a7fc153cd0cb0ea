//! Exponentials of many numbers at once, with the vectors of the processor.

use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};
use pulp::Simd;

/// ln 2 in two parts; products of the first with exponents are exact.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// Below this the exponential is not a normal number, and is lost in any sum.
const LEAST: f64 = -708.0;

/// Puts every number's exponential in its place, for numbers of at most 0: to 4 units in the last place, and 0 below e^-708.
pub(crate) fn exponentials(values: &mut [f64]) {
    vectorised!({
        for x in values {
            *x = exponential(*x);
        }
    });
}

/// The best of some components by their scores, of equals the one of the lowest number; its score $s$; and
/// $\sum_c e^{-\beta (s_c - s)}$ over all of them. `exponents` is scratch. The sum is 1 where there is one component, or
/// where none is within reach: then that is component 0 at infinity.
pub(crate) fn best_and_sum<F: Float>(
    ids: &[u32],
    scores: &[F],
    beta: f64,
    exponents: &mut Vec<f64>,
) -> (u32, f64, f64) {
    let (mut label, mut best) = (0, f64::INFINITY);
    for (&id, score) in ids.iter().zip(scores) {
        let score = score.to_f64();
        if score < best || (score == best && id < label) {
            (label, best) = (id, score);
        }
    }
    if ids.len() < 2 || best == f64::INFINITY {
        return (label, best, 1.0);
    }
    exponents.clear();
    exponents.extend(scores.iter().map(|s| -beta * (s.to_f64() - best)));
    exponentials(exponents);
    (label, best, exponents.iter().sum())
}

/// $e^x = 2^n e^r$ with $r = x - n \ln 2$ at most half of ln 2 in size: there the Taylor series to the 13th power
/// is good to the last place.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    /// Adding it leaves a whole number in the low bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    let held = x.max(LEAST);
    let shifted = held * std::f64::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = (held - n * LN_2[0]) - n * LN_2[1];
    let mut sum = INVERSE_FACTORIALS[0];
    for factor in &INVERSE_FACTORIALS[1..] {
        sum = sum * r + factor;
    }
    // The exponent's bits, moved to where a double has them.
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    let within = if x < LEAST { 0.0 } else { sum * power };
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

/// Exponentials whose few last digits do not matter, of numbers of at most 0.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Exponential: Sized {
    /// Below this the exponential is not a normal number.
    #[doc(hidden)]
    const LEAST_EXPONENT: Self;
    /// To a few units in the last place of an `f32`, or a hundred in that of an `f64`. What would be no normal number is the
    /// least one that is, or near it.
    #[doc(hidden)]
    fn quick(self) -> Self;
}

macro_rules! exponential {
    ($t:ty, $least:expr, $whole:expr, $bias:expr, $mantissa:expr, $parts:expr, $factors:expr) => {
        impl Exponential for $t {
            const LEAST_EXPONENT: Self = $least;

            #[inline(always)]
            fn quick(self) -> Self {
                // As above.
                const PARTS: [$t; 2] = $parts;
                const FACTORS: &[f64] = INVERSE_FACTORIALS.split_at(14 - $factors).1;
                let held = if self > $least { self } else { $least };
                let shifted = held * std::f64::consts::LOG2_E as $t + $whole;
                let n = shifted - $whole;
                let r = (held - n * PARTS[0]) - n * PARTS[1];
                let mut sum = FACTORS[0] as $t;
                for factor in &FACTORS[1..] {
                    sum = sum * r + *factor as $t;
                }
                let power = <$t>::from_bits(shifted.to_bits().wrapping_add($bias) << $mantissa);
                sum * power
            }
        }
    };
}
exponential!(
    f32,
    -87.0,
    12_582_912.0,
    127,
    23,
    [0.693_359_4, -2.121_944_4e-4],
    8
);
exponential!(f64, LEAST, 6_755_399_441_055_744.0, 1023, 52, LN_2, 12);

macro_rules! powers_of_two {
    ($name:ident, $t:ty, $bits:ty, $vectors:ident, $splat:ident, $max:ident, $add:ident, $sub:ident, $mul:ident, $mul_add:ident, $least:expr, $whole:expr, $mantissa:expr, $terms:expr) => {
        /// $2^x$ of a vector of numbers of at most 0, as good as [`Exponential::quick`].
        #[inline(always)]
        pub(super) fn $name<S: Simd>(simd: S, x: S::$vectors) -> S::$vectors {
            // ln(2)^i / i!, the highest power first.
            const FACTORS: [$t; $terms] = {
                let (mut factors, mut place, mut power) = ([1.0; $terms], $terms - 1, 1.0);
                while place > 0 {
                    place -= 1;
                    power *= std::f64::consts::LN_2;
                    factors[place] = (power * INVERSE_FACTORIALS[14 - $terms + place]) as $t;
                }
                factors
            };
            let held = simd.$max(x, simd.$splat($least));
            let mut shifted = simd.$add(held, simd.$splat($whole));
            let r = simd.$sub(held, simd.$sub(shifted, simd.$splat($whole)));
            let mut sum = simd.$splat(FACTORS[0]);
            for factor in &FACTORS[1..] {
                sum = simd.$mul_add(sum, r, simd.$splat(*factor));
            }
            let bits: &mut [$bits] =
                pulp::bytemuck::cast_slice_mut(std::slice::from_mut(&mut shifted));
            for bits in bits {
                *bits = bits.wrapping_add((<$t>::MAX_EXP - 1) as $bits) << $mantissa;
            }
            simd.$mul(sum, shifted)
        }
    };
}
powers_of_two!(
    powers_of_two_f32s,
    f32,
    u32,
    f32s,
    splat_f32s,
    max_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    mul_add_e_f32s,
    -126.0,
    12_582_912.0,
    23,
    8
);
powers_of_two!(
    powers_of_two_f64s,
    f64,
    u64,
    f64s,
    splat_f64s,
    max_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    mul_add_e_f64s,
    -1022.0,
    6_755_399_441_055_744.0,
    52,
    12
);

/// Numbers that are looked at together: most of them have none that counts.
const TOGETHER: usize = 4 * LANES;

/// $\sum_i e^{-\beta (s_i - s)}$ over all numbers that are not above `reach`, and some others, for numbers of at least `s`.
/// The exponentials are those of the number type, the sum is not.
pub(crate) fn sum_within<F: Float>(values: &[F], s: F, beta: f64, reach: F) -> f64 {
    // Beyond it, every difference is lost.
    let factor = F::from_f64(-beta.min(F::LARGEST_SCORE));
    let mut total = [0.0; LANES];
    vectorised!({
        for values in values.chunks(TOGETHER) {
            let mut found = false;
            for &value in values {
                found |= value <= reach;
            }
            if !found {
                continue;
            }
            let mut sums = [F::zero(); LANES];
            let (lines, rest) = values.as_chunks::<LANES>();
            for line in lines {
                for l in 0..LANES {
                    sums[l] += ((line[l] - s) * factor).quick();
                }
            }
            for (sum, &value) in sums.iter_mut().zip(rest) {
                *sum += ((value - s) * factor).quick();
            }
            for l in 0..LANES {
                total[l] += sums[l].to_f64();
            }
        }
    });
    total.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_ones_are_those_of_the_library() {
        for i in 0..200_000 {
            let x = -4.3e-4 * f64::from(i);
            let (got, of) = (x.quick(), x.exp());
            assert!((got - of).abs() <= 2e-14 * of, "{x}: {got}");
            let x = x as f32;
            let (got, of) = (f64::from(x.quick()), f64::from(x).exp());
            assert!((got - of).abs() <= 4e-7 * of, "{x}: {got} {of}");
        }
        assert_eq!((0f32.quick(), 0f64.quick()), (1.0, 1.0));
        for x in [-88.0, -1e30, f32::NEG_INFINITY] {
            assert!(x.quick() < 2e-38 && x.quick() >= 0.0);
            assert!(f64::from(9.0 * x).quick() < 1e-307);
        }
    }

    /// Lengths with and without a rest, numbers that are infinite, and none.
    #[test]
    fn sums_are_the_naive_ones() {
        for n in [0, 1, 15, 16, 64, 100, 257] {
            let value = |i: usize| match i % 7 {
                3 => f64::INFINITY,
                of => 0.01 * (i * of) as f64 - 3.0,
            };
            let values: Vec<f64> = (0..n).map(value).collect();
            for beta in [1e-3, 2.0, 1e3, f64::INFINITY] {
                let least = values.iter().fold(f64::INFINITY, |a, b| a.min(*b));
                let naive = values.iter().map(|v| match *v - least {
                    0.0 => 1.0,
                    t => (-beta * t).exp(),
                });
                let naive: f64 = naive.sum();
                let got = sum_within(&values, least, beta, f64::INFINITY);
                assert!((got - naive).abs() <= 1e-13 * naive, "{n} {beta}: {got}");
                let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
                let got = sum_within(&values, least as f32, beta, 1e30);
                assert!((got - naive).abs() <= 1e-5 * naive, "{n} {beta}: {got}");
            }
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
