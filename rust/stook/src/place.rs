//! Memory for a value that C code holds by its address.

use crate::error::Error;
use crate::global::Stook;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

/// A value at an address of its own.
pub(crate) fn place<V>(value: V) -> Result<NonNull<V>, Error> {
    // SAFETY: Stook gives a unique object for a size of 0, too.
    let at = unsafe { Stook.alloc(Layout::new::<V>()) };
    let at = NonNull::new(at.cast::<V>()).ok_or_else(Error::last)?;
    // SAFETY: the memory has V's size and alignment, and is ours.
    unsafe { at.as_ptr().write(value) };
    Ok(at)
}

/// Takes a value back from its address, whose memory is freed.
///
/// # Safety
/// `at` is from [`place`], and nothing uses it any more.
pub(crate) unsafe fn unplace<V>(at: NonNull<V>) -> V {
    // SAFETY: the caller's; the value is read once.
    unsafe {
        let value = at.as_ptr().read();
        Stook.dealloc(at.as_ptr().cast(), Layout::new::<V>());
        value
    }
}
