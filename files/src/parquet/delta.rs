//! Pages of bytes whose lengths are stored as differences: how many lengths there are is checked before the decoder makes
//! room for them.

use super::thrift::{Reader, Wrong};
use parquet::basic::Encoding;

/// Whether values are stored in such a way.
pub(super) fn is(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
    )
}

/// Checks the values of a page: no more lengths than the page has values.
pub(super) fn check(encoding: Encoding, values: &[u8], most: u32) -> Result<(), Wrong> {
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => pass(values, most).map(|_| ()),
        Encoding::DELTA_BYTE_ARRAY => {
            // The parts that values share with the ones before, and the rests.
            let rest = pass(values, most)?;
            pass(values.get(rest..).ok_or(Wrong::End)?, most).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Goes past lengths, and says where they end.
fn pass(bytes: &[u8], most: u32) -> Result<usize, Wrong> {
    let mut reader = Reader::new(bytes);
    let (block, parts) = (reader.unsigned()?, reader.unsigned()?);
    let count = reader.unsigned()?;
    reader.unsigned()?;
    if count > u64::from(most) {
        return Err(Wrong::Content("a page has more lengths than values"));
    }
    if parts == 0 || block > 1 << 20 || !block.is_multiple_of(parts) || block == 0 {
        return Err(Wrong::Content("lengths lie in blocks of no valid size"));
    }
    let part = block / parts;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        reader.unsigned()?;
        let widths = reader.bytes(parts as usize)?;
        for &width in widths {
            if left == 0 {
                break;
            }
            let bits = part.saturating_mul(u64::from(width));
            reader.bytes(bits.div_ceil(8) as usize)?;
            left = left.saturating_sub(part);
        }
    }
    Ok(reader.at())
}

/// Where the values of a page of version 1 begin: after its levels.
pub(super) fn after_levels(page: &[u8], levels: usize) -> Result<usize, Wrong> {
    let mut at = 0usize;
    for _ in 0..levels {
        let length = page.get(at..).and_then(|rest| rest.first_chunk());
        let length = u32::from_le_bytes(*length.ok_or(Wrong::End)?) as usize;
        at = at.saturating_add(4).saturating_add(length);
    }
    match at <= page.len() {
        true => Ok(at),
        false => Err(Wrong::End),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three lengths 1, 2, 3 in blocks of 128, in 4 parts, by hand.
    const LENGTHS: [u8; 9] = [0x80, 1, 4, 3, 2, 2, 0, 0, 0];

    #[test]
    fn lengths_that_are_more_than_values() {
        let mut lengths = LENGTHS.to_vec();
        lengths.push(0);
        assert_eq!(pass(&lengths, 3), Ok(10));
        assert!(pass(&lengths, 2).is_err());
        assert_eq!(pass(&LENGTHS, 3), Err(Wrong::End));
        // Differences of 3 bits, of which a part has 32.
        let mut wide = LENGTHS.to_vec();
        wide[6] = 3;
        wide.push(0);
        assert_eq!(pass(&wide, 3), Err(Wrong::End));
        wide.extend([0; 12]);
        assert_eq!(pass(&wide, 3), Ok(22));
        for wrong in [[0x80, 1, 0], [0x81, 1, 4], [0, 1, 1]] {
            let mut changed = lengths.clone();
            changed.splice(0..3, wrong);
            assert!(pass(&changed, 3).is_err(), "{wrong:?}");
        }
        let twice = [lengths.as_slice(), &lengths].concat();
        assert_eq!(check(Encoding::DELTA_BYTE_ARRAY, &twice, 3), Ok(()));
        assert!(check(Encoding::DELTA_BYTE_ARRAY, &lengths, 3).is_err());
        assert_eq!(
            check(Encoding::DELTA_LENGTH_BYTE_ARRAY, &lengths, 3),
            Ok(())
        );
    }

    #[test]
    fn levels_before_values() {
        let page = [2, 0, 0, 0, 9, 9, 1, 0, 0, 0, 9, 7];
        assert_eq!(after_levels(&page, 0), Ok(0));
        assert_eq!(after_levels(&page, 1), Ok(6));
        assert_eq!(after_levels(&page, 2), Ok(11));
        assert!(after_levels(&page, 3).is_err());
        assert!(after_levels(&[0xff; 8], 1).is_err());
    }
}
