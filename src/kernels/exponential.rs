//! Exponentials of many numbers at once, with the vectors of the processor.

/// ln 2 in two parts; products of the first with exponents are exact.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// Below this the exponential is not a normal number, and is lost in any sum.
const LEAST: f64 = -708.0;

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
/// Implemented for `f32` and `f64`; [`Float`](crate::Float) names it, so that kernels can be generic.
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
                // $e^x = 2^n e^r$ with $r = x - n \ln 2$ at most half of ln 2 in size. The Taylor series of $e^r$ ends where
                // the next term is lost. Adding `$whole` leaves a whole number in the low bits.
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
}
