/*
 * bench/aspace/front_names.h - the maple tree on another front end
 *
 * Purpose: included before everything else where the tree is compiled for these benchmarks: its
 * calls to libstook go to front.c, which passes them on, or plays an older allocator.
 */
#ifndef FRONT_NAMES_H
#define FRONT_NAMES_H

#define stook_cache_create      front_cache_create
#define stook_cache_destroy     front_cache_destroy
#define stook_cache_alloc       front_cache_alloc
#define stook_cache_alloc_bulk  front_cache_alloc_bulk
#define stook_cache_free        front_cache_free
#define stook_cache_free_rcu    front_cache_free_rcu
#define stook_cache_rcu_barrier front_cache_rcu_barrier
#define stook_sheaf_prefill     front_sheaf_prefill
#define stook_sheaf_refill      front_sheaf_refill
#define stook_sheaf_available   front_sheaf_available
#define stook_sheaf_alloc       front_sheaf_alloc
#define stook_sheaf_return      front_sheaf_return

#endif
