//! The compact protocol of Thrift, as far as a file must be looked at before its decoder is trusted with it.

/// Fields within fields.
const DEEPEST: usize = 24;

/// Bytes that are read one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Types of fields, as they are numbered.
pub(super) mod kind {
    pub(in super::super) const STOP: u8 = 0;
    pub(in super::super) const TRUE: u8 = 1;
    pub(in super::super) const FALSE: u8 = 2;
    pub(in super::super) const BYTE: u8 = 3;
    pub(in super::super) const I16: u8 = 4;
    pub(in super::super) const I32: u8 = 5;
    pub(in super::super) const I64: u8 = 6;
    pub(in super::super) const DOUBLE: u8 = 7;
    pub(in super::super) const BINARY: u8 = 8;
    pub(in super::super) const LIST: u8 = 9;
    pub(in super::super) const SET: u8 = 10;
    pub(in super::super) const MAP: u8 = 11;
    pub(in super::super) const STRUCT: u8 = 12;
    pub(in super::super) const UUID: u8 = 13;
}

/// Why bytes are not what they must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wrong {
    /// They end too early.
    End,
    /// They are no such thing.
    Content(&'static str),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::End => "it ends too early",
            Self::Content(what) => what,
        })
    }
}

type Result<T> = std::result::Result<T, Wrong>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Wrong::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.left() as u64 {
            return Err(Wrong::End);
        }
        self.at += bytes as usize;
        Ok(())
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let found = self.bytes.get(self.at..).and_then(|left| left.get(..count));
        let found = found.ok_or(Wrong::End)?;
        self.at += count;
        Ok(found)
    }

    /// A number of seven bits in a byte.
    pub(super) fn unsigned(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Wrong::Content("a number has too many bytes"))
    }

    fn signed(&mut self) -> Result<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The value of a field that is an integer of 32 bits.
    pub(super) fn i32(&mut self, kind: u8) -> Result<i32> {
        if kind != kind::I32 {
            return Err(Wrong::Content("a field has another type"));
        }
        let value = self.signed()?;
        i32::try_from(value).map_err(|_| Wrong::Content("a number is too large"))
    }

    /// The number and the type of the next field of a structure; `None` at its end.
    pub(super) fn field(&mut self, last: &mut i16) -> Result<Option<(i16, u8)>> {
        let head = self.byte()?;
        let kind = head & 0xf;
        if kind == kind::STOP {
            return Ok(None);
        }
        let number = match head >> 4 {
            0 => i16::try_from(self.signed()?).ok(),
            step => last.checked_add(i16::from(step)),
        };
        *last = number.ok_or(Wrong::Content("a field has no valid number"))?;
        Ok(Some((*last, kind)))
    }

    /// The number and the type of the members of a list: each takes a byte at least.
    pub(super) fn list(&mut self) -> Result<(usize, u8)> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => self.unsigned()?,
            len => u64::from(len),
        };
        if len > self.left() as u64 {
            return Err(Wrong::Content("a list is longer than what follows"));
        }
        Ok((len as usize, head & 0xf))
    }

    /// Goes past a value.
    pub(super) fn skip(&mut self, kind: u8) -> Result<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, deep: usize) -> Result<()> {
        let deep = deep
            .checked_sub(1)
            .ok_or(Wrong::Content("fields lie too deep in others"))?;
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16 | kind::I32 | kind::I64 => self.unsigned().map(|_| ()),
            kind::DOUBLE => self.pass(8),
            kind::UUID => self.pass(16),
            kind::BINARY => {
                let len = self.unsigned()?;
                self.pass(len)
            }
            kind::LIST | kind::SET => {
                let (len, kind) = self.list()?;
                (0..len).try_for_each(|_| self.skip_member(kind, deep))
            }
            kind::MAP => {
                let len = self.unsigned()?;
                if len == 0 {
                    return Ok(());
                }
                if len > self.left() as u64 {
                    return Err(Wrong::Content("a map is longer than what follows"));
                }
                let kinds = self.byte()?;
                (0..len).try_for_each(|_| {
                    self.skip_member(kinds >> 4, deep)?;
                    self.skip_member(kinds & 0xf, deep)
                })
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_within(kind, deep)?;
                }
                Ok(())
            }
            _ => Err(Wrong::Content("a field has no valid type")),
        }
    }

    /// In lists, a truth value takes a byte.
    fn skip_member(&mut self, kind: u8, deep: usize) -> Result<()> {
        match kind {
            kind::TRUE | kind::FALSE => self.pass(1),
            kind => self.skip_within(kind, deep),
        }
    }
}

