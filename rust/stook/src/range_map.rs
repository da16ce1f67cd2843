//! Range maps for one owner, as Rust knows it: readers share, a writer is alone.

use crate::error::Error;
use crate::place::unplace;
use crate::tree::{Tree, Walk};
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// A map from ranges of `u64` keys, which do not overlap, to values.
///
/// It is a maple tree: a lookup among 100,000 ranges takes about 50 ns. It takes no lock; a borrow
/// is what keeps writers out. For readers beside a writer there is [`crate::RcuRangeMap`].
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let mut map = stook::RangeMap::new()?;
/// map.insert(0x1000..=0x1fff, "code")?;
/// map.insert(0x4000..=0x7fff, "data")?;
/// assert_eq!(map.get(0x1234), Some(&"code"));
/// assert_eq!(map.get(0x2000), None);
/// assert_eq!(map.iter().map(|(range, _)| *range.start()).sum::<u64>(), 0x5000);
/// assert_eq!(map.remove(0x7000), Some("data"));
/// # Ok(())
/// # }
/// ```
pub struct RangeMap<T> {
    tree: Tree,
    of: PhantomData<T>,
}

// SAFETY: the map owns its values, as a Vec does, and hands out borrows of itself.
unsafe impl<T: Send> Send for RangeMap<T> {}
unsafe impl<T: Sync> Sync for RangeMap<T> {}

impl<T> RangeMap<T> {
    /// An empty map.
    pub fn new() -> Result<Self, Error> {
        let tree = Tree::new(sys::STOOK_MAPLE_EXTERNAL_LOCK)?;
        Ok(RangeMap { tree, of: PhantomData })
    }

    /// An empty map for [`RangeMap::alloc`]. Its nodes hold fewer ranges.
    pub fn with_gaps() -> Result<Self, Error> {
        let tree = Tree::new(sys::STOOK_MAPLE_EXTERNAL_LOCK | sys::STOOK_MAPLE_GAPS)?;
        Ok(RangeMap { tree, of: PhantomData })
    }

    /// Whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Maps a range to a value where nothing is yet: [`Error::EXISTS`] otherwise. The value is
    /// dropped on failure.
    pub fn insert(&mut self, range: RangeInclusive<u64>, value: T) -> Result<(), Error> {
        let (first, last) = (*range.start(), *range.end());
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let stored = unsafe {
            self.tree.store_placed(value, |tree, entry| {
                sys::stook_maple_insert(tree, first, last, entry)
            })
        };
        stored.map(|_| ())
    }

