//! Counting sorts by component.

/// Where the items of each of `k` components start (k + 1), once they are in the order of their components.
pub(crate) fn starts(k: usize, components: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0; k + 1];
    for c in components {
        starts[c as usize + 1] += 1;
    }
    for c in 0..k {
        starts[c + 1] += starts[c];
    }
    starts
}
