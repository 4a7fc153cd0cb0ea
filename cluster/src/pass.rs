//! One pass on one batch of rows. What a row adds depends on the row alone, never on the rows beside it.

use crate::fixed::Fixed;
use crate::partial::{Drawn, Partial, Range, Statistics};
use crate::rows::{Rows, at};
use crate::task::{Em, Sample, Task, Work};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::row::{RowConverter, SortField};
use twox_hash::XxHash3_64;

/// Responsibilities below this are 0 in all sums, as in the core (E41).
const LOST: f64 = 1.0 / (1u64 << 60) as f64;

/// The bound of what the logarithms of supports add per row: ln of the number of components.
pub(crate) const LARGEST_SPREAD: f64 = 64.0;

/// What the task finds on a batch: the key of each row, if there is one, and the columns.
pub(crate) fn pass(task: &Task, key: Option<&ArrayRef>, columns: &[ArrayRef]) -> Partial {
    compute(task, key, columns).unwrap_or_else(Partial::Fault)
}

/// The rows of a batch, as the task needs them.
pub(crate) fn rows_of(task: &Task, columns: &[ArrayRef]) -> Result<Rows, String> {
    let rows = Rows::of(columns, &task.names, task.precision)?;
    for (unusable, name) in rows.unusable.iter().zip(&task.names) {
        if !unusable.none() {
            return Err(at(name, "a value that is NULL, NaN or infinite"));
        }
    }
    match task.dim() {
        Some(dim) if rows.len() > 0 && rows.dim() != dim => {
            let what = format!("{} coordinates, but {dim} expected", rows.dim());
            Err(at(&task.names[0], &what))
        }
        _ => Ok(rows),
    }
}

fn compute(task: &Task, key: Option<&ArrayRef>, columns: &[ArrayRef]) -> Result<Partial, String> {
    match &task.work {
        Work::Range => Ok(range(&Rows::of(columns, &task.names, task.precision)?)),
        Work::Sums {
            about,
            exponents,
            squares,
        } => sums(&rows_of(task, columns)?, about, exponents, *squares),
        Work::Sample(of) => sample(&rows_of(task, columns)?, of, key),
        Work::Em(of) => em(&rows_of(task, columns)?, of),
        Work::Assign(_) => Err("labels are no sums".to_string()),
    }
}

fn range(rows: &Rows) -> Partial {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); rows.dim()];
    for i in 0..rows.len() {
        for (range, y) in ranges.iter_mut().zip(rows.row(i)) {
            *range = (range.0.min(*y), range.1.max(*y));
        }
    }
    Partial::Range(Range {
        rows: rows.len() as u64,
        ranges,
        unusable: rows.unusable.clone(),
    })
}

/// Fixed point of some columns: the factors, and the bounds.
struct Columns {
    factors: Vec<(f64, f64)>,
    bounds: Vec<f64>,
}

impl Columns {
    fn of(exponents: &[i32]) -> Self {
        let fixed = || exponents.iter().map(|e| Fixed::of_exponent(*e));
        Self {
            factors: fixed().map(Fixed::factors).collect(),
            bounds: fixed().map(|fixed| 2f64.powi(fixed.exponent())).collect(),
        }
    }
}

const OUTSIDE: &str = "a row is outside the range of the first pass: the table must not change";

fn sums(rows: &Rows, about: &[f64], exponents: &[i32], squares: bool) -> Result<Partial, String> {
    let columns = Columns::of(exponents);
    let mut sums = vec![0i128; about.len()];
    for i in 0..rows.len() {
        for (j, (y, about)) in rows.row(i).iter().zip(about).enumerate() {
            let from = y - about;
            let term = if squares { from * from } else { from };
            if term.abs() > columns.bounds[j] {
                return Err(OUTSIDE.to_string());
            }
            sums[j] = sums[j].wrapping_add(Fixed::cut(columns.factors[j], term));
        }
    }
    Ok(Partial::Sums {
        rows: rows.len() as u64,
        sums,
    })
}

