//! Range maps with readers that take no lock and never wait.

use crate::error::Error;
use crate::tree::{place, unplace, Tree, Walk};
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::ptr::NonNull;
use stook_sys as sys;

/// An RCU implementation, as a table of functions.
#[derive(Clone, Copy)]
pub struct Rcu(&'static sys::stook_rcu);

impl Rcu {
    /// liburcu's bulletproof flavour: threads need no registration. It is in libstook-urcu.
    #[cfg(feature = "urcu")]
    pub fn bp() -> Rcu {
        // SAFETY: the table is a constant of libstook-urcu.
        Rcu(unsafe { &sys::stook_urcu_bp })
    }

    /// An implementation of the program's own, or another flavour.
    ///
    /// # Safety
    /// The functions do what `<stook/rcu.h>` says, and any thread of the program may call them.
    /// What was given to `call` before outlives every read section that began before.
    pub unsafe fn from_table(table: &'static sys::stook_rcu) -> Rcu {
        Rcu(table)
    }
}

impl fmt::Debug for Rcu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rcu")
    }
}

/// A value, and the words that an RCU implementation wants while it waits.
#[repr(C)]
struct Entry<T> {
    head: sys::stook_rcu_head,
    value: T,
}

/// Ends the process if a value's drop panics in a callback of C: a second panic aborts.
struct NoUnwind;

impl Drop for NoUnwind {
    fn drop(&mut self) {
        panic!("a value's drop panicked after a grace period");
    }
}

unsafe extern "C" fn dropped<T>(head: *mut sys::stook_rcu_head) {
    let guard = NoUnwind;
    // SAFETY: `retire` gave this head, which begins an entry that no reader has any more.
    drop(unsafe { unplace(NonNull::new_unchecked(head.cast::<Entry<T>>())) });
    core::mem::forget(guard);
}

/// A map from ranges of `u64` keys to values, with readers beside its writers.
///
/// A [`Reader`] is a read section: it takes no lock, and what it found stays until it ends.
/// Writers take the map's lock. Removed values are dropped after a grace period, perhaps in another
/// thread, which is why `T` is `Send`, `Sync` and `'static`.
///
/// With the feature `urcu`:
///
#[cfg_attr(feature = "urcu", doc = "```")]
#[cfg_attr(not(feature = "urcu"), doc = "```ignore")]
/// # fn main() -> Result<(), stook::Error> {
/// let routes = stook::RcuRangeMap::new(stook::Rcu::bp())?;
/// routes.insert(10..=19, "eth0")?;
/// {
///     let reader = routes.read();
///     assert_eq!(reader.get(15), Some(&"eth0"));
///     routes.replace(15, "eth1")?;                // a writer goes on beside the reader
///     assert_eq!(reader.get(15), Some(&"eth1"));
/// }
/// assert!(routes.remove(15)?);
/// # Ok(())
/// # }
/// ```
pub struct RcuRangeMap<T: Send + Sync + 'static> {
    tree: Tree,
    rcu: Rcu,
    of: PhantomData<T>,
}

// SAFETY: values are Send and Sync. Readers are in read sections, writers take the tree's lock.
unsafe impl<T: Send + Sync> Send for RcuRangeMap<T> {}
unsafe impl<T: Send + Sync> Sync for RcuRangeMap<T> {}

impl<T: Send + Sync + 'static> RcuRangeMap<T> {
    /// An empty map. `rcu` becomes the implementation of the process: [`Error::BUSY`] if another
    /// one is in use.
    pub fn new(rcu: Rcu) -> Result<Self, Error> {
        // SAFETY: the table lives as long as the process.
        Error::check(unsafe { sys::stook_rcu_use(rcu.0) })?;
        let tree = Tree::new(sys::STOOK_MAPLE_RCU)?;
        Ok(RcuRangeMap { tree, rcu, of: PhantomData })
    }

    /// Begins a read section of this thread.
    pub fn read(&self) -> Reader<'_, T> {
        if let Some(lock) = self.rcu.0.read_lock {
            // SAFETY: any thread may call it, by the contract of Rcu.
            unsafe { lock() }
        }
        Reader { map: self, of_thread: PhantomData }
    }

    /// Maps a range to a value where nothing is yet: [`Error::EXISTS`] otherwise. The value is
    /// dropped on failure.
    pub fn insert(&self, range: RangeInclusive<u64>, value: T) -> Result<(), Error> {
        let at = entry_of(value)?;
        // SAFETY: the call takes the tree's lock. On success the map owns the entry.
        let status = unsafe {
            sys::stook_maple_insert(
                self.tree.as_ptr(),
                *range.start(),
                *range.end(),
                at.as_ptr().cast(),
            )
        };
        Error::check(status).map_err(|error| {
            // SAFETY: the tree did not take the entry, so no reader saw it.
            drop(unsafe { unplace(at) });
            error
        })
    }

    /// Another value for the whole range that has `key` in it; `false`: there is none. A reader
    /// finds the old value or the new one.
    pub fn replace(&self, key: u64, value: T) -> Result<bool, Error> {
        let at = entry_of(value)?;
        match self.exchange(key, at) {
            Ok(Some(old)) => {
                self.retire(old);
                Ok(true)
            }
            refused => {
                // SAFETY: the tree did not take the entry, so no reader saw it.
                drop(unsafe { unplace(at) });
                refused.map(|_| false)
            }
        }
    }

    /// Another entry for the range that has `key` in it. The lock is released again, so that a
    /// value's drop may use the map.
    fn exchange(
        &self,
        key: u64,
        new: NonNull<Entry<T>>,
    ) -> Result<Option<NonNull<sys::c_void>>, Error> {
        let _lock = Locked::new(&self.tree);
        // SAFETY: this thread holds the tree's lock.
        let found = unsafe { Walk::new(&self.tree, key, key).next() };
        let (first, last, old) = match found {
            Some(found) => found,
            None => return Ok(None),
        };
        // SAFETY: as above; the range is of one entry.
        let status =
            unsafe { sys::stook_maple_store(self.tree.as_ptr(), first, last, new.as_ptr().cast()) };
        Error::check(status).map(|()| Some(old))
    }

    /// Removes the whole range that has `key` in it; `false`: there is none. Its value is dropped
    /// when no reader has it any more. [`Error::NO_MEMORY`]: nothing was changed.
    pub fn remove(&self, key: u64) -> Result<bool, Error> {
        Error::forget_last();
        // SAFETY: the call takes the tree's lock.
        let entry = unsafe { sys::stook_maple_erase(self.tree.as_ptr(), key) };
        match NonNull::new(entry) {
            Some(old) => {
                self.retire(old);
                Ok(true)
            }
            None => Error::check(-Error::last().errno()).map(|()| false),
        }
    }

    /// Has an entry dropped after a grace period. No new reader finds it.
    fn retire(&self, entry: NonNull<sys::c_void>) {
        if let Some(call) = self.rcu.0.call {
            // SAFETY: an entry begins with its head, and `call` may be called by any thread.
            unsafe { call(entry.as_ptr().cast(), Some(dropped::<T>)) }
        }
    }
}

