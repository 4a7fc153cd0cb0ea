//! Messages as bytes, little-endian. Reading checks every length before it takes memory: a function can be called with
//! any bytes.

/// Writes a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    pub(crate) fn u64(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }

    pub(crate) fn i128(&mut self, x: i128) {
        self.0.extend(x.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, x: f64) {
        self.u64(x.to_bits());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn f64s(&mut self, numbers: &[f64]) {
        self.u64(numbers.len() as u64);
        numbers.iter().for_each(|x| self.f64(*x));
    }

    pub(crate) fn i128s(&mut self, numbers: &[i128]) {
        self.u64(numbers.len() as u64);
        numbers.iter().for_each(|x| self.i128(*x));
    }
}

/// Reads a message. `None` if it ends too early, or claims more than it has.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[x]| x)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn i128(&mut self) -> Option<i128> {
        self.take().map(i128::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// How many things follow, of so many bytes each at least: no more than there are bytes for.
    pub(crate) fn count(&mut self, size: usize) -> Option<usize> {
        let count = usize::try_from(self.u64()?).ok()?;
        (count.checked_mul(size)? <= self.0.len()).then_some(count)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count(1)?;
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(crate) fn f64s(&mut self) -> Option<Vec<f64>> {
        (0..self.count(8)?).map(|_| self.f64()).collect()
    }

    pub(crate) fn i128s(&mut self) -> Option<Vec<i128>> {
        (0..self.count(16)?).map(|_| self.i128()).collect()
    }

    /// Something, if nothing follows it.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
