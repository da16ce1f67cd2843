//! Prefilled sheaves: memory first, objects later.

use crate::cache::{Cache, Memory, Object};
use crate::error::Error;
use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use stook_sys as sys;

/// Memory for a number of objects, which was got where failing was allowed.
///
/// [`Sheaf::promises`] turns it into [`Promise`]s, each of which becomes one object and cannot
/// fail: it takes no lock, makes no system call, and has no path that panics.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let nodes = stook::Cache::<[u64; 4]>::new("node")?;
///
/// let ready = nodes.prefill(2)?;                  // all that can fail
/// let [a, b] = ready.promises().expect("the sheaf holds two");
/// // Here nothing may fail: a lock is held, or there is no memory left.
/// let left = a.fill([1; 4]);
/// let right = b.fill([2; 4]);
/// # assert_eq!(left[0] + right[0], 3);
/// # Ok(())
/// # }
/// ```
///
/// What is left goes back to the cache with the sheaf. The objects are those of the cache: they may
/// outlive the sheaf.
pub struct Sheaf<'c, T> {
    cache: &'c Cache<T>,
    raw: NonNull<sys::stook_sheaf>,
    /// Promises that exist; never more than the sheaf has objects.
    promised: Cell<usize>,
}

// SAFETY: a sheaf may be handed to another thread, and holds no values. It is not Sync: Cell and
// NonNull see to that.
unsafe impl<T> Send for Sheaf<'_, T> {}

impl<'c, T> Sheaf<'c, T> {
    pub(crate) fn new(cache: &'c Cache<T>, n: usize) -> Result<Self, Error> {
        // SAFETY: the cache lives.
        let raw = unsafe { sys::stook_sheaf_prefill(cache.as_ptr(), 0, n) };
        let raw = NonNull::new(raw).ok_or_else(Error::last)?;
        Ok(Sheaf { cache, raw, promised: Cell::new(0) })
    }

    /// Objects that the sheaf has and that were not promised.
    pub fn available(&self) -> usize {
        // SAFETY: the sheaf is on loan, and this thread holds it.
        unsafe { sys::stook_sheaf_available(self.raw.as_ptr()) - self.promised.get() }
    }

    /// Promises of `N` objects; `None` if fewer are available.
    pub fn promises<const N: usize>(&self) -> Option<[Promise<'_, 'c, T>; N]> {
        if N > self.available() {
            return None;
        }
        self.promised.set(self.promised.get() + N);
        Some(core::array::from_fn(|_| Promise { sheaf: self }))
    }

    /// A promise of one object; `None` if none is available.
    pub fn promise(&self) -> Option<Promise<'_, 'c, T>> {
        self.promises::<1>().map(|[one]| one)
    }

    /// A new object. If none is available the value is returned.
    pub fn alloc(&self, value: T) -> Result<Object<'c, T>, T> {
        match self.promise() {
            Some(promise) => Ok(promise.fill(value)),
            None => Err(value),
        }
    }

    /// Memory for at least `n` objects again. Promises have to be kept or dropped before.
    pub fn refill(&mut self, n: usize) -> Result<(), Error> {
        let mut raw = self.raw.as_ptr();
        // SAFETY: the sheaf is of this cache. It may be replaced, which the pointer then says.
        let status = unsafe { sys::stook_sheaf_refill(self.cache.as_ptr(), 0, &mut raw, n) };
        self.raw = NonNull::new(raw).unwrap_or(self.raw);
        // A promise that was forgotten (mem::forget) is none any more: it cannot be kept.
        self.promised.set(0);
        Error::check(status)
    }
}

impl<T> Drop for Sheaf<'_, T> {
    fn drop(&mut self) {
        // SAFETY: promises borrow the sheaf, so none is left.
        unsafe { sys::stook_sheaf_return(self.cache.as_ptr(), self.raw.as_ptr()) };
    }
}

impl<T> fmt::Debug for Sheaf<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheaf").field("available", &self.available()).finish_non_exhaustive()
    }
}

/// One object that a sheaf has for its holder.
pub struct Promise<'s, 'c, T> {
    sheaf: &'s Sheaf<'c, T>,
}

impl<'c, T> Promise<'_, 'c, T> {
    /// The object, with its value. This cannot fail.
    #[inline]
    pub fn fill(self, value: T) -> Object<'c, T> {
        let sheaf = self.sheaf;
        // SAFETY: the sheaf and its cache live. The sheaf has an object for each promise, of which
        // this is one, so the pointer is not null; nothing else has the object.
        let memory = unsafe {
            let object = sys::stook_sheaf_alloc(sheaf.cache.as_ptr(), sheaf.raw.as_ptr());
            Memory::new(sheaf.cache, NonNull::new_unchecked(object.cast()))
        };
        memory.fill(value)
    }
}

impl<T> Drop for Promise<'_, '_, T> {
    #[inline]
    fn drop(&mut self) {
        self.sheaf.promised.set(self.sheaf.promised.get() - 1);
    }
}

impl<T> fmt::Debug for Promise<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise")
    }
}
