//! The global allocator.

use core::alloc::{GlobalAlloc, Layout};
use stook_sys as sys;

/// What every object of `stook_malloc` is aligned to.
const MALLOC_ALIGN: usize = 16;

/// Stook's malloc as the global allocator of a program, or as an allocator that is asked by hand.
///
/// ```
/// #[global_allocator]
/// static HEAP: stook::Stook = stook::Stook;
///
/// fn main() {
///     assert_eq!(vec![1, 2, 3].len(), 3);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stook;

// SAFETY: stook_malloc and its sisters keep malloc's contract: an object has at least the bytes
// asked for, is aligned to 16 bytes or as stook_aligned_alloc was told, and is the caller's until
// its free. They call back into nothing and never unwind.
unsafe impl GlobalAlloc for Stook {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > MALLOC_ALIGN {
            // SAFETY: an alignment of a layout is a power of two.
            return unsafe { sys::stook_aligned_alloc(layout.align(), layout.size()) }.cast();
        }
        // SAFETY: any size is allowed.
        unsafe { sys::stook_malloc(layout.size()) }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller says that the object was allocated here with this layout.
        unsafe { sys::stook_free_sized(object.cast(), layout.size()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: any size is allowed.
            return unsafe { sys::stook_calloc(1, layout.size()) }.cast();
        }
        // SAFETY: the layout is the caller's.
        let object = unsafe { self.alloc(layout) };
        if !object.is_null() {
            // SAFETY: the object has so many bytes.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: as in dealloc; the caller says that the size is not 0.
            return unsafe { sys::stook_realloc(object.cast(), new_size) }.cast();
        }
        // SAFETY: the caller says that the new size fits a layout of this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: a valid layout.
        let new_object = unsafe { self.alloc(new_layout) };
        if !new_object.is_null() {
            let kept = layout.size().min(new_size);
            // SAFETY: both have so many bytes, and a new object overlaps no live one.
            unsafe {
                object.copy_to_nonoverlapping(new_object, kept);
                self.dealloc(object, layout);
            }
        }
        new_object
    }
}
