//! In the place of `codec` where the feature `files` is off: no value has bytes. Checksums tell settings from others.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, ErrorKind, Write};

#[derive(Debug, Default)]
pub(super) struct Hasher(DefaultHasher);

impl Hasher {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(super) fn finalize(self) -> u32 {
        self.0.finish() as u32
    }
}

pub(super) fn read<T>(_: &[u8]) -> Option<(T, &[u8])> {
    None
}

pub(super) fn write<T: ?Sized>(_: &T, _: &mut dyn Write) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

macro_rules! serde_through {
    ($($any:tt)*) => {};
}
pub(crate) use serde_through;
