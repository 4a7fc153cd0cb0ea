//! Vectors of numbers ([`SimdFloat`]), and what runs code with the longest that the processor has (chosen at run time by
//! `pulp`).
//!
//! A kernel is an `#[inline(always)]` function of the instruction set `S` (and the number `F`), which [`kernel!`] makes callable;
//! a plain loop that the compiler turns into vectors by itself is run by [`vectorised!`]. Both stay fast by three rules:
//!
//! - Everything that is called inside is `#[inline(always)]`, closures too (as arguments: `#[inline(always)] |x| ..`): what
//!   is not inlined is compiled for the oldest processor.
//! - Sums `[[Vector; N]; P]` that are to stay in registers are indexed by constants and unrolled loops alone: one other index,
//!   even where it never runs, puts all of them into memory.
//! - Scratch of vectors begins at a multiple of 64 bytes: vectors across two lines of the cache take twice as long.

use pulp::bytemuck::{NoUninit, Pod};
use pulp::{Arch, Simd};
use std::fmt::Debug;

/// Numbers side by side in a panel: a whole number of vectors of any processor.
pub(crate) const LANES: usize = 16;

/// `f32` or `f64` in vectors: [`Float`](super::float::Float) names it, so that kernels can be generic.
#[doc(hidden)]
pub trait SimdFloat: Pod + Debug + PartialOrd {
    /// As many numbers as a register holds.
    type Vector<S: Simd>: Pod + Debug;
    /// Which lanes of two vectors compare so.
    type Mask<S: Simd>: NoUninit;
    /// The numbers of the lanes of a panel.
    const NUMBERS: &'static [Self; LANES];
    /// Below this the exponential is not a normal number.
    const LEAST_EXPONENT: Self;
    /// Adding it leaves a whole number in the low bits.
    const WHOLE: Self;
    /// ln 2 in two parts; products of the first with exponents are exact.
    const LN_2: [Self; 2];
    /// Terms of the exponential series that an approximation takes.
    const TERMS: usize;

