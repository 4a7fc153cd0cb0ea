//! Sums of some rows of one component, in `f64`: they stay in registers while all of its rows are added.

use crate::base::float::Float;

/// Which row, and times how much it is added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) row: u32,
    pub(crate) share: f64,
}

/// Adds the differences of padded rows and a point, times their shares, to `first`. Returns the sum of their squared norms times
/// the shares, if these are wanted. To be called where code is vectorised.
#[inline(always)]
pub(crate) fn add_rows<F: Float, const SQUARES: bool>(
    rows: &[F],
    entries: &[Share],
    about: &[F],
    first: &mut [f64],
) -> f64 {
    let stride = about.len();
    let mut from = 0;
    let mut squared = 0.0;
    // As many columns as registers can have the sums of.
    while !SQUARES && stride - from >= 64 {
        add_columns::<F, 64, SQUARES>(rows, from, entries, about, first);
        from += 64;
    }
    while stride - from >= 32 {
        squared += add_columns::<F, 32, SQUARES>(rows, from, entries, about, first);
        from += 32;
    }
    if stride - from >= 16 {
        squared += add_columns::<F, 16, SQUARES>(rows, from, entries, about, first);
    } else if stride == 8 {
        squared += add_columns::<F, 8, SQUARES>(rows, from, entries, about, first);
    } else if stride == 4 {
        squared += add_columns::<F, 4, SQUARES>(rows, from, entries, about, first);
    }
    squared
}

/// Adds `N` columns, from column `from` on, as [`add_rows`].
#[inline(always)]
fn add_columns<F: Float, const N: usize, const SQUARES: bool>(
    rows: &[F],
    from: usize,
    entries: &[Share],
    about: &[F],
    first: &mut [f64],
) -> f64 {
    let stride = about.len();
    let (Some(about), Some(first)) = (
        about[from..].first_chunk::<N>(),
        first[from..].first_chunk_mut::<N>(),
    ) else {
        return 0.0;
    };
    let about = about.map(F::to_f64);
    let mut total = *first;
    let mut squared = [0.0; N];
    for &Share { row, share } in entries {
        let Some(row) = rows[row as usize * stride + from..].first_chunk::<N>() else {
            break;
        };
        for j in 0..N {
            let t = row[j].to_f64() - about[j];
            total[j] += share * t;
            if SQUARES {
                squared[j] += share * t * t;
            }
        }
    }
    *first = total;
    squared.iter().sum()
}
