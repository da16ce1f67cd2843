//! Callbacks of a cache: its limit comes near, or memory is missed.

use crate::cache::{Cache, Settings};
use crate::error::Error;
use crate::no_unwind::no_unwind;
use stook_sys as sys;

/// What a cache calls when its objects run out.
///
/// A call is made by the thread that allocates, in the middle of its allocation. So it may use the
/// cache, and must not wait for a lock that such a thread may hold: `try_lock` is right. A panic
/// in it ends the process.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// use std::sync::Mutex;
/// use stook::{Cache, Object, Settings, Watch};
///
/// /// Pages that were read, and can be read again.
/// #[derive(Default)]
/// struct Spare(Mutex<Vec<Object<'static, [u8; 512]>>>);
///
/// impl Watch for Spare {
///     fn reclaim(&self, wanted: usize) -> usize {
///         match self.0.try_lock() {
///             Ok(mut spare) => {
///                 let kept = spare.len().saturating_sub(wanted);
///                 let freed = spare.split_off(kept);
///                 let count = freed.len();
///                 Object::free_bulk(freed);
///                 count
///             }
///             Err(_) => 0,
///         }
///     }
/// }
///
/// let spare: &'static Spare = Box::leak(Box::default());
/// let settings = Settings { limit_objects: 10, ..Settings::default() };
/// let cache: &'static _ = Box::leak(Box::new(Cache::watched("page", settings, 0, spare)?));
/// for n in 0..100 {
///     let page = cache.alloc([n; 512])?;          // the limit is met: another page goes
///     spare.0.lock().expect("no panic").push(page);
/// }
/// assert_eq!(cache.live()?, 10);
/// # Ok(())
/// # }
/// ```
pub trait Watch: Sync {
    /// Only `left` objects more can be allocated: the mark that [`Cache::watched`] was given was
    /// crossed. It is called again after the number was above the mark.
    fn low(&self, left: usize) {
        let _ = left;
    }

    /// Ends objects of the cache that the program can spare, and returns how many. `wanted` is how
    /// many an allocation misses, which fails if the answer is 0. It is `usize::MAX` in a trim and
    /// under memory pressure: all that can be spared; then it may run in a thread of the library,
    /// or in an allocation from the heap, and must not make or drop a cache.
    fn reclaim(&self, wanted: usize) -> usize {
        let _ = wanted;
        0
    }
}

impl<T> Cache<T> {
    /// A cache that calls `watch`. With a limit in the settings, [`Watch::low`] is called when only
    /// `low` objects more can be allocated; `low` is below the limit. Without one it never is.
    pub fn watched<W: Watch>(
        name: &str,
        settings: Settings,
        low: usize,
        watch: &'static W,
    ) -> Result<Self, Error> {
        Self::create(name, settings, |args| {
            if settings.limit_objects > 0 {
                args.low_objects = low;
                args.on_low = Some(on_low::<W>);
            }
            args.reclaim = Some(reclaim::<W>);
            args.limit_data = watch as *const W as *mut sys::c_void;
        })
    }
}

unsafe extern "C" fn on_low<W: Watch>(
    _: *mut sys::stook_cache,
    left: usize,
    watch: *mut sys::c_void,
) {
    // SAFETY: `watched` gave this pointer, to what lives for ever and is only shared.
    no_unwind(|| unsafe { (*watch.cast::<W>()).low(left) })
}

unsafe extern "C" fn reclaim<W: Watch>(
    _: *mut sys::stook_cache,
    wanted: usize,
    watch: *mut sys::c_void,
) -> usize {
    // SAFETY: as above.
    no_unwind(|| unsafe { (*watch.cast::<W>()).reclaim(wanted) })
}
