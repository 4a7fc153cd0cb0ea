//! The inner loops: distances, selection of the best, sums. Compiled for the widest vectors the processor
//! has (chosen at run time by `pulp`), each with its naive version as the oracle of its tests.

/// Runs an expression compiled for the widest vectors the processor has.
///
/// What is called inside must be `#[inline(always)]`, or it is compiled for the oldest processor. Moving
/// `Once` into the closure makes it callable once only: any other closure would be called through a
/// compiler-made function that is not inlined.
macro_rules! vectorised {
    ($body:expr) => {{
        let once = $crate::kernels::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let _moved: $crate::kernels::Once = once;
                $body
            },
        )
    }};
}
pub(crate) use vectorised;

/// Numbers side by side in a panel: a whole number of vectors of any processor.
pub(crate) const LANES: usize = 16;

/// The numbers of the lanes.
macro_rules! numbers {
    ($t:ty) => {{
        let mut numbers = [0.0; $crate::kernels::LANES];
        let mut lane = 0;
        while lane < $crate::kernels::LANES {
            numbers[lane] = lane as $t;
            lane += 1;
        }
        numbers
    }};
}

/// The first lane of a panel in which a comparison of its vectors, of which there are so many, finds something; no score is
/// NaN, so there is one. A loop, as a closure would be compiled for the oldest processor.
macro_rules! lane_where {
    ($vectors:expr, $vector:pat in $all:expr => $mask:expr) => {{
        let lanes = $crate::kernels::LANES / $vectors;
        let mut lane = 0;
        for $vector in $all {
            let found = $crate::kernels::first_lane($mask, lanes);
            lane += found;
            if found < lanes {
                break;
            }
        }
        lane % $crate::kernels::LANES
    }};
}

/// Runs something with vectors of every length there is here, narrow ones in software as well.
#[cfg(test)]
macro_rules! with_all_vectors {
    ($work:expr) => {{
        use pulp::Simd;
        pulp::Scalar.vectorize($work);
        pulp::Scalar128b.vectorize($work);
        pulp::Scalar256b.vectorize($work);
        pulp::Scalar512b.vectorize($work);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            Simd::vectorize(simd, $work);
        }
        pulp::Arch::new().dispatch($work);
    }};
}

/// See [`vectorised`].
pub(crate) struct Once;

/// The first of the lanes that a comparison of vectors of `lanes` numbers found; `lanes` for none. A mask of bits has that
/// of lane 0 lowest (`first_true` of pulp 0.22 counts from the other end).
#[inline(always)]
fn first_lane<M: pulp::bytemuck::NoUninit>(mask: M, lanes: usize) -> usize {
    let bytes = pulp::bytemuck::bytes_of(&mask);
    match *bytes {
        [bits] => (bits.trailing_zeros() as usize).min(lanes),
        [low, high] => (u16::from_ne_bytes([low, high]).trailing_zeros() as usize).min(lanes),
        _ => {
            let mut lane = 0;
            for mask in bytes.chunks_exact(bytes.len() / lanes) {
                if mask[0] != 0 {
                    break;
                }
                lane += 1;
            }
            lane
        }
    }
}

pub(crate) mod abreast;
pub(crate) mod distance;
pub(crate) mod enter;
pub(crate) mod expanded;
pub(crate) mod exponential;
pub(crate) mod features;
pub(crate) mod nearest;
pub(crate) mod packed;
mod products;
pub(crate) mod project;
pub(crate) mod quadratic;
pub(crate) mod rank;
pub(crate) mod scaled;
pub(crate) mod select;
pub(crate) mod short;
pub(crate) mod soft;
pub(crate) mod sparse;
pub(crate) mod weighted;

/// Length of a stored row of `d` numbers: padded with zeros to a whole number of vectors, so that no long
/// row has a tail.
pub(crate) fn stride(d: usize) -> usize {
    match d {
        0..=4 => 4,
        5..=8 => 8,
        _ => d.next_multiple_of(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masks of one bit per lane, and of one number.
    #[test]
    fn the_first_lane_of_any_mask() {
        assert_eq!([first_lane(true, 1), first_lane(false, 1)], [0, 1]);
        for bits in 0..=255u8 {
            let first = (bits.trailing_zeros() as usize).min(8);
            assert_eq!(first_lane(bits, 8), first);
            let low = u16::from(bits);
            assert_eq!(first_lane(low, 16), if bits == 0 { 16 } else { first });
            assert_eq!(first_lane(low << 8, 16), 8 + first);
            let numbers: [u32; 8] =
                std::array::from_fn(|l| 0u32.wrapping_sub(u32::from(bits >> l & 1)));
            assert_eq!(first_lane(numbers, 8), first);
            let numbers: [u64; 4] =
                std::array::from_fn(|l| 0u64.wrapping_sub(u64::from(bits >> l & 1)));
            assert_eq!(first_lane(numbers, 4), first.min(4));
        }
    }
}
