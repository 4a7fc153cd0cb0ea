//! Rows compared with packed centres: the nearest and the second nearest.

use crate::base::float::Float;
use crate::data::{Centres, Data, Frame, Rows};
use crate::kernels::nearest::Packed;
use crate::kernels::select;

/// Rows searched together.
pub(super) const TOGETHER: usize = 256;

/// Compares rows with packed centres: finds the nearest and the second nearest.
#[derive(Default)]
pub(super) struct Kernel<F> {
    ids: Vec<usize>,
    rows: Rows<F>,
    list: Vec<u32>,
    packed: Packed<F>,
    squared: Vec<F>,
}

/// A distance is computed directly if its square is so many times less than that to the point of the expansion (E21).
const NEARER: f64 = 64.0;

impl<F: Float> Kernel<F> {
    /// Packs the centres of `list`. They should be near the padded row `about`, and so should the rows.
    pub(super) fn pack(&mut self, centres: &Centres<F>, list: &[u32], about: &[F]) {
        self.list.clear();
        self.list.extend_from_slice(list);
        self.packed
            .pack(centres.values(), centres.dim(), list, about);
    }

    /// Loads rows.
    pub(super) fn gather(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        rows: impl Iterator<Item = usize>,
    ) {
        self.ids.clear();
        self.ids.extend(rows);
        data.gather(&self.ids, frame, &mut self.rows);
    }

    /// Calls `found` for each row: its number among the loaded rows, its squared distance to the point of the expansion,
    /// and the squared distances and places in the list of the two nearest centres.
    pub(super) fn compare(
        &mut self,
        centres: &Centres<F>,
        mut found: impl FnMut(usize, F, (F, usize), (F, usize)),
    ) {
        let Self {
            rows,
            list,
            packed,
            squared,
            ..
        } = self;
        let (share, mut i) = (F::from_f64(1.0 / NEARER), 0);
        packed.first_two(rows.values(), |about, mut best, mut next| {
            let least = share * about;
            if next.0 < least {
                rows.distances_to(i, centres, list, squared);
                (best, next) = select::first_two(squared);
            } else if best.0 < least {
                rows.distances_to(i, centres, &list[best.1..=best.1], squared);
                best.0 = squared[0];
            }
            found(i, about, best, next);
            i += 1;
        });
    }
}

/// A distance from its square.
pub(super) fn root<F: Float>(squared: F) -> F {
    F::from_f64(squared.to_f64().sqrt())
}
