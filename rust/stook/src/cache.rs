//! Caches of objects of one type, and the guard of an object.

use crate::error::{Error, Name};
use crate::group::Group;
use crate::sheaf::Sheaf;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// Flags of [`Settings`].
pub mod flags {
    pub use stook_sys::STOOK_CACHE_ACCOUNT as ACCOUNT;
    pub use stook_sys::STOOK_CACHE_HUGE_PAGES as HUGE_PAGES;
    pub use stook_sys::STOOK_CACHE_HWCACHE_ALIGN as HWCACHE_ALIGN;
    pub use stook_sys::STOOK_CACHE_MERGE as MERGE;
    pub use stook_sys::STOOK_CACHE_NO_SHEAVES as NO_SHEAVES;
    pub use stook_sys::STOOK_CACHE_RANDOM_ORDER as RANDOM_ORDER;
}

/// How a cache is made. Zero in a field means its default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Cache flags, or'ed: those of [`flags`], and debug modes.
    pub flags: u64,
    /// Bytes; the type's own alignment holds besides.
    pub align: usize,
    /// Objects of a sheaf, at least so many.
    pub sheaf_capacity: u32,
    /// Full sheaves that the barn of a node keeps.
    pub barn_full: u32,
    /// Empty sheaves that the barn of a node keeps.
    pub barn_empty: u32,
    /// Objects in use at once: [`Error::NO_MEMORY`] beyond.
    pub limit_objects: usize,
}

/// A cache of objects of the type `T`, which is at most 128 KiB large.
///
/// Its objects borrow it, so they cannot outlive it. An object that was forgotten
/// ([`core::mem::forget`]) stays allocated: then the cache is reported on standard error when it is
/// dropped, and its memory stays, too.
pub struct Cache<T> {
    raw: NonNull<sys::stook_cache>,
    of: PhantomData<fn() -> T>,
}

// SAFETY: calls on a cache may be made by any threads at once, and it holds no values: each is
// behind a guard that has its own rules.
unsafe impl<T> Send for Cache<T> {}
unsafe impl<T> Sync for Cache<T> {}

