//! Heaps: objects of any size that end together.

use crate::error::{Error, Name};
use crate::group::Group;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;
use stook_sys as sys;

/// What every object of a heap is aligned to.
const HEAP_ALIGN: usize = 16;

/// A heap: values of any types, from any threads, whose memory goes back at once.
///
/// What is allocated borrows the heap. So a heap is reset, or dropped, only when nothing of it is
/// in use any more. Values in a [`HeapBox`] are dropped one by one; those that [`Heap::put`] and
/// [`Heap::copy`] leave in the heap need no drop.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let mut request = stook::Heap::new("request", Some(1 << 20))?;
/// {
///     let name = request.copy_str("a name")?;
///     let mut parts = request.boxed(vec![name.len()])?;
///     parts.push(request.copy(&[1u8, 2, 3])?.len());
///     assert_eq!(*parts, [6, 3]);
/// }
/// request.reset()?;                               // all of it at once
/// assert_eq!(request.stats()?.bytes, 0);
/// # Ok(())
/// # }
/// ```
///
/// A reset while something is borrowed does not compile:
///
/// ```compile_fail
/// let mut heap = stook::Heap::new("heap", None).unwrap();
/// let word = heap.copy_str("word").unwrap();
/// heap.reset().unwrap();
/// assert_eq!(word, "word");
/// ```
pub struct Heap {
    raw: NonNull<sys::stook_heap>,
}

// SAFETY: calls on a heap may be made by any threads at once, and any thread may end it.
unsafe impl Send for Heap {}
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap with a name of 1 to 47 bytes, and the most bytes of slabs and large objects it may
    /// have.
    pub fn new(name: &str, limit_bytes: Option<u64>) -> Result<Heap, Error> {
        Heap::make(name, limit_bytes, ptr::null_mut())
    }

    /// The same, whose memory is charged to a group.
    pub fn charged_to(group: &Group, name: &str, limit_bytes: Option<u64>) -> Result<Heap, Error> {
        Heap::make(name, limit_bytes, group.as_ptr())
    }

    fn make(
        name: &str,
        limit_bytes: Option<u64>,
        group: *mut sys::stook_group,
    ) -> Result<Heap, Error> {
        let name = Name::new(name)?;
        let args = sys::stook_heap_args {
            args_size: mem::size_of::<sys::stook_heap_args>(),
            limit_bytes: in_c(limit_bytes),
            group,
        };
        // SAFETY: name and arguments live during the call, and the group is null or lives.
        let raw = unsafe { sys::stook_heap_create(name.as_ptr(), &args) };
        NonNull::new(raw).map(|raw| Heap { raw }).ok_or_else(Error::last)
    }

    /// Memory for a layout, which is not initialized. It ends with the heap, or by
    /// [`Heap::deallocate`].
    pub fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the heap lives; any size is allowed, and a layout's alignment is a power of two.
        let object = unsafe {
            if align > HEAP_ALIGN {
                sys::stook_heap_aligned_alloc(self.raw.as_ptr(), align, size)
            } else {
                sys::stook_heap_alloc(self.raw.as_ptr(), size)
            }
        };
        NonNull::new(object.cast()).ok_or(Error::NO_MEMORY)
    }

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// The object was allocated from this heap since its last reset, and is not used any more.
    pub unsafe fn deallocate(&self, object: NonNull<u8>) {
        // SAFETY: the caller says so.
        unsafe { sys::stook_heap_free(self.raw.as_ptr(), object.as_ptr().cast()) }
    }

    /// A value that is dropped, and gives its memory back, with its box. Without memory it is
    /// dropped at once.
    pub fn boxed<T>(&self, value: T) -> Result<HeapBox<'_, T>, Error> {
        let value = self.put_raw(value)?;
        Ok(HeapBox { value, heap: self, of: PhantomData })
    }

    /// A value that stays in the heap until its end, and is not dropped.
    #[allow(clippy::mut_from_ref)] // as Box::leak: each call has an object of its own
    pub fn put<T: Copy>(&self, value: T) -> Result<&mut T, Error> {
        // SAFETY: a value was put there, and nothing else finds it while the heap is borrowed.
        self.put_raw(value).map(|mut at| unsafe { at.as_mut() })
    }

    /// A copy of a slice that stays in the heap until its end.
    #[allow(clippy::mut_from_ref)] // as above
    pub fn copy<T: Copy>(&self, from: &[T]) -> Result<&mut [T], Error> {
        let at = self.allocate(Layout::for_value(from))?.cast::<T>();
        // SAFETY: the memory has room for as many, is aligned for them, and is this call's alone.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), at.as_ptr(), from.len());
            Ok(slice::from_raw_parts_mut(at.as_ptr(), from.len()))
        }
    }

    /// A copy of a string that stays in the heap until its end.
    pub fn copy_str(&self, from: &str) -> Result<&str, Error> {
        let bytes = self.copy(from.as_bytes())?;
        // SAFETY: the bytes are those of a string.
        Ok(unsafe { core::str::from_utf8_unchecked(bytes) })
    }

    fn put_raw<T>(&self, value: T) -> Result<NonNull<T>, Error> {
        let at = self.allocate(Layout::new::<T>())?.cast::<T>();
        // SAFETY: the memory has room for the value, is aligned for it, and is this call's alone.
        unsafe { at.as_ptr().write(value) };
        Ok(at)
    }

    /// Whether a value is in this heap.
    pub fn owns<T: ?Sized>(&self, value: &T) -> bool {
        // SAFETY: any pointer is allowed.
        let heap = unsafe { sys::stook_heap_of((value as *const T).cast()) };
        heap == self.raw.as_ptr()
    }

    /// Gives back all memory at once. Nothing of the heap is borrowed any more.
    pub fn reset(&mut self) -> Result<(), Error> {
        // SAFETY: the heap is borrowed alone, so nothing uses it or its objects.
        Error::check(unsafe { sys::stook_heap_reset(self.raw.as_ptr()) })
    }

    /// Gives back what the heap keeps for objects to come.
    pub fn shrink(&self) -> Result<(), Error> {
        // SAFETY: the heap lives.
        Error::check(unsafe { sys::stook_heap_shrink(self.raw.as_ptr()) })
    }

    /// Another limit; `None`: no limit.
    pub fn set_limit(&self, bytes: Option<u64>) -> Result<(), Error> {
        // SAFETY: the heap lives.
        Error::check(unsafe { sys::stook_heap_set_limit(self.raw.as_ptr(), in_c(bytes)) })
    }

    /// All figures of the heap.
    pub fn stats(&self) -> Result<sys::stook_heap_stats, Error> {
        // SAFETY: integers and arrays of them may be zeros.
        let mut stats: sys::stook_heap_stats = unsafe { mem::zeroed() };
        stats.stats_size = mem::size_of_val(&stats);
        // SAFETY: the heap lives, and stats says how large it is.
        Error::check(unsafe { sys::stook_heap_get_stats(self.raw.as_ptr(), &mut stats) })?;
        Ok(stats)
    }
}

