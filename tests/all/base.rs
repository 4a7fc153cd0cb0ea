//! The linear algebra of the core, compiled a second time: it is private.

#[path = "../../src/base/linalg.rs"]
pub(crate) mod linalg;

/// As in the core.
pub(crate) mod cancel {
    use std::convert::Infallible;

    pub(crate) trait Watch: Sync {
        type Stopped: Send;
        fn check(&self) -> Result<(), Self::Stopped>;
    }

    pub(crate) struct Never;

    impl Watch for Never {
        type Stopped = Infallible;

        fn check(&self) -> Result<(), Infallible> {
            Ok(())
        }
    }
}
