//! The numbers of a record batch: read where they lie, or decompressed once for all who need them.

use super::layout::{Batch, Length, Part};
use crate::ReadAt;
use crate::fault::{at, invalid};
use crate::numbers::{Number, UNSOUND, put_bytes};
use arrow_ipc::CompressionType;
use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

/// The buffers of the columns of a compressed batch.
pub(super) struct Decoded {
    columns: Vec<Buffers>,
}

#[derive(Default)]
struct Buffers {
    values: Vec<u8>,
    nulls: Vec<u8>,
    lists: Vec<u8>,
    offsets: Vec<u8>,
}

/// One of the buffers of a column.
#[derive(Clone, Copy)]
enum Which {
    Values,
    Nulls,
    Lists,
    Offsets,
}

impl Part {
    fn range(&self, which: Which) -> Option<&Range<u64>> {
        let lists = self.lists.as_ref();
        match which {
            Which::Values => Some(&self.values),
            Which::Nulls => self.nulls.as_ref(),
            Which::Lists => lists?.nulls.as_ref(),
            Which::Offsets => match &lists?.length {
                Length::Offsets(range, _) => Some(range),
                Length::Fixed(_) => None,
            },
        }
    }
}

impl Decoded {
    /// Decompresses the buffers that are needed.
    pub(super) fn new(
        bytes: &dyn ReadAt,
        batch: &Batch,
        codec: CompressionType,
    ) -> io::Result<Self> {
        let columns = batch.parts.iter().map(|part| {
            let make = |which: Which, needed: usize| match part.range(which) {
                None => Ok(Vec::new()),
                Some(range) => decompress(bytes, range, codec, needed),
            };
            let offsets = match part.lists.as_ref().map(|lists| &lists.length) {
                Some(Length::Offsets(_, size)) if batch.rows > 0 => (batch.rows + 1) * size,
                _ => 0,
            };
            Ok(Buffers {
                values: make(Which::Values, part.count * part.kind.size())?,
                nulls: make(Which::Nulls, part.count.div_ceil(8))?,
                lists: make(Which::Lists, batch.rows.div_ceil(8))?,
                offsets: make(Which::Offsets, offsets)?,
            })
        });
        let columns = columns.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { columns })
    }
}

/// A buffer after its length: `needed` bytes at least, and not much more.
fn decompress(
    bytes: &dyn ReadAt,
    range: &Range<u64>,
    codec: CompressionType,
    needed: usize,
) -> io::Result<Vec<u8>> {
    /// What buffers may have after their numbers.
    const PADDING: usize = 1 << 16;
    let damaged = |what: String| invalid(format!("damaged: a buffer {what}"));
    if needed == 0 {
        return Ok(Vec::new());
    }
    let mut stored = vec![0; (range.end - range.start) as usize];
    bytes.read_at(range.start, &mut stored)?;
    let Some((length, stored)) = stored.split_first_chunk() else {
        return Err(damaged("has no length".into()));
    };
    let length = i64::from_le_bytes(*length);
    if length == -1 {
        return match stored.len() >= needed {
            true => Ok(stored[..needed].to_vec()),
            false => Err(damaged("is too short".into())),
        };
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length < needed || length > needed.saturating_mul(2).saturating_add(PADDING) {
        return Err(damaged(format!(
            "of {length} bytes, where {needed} are needed"
        )));
    }
    let mut out = Vec::with_capacity(needed);
    let found = match codec {
        CompressionType::LZ4_FRAME => {
            let decoder = lz4_flex::frame::FrameDecoder::new(stored);
            decoder.take(needed as u64).read_to_end(&mut out)
        }
        CompressionType::ZSTD => {
            let decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
            decoder.take(needed as u64).read_to_end(&mut out)
        }
        other => {
            return Err(damaged(format!(
                "compressed by {other:?}, which is not read"
            )));
        }
    };
    match found.map_err(|error| damaged(format!("cannot be decompressed: {error}")))? == needed {
        true => Ok(out),
        false => Err(damaged("is too short".into())),
    }
}

/// A column of a batch.
pub(super) struct Column<'a> {
    pub(super) bytes: &'a dyn ReadAt,
    pub(super) name: &'a str,
    pub(super) batch: &'a Batch,
    pub(super) place: usize,
    pub(super) decoded: Option<Arc<Decoded>>,
}

