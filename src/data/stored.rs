//! How numbers are stored in files, and what they are read as.

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
    pub(super) fn size(self) -> usize {
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
pub(super) type Decoder<T> = fn(&[u8], &mut [T]);

/// Numbers that can be read from a file.
pub trait Decode: Sized {
    /// What places hold before rows are read into them.
    const ZERO: Self;
    /// Reads numbers of this kind, one after the other; `None` where not all of them are numbers of this type, exactly.
    fn decoder(kind: Kind) -> Option<Decoder<Self>>;
}

/// A number of 16 bits: sign, 5 bits of exponent, 10 bits of fraction. Every one is a number of type `f32`.
struct Half(u16);

impl Half {
    fn from_le_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(bytes))
    }
}

impl From<Half> for f32 {
    fn from(Half(bits): Half) -> Self {
        let fraction = u32::from(bits & 0x3ff);
        let exponent = u32::from(bits >> 10 & 0x1f);
        let size = match exponent {
            // Multiples of 2^-24.
            0 => fraction as f32 * f32::from_bits((127 - 24) << 23),
            // Infinite or NaN.
            0x1f => f32::from_bits(0xff << 23 | fraction << 13),
            _ => f32::from_bits((exponent + 127 - 15) << 23 | fraction << 13),
        };
        Self::from_bits(size.to_bits() | u32::from(bits >> 15) << 31)
    }
}

impl From<Half> for f64 {
    fn from(half: Half) -> Self {
        Self::from(f32::from(half))
    }
}

macro_rules! decode {
    ($t:ty, $($kind:ident: $stored:ty),+) => {
        impl Decode for $t {
            const ZERO: Self = 0 as $t;

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
decode!(f32, F32: f32, F16: Half, U8: u8, I8: i8, U16: u16, I16: i16);
decode!(f64, F64: f64, F32: f32, F16: Half, U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32);

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers of 16 bits, by the definition of the format.
    #[test]
    fn half_precision() {
        for bits in 0..=u16::MAX {
            let found = f32::from(Half(bits));
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let expected = match exponent {
                0 => sign * fraction / 1024.0 * 2f64.powi(-14),
                31 if fraction == 0.0 => sign * f64::INFINITY,
                31 => f64::NAN,
                _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            };
            assert_eq!(found.is_nan(), expected.is_nan(), "{bits:#x}");
            if !found.is_nan() {
                assert_eq!(f64::from(found), expected, "{bits:#x}");
                assert_eq!(found.is_sign_negative(), sign < 0.0, "{bits:#x}");
            }
        }
    }
}
