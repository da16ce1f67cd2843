/*
 * Purpose: what a heap looks like at one moment, read from outside: caches, their sheaves and
 * slabs, slots, nodes, pages, groups, heaps that the program made.
 *
 * The process runs on meanwhile. Why such a look is sound is said in life/root.h: memory that is
 * read stays what it is, and lists only grow. So no read fails, and no walk is led astray. Counts
 * may belong to slightly different moments. A cache that began or ended during the look is left out
 * (`changed`).
 * Failure: a heap that is damaged gives an error, or wrong figures, and nothing worse. Each walk
 * has a bound, and each number that is used as an index is checked.
 */
#ifndef STOOK_CLI_HEAP_H
#define STOOK_CLI_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/heap.h>
#include <stook/stats.h>
#include "process/process.h"
#include "cli/memory/library.h"
#include "cli/memory/memory.h"

/* How closely to look. Each has all that is before it. */
enum heap_detail {
        HEAP_COUNTS,                    /* caches, sheaves, slots, groups: microseconds */
        HEAP_SLABS,                     /* every descriptor: a millisecond for 100 MB of heap */
        HEAP_OBJECTS,                   /* every object in a sheaf, and its slab */
        HEAP_SPANS,                     /* every span: what is the heap's, and large objects */
};

/* Slabs by the share of their objects that are out: none, up to each quarter, all. */
#define HEAP_SHARES 6

struct heap_node {
        uint64_t slabs, partial;
        uint64_t barn_full, barn_empty;
        uint64_t objects_sent_home, sheaves_sent_home;
};

struct heap_cache {
        struct stook_cache cache;       /* a copy; its pointers are the process's */
        struct stook_seldom seldom;     /* likewise */
        uint64_t address;
        char     name[64];              /* any bytes */
        char   (*aliases)[64];
        unsigned alias_count;
        struct stook_cache_stats stats;
        struct heap_node *node;         /* [heap->nodes] */
        uint32_t *slot_objects;         /* [heap->slots]: objects in a slot's sheaves */
        uint64_t barn_objects, other_objects; /* in full sheaves of barns; in others off slots */
        /* HEAP_SLABS */
        uint64_t slabs_seen, objects_out; /* objects out: with users, and in sheaves */
        uint64_t shares[HEAP_SHARES];
        uint64_t free_pages;            /* of slabs: no object that is out lies on them */
        /* HEAP_OBJECTS: slabs whose objects that are out all lie in sheaves, and their bytes */
        uint64_t pinned_slabs, pinned_bytes;
};

enum heap_place {
        HEAP_ELSEWHERE,                 /* lent, in a thread's hands, submitted to RCU */
        HEAP_MAIN, HEAP_SPARE, HEAP_RCU, HEAP_REMOTE, HEAP_BARN,
};

struct heap_sheaf {
        uint64_t address, word;
        int64_t  moved;
        uint32_t first;                 /* HEAP_OBJECTS: in heap->objects */
        uint16_t cache, capacity, size; /* size: at most the capacity */
        bool     rcu;
        uint8_t  place;                 /* enum heap_place */
        uint16_t slot_or_node;          /* of the place */
};

struct heap_slab {
        uint64_t start, descriptor;
        uint32_t bytes, cached;         /* cached: objects of it in sheaves, HEAP_OBJECTS */
        uint16_t cache, objects, out;
        uint8_t  node, parts;
        uint32_t first;                 /* in heap->parts */
};

struct heap_part {
        uint64_t flags, bits;           /* a bit is set: the object is free */
        uint64_t objects;               /* the bits that stand for objects */
};

/* HEAP_SPANS: a run of pages, in use or free. */
struct heap_span {
        uint64_t start, bytes;          /* bytes: with the address space that is reserved for it */
        uint64_t descriptor;
        uint8_t  kind;                  /* enum stook_span_kind, without a node */
};

struct heap_pages {
        uint64_t space_bytes, large_bytes, large_objects;
        uint64_t free_dirty_bytes, free_clean_bytes, metadata_bytes;
        uint64_t free_spans, largest_free_bytes;
};

/*
 * Bytes of a running process's memory, by what has them. A page counts for the span that it is of.
 * What a process was never given, and what the system has swapped out, is not there.
 */
