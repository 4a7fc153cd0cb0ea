//! Rows of a batch that is not compressed, read where they lie.

use super::messages::{Place, damaged};
use crate::ReadAt;
use arrow_array::{ArrayRef, OffsetSizeTrait, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::{ArrayDataBuilder, layout};
use arrow_ipc::{FieldNode, MetadataVersion, RecordBatch};
use arrow_schema::{DataType, Schema};
use std::io;
use std::ops::Range;

/// The buffers of a column: its own, and then those of what its lists consist of.
pub(super) type Column = Vec<Level>;

pub(super) struct Level {
    /// Which values are there; empty where all are.
    pub(super) nulls: Range<u64>,
    /// Numbers, or where lists begin; empty where they are all of one length.
    pub(super) data: Range<u64>,
}

/// What is left of the lists of a batch.
struct Walk<'a> {
    place: &'a Place,
    nodes: Box<dyn Iterator<Item = &'a FieldNode> + 'a>,
    buffers: Box<dyn Iterator<Item = &'a arrow_ipc::Buffer> + 'a>,
    views: Box<dyn Iterator<Item = i64> + 'a>,
    version: MetadataVersion,
}

/// The columns at these places, which are sorted.
pub(super) fn columns(
    batch: RecordBatch<'_>,
    schema: &Schema,
    places: &[usize],
    place: &Place,
    version: MetadataVersion,
) -> io::Result<Vec<Column>> {
    let (nodes, buffers, views) = (batch.nodes(), batch.buffers(), batch.variadicBufferCounts());
    let mut walk = Walk {
        place,
        nodes: Box::new(nodes.into_iter().flatten()),
        buffers: Box::new(buffers.into_iter().flatten()),
        views: Box::new(views.into_iter().flatten()),
        version,
    };
    let mut columns = Vec::with_capacity(places.len());
    for (place, field) in schema.fields().iter().enumerate() {
        let mut levels = Vec::new();
        walk.column(field.data_type(), &mut levels)?;
        if places.binary_search(&place).is_ok() {
            columns.push(levels);
        }
    }
    Ok(columns)
}

impl Walk<'_> {
    /// Goes past a column and those within it.
    fn column(&mut self, kind: &DataType, levels: &mut Column) -> io::Result<()> {
        let few = || damaged("a batch has fewer columns than the file");
        let node = self.nodes.next().ok_or_else(few)?;
        let layout = layout(kind);
        let is_old_union =
            matches!(kind, DataType::Union(..)) && self.version < MetadataVersion::V5;
        let has_nulls = layout.can_contain_null_mask || is_old_union;
        let views = if layout.variadic {
            self.views.next()
        } else {
            Some(0)
        };
        let views = views
            .and_then(|views| usize::try_from(views).ok())
            .ok_or_else(few)?;
        let mut own = Vec::new();
        for _ in 0..(usize::from(has_nulls) + layout.buffers.len()).saturating_add(views) {
            own.push(self.place.part(self.buffers.next().ok_or_else(few)?)?);
        }
        let mut own = own.into_iter();
        let nulls = if has_nulls { own.next() } else { None };
        levels.push(Level {
            nulls: nulls.filter(|_| node.null_count() != 0).unwrap_or(0..0),
            data: own.next().unwrap_or(0..0),
        });
        match kind {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => self.column(item.data_type(), levels),
            DataType::Struct(fields) => {
                let mut fields = fields.iter();
                fields.try_for_each(|field| self.column(field.data_type(), levels))
            }
            DataType::Union(fields, _) => {
                let mut fields = fields.iter();
                fields.try_for_each(|(_, field)| self.column(field.data_type(), levels))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.column(ends.data_type(), levels)?;
                self.column(values.data_type(), levels)
            }
            _ => Ok(()),
        }
    }
}

/// Some rows of a column of numbers, or of lists of them.
pub(super) fn rows(
    bytes: &dyn ReadAt,
    kind: &DataType,
    column: &[Level],
    rows: Range<usize>,
) -> io::Result<ArrayRef> {
    let level = column.first().ok_or_else(|| damaged("a list of nothing"))?;
    let array = ArrayDataBuilder::new(kind.clone())
        .len(rows.len())
        .nulls(nulls(bytes, &level.nulls, rows.clone())?);
    let within = |item: &DataType, values| self::rows(bytes, item, &column[1..], values);
    let array = match kind {
        DataType::FixedSizeList(item, each) => {
            let each = usize::try_from(*each).map_err(damaged)?;
            let values = rows.start.saturating_mul(each)..rows.end.saturating_mul(each);
            array.add_child_data(within(item.data_type(), values)?.to_data())
        }
        DataType::List(item) | DataType::LargeList(item) => {
            let (ends, values) = match kind {
                DataType::List(_) => offsets::<i32>(bytes, &level.data, rows)?,
                _ => offsets::<i64>(bytes, &level.data, rows)?,
            };
            let values = within(item.data_type(), values)?;
            array.add_buffer(ends).add_child_data(values.to_data())
        }
        _ => {
            let size = kind.primitive_width();
            let size = size.ok_or_else(|| damaged("a column of another type"))?;
            array.add_buffer(part(bytes, &level.data, rows, size)?)
        }
    };
    Ok(make_array(
        array.align_buffers(true).build().map_err(damaged)?,
    ))
}

/// Where the lists of some rows end, counted from the first of their values, and where these are.
fn offsets<O: OffsetSizeTrait>(
    bytes: &dyn ReadAt,
    buffer: &Range<u64>,
    rows: Range<usize>,
) -> io::Result<(Buffer, Range<usize>)> {
    let ends = part(bytes, buffer, rows.start..rows.end + 1, size_of::<O>())?;
    let ends = ScalarBuffer::<O>::from(ends);
    if ends[0] < O::zero() || !ends.is_sorted() {
        return Err(damaged("a list ends before it begins"));
    }
    let own: Vec<O> = ends.iter().map(|end| *end - ends[0]).collect();
    let values = ends[0].as_usize()..ends[rows.len()].as_usize();
    Ok((Buffer::from_vec(own), values))
}

/// Some items of a buffer.
fn part(
    bytes: &dyn ReadAt,
    buffer: &Range<u64>,
    items: Range<usize>,
    size: usize,
) -> io::Result<Buffer> {
    let from = items.start as u64 * size as u64;
    if items.end as u64 > (buffer.end - buffer.start) / size as u64 {
        return Err(damaged("a buffer is too short"));
    }
    let mut found = vec![0; items.len() * size];
    bytes.read_at(buffer.start + from, &mut found)?;
    Ok(Buffer::from_vec(found))
}

fn nulls(
    bytes: &dyn ReadAt,
    buffer: &Range<u64>,
    values: Range<usize>,
) -> io::Result<Option<NullBuffer>> {
    if buffer.is_empty() {
        return Ok(None);
    }
    let (offset, len) = (values.start % 8, values.len());
    let bits = part(bytes, buffer, values.start / 8..values.end.div_ceil(8), 1)?;
    Ok(Some(NullBuffer::new(BooleanBuffer::new(bits, offset, len))))
}
