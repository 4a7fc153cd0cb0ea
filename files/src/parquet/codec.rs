//! Pages that are compressed: they become as large as they say, or they are an error.

use parquet::basic::Compression;
use std::io::Read;

type Result<T> = std::result::Result<T, String>;

/// The bytes of a page: the first `plain` of them are not compressed, and all together are `size`.
pub(super) fn decompress(
    compression: Compression,
    stored: Vec<u8>,
    plain: usize,
    size: usize,
) -> Result<Vec<u8>> {
    if compression == Compression::UNCOMPRESSED || plain == stored.len() {
        return match stored.len() == size {
            true => Ok(stored),
            false => Err(length(stored.len(), size)),
        };
    }
    let input = &stored[plain..];
    let wanted = size - plain;
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(&stored[..plain]);
    if wanted == 0 {
        return Ok(out);
    }
    match compression {
        Compression::SNAPPY => {
            let says = snap::raw::decompress_len(input).map_err(|error| error.to_string())?;
            if says != wanted {
                return Err(length(says, wanted));
            }
            out.resize(size, 0);
            let mut decoder = snap::raw::Decoder::new();
            let found = decoder.decompress(input, &mut out[plain..]);
            exactly(found.map_err(|error| error.to_string())?, wanted)?;
        }
        Compression::GZIP(_) => {
            let decoder = flate2::read::MultiGzDecoder::new(input);
            to_end(decoder, wanted, &mut out)?;
        }
        Compression::ZSTD(_) => {
            out.resize(size, 0);
            let found = zstd::bulk::decompress_to_buffer(input, &mut out[plain..]);
            exactly(found.map_err(|error| error.to_string())?, wanted)?;
        }
        Compression::LZ4_RAW => {
            out.resize(size, 0);
            lz4(input, &mut out[plain..])?;
        }
        Compression::LZ4 => old_lz4(input, plain, size, &mut out)?,
        other => return Err(format!("pages compressed by {other} are not read")),
    }
    Ok(out)
}

fn length(found: usize, wanted: usize) -> String {
    format!("a page becomes {found} bytes, but says {wanted}")
}

fn exactly(found: usize, wanted: usize) -> Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(length(found, wanted)),
    }
}

/// No more than is wanted, and one byte to see that there is more.
fn to_end(decoder: impl Read, wanted: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut decoder = decoder.take(wanted as u64 + 1);
    let found = decoder
        .read_to_end(out)
        .map_err(|error| error.to_string())?;
    exactly(found, wanted)
}

fn lz4(input: &[u8], out: &mut [u8]) -> Result<()> {
    let found = lz4_flex::block::decompress_into(input, out);
    exactly(found.map_err(|error| error.to_string())?, out.len())
}

/// What was called LZ4 before it was written down: blocks with their sizes before them, frames, or one block.
fn old_lz4(input: &[u8], plain: usize, size: usize, out: &mut Vec<u8>) -> Result<()> {
    let from = out.len();
    out.resize(size, 0);
    if hadoop(input, &mut out[plain..]).is_some() || lz4(input, &mut out[plain..]).is_ok() {
        return Ok(());
    }
    out.truncate(from);
    to_end(lz4_flex::frame::FrameDecoder::new(input), size - plain, out)
}

/// Blocks after their sizes, in big-endian order: after and before decompression.
fn hadoop(mut input: &[u8], mut out: &mut [u8]) -> Option<()> {
    while !input.is_empty() {
        let (sizes, rest) = input.split_at_checked(8)?;
        let [to, from] = [&sizes[..4], &sizes[4..]].map(|part| {
            part.iter()
                .fold(0, |size, byte| size << 8 | usize::from(*byte))
        });
        let (block, rest) = rest.split_at_checked(from)?;
        let (place, left) = out.split_at_mut_checked(to)?;
        lz4(block, place).ok()?;
        (input, out) = (rest, left);
    }
    out.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::{GzipLevel, ZstdLevel};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn exactly_what_a_page_says() {
        let bytes: Vec<u8> = (0..5_000u32).map(|i| (i * i / 7) as u8).collect();
        let raw = lz4_flex::block::compress(&bytes);
        let mut hadoop = Vec::new();
        for part in bytes.chunks(2_000) {
            let block = lz4_flex::block::compress(part);
            hadoop.extend((part.len() as u32).to_be_bytes());
            hadoop.extend((block.len() as u32).to_be_bytes());
            hadoop.extend(block);
        }
        let snappy = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
        let zstd = zstd::bulk::compress(&bytes, 3).unwrap();
        for (codec, stored) in [
            (Compression::UNCOMPRESSED, bytes.clone()),
            (Compression::SNAPPY, snappy),
            (Compression::GZIP(GzipLevel::default()), gzip(&bytes)),
            (Compression::ZSTD(ZstdLevel::default()), zstd),
            (Compression::LZ4_RAW, raw.clone()),
            (Compression::LZ4, raw),
            (Compression::LZ4, hadoop),
            (Compression::LZ4, frame(&bytes)),
        ] {
            let found = decompress(codec, stored.clone(), 0, 5_000);
            assert_eq!(found.as_ref(), Ok(&bytes), "{codec}");
            for size in [4_999, 5_001] {
                assert!(
                    decompress(codec, stored.clone(), 0, size).is_err(),
                    "{codec}"
                );
            }
            // Levels before it that are not compressed.
            if codec != Compression::UNCOMPRESSED {
                let all = [&[1, 2, 3], stored.as_slice()].concat();
                let found = decompress(codec, all, 3, 5_003).unwrap();
                assert_eq!((&found[..3], &found[3..]), (&[1, 2, 3][..], &bytes[..]));
            }
            let cut = stored[..stored.len() / 2].to_vec();
            assert!(decompress(codec, cut, 0, 5_000).is_err(), "{codec}");
        }
    }

    /// A megabyte of zeros that says it has ten bytes: no more than those are made.
    #[test]
    fn bombs() {
        let zeros = vec![0; 1 << 20];
        for (codec, stored) in [
            (Compression::GZIP(GzipLevel::default()), gzip(&zeros)),
            (Compression::LZ4, frame(&zeros)),
            (
                Compression::ZSTD(ZstdLevel::default()),
                zstd::bulk::compress(&zeros, 3).unwrap(),
            ),
        ] {
            assert!(decompress(codec, stored, 0, 10).is_err(), "{codec}");
        }
    }
}
