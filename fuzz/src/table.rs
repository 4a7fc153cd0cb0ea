//! Tables of numbers: of any shape, with any values and weights, in any order of memory.

use crate::bytes::Bytes;
use coremix::data::Source;
use coremix::ndarray::{Array2, ArrayView2, ShapeBuilder, s};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Element, Float};
use std::io;

/// A number type of tables: `f32`, `f64` or `u8`.
pub(crate) trait Number: coremix_files::Number {
    /// The nearest number of this type, also where that is an infinity.
    fn near(value: f64) -> Self;
    /// The number with these bits, or with the first of them.
    fn of_bits(bytes: [u8; 8]) -> Self;
    /// A value that must not be read.
    const POISON: Self;
}

impl Number for f32 {
    fn near(value: f64) -> Self {
        value as f32
    }
    fn of_bits([a, b, c, d, ..]: [u8; 8]) -> Self {
        Self::from_le_bytes([a, b, c, d])
    }
    const POISON: Self = Self::NAN;
}

impl Number for f64 {
    fn near(value: f64) -> Self {
        value
    }
    fn of_bits(bytes: [u8; 8]) -> Self {
        Self::from_le_bytes(bytes)
    }
    const POISON: Self = Self::NAN;
}

impl Number for u8 {
    fn near(value: f64) -> Self {
        value as u8
    }
    fn of_bits([first, ..]: [u8; 8]) -> Self {
        first
    }
    const POISON: Self = 0xaa;
}

/// How rows lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Rows,
    Columns,
    /// Between rows that must not be read.
    EveryOther,
    /// From the last row and column to the first.
    Reversed,
    /// One row, many times.
    Broadcast,
}

/// Rows and columns, known before the numbers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Shape {
    /// A few rows and columns mostly; sometimes several blocks of rows, many columns, or none.
    pub(crate) fn new(bytes: &mut Bytes<'_>) -> Self {
        let rows = match bytes.byte() {
            255 => 0,
            250..=254 => [511, 512, 513, 700, 1_300][bytes.below(5)],
            byte => 1 + usize::from(byte) % 60,
        };
        let columns = match bytes.byte() {
            255 => 0,
            250..=254 => [17, 32, 40][bytes.below(3)],
            byte => 1 + usize::from(byte) % 6,
        };
        Self { rows, columns }
    }
}

/// Rows with weights.
#[derive(Debug)]
pub(crate) struct Table<T> {
    stored: Array2<T>,
    order: Order,
    shape: Shape,
    pub(crate) weights: Option<Vec<f64>>,
}

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Small multiples of a quarter: many ties and copies.
    Lattice,
    /// Clusters of normal variates from a seed.
    Clusters,
    /// Any bits.
    Bits,
    /// Numbers that are most likely to be trouble.
    Special,
}

/// The ends of ranges, rounding, and what overflows when it is squared.
const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1e-45,
    1e-38,
    1e-30,
    5e-324,
    1e-308,
    1e-154,
    1e-9,
    1.0000001,
    1e3,
    -1e6,
    16_777_217.0,
    1e9,
    1e15,
    1e18,
    -1e30,
    8e37,
    1e100,
    1e149,
    -1e149,
];

