//! The C interface of Stook, declared by hand. The meaning of each call, its errors, and what may
//! run at the same time is in the C headers (`<stook/cache.h>` and so on) and their manual pages.
//! The crate `stook` has what is safe.
//!
//! `tests/header.rs` compares each declaration with the headers.
//!
//! The library is found by pkg-config, or in the folder that `STOOK_LIB_DIR` names.
//! `STOOK_LIB_STATIC=1` links `libstook.a`.
#![no_std]
#![allow(non_camel_case_types)]

pub use core::ffi::c_void;

/// C's `char`. (`core::ffi` has these types from Rust 1.64 on.)
#[cfg(target_arch = "x86_64")]
pub type c_char = i8;
/// C's `char`.
#[cfg(not(target_arch = "x86_64"))]
pub type c_char = u8;
/// C's `int`.
pub type c_int = i32;
/// C's `unsigned int`.
pub type c_uint = u32;

/// A type of C that is only pointed to.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`struct ", stringify!($name), "`, only pointed to.")]
            #[repr(C)]
            pub struct $name {
                _private: [u8; 0],
                _not_send: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
            }
        )*
    };
}

opaque! { stook_cache stook_sheaf stook_group stook_heap }

/* <stook/cache.h> */

pub const STOOK_CACHE_HWCACHE_ALIGN: u64 = 1 << 4;
pub const STOOK_CACHE_TYPESAFE_BY_RCU: u64 = 1 << 5;
pub const STOOK_CACHE_RCU: u64 = 1 << 6;
pub const STOOK_CACHE_ACCOUNT: u64 = 1 << 7;
pub const STOOK_CACHE_MERGE: u64 = 1 << 8;
pub const STOOK_CACHE_NO_SHEAVES: u64 = 1 << 9;
pub const STOOK_CACHE_RANDOM_ORDER: u64 = 1 << 10;
pub const STOOK_CACHE_HUGE_PAGES: u64 = 1 << 11;

pub const STOOK_ALLOC_ZERO: c_uint = 1;
pub const STOOK_ALLOC_THISNODE: c_uint = 2;
pub const STOOK_ALLOC_NOWAIT: c_uint = 4;
pub const STOOK_ALLOC_NOLOCK: c_uint = 8;

pub const STOOK_OBJECT_MAX: usize = 128 << 10;
/// Of a setting where 0 stands for "as it is by default": none.
pub const STOOK_NONE: c_uint = 0xffffffff;

/// A constructor of objects.
pub type stook_ctor = unsafe extern "C" fn(object: *mut c_void, ctor_data: *mut c_void);
/// What `stook_cache_for_each_object` calls.
pub type stook_each = unsafe extern "C" fn(object: *mut c_void, data: *mut c_void) -> c_int;
/// `on_low` of a cache with a limit.
pub type stook_on_low =
    unsafe extern "C" fn(cache: *mut stook_cache, left: usize, data: *mut c_void);
/// `reclaim` of a cache.
pub type stook_reclaim =
    unsafe extern "C" fn(cache: *mut stook_cache, wanted: usize, data: *mut c_void) -> usize;

/// `memory_in` of a cache.
pub type stook_memory_in =
    unsafe extern "C" fn(start: *mut c_void, bytes: usize, data: *mut c_void) -> c_int;
