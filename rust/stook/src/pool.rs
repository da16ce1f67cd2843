//! Values that are used again.

use crate::cache::{Cache, Settings};
use crate::error::Error;
use crate::no_unwind::no_unwind;
use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// Values that are made once and used again and again.
///
/// A value is made when its memory is first handed out. When its guard ends it stays as it is, and
/// a later [`Pool::get`] finds it so. It is dropped when its memory leaves the pool: in
/// [`Pool::shrink`], in a trim, under memory pressure, and when the pool ends. That may be in any
/// thread, even one of the library's, so `T` is `Send` and `'static`.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let buffers = stook::Pool::new("buffer", || Vec::<u8>::with_capacity(4000))?;
/// {
///     let mut buffer = buffers.get()?;
///     buffer.clear();                             // what an earlier user left
///     buffer.extend_from_slice(b"some bytes");
/// }
/// assert!(buffers.get()?.capacity() >= 4000);     // no memory was asked for again
/// # Ok(())
/// # }
/// ```
///
/// A panic in `make` or in a value's drop ends the process. A drop must not use the pool that the
/// value is from.
pub struct Pool<T: Send + 'static> {
    cache: Cache<T>,
}

impl<T: Send + 'static> Pool<T> {
    /// A pool. `name` has 1 to 63 bytes. `make` runs in [`Pool::get`].
    pub fn new(name: &str, make: fn() -> T) -> Result<Self, Error> {
        Self::with(name, Settings::default(), make)
    }

    /// A pool with settings of its cache.
    pub fn with(name: &str, settings: Settings, make: fn() -> T) -> Result<Self, Error> {
        let cache = Cache::create(name, settings, |args| {
            args.ctor = Some(made::<T>);
            args.dtor = Some(dropped::<T>);
            args.ctor_data = make as *mut sys::c_void;
        })?;
        Ok(Pool { cache })
    }

    /// A value, new or used.
    pub fn get(&self) -> Result<Pooled<'_, T>, Error> {
        // SAFETY: the cache lives.
        let object = unsafe { sys::stook_cache_alloc(self.cache.as_ptr()) };
        let at = NonNull::new(object.cast()).ok_or_else(Error::last)?;
        Ok(Pooled { pool: self, at })
    }

    /// Drops values that are not in use and gives their memory back. Returns how many slabs stay.
    pub fn shrink(&self) -> Result<usize, Error> {
        self.cache.shrink()
    }

    /// Values in use. Exact while no other thread is inside a call on the pool.
    pub fn live(&self) -> Result<u64, Error> {
        self.cache.live()
    }
}

unsafe extern "C" fn made<T>(object: *mut sys::c_void, make: *mut sys::c_void) {
    // SAFETY: `with` gave this function. The memory is new, and has T's size and alignment.
    no_unwind(|| unsafe {
        let make = mem::transmute::<*mut sys::c_void, fn() -> T>(make);
        object.cast::<T>().write(make());
    });
}

unsafe extern "C" fn dropped<T>(object: *mut sys::c_void, _: *mut sys::c_void) {
    // SAFETY: the value that `made` wrote, or what its users made of it. No guard is left.
    no_unwind(|| unsafe { ptr::drop_in_place(object.cast::<T>()) });
}

impl<T: Send + 'static> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("cache", &self.cache).finish()
    }
}

/// A value of a pool, in use. It stays in the pool when the guard ends, in any thread.
pub struct Pooled<'p, T: Send + 'static> {
    pool: &'p Pool<T>,
    at: NonNull<T>,
}

// SAFETY: a guard has its value alone, as a Box does; the free may happen in any thread.
unsafe impl<T: Send + 'static> Send for Pooled<'_, T> {}
unsafe impl<T: Send + Sync + 'static> Sync for Pooled<'_, T> {}

impl<T: Send + 'static> Deref for Pooled<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value stays as long as the guard.
        unsafe { self.at.as_ref() }
    }
}

impl<T: Send + 'static> DerefMut for Pooled<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed alone.
        unsafe { self.at.as_mut() }
    }
}

impl<T: Send + 'static> Drop for Pooled<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the object has its value, as the constructor's rule asks, and no other user.
        unsafe { sys::stook_cache_free(self.pool.cache.as_ptr(), self.at.as_ptr().cast()) };
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for Pooled<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
