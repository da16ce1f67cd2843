//! Samples of allocations, for heap profiles and guarded objects.

use crate::error::Error;
use core::mem;
use stook_sys as sys;

/// What a session of samples is to be like. Zeros are as usual.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    /// One in so many bytes is sampled: 1 to 1 TiB; 0: 2 MiB.
    pub interval: u64,
    /// So many are kept a second at most: 1 to 1,000,000; 0: 200.
    pub most: u64,
    /// So many of these lie between guard pages, a second; 0: none.
    pub guard: u64,
    /// The stacks of frees are kept, too.
    pub lifetimes: bool,
}

/// A session of samples: it ends when it is dropped. A process has one: another one ends the first.
///
/// `stook profile PID` shows what was sampled.
///
/// ```
/// # fn main() -> Result<(), stook::Error> {
/// #[global_allocator]
/// static HEAP: stook::Stook = stook::Stook;
///
/// let session = stook::Sampling::start(stook::Samples { interval: 1, ..Default::default() })?;
/// let text = vec![0u8; 100];
/// assert!(session.kept() > 0);
/// # drop(text);
/// # Ok(())
/// # }
/// ```
pub struct Sampling(());

impl Sampling {
    /// Begins a session. It empties the slots of all caches, which takes some milliseconds.
    pub fn start(samples: Samples) -> Result<Sampling, Error> {
        let args = sys::stook_sampling_args {
            args_size: mem::size_of::<sys::stook_sampling_args>(),
            interval: samples.interval,
            most: samples.most,
            guard: samples.guard,
            flags: if samples.lifetimes { sys::STOOK_SAMPLING_LIFETIMES } else { 0 },
        };
        // SAFETY: the arguments are whole, and no pointer to them is kept.
        Error::check(unsafe { sys::stook_sampling_start(&args) })?;
        Ok(Sampling(()))
    }

    /// Samples that are counted in the profile, since the process started.
    pub fn kept(&self) -> u64 {
        // SAFETY: a structure of numbers alone.
        let mut stats: sys::stook_sampling_stats = unsafe { mem::zeroed() };
        stats.stats_size = mem::size_of::<sys::stook_sampling_stats>();
        // SAFETY: it says its size; the call fills it.
        unsafe { sys::stook_sampling_get_stats(&mut stats) };
        stats.kept
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // SAFETY: any thread may call it at any time.
        unsafe { sys::stook_sampling_stop() };
    }
}
