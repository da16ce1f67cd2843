/*
 * Purpose: the metrics that a heap is scraped by: their names, types and help, once for the process
 * itself (metrics.c) and for `stook info --prometheus`. Names are without the prefix "stook_", and
 * those of counters without the "_total" at their end.
 */
#ifndef STOOK_METRICS_H
#define STOOK_METRICS_H

#include <stook/stats.h>

/* X(name, type, help, field of struct stook_cache_stats): of each cache. */
#define STOOK_METRICS_OF_CACHE(X) \
        X("cache_objects_live", gauge, "Objects with users.", objects_live) \
        X("cache_objects_cached", gauge, "Objects in sheaves.", objects_cached) \
        X("cache_object_size_bytes", gauge, "Bytes that users may use.", object_size) \
        X("cache_stride_bytes", gauge, "Bytes from one object to the next.", stride) \
        X("cache_objects_per_slab", gauge, "Objects that a slab is cut into.", objects_per_slab) \
        X("cache_slab_bytes", gauge, "Bytes of a slab.", slab_bytes) \
        X("cache_slabs", gauge, "Live slabs.", slabs) \
        X("cache_slabs_peak", gauge, "Most live slabs at once.", slabs_peak) \
        X("cache_objects_peak", gauge, "Most objects in use or in sheaves at once.", objects_peak) \
        X("cache_sheaves", gauge, "Sheaves of the cache.", sheaves) \
        X("cache_sheaf_capacity", gauge, "Objects that a new sheaf holds.", sheaf_capacity)

/* The name and the help of a counter of STOOK_COUNTERS. */
#define STOOK_METRIC_OF_COUNTER(counter) \
        "cache_" #counter, "The kernel's counter " #counter ", see stook/stats.h."

/*
 * X(name, type, help, field of struct stook_totals): of the heap. Seen from outside, too; the field
 * has one name everywhere.
 */
#define STOOK_METRICS_OF_HEAP(X) \
        X("space_bytes", gauge, "Bytes of all slabs.", space_bytes) \
        X("large_bytes", gauge, "Bytes of large objects.", large_bytes) \
        X("large_objects", gauge, "Large objects.", large_objects) \
        X("free_dirty_bytes", gauge, "Bytes of free pages that have content.", free_dirty_bytes) \
        X("free_clean_bytes", gauge, "Bytes of free pages without content.", free_clean_bytes) \
        X("metadata_bytes", gauge, "Bytes of the library's own data.", metadata_bytes)

/* The same, which only the process itself knows. */
#define STOOK_METRICS_OF_PROCESS(X) \
        X("allocated_bytes", gauge, "Bytes of objects with users.", allocated_bytes) \
        X("cached_bytes", gauge, "Bytes of objects in sheaves.", cached_bytes) \
        X("active_bytes", gauge, "Bytes of slabs and large objects.", active_bytes) \
        X("active_peak_bytes", gauge, "Most bytes of slabs and large objects at once.", \
          active_peak_bytes) \
        X("resident_most_bytes", gauge, "Bytes that may be resident.", resident_bytes) \
        X("reserved_bytes", gauge, "Bytes of address space.", reserved_bytes) \
        X("rcu_waiting_bytes", gauge, "Bytes of objects that wait for readers.", rcu_bytes) \
        X("guarded_objects", gauge, "Large objects between guard pages.", guarded_objects) \
        X("caches", gauge, "Caches.", caches) \
        X("groups", gauge, "Groups.", groups) \
        X("purges", counter, "Calls that gave free pages back.", purges) \
        X("purged_bytes", counter, "Bytes of free pages that were given back.", purged_bytes) \
        X("refaulted_bytes", counter, "Bytes given back, and taken again.", refaulted_bytes)

/* X(name, type, help, field of struct stook_group_stats): of each group. */
#define STOOK_METRICS_OF_GROUP(X) \
        X("group_usage_bytes", gauge, \
          "Bytes of live objects charged to the group, as stook_group_usage().", usage_bytes) \
        X("group_precharge_bytes", gauge, "Bytes charged to the group in advance, for CPUs.", \
          precharge_bytes) \
        X("group_peak_bytes", gauge, "Most bytes of usage and precharge.", peak_bytes) \
        X("group_limit_bytes", gauge, "Most bytes that may be charged.", limit_bytes) \
        X("group_refusals", counter, "Allocations that were refused.", refusals)

/* X(name, type, help, field of struct stook_heap_stats): of each heap that the program made. */
#define STOOK_METRICS_OF_PROGRAM_HEAP(X) \
        X("heap_bytes", gauge, "Bytes of the heap's slabs and large objects.", bytes) \
        X("heap_peak_bytes", gauge, "Most bytes of the heap at once.", peak_bytes) \
        X("heap_limit_bytes", gauge, "Most bytes that the heap may have.", limit_bytes) \
        X("heap_large_bytes", gauge, "Bytes of the heap's large objects.", large_bytes) \
        X("heap_objects_live", gauge, "Objects in slabs that callers own.", objects_live) \
        X("heap_refusals", counter, "Allocations that failed.", refusals)

#endif
