//! Range maps with readers that take no lock and never wait.

use crate::error::Error;
use crate::place::unplace;
use crate::rcu::{Entry, Rcu, Section};
use crate::tree::{Locked, Tree, Walk};
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// A map from ranges of `u64` keys to values, with readers beside its writers.
///
/// A [`Reader`] is a read section: it takes no lock, and what it found stays until it ends.
/// Writers take the map's lock. Removed values are dropped after a grace period, perhaps in another
/// thread, which is why `T` is `Send`, `Sync` and `'static`.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let routes = stook::RcuRangeMap::new(stook::Rcu::epoch())?;
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
        rcu.choose()?;
        let tree = Tree::new(sys::STOOK_MAPLE_RCU)?;
        Ok(RcuRangeMap { tree, rcu, of: PhantomData })
    }

    /// A map with values of ranges that each lie above all before ([`Error::INVALID`] otherwise).
    /// It has readers from the return on, so loading it costs what it costs without them.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let names = vec![(1..=9, "digits"), (10..=99, "pairs")];
    /// let map = stook::RcuRangeMap::from_sorted(stook::Rcu::epoch(), names)?;
    /// assert_eq!(map.read().get(42), Some(&"pairs"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_sorted<I>(rcu: Rcu, entries: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = (RangeInclusive<u64>, T)>,
    {
        rcu.choose()?;
        let map = RcuRangeMap { tree: Tree::new(0)?, rcu, of: PhantomData };
        let entries = entries.into_iter().map(|(range, value)| (range, Entry::new(value)));
        {
            let _lock = Locked::new(&map.tree);
            // SAFETY: no other thread knows the tree, and this one holds its lock.
            unsafe { map.tree.load_sorted(entries)? };
        }
        map.tree.set_rcu()?;
        Ok(map)
    }

    /// Begins a read section of this thread.
    pub fn read(&self) -> Reader<'_, T> {
        Reader { map: self, _section: Section::new(self.rcu) }
    }

    /// Maps a range to a value where nothing is yet: [`Error::EXISTS`] otherwise. The value is
    /// dropped on failure.
    pub fn insert(&self, range: RangeInclusive<u64>, value: T) -> Result<(), Error> {
        let (first, last) = (*range.start(), *range.end());
        // SAFETY: the call takes the tree's lock. On success the map owns the entry.
        let stored = unsafe {
            self.tree.store_placed(Entry::new(value), |tree, entry| {
                sys::stook_maple_insert(tree, first, last, entry)
            })
        };
        stored.map(|_| ())
    }

    /// Takes a range where nothing is yet, for a value that comes later: [`Error::EXISTS`]
    /// otherwise. Readers see a gap meanwhile, and other writers are refused.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let files = stook::RcuRangeMap::new(stook::Rcu::epoch())?;
    /// let held = files.hold(3..=3)?;
    /// assert_eq!(files.insert(3..=3, "another"), Err(stook::Error::EXISTS));
    /// assert_eq!(files.read().get(3), None);
    /// held.fill("opened")?;
    /// assert_eq!(files.read().get(3), Some(&"opened"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold(&self, range: RangeInclusive<u64>) -> Result<Held<'_, T>, Error> {
        let placeholder = sys::STOOK_MAPLE_PLACEHOLDER_WORD as *mut sys::c_void;
        // SAFETY: the call takes the tree's lock. A placeholder owns nothing.
        let status = unsafe {
            sys::stook_maple_insert(self.tree.as_ptr(), *range.start(), *range.end(), placeholder)
        };
        Error::check(status).map(|()| Held { map: self, range })
    }

    /// Another value for the whole range that has `key` in it; `false`: there is none. A reader
    /// finds the old value or the new one.
    pub fn replace(&self, key: u64, value: T) -> Result<bool, Error> {
        let at = Entry::place(value)?;
        match self.exchange(key, at) {
            Ok(Some(old)) => {
                // SAFETY: the tree has another entry now.
                unsafe { self.rcu.retire(old) };
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
    ) -> Result<Option<NonNull<Entry<T>>>, Error> {
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
        Error::check(status).map(|()| Some(old.cast()))
    }

    /// Removes the whole range that has `key` in it; `false`: there is none. Its value is dropped
    /// when no reader has it any more. [`Error::NO_MEMORY`]: nothing was changed.
    pub fn remove(&self, key: u64) -> Result<bool, Error> {
        let removed = self.take(key)?;
        if let Some(old) = removed {
            // SAFETY: the tree does not have it any more.
            unsafe { self.rcu.retire(old) };
        }
        Ok(removed.is_some())
    }

    /// Erases the range that has `key` in it, if it has a value: held ones stay.
    fn take(&self, key: u64) -> Result<Option<NonNull<Entry<T>>>, Error> {
        let _lock = Locked::new(&self.tree);
        let mut walk = Walk::new(&self.tree, key, key);
        // SAFETY: this thread holds the tree's lock.
        if unsafe { walk.next() }.is_none() {
            return Ok(None);
        }
        // SAFETY: as above.
        let old = unsafe { walk.erase() }?;
        Ok(old.map(NonNull::cast))
    }
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

/// A range that is taken and has no value yet. It is free again when this ends, unless it was
/// filled, or there is no memory to free it (then it stays taken).
pub struct Held<'m, T: Send + Sync + 'static> {
    map: &'m RcuRangeMap<T>,
    range: RangeInclusive<u64>,
}

impl<T: Send + Sync + 'static> Held<'_, T> {
    /// The range.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.range.clone()
    }

    /// Gives the range its value, which readers see from now on. Without memory for the value it is
    /// dropped, and the range is free again.
    pub fn fill(self, value: T) -> Result<(), Error> {
        let (first, last) = (*self.range.start(), *self.range.end());
        // SAFETY: the call takes the tree's lock. The range is this one's. On success the map owns
        // the entry.
        let stored = unsafe {
            self.map.tree.store_placed(Entry::new(value), |tree, entry| {
                sys::stook_maple_store(tree, first, last, entry)
            })
        };
        stored.map(|_| core::mem::forget(self))
    }
}

impl<T: Send + Sync + 'static> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the call takes the tree's lock, and the range has no value.
        unsafe {
            sys::stook_maple_erase(self.map.tree.as_ptr(), *self.range.start(), ptr::null_mut())
        };
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.range).finish()
    }
}

/// A read section of an [`RcuRangeMap`]. It ends in the thread that began it, so it is not `Send`.
pub struct Reader<'m, T: Send + Sync + 'static> {
    map: &'m RcuRangeMap<T>,
    _section: Section,
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

    /// The same, with its range.
    pub fn get_range(&self, key: u64) -> Option<(RangeInclusive<u64>, &T)> {
        // SAFETY: as above.
        unsafe {
            let (range, entry) = self.map.tree.range_of(key)?;
            Some((range, &(*entry.cast::<Entry<T>>().as_ptr()).value))
        }
    }

    /// Whether any key of `keys` is taken, by a value or by a [`Held`].
    pub fn overlaps(&self, keys: RangeInclusive<u64>) -> bool {
        // SAFETY: this thread is in a read section.
        unsafe { self.map.tree.overlaps(keys) }
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
