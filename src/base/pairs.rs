//! Two iterators side by side, inlined whatever the profile is.

/// [`Iterator::zip`] for inner loops. Parts of the one of the standard library have no `#[inline]`: without link-time
/// optimisation they are calls, around which vectors go through memory.
pub(crate) trait Pairs: Iterator + Sized {
    /// Pairs of the items of both, as far as both go.
    #[inline(always)]
    fn pairs<B: IntoIterator>(self, other: B) -> Paired<Self, B::IntoIter> {
        Paired(self, other.into_iter())
    }
}

impl<A: Iterator> Pairs for A {}

#[derive(Clone)]
pub(crate) struct Paired<A, B>(A, B);

impl<A: Iterator, B: Iterator> Iterator for Paired<A, B> {
    type Item = (A::Item, B::Item);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.1.next()?))
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let (a, b) = (self.0.size_hint(), self.1.size_hint());
        let most = match (a.1, b.1) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        (a.0.min(b.0), most)
    }
}

impl<A: ExactSizeIterator, B: ExactSizeIterator> ExactSizeIterator for Paired<A, B> {}
