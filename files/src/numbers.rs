//! Which numbers columns hold, and what they are read as.

use arrow_schema::DataType;
use coremix::Element;
use half::f16;
use num_traits::AsPrimitive;
use std::fmt;
use std::str::FromStr;

/// The type of the numbers of rows: the element type of a [`Source`](coremix::data::Source).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// `u8`, computed with in `f32`.
    U8,
    /// `i8`, computed with in `f32`.
    I8,
    /// `half::f16`, computed with in `f32`.
    F16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl ElementType {
    /// The smallest type that holds all numbers of both exactly.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == other {
            self
        } else {
            // Neither kind of bytes holds the other, and the next type holds both.
            self.max(other).with_nan()
        }
    }

    /// The smallest one that has NaN besides: for missing values.
    pub(crate) fn with_nan(self) -> Self {
        self.max(Self::F16)
    }

    /// Bytes of a number.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Makes the list of the kinds of numbers that columns hold, from one line for each: how it is stored, its names in Arrow
/// and `NumPy`, the smallest element type that holds all such numbers exactly (integers of 64 bits as far as they go), and
/// whether a number is finite and an integer of at most 2^53.
macro_rules! kinds {
    ($($kind:ident: $stored:ty, $arrow:ident, $numpy:literal, $element:ident, |$x:ident| $sound:expr;)+) => {
        /// The type of the numbers of a column.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)+
        }

        impl Kind {
            /// The kind of numbers of a column; `None` if it holds something else.
            pub(crate) fn of(kind: &DataType) -> Option<Self> {
                match kind {
                    $(DataType::$arrow => Some(Self::$kind),)+
                    _ => None,
                }
            }

            /// The type of columns that hold such numbers as they are.
            pub(crate) fn stored(self) -> DataType {
                match self {
                    $(Self::$kind => DataType::$arrow,)+
                }
            }

            /// The kind of numbers by its name in `NumPy`, without the order of bytes.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($numpy => Some(Self::$kind),)+
                    _ => None,
                }
            }

            /// Bytes of a number.
            pub(crate) fn size(self) -> usize {
                match self {
                    $(Self::$kind => size_of::<$stored>(),)+
                }
            }

            /// The smallest element type that holds all of these numbers exactly.
            pub(crate) fn element(self) -> ElementType {
                match self {
                    $(Self::$kind => ElementType::$element,)+
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => stringify!($stored),)+
                })
            }
        }

        $(impl Stored for $stored {
            #[inline(always)]
            fn sound(self) -> bool {
                let $x = self;
                $sound
            }
        })+

        /// Puts numbers, as little-endian bytes, to every `stride`-th place; the first one that is not sound otherwise, unless
        /// it is NaN and may be, and what is wrong with it.
        pub(crate) fn put_bytes<T: Number>(
            kind: Kind,
            bytes: &[u8],
            out: &mut [T],
            stride: usize,
            lenient: bool,
        ) -> Result<(), (usize, &'static str)> {
            match kind {
                $(Kind::$kind => {
                    let values = bytes.as_chunks().0.iter();
                    put(values.map(|x| <$stored>::from_le_bytes(*x)), out, stride, lenient)
                })+
            }
        }
    };
}
kinds! {
    I8: i8, Int8, "i1", I8, |_x| true;
    U8: u8, UInt8, "u1", U8, |_x| true;
    I16: i16, Int16, "i2", F32, |_x| true;
    U16: u16, UInt16, "u2", F32, |_x| true;
    I32: i32, Int32, "i4", F64, |_x| true;
    U32: u32, UInt32, "u4", F64, |_x| true;
    I64: i64, Int64, "i8", F64, |x| x.unsigned_abs() <= EXACT;
    U64: u64, UInt64, "u8", F64, |x| x <= EXACT;
    F16: f16, Float16, "f2", F16, |x| x.is_finite();
    F32: f32, Float32, "f4", F32, |x| x.is_finite();
    F64: f64, Float64, "f8", F64, |x| x.is_finite();
}

impl Kind {
    /// The kind of numbers that a column holds or stands for: decimals, times that passed, and what dictionaries code.
    pub(crate) fn behind(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Dictionary(_, values) => Self::behind(values),
            DataType::Duration(_) => Some(Self::I64),
            // All of its values are missing.
            DataType::Null => Some(Self::U8),
            DataType::Decimal32(_, digits)
            | DataType::Decimal64(_, digits)
            | DataType::Decimal128(_, digits)
            | DataType::Decimal256(_, digits) => {
                Some(if *digits > 0 { Self::F64 } else { Self::I64 })
            }
            kind => Self::of(kind),
        }
    }
}

