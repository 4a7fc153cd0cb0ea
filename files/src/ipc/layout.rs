//! Where the numbers of a record batch lie in the file.

use crate::fault::invalid;
use crate::numbers::Kind;
use arrow_ipc::{CompressionType, MetadataVersion, RecordBatch};
use arrow_schema::{DataType, Field, UnionMode};
use std::io;
use std::ops::Range;

/// A column of a batch.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// Numbers: as many as rows, or those of all lists.
    pub(super) count: usize,
    pub(super) values: Range<u64>,
    /// Which numbers are there, where some are not.
    pub(super) nulls: Option<Range<u64>>,
    pub(super) lists: Option<Lists>,
}

/// How the numbers of a column are shared out among rows.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    /// Which lists are there, where some are not.
    pub(super) nulls: Option<Range<u64>>,
    pub(super) length: Length,
}

#[derive(Clone, Debug)]
pub(super) enum Length {
    Fixed(usize),
    /// Where each begins, in 4 or 8 bytes.
    Offsets(Range<u64>, usize),
}

/// A record batch.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) compression: Option<CompressionType>,
    /// One for each column that is read.
    pub(super) parts: Vec<Part>,
}

/// What is left of the lists of a batch.
struct Walk<'a> {
    nodes: Box<dyn Iterator<Item = (usize, bool)> + 'a>,
    buffers: Box<dyn Iterator<Item = Option<Range<u64>>> + 'a>,
    views: Box<dyn Iterator<Item = i64> + 'a>,
    version: MetadataVersion,
}

fn damaged(what: impl std::fmt::Display) -> io::Error {
    invalid(format!("damaged: {what}"))
}

impl Batch {
    /// The columns at these places. `body` is where the numbers lie in the file.
    pub(super) fn new(
        batch: RecordBatch<'_>,
        fields: &[&Field],
        columns: &[usize],
        body: Range<u64>,
        version: MetadataVersion,
        first: usize,
    ) -> io::Result<Self> {
        let rows = usize::try_from(batch.length()).map_err(damaged)?;
        let nodes = batch
            .nodes()
            .ok_or_else(|| damaged("a batch has no columns"))?;
        let nodes = nodes.iter().map(|node| {
            let length = usize::try_from(node.length()).unwrap_or(usize::MAX);
            (length, node.null_count() != 0)
        });
        let buffers = batch
            .buffers()
            .ok_or_else(|| damaged("a batch has no buffers"))?;
        let buffers = buffers.iter().map(|buffer| {
            let from = u64::try_from(buffer.offset()).ok()?;
            let start = body.start.checked_add(from)?;
            let end = start.checked_add(u64::try_from(buffer.length()).ok()?)?;
            (end <= body.end).then_some(start..end)
        });
        let views = batch.variadicBufferCounts();
        let mut walk = Walk {
            nodes: Box::new(nodes),
            buffers: Box::new(buffers),
            views: Box::new(views.into_iter().flatten()),
            version,
        };
        let last = columns.iter().max().copied().unwrap_or(0);
        let mut parts = vec![None; columns.len()];
        for (place, field) in fields.iter().enumerate().take(last + 1) {
            if !columns.contains(&place) {
                walk.pass(field.data_type())?;
                continue;
            }
            let part = walk.part(field, rows)?;
            let same = columns.iter().zip(&mut parts);
            same.filter(|(column, _)| **column == place)
                .for_each(|(_, place)| *place = Some(part.clone()));
        }
        let compression = batch.compression().map(|compression| compression.codec());
        let parts = parts.into_iter().collect::<Option<Vec<_>>>();
        let batch = Self {
            first,
            rows,
            compression,
            parts: parts.ok_or_else(|| damaged("a batch has fewer columns than the file"))?,
        };
        batch.parts.iter().try_for_each(|part| batch.check(part))?;
        Ok(batch)
    }

