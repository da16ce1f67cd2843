//! Values that end together.

use crate::cache::{Cache, Object, Settings};
use crate::error::Error;
use crate::no_unwind::no_unwind;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;
use stook_sys as sys;

/// Values of one type that live as long as the arena, and end with it.
///
/// An arena has a cache of its own, in which it finds its values: it keeps no list of them.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let mut words = stook::Arena::new("word")?;
/// let (one, two) = (words.alloc(String::from("one"))?, words.alloc(String::from("two"))?);
/// one.push_str(two);
/// assert_eq!(one, "onetwo");
///
/// let mut letters = 0;
/// words.for_each(|word| letters += word.len())?;
/// assert_eq!(letters, 9);
/// # Ok(())
/// # }
/// ```
///
/// A value whose drop panics ends the process. In a callback of [`Arena::for_each`] an arena cannot
/// be made or dropped: the first fails with [`Error::DEADLOCK`], and one that is dropped is
/// reported and lives on.
pub struct Arena<T> {
    /// Every object of it has a value.
    cache: ManuallyDrop<Cache<T>>,
    of: PhantomData<T>,
}

// SAFETY: threads that share an arena only put values into it; what comes back is each thread's
// own. The values end in the thread that has the arena in the end.
unsafe impl<T: Send> Send for Arena<T> {}
unsafe impl<T: Send> Sync for Arena<T> {}

impl<T> Arena<T> {
    /// An empty arena. `name` has 1 to 63 bytes.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::with(name, Settings::default())
    }

    /// An arena with settings of its cache.
    pub fn with(name: &str, settings: Settings) -> Result<Self, Error> {
        // A cache with this callback is never merged with one of another type.
        let cache = Cache::create(name, settings, |args| args.reclaim = Some(nothing_to_spare))?;
        Ok(Arena { cache: ManuallyDrop::new(cache), of: PhantomData })
    }

    /// A value in the arena. Without memory it is dropped.
    #[allow(clippy::mut_from_ref)] // as Box::leak: each call has an object of its own
    pub fn alloc(&self, value: T) -> Result<&mut T, Error> {
        let object = ManuallyDrop::new(self.cache.alloc(value)?);
        // SAFETY: nothing else finds the value as long as the arena is borrowed, and it stays.
        Ok(unsafe { &mut *Object::address(&object) })
    }

    /// Shows all values, in no order. A panic in `each` ends the process.
    pub fn for_each<F: FnMut(&mut T)>(&mut self, mut each: F) -> Result<(), Error> {
        let data = &mut each as *mut F as *mut sys::c_void;
        // SAFETY: the arena is borrowed alone, so nothing else uses the cache or its values.
        Error::check(unsafe {
            sys::stook_cache_for_each_object(self.cache.as_ptr(), Some(shown::<T, F>), data)
        })
    }

    /// How many values there are. Exact while no other thread allocates.
    pub fn len(&self) -> Result<usize, Error> {
        self.cache.live().map(|live| live as usize)
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.len().map(|len| len == 0)
    }
}

unsafe extern "C" fn nothing_to_spare(
    _: *mut sys::stook_cache,
    _: usize,
    _: *mut sys::c_void,
) -> usize {
    0
}

unsafe extern "C" fn shown<T, F: FnMut(&mut T)>(
    object: *mut sys::c_void,
    each: *mut sys::c_void,
) -> sys::c_int {
    // SAFETY: `for_each` gave the closure; the object has a value, which nothing else uses.
    no_unwind(|| unsafe { (*each.cast::<F>())(&mut *object.cast::<T>()) });
    0
}

unsafe extern "C" fn ended<T>(object: *mut sys::c_void, _: *mut sys::c_void) {
    // SAFETY: the object has a value, which nothing uses any more.
    no_unwind(|| unsafe { ptr::drop_in_place(object.cast::<T>()) });
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        // SAFETY: no value is borrowed any more. If the call refuses, the cache lives on.
        unsafe {
            sys::stook_cache_destroy_all(self.cache.as_ptr(), Some(ended::<T>), ptr::null_mut());
        }
    }
}

impl<T> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("cache", &*self.cache).finish()
    }
}