/// Squared distance, in one order on every machine.
pub(crate) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let (mut lanes, mut rest) = ([0.0; 8], 0.0);
    let (whole_a, rest_a) = a.as_chunks::<8>();
    let (whole_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for l in 0..8 {
            let difference = a[l] - b[l];
            lanes[l] += difference * difference;
        }
    }
    for (a, b) in rest_a.iter().zip(rest_b) {
        rest += (a - b) * (a - b);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

/// Probability of a row at this squared distance from the mean: at most 1.
fn probability(of: &Sample, squared: f64) -> f64 {
    let rows = of.rows as f64;
    let share = match of.spread > 0.0 {
        true => 0.5 / rows + 0.5 * squared / of.spread,
        false => 1.0 / rows,
    };
    (of.rate * share).min(1.0)
}

fn sample(rows: &Rows, of: &Sample, key: Option<&ArrayRef>) -> Result<Partial, String> {
    let keys = match key {
        None => None,
        Some(key) => {
            let field = SortField::new(key.data_type().clone());
            let converter = RowConverter::new(vec![field]);
            let converted = converter.and_then(|c| c.convert_columns(std::slice::from_ref(key)));
            Some(converted.map_err(|e| format!("the key: {e}"))?)
        }
    };
    let mut found = Drawn {
        rows: rows.len() as u64,
        ..Drawn::default()
    };
    let mut identity = Vec::new();
    for i in 0..rows.len() {
        let row = rows.row(i);
        let probability = probability(of, squared_distance(row, &of.mean));
        identity.clear();
        row.iter()
            .for_each(|y| identity.extend(y.to_bits().to_le_bytes()));
        if let Some(keys) = &keys {
            identity.extend(keys.row(i).data());
        }
        let hash = XxHash3_64::oneshot_with_seed(of.seed, &identity);
        let uniform = (hash >> 11) as f64 / (1u64 << 53) as f64;
        if uniform < probability {
            let known = found
                .drawn
                .entry(identity.clone())
                .or_insert((0, probability));
            known.0 += 1;
        }
    }
    Ok(Partial::Sample(found))
}

fn em(rows: &Rows, of: &Em) -> Result<Partial, String> {
    let (k, d) = (of.model.components(), of.model.columns());
    let width = of.width.clamp(1, k);
    let means = of.model.means();
    let means = means.as_slice().ok_or("the means are not in rows")?;
    let mean = |c: usize| &means[c * d..(c + 1) * d];
    let supports = match width < k || k == 1 {
        true if rows.len() > 0 => {
            let found = of.model.supports(rows, width);
            Some(found.map_err(|e| e.to_string())?)
        }
        _ => None,
    };
    let (beta, lost) = (0.5 / of.model.variance(), LOST.ln());
    let columns = Columns::of(&of.exponents);
    let squares = Fixed::of_exponent(of.squared);
    let (per_square, largest) = (squares.factors(), 2f64.powi(squares.exponent()));
    let per_mass = Fixed::bounding(1.0).factors();
    let per_spread = Fixed::bounding(LARGEST_SPREAD).factors();

    let mut found = Statistics {
        rows: rows.len() as u64,
        components: vec![Vec::new(); if of.sums { k } else { 0 }],
        ..Statistics::default()
    };
    let all: Vec<u32> = (0..k as u32).collect();
    let (mut distances, mut shares, mut from) = (vec![0.0; width], vec![1.0; width], vec![0.0; d]);
    for i in 0..rows.len() {
        let row = rows.row(i);
        let support = match &supports {
            Some(supports) => &supports[i * width..(i + 1) * width],
            None => &all,
        };
        for (distance, c) in distances.iter_mut().zip(support) {
            *distance = squared_distance(row, mean(*c as usize));
        }
        let best = distances.iter().copied().fold(f64::INFINITY, f64::min);
        if width > 1 {
            let mut total = 0.0;
            for (share, distance) in shares.iter_mut().zip(&distances) {
                let exponent = -beta * (distance - best);
                // Most components are far away.
                *share = match exponent > lost {
                    true => exponent.exp(),
                    false => 0.0,
                };
                total += *share;
            }
            shares.iter_mut().for_each(|share| *share /= total);
            found.spread = found
                .spread
                .wrapping_add(Fixed::cut(per_spread, total.ln()));
        }
        for (j, (from, y)) in from.iter_mut().zip(row).enumerate() {
            *from = y - of.offsets[j];
            if from.abs() > columns.bounds[j] {
                return Err(OUTSIDE.to_string());
            }
        }
        if best > largest {
            return Err(OUTSIDE.to_string());
        }
        found.best = found.best.wrapping_add(Fixed::cut(per_square, best));
        if !of.sums {
            continue;
        }
        let mut squared = 0.0;
        for ((share, distance), c) in shares.iter().zip(&distances).zip(support) {
            if *share < LOST {
                continue;
            }
            squared += share * distance;
            let sums = &mut found.components[*c as usize];
            sums.resize(1 + d, 0);
            sums[0] = sums[0].wrapping_add(Fixed::cut(per_mass, *share));
            for (j, (sum, from)) in sums[1..].iter_mut().zip(&from).enumerate() {
                *sum = sum.wrapping_add(Fixed::cut(columns.factors[j], share * from));
            }
        }
        found.squared = found.squared.wrapping_add(Fixed::cut(per_square, squared));
    }
    Ok(Partial::Em(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_naive_sum() {
        for d in [1, 3, 8, 9, 16, 31] {
            let a: Vec<f64> = (0..d).map(|j| f64::from(j) * 0.3).collect();
            let b: Vec<f64> = (0..d).map(|j| 2.0 - f64::from(j)).collect();
            let naive: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!((squared_distance(&a, &b) - naive).abs() <= 1e-13 * naive);
        }
    }

    /// Half of the rate by number, half by squared distance; all rows where the rate allows it.
    #[test]
    fn probabilities_follow_the_coreset() {
        let mut of = Sample {
            seed: 0,
            rows: 100,
            rate: 10.0,
            mean: vec![0.0],
            spread: 50.0,
        };
        assert_eq!(probability(&of, 0.0), 0.05);
        assert!((probability(&of, 1.0) - 0.15).abs() < 1e-15);
        of.spread = 0.0;
        assert_eq!(probability(&of, 0.0), 0.1);
        of.rate = f64::INFINITY;
        assert_eq!(probability(&of, 0.0), 1.0);
    }
}
