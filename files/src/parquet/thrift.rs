//! What Thrift and delta coding declare before the crate `parquet` believes it: how long lists are, how deep a schema is, how
//! large a page becomes. `None` is a declaration that cannot be true.

/// Bytes that are not looked at yet.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

/// Types of fields, as they are numbered.
const BOOLEAN: std::ops::RangeInclusive<u8> = 1..=2;
const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Values within each other, at most.
const DEEPEST: usize = 24;

impl Rest<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// A number of seven bits in a byte.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The same with its sign in the last bit, not negative.
    fn size(&mut self) -> Option<u64> {
        self.number().filter(|n| n.is_multiple_of(2)).map(|n| n / 2)
    }

    /// The length of a list and the type of its members: each takes a byte at least.
    fn list(&mut self) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => usize::try_from(self.number()?).ok()?,
            len => usize::from(len),
        };
        (len <= self.0.len()).then_some((len, head & 0xf))
    }

    /// Goes through the fields of a structure: `field` goes past the value of each, told its number and type.
    fn structure(&mut self, mut field: impl FnMut(&mut Self, u64, u8) -> Option<()>) -> Option<()> {
        let mut number = 0;
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Some(());
            }
            number = match head >> 4 {
                0 => self.size()?,
                step => number + u64::from(step),
            };
            field(self, number, head & 0xf)?;
        }
    }

    /// Goes past a value.
    fn skip(&mut self, kind: u8, deep: usize) -> Option<()> {
        let deep = deep.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let len = self.number()?;
                self.pass(len)
            }
            // Footers have no maps, and no lists of truth values, about whose length there are two opinions.
            LIST | 10 => match self.list()? {
                (0, _) => Some(()),
                (_, kind) if BOOLEAN.contains(&kind) => None,
                (len, kind) => (0..len).try_for_each(|_| self.skip(kind, deep)),
            },
            STRUCT => self.structure(|rest, _, kind| rest.skip(kind, deep)),
            _ => None,
        }
    }
}

/// Whether the lists of a footer are no longer than what follows, there are no more row groups than can be numbered in 16
/// bits, and the schema is a tree of at most 100 levels: the crate makes room for the lists, and calls itself for each level.
/// A field that is declared as one type and read as another is not found out here.
pub(super) fn is_sound(footer: &[u8]) -> bool {
    let field = |rest: &mut Rest<'_>, number, kind| match (number, kind) {
        (2, LIST) => rest.schema(),
        (4, LIST) if Rest(rest.0).list()?.0 > 1 << 15 => None,
        _ => rest.skip(kind, DEEPEST),
    };
    Rest(footer).structure(field).is_some()
}

impl Rest<'_> {
    fn schema(&mut self) -> Option<()> {
        let (len, _) = self.list()?;
        // Children to come on each level.
        let mut open = vec![1];
        for _ in 0..len {
            let mut children = 0;
            self.structure(|rest, number, kind| match (number, kind) {
                (5, I32) => rest.size().map(|n| children = n),
                _ => rest.skip(kind, DEEPEST),
            })?;
            *open.last_mut()? -= 1;
            if children > 0 {
                open.push(children);
            }
            while open.last() == Some(&0) {
                open.pop();
            }
            if children > len as u64 || open.len() > 100 {
                return None;
            }
        }
        open.is_empty().then_some(())
    }
}

/// The size of a page after and before decompression: the second and the third field of its header, which all writers write
/// first. Another field of the same number later in the header is not found out here.
pub(super) fn page_sizes(header: &[u8]) -> Option<[u64; 2]> {
    let mut rest = Rest(header);
    let mut next = || match rest.byte()? == 0x10 | I32 {
        true => rest.size(),
        false => None,
    };
    let [_, uncompressed, compressed] = [next()?, next()?, next()?];
    Some([uncompressed, compressed])
}

impl Rest<'_> {
    /// Goes past numbers that are stored as differences, of which there are `most` at most.
    pub(super) fn differences(&mut self, most: u32) -> Option<()> {
        let (block, parts, count) = (self.number()?, self.number()?, self.number()?);
        self.number()?;
        if count > u64::from(most) || block > 1 << 20 || parts == 0 || block < parts {
            return None;
        }
        let part = block / parts;
        let mut left = count.saturating_sub(1);
        while left > 0 {
            self.number()?;
            let widths = self.0;
            self.pass(parts)?;
            for &width in &widths[..parts as usize] {
                if left > 0 {
                    self.pass((part * u64::from(width)).div_ceil(8))?;
                }
                left = left.saturating_sub(part);
            }
        }
        Some(())
    }

    /// Goes past levels after their length.
    pub(super) fn levels(&mut self) -> Option<()> {
        let (length, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        self.pass(u64::from(u32::from_le_bytes(*length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_trees() {
        let is_tree = |children: &[u8]| {
            // A list of structures, each with field 5.
            let mut bytes = vec![0xf0 | STRUCT, children.len() as u8 | 0x80, 1];
            children.iter().for_each(|n| bytes.extend([0x55, 2 * n, 0]));
            bytes[1..3].copy_from_slice(&[
                children.len() as u8 & 0x7f | 0x80,
                children.len() as u8 >> 7,
            ]);
            Rest(&bytes).schema().is_some()
        };
        assert!(is_tree(&[2, 0, 2, 0, 0]));
        assert!(!is_tree(&[1, 0, 0]));
        assert!(!is_tree(&[3, 0, 0]));
        assert!(!is_tree(&[63, 0]));
        let mut deep = vec![1; 150];
        deep.push(0);
        assert!(!is_tree(&deep));
        assert!(is_tree(&deep[100..]));
    }

    #[test]
    fn differences_that_are_more_than_values() {
        // Three numbers 1, 2, 3 in a block of 128, in 4 parts, by hand.
        let mut numbers = vec![0x80, 1, 4, 3, 2, 2, 0, 0, 0, 0];
        assert_eq!(Rest(&numbers).differences(3), Some(()));
        assert_eq!(Rest(&numbers).differences(2), None);
        assert_eq!(Rest(&numbers[..9]).differences(3), None);
        // Differences of 3 bits, of which a part has 32.
        numbers[6] = 3;
        assert_eq!(Rest(&numbers).differences(3), None);
        numbers.extend([0; 12]);
        assert_eq!(Rest(&numbers).differences(3), Some(()));
        assert_eq!(Rest(&[0x80, 1, 0, 3, 2]).differences(3), None);
    }
}
