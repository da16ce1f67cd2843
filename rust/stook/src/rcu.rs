//! Implementations of RCU, and what waits for their readers.

use crate::error::Error;
use crate::no_unwind::no_unwind;
use crate::place::{place, unplace};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use stook_sys as sys;

/// An RCU implementation, as a table of functions. [`Rcu::epoch`] is always there.
#[derive(Clone, Copy)]
pub struct Rcu(&'static sys::stook_rcu);

impl Rcu {
    /// Stook's own implementation. Threads need no registration. Sections nest 65,535 deep at most;
    /// a deeper one ends the process.
    pub fn epoch() -> Rcu {
        // SAFETY: the table is a constant of libstook.
        Rcu(unsafe { &sys::stook_rcu_epoch })
    }

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

    /// Waits until all values that were removed or replaced before have been dropped.
    /// [`Error::DEADLOCK`]: this thread is a reader, or drops such a value now, so that the wait
    /// would never end.
    pub fn barrier(self) -> Result<(), Error> {
        // SAFETY: any thread may call the table's functions, by the contract of Rcu.
        if self.0.may_wait.map_or(false, |may_wait| unsafe { may_wait() } == 0) {
            return Err(Error::DEADLOCK);
        }
        if let Some(barrier) = self.0.barrier {
            // SAFETY: as above.
            unsafe { barrier() }
        }
        Ok(())
    }

    /// Makes it the implementation of the process.
    #[cfg(feature = "maple")]
    pub(crate) fn choose(self) -> Result<(), Error> {
        // SAFETY: the table lives as long as the process.
        Error::check(unsafe { sys::stook_rcu_use(self.0) })
    }

    /// Has an entry dropped after a grace period.
    ///
    /// # Safety
    /// No new reader finds the entry, and nothing else drops it.
    pub(crate) unsafe fn retire<T: Send>(self, entry: NonNull<Entry<T>>) {
        if let Some(call) = self.0.call {
            // SAFETY: an entry begins with its head, and `call` may be called by any thread.
            unsafe { call(entry.as_ptr().cast(), Some(dropped::<T>)) }
        }
    }
}

impl fmt::Debug for Rcu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rcu")
    }
}

/// A read section of this thread. It ends in the thread that began it, so it is not `Send`.
pub(crate) struct Section {
    rcu: Rcu,
    of_thread: PhantomData<*mut ()>,
}

impl Section {
    pub(crate) fn new(rcu: Rcu) -> Section {
        if let Some(lock) = rcu.0.read_lock {
            // SAFETY: any thread may call it, by the contract of Rcu.
            unsafe { lock() }
        }
        Section { rcu, of_thread: PhantomData }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        if let Some(unlock) = self.rcu.0.read_unlock {
            // SAFETY: this thread began the section.
            unsafe { unlock() }
        }
    }
}

/// A value, and the words that an RCU implementation wants while it waits.
#[repr(C)]
pub(crate) struct Entry<T> {
    head: sys::stook_rcu_head,
    pub(crate) value: T,
}

impl<T> Entry<T> {
    pub(crate) fn new(value: T) -> Self {
        Entry { head: sys::stook_rcu_head { reserved: [core::ptr::null_mut(); 2] }, value }
    }

    pub(crate) fn place(value: T) -> Result<NonNull<Self>, Error> {
        place(Entry::new(value))
    }
}

unsafe extern "C" fn dropped<T>(head: *mut sys::stook_rcu_head) {
    no_unwind(|| {
        // SAFETY: `retire` gave this head, which begins an entry that no reader has any more.
        drop(unsafe { unplace(NonNull::new_unchecked(head.cast::<Entry<T>>())) });
    });
}
