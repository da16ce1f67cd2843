//! One value that is replaced as a whole, beside its readers.

use crate::error::Error;
use crate::place::unplace;
use crate::rcu::{Entry, Rcu, Section};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A value with readers that take no lock, and writers that replace it.
///
/// A value that was replaced is dropped after a grace period, perhaps in another thread, which is
/// why `T` is `Send`, `Sync` and `'static`.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// let settings = stook::RcuCell::new(stook::Rcu::epoch(), String::from("quiet"))?;
/// {
///     let now = settings.read();
///     settings.replace("loud".into())?;           // a writer goes on beside the reader
///     assert_eq!(*now, "quiet");
/// }
/// assert_eq!(*settings.read(), "loud");
/// # Ok(())
/// # }
/// ```
pub struct RcuCell<T: Send + Sync + 'static> {
    at: AtomicPtr<Entry<T>>,
    rcu: Rcu,
    of: PhantomData<T>,
}

impl<T: Send + Sync + 'static> RcuCell<T> {
    /// A cell with a value. Without memory the value is dropped.
    pub fn new(rcu: Rcu, value: T) -> Result<Self, Error> {
        let at = AtomicPtr::new(Entry::place(value)?.as_ptr());
        Ok(RcuCell { at, rcu, of: PhantomData })
    }

    /// Begins a read section of this thread, and finds the value. It stays until the guard ends.
    pub fn read(&self) -> RcuRef<'_, T> {
        let section = Section::new(self.rcu);
        // Acquire: pairs with the release in `replace`.
        let at = self.at.load(Ordering::Acquire);
        // SAFETY: a cell always has an entry, and an entry outlives the sections that may find it.
        RcuRef { value: unsafe { &(*at).value }, _section: section }
    }

    /// Another value. Readers that found the old one keep it until they end. Without memory nothing
    /// is changed, and the new value is dropped.
    pub fn replace(&self, value: T) -> Result<(), Error> {
        let new = Entry::place(value)?;
        // Release: a reader that finds the entry finds its value. Acquire: the old one is whole.
        let old = self.at.swap(new.as_ptr(), Ordering::AcqRel);
        // SAFETY: the swap gave the old entry to this call alone.
        unsafe { self.rcu.retire(NonNull::new_unchecked(old)) };
        Ok(())
    }
}

impl<T: Send + Sync + 'static> Drop for RcuCell<T> {
    fn drop(&mut self) {
        // SAFETY: readers borrow the cell, so none is left; the cell always has an entry.
        drop(unsafe { unplace(NonNull::new_unchecked(*self.at.get_mut())) });
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for RcuCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RcuCell").field(&*self.read()).finish()
    }
}

/// The value of an [`RcuCell`] as it was found. It is a read section, and not `Send`.
pub struct RcuRef<'c, T> {
    value: &'c T,
    _section: Section,
}

impl<T> Deref for RcuRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for RcuRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