/// Groups of columns within each other, at most: the decoder calls itself for each.
const DEEPEST_SCHEMA: usize = 100;
/// Row groups, at most: the format numbers them in 16 bits.
const MOST_GROUPS: usize = 1 << 15;

/// Checks the footer of a Parquet file: no list is longer than what follows, and the schema is a tree that is not deep.
pub(super) fn check_footer(bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (2, kind::LIST) => {
                let (len, kind) = reader.list()?;
                let children = (0..len).map(|_| children(&mut reader, kind));
                check_tree(&children.collect::<Result<Vec<usize>>>()?)?;
            }
            (4, kind::LIST) => {
                let (len, kind) = reader.list()?;
                if len > MOST_GROUPS {
                    return Err(Wrong::Content("there are too many row groups"));
                }
                (0..len).try_for_each(|_| reader.skip_member(kind, DEEPEST))?;
            }
            (_, kind) => reader.skip(kind)?,
        }
    }
    Ok(())
}

/// The children of an element of the schema.
fn children(reader: &mut Reader<'_>, kind: u8) -> Result<usize> {
    if kind != kind::STRUCT {
        return Err(Wrong::Content("the schema is no list of structures"));
    }
    let (mut last, mut children) = (0, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match number {
            5 => {
                let found = usize::try_from(reader.i32(kind)?);
                children = found.map_err(|_| Wrong::Content("a column has no valid children"))?;
            }
            _ => reader.skip(kind)?,
        }
    }
    Ok(children)
}

/// Elements in the order of a tree, each with the number of its children.
fn check_tree(children: &[usize]) -> Result<()> {
    // Children to come on each level.
    let mut open: Vec<usize> = vec![1];
    for (place, &count) in children.iter().enumerate() {
        while open.last() == Some(&0) {
            open.pop();
        }
        let Some(level) = open.last_mut() else {
            return Err(Wrong::Content("the schema is more than a tree"));
        };
        *level -= 1;
        if count > children.len() - place - 1 {
            return Err(Wrong::Content("a column has more children than there are"));
        }
        if count > 0 {
            open.push(count);
        }
        if open.len() > DEEPEST_SCHEMA {
            return Err(Wrong::Content("columns lie too deep in others"));
        }
    }
    match open.iter().all(|count| *count == 0) {
        true => Ok(()),
        false => Err(Wrong::Content("the schema has fewer columns than it says")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_fields() {
        // 1: i32 = 150, 3: binary of 2 bytes, 20: true, the end.
        let bytes = [0x15, 0xac, 0x02, 0x28, 2, b'a', b'b', 0x01, 40, 0];
        let mut reader = Reader::new(&bytes);
        let mut last = 0;
        assert_eq!(reader.field(&mut last), Ok(Some((1, kind::I32))));
        assert_eq!(reader.i32(kind::I32), Ok(150));
        assert_eq!(reader.field(&mut last), Ok(Some((3, kind::BINARY))));
        assert_eq!(reader.skip(kind::BINARY), Ok(()));
        assert_eq!(reader.field(&mut last), Ok(Some((20, kind::TRUE))));
        assert_eq!(reader.skip(kind::TRUE), Ok(()));
        assert_eq!(reader.field(&mut last), Ok(None));
        assert_eq!(reader.at(), bytes.len());
        assert_eq!(reader.field(&mut last), Err(Wrong::End));
    }

    #[test]
    fn what_is_longer_than_it_can_be() {
        let skip = |kind, bytes: &[u8]| Reader::new(bytes).skip(kind);
        assert_eq!(skip(kind::LIST, &[0x38, 0, 0, 0]), Ok(()));
        let long = [0xf8, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0];
        assert!(skip(kind::LIST, &long).is_err());
        assert!(skip(kind::MAP, &long[1..]).is_err());
        assert!(skip(kind::BINARY, &[0xff, 0x7f, 1]).is_err());
        assert!(skip(kind::I64, &[0xff; 20]).is_err());
        assert!(skip(kind::STRUCT, &[0x1c; 1_000]).is_err());
        assert!(skip(14, &[0]).is_err());
    }

    #[test]
    fn schemas_are_trees() {
        assert_eq!(check_tree(&[2, 0, 2, 0, 0]), Ok(()));
        assert!(check_tree(&[1, 0, 0]).is_err());
        assert!(check_tree(&[3, 0, 0]).is_err());
        assert!(check_tree(&[usize::MAX, 0]).is_err());
        let mut deep = vec![1; 200];
        deep.push(0);
        assert!(check_tree(&deep).is_err());
        assert_eq!(check_tree(&deep[150..]), Ok(()));
    }
}