fn entry_of<T>(value: T) -> Result<NonNull<Entry<T>>, Error> {
    place(Entry { head: sys::stook_rcu_head { reserved: [core::ptr::null_mut(); 2] }, value })
}

impl<T: Send + Sync + 'static> Drop for RcuRangeMap<T> {
    fn drop(&mut self) {
        let _lock = Locked::new(&self.tree);
        let mut walk = Walk::new(&self.tree, 0, u64::MAX);
        // SAFETY: this thread holds the lock, and readers borrow the map, so none is left.
        while let Some((_, _, entry)) = unsafe { walk.next() } {
            // SAFETY: each entry is of one range.
            drop(unsafe { unplace(entry.cast::<Entry<T>>()) });
        }
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for RcuRangeMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.read().iter()).finish()
    }
}

/// The tree's lock, held.
struct Locked<'t>(&'t Tree);

impl<'t> Locked<'t> {
    fn new(tree: &'t Tree) -> Self {
        // SAFETY: the tree lives.
        unsafe { sys::stook_maple_lock(tree.as_ptr()) };
        Locked(tree)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread took the lock.
        unsafe { sys::stook_maple_unlock(self.0.as_ptr()) };
    }
}

/// A read section of an [`RcuRangeMap`]. It ends in the thread that began it, so it is not `Send`.
pub struct Reader<'m, T: Send + Sync + 'static> {
    map: &'m RcuRangeMap<T>,
    of_thread: PhantomData<*mut ()>,
}

impl<T: Send + Sync + 'static> Reader<'_, T> {
    /// The value of the range that has `key` in it, as it is now.
    pub fn get(&self, key: u64) -> Option<&T> {
        // SAFETY: this thread is in a read section for as long as the borrow lives.
        unsafe {
            let entry = sys::stook_maple_load(self.map.tree.as_ptr(), key).cast::<Entry<T>>();
            entry.as_ref().map(|entry| &entry.value)
        }
    }

    /// All ranges and their values, in order; each as it is when the walk gets there.
    pub fn iter(&self) -> RcuRanges<'_, T> {
        self.between(0..=u64::MAX)
    }

    /// The ranges that have a key of `keys` in them, in order.
    pub fn between(&self, keys: RangeInclusive<u64>) -> RcuRanges<'_, T> {
        let walk = Walk::new(&self.map.tree, *keys.start(), *keys.end());
        RcuRanges { walk, of: PhantomData }
    }
}

impl<T: Send + Sync + 'static> Drop for Reader<'_, T> {
    fn drop(&mut self) {
        if let Some(unlock) = self.map.rcu.0.read_unlock {
            // SAFETY: this thread began the section, since a Reader is not Send.
            unsafe { unlock() }
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Reader<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// Ranges that a [`Reader`] meets, with their values.
pub struct RcuRanges<'r, T: Send + Sync + 'static> {
    walk: Walk,
    of: PhantomData<(&'r T, *mut ())>,
}

impl<'r, T: Send + Sync + 'static> Iterator for RcuRanges<'r, T> {
    type Item = (RangeInclusive<u64>, &'r T);

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the reader is borrowed for 'r: its section lasts, and this thread is in it.
        unsafe {
            let (first, last, entry) = self.walk.next()?;
            Some((first..=last, &(*entry.cast::<Entry<T>>().as_ptr()).value))
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for RcuRanges<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RcuRanges")
    }
}