impl<T> Cache<T> {
    /// A cache with default settings. `name` has 1 to 63 bytes and need not be unique.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::with(name, Settings::default())
    }

    /// A cache with settings.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// use stook::{flags, Cache, Settings};
    ///
    /// let settings = Settings { flags: flags::HWCACHE_ALIGN, ..Settings::default() };
    /// let counters = Cache::<[u64; 5]>::with("counters", settings)?;
    /// assert_eq!(&*counters.alloc([0; 5])? as *const _ as usize % 64, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(name: &str, settings: Settings) -> Result<Self, Error> {
        Self::create(name, settings, |_| ())
    }

    /// A cache whose arguments `more` completes.
    pub(crate) fn create(
        name: &str,
        settings: Settings,
        more: impl FnOnce(&mut sys::stook_cache_args),
    ) -> Result<Self, Error> {
        let name = Name::new(name)?;
        // Every cache has eight bytes.
        let own = if mem::align_of::<T>() > 8 { mem::align_of::<T>() } else { 0 };
        let mut args = sys::stook_cache_args {
            args_size: mem::size_of::<sys::stook_cache_args>(),
            align: settings.align.max(own),
            flags: settings.flags,
            ctor: None,
            ctor_data: ptr::null_mut(),
            sheaf_capacity: settings.sheaf_capacity,
            barn_full: settings.barn_full,
            barn_empty: settings.barn_empty,
            rcu: ptr::null(),
            dtor: None,
            limit_objects: settings.limit_objects,
            low_objects: 0,
            on_low: None,
            reclaim: None,
            limit_data: ptr::null_mut(),
            memory_in: None,
            memory_out: None,
            memory_data: ptr::null_mut(),
        };
        more(&mut args);
        // SAFETY: both live during the call, which copies them.
        let raw =
            unsafe { sys::stook_cache_create(name.as_ptr(), mem::size_of::<T>().max(1), &args) };
        let raw = NonNull::new(raw).ok_or_else(Error::last)?;
        Ok(Cache { raw, of: PhantomData })
    }

    /// A new object with a value. Without memory the value is dropped.
    #[inline]
    pub fn alloc(&self, value: T) -> Result<Object<'_, T>, Error> {
        self.alloc_with(|| value)
    }

    /// A new object. `make` is not called without memory. If it panics, the memory goes back.
    #[inline]
    pub fn alloc_with(&self, make: impl FnOnce() -> T) -> Result<Object<'_, T>, Error> {
        // SAFETY: the cache lives.
        let memory = unsafe { sys::stook_cache_alloc(self.raw.as_ptr()) };
        Ok(self.memory(memory)?.fill(make()))
    }

    /// `N` objects at once, or none. Without memory the values are dropped.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let points = stook::Cache::new("point")?;
    /// let [a, b, c] = points.alloc_bulk([(0, 0), (3, 0), (0, 4)])?;
    /// assert_eq!(b.0 + c.1, 7);
    /// stook::Object::free_bulk([a, b, c]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn alloc_bulk<const N: usize>(&self, values: [T; N]) -> Result<[Object<'_, T>; N], Error> {
        let mut objects = [ptr::null_mut(); N];
        // SAFETY: the cache lives, and the array has room for N pointers.
        let status =
            unsafe { sys::stook_cache_alloc_bulk(self.raw.as_ptr(), 0, N, objects.as_mut_ptr()) };
        Error::check(status)?;
        let mut objects = objects.iter();
        Ok(values.map(|value| {
            let object = objects.next().map_or(ptr::null_mut(), |object| *object);
            // SAFETY: there are as many objects as values. Each is new, and not null.
            unsafe { Memory::new(self, NonNull::new_unchecked(object.cast())) }.fill(value)
        }))
    }

    /// A new object that is charged to a group. The cache was made with [`flags::ACCOUNT`].
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// use stook::{flags, Cache, Error, Group, Settings};
    ///
    /// let settings = Settings { flags: flags::ACCOUNT, ..Settings::default() };
    /// let pages = Cache::<[u8; 4000]>::with("page", settings)?;
    /// let group = Group::new("small", Some(10_000))?;
    /// let (one, two) = (pages.alloc_in(&group, [0; 4000])?, pages.alloc_in(&group, [0; 4000])?);
    /// assert_eq!(pages.alloc_in(&group, [0; 4000]).unwrap_err(), Error::NO_MEMORY);
    /// assert!(group.usage() >= 8000);
    /// # drop((one, two));
    /// # Ok(())
    /// # }
    /// ```
    pub fn alloc_in(&self, group: &Group, value: T) -> Result<Object<'_, T>, Error> {
        // SAFETY: the cache and the group live.
        let memory = unsafe { sys::stook_cache_alloc_group(self.raw.as_ptr(), 0, group.as_ptr()) };
        Ok(self.memory(memory)?.fill(value))
    }

    /// Memory for at least `n` objects, so that their allocation cannot fail. `n` is at most 65534.
    pub fn prefill(&self, n: usize) -> Result<Sheaf<'_, T>, Error> {
        Sheaf::new(self, n)
    }

    /// Gives back what is cached. Returns how many slabs are still in use.
    pub fn shrink(&self) -> Result<usize, Error> {
        // SAFETY: the cache lives.
        let slabs = unsafe { sys::stook_cache_shrink(self.raw.as_ptr()) };
        Error::check(slabs).map(|()| slabs as usize)
    }

    /// Another limit, above 0, of a cache that was made with one.
    pub fn set_limit(&self, limit_objects: usize) -> Result<(), Error> {
        // SAFETY: the cache lives.
        Error::check(unsafe { sys::stook_cache_set_limit(self.raw.as_ptr(), limit_objects) })
    }

    /// Keeps `n` objects ready on each node; 0 ends that.
    pub fn reserve(&self, n: usize) -> Result<(), Error> {
        // SAFETY: the cache lives.
        Error::check(unsafe { sys::stook_cache_reserve(self.raw.as_ptr(), n) })
    }

    /// Objects in use. Exact while no other thread is inside a call on the cache.
    pub fn live(&self) -> Result<u64, Error> {
        Ok(self.stats()?.objects_live)
    }

    /// All counters and sizes of the cache.
    pub fn stats(&self) -> Result<sys::stook_cache_stats, Error> {
        // SAFETY: integers and arrays of them may be zeros.
        let mut stats: sys::stook_cache_stats = unsafe { mem::zeroed() };
        stats.stats_size = mem::size_of_val(&stats);
        // SAFETY: the cache lives, and stats says how large it is.
        Error::check(unsafe { sys::stook_cache_get_stats(self.raw.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    /// The cache of the C interface, which stays this one's.
    pub fn as_ptr(&self) -> *mut sys::stook_cache {
        self.raw.as_ptr()
    }

    fn memory(&self, memory: *mut sys::c_void) -> Result<Memory<'_, T>, Error> {
        let at = NonNull::new(memory.cast()).ok_or_else(Error::last)?;
        // SAFETY: the memory is a new object of this cache.
        Ok(unsafe { Memory::new(self, at) })
    }
}

impl<T> Drop for Cache<T> {
    fn drop(&mut self) {
        // SAFETY: no guard is left; with objects that were forgotten the call refuses, reports, and
        // the cache lives on.
        unsafe { sys::stook_cache_destroy(self.raw.as_ptr()) };
    }
}

impl<T> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// Memory of a cache in which there is no value yet; it goes back if there never is one.
pub(crate) struct Memory<'c, T> {
    cache: &'c Cache<T>,
    at: NonNull<T>,
}

impl<'c, T> Memory<'c, T> {
    /// # Safety
    /// `at` is an object of `cache` that nothing else uses or frees.
    #[inline]
    pub(crate) unsafe fn new(cache: &'c Cache<T>, at: NonNull<T>) -> Self {
        Memory { cache, at }
    }

    #[inline]
    pub(crate) fn fill(self, value: T) -> Object<'c, T> {
        let memory = ManuallyDrop::new(self);
        // SAFETY: the memory has T's size and alignment, and is ours alone.
        unsafe { memory.at.as_ptr().write(value) };
        Object { cache: memory.cache, at: memory.at, of: PhantomData }
    }
}

