/*
 * bench/resident/resident.h - what each resident page of this process is there for
 *
 * Purpose: memory that is resident and not in use has causes: a page whose slab has one living
 * object, a sheaf that pins the last object of a slab, spans that wait for their purge, code that
 * one call touched. This counts the pages of each cause, so that a change can be aimed at one.
 * Place: linked into a second drop-in (libstook-malloc-resident.so) with the library's objects. It
 * uses the library's own walks (slab.h, sheaf.h, meta.h), and knows nothing of how slabs are laid
 * out.
 * Invariants:
 *  I1 every resident page that the kernel reports for a mapping is counted once, under one cause.
 *  I2 nothing here allocates. Tables are mapped, and left out of the answer (STOOK_RESIDENT_OWN).
 * Concurrency: exact when no other thread is in the library. Otherwise objects on their way between
 * a slab and a sheaf may be counted on the wrong side. All that is read stays mapped for ever.
 */
#ifndef BENCH_RESIDENT_H
#define BENCH_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name in JSON, text */
#define STOOK_RESIDENT_CAUSES(X) \
        X(slab_live,    "slabs: pages with objects in use") \
        X(slab_sheaf,   "slabs: pages whose only objects out of their slab are in sheaves") \
        X(slab_free,    "slabs: pages with free objects only") \
        X(large,        "large objects") \
        X(span_dirty,   "free spans not purged yet") \
        X(span_clean,   "free spans, clean") \
        X(span_other,   "spans on their way") \
        X(sheaf,        "metadata: sheaves") \
        X(descriptor,   "metadata: descriptors of spans and slabs") \
        X(meta,         "metadata: barns and the rest") \
        X(caches,       "table of caches") \
        X(map,          "page map") \
        X(slots,        "slots") \
        X(code,         "this library's file: code and constants") \
        X(data,         "this library's data") \
        X(libc_code,    "libc and loader: code and constants") \
        X(libc_data,    "libc and loader: data") \
        X(other_files,  "other files") \
        X(stack,        "main stack") \
        X(other,        "other memory")

enum stook_resident_cause {
#define X(name, text) STOOK_RESIDENT_##name,
        STOOK_RESIDENT_CAUSES(X)
#undef X
        STOOK_RESIDENT_KINDS,
        STOOK_RESIDENT_OWN = STOOK_RESIDENT_KINDS,      /* the walk's own tables: not counted */
};

#define STOOK_RESIDENT_CACHES 256

struct stook_resident_cache {
        const char *name;               /* NULL: all caches with higher indices */
        size_t objects_live, objects_sheaf;
        size_t live_bytes, sheaf_bytes; /* by the distance between objects; resident or not */
        size_t pages[3];                /* resident bytes: slab_live, slab_sheaf, slab_free */
};

struct stook_resident {
        size_t bytes[STOOK_RESIDENT_KINDS];
        size_t total;                   /* sum of bytes[] */
        size_t rss;                     /* what the kernel says (smaps_rollup) */
        /* Within the pages of slab_live. */
        size_t live_bytes, sheaf_bytes, free_bytes;
        unsigned caches;                /* used entries of cache[] */
        struct stook_resident_cache cache[STOOK_RESIDENT_CACHES];
};

/* False: no memory for the tables, or /proc cannot be read. */
bool stook_resident_take(struct stook_resident *resident);

/* Writes the table to an open file, as text or JSON. False: a write failed. */
bool stook_resident_print(const struct stook_resident *resident, int fd, bool json);

#endif
