//! How numbers are stored in files, and what they are read as.

use coremix::Element;
use half::f16;

/// A type of numbers in a file, little-endian.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F16,
    F32,
    F64,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What turns stored numbers into others.
pub(crate) type Decoder<T> = fn(&[u8], &mut [T]);

/// Numbers that rows of [`NpyFile`](crate::NpyFile) and [`VectorFile`](crate::VectorFile) can be read as.
pub trait Decode: Element {
    /// Reads numbers of this kind, one after the other; `None` where not all of them are numbers of this type, exactly.
    #[doc(hidden)]
    fn decoder(kind: Kind) -> Option<Decoder<Self>>;
}

macro_rules! decode {
    ($t:ty, $($kind:ident: $stored:ty),+) => {
        impl Decode for $t {
            #[allow(unreachable_patterns)]
            fn decoder(kind: Kind) -> Option<Decoder<Self>> {
                match kind {
                    $(Kind::$kind => Some(|bytes, out| {
                        let (numbers, _) = bytes.as_chunks();
                        for (out, number) in out.iter_mut().zip(numbers) {
                            *out = <$t>::from(<$stored>::from_le_bytes(*number));
                        }
                    }),)+
                    _ => None,
                }
            }
        }
    };
}
decode!(u8, U8: u8);
decode!(f32, F32: f32, F16: f16, U8: u8, I8: i8, U16: u16, I16: i16);
decode!(f64, F64: f64, F32: f32, F16: f16, U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32);