    /// $2^n$, given $n$ and [`WHOLE`](Self::WHOLE) in one number.
    fn power_of_two(shifted: Self) -> Self;
    /// $n$ up to 255, given $n$ and [`WHOLE`](Self::WHOLE) in one number.
    fn low_byte(shifted: Self) -> u8;
    /// Whole vectors, and the numbers that are left.
    fn vectors<S: Simd>(numbers: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);
    /// Fewer numbers than a vector has, and zeros.
    fn partial<S: Simd>(simd: S, numbers: &[Self]) -> Self::Vector<S>;
    fn splat<S: Simd>(simd: S, number: Self) -> Self::Vector<S>;
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a * b + c`.
    fn times_plus<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    fn lower<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn higher<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn less<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    fn equal<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// `a` where the mask is set, else `b`.
    fn select<S: Simd>(
        simd: S,
        mask: Self::Mask<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    fn least<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
}

macro_rules! simd_float {
    ($t:ty, $vector:ident, $mask:ident, $vectors:ident, $vectors_mut:ident, $partial:ident, $splat:ident, $select:ident,
        $sum:ident, $least:ident,
        $least_exponent:expr, $whole:expr, $ln_2:expr, $terms:expr, [$($name:ident = $of:ident($($arg:ident),*) -> $out:ident),*]) => {
        impl SimdFloat for $t {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;
            const NUMBERS: &'static [Self; LANES] = &[
                0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
            ];

            const LEAST_EXPONENT: Self = $least_exponent;
            const WHOLE: Self = $whole;
            const LN_2: [Self; 2] = $ln_2;
            const TERMS: usize = $terms;

            #[inline(always)]
            fn power_of_two(shifted: Self) -> Self {
                // The exponent's bits, moved to where the type has them.
                let bits = shifted.to_bits().wrapping_add(Self::MAX_EXP as _).wrapping_sub(1);
                Self::from_bits(bits << (Self::MANTISSA_DIGITS - 1))
            }
            #[inline(always)]
            fn low_byte(shifted: Self) -> u8 {
                shifted.to_bits() as u8
            }
            #[inline(always)]
            fn vectors<S: Simd>(numbers: &[Self]) -> (&[S::$vector], &[Self]) {
                S::$vectors(numbers)
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> (&mut [S::$vector], &mut [Self]) {
                S::$vectors_mut(numbers)
            }
            #[inline(always)]
            fn partial<S: Simd>(simd: S, numbers: &[Self]) -> S::$vector {
                simd.$partial(numbers)
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, number: Self) -> S::$vector {
                simd.$splat(number)
            }
            $(
                #[inline(always)]
                fn $name<S: Simd>(simd: S, $($arg: S::$vector),*) -> S::$out {
                    simd.$of($($arg),*)
                }
            )*
            #[inline(always)]
            fn select<S: Simd>(simd: S, mask: S::$mask, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$select(mask, a, b)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn least<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$least(a)
            }
        }
    };
}
simd_float!(
    f32, f32s, m32s, as_simd_f32s, as_mut_simd_f32s, partial_load_f32s, splat_f32s, select_f32s,
    reduce_sum_f32s, reduce_min_f32s,
    -87.0, 12_582_912.0, [0.693_359_4, -2.121_944_4e-4], 8,
    [
        plus = add_f32s(a, b) -> f32s,
        minus = sub_f32s(a, b) -> f32s,
        times = mul_f32s(a, b) -> f32s,
        times_plus = mul_add_e_f32s(a, b, c) -> f32s,
        lower = min_f32s(a, b) -> f32s,
        higher = max_f32s(a, b) -> f32s,
        less = less_than_f32s(a, b) -> m32s,
        equal = equal_f32s(a, b) -> m32s
    ]
);
simd_float!(
    f64, f64s, m64s, as_simd_f64s, as_mut_simd_f64s, partial_load_f64s, splat_f64s, select_f64s,
    reduce_sum_f64s, reduce_min_f64s,
    -708.0, 6_755_399_441_055_744.0, [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10], 12,
    [
        plus = add_f64s(a, b) -> f64s,
        minus = sub_f64s(a, b) -> f64s,
        times = mul_f64s(a, b) -> f64s,
        times_plus = mul_add_e_f64s(a, b, c) -> f64s,
        lower = min_f64s(a, b) -> f64s,
        higher = max_f64s(a, b) -> f64s,
        less = less_than_f64s(a, b) -> m64s,
        equal = equal_f64s(a, b) -> m64s
    ]
);

/// The numbers of a buffer from the first multiple of 64 bytes on: up to [`LANES`] fewer than there are.
#[inline(always)]
pub(crate) fn aligned<T>(numbers: &mut [T]) -> &mut [T] {
    let skipped = numbers.as_ptr().align_offset(64).min(numbers.len());
    &mut numbers[skipped..]
}

#[inline(always)]
pub(crate) const fn lanes<F: SimdFloat, S: Simd>() -> usize {
    size_of::<F::Vector<S>>() / size_of::<F>()
}

/// The first of the lanes that a comparison found; their number for none. A mask of bits has that of lane 0 lowest
/// (`first_true` of pulp 0.22 counts from the other end).
#[inline(always)]
pub(crate) fn first_lane<M: NoUninit>(mask: M, lanes: usize) -> usize {
    (lane_bits(mask, lanes).trailing_zeros() as usize).min(lanes)
}

/// The lanes that a comparison found, a bit for each.
#[inline(always)]
pub(crate) fn lane_bits<M: NoUninit>(mask: M, lanes: usize) -> u64 {
    let bytes = pulp::bytemuck::bytes_of(&mask);
    match *bytes {
        [bits] => u64::from(bits),
        [low, high] => u64::from(u16::from_ne_bytes([low, high])),
        _ => {
            let masks = bytes.chunks_exact(bytes.len() / lanes).enumerate();
            masks.fold(0, |bits, (lane, mask)| {
                bits | u64::from(mask[0] & 1) << lane
            })
        }
    }
}

/// The processor, or the one that [`on_every_processor`] plays.
#[inline(always)]
pub(crate) fn processor() -> Arch {
    #[cfg(test)]
    if let Some(arch) = PLAYED.get() {
        return arch;
    }
    Arch::new()
}

/// Makes a function of a kernel: its parameters, in that order, are those of the body after the instruction set.
macro_rules! kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident[$($generics:tt)*]($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $body:path) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<$($generics)*>($($arg: $type),*) $(-> $out)? {
            #[allow(non_camel_case_types)]
            struct Kernel<$($arg),*>($($arg),*);
            impl<$($generics)*> pulp::WithSimd for Kernel<$($type),*> {
                type Output = $crate::base::simd::kernel!(@ $($out)?);

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, simd: S) -> Self::Output {
                    let Self($($arg),*) = self;
                    $body(simd, $($arg),*)
                }
            }
            $crate::base::simd::processor().dispatch(Kernel($($arg),*))
        }
    };
    (@) => { () };
    (@ $out:ty) => { $out };
}
pub(crate) use kernel;

/// Runs an expression compiled for the longest vectors the processor has.
///
/// Moving `Once` into the closure makes it callable once only: any other closure would be called through a
/// compiler-made function that is not inlined.
macro_rules! vectorised {
    ($body:expr) => {{
        let once = $crate::base::simd::Once;
        $crate::base::simd::processor().dispatch(
            #[inline(always)]
            || {
                let _moved: $crate::base::simd::Once = once;
                $body
            },
        )
    }};
}
pub(crate) use vectorised;

/// See [`vectorised`].
pub(crate) struct Once;

#[cfg(test)]
thread_local! {
    static PLAYED: std::cell::Cell<Option<Arch>> = const { std::cell::Cell::new(None) };
}

/// Runs a test with the vectors of every processor that this one can play.
#[cfg(test)]
pub(crate) fn on_every_processor(mut test: impl FnMut()) {
    let mut played = vec![None];
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::x86::{V3, V4};
        played.push(Some(Arch::Scalar));
        played.extend(V3::try_new().map(|v3| Some(Arch::V3(v3))));
        played.extend(V4::try_new().map(|v4| Some(Arch::V4(v4))));
    }
    for arch in played {
        PLAYED.set(arch);
        test();
    }
    PLAYED.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masks of one bit per lane, and of one number.
    #[test]
    fn the_first_lane_of_any_mask() {
        assert_eq!([first_lane(true, 1), first_lane(false, 1)], [0, 1]);
        for bits in 0..=255u8 {
            let first = (bits.trailing_zeros() as usize).min(8);
            assert_eq!(first_lane(bits, 8), first);
            let low = u16::from(bits);
            assert_eq!(first_lane(low, 16), if bits == 0 { 16 } else { first });
            assert_eq!(first_lane(low << 8, 16), 8 + first);
            let numbers: [u32; 8] =
                std::array::from_fn(|l| 0u32.wrapping_sub(u32::from(bits >> l & 1)));
            assert_eq!(first_lane(numbers, 8), first);
            let numbers: [u64; 4] =
                std::array::from_fn(|l| 0u64.wrapping_sub(u64::from(bits >> l & 1)));
            assert_eq!(first_lane(numbers, 4), first.min(4));
            assert_eq!(lane_bits(numbers, 4), u64::from(bits & 15));
            assert_eq!(lane_bits(low << 8, 16), u64::from(low << 8));
            assert_eq!(lane_bits(bits, 8), u64::from(bits));
        }
    }
}