    /// Whether there can be as many numbers as a column says.
    fn check(&self, part: &Part) -> io::Result<()> {
        /// Bytes that a few compressed ones can become.
        const SMALL: u64 = 1 << 26;
        const GROWTH: u64 = 1_000;
        let fits = |count: usize, size: usize, range: &Range<u64>| {
            let stored = range.end - range.start;
            let most = match self.compression {
                None => stored,
                Some(_) => SMALL.max(stored.saturating_mul(GROWTH)),
            };
            let needed = count
                .checked_mul(size)
                .and_then(|all| u64::try_from(all).ok());
            match needed.is_some_and(|needed| needed <= most) {
                true => Ok(()),
                false => Err(damaged(format!("{count} numbers in {stored} bytes"))),
            }
        };
        let bits = |count: usize, range: &Option<Range<u64>>| match range {
            None => Ok(()),
            Some(range) => fits(count.div_ceil(8), 1, range),
        };
        fits(part.count, part.kind.size(), &part.values)?;
        bits(part.count, &part.nulls)?;
        let Some(lists) = &part.lists else {
            return Ok(());
        };
        bits(self.rows, &lists.nulls)?;
        match &lists.length {
            Length::Fixed(length) if length.checked_mul(self.rows) != Some(part.count) => {
                Err(damaged("lists have another length than their column says"))
            }
            Length::Fixed(_) => Ok(()),
            Length::Offsets(range, size) if self.rows > 0 => {
                fits(self.rows.saturating_add(1), *size, range)
            }
            Length::Offsets(..) => Ok(()),
        }
    }
}

impl Walk<'_> {
    fn node(&mut self) -> io::Result<(usize, bool)> {
        self.nodes
            .next()
            .ok_or_else(|| damaged("a batch has fewer columns than the file"))
    }

    fn buffer(&mut self) -> io::Result<Range<u64>> {
        let next = self.buffers.next();
        let next = next.ok_or_else(|| damaged("a batch has fewer buffers than it needs"))?;
        next.ok_or_else(|| damaged("a buffer that is not in the file"))
    }

    fn pass_buffers(&mut self, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let next = self.buffers.next();
            next.ok_or_else(|| damaged("a batch has fewer buffers than it needs"))?;
        }
        Ok(())
    }

    /// A column that is read.
    fn part(&mut self, field: &Field, rows: usize) -> io::Result<Part> {
        let (length, has_nulls) = self.node()?;
        if length != rows {
            return Err(damaged(format!(
                "a column of {length} rows in a batch of {rows}"
            )));
        }
        let nulls = Some(self.buffer()?).filter(|_| has_nulls);
        if let Some(kind) = Kind::of(field.data_type()) {
            return Ok(Part {
                kind,
                count: rows,
                values: self.buffer()?,
                nulls,
                lists: None,
            });
        }
        let (item, length) = match field.data_type() {
            DataType::FixedSizeList(item, length) => {
                let length = usize::try_from(*length).map_err(damaged)?;
                (item, Length::Fixed(length))
            }
            DataType::List(item) => (item, Length::Offsets(self.buffer()?, 4)),
            DataType::LargeList(item) => (item, Length::Offsets(self.buffer()?, 8)),
            _ => return Err(damaged("a column of another type")),
        };
        let kind = Kind::of(item.data_type()).ok_or_else(|| damaged("lists of another type"))?;
        let (count, has_nulls) = self.node()?;
        let of_values = Some(self.buffer()?).filter(|_| has_nulls);
        Ok(Part {
            kind,
            count,
            values: self.buffer()?,
            nulls: of_values,
            lists: Some(Lists { nulls, length }),
        })
    }

    /// Goes past a column.
    fn pass(&mut self, kind: &DataType) -> io::Result<()> {
        self.node()?;
        match kind {
            DataType::Null => Ok(()),
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => {
                self.pass_buffers(3)
            }
            DataType::Utf8View | DataType::BinaryView => {
                let views = self
                    .views
                    .next()
                    .and_then(|count| usize::try_from(count).ok());
                let views = views.ok_or_else(|| damaged("a column of views without a count"))?;
                self.pass_buffers(views.saturating_add(2))
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                self.pass_buffers(2)?;
                self.pass(item.data_type())
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                self.pass_buffers(3)?;
                self.pass(item.data_type())
            }
            DataType::FixedSizeList(item, _) => {
                self.pass_buffers(1)?;
                self.pass(item.data_type())
            }
            DataType::Struct(fields) => {
                self.pass_buffers(1)?;
                fields
                    .iter()
                    .try_for_each(|field| self.pass(field.data_type()))
            }
            DataType::Union(fields, mode) => {
                let own = if *mode == UnionMode::Dense { 2 } else { 1 };
                let before = usize::from(self.version < MetadataVersion::V5);
                self.pass_buffers(own + before)?;
                fields
                    .iter()
                    .try_for_each(|(_, field)| self.pass(field.data_type()))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.pass(ends.data_type())?;
                self.pass(values.data_type())
            }
            _ => self.pass_buffers(2),
        }
    }
}
