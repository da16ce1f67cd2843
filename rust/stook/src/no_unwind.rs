//! What runs in a callback of C.

/// Ends the process: a second panic aborts.
struct NoUnwind;

impl Drop for NoUnwind {
    fn drop(&mut self) {
        panic!("a callback of libstook panicked");
    }
}

/// Makes a call that must not unwind into C. If it panics, the process ends.
pub(crate) fn no_unwind<R>(call: impl FnOnce() -> R) -> R {
    let guard = NoUnwind;
    let result = call();

    core::mem::forget(guard);
    result
}