/// The largest integer up to which all are numbers of type `f64`.
const EXACT: u64 = 1 << 53;

/// A number as it is stored.
trait Stored: Copy + AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64> {
    /// Whether it is finite, and an integer of at most 2^53.
    fn sound(self) -> bool;
}

/// A type of numbers that rows can be read as: those of [`ElementType`]. Sealed, as [`Element`] is.
pub trait Number: Element + PartialEq + FromStr {
    /// This type as a value.
    const TYPE: ElementType;

    /// The nearest number of this type.
    #[doc(hidden)]
    fn nearest<S: AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64>>(x: S) -> Self;
}

/// A value that is missing.
pub(crate) fn nothing<T: Number>() -> T {
    T::nearest(f64::NAN)
}

macro_rules! number {
    ($t:ty, $name:ident, |$x:ident| $nearest:expr) => {
        impl Number for $t {
            const TYPE: ElementType = ElementType::$name;

            #[inline(always)]
            fn nearest<S: AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64>>($x: S) -> Self {
                $nearest
            }
        }
    };
}
number!(u8, U8, |x| x.as_());
number!(i8, I8, |x| AsPrimitive::<f32>::as_(x) as Self);
number!(f16, F16, |x| Self::from_f32(x.as_()));
number!(f32, F32, |x| x.as_());
number!(f64, F64, |x| x.as_());

/// Whether numbers of this kind can be read as `T`.
pub(crate) fn readable<T: Number>(kind: Kind, lossy: bool) -> Result<(), String> {
    let exact = kind.element();
    if exact.with(T::TYPE) == T::TYPE || (lossy && T::TYPE == ElementType::F32) {
        return Ok(());
    }
    let hint = match T::TYPE {
        ElementType::F32 => "; ask for f64, or for rounded numbers",
        _ => "",
    };
    Err(format!(
        "holds numbers of type {kind}, not all of which {} holds exactly{hint}",
        T::TYPE
    ))
}

/// Whether a number that is written as an integer is none of type `f64`.
fn is_inexact(number: &str) -> bool {
    // All integers of up to fifteen digits are.
    if number.len() <= 15 {
        return false;
    }
    let digits = number.trim_start_matches(['+', '-']);
    let digits = digits.trim_start_matches('0');
    if digits.len() <= 15 || !digits.bytes().all(|sign| sign.is_ascii_digit()) {
        return false;
    }
    let nearest = digits.parse::<f64>();
    nearest.is_ok_and(|x| x.is_finite() && format!("{x:.0}") != digits)
}

/// An error for a number that is written as an integer, and none of type `f64`.
pub(crate) fn exact(number: &str) -> Result<(), String> {
    if is_inexact(number) {
        let rule = "which f64 does not hold: mend it, or leave the column out";
        return Err(format!("{number} is an integer beyond 2^53, {rule}"));
    }
    Ok(())
}

/// Why a number cannot be read.
pub(crate) const UNSOUND: &str = "a value is infinite, or an integer beyond 2^53: mend it";
/// Why NaN cannot be read.
const IS_NAN: &str = "a value is NaN: mend it, or allow missing values";
/// Why a value that is not there cannot be read.
pub(crate) const NULL: &str = "a null: fill it in, or take the row out, or allow missing values";
/// Why missing values cannot be read.
pub(crate) const NO_NAN: &str = "missing values need numbers of type f16, f32 or f64";
/// The cure in errors that is an option: [`Missing::Keep`](crate::Missing::Keep), which programs call by names of their own.
pub const ALLOW: &str = ", or allow missing values";

fn put<S: Stored, T: Number>(
    values: impl Iterator<Item = S> + Clone,
    out: &mut [T],
    stride: usize,
    lenient: bool,
) -> Result<(), (usize, &'static str)> {
    // No branch for each number.
    let mut sound = true;
    let mut put = |(out, x): (&mut T, S)| {
        sound &= x.sound();
        *out = T::nearest(x);
    };
    match stride {
        1 => out.iter_mut().zip(values.clone()).for_each(&mut put),
        _ => {
            let places = out.iter_mut().step_by(stride);
            places.zip(values.clone()).for_each(&mut put);
        }
    }
    if sound {
        return Ok(());
    }
    let nan = |x: S| AsPrimitive::<f64>::as_(x).is_nan();
    let mut values = values.enumerate();
    match values.find(|(_, x)| !(x.sound() || lenient && nan(*x))) {
        Some((place, x)) => Err((place, if nan(x) { IS_NAN } else { UNSOUND })),
        None => Ok(()),
    }
}