impl Column<'_> {
    fn part(&self) -> &Part {
        &self.batch.parts[self.place]
    }

    /// Some bytes of a buffer.
    fn some(&self, which: Which, from: usize, len: usize) -> io::Result<Cow<'_, [u8]>> {
        let short = || invalid("damaged: a buffer is too short");
        if let Some(decoded) = &self.decoded {
            let buffers = &decoded.columns[self.place];
            let buffer = match which {
                Which::Values => &buffers.values,
                Which::Nulls => &buffers.nulls,
                Which::Lists => &buffers.lists,
                Which::Offsets => &buffers.offsets,
            };
            let found = buffer.get(from..).and_then(|rest| rest.get(..len));
            return found.map(Cow::Borrowed).ok_or_else(short);
        }
        let range = self.part().range(which).ok_or_else(short)?;
        if (from as u64).saturating_add(len as u64) > range.end - range.start {
            return Err(short());
        }
        let mut found = vec![0; len];
        self.bytes.read_at(range.start + from as u64, &mut found)?;
        Ok(Cow::Owned(found))
    }

    /// The first that is not there of some rows or numbers.
    fn null(&self, which: Which, from: usize, count: usize) -> io::Result<Option<usize>> {
        if self
            .part()
            .range(which)
            .is_none_or(|range| range.is_empty())
        {
            return Ok(None);
        }
        let bits = self.some(which, from / 8, (from + count).div_ceil(8) - from / 8)?;
        let there = |i: usize| bits[(from % 8 + i) / 8] >> ((from + i) % 8) & 1 == 1;
        Ok((0..count).find(|i| !there(*i)))
    }

    /// Where the numbers of rows begin, where lists have the length `dim`.
    fn offset(&self, row: usize, rows: usize, dim: usize) -> io::Result<usize> {
        let lists = self.part().lists.as_ref();
        let Some(Length::Offsets(_, size)) = lists.map(|lists| &lists.length) else {
            return Ok(row * dim);
        };
        let offsets = self.offsets(row, rows, *size)?;
        for (i, pair) in offsets.windows(2).enumerate() {
            let length = pair[1] - pair[0];
            if length != dim as i64 {
                let what = format!("a list of {length} numbers, where others have {dim}");
                return Err(at(self.name, self.batch.first + row + i, what));
            }
        }
        usize::try_from(offsets[0]).map_err(|_| invalid("damaged: a negative offset"))
    }

    fn offsets(&self, row: usize, rows: usize, size: usize) -> io::Result<Vec<i64>> {
        let bytes = self.some(Which::Offsets, row * size, (rows + 1) * size)?;
        Ok(match size {
            4 => {
                let (offsets, _) = bytes.as_chunks();
                let offsets = offsets.iter();
                offsets
                    .map(|offset| i64::from(i32::from_le_bytes(*offset)))
                    .collect()
            }
            _ => {
                let (offsets, _) = bytes.as_chunks();
                // Half of the range, so that differences do not overflow.
                let offset = |offset: &[u8; 8]| i64::from_le_bytes(*offset).clamp(-1, i64::MAX / 2);
                offsets.iter().map(offset).collect()
            }
        })
    }

    /// The numbers of the first list.
    pub(super) fn length(&self) -> io::Result<usize> {
        let lists = self.part().lists.as_ref();
        match lists.map(|lists| &lists.length) {
            None => Ok(1),
            Some(Length::Fixed(length)) => Ok(*length),
            Some(Length::Offsets(_, size)) => {
                let offsets = self.offsets(0, 1, *size)?;
                let length = usize::try_from(offsets[1] - offsets[0]).ok();
                let length = length.filter(|length| *length <= self.part().count);
                length.ok_or_else(|| invalid("damaged: a list of no valid length"))
            }
        }
    }

    /// Reads rows of the batch: to every `stride`-th place, or, for lists, one after the other.
    pub(super) fn read<T: Number>(
        &self,
        row: usize,
        rows: usize,
        out: &mut [T],
        stride: usize,
    ) -> io::Result<()> {
        let (part, first) = (self.part(), self.batch.first + row);
        let each = match &part.lists {
            None => 1,
            Some(_) => out.len() / rows.max(1),
        };
        let from = match &part.lists {
            None => row,
            Some(_) => {
                if let Some(null) = self.null(Which::Lists, row, rows)? {
                    return Err(at(self.name, first + null, "a null"));
                }
                self.offset(row, rows, each)?
            }
        };
        let count = rows * each;
        if let Some(null) = self.null(Which::Nulls, from, count)? {
            return Err(at(self.name, first + null / each.max(1), "a null"));
        }
        let size = part.kind.size();
        let bytes = self.some(Which::Values, from.saturating_mul(size), count * size)?;
        let put = put_bytes(part.kind, &bytes, out, stride);
        put.map_err(|place| at(self.name, first + place / each.max(1), UNSOUND))
    }
}
