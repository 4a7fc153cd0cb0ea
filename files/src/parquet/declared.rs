//! Declarations of Parquet are read before the crate `parquet` makes room for them: lengths of lists, sizes of pages, numbers of
//! values. `None` is a declaration that cannot be true.

use bytes::Buf;

/// Types of values in Thrift, as they are numbered.
const I32: u8 = 5;
const STRUCT: u8 = 12;
/// Values within each other, at most.
const DEEPEST: usize = 24;

fn byte(from: &mut &[u8]) -> Option<u8> {
    from.try_get_u8().ok()
}

/// A number of seven bits in a byte.
fn number(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(from)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

pub(super) fn pass(from: &mut &[u8], bytes: u64) -> Option<()> {
    *from = from.get(usize::try_from(bytes).ok()?..)?;
    Some(())
}

/// Whether no list of a footer is longer than what follows it.
pub(super) fn is_sound(mut footer: &[u8]) -> bool {
    skip(&mut footer, STRUCT, DEEPEST).is_some()
}

/// Goes past a value.
fn skip(from: &mut &[u8], kind: u8, deep: usize) -> Option<()> {
    let deep = deep.checked_sub(1)?;
    match kind {
        1 | 2 => Some(()),
        3 => pass(from, 1),
        4..=6 => number(from).map(|_| ()),
        7 => pass(from, 8),
        8 => number(from).and_then(|len| pass(from, len)),
        9 | 10 => {
            let head = byte(from)?;
            let len = match head >> 4 {
                15 => number(from)?,
                len => len.into(),
            };
            // Each member takes a byte at least; truth values, about whose length there are two opinions, are in no footer.
            let possible = len <= from.len() as u64 && (len == 0 || head & 0xf > 2);
            let mut members = 0..possible.then_some(len)?;
            members.try_for_each(|_| skip(from, head & 0xf, deep))
        }
        STRUCT => loop {
            let head = byte(from)?;
            match head {
                0 => return Some(()),
                1..16 => number(from).map(|_| ())?,
                _ => {}
            }
            skip(from, head & 0xf, deep)?;
        },
        _ => None,
    }
}

/// The statements of the header of a page.
pub(super) struct Header {
    /// Its size after and before decompression.
    pub(super) sizes: [u64; 2],
    /// Number of its values.
    pub(super) values: u64,
    pub(super) is_dictionary: bool,
}

/// Reads the first fields of a header, which all writers write in this order. Another field of the same number later in the
/// header is not found out here.
pub(super) fn header(mut from: &[u8]) -> Option<Header> {
    let from = &mut from;
    // Not negative, with its sign in the last bit.
    let size = |from: &mut _| number(from).filter(|n| n % 2 == 0).map(|n| n / 2);
    let mut field = || (byte(from)? == 0x10 | I32).then(|| size(from))?;
    let [kind, to, before] = [field()?, field()?, field()?];
    let mut next = byte(from)?;
    if next == 0x10 | I32 {
        // A checksum.
        number(from)?;
        next = byte(from)?;
    }
    // The header of its kind begins with the number of values. Pages of an index have none.
    let counts = next & 0xf == STRUCT && from.first() == Some(&(0x10 | I32));
    Some(Header {
        sizes: [to, before],
        values: if counts { size(&mut &from[1..])? } else { 0 },
        is_dictionary: kind == 2,
    })
}

/// Goes past numbers that are stored as differences, of which there are `most` at most.
pub(super) fn differences(from: &mut &[u8], most: u32) -> Option<()> {
    let block = number(from)?;
    let parts = number(from)?;
    let count = number(from)?;
    number(from)?;
    if count > u64::from(most) || block > 1 << 20 || parts == 0 || block < parts {
        return None;
    }
    let part = block / parts;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        number(from)?;
        let widths = *from;
        pass(from, parts)?;
        for &width in &widths[..parts as usize] {
            if left > 0 {
                pass(from, (part * u64::from(width)).div_ceil(8))?;
            }
            left = left.saturating_sub(part);
        }
    }
    Some(())
}

/// Goes past levels after their length.
pub(super) fn levels(from: &mut &[u8]) -> Option<()> {
    let length = from.try_get_u32_le().ok()?;
    pass(from, length.into())
}