impl<T> Drop for Memory<'_, T> {
    fn drop(&mut self) {
        // SAFETY: an object of this cache, which holds no value.
        unsafe { sys::stook_cache_free(self.cache.as_ptr(), self.at.as_ptr().cast()) };
    }
}

/// An object of a cache, with its value. Both end with this guard, in any thread.
pub struct Object<'c, T> {
    cache: &'c Cache<T>,
    at: NonNull<T>,
    of: PhantomData<T>,
}

// SAFETY: a guard owns its value alone, as a Box does; the free may happen in any thread.
unsafe impl<T: Send> Send for Object<'_, T> {}
unsafe impl<T: Sync> Sync for Object<'_, T> {}

impl<'c, T: 'c> Object<'c, T> {
    /// The value's address, which stays.
    pub(crate) fn address(object: &Self) -> *mut T {
        object.at.as_ptr()
    }

    /// Whether it would help to move this object: its slab is emptier than those of the cache are
    /// on average. A new object comes from a fuller one first.
    pub fn is_worth_moving(object: &Self) -> bool {
        // SAFETY: integers may be zeros.
        let mut found: sys::stook_occupancy = unsafe { mem::zeroed() };
        found.occupancy_size = mem::size_of_val(&found);
        // SAFETY: the object lives, and found says how large it is.
        unsafe { sys::stook_object_get_occupancy(object.at.as_ptr().cast(), &mut found) == 1 }
    }

    /// The value; the memory goes back to the cache.
    pub fn into_inner(self) -> T {
        let object = ManuallyDrop::new(self);
        // SAFETY: the value is there, and is read once: the memory is freed without dropping it.
        unsafe {
            let value = object.at.as_ptr().read();
            drop(Memory::new(object.cache, object.at));
            value
        }
    }

    /// Ends many objects, of any caches. Their memory goes back 64 objects at a time, which is
    /// faster than one by one.
    pub fn free_bulk(objects: impl IntoIterator<Item = Self>) {
        let mut batch = Batch { cache: ptr::null_mut(), count: 0, objects: [ptr::null_mut(); 64] };

        for object in objects {
            let object = ManuallyDrop::new(object);
            batch.add(object.cache.as_ptr(), object.at.as_ptr().cast());
            // SAFETY: the guard owned the value. The memory goes back after it, and if its drop
            // panics, too.
            unsafe { ptr::drop_in_place(object.at.as_ptr()) };
        }
    }
}

/// Memory that goes back at once.
struct Batch {
    cache: *mut sys::stook_cache,
    count: usize,
    objects: [*mut sys::c_void; 64],
}

impl Batch {
    fn add(&mut self, cache: *mut sys::stook_cache, object: *mut sys::c_void) {
        if self.count == self.objects.len() || self.cache != cache {
            self.free();
        }
        self.cache = cache;
        self.objects[self.count] = object;
        self.count += 1;
    }

    fn free(&mut self) {
        // SAFETY: objects of the cache, which lives; their values have ended.
        unsafe {
            sys::stook_cache_free_bulk(self.cache, self.count, self.objects.as_mut_ptr());
        }
        self.count = 0;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.free();
    }
}

impl<T> Deref for Object<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives as long as the guard.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for Object<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed alone.
        unsafe { self.at.as_mut() }
    }
}

impl<T> Drop for Object<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard owns both. The memory goes back if the value's drop panics, too.
        unsafe {
            let _memory = Memory::new(self.cache, self.at);
            ptr::drop_in_place(self.at.as_ptr());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
