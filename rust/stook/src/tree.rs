//! A maple tree at an address that stays, its lock, walks in it, and stores whose entries are
//! placed already.

use crate::error::Error;
use crate::place::{place, unplace};
use core::mem;
use core::ops::RangeInclusive;
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// What `stook_maple_cursor_expect` takes.
const EXPECT_MOST: usize = 1 << 30;

/// A tree, whose entries are the caller's.
pub(crate) struct Tree(NonNull<sys::stook_maple>);

impl Tree {
    pub(crate) fn new(flags: u32) -> Result<Tree, Error> {
        // SAFETY: any size is allowed.
        let at = unsafe { sys::stook_malloc(mem::size_of::<sys::stook_maple>()) };
        let tree = NonNull::new(at.cast()).map(Tree).ok_or_else(Error::last)?;
        // SAFETY: the memory is large enough for a tree.
        Error::check(unsafe { sys::stook_maple_init(tree.as_ptr(), flags) })?;
        Ok(tree)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::stook_maple {
        self.0.as_ptr()
    }

    /// Switches RCU on: the tree has readers from now on.
    pub(crate) fn set_rcu(&self) -> Result<(), Error> {
        // SAFETY: the tree lives, and nothing reads it yet.
        Error::check(unsafe { sys::stook_maple_set_rcu(self.as_ptr(), true) })
    }

    /// The range that has `key` in it, if it has an entry.
    ///
    /// # Safety
    /// What the tree's flags ask of readers is kept: see <stook/maple.h>.
    pub(crate) unsafe fn range_of(
        &self,
        key: u64,
    ) -> Option<(RangeInclusive<u64>, NonNull<sys::c_void>)> {
        let (mut first, mut last) = (0, 0);
        // SAFETY: the tree lives; the rest is the caller's.
        let entry =
            unsafe { sys::stook_maple_load_range(self.as_ptr(), key, &mut first, &mut last) };
        NonNull::new(entry).map(|entry| (first..=last, entry))
    }

    /// Whether a key of `keys` is taken.
    ///
    /// # Safety
    /// As for `range_of`.
    pub(crate) unsafe fn overlaps(&self, keys: RangeInclusive<u64>) -> bool {
        // SAFETY: the tree lives; the rest is the caller's.
        unsafe { sys::stook_maple_overlaps(self.as_ptr(), *keys.start(), *keys.end()) }
    }

    /// Places a value and has it stored. If it is not, it is dropped.
    ///
    /// # Safety
    /// `store` may make its call now. It stores the entry if and only if it returns a status of 0
    /// or above.
    pub(crate) unsafe fn store_placed<V>(
        &self,
        value: V,
        store: impl FnOnce(*mut sys::stook_maple, *mut sys::c_void) -> sys::c_int,
    ) -> Result<sys::c_int, Error> {
        let at = place(value)?;
        let status = store(self.as_ptr(), at.as_ptr().cast());
        Error::check(status).map(|()| status).map_err(|error| {
            // SAFETY: the tree did not take the entry.
            drop(unsafe { unplace(at) });
            error
        })
    }

    /// Stores values above all that is in the tree, in order. What the tree needs for as many as
    /// the iterator promises is got before the first.
    ///
    /// # Safety
    /// This thread alone uses the tree, and holds its lock if it has one.
    pub(crate) unsafe fn load_sorted<V>(
        &self,
        entries: impl Iterator<Item = (RangeInclusive<u64>, V)>,
    ) -> Result<(), Error> {
        let mut end = Walk::new(self, u64::MAX, u64::MAX);
        // SAFETY: the caller's.
        let found = unsafe { sys::stook_maple_cursor_find_rev(&mut end.cursor, 0) };
        let mut above = if found.is_null() { Some(0) } else { end.cursor.last.checked_add(1) };
        let expected = entries.size_hint().0.min(EXPECT_MOST) as u64;
        let mut expecting = Expecting(Walk::new(self, 0, 0));
        let cursor = &mut expecting.0.cursor;
        // SAFETY: the caller's.
        Error::check(unsafe { sys::stook_maple_cursor_expect(cursor, expected) })?;
        for (range, value) in entries {
            if above.map_or(true, |above| *range.start() < above) {
                return Err(Error::INVALID);
            }
            // SAFETY: the caller's; a store that fails stores nothing.
            unsafe {
                self.store_placed(value, |_, entry| {
                    sys::stook_maple_cursor_set(cursor, *range.start(), *range.end());
                    sys::stook_maple_cursor_store(cursor, entry)
                })?;
            }
            above = range.end().checked_add(1);
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: the tree lives; the call reads one word.
        unsafe { sys::stook_maple_empty(self.as_ptr()) }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: the tree is ours alone, and was made by stook_maple_init. (Of a tree that could
        // not be made, which only a wrong flag causes, these zeros are an empty one.)
        unsafe {
            sys::stook_maple_destroy(self.as_ptr());
            sys::stook_free(self.as_ptr().cast());
        }
    }
}

/// The tree's lock, held.
pub(crate) struct Locked<'t>(&'t Tree);

impl<'t> Locked<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Self {
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

/// A walk through the ranges of a tree, upwards.
pub(crate) struct Walk {
    cursor: sys::stook_maple_cursor,
    last: u64,
}

impl Walk {
    /// The ranges that have a key of `first..=last` in them.
    pub(crate) fn new(tree: &Tree, first: u64, last: u64) -> Walk {
        let cursor =
            sys::stook_maple_cursor { tree: tree.as_ptr(), first, last: first, _rest: [0; 21] };
        Walk { cursor, last }
    }

    /// The next range and its entry.
    ///
    /// # Safety
    /// The tree lives, and what its flags ask of readers is kept: for threads see <stook/maple.h>.
    pub(crate) unsafe fn next(&mut self) -> Option<(u64, u64, NonNull<sys::c_void>)> {
        if self.cursor.first > self.last {
            return None;
        }
        // SAFETY: the caller's.
        let entry = unsafe { sys::stook_maple_cursor_find(&mut self.cursor, self.last) };
        NonNull::new(entry).map(|entry| (self.cursor.first, self.cursor.last, entry))
    }

    /// Erases the range that `next` found. `None`: it has no entry any more.
    ///
    /// # Safety
    /// The tree lives, and this thread may write to it.
    pub(crate) unsafe fn erase(&mut self) -> Result<Option<NonNull<sys::c_void>>, Error> {
        let mut entry = ptr::null_mut();
        // SAFETY: the caller's.
        let status = unsafe { sys::stook_maple_cursor_erase(&mut self.cursor, &mut entry) };
        match Error::check(status) {
            Err(Error::ABSENT) => Ok(None),
            checked => checked.map(|()| NonNull::new(entry)),
        }
    }
}

/// A cursor that holds nodes, until it ends.
struct Expecting(Walk);

impl Drop for Expecting {
    fn drop(&mut self) {
        // SAFETY: the tree lives, since the cursor was used in a call that borrows it.
        unsafe { sys::stook_maple_cursor_finish(&mut self.0.cursor) };
    }
}
