//! Object caches on per-CPU sheaves, allocations that cannot fail, accounting and range maps.
//!
//! ```
//! # fn main() -> Result<(), stook::Error> {
//! struct Session {
//!     user: String,
//! }
//!
//! let sessions = stook::Cache::<Session>::new("session")?;
//! let one = sessions.alloc(Session { user: "ada".into() })?;
//! assert_eq!(one.user, "ada");
//! // The object ends with `one`, and its memory goes back to the cache.
//! # Ok(())
//! # }
//! ```
//!
//! - [`Cache`] and [`Object`]: objects of one type, each behind a guard.
//! - [`Sheaf`] and [`Promise`]: memory that was got before, so that an allocation cannot fail.
//! - [`Arena`]: values that end together. [`Pool`]: values that are used again.
//! - [`Heap`] and [`HeapBox`]: values of any types and sizes that end together, or one by one.
//! - [`Watch`]: what a cache calls when its objects run out. [`Backing`]: what prepares its
//!   memory.
//! - [`Group`]: how much memory is used, for what, and a limit on it.
//! - [`Sampling`]: samples of allocations, for heap profiles and guarded objects.
//! - [`Stook`]: the program's global allocator.
//! - [`RangeMap`] and [`RcuRangeMap`]: ranges of 64-bit keys to values.
//! - [`RcuCell`]: a value that is replaced while others read it. [`Rcu::epoch`] needs nothing else.
//!
//! The crate needs `core` alone; without the feature `std` it only lacks `std::error::Error` for
//! [`Error`]. Link-time needs are those of `stook-sys`.
//!
//! # Threads
//!
//! Calls of the library may be made by any threads at once, and what one thread allocated another
//! may free. So a [`Cache`], a [`Heap`] and a [`Group`] are `Send` and `Sync`, and an [`Object`] is
//! what its value is. A [`Sheaf`] has one holder at a time: it is `Send`, and not `Sync`.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

mod arena;
mod backing;
mod cache;
mod error;
mod global;
mod group;
mod heap;
mod no_unwind;
mod place;
mod pool;
#[cfg(feature = "maple")]
mod range_map;
mod rcu;
mod rcu_cell;
#[cfg(feature = "maple")]
mod rcu_map;
mod sampling;
mod sheaf;
#[cfg(feature = "maple")]
mod tree;
mod watch;

pub use arena::Arena;
pub use backing::Backing;
pub use cache::{flags, Cache, Object, Settings};
pub use error::Error;
pub use global::Stook;
pub use group::Group;
pub use heap::{Heap, HeapBox};
pub use pool::{Pool, Pooled};
#[cfg(feature = "maple")]
pub use range_map::{RangeMap, Ranges};
pub use rcu::Rcu;
pub use rcu_cell::{RcuCell, RcuRef};
#[cfg(feature = "maple")]
pub use rcu_map::{Held, RcuRangeMap, RcuRanges, Reader};
pub use sampling::{Samples, Sampling};
pub use sheaf::{Promise, Sheaf};
pub use stook_sys as sys;
pub use watch::Watch;
