//! Work that can be interrupted: on a thread of its own, while this one looks for signals.

use coremix::Cancel;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How often signals are looked for.
const EVERY: Duration = Duration::from_millis(20);

/// Does the work without holding the interpreter. Ctrl-C sets the flag, waits for the work to end, and raises
/// `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    watched(py, cancel, || Ok(()), work)
}

/// The work with something to do whenever signals are looked for; an error of it ends the work, too.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    mut look: impl FnMut() -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (done, waiting) = channel();
        scope.spawn(move || {
            // A panic, which no `except Exception` would catch, becomes an exception like any other.
            let found = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits any more only after a panic of the other side.
            let _ = done.send(found);
        });
        let waiting = Mutex::new(waiting);
        let wait = |time| {
            py.detach(|| match waiting.lock() {
                Ok(waiting) => waiting.recv_timeout(time),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            })
        };
        loop {
            match wait(EVERY) {
                Ok(found) => return found.map_err(|panic| defect(&*panic)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the work ended without a result"));
                }
            }
            if let Err(interrupt) = py.check_signals().and_then(|()| look()) {
                cancel.cancel();
                let _ = wait(Duration::MAX);
                return Err(interrupt);
            }
        }
    })
}

/// The exception for a panic.
fn defect(panic: &(dyn Any + Send)) -> PyErr {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let what = owned.or_else(|| panic.downcast_ref::<&str>().copied());
    let what = what.unwrap_or("nothing is known of it");
    PyRuntimeError::new_err(format!("a defect of coremix, please report it: {what}"))
}
