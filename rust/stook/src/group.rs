//! Accounting groups.

use crate::error::{Error, Name};
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::{self, NonNull};
use stook_sys as sys;

/// A group counts the bytes that were allocated in its name, and refuses what exceeds its limit.
///
/// What is charged: all that is allocated with malloc (the whole program's, where [`crate::Stook`]
/// is the global allocator), and objects of caches made with [`crate::flags::ACCOUNT`].
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// #[global_allocator]
/// static HEAP: stook::Stook = stook::Stook;
///
/// let requests = stook::Group::new("requests", Some(64 << 20))?;
/// let body = requests.enter(|| vec![0u8; 5000]);
/// assert!(requests.usage() >= 5000);
/// drop(body);                                     // any thread may free it
/// assert_eq!(requests.usage(), 0);
/// # Ok(())
/// # }
/// ```
///
/// Rust's collections end the program when an allocation is refused, unless they are asked by
/// `try_reserve`.
pub struct Group {
    raw: NonNull<sys::stook_group>,
}

// SAFETY: calls on a group may be made by any threads at once.
unsafe impl Send for Group {}
unsafe impl Sync for Group {}

/// A stay in a group. It ends in the order and in the thread in which it began: it is not Send, and
/// lives in `enter` alone.
struct Stay<'g> {
    before: *mut sys::stook_group,
    of: PhantomData<&'g Group>,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        // SAFETY: stays are nested, so the group before is still borrowed by its own stay.
        unsafe { sys::stook_group_enter(self.before) };
    }
}

/// C's 0 is no limit. A limit of 0 refuses all, as one of 1 does.
fn in_c(limit_bytes: Option<u64>) -> u64 {
    limit_bytes.map_or(0, |bytes| bytes.max(1))
}

impl Group {
    /// A group with a name of 1 to 63 bytes, and the most bytes it may be charged.
    pub fn new(name: &str, limit_bytes: Option<u64>) -> Result<Group, Error> {
        Group::make(name, ptr::null_mut(), limit_bytes)
    }

    /// A group below this one, which is charged all that the new one is charged.
    pub fn below(&self, name: &str, limit_bytes: Option<u64>) -> Result<Group, Error> {
        Group::make(name, self.raw.as_ptr(), limit_bytes)
    }

    fn make(
        name: &str,
        parent: *mut sys::stook_group,
        limit_bytes: Option<u64>,
    ) -> Result<Group, Error> {
        let name = Name::new(name)?;
        // SAFETY: the name lives during the call, and the parent is null or lives.
        let raw = unsafe { sys::stook_group_create(name.as_ptr(), parent, in_c(limit_bytes)) };
        NonNull::new(raw).map(|raw| Group { raw }).ok_or_else(Error::last)
    }

    /// Charges what this thread allocates in `inside` to this group. Calls may be nested.
    pub fn enter<R>(&self, inside: impl FnOnce() -> R) -> R {
        // SAFETY: the group lives as long as the stay.
        let before = unsafe { sys::stook_group_enter(self.raw.as_ptr()) };
        let _stay = Stay { before, of: PhantomData };
        inside()
    }

    /// Another limit; `None`: no limit.
    pub fn set_limit(&self, bytes: Option<u64>) -> Result<(), Error> {
        // SAFETY: the group lives.
        Error::check(unsafe { sys::stook_group_set_limit(self.raw.as_ptr(), in_c(bytes)) })
    }

    /// Bytes of live objects charged to this group and to groups below it.
    pub fn usage(&self) -> u64 {
        // SAFETY: the group lives.
        unsafe { sys::stook_group_usage(self.raw.as_ptr()) }
    }

    /// All figures of the group.
    pub fn stats(&self) -> Result<sys::stook_group_stats, Error> {
        // SAFETY: integers and arrays of them may be zeros.
        let mut stats: sys::stook_group_stats = unsafe { mem::zeroed() };
        stats.stats_size = mem::size_of_val(&stats);
        // SAFETY: the group lives, and stats says how large it is.
        Error::check(unsafe { sys::stook_group_get_stats(self.raw.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::stook_group {
        self.raw.as_ptr()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the group is ours. It lives on until its last object is freed.
        unsafe { sys::stook_group_destroy(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("usage", &self.usage()).finish_non_exhaustive()
    }
}