struct heap_resident {
        bool     known;                 /* false: a core, or the system does not say */
        uint64_t slabs, large;          /* spans */
        uint64_t live, cached, free_objects;    /* what is in the slabs; their sum */
        uint64_t dirty;                 /* free pages with content */
        uint64_t padding;               /* free pages without, which huge pages brought along */
        uint64_t own;                   /* the library's own data */
};

/* Something that no sound heap shows, unless it was read in the midst of a change. */
struct heap_oddity {
        const char *what;               /* static text */
        uint64_t    address;            /* of the object, sheaf, slab or cache */
        uint16_t    cache;              /* index; 0: none */
        char        detail[40];         /* of this look; empty: none */
};

struct heap_group {
        uint16_t id, parent;
        char     name[64];              /* any bytes */
        uint64_t usage_bytes, precharge_bytes, limit_bytes, peak_bytes;
        uint64_t limit_events, refusals;
        uint32_t references;
        bool     ending, of_process;
};

/* A heap that the program made (<stook/heap.h>). */
struct heap_heap {
        uint64_t address;
        char     name[STOOK_HEAP_NAME_BYTES];   /* any bytes */
        uint64_t bytes, peak_bytes, limit_bytes, large_bytes, refusals, spilled;
        uint64_t objects_live;          /* of its caches, as far as they are known */
        unsigned caches;
        uint16_t group;                 /* id; 0: none */
        bool     ending;
};

struct heap {
        struct memory        *memory;
        const struct library *library;
        enum heap_detail      detail;
        uint64_t at_ns;                 /* CLOCK_MONOTONIC, when the look began */
        unsigned nodes, slots;          /* slots: those that may be ready, all of them */
        unsigned slots_ready;
        bool     by_cpu, locked;        /* what slots are */
        struct heap_cache *caches;      /* oldest first */
        size_t   cache_count;
        unsigned changed;               /* caches left out */
        uint16_t *cache_of_index;       /* [STOOK_CACHES_MAX]: in caches + 1; 0: none */
        struct heap_sheaf *sheaves;     /* by address */
        size_t   sheaf_count;
        uint64_t *objects;              /* HEAP_OBJECTS; may be garbage */
        size_t   object_count;
        struct heap_slab *slabs;        /* HEAP_SLABS; by start */
        size_t   slab_count;
        struct heap_part *parts;
        size_t   part_count;
        struct heap_span *spans;        /* HEAP_SPANS; by start */
        size_t   span_count;
        struct heap_pages pages;        /* HEAP_SLABS, but metadata_bytes */
        struct heap_resident resident;  /* HEAP_SLABS */
        struct memory_pages *present;   /* during the look; NULL: not to be told */
        uint64_t *precharged;           /* [UINT16_MAX + 1]: bytes, by id of a group */
        struct heap_group *groups;      /* by id */
        size_t   group_count;
        struct heap_heap *heaps;        /* the newest first */
        size_t   heap_count;
        struct heap_oddity *oddities;
        size_t   oddity_count;
        uint32_t maintainer;            /* pid of the process that has a maintenance thread */
        uint32_t huge_dear;             /* STOOK_HUGE_DEAR: no huge pages are asked for */
        struct stook_option_state options[STOOK_OPTIONS];       /* name "": the default */
        char     error[160];
};

/*
 * Looks at the heap that @library->root leads to, which is readable.
 * Return: 0; -errno with heap->error: nothing is to be freed. -ESRCH: the process is gone.
 */
int  heap_read(struct heap *heap, struct memory *memory, const struct library *library,
               enum heap_detail detail);
void heap_free(struct heap *heap);

/* The slab that an address lies in; NULL: none. HEAP_SLABS. */
struct heap_slab *heap_slab_at(const struct heap *heap, uint64_t address);
/* The span that an address lies in; NULL: none. HEAP_SPANS. */
struct heap_span *heap_span_at(const struct heap *heap, uint64_t address);
/* The sheaf at an address; NULL: there is none. */
struct heap_sheaf *heap_sheaf_at(const struct heap *heap, uint64_t address);
struct heap_cache *heap_cache_of(const struct heap *heap, unsigned index);

#endif
