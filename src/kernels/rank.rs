//! A few candidates in the order of their scores, without branches.

use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// As many candidates are ranked by comparing each with all others.
pub(super) const RANKED: usize = 32;

/// Counts of lower scores, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Rank: Sized {
    /// Puts the place of each of the first `len` scores into `places`, by how many are lower: into the last one if that is
    /// not less than its number.
    #[doc(hidden)]
    fn rank<S: Simd>(simd: S, scores: &[Self; RANKED], len: usize, places: &mut [u8]);
}

macro_rules! rank {
    ($t:ty, $count:ty, $vectors:ident, $counts:ident, $splat:ident, $splat_count:ident, $less:ident, $add:ident, $select:ident) => {
        impl Rank for $t {
            #[inline(always)]
            fn rank<S: Simd>(simd: S, scores: &[Self; RANKED], len: usize, places: &mut [u8]) {
                let mut ranks: [$count; RANKED] = [0; RANKED];
                let (vectors, _) = S::$vectors(scores);
                let (counts, _) = S::$counts(&mut ranks);
                let (zero, one) = (simd.$splat_count(0), simd.$splat_count(1));
                let per_vector = RANKED / vectors.len();
                for ((v, &vector), counts) in vectors.iter().enumerate().zip(counts) {
                    if v * per_vector >= len {
                        break;
                    }
                    let mut count = zero;
                    for &score in &scores[..len] {
                        let lower = simd.$less(simd.$splat(score), vector);
                        count = simd.$add(count, simd.$select(lower, one, zero));
                    }
                    *counts = count;
                }
                let last = places.len() - 1;
                for (i, &rank) in ranks[..len].iter().enumerate() {
                    places[(rank as usize).min(last)] = i as u8;
                }
            }
        }
    };
}
rank!(
    f32,
    u32,
    as_simd_f32s,
    as_mut_simd_u32s,
    splat_f32s,
    splat_u32s,
    less_than_f32s,
    add_u32s,
    select_u32s
);
rank!(
    f64,
    u64,
    as_simd_f64s,
    as_mut_simd_u64s,
    splat_f64s,
    splat_u64s,
    less_than_f64s,
    add_u64s,
    select_u64s
);

/// Where a place has no score.
pub(super) const OPEN: u8 = u8::MAX;

/// The places of the lowest of at most [`RANKED`] scores, lowest first, into all of `places` but the last, which is for the
/// others. Of equal scores the last has their place, and the next place stays [`OPEN`]. NaN has the first place: no score is below it.
pub(super) fn lowest<F: Float>(scores: &[F], places: &mut [u8]) {
    let mut padded = [F::INFINITY; RANKED];
    padded[..scores.len()].copy_from_slice(scores);
    places.fill(OPEN);
    Arch::new().dispatch(Lowest {
        padded: &padded,
        len: scores.len(),
        places,
    });
}

struct Lowest<'a, F> {
    padded: &'a [F; RANKED],
    len: usize,
    places: &'a mut [u8],
}

impl<F: Float> WithSimd for Lowest<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        F::rank(simd, self.padded, self.len, self.places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn places_are_those_of_a_sort<F: Float>() {
        let mut rng = Rng::from_seed(7);
        for n in 1..=RANKED {
            for width in 1..=n.min(16) {
                let scores: Vec<F> = (0..n).map(|_| F::from_f64(rng.uniform())).collect();
                let mut order: Vec<u8> = (0..n as u8).collect();
                order.sort_by(|&a, &b| {
                    let (a, b) = (scores[a as usize], scores[b as usize]);
                    a.partial_cmp(&b).unwrap()
                });
                let mut places = [OPEN; 17];
                lowest(&scores, &mut places[..=width]);
                assert_eq!(places[..width], order[..width]);
                let mut padded = [F::INFINITY; RANKED];
                padded[..n].copy_from_slice(&scores);
                with_all_vectors!(Lowest {
                    padded: &padded,
                    len: n,
                    places: {
                        places.fill(OPEN);
                        &mut places[..=width]
                    },
                });
                assert_eq!(places[..width], order[..width]);
            }
        }
    }

    #[test]
    fn the_lowest_are_those_of_a_sort() {
        places_are_those_of_a_sort::<f32>();
        places_are_those_of_a_sort::<f64>();
    }

    #[test]
    fn equal_scores_and_nan_leave_a_place_open() {
        let mut places = [0; 4];
        lowest(&[2.0, 1.0, 2.0, 3.0], &mut places);
        assert_eq!((places[0], places[2]), (1, OPEN));
        lowest(&[2.0, f64::NAN, 1.0, 3.0], &mut places);
        assert!(places[..3].contains(&OPEN) || places[..3] == [2, 0, 3]);
    }
}