/// `memory_out` of a cache.
pub type stook_memory_out =
    unsafe extern "C" fn(start: *mut c_void, bytes: usize, data: *mut c_void);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_cache_args {
    pub args_size: usize,
    pub align: usize,
    pub flags: u64,
    pub ctor: Option<stook_ctor>,
    pub ctor_data: *mut c_void,
    pub sheaf_capacity: c_uint,
    pub barn_full: c_uint,
    pub barn_empty: c_uint,
    pub rcu: *const stook_rcu,
    pub dtor: Option<stook_ctor>,
    pub limit_objects: usize,
    pub low_objects: usize,
    pub on_low: Option<stook_on_low>,
    pub reclaim: Option<stook_reclaim>,
    pub limit_data: *mut c_void,
    pub memory_in: Option<stook_memory_in>,
    pub memory_out: Option<stook_memory_out>,
    pub memory_data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_tuning {
    pub tuning_size: usize,
    pub sheaf_capacity: c_uint,
    pub barn_full: c_uint,
    pub barn_empty: c_uint,
}

extern "C" {
    pub fn stook_cache_create(
        name: *const c_char,
        size: usize,
        args: *const stook_cache_args,
    ) -> *mut stook_cache;
    pub fn stook_cache_destroy(cache: *mut stook_cache) -> c_int;
    pub fn stook_cache_for_each_object(
        cache: *mut stook_cache,
        each: Option<stook_each>,
        data: *mut c_void,
    ) -> c_int;
    pub fn stook_cache_destroy_all(
        cache: *mut stook_cache,
        last_look: Option<stook_ctor>,
        data: *mut c_void,
    ) -> c_int;
    pub fn stook_cache_find(name: *const c_char) -> *mut stook_cache;
    pub fn stook_cache_alloc(cache: *mut stook_cache) -> *mut c_void;
    pub fn stook_cache_zalloc(cache: *mut stook_cache) -> *mut c_void;
    pub fn stook_cache_alloc_flags(cache: *mut stook_cache, flags: c_uint) -> *mut c_void;
    pub fn stook_cache_alloc_node(
        cache: *mut stook_cache,
        flags: c_uint,
        node: c_int,
    ) -> *mut c_void;
    pub fn stook_cache_free(cache: *mut stook_cache, object: *mut c_void);
    pub fn stook_cache_alloc_nolock(cache: *mut stook_cache) -> *mut c_void;
    pub fn stook_cache_free_nolock(cache: *mut stook_cache, object: *mut c_void);
    pub fn stook_cache_alloc_bulk(
        cache: *mut stook_cache,
        flags: c_uint,
        n: usize,
        objects: *mut *mut c_void,
    ) -> c_int;
    pub fn stook_cache_free_bulk(cache: *mut stook_cache, n: usize, objects: *mut *mut c_void);
    pub fn stook_cache_shrink(cache: *mut stook_cache) -> c_int;
    pub fn stook_cache_tune(cache: *mut stook_cache, tuning: *const stook_tuning) -> c_int;
    pub fn stook_cache_set_limit(cache: *mut stook_cache, limit_objects: usize) -> c_int;
    pub fn stook_cache_reserve(cache: *mut stook_cache, n: usize) -> c_int;
    pub fn stook_cache_object_size(cache: *const stook_cache) -> usize;
    pub fn stook_object_node(object: *const c_void) -> c_int;
    pub fn stook_object_cache(object: *const c_void) -> *mut stook_cache;
}

/* <stook/sheaf.h> */

extern "C" {
    pub fn stook_sheaf_prefill(
        cache: *mut stook_cache,
        flags: c_uint,
        n: usize,
    ) -> *mut stook_sheaf;
    pub fn stook_sheaf_refill(
        cache: *mut stook_cache,
        flags: c_uint,
        sheaf: *mut *mut stook_sheaf,
        n: usize,
    ) -> c_int;
    pub fn stook_sheaf_available(sheaf: *const stook_sheaf) -> usize;
    pub fn stook_sheaf_alloc(cache: *mut stook_cache, sheaf: *mut stook_sheaf) -> *mut c_void;
    pub fn stook_sheaf_return(cache: *mut stook_cache, sheaf: *mut stook_sheaf);
}

/* <stook/malloc.h> */

extern "C" {
    pub fn stook_malloc(size: usize) -> *mut c_void;
    pub fn stook_calloc(n: usize, size: usize) -> *mut c_void;
    pub fn stook_realloc(object: *mut c_void, size: usize) -> *mut c_void;
    pub fn stook_reallocarray(object: *mut c_void, n: usize, size: usize) -> *mut c_void;
    pub fn stook_aligned_alloc(align: usize, size: usize) -> *mut c_void;
    pub fn stook_free(object: *mut c_void);
    pub fn stook_free_sized(object: *mut c_void, size: usize);
    pub fn stook_free_aligned_sized(object: *mut c_void, align: usize, size: usize);
    pub fn stook_usable_size(object: *const c_void) -> usize;
    pub fn stook_owns(object: *const c_void) -> bool;
    pub fn stook_aligned_realloc(object: *mut c_void, align: usize, size: usize) -> *mut c_void;
    pub fn stook_good_size(size: usize) -> usize;
    pub fn stook_malloc_at_least(size: usize, got: *mut usize) -> *mut c_void;
    pub fn stook_try_expand(object: *mut c_void, size: usize) -> bool;
    pub fn stook_malloc_bulk(size: usize, n: usize, objects: *mut *mut c_void) -> c_int;
    pub fn stook_free_bulk(n: usize, objects: *mut *mut c_void);
    pub fn stook_malloc_nolock(size: usize) -> *mut c_void;
    pub fn stook_free_nolock(object: *mut c_void);
}

/* <stook/group.h> */

pub const STOOK_GROUPS_MAX: c_uint = 65534;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_group_stats {
    pub stats_size: usize,
    pub name: [c_char; 64],
    pub limit_bytes: u64,
    pub usage_bytes: u64,
    pub precharge_bytes: u64,
    pub peak_bytes: u64,
    pub limit_events: u64,
    pub refusals: u64,
}

extern "C" {
    pub fn stook_group_create(
        name: *const c_char,
        parent: *mut stook_group,
        limit_bytes: u64,
    ) -> *mut stook_group;
    pub fn stook_group_enter(group: *mut stook_group) -> *mut stook_group;
    pub fn stook_group_set_limit(group: *mut stook_group, bytes: u64) -> c_int;
    pub fn stook_group_usage(group: *const stook_group) -> u64;
    pub fn stook_group_get_stats(group: *const stook_group, stats: *mut stook_group_stats)
        -> c_int;
    pub fn stook_group_destroy(group: *mut stook_group);
    pub fn stook_cache_alloc_group(
        cache: *mut stook_cache,
        flags: c_uint,
        group: *mut stook_group,
    ) -> *mut c_void;
}

/* <stook/heap.h> */

pub const STOOK_HEAP_NAME_BYTES: usize = 48;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_heap_args {
    pub args_size: usize,
    pub limit_bytes: u64,
    pub group: *mut stook_group,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_heap_stats {
    pub stats_size: usize,
    pub name: [c_char; 48],
    pub limit_bytes: u64,
    pub bytes: u64,
    pub peak_bytes: u64,
    pub large_bytes: u64,
    pub objects_live: u64,
    pub objects_cached: u64,
    pub slabs: u64,
    pub caches: u64,
    pub refusals: u64,
    pub spilled: u64,
}

extern "C" {
    pub fn stook_heap_create(
        name: *const c_char,
        args: *const stook_heap_args,
    ) -> *mut stook_heap;
    pub fn stook_heap_destroy(heap: *mut stook_heap) -> c_int;
    pub fn stook_heap_reset(heap: *mut stook_heap) -> c_int;
    pub fn stook_heap_alloc(heap: *mut stook_heap, size: usize) -> *mut c_void;
    pub fn stook_heap_calloc(heap: *mut stook_heap, n: usize, size: usize) -> *mut c_void;
    pub fn stook_heap_aligned_alloc(
        heap: *mut stook_heap,
        align: usize,
        size: usize,
    ) -> *mut c_void;
    pub fn stook_heap_realloc(
        heap: *mut stook_heap,
        object: *mut c_void,
        size: usize,
    ) -> *mut c_void;
    pub fn stook_heap_free(heap: *mut stook_heap, object: *mut c_void);
    pub fn stook_heap_of(object: *const c_void) -> *mut stook_heap;
    pub fn stook_heap_shrink(heap: *mut stook_heap) -> c_int;
    pub fn stook_heap_set_limit(heap: *mut stook_heap, bytes: u64) -> c_int;
    pub fn stook_heap_get_stats(heap: *mut stook_heap, stats: *mut stook_heap_stats) -> c_int;
}

/* <stook/sampling.h> */

pub const STOOK_SAMPLING_LIFETIMES: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_sampling_args {
    pub args_size: usize,
    pub interval: u64,
    pub most: u64,
    pub guard: u64,
    pub flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_sampling_stats {
    pub stats_size: usize,
    pub interval: u64,
    pub marks: u64,
    pub kept: u64,
    pub in_place: u64,
    pub guarded: u64,
    pub share: f64,
}

extern "C" {
    pub fn stook_sampling_start(args: *const stook_sampling_args) -> c_int;
    pub fn stook_sampling_stop() -> c_int;
    pub fn stook_sampling_get_stats(stats: *mut stook_sampling_stats) -> c_int;
    pub fn stook_describe(pointer: *const c_void, text: *mut c_char, bytes: usize) -> c_int;
}

/* <stook/rcu.h> */

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_rcu_head {
    pub reserved: [*mut c_void; 2],
}

/// What an RCU implementation calls after a grace period.
pub type stook_rcu_done = unsafe extern "C" fn(head: *mut stook_rcu_head);
/// `call` of an RCU implementation.
pub type stook_rcu_call =
    unsafe extern "C" fn(head: *mut stook_rcu_head, done: Option<stook_rcu_done>);
/// The other functions of an RCU implementation.
pub type stook_rcu_plain = unsafe extern "C" fn();
/// `may_wait` of an RCU implementation.
pub type stook_rcu_may_wait = unsafe extern "C" fn() -> c_int;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_rcu {
    pub ops_size: usize,
    pub call: Option<stook_rcu_call>,
    pub barrier: Option<stook_rcu_plain>,
    pub read_lock: Option<stook_rcu_plain>,
    pub read_unlock: Option<stook_rcu_plain>,
    pub quiescent: Option<stook_rcu_plain>,
    pub may_wait: Option<stook_rcu_may_wait>,
}

extern "C" {
    pub fn stook_rcu_use(rcu: *const stook_rcu) -> c_int;
    pub fn stook_cache_free_rcu(cache: *mut stook_cache, object: *mut c_void) -> c_int;
    pub fn stook_cache_free_rcu_nolock(cache: *mut stook_cache, object: *mut c_void) -> c_int;
    pub fn stook_cache_free_rcu_bulk(
        cache: *mut stook_cache,
        n: usize,
        objects: *mut *mut c_void,
    ) -> c_int;
    pub fn stook_free_rcu(object: *mut c_void) -> c_int;
    pub fn stook_free_rcu_nolock(object: *mut c_void) -> c_int;
    pub fn stook_cache_rcu_barrier(cache: *mut stook_cache);
    pub fn stook_rcu_barrier();
    pub fn stook_rcu_set_limit(limit_bytes: u64, milliseconds: c_uint);
    pub fn stook_rcu_backlog() -> u64;
    pub static stook_rcu_epoch: stook_rcu;
    pub fn stook_epoch_read_lock();
    pub fn stook_epoch_read_unlock();
    pub fn stook_epoch_synchronize() -> c_int;
}

#[cfg(feature = "urcu")]
extern "C" {
    pub static stook_urcu_memb: stook_rcu;
    pub static stook_urcu_mb: stook_rcu;
    pub static stook_urcu_qsbr: stook_rcu;
    pub static stook_urcu_bp: stook_rcu;
    pub fn stook_urcu_begin(table: *const stook_rcu) -> u64;
    pub fn stook_urcu_passed(table: *const stook_rcu, begun: u64);
}

/* <stook/stats.h> */

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_cache_stats {
    pub stats_size: usize,
    pub name: [c_char; 64],
    pub object_size: u64,
    pub stride: u64,
    pub objects_per_slab: u64,
    pub slab_bytes: u64,
    pub sheaf_capacity: u64,
    pub slabs: u64,
    pub objects_live: u64,
    pub objects_cached: u64,
    pub sheaves: u64,
    pub slabs_peak: u64,
    pub objects_peak: u64,
    pub reserved: [u64; 6],
    pub alloc_fastpath: u64,
    pub alloc_slowpath: u64,
    pub free_rcu_sheaf: u64,
    pub free_rcu_sheaf_fail: u64,
    pub free_fastpath: u64,
    pub free_slowpath: u64,
    pub free_add_partial: u64,
    pub free_remove_partial: u64,
    pub alloc_slab: u64,
    pub free_slab: u64,
    pub alloc_node_mismatch: u64,
    pub order_fallback: u64,
    pub cmpxchg_double_fail: u64,
    pub sheaf_flush: u64,
    pub sheaf_refill: u64,
    pub sheaf_alloc: u64,
    pub sheaf_free: u64,
    pub barn_get: u64,
    pub barn_get_fail: u64,
    pub barn_put: u64,
    pub barn_put_fail: u64,
    pub sheaf_prefill_fast: u64,
    pub sheaf_prefill_slow: u64,
    pub sheaf_prefill_oversize: u64,
    pub sheaf_return_fast: u64,
    pub sheaf_return_slow: u64,
}

/// How full an object's slab is, and those of its cache.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct stook_occupancy {
    pub occupancy_size: usize,
    pub slab_objects: u64,
    pub slab_out: u64,
    pub cache_slabs: u64,
    pub cache_out: u64,
}

extern "C" {
    pub fn stook_cache_get_stats(cache: *const stook_cache, stats: *mut stook_cache_stats)
        -> c_int;
    pub fn stook_object_get_occupancy(object: *const c_void, occupancy: *mut stook_occupancy)
        -> c_int;
}

/* <stook/control.h> */

extern "C" {
    pub fn stook_trim(keep_bytes: usize) -> usize;
    pub fn stook_maintain();
    pub fn stook_maintenance_thread(on: c_int) -> c_int;
    pub fn stook_version() -> *const c_char;
}

/* <stook/maple.h> */

pub const STOOK_MAPLE_GAPS: c_uint = 1;
pub const STOOK_MAPLE_RCU: c_uint = 2;
pub const STOOK_MAPLE_EXTERNAL_LOCK: c_uint = 4;
/// `STOOK_MAPLE_PLACEHOLDER`, as a number.
pub const STOOK_MAPLE_PLACEHOLDER_WORD: usize = 2;

/// Tells whether the calling thread holds a lock.
pub type stook_maple_held = unsafe extern "C" fn(lock: *const c_void) -> bool;

/// Room for a tree on all machines. `stook_maple_init` makes one of it.
#[repr(C, align(16))]
pub struct stook_maple {
    pub _rest: [u64; 32],
}

/// A cursor is made of zeros, but for these three fields.
#[repr(C)]
pub struct stook_maple_cursor {
    pub tree: *mut stook_maple,
    pub first: u64,
    pub last: u64,
    pub _rest: [u64; 21],
}

#[cfg(feature = "maple")]
extern "C" {
    pub fn stook_maple_init(tree: *mut stook_maple, flags: c_uint) -> c_int;
    pub fn stook_maple_destroy(tree: *mut stook_maple);
    pub fn stook_maple_lock(tree: *mut stook_maple);
    pub fn stook_maple_unlock(tree: *mut stook_maple);
    pub fn stook_maple_set_external_lock(
        tree: *mut stook_maple,
        held: Option<stook_maple_held>,
        lock: *const c_void,
    ) -> c_int;
    pub fn stook_maple_set_rcu(tree: *mut stook_maple, on: bool) -> c_int;
    pub fn stook_maple_load(tree: *mut stook_maple, key: u64) -> *mut c_void;
    pub fn stook_maple_load_range(
        tree: *mut stook_maple,
        key: u64,
        first: *mut u64,
        last: *mut u64,
    ) -> *mut c_void;
    pub fn stook_maple_overlaps(tree: *mut stook_maple, first: u64, last: u64) -> bool;
    pub fn stook_maple_store(
        tree: *mut stook_maple,
        first: u64,
        last: u64,
        entry: *mut c_void,
    ) -> c_int;
    pub fn stook_maple_insert(
        tree: *mut stook_maple,
        first: u64,
        last: u64,
        entry: *mut c_void,
    ) -> c_int;
    pub fn stook_maple_erase(tree: *mut stook_maple, key: u64, old: *mut *mut c_void) -> c_int;
    pub fn stook_maple_alloc(
        tree: *mut stook_maple,
        entry: *mut c_void,
        size: u64,
        min: u64,
        max: u64,
        start: *mut u64,
    ) -> c_int;
    pub fn stook_maple_alloc_top(
        tree: *mut stook_maple,
        entry: *mut c_void,
        size: u64,
        min: u64,
        max: u64,
        start: *mut u64,
    ) -> c_int;
    pub fn stook_maple_alloc_cyclic(
        tree: *mut stook_maple,
        entry: *mut c_void,
        lo: u64,
        hi: u64,
        next: *mut u64,
        start: *mut u64,
    ) -> c_int;
    pub fn stook_maple_empty_area(
        tree: *mut stook_maple,
        size: u64,
        min: u64,
        max: u64,
        start: *mut u64,
    ) -> c_int;
    pub fn stook_maple_empty_area_rev(
        tree: *mut stook_maple,
        size: u64,
        min: u64,
        max: u64,
        start: *mut u64,
    ) -> c_int;
    pub fn stook_maple_empty(tree: *const stook_maple) -> bool;
    pub fn stook_maple_cursor_find(cursor: *mut stook_maple_cursor, max: u64) -> *mut c_void;
    pub fn stook_maple_cursor_find_rev(cursor: *mut stook_maple_cursor, min: u64) -> *mut c_void;
    pub fn stook_maple_cursor_walk(cursor: *mut stook_maple_cursor) -> *mut c_void;
    pub fn stook_maple_cursor_erase(
        cursor: *mut stook_maple_cursor,
        old: *mut *mut c_void,
    ) -> c_int;
    pub fn stook_maple_cursor_set(cursor: *mut stook_maple_cursor, first: u64, last: u64);
    pub fn stook_maple_cursor_move(cursor: *mut stook_maple_cursor, first: u64, last: u64);
    pub fn stook_maple_cursor_finish(cursor: *mut stook_maple_cursor);
    pub fn stook_maple_cursor_store(cursor: *mut stook_maple_cursor, entry: *mut c_void) -> c_int;
    pub fn stook_maple_cursor_replace(
        cursor: *mut stook_maple_cursor,
        entry: *mut c_void,
        old: *mut *mut c_void,
    ) -> c_int;
    pub fn stook_maple_cursor_expect(cursor: *mut stook_maple_cursor, n: u64) -> c_int;
    pub fn stook_maple_cursor_empty_area_next(
        cursor: *mut stook_maple_cursor,
        size: u64,
        max: u64,
    ) -> c_int;
    pub fn stook_maple_cursor_empty_area_prev(
        cursor: *mut stook_maple_cursor,
        size: u64,
        min: u64,
    ) -> c_int;
    pub fn stook_maple_cursor_alloc_cyclic(
        cursor: *mut stook_maple_cursor,
        entry: *mut c_void,
        lo: u64,
        hi: u64,
        next: *mut u64,
    ) -> c_int;
}