/// C's 0 is no limit. A limit of 0 refuses all, as one of 1 does.
fn in_c(limit_bytes: Option<u64>) -> u64 {
    limit_bytes.map_or(0, |bytes| bytes.max(1))
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the heap is ours, and nothing of it is borrowed. If the call refuses, the heap
        // lives on.
        unsafe { sys::stook_heap_destroy(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// A value in a heap. With its end the value is dropped, and its memory goes back to the heap.
pub struct HeapBox<'h, T> {
    value: NonNull<T>,
    heap: &'h Heap,
    of: PhantomData<T>,
}

// SAFETY: a box is what its value is; its heap may be used by all threads.
unsafe impl<T: Send> Send for HeapBox<'_, T> {}
unsafe impl<T: Sync> Sync for HeapBox<'_, T> {}

impl<T> HeapBox<'_, T> {
    /// The value, whose memory goes back to the heap.
    pub fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the value is moved out, and the box ends without a drop of it.
        unsafe {
            let value = this.value.as_ptr().read();
            this.heap.deallocate(this.value.cast());
            value
        }
    }
}

impl<T> Deref for HeapBox<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the box has a value, and is borrowed.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for HeapBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box has a value, and is borrowed alone.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for HeapBox<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the value is ours, and is not used any more. After a panic of its drop its
        // memory stays in the heap.
        unsafe {
            ptr::drop_in_place(self.value.as_ptr());
            self.heap.deallocate(self.value.cast());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
