//! The rows of a block by component.

use crate::base::float::Float;
use crate::base::sort;
use crate::costs::lanes::{GROUP, Lanes};
use crate::kernels::accumulate::Share;
use crate::model::block::Block;
use crate::rows::Rows;

/// Where the members of each component are, and all members in their order: rows of the block, with their weights times their
/// responsibilities.
pub(super) fn members<F: Float>(rows: &Rows<F>, block: &Block<F>) -> (Vec<usize>, Vec<Share>) {
    sort::sorted(block.components(), Share::default(), || {
        (0..rows.len()).flat_map(|i| {
            let row = i as u32;
            let weight = rows.weight(i);
            let members = block.members(i);
            let members = members.map(move |(c, q)| (c, weight * q));
            let members = members.filter(|(_, share)| *share > 0.0);
            members.map(move |(c, share)| (c, Share { row, share }))
        })
    })
}

/// Shows `see` the components of a block in groups, each with the shares of all rows in it: those that have any.
pub(super) fn groups<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    mut see: impl FnMut(&[u32], &[Lanes]),
) {
    let (starts, members) = members(rows, block);
    let places = |c: u32| starts[c as usize]..starts[c as usize + 1];
    let present: Vec<u32> = (0..block.components() as u32)
        .filter(|c| !places(*c).is_empty())
        .collect();
    let mut shares = Vec::new();
    for ids in present.chunks(GROUP) {
        shares.clear();
        shares.resize(rows.len(), Lanes::default());
        for (l, &c) in ids.iter().enumerate() {
            for member in &members[places(c)] {
                shares[member.row as usize].0[l] = member.share;
            }
        }
        see(ids, &shares);
    }
}
