//! Shared by the tests: tables of known numbers, and checks of sources against rows in memory.

use coremix::data::Source;
use coremix_files::{ElementType, Number};
use ndarray::Array2;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// A generator with equal numbers in every run.
pub(crate) fn seeded(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}

/// Numbers below `n`.
pub(crate) fn below(rng: &mut impl proptest::prelude::Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// Reads all rows, `piece` of them at once.
pub(crate) fn all<T: Number>(
    source: &dyn Source<Element = T>,
    piece: usize,
) -> std::io::Result<Array2<T>> {
    let (n, d) = (source.len(), source.dim());
    let mut rows = Array2::from_elem((n, d), T::default());
    if d > 0 {
        let out = rows.as_slice_mut().unwrap();
        for (i, out) in out.chunks_mut(piece * d).enumerate() {
            source.read(i * piece, out)?;
        }
    }
    Ok(rows)
}

/// Asserts that a source has these rows, in whatever order and by however many threads they are read.
pub(crate) fn same_rows<T: Number>(source: &dyn Source<Element = T>, rows: &Array2<T>) {
    let (n, d) = rows.dim();
    assert_eq!((source.len(), source.dim()), (n, d));
    let same = |first: usize, found: &[T]| {
        let expected = &rows.as_slice().unwrap()[first * d..][..found.len()];
        assert!(found == expected, "rows from {first} on");
    };
    for piece in [n.max(1), 1, 7, 100] {
        assert!(all(source, piece).unwrap() == rows, "{piece} at once");
    }
    let mut rng = seeded(1);
    let mut out = vec![T::default(); 40 * d];
    for _ in 0..60 {
        let count = 1 + below(&mut rng, 40.min(n));
        let first = below(&mut rng, n - count + 1);
        source.read(first, &mut out[..count * d]).unwrap();
        same(first, &out[..count * d]);
    }
    // Far apart, in order: as coresets read.
    for first in (0..n).step_by(37) {
        source.read(first, &mut out[..d]).unwrap();
        same(first, &out[..d]);
    }
    std::thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || {
                let mut out = vec![T::default(); 9 * d];
                let (from, to) = (n * part / 4, n * (part + 1) / 4);
                for first in (from..to).step_by(9) {
                    let out = &mut out[..9.min(to - first) * d];
                    source.read(first, out).unwrap();
                    same(first, out);
                }
            });
        }
    });
    // Rows that are not there are an error.
    assert!(source.read(n, &mut out[..d]).is_err());
    assert!(source.read(usize::MAX, &mut out[..d]).is_err());
    assert!(d == 1 || source.read(0, &mut out[..d + 1]).is_err());
    assert!(source.read(0, &mut []).is_ok());
}

/// The name of an element type.
pub(crate) fn name<T: Number>() -> ElementType {
    T::TYPE
}
