//! CRC-64/XZ: the checksum of a file.
//!
//! It differs for every change of up to 64 neighbouring bits, so for that of any single byte.

/// The polynomial of ECMA-182, lowest bit first.
const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

/// What each byte does to a sum of zeros.
const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u64, 0);
        while bit < 8 {
            let carry = sum & 1 == 1;
            sum >>= 1;
            if carry {
                sum ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// The checksum of bytes that come one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc64(u64);

impl Default for Crc64 {
    fn default() -> Self {
        Self(!0)
    }
}

impl Crc64 {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let step = |sum: u64, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
        self.0 = bytes.iter().fold(self.0, step);
    }

    pub(crate) fn value(self) -> u64 {
        !self.0
    }

    /// The checksum of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::default();
        sum.add(bytes);
        sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        // The check value of the catalogue of CRCs, and no bytes.
        assert_eq!(Crc64::of(b"123456789"), 0x995D_C9BB_DF19_39FA);
        assert_eq!(Crc64::of(b""), 0);
        let mut parts = Crc64::default();
        parts.add(b"1234");
        parts.add(b"56789");
        assert_eq!(parts.value(), Crc64::of(b"123456789"));
    }

    #[test]
    fn the_table_is_division_bit_by_bit() {
        let bytes: Vec<u8> = (0..=255u8).map(|i| i.wrapping_mul(37) ^ 11).collect();
        let mut sum = !0u64;
        for byte in &bytes {
            for bit in 0..8 {
                let carry = (sum ^ u64::from(byte >> bit)) & 1 == 1;
                sum >>= 1;
                if carry {
                    sum ^= POLYNOMIAL;
                }
            }
        }
        assert_eq!(Crc64::of(&bytes), !sum);
    }
}
