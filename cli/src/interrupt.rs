//! Ctrl-C.

use crate::failure::{Failure, Result};
use coremix::Cancel;

/// A flag that Ctrl-C sets, or a signal that asks the program to end. A second one ends it at once.
pub(crate) fn flag() -> Result<Cancel> {
    let cancel = Cancel::default();
    let of_handler = cancel.clone();
    let set = ctrlc::set_handler(move || {
        if of_handler.is_cancelled() {
            std::process::exit(130);
        }
        of_handler.cancel();
    });
    set.map_err(|error| Failure::arguments(error.to_string()))?;
    Ok(cancel)
}

/// An error if it is set.
pub(crate) fn check(cancel: &Cancel) -> Result<()> {
    if cancel.is_cancelled() {
        Err(Failure::Interrupted(String::new()))
    } else {
        Ok(())
    }
}