    /// Maps the lowest gap of `size` keys inside `within` to a value, and returns its first key.
    /// [`Error::BUSY`]: there is no such gap. For maps made by [`RangeMap::with_gaps`].
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let mut ids = stook::RangeMap::with_gaps()?;
    /// assert_eq!(ids.alloc(1, 1..=100, "first")?, 1);
    /// assert_eq!(ids.alloc(10, 1..=100, "ten")?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn alloc(
        &mut self,
        size: u64,
        within: RangeInclusive<u64>,
        value: T,
    ) -> Result<u64, Error> {
        let (min, max, mut first) = (*within.start(), *within.end(), 0);
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let stored = unsafe {
            self.tree.store_placed(value, |tree, entry| {
                sys::stook_maple_alloc(tree, entry, size, min, max, &mut first)
            })
        };
        stored.map(|_| first)
    }

    /// The same in the highest gap.
    pub fn alloc_top(
        &mut self,
        size: u64,
        within: RangeInclusive<u64>,
        value: T,
    ) -> Result<u64, Error> {
        let (min, max, mut first) = (*within.start(), *within.end(), 0);
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let stored = unsafe {
            self.tree.store_placed(value, |tree, entry| {
                sys::stook_maple_alloc_top(tree, entry, size, min, max, &mut first)
            })
        };
        stored.map(|_| first)
    }

    /// Maps the lowest free key from `*next` on to a value, or from the start of `within` on if
    /// there is none. Returns the key, and whether the search went round. `*next` becomes the key
    /// above.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let mut ids = stook::RangeMap::with_gaps()?;
    /// let mut next = 2;
    /// assert_eq!(ids.alloc_cyclic(&mut next, 1..=2, "last")?, (2, false));
    /// assert_eq!(ids.alloc_cyclic(&mut next, 1..=2, "first")?, (1, true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn alloc_cyclic(
        &mut self,
        next: &mut u64,
        within: RangeInclusive<u64>,
        value: T,
    ) -> Result<(u64, bool), Error> {
        let (low, high, mut key) = (*within.start(), *within.end(), 0);
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let stored = unsafe {
            self.tree.store_placed(value, |tree, entry| {
                sys::stook_maple_alloc_cyclic(tree, entry, low, high, next, &mut key)
            })
        };
        stored.map(|wrapped| (key, wrapped == 1))
    }

    /// Stores values above all that are in the map, in order: faster than `insert`, and what the
    /// map itself needs for as many as the iterator promises is got before the first.
    /// [`Error::INVALID`]: a range does not lie above all before. On any failure the values before
    /// it stay in the map.
    ///
    /// ```
    /// # fn main() -> Result<(), stook::Error> {
    /// let mut squares = stook::RangeMap::new()?;
    /// squares.load_sorted((0..1000).map(|n| (n..=n, n * n)))?;
    /// assert_eq!(squares.get(30), Some(&900));
    /// # Ok(())
    /// # }
    /// ```
    pub fn load_sorted<I>(&mut self, entries: I) -> Result<(), Error>
    where
        I: IntoIterator<Item = (RangeInclusive<u64>, T)>,
    {
        // SAFETY: the map is borrowed alone.
        unsafe { self.tree.load_sorted(entries.into_iter()) }
    }

    /// The first key of the lowest gap of `size` keys inside `within`. [`Error::BUSY`]: there is
    /// none. For maps made by [`RangeMap::with_gaps`].
    pub fn find_gap(&self, size: u64, within: RangeInclusive<u64>) -> Result<u64, Error> {
        let mut first = 0;
        // SAFETY: writers are kept out by the borrow.
        let status = unsafe {
            sys::stook_maple_empty_area(
                self.tree.as_ptr(),
                size,
                *within.start(),
                *within.end(),
                &mut first,
            )
        };
        Error::check(status).map(|()| first)
    }

    /// The same for the highest gap.
    pub fn find_gap_top(&self, size: u64, within: RangeInclusive<u64>) -> Result<u64, Error> {
        let mut first = 0;
        // SAFETY: writers are kept out by the borrow.
        let status = unsafe {
            sys::stook_maple_empty_area_rev(
                self.tree.as_ptr(),
                size,
                *within.start(),
                *within.end(),
                &mut first,
            )
        };
        Error::check(status).map(|()| first)
    }

    /// Whether any key of `keys` is in a range of the map.
    pub fn overlaps(&self, keys: RangeInclusive<u64>) -> bool {
        // SAFETY: writers are kept out by the borrow.
        unsafe { self.tree.overlaps(keys) }
    }

    /// Removes the whole range that has `key` in it, and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let mut entry = ptr::null_mut();
        // SAFETY: the map is borrowed alone. Without RCU an erase fails where there is no entry.
        unsafe { sys::stook_maple_erase(self.tree.as_ptr(), key, &mut entry) };
        // SAFETY: the entry is from `place`, and the map has it no more.
        NonNull::new(entry.cast()).map(|at| unsafe { unplace(at) })
    }

    /// The value of the range that has `key` in it.
    pub fn get(&self, key: u64) -> Option<&T> {
        // SAFETY: writers are kept out by the borrow; the value lives as long.
        unsafe { sys::stook_maple_load(self.tree.as_ptr(), key).cast::<T>().as_ref() }
    }

    /// The same, with its range.
    pub fn get_range(&self, key: u64) -> Option<(RangeInclusive<u64>, &T)> {
        // SAFETY: as above; an entry is from `place`.
        unsafe {
            let (range, entry) = self.tree.range_of(key)?;
            Some((range, &*entry.cast::<T>().as_ptr()))
        }
    }

    /// The value of the range that has `key` in it, to be changed.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        // SAFETY: the map is borrowed alone, and each value is of one range.
        unsafe { sys::stook_maple_load(self.tree.as_ptr(), key).cast::<T>().as_mut() }
    }

    /// All ranges and their values, in order.
    pub fn iter(&self) -> Ranges<'_, T> {
        self.between(0..=u64::MAX)
    }

    /// The ranges that have a key of `keys` in them, in order.
    pub fn between(&self, keys: RangeInclusive<u64>) -> Ranges<'_, T> {
        Ranges { walk: Walk::new(&self.tree, *keys.start(), *keys.end()), of: PhantomData }
    }
}

impl<T> Drop for RangeMap<T> {
    fn drop(&mut self) {
        let mut walk = Walk::new(&self.tree, 0, u64::MAX);
        // SAFETY: the map is ours alone. The tree never looks at its entries, and is gone next.
        while let Some((_, _, entry)) = unsafe { walk.next() } {
            // SAFETY: each value is of one range.
            drop(unsafe { unplace(entry.cast::<T>()) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for RangeMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'m, T> IntoIterator for &'m RangeMap<T> {
    type Item = (RangeInclusive<u64>, &'m T);
    type IntoIter = Ranges<'m, T>;

    fn into_iter(self) -> Ranges<'m, T> {
        self.iter()
    }
}

/// Ranges of a [`RangeMap`] in order, with their values.
pub struct Ranges<'m, T> {
    walk: Walk,
    of: PhantomData<&'m RangeMap<T>>,
}

impl<'m, T> Iterator for Ranges<'m, T> {
    type Item = (RangeInclusive<u64>, &'m T);

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the map is borrowed for 'm, so there is no writer, and its values live as long.
        unsafe {
            let (first, last, entry) = self.walk.next()?;
            Some((first..=last, &*entry.cast::<T>().as_ptr()))
        }
    }
}

impl<T> fmt::Debug for Ranges<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ranges")
    }
}
