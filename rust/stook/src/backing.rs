//! What a program does with the memory of a cache: register it, lock it, bind it.

use crate::cache::{Cache, Settings};
use crate::error::Error;
use crate::no_unwind::no_unwind;
use core::ptr::NonNull;
use stook_sys as sys;

/// Prepares the memory of a cache before its first object, and undoes that after its last one.
///
/// The cache gets its memory in runs of 2 MiB, aligned to 2 MiB. No object is in a run during these
/// calls. They may use the heap, but not this cache, and must not make or drop a cache. A panic in
/// them ends the process.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use stook::{Backing, Cache, Settings};
///
/// /// Counts the bytes that a device would know of.
/// struct Device(AtomicUsize);
///
/// impl Backing for Device {
///     fn memory_in(&self, _start: NonNull<u8>, bytes: usize) -> bool {
///         self.0.fetch_add(bytes, Ordering::Relaxed);
///         true
///     }
///     fn memory_out(&self, _start: NonNull<u8>, bytes: usize) {
///         self.0.fetch_sub(bytes, Ordering::Relaxed);
///     }
/// }
///
/// static DEVICE: Device = Device(AtomicUsize::new(0));
/// let buffers = Cache::backed("buffer", Settings::default(), &DEVICE)?;
/// let buffer = buffers.alloc([0_u8; 4096])?;
/// assert_eq!(DEVICE.0.load(Ordering::Relaxed), 2 << 20);
/// drop(buffer);
/// drop(buffers);
/// assert_eq!(DEVICE.0.load(Ordering::Relaxed), 0);
/// # Ok(())
/// # }
/// ```
pub trait Backing: Sync {
    /// A run of `bytes` at `start` comes in. `false`: it is not used, and the allocation fails with
    /// [`Error::NO_MEMORY`]. Several threads may be here at once, each with a run of its own.
    fn memory_in(&self, start: NonNull<u8>, bytes: usize) -> bool;

    /// A run that came in goes, in a shrink, a trim or the drop of the cache. Afterwards the
    /// library maps fresh memory over it.
    fn memory_out(&self, start: NonNull<u8>, bytes: usize) {
        let _ = (start, bytes);
    }
}

impl<T> Cache<T> {
    /// A cache whose memory `backing` prepares.
    pub fn backed<B: Backing>(
        name: &str,
        settings: Settings,
        backing: &'static B,
    ) -> Result<Self, Error> {
        Self::create(name, settings, |args| {
            args.memory_in = Some(memory_in::<B>);
            args.memory_out = Some(memory_out::<B>);
            args.memory_data = backing as *const B as *mut sys::c_void;
        })
    }
}

unsafe extern "C" fn memory_in<B: Backing>(
    start: *mut sys::c_void,
    bytes: usize,
    backing: *mut sys::c_void,
) -> sys::c_int {
    no_unwind(|| {
        // SAFETY: a run is not at address 0. `backed` gave the other pointer, to what lives for
        // ever and is only shared.
        let used = unsafe {
            (*backing.cast::<B>()).memory_in(NonNull::new_unchecked(start.cast()), bytes)
        };
        sys::c_int::from(!used)
    })
}

unsafe extern "C" fn memory_out<B: Backing>(
    start: *mut sys::c_void,
    bytes: usize,
    backing: *mut sys::c_void,
) {
    no_unwind(|| {
        // SAFETY: as above.
        unsafe { (*backing.cast::<B>()).memory_out(NonNull::new_unchecked(start.cast()), bytes) }
    })
}
