//! An input as a sequence of choices.

/// The bytes of an input, taken from the front. After the last one come zeros, so every input is a whole description.
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// The bytes that are left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// All that is left, for someone else: here come zeros then.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            rest: std::mem::take(&mut self.rest),
        }
    }

    /// The next bytes, as many as there are up to this number, as choices of their own.
    pub(crate) fn part(&mut self, most: usize) -> Self {
        let (part, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        Self::new(part)
    }

    /// A number below `n`, which is at most 256.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// `true` for one byte in `n`, and never for 0.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn choose<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A count of things that take no time of their own: from 1 to `most` mostly, sometimes 0 or larger than any table.
    pub(crate) fn count(&mut self, most: usize) -> usize {
        match self.byte() {
            255 => usize::MAX,
            254 => u32::MAX as usize,
            253 => 1 << 32,
            250..=252 => 0,
            byte => 1 + usize::from(byte) % most,
        }
    }

    /// A count of things that take time: from 0 to `most`.
    pub(crate) fn few(&mut self, most: usize) -> usize {
        self.below(most + 1)
    }

    /// A setting: a usual number mostly, sometimes one at the end of a range or beyond it.
    pub(crate) fn real(&mut self) -> f64 {
        const ENDS: [f64; 16] = [
            0.0,
            -0.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            1e-100,
            1e-9,
            1e12,
            1e100,
            1e-3,
            1e3,
            f64::EPSILON,
        ];
        match self.byte() {
            byte @ 0..=223 => f64::from(byte) / 64.0,
            byte => ENDS[usize::from(byte) % 16],
        }
    }
}
