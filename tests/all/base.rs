//! The linear algebra of the core, compiled a second time: it is private.

#[path = "../../src/base/linalg.rs"]
pub(crate) mod linalg;

/// In place of the flag of a fit: ends the work when it has been asked so often.
pub(crate) mod cancel {
    use super::error::Result;
    use std::cell::Cell;

    pub(crate) struct Patience {
        checks: usize,
        asked: Cell<usize>,
    }

    impl Patience {
        pub(crate) fn new(checks: usize) -> Self {
            let asked = Cell::new(0);
            Self { checks, asked }
        }

        pub(crate) fn asked(&self) -> usize {
            self.asked.get()
        }
    }

    pub(crate) type Watch<'a> = Option<&'a Patience>;

    pub(crate) fn check(watch: Watch<'_>) -> Result<()> {
        let Some(patience) = watch else {
            return Ok(());
        };
        let before = patience.asked.replace(patience.asked() + 1);
        (before < patience.checks).then_some(()).ok_or(())
    }
}

/// As in the core.
pub(crate) mod error {
    pub(crate) type Result<T> = std::result::Result<T, ()>;
}
