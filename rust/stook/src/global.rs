//! The global allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{slice_from_raw_parts_mut, NonNull};
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

impl Stook {
    /// Memory for a layout, and all bytes of it that may be used: at least those of the layout.
    /// What the unstable trait `Allocator` calls `allocate`. [`GlobalAlloc::dealloc`] frees it, by
    /// this layout, or by one of any size in between.
    ///
    /// ```
    /// use std::alloc::{GlobalAlloc, Layout};
    /// let layout = Layout::new::<[u8; 100]>();
    /// let memory = stook::Stook.allocate(layout).unwrap();
    /// assert!(memory.len() >= 100);
    /// // SAFETY: allocated above with this layout.
    /// unsafe { stook::Stook.dealloc(memory.cast().as_ptr(), layout) };
    /// ```
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: stook_malloc allows a size of 0, too.
        let object = unsafe { self.alloc(layout) };
        // SAFETY: NULL, or a live object.
        let bytes = unsafe { sys::stook_usable_size(object.cast()) };
        NonNull::new(slice_from_raw_parts_mut(object, bytes))
    }
}

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
        // SAFETY: likewise; an alignment of a layout is a power of two.
        unsafe { sys::stook_aligned_realloc(object.cast(), layout.align(), new_size) }.cast()
    }
}
