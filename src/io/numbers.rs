//! Numbers as bytes, little-endian, bit for bit.

/// A number that a section of a file may hold.
pub trait Number: Copy {
    /// The kind, as the file has it.
    const KIND: u8;
    /// Bytes of one number.
    const SIZE: usize;
    /// Adds its bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// From its bytes, of which there are [`SIZE`](Self::SIZE).
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($t:ty, $kind:literal) => {
        impl Number for $t {
            const KIND: u8 = $kind;
            const SIZE: usize = size_of::<$t>();

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn of(bytes: &[u8]) -> Self {
                let mut number = [0; size_of::<$t>()];
                for (to, from) in number.iter_mut().zip(bytes) {
                    *to = *from;
                }
                Self::from_le_bytes(number)
            }
        }
    };
}
number!(f32, 0);
number!(f64, 1);
number!(u64, 2);
number!(i64, 3);
number!(u32, 4);
number!(u8, 5);

/// Bytes of a number of this kind; `None` if there is no such kind.
pub(super) fn size_of_kind(kind: u8) -> Option<usize> {
    let sizes = [
        f32::SIZE,
        f64::SIZE,
        u64::SIZE,
        i64::SIZE,
        u32::SIZE,
        u8::SIZE,
    ];
    sizes.get(usize::from(kind)).copied()
}
