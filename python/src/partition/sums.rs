//! The sums of an E-step, and their bytes.

use super::exact;

/// What begins the bytes of sums.
const MAGIC: &[u8; 8] = b"cmxsums1";

/// Sums of an E-step over rows, in units of fixed point.
#[derive(Clone, PartialEq)]
pub(super) struct Sums {
    /// What tells the models of different sums apart.
    pub(super) model: u64,
    pub(super) rows: u64,
    /// The exponent of the unit of each column.
    pub(super) exponents: Vec<i32>,
    pub(super) weight: i128,
    pub(super) free_energy: i128,
    /// Per component: its mass, then the first and the second moments about its mean (1 + 2 d); empty without mass.
    pub(super) components: Vec<Vec<i128>>,
}

/// The sum, or an error: no sum of sound rows leaves the range.
fn add(total: &mut i128, part: i128) -> Result<(), String> {
    let sum = total.checked_add(part);
    *total = sum.ok_or("statistics: a sum is beyond 128 bits: use smaller weights")?;
    Ok(())
}

impl Sums {
    pub(super) fn empty(model: u64, exponents: Vec<i32>, components: usize) -> Self {
        Self {
            model,
            rows: 0,
            exponents,
            weight: 0,
            free_energy: 0,
            components: vec![Vec::new(); components],
        }
    }

    /// Adds to the sums of a component (1 + 2 d).
    pub(super) fn add(&mut self, c: usize, place: usize, part: i128) -> Result<(), String> {
        let d = self.exponents.len();
        let sums = &mut self.components[c];
        if sums.is_empty() {
            sums.resize(1 + 2 * d, 0);
        }
        add(&mut sums[place], part)
    }

    /// Adds a row.
    pub(super) fn add_row(&mut self, weight: i128, free_energy: i128) -> Result<(), String> {
        self.rows += 1;
        add(&mut self.weight, weight)?;
        add(&mut self.free_energy, free_energy)
    }

    pub(super) fn merge(mut self, other: Self) -> Result<Self, String> {
        let same = self.model == other.model
            && self.exponents == other.exponents
            && self.components.len() == other.components.len();
        if !same {
            let what = "statistics: parts of different models cannot be merged: use one model";
            return Err(what.into());
        }
        self.rows += other.rows;
        add(&mut self.weight, other.weight)?;
        add(&mut self.free_energy, other.free_energy)?;
        for (own, part) in self.components.iter_mut().zip(other.components) {
            if own.is_empty() {
                *own = part;
                continue;
            }
            for (total, part) in own.iter_mut().zip(part) {
                add(total, part)?;
            }
        }
        Ok(self)
    }

    pub(super) fn mass(&self, c: usize) -> f64 {
        exact::weight(self.components[c].first().copied().unwrap_or(0))
    }

    /// The mean of a column's difference to the old mean, and that of its square.
    pub(super) fn moments(&self, c: usize, j: usize) -> (f64, f64) {
        let (d, mass) = (self.exponents.len(), self.mass(c));
        let (sums, exponent) = (&self.components[c], self.exponents[j]);
        let first = exact::value(sums[1 + j], exponent) / mass;
        let second = exact::value(sums[1 + d + j], 2 * exponent) / mass;
        (first, second)
    }

    /// Little-endian numbers, one after the other.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.model.to_le_bytes());
        out.extend(self.rows.to_le_bytes());
        out.extend((self.exponents.len() as u64).to_le_bytes());
        out.extend((self.components.len() as u64).to_le_bytes());
        out.extend(self.exponents.iter().flat_map(|e| e.to_le_bytes()));
        out.extend(self.weight.to_le_bytes());
        out.extend(self.free_energy.to_le_bytes());
        for sums in &self.components {
            out.push(u8::from(!sums.is_empty()));
            out.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
        }
        out
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let wrong = || "statistics: these are not the bytes that stats or merge made".to_string();
        Self::read(bytes).ok_or_else(wrong)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes.strip_prefix(MAGIC)?);
        let (model, rows) = (from.u64()?, from.u64()?);
        let (d, k) = (from.count(4)?, from.count(1)?);
        let exponents = (0..d).map(|_| from.take().map(i32::from_le_bytes));
        let exponents = exponents.collect::<Option<Vec<_>>>()?;
        let (weight, free_energy) = (from.i128()?, from.i128()?);
        let components = (0..k).map(|_| match from.take()? {
            [0] => Some(Vec::new()),
            [1] => (0..1 + 2 * d).map(|_| from.i128()).collect(),
            _ => None,
        });
        let components = components.collect::<Option<Vec<_>>>()?;
        from.0.is_empty().then_some(Self {
            model,
            rows,
            exponents,
            weight,
            free_energy,
            components,
        })
    }
}

/// Numbers, one after the other; None at the end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn i128(&mut self) -> Option<i128> {
        self.take().map(i128::from_le_bytes)
    }

    /// A number of things of at least this size: no more than there are bytes for.
    fn count(&mut self, size: usize) -> Option<usize> {
        let count = usize::try_from(self.u64()?).ok()?;
        (count <= self.0.len() / size).then_some(count)
    }
}
