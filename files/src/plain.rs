//! Text as it is read: in UTF-8, not compressed, and at any place.

use crate::fault::invalid;
use crate::format::Format;
use crate::options::Options;
use crate::table::{OnDisk, ReadAt, ReadFrom};
use encoding_rs::{DecoderResult, Encoding, UTF_8};
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::sync::Arc;

/// How files begin that are no text: which they are, and their format where it is read.
const OTHERS: [(&[u8], &str, Option<Format>); 11] = [
    (b"PK\x03\x04", "a zip archive, as .xlsx is", None),
    (b"\xd0\xcf\x11\xe0", "a workbook of Excel (.xls)", None),
    (b"BZh91AY&SY", "compressed by bzip2", None),
    (b"\xfd7zXZ\0", "compressed by xz", None),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", None),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", None),
    (b"%PDF-", "a PDF", None),
    (b"\x89HDF", "an HDF5 file", None),
    (b"PAR1", "a Parquet file", Some(Format::Parquet)),
    (b"ARROW1", "an Arrow file", Some(Format::Arrow)),
    (b"\x93NUMPY", "an .npy file", Some(Format::Npy)),
];
/// The first bytes of what gzip compresses.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Bytes that are looked at.
const HEAD: u64 = 256;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Bytes of a record of text, at most: a quote that is never closed would hold all of a file.
pub(crate) const RECORD: u64 = 16 << 20;

/// The format of a file without a name, by its first bytes: text, if nothing else.
pub(crate) fn format_of(bytes: &Arc<dyn ReadAt>) -> io::Result<Format> {
    let head = head(&mut ReadFrom::start(bytes))?;
    let known = OTHERS.iter().find(|(begin, ..)| head.starts_with(begin));
    Ok(known.and_then(|known| known.2).unwrap_or(Format::Csv))
}

fn head(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// A file that has no name, and goes when it is closed.
pub(crate) fn temporary(options: &Options) -> io::Result<File> {
    let folder = options.spool.clone().unwrap_or_else(std::env::temp_dir);
    let at = |error| invalid(format!("{}: {error}", folder.display()));
    tempfile::tempfile_in(&folder).map_err(at)
}

/// The bytes of a stream, or its text in UTF-8, in a temporary file that has no name and goes when it is closed.
pub(crate) fn spooled(
    name: &str,
    options: &Options,
    from: &mut dyn Read,
    encoding: Option<&'static Encoding>,
) -> io::Result<Arc<dyn ReadAt>> {
    let mut file = temporary(options)?;
    let written = match encoding {
        Some(encoding) => decode(from, &mut file, encoding),
        None => io::copy(from, &mut file).map(|_| ()),
    };
    let bytes = OnDisk::of(file, name.into())?;
    written.map_err(|error| {
        let line = line(&bytes, bytes.len()).unwrap_or(1);
        invalid(format!("line {line}: {error}"))
    })?;
    Ok(Arc::new(bytes))
}

/// The text of a file: as it is, or decompressed and decoded in a temporary file.
pub(crate) fn plain(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Arc<dyn ReadAt>> {
    let open = |packed: bool| -> Box<dyn Read> {
        let from = ReadFrom::start(&bytes);
        if packed {
            Box::new(Members(Some(GzDecoder::new(BufReader::new(from)))))
        } else {
            Box::new(from)
        }
    };
    let mut begin = head(&mut open(false))?;
    let packed = begin.starts_with(&GZIP);
    if packed {
        // Damage is met again where lines are counted.
        begin = head(&mut open(true)).unwrap_or_default();
    }
    if let Some((_, what, format)) = OTHERS.iter().find(|(magic, ..)| begin.starts_with(magic)) {
        let hint = match format {
            Some(_) => "say its format",
            None => "save or unpack it as CSV",
        };
        return Err(invalid(format!("is {what}, not text: {hint}")));
    }
    let encoding = match &options.encoding {
        Some(name) => Encoding::for_label(name.as_bytes())
            .ok_or_else(|| invalid(format!("an encoding of the name {name:?} is not known")))?,
        None => Encoding::for_bom(&begin).map_or(UTF_8, |(encoding, _)| encoding),
    };
    if encoding == UTF_8 && begin.contains(&0) {
        let what =
            "has bytes of value 0, which is no text in UTF-8: give its encoding, such as utf-16";
        return Err(invalid(what));
    }
    let other = Some(encoding).filter(|encoding| *encoding != UTF_8);
    if packed || other.is_some() {
        spooled(&bytes.name(), options, &mut open(packed), other)
    } else {
        Ok(bytes)
    }
}

/// The parts of a gzip file, one after the other. Zeros may follow each part, as tapes and blocks are filled up with.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = &mut self.0 {
            let read = part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let mut rest = self.0.take().map(GzDecoder::into_inner);
            while let Some(more) = &mut rest {
                let ahead = more.fill_buf()?;
                let zeros = ahead.iter().take_while(|byte| **byte == 0).count();
                if ahead.is_empty() {
                    rest = None;
                } else if zeros == 0 {
                    break;
                } else {
                    more.consume(zeros);
                }
            }
            self.0 = rest.map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Writes text in UTF-8, without its mark.
fn decode(from: &mut dyn Read, to: &mut File, encoding: &'static Encoding) -> io::Result<()> {
    let mut decoder = encoding.new_decoder();
    // Room for all that a piece becomes.
    let most = decoder.max_utf8_buffer_length_without_replacement(PIECE + 16);
    let mut bytes = Vec::new();
    let mut text = vec![0; most.unwrap_or(4 * PIECE)];
    loop {
        bytes.clear();
        (&mut *from).take(PIECE as u64).read_to_end(&mut bytes)?;
        let last = bytes.is_empty();
        let decoded = decoder.decode_to_utf8_without_replacement(&bytes, &mut text, last);
        to.write_all(&text[..decoded.2])?;
        match decoded.0 {
            DecoderResult::InputEmpty if last => return Ok(()),
            DecoderResult::InputEmpty => {}
            _ => return Err(invalid(format!("not text in {}", encoding.name()))),
        }
    }
}

/// The line of a place, counted as an editor does: `\n`, `\r` and both together end one.
pub(crate) fn line(bytes: &dyn ReadAt, place: u64) -> io::Result<u64> {
    let mut line = 1;
    let mut before = 0;
    each_byte(bytes, 0..place, |byte| {
        line += u64::from(byte == b'\r' || byte == b'\n' && before != b'\r');
        before = byte;
    })?;
    Ok(line)
}

pub(crate) fn each_byte(
    bytes: &dyn ReadAt,
    range: Range<u64>,
    mut see: impl FnMut(u8),
) -> io::Result<()> {
    let mut piece = Vec::new();
    for from in range.clone().step_by(PIECE) {
        piece.resize((range.end - from).min(PIECE as u64) as usize, 0);
        bytes.read_at(from, &mut piece)?;
        piece.iter().for_each(|byte| see(*byte));
    }
    Ok(())
}