impl<T: Number> Table<T> {
    /// A table of this shape. More than some rows come from a seed.
    pub(crate) fn new(shape: Shape, bytes: &mut Bytes<'_>) -> Self {
        let Shape { rows, columns } = shape;
        let kinds = [
            Values::Lattice,
            Values::Clusters,
            Values::Special,
            Values::Bits,
        ];
        let kind = match rows * columns {
            0..=400 => bytes.choose(&kinds),
            _ => Values::Clusters,
        };
        let order = match bytes.byte() {
            0..=159 => Order::Rows,
            _ if rows * columns == 0 => Order::Rows,
            byte => [
                Order::Columns,
                Order::EveryOther,
                Order::Reversed,
                Order::Broadcast,
            ][usize::from(byte) % 4],
        };
        let hostile = bytes.one_in(16);
        let affine = Affine::new(columns, bytes);
        // Copies of the first rows in place of the others.
        let distinct = match bytes.one_in(4) {
            true => 1 + bytes.below(8),
            false => rows.max(1),
        };
        let stray = Stray::new(shape, bytes);
        let weights = weights(rows, bytes);
        let clusters = Array2::from_shape_fn(
            (rows.min(distinct), columns),
            values::<T>(kind, columns, bytes),
        );
        let value = |(n, j): (usize, usize)| -> T {
            let raw = clusters[[n % distinct, j]];
            let plain = match kind {
                // The bits as they are.
                Values::Bits if affine.is_identity() => raw,
                _ => affine.of(j, raw),
            };
            let plain = stray.of(n, j).unwrap_or(plain);
            match hostile {
                true => T::near(plain),
                false => T::near(held::<T::Float>(plain)),
            }
        };
        let plain = Array2::from_shape_fn((rows, columns), value);
        let stored = match order {
            Order::Rows => plain,
            Order::Columns => plain.t().as_standard_layout().into_owned(),
            Order::EveryOther => Array2::from_shape_fn((2 * rows, columns), |(n, j)| match n % 2 {
                0 => plain[[n / 2, j]],
                _ => T::POISON,
            }),
            Order::Reversed => plain
                .slice(s![..;-1, ..;-1])
                .as_standard_layout()
                .into_owned(),
            Order::Broadcast => plain.slice(s![..rows.min(1), ..]).to_owned(),
        };
        Self {
            stored,
            order,
            shape,
            weights,
        }
    }

    /// The rows as they lie in memory.
    pub(crate) fn view(&self) -> ArrayView2<'_, T> {
        let Shape { rows, columns } = self.shape;
        match self.order {
            Order::Rows => self.stored.view(),
            Order::Columns => self.stored.t(),
            Order::EveryOther => self.stored.slice(s![..;2, ..]),
            Order::Reversed => self.stored.slice(s![..;-1, ..;-1]),
            Order::Broadcast => {
                let row = self.stored.as_slice().expect("one row");
                let strides = (rows, columns).strides((0, 1));
                ArrayView2::from_shape(strides, row).expect("stride 0")
            }
        }
    }

    /// A copy of the rows, one after the other.
    pub(crate) fn copied(&self) -> Array2<T> {
        let view = self.view();
        Array2::from_shape_fn(view.dim(), |at| view[at])
    }

    /// The data of these rows and weights.
    pub(crate) fn data(&self) -> Result<Dense<'_, T>> {
        match &self.weights {
            Some(weights) => Dense::weighted(self.view(), &weights[..]),
            None => Dense::new(self.view()),
        }
    }
}

/// A finite number within what data of this type may hold; 0 for NaN.
fn held<F: Float>(value: f64) -> f64 {
    match value.is_nan() {
        true => 0.0,
        false => value.clamp(-F::LIMIT, F::LIMIT),
    }
}

/// The values of a kind, row by row.
fn values<T: Number>(
    kind: Values,
    columns: usize,
    bytes: &mut Bytes<'_>,
) -> impl FnMut((usize, usize)) -> f64 {
    let (mut rng, mut centres) = (Rng::from_seed(0), Array2::zeros((0, columns)));
    if kind == Values::Clusters {
        rng = Rng::from_seed(u64::from(bytes.byte()));
        let (clusters, spread) = (1 + bytes.below(12), bytes.choose(&[4.0, 0.0, 0.3, 100.0]));
        centres = Array2::from_shape_fn((clusters, columns), |_| spread * rng.normal());
    }
    let mut bytes = bytes.take();
    move |(n, j)| match kind {
        Values::Lattice => 0.25 * f64::from(bytes.byte() as i8),
        Values::Clusters => centres[[n % centres.nrows(), j]] + rng.normal(),
        Values::Special => bytes.choose(&SPECIAL),
        Values::Bits => T::of_bits(bytes.array()).widen().to_f64(),
    }
}

