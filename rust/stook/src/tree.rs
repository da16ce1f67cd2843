//! A maple tree at an address that stays, walks in it, and memory for its entries.

use crate::error::Error;
use crate::global::Stook;
use core::alloc::{GlobalAlloc, Layout};
use core::mem;
use core::ptr::NonNull;
use stook_sys as sys;

/// A tree, whose entries are the caller's.
pub(crate) struct Tree(NonNull<sys::stook_maple>);

impl Tree {
    pub(crate) fn new(flags: u32) -> Result<Tree, Error> {
        // SAFETY: any size is allowed.
        let at = unsafe { sys::stook_malloc(mem::size_of::<sys::stook_maple>()) };
        let tree = NonNull::new(at.cast()).map(Tree).ok_or_else(Error::last)?;
        // SAFETY: the memory is large enough for a tree.
        Error::check(unsafe { sys::stook_maple_init(tree.as_ptr(), flags) })?;
        Ok(tree)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::stook_maple {
        self.0.as_ptr()
    }

    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: the tree lives; the call reads one word.
        unsafe { sys::stook_maple_empty(self.as_ptr()) }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: the tree is ours alone, and was made by stook_maple_init. (Of a tree that could
        // not be made, which only a wrong flag causes, these zeros are an empty one.)
        unsafe {
            sys::stook_maple_destroy(self.as_ptr());
            sys::stook_free(self.as_ptr().cast());
        }
    }
}

/// A walk through the ranges of a tree, upwards.
pub(crate) struct Walk {
    cursor: sys::stook_maple_cursor,
    last: u64,
}

impl Walk {
    /// The ranges that have a key of `first..=last` in them.
    pub(crate) fn new(tree: &Tree, first: u64, last: u64) -> Walk {
        let cursor =
            sys::stook_maple_cursor { tree: tree.as_ptr(), first, last: first, _rest: [0; 21] };
        Walk { cursor, last }
    }

    /// The next range and its entry.
    ///
    /// # Safety
    /// The tree lives, and what its flags ask of readers is kept: for threads see <stook/maple.h>.
    pub(crate) unsafe fn next(&mut self) -> Option<(u64, u64, NonNull<sys::c_void>)> {
        if self.cursor.first > self.last {
            return None;
        }
        // SAFETY: the caller's.
        let entry = unsafe { sys::stook_maple_cursor_find(&mut self.cursor, self.last) };
        NonNull::new(entry).map(|entry| (self.cursor.first, self.cursor.last, entry))
    }
}

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
