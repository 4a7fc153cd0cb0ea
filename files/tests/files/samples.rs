//! Tables as files of all formats and settings.

use crate::common::below;
use arrow_array::types::Float16Type;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeListArray, ListArray, PrimitiveArray, RecordBatch, StringArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use half::f16;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::Rng;
use std::sync::Arc;

/// All types of numbers; the first one is u8, those before the eighth are numbers of type `f32`.
pub(crate) const KINDS: [DataType; 11] = [
    DataType::UInt8,
    DataType::Int8,
    DataType::Int16,
    DataType::UInt16,
    DataType::Float16,
    DataType::Float32,
    DataType::Int32,
    DataType::UInt32,
    DataType::Int64,
    DataType::UInt64,
    DataType::Float64,
];

/// A column of numbers of this type, and what they are.
pub(crate) fn numbers(kind: &DataType, n: usize, rng: &mut impl Rng) -> (ArrayRef, Vec<f64>) {
    macro_rules! integers {
        ($t:ty, $array:ty, $bits:expr) => {{
            // Now and then a long run, for encodings that count them.
            let run = below(rng, 3) == 0;
            let values: Vec<$t> = (0..n)
                .map(|i| match run {
                    true => (i / 50) as $t,
                    false => (rng.next_u64() >> (64 - $bits)) as $t,
                })
                .collect();
            let known = values.iter().map(|x| *x as f64).collect();
            (Arc::new(<$array>::from(values)) as ArrayRef, known)
        }};
    }
    let mut real = || (rng.next_u32() % 20_001) as f64 / 64.0 - 150.0;
    match kind {
        DataType::Float16 => {
            let values: Vec<f16> = (0..n).map(|_| f16::from_f64(real())).collect();
            let known = values.iter().map(|x| x.to_f64()).collect();
            (Arc::new(PrimitiveArray::<Float16Type>::from(values)), known)
        }
        DataType::Float32 => {
            let values: Vec<f32> = (0..n).map(|_| (real() * 1.1) as f32).collect();
            let known = values.iter().map(|x| f64::from(*x)).collect();
            (Arc::new(Float32Array::from(values)), known)
        }
        DataType::Float64 => {
            let values: Vec<f64> = (0..n).map(|_| real() * 1.1).collect();
            (Arc::new(Float64Array::from(values.clone())), values)
        }
        DataType::UInt8 => integers!(u8, UInt8Array, 8),
        DataType::Int8 => integers!(i8, Int8Array, 8),
        DataType::Int16 => integers!(i16, Int16Array, 16),
        DataType::UInt16 => integers!(u16, UInt16Array, 16),
        DataType::Int32 => integers!(i32, Int32Array, 32),
        DataType::UInt32 => integers!(u32, UInt32Array, 32),
        DataType::Int64 => integers!(i64, Int64Array, 53),
        DataType::UInt64 => integers!(u64, UInt64Array, 53),
        _ => unreachable!(),
    }
}

/// How lists are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lists {
    Small,
    Large,
    Fixed,
}

/// Lists of `each` of these numbers.
pub(crate) fn lists(values: ArrayRef, each: usize, lists: Lists) -> ArrayRef {
    let n = values.len() / each;
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let lengths = || std::iter::repeat_n(each, n);
    match lists {
        Lists::Small => {
            let offsets = OffsetBuffer::<i32>::from_lengths(lengths());
            Arc::new(ListArray::new(item, offsets, values, None))
        }
        Lists::Large => {
            let offsets = OffsetBuffer::<i64>::from_lengths(lengths());
            Arc::new(LargeListArray::new(item, offsets, values, None))
        }
        Lists::Fixed => Arc::new(FixedSizeListArray::new(item, each as i32, values, None)),
    }
}

/// A table of these columns, with a column of text before and one of lists of text after them.
pub(crate) fn table(columns: Vec<(&str, ArrayRef)>, nullable: bool) -> RecordBatch {
    let n = columns[0].1.len();
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..n).map(|i| format!("row {i}")),
    ));
    let mut all = vec![("text", text.clone())];
    all.extend(columns);
    all.push(("texts", lists(text, 1, Lists::Small)));
    let fields = all
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), nullable));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let arrays = all.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

