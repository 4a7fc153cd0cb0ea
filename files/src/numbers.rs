//! Which numbers columns hold, and what they are read as.

use arrow_schema::DataType;
use coremix::Element;
use half::f16;
use num_traits::AsPrimitive;
use std::fmt;

/// What rows are read as: the element type of a [`Source`](coremix::data::Source).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// `u8`, computed with in `f32`.
    U8,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl std::str::FromStr for ElementType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "u8" => Ok(Self::U8),
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(format!("{name:?} is no element type; u8, f32 and f64 are")),
        }
    }
}

/// The type of the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Kind {
    /// The kind of numbers of a column; `None` if it holds something else.
    pub(crate) fn of(kind: &DataType) -> Option<Self> {
        Some(match kind {
            DataType::Int8 => Self::I8,
            DataType::UInt8 => Self::U8,
            DataType::Int16 => Self::I16,
            DataType::UInt16 => Self::U16,
            DataType::Int32 => Self::I32,
            DataType::UInt32 => Self::U32,
            DataType::Int64 => Self::I64,
            DataType::UInt64 => Self::U64,
            DataType::Float16 => Self::F16,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The smallest element type that holds all of these numbers exactly; integers of 64 bits as far as they go.
    pub(crate) fn element(self) -> ElementType {
        match self {
            Self::U8 => ElementType::U8,
            Self::I8 | Self::I16 | Self::U16 | Self::F16 | Self::F32 => ElementType::F32,
            Self::I32 | Self::U32 | Self::I64 | Self::U64 | Self::F64 => ElementType::F64,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A number as it is stored.
pub(crate) trait Stored:
    Copy + AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64>
{
    /// Whether it is finite, and an integer of at most 2^53.
    fn sound(self) -> bool;
}

/// The largest integer up to which all are numbers of type `f64`.
const EXACT: u64 = 1 << 53;

macro_rules! stored {
    ($($t:ty: |$x:ident| $sound:expr),+ $(,)?) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn sound(self) -> bool {
                let $x = self;
                $sound
            }
        }
    )+};
}
stored! {
    i8: |_x| true,
    u8: |_x| true,
    i16: |_x| true,
    u16: |_x| true,
    i32: |_x| true,
    u32: |_x| true,
    i64: |x| x.unsigned_abs() <= EXACT,
    u64: |x| x <= EXACT,
    f32: |x| x.is_finite(),
    f64: |x| x.is_finite(),
}

/// What rows can be read as: `u8`, `f32` or `f64`. Sealed, as [`Element`] is.
pub trait Number: Element + Default + PartialEq {
    /// The same, as a value.
    const TYPE: ElementType;

    /// The nearest number of this type.
    #[doc(hidden)]
    fn nearest<S: AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64>>(x: S) -> Self;
    /// A number that is written out.
    #[doc(hidden)]
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! number {
    ($t:ty, $name:ident) => {
        impl Number for $t {
            const TYPE: ElementType = ElementType::$name;

            #[inline(always)]
            fn nearest<S: AsPrimitive<u8> + AsPrimitive<f32> + AsPrimitive<f64>>(x: S) -> Self {
                x.as_()
            }

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    };
}
number!(u8, U8);
number!(f32, F32);
number!(f64, F64);

/// Whether numbers of this kind can be read as `T`.
pub(crate) fn readable<T: Number>(kind: Kind, lossy: bool) -> Result<(), String> {
    let exact = kind.element();
    if exact <= T::TYPE || (lossy && T::TYPE == ElementType::F32) {
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

/// Why a number cannot be read.
pub(crate) const UNSOUND: &str = "a value is NaN, infinite, or an integer beyond 2^53";

/// Puts numbers to every `stride`-th place; the first one that is not sound otherwise.
pub(crate) fn put<S: Stored, T: Number>(
    values: impl Iterator<Item = S> + Clone,
    out: &mut [T],
    stride: usize,
) -> Result<(), usize> {
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
    match sound {
        true => Ok(()),
        false => Err(values.into_iter().position(|x| !x.sound()).unwrap_or(0)),
    }
}

/// The same for numbers as bytes, little-endian.
pub(crate) fn put_bytes<T: Number>(
    kind: Kind,
    bytes: &[u8],
    out: &mut [T],
    stride: usize,
) -> Result<(), usize> {
    macro_rules! read {
        ($of:expr) => {
            put(bytes.as_chunks().0.iter().map(|x| $of(*x)), out, stride)
        };
    }
    match kind {
        Kind::I8 => read!(i8::from_le_bytes),
        Kind::U8 => read!(u8::from_le_bytes),
        Kind::I16 => read!(i16::from_le_bytes),
        Kind::U16 => read!(u16::from_le_bytes),
        Kind::I32 => read!(i32::from_le_bytes),
        Kind::U32 => read!(u32::from_le_bytes),
        Kind::I64 => read!(i64::from_le_bytes),
        Kind::U64 => read!(u64::from_le_bytes),
        Kind::F16 => read!(|x| f16::from_le_bytes(x).to_f32()),
        Kind::F32 => read!(f32::from_le_bytes),
        Kind::F64 => read!(f64::from_le_bytes),
    }
}
