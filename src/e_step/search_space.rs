//! Sets of components that are gathered from lists.

/// A set of components, in the order they were found.
#[derive(Debug)]
pub(super) struct SearchSpace {
    now: u32,
    stamps: Vec<u32>,
    len: usize,
    /// One place more than there are components: repeated ones are written behind the others, and not counted.
    ids: Vec<u32>,
}

impl SearchSpace {
    pub(super) fn new(k: usize) -> Self {
        Self {
            now: 1,
            // The last one is for unset places.
            stamps: vec![0; k + 1],
            len: 0,
            ids: vec![0; k + 1],
        }
    }

    pub(super) fn restart(&mut self) {
        if self.now == u32::MAX {
            self.stamps.fill(0);
            self.now = 0;
        }
        self.now += 1;
        // So that unset places count as repeated.
        if let Some(last) = self.stamps.last_mut() {
            *last = self.now;
        }
        self.len = 0;
    }

    /// Adds lists of components, one after the other. There are no branches, because a repeated component cannot be predicted.
    #[inline(always)]
    pub(super) fn insert<'a>(&mut self, lists: impl Iterator<Item = &'a [u32]>) {
        // Copies: what is behind a reference would be stored after every component.
        let now = self.now;
        let mut len = self.len;
        let stamps = &mut self.stamps[..];
        let ids = &mut self.ids[..];
        let last = stamps.len() - 1;
        for list in lists {
            for &c in list {
                let stamp = &mut stamps[(c as usize).min(last)];
                ids[len] = c;
                len += usize::from(*stamp != now);
                *stamp = now;
            }
        }
        self.len = len;
    }

    #[inline(always)]
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.len]
    }
}