/// A way to write Parquet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parquet {
    pub(crate) compression: Compression,
    pub(crate) second_version: bool,
    pub(crate) dictionary: bool,
    /// Rows of a group, of a page.
    pub(crate) group: usize,
    pub(crate) page: usize,
    pub(crate) encoding: Option<Encoding>,
}

pub(crate) fn compressions() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ]
}

impl Parquet {
    pub(crate) fn any(rng: &mut impl Rng) -> Self {
        Self {
            compression: compressions()[below(rng, 6)],
            second_version: below(rng, 2) == 1,
            dictionary: below(rng, 2) == 1,
            group: [17, 100, 512, 100_000][below(rng, 4)],
            page: [5, 40, 300, 100_000][below(rng, 4)],
            encoding: match below(rng, 3) {
                0 => Some(Encoding::BYTE_STREAM_SPLIT),
                _ => None,
            },
        }
    }

    pub(crate) fn write(self, table: &RecordBatch) -> Vec<u8> {
        let mut properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_dictionary_enabled(self.dictionary)
            .set_max_row_group_row_count(Some(self.group))
            .set_data_page_row_count_limit(self.page)
            .set_write_batch_size(self.page.min(1_024))
            .set_writer_version(match self.second_version {
                true => WriterVersion::PARQUET_2_0,
                false => WriterVersion::PARQUET_1_0,
            });
        if let Some(encoding) = self.encoding {
            for field in table.schema().fields() {
                let kind = field.data_type();
                if !self.dictionary && kind.is_floating() {
                    let name = field.name().as_str().into();
                    properties = properties.set_column_encoding(name, encoding);
                }
            }
        }
        let mut file = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut file, table.schema(), Some(properties.build())).unwrap();
        writer.write(table).unwrap();
        writer.close().unwrap();
        file
    }
}

/// A way to write Arrow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrow {
    pub(crate) compression: Option<arrow_ipc::CompressionType>,
    pub(crate) stream: bool,
    /// Rows of a batch.
    pub(crate) batch: usize,
}

impl Arrow {
    pub(crate) fn any(rng: &mut impl Rng) -> Self {
        Self {
            compression: [
                None,
                Some(arrow_ipc::CompressionType::LZ4_FRAME),
                Some(arrow_ipc::CompressionType::ZSTD),
            ][below(rng, 3)],
            stream: below(rng, 2) == 1,
            batch: [17, 100, 512, 100_000][below(rng, 4)],
        }
    }

    pub(crate) fn write(self, table: &RecordBatch) -> Vec<u8> {
        let options = IpcWriteOptions::default()
            .try_with_compression(self.compression)
            .unwrap();
        let n = table.num_rows();
        let parts = (0..n)
            .step_by(self.batch)
            .map(|from| table.slice(from, self.batch.min(n - from)));
        let mut file = Vec::new();
        let schema = table.schema();
        if self.stream {
            let writer = StreamWriter::try_new_with_options(&mut file, &schema, options);
            let mut writer = writer.unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.finish().unwrap();
        } else {
            let writer = FileWriter::try_new_with_options(&mut file, &schema, options);
            let mut writer = writer.unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.finish().unwrap();
        }
        file
    }
}

/// A table as CSV, written naively: `columns` of it, with a column of text before them.
pub(crate) fn csv(names: &[&str], columns: &[Vec<f64>], delimiter: char, header: bool) -> Vec<u8> {
    use std::fmt::Write;
    let mut text = String::new();
    let n = columns[0].len();
    if header {
        let names = names.join(&delimiter.to_string());
        writeln!(text, "text{delimiter}{names}").unwrap();
    }
    for i in 0..n {
        // Quotes, with a delimiter and the end of a line within.
        let end = if i % 3 == 0 { "\r\n" } else { "\n" };
        write!(text, "\"row{delimiter}{end}{i}\"").unwrap();
        for column in columns {
            let space = if i % 5 == 0 { " " } else { "" };
            write!(text, "{delimiter}{space}{}", column[i]).unwrap();
        }
        text.push_str(end);
    }
    text.into_bytes()
}
