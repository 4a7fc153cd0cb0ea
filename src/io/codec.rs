//! The formats of values and of checksums, and serde of types whose values are checked.

use std::io::{self, Write};

pub(super) use crc32fast::Hasher;

/// The first value of some bytes, and the bytes after it.
pub(super) fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}

pub(super) fn write<T: serde::Serialize + ?Sized>(value: &T, to: &mut dyn Write) -> io::Result<()> {
    let written = postcard::to_io(value, to);
    written.map(drop).map_err(io::Error::other)
}

/// Serde of types over one number type, in the form that another type has: to write it (`From<&T>`), and to check it when it
/// is read (`TryFrom`).
macro_rules! serde_through {
    ($($stored:ident: $($value:ident),+;)+) => {$($(
        impl<F: $crate::base::float::Float> ::serde::Serialize for $value<F> {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> ::std::result::Result<S::Ok, S::Error> {
                $stored::from(self).serialize(to)
            }
        }

        impl<'de, F: $crate::base::float::Float> ::serde::Deserialize<'de> for $value<F> {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                let stored = $stored::deserialize(from)?;
                stored.try_into().map_err(::serde::de::Error::custom)
            }
        }
    )+)+};
}
pub(crate) use serde_through;
