//! The numbers the crate computes with ([`Float`]) and the numbers data may be stored in ([`Element`]).

use crate::base::serde::{DeserializeOwned, Serialize};
use crate::base::simd::SimdFloat;
use std::fmt::{Debug, Display, LowerExp};
use std::ops::Neg;

/// `f32` or `f64`: the type of centred data, parameters and squared distances.
///
/// Sums over points, weights and free energies are always `f64`. Sealed: no other type has its vectors.
pub trait Float:
    Element<Float = Self>
    + Limits
    + SimdFloat
    + Serialize
    + DeserializeOwned
    + num_traits::NumAssign
    + Neg<Output = Self>
    + PartialOrd
    + Debug
    + Display
    + LowerExp
    + Send
    + Sync
    + 'static
{
    /// Largest absolute value accepted in data: differences of two values stay finite in `Self`, sums of
    /// their squares over 10^7 rows in `f64`.
    const LIMIT: f64;

    /// This value as `f64`, exactly.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
}

mod limits {
    /// Limits of a number type. They are no part of the interface.
    pub trait Limits: Sized {
        /// `f32` or `f64`.
        const NAME: &'static str;
        /// Machine epsilon.
        const EPSILON: f64;
        /// The smallest positive number: what a product can lose where it is too small for the type.
        const LEAST: f64;
        /// The largest cost: larger ones are held here, and ten times it is still finite.
        const LARGEST_COST: f64;
        /// Positive infinity.
        const INFINITY: Self;
        /// Largest exponent of two whose power and its reciprocal are both normal numbers.
        const MAX_EXPONENT: i32;
    }
}
pub(crate) use limits::Limits;

/// A value computed from data, held where sums of such values stay finite: heavy tails, wide components and means of rows that
/// know different coordinates can leave the hull of the rows.
pub(crate) fn held_in_range<F: Float>(value: f64) -> F {
    let most = 4.0 * F::LIMIT;
    F::from_f64(value.clamp(-most, most))
}

macro_rules! float {
    ($t:ty, $limit:expr, $largest_cost:expr, $max_exponent:expr) => {
        impl Limits for $t {
            const NAME: &'static str = stringify!($t);
            const EPSILON: f64 = <$t>::EPSILON as f64;
            const LEAST: f64 = <$t>::from_bits(1) as f64;
            const LARGEST_COST: f64 = $largest_cost;
            const INFINITY: Self = <$t>::INFINITY;
            const MAX_EXPONENT: i32 = $max_exponent;
        }

        impl Float for $t {
            const LIMIT: f64 = $limit;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
        }
    };
}
float!(f32, f32::MAX as f64 / 4.0, 1e37, 125);
float!(f64, 1e150, 1e305, 1020);

/// A type that data may be stored in: `f32`, `f64`; `u8`, `i8` and, with the feature `half`, `half::f16` and `half::bf16`, computed
/// in `f32`; or a type of your own.
pub trait Element: Copy + Debug + Default + Send + Sync + 'static {
    /// The type the crate computes in.
    type Float: Float;
    /// The stored value in the computing type, exactly.
    fn widen(self) -> Self::Float;
}

macro_rules! element {
    ($t:ty, $float:ty) => {
        impl Element for $t {
            type Float = $float;
            #[inline(always)]
            fn widen(self) -> $float {
                self as $float
            }
        }
    };
}
element!(u8, f32);
element!(i8, f32);
element!(f32, f32);
element!(f64, f64);

// Without branches or calls: loops over rows are compiled to whole vectors.
#[cfg(feature = "half")]
impl Element for half::bf16 {
    type Float = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

#[cfg(feature = "half")]
impl Element for half::f16 {
    type Float = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let sign = (bits & 0x8000) << 16;
        let unsigned = (bits & 0x7fff) << 13;
        // The exponent counts from 15 in `f16` and from 127 in `f32`: a factor of 2^112, also below the normal numbers.
        let finite = f32::from_bits(unsigned) * f32::from_bits((127 + 112) << 23);
        // NaN and infinity have the largest exponent.
        let magnitude = if unsigned >= 31 << 23 {
            unsigned | 255 << 23
        } else {
            finite.to_bits()
        };
        f32::from_bits(sign | magnitude)
    }
}
