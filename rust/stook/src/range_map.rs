//! Range maps for one owner, as Rust knows it: readers share, a writer is alone.

use crate::error::Error;
use crate::tree::{place, unplace, Tree, Walk};
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::ptr::NonNull;
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
        let at = place(value)?;
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let status = unsafe {
            sys::stook_maple_insert(
                self.tree.as_ptr(),
                *range.start(),
                *range.end(),
                at.as_ptr().cast(),
            )
        };
        // SAFETY: the tree did not take the entry.
        Error::check(status).map_err(|error| unsafe { failed(error, at) })
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
        let at = place(value)?;
        let mut first = 0;
        // SAFETY: the map is borrowed alone. On success it owns the entry.
        let status = unsafe {
            sys::stook_maple_alloc(
                self.tree.as_ptr(),
                at.as_ptr().cast(),
                size,
                *within.start(),
                *within.end(),
                &mut first,
            )
        };
        // SAFETY: the tree did not take the entry.
        Error::check(status).map(|()| first).map_err(|error| unsafe { failed(error, at) })
    }

    /// Removes the whole range that has `key` in it, and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        // SAFETY: the map is borrowed alone. Without RCU an erase cannot fail.
        let entry = unsafe { sys::stook_maple_erase(self.tree.as_ptr(), key) };
        // SAFETY: the entry is from `place`, and the map has it no more.
        NonNull::new(entry.cast()).map(|at| unsafe { unplace(at) })
    }

    /// The value of the range that has `key` in it.
    pub fn get(&self, key: u64) -> Option<&T> {
        // SAFETY: writers are kept out by the borrow; the value lives as long.
        unsafe { sys::stook_maple_load(self.tree.as_ptr(), key).cast::<T>().as_ref() }
    }

    /// The same, to be changed.
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

/// # Safety
/// `at` is from `place`, and nothing uses it.
unsafe fn failed<T>(error: Error, at: NonNull<T>) -> Error {
    // SAFETY: the caller's.
    drop(unsafe { unplace(at) });
    error
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