/// A factor and an offset for each column.
struct Affine(Vec<(f64, f64)>);

impl Affine {
    fn new(columns: usize, bytes: &mut Bytes<'_>) -> Self {
        const FACTORS: [f64; 12] = [
            1.0, 1.0, 0.0, 1e-6, 1e6, 1e-30, 1e30, 1e-44, 1e37, 1e-310, 1e148, 1e-160,
        ];
        const OFFSETS: [f64; 8] = [0.0, 0.0, 0.1, 1e6, -1e9, 1e15, 1e30, -1e140];
        let one = |bytes: &mut Bytes<'_>| (bytes.choose(&FACTORS), bytes.choose(&OFFSETS));
        Self(match bytes.below(4) {
            0 | 1 => vec![(1.0, 0.0); columns],
            2 => vec![one(bytes); columns],
            _ => (0..columns).map(|_| one(bytes)).collect(),
        })
    }

    fn is_identity(&self) -> bool {
        self.0.iter().all(|affine| *affine == (1.0, 0.0))
    }

    fn of(&self, column: usize, value: f64) -> f64 {
        let (factor, offset) = self.0[column];
        value * factor + offset
    }
}

/// A row far away from the others, or none.
struct Stray(Option<(usize, Vec<f64>)>);

impl Stray {
    fn new(shape: Shape, bytes: &mut Bytes<'_>) -> Self {
        if shape.rows == 0 || !bytes.one_in(4) {
            return Self(None);
        }
        let row = bytes.below(256) % shape.rows;
        let values = (0..shape.columns).map(|_| bytes.choose(&SPECIAL));
        Self(Some((row, values.collect())))
    }

    fn of(&self, row: usize, column: usize) -> Option<f64> {
        let (stray, values) = self.0.as_ref()?;
        (*stray == row).then(|| values[column])
    }
}

/// Weights: none mostly, small numbers, or any.
fn weights(rows: usize, bytes: &mut Bytes<'_>) -> Option<Vec<f64>> {
    const SMALL: [f64; 6] = [1.0, 0.0, 0.5, 2.0, 3.0, 0.1];
    const ANY: [f64; 12] = [
        1.0, 0.0, -0.0, 1e-300, 1e300, 5e-324, 1e-9, 1e9, 1e30, 1e-30, 1e280, 1e-280,
    ];
    const BAD: [f64; 4] = [f64::NAN, -1.0, f64::INFINITY, 1e306];
    let any = |bytes: &mut Bytes<'_>| match bytes.byte() {
        255 => bytes.choose(&BAD),
        byte => ANY[usize::from(byte) % ANY.len()],
    };
    // Many rows have the weights of the first ones again.
    let distinct = rows.clamp(1, 60);
    let kind = bytes.below(8);
    let list: Vec<f64> = match kind {
        0..=3 => return None,
        4 | 5 => (0..distinct).map(|_| bytes.choose(&SMALL)).collect(),
        6 => (0..distinct).map(|_| any(bytes)).collect(),
        _ => vec![any(bytes); distinct],
    };
    Some((0..rows).map(|n| list[n % distinct]).collect())
}

/// The rows of a table as a source that is read block by block.
#[derive(Debug)]
pub(crate) struct Read<'a, T> {
    pub(crate) rows: ArrayView2<'a, T>,
}

impl<T: Number> Source for Read<'_, T> {
    type Element = T;

    fn len(&self) -> usize {
        self.rows.nrows()
    }

    fn dim(&self) -> usize {
        self.rows.ncols()
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let rows = self.rows.rows().into_iter().skip(first).flatten();
        out.iter_mut().zip(rows).for_each(|(out, x)| *out = *x);
        Ok(())
    }
}

/// Rows of a table, whatever its numbers are.
pub(crate) type FloatOf<T> = <T as Element>::Float;
