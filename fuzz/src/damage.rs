//! Damage to files of models and checkpoints, with a length and a checksum that are right again.

use crate::bytes::Bytes;

/// Numbers that are most likely to be trouble.
const WORDS: [u64; 14] = [
    0,
    1,
    2,
    3,
    u64::MAX,
    1 << 63,
    1 << 61,
    1 << 32,
    1 << 31,
    0x7ff0_0000_0000_0000, // infinity
    0x7fef_ffff_ffff_ffff, // the largest number
    0x7ff8_0000_0000_0000, // NaN
    0x0000_0000_0000_0001, // the smallest number
    0xbff0_0000_0000_0000, // -1
];

/// Bytes before the header: magic bytes, version, length.
const START: usize = 24;

/// Bytes of the checksum.
const END: usize = 4;

/// A file after some accidents, from the place `first` on.
pub(crate) fn damaged(mut file: Vec<u8>, first: usize, bytes: &mut Bytes<'_>) -> Vec<u8> {
    for _ in 0..bytes.few(4) {
        let first = first.max(START);
        if file.len() <= first + END {
            break;
        }
        let end = file.len() - END;
        let place = usize::from(u16::from_le_bytes(bytes.array()));
        let at = first + place % (end - first);
        match bytes.below(7) {
            0 => file[at] = bytes.byte(),
            1 => file[at] ^= 1 << bytes.below(8),
            2 => put(&mut file[at..end], &bytes.choose(&WORDS).to_le_bytes()),
            3 => put(&mut file[at..end], &bytes.array::<4>()),
            4 => drop(file.drain(at..end.min(at + bytes.below(40)))),
            5 => {
                let part = file[at..end.min(at + bytes.below(40))].to_vec();
                file.splice(at..at, part);
            }
            _ => {
                // One part in the place of another.
                let from = usize::from(u16::from_le_bytes(bytes.array()));
                let from = first + from % (end - first);
                let part = file[from..end.min(from + 8)].to_vec();
                put(&mut file[at..end], &part);
            }
        }
    }
    repaired(file)
}

/// As many bytes as there is room for.
fn put(place: &mut [u8], bytes: &[u8]) {
    place
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
}

/// The file with the length and the checksum that belong to it.
pub(crate) fn repaired(mut file: Vec<u8>) -> Vec<u8> {
    if file.len() < START + END {
        return file;
    }
    let (length, end) = ((file.len() as u64).to_le_bytes(), file.len() - END);
    file[16..START].copy_from_slice(&length);
    let sum = crc32fast::hash(&file[..end]);
    file[end..].copy_from_slice(&sum.to_le_bytes());
    file
}
