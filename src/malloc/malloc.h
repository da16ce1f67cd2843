/*
 * Purpose: malloc's semantics on caches and spans (malloc_api.c wraps them for libstook, dropin/
 * for the drop-in).
 * Size classes: multiples of 16 up to 128, eight per doubling up to 1 KiB, then four to six up to
 * 128 KiB (size_class.c). Class c is the cache of index c + 1. It wants STOOK_SLAB_OBJECTS_FEW
 * objects in a slab, so slabs of small classes have 16 KiB (slab_birth.c). Above, and for what
 * realloc grows (malloc_resize.c): a span of its own (kind LARGE, large.c).
 * Place: called by malloc_api.c and the drop-in; calls slot (the hot path), cache (the slow calls,
 * misuse), pages (large objects).
 */
#ifndef STOOK_MALLOC_INTERNAL_H
#define STOOK_MALLOC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "cache/cache_slow.h"
#include "pages/span.h"
#include <stook/layout.h>

#define STOOK_CLASSES 72                        /* size_class.c */
#define STOOK_CLASS_MAX ((size_t)128 << 10)
/*
 * Sizes up to here by a table of one entry for each 16 bytes. A branch beyond it is mispredicted
 * where sizes on both sides of it come at random (docs/decisions/size-table.md).
 */
#define STOOK_CLASS_TABLE_MAX 16384
/* Aligned requests up to here have a hot path: classes that are a multiple of what they ask for. */
#define STOOK_CLASS_ALIGNED_MAX 4096
/* A class for a page and a header, aligned to 64 bytes: malloc_miss.c goes past it. */
#define STOOK_CLASS_PAGE_AND_MORE 4416
/*
 * What main and spare of a slot may hold of one class at first; all classes together: 2.1 MiB
 * (size_class.c).
 */
#define STOOK_CLASS_SLOT_BYTES ((size_t)64 << 10)
/*
 * Full sheaves in the barn of a class, as far as its bytes (STOOK_BARN_CACHE_BYTES) and those of
 * all barns allow.
 */
#define STOOK_CLASS_BARN_FULL 64

/*
 * [(size + 15) / 16]: the class's line in slot 0, so that a class is one load away. Size 0 counts
 * as 1. From STOOK_CLASS_LINE_LARGE on by class, for larger sizes. Written at start, and once more:
 * malloc_miss.c.
 */
#define STOOK_CLASS_LINE_LARGE (STOOK_CLASS_TABLE_MAX / 16 + 1)
extern uintptr_t stook_class_line[STOOK_CLASS_LINE_LARGE + STOOK_CLASSES] STOOK_HIDDEN;
extern const uint8_t stook_class_of[STOOK_CLASS_TABLE_MAX / 16 + 1] STOOK_HIDDEN;
/* [(size + 63) / 64]: the class of sizes above STOOK_CLASS_TABLE_MAX. */
extern const uint8_t stook_class_of_large[STOOK_CLASS_MAX / 64 + 1] STOOK_HIDDEN;
extern const uint32_t stook_class_bytes[STOOK_CLASSES] STOOK_HIDDEN;

/* Class of a size up to STOOK_CLASS_MAX. */
STOOK_INLINE unsigned stook_class_for(size_t size)
{
        if (STOOK_LIKELY(size <= STOOK_CLASS_TABLE_MAX))
                return stook_class_of[(size + 15) >> 4];
        return stook_class_of_large[(size + 63) >> 6];
}

/* Objects that a sheaf of a class holds at first; 0: the class begins without sheaves. */
unsigned stook_class_capacity(unsigned class);

/* The caches of one class. */
enum stook_class_kind {
        STOOK_CLASS_PLAIN,              /* at the index of its class */
        STOOK_CLASS_CHARGED,            /* accounted; with the group's name, objects are as large */
        STOOK_CLASS_WATCHED,            /* instead of the plain one: src/watch */
};
#define STOOK_CLASS_NAME_BYTES 32
/*
 * Makes a cache of a class. NULL: no memory; a plain one: or another thread holds the registry, for
 * which the call does not wait; a watched one: or the class is not to be watched.
 */
struct stook_cache *stook_class_create(unsigned class, enum stook_class_kind kind);
/* What objects of a class are aligned to, where nothing lies behind them. */
size_t stook_class_align(unsigned class);
/* Prepares the hot path. Called by life/start. A class gets its cache with its first object. */
void stook_malloc_start(void);

/* The cache of a class, if it has been made. */
STOOK_INLINE struct stook_cache *stook_class_at(unsigned class)
{
        return stook_cache_alive_at(class + 1);
}

/* Makes it. NULL: as stook_class_create; an object of the class is a span of its own then. */
struct stook_cache *stook_class_first(unsigned class);

STOOK_INLINE struct stook_cache *stook_class_cache(unsigned class)
{
        struct stook_cache *cache = stook_class_at(class);

        return STOOK_LIKELY(cache != NULL) ? cache : stook_class_first(class);
}

/* ---- malloc_miss.c: the slow calls; size 0 counts as 1 ---- */
/* Const after the start: some class is watched (cache/cache_watch.h). True before it. */
extern bool stook_malloc_is_watched STOOK_HIDDEN;
/*
 * Atomic: some samples of classes have the bytes alone that were asked for (sample/guarded.c). Set
 * before there is one, and for ever.
 */
extern bool stook_malloc_has_guarded STOOK_HIDDEN;
/*
 * Called when the process gets its first group: the hot paths miss from now on. Return: 0; -ENOMEM;
 * -EDEADLK.
 */
int stook_malloc_charge(void);
/* An object charged to @group, which is not 0. */
void *stook_malloc_charged(size_t size, uint16_t group, uint64_t how);
/* The cache that serves @size in a group. */
struct stook_cache *stook_charged_class_for(size_t size);
/*
 * What the hot path left over. @how: ZERO, NOLOCK, ERRNO. NULL: no memory, over a limit, a size
 * above PTRDIFF_MAX; with NOLOCK also before the library has started, because a start waits.
 */
void *stook_malloc_slow(size_t size, uint64_t how);
/* An object of a class that is not watched. */
void *stook_malloc_class_object(unsigned class, uint64_t how);
/* With no flags: what assembly calls. */
void *stook_malloc_object(size_t size);
/* malloc_miss.c; @align: a power of two. @how: NOLOCK, ERRNO. */
void *stook_malloc_aligned(size_t align, size_t size, uint64_t how);

/* A size whose objects are aligned: malloc_miss.c. Both are not 0; @align: up to a page. */
size_t stook_malloc_round_up(size_t size, size_t align);

/* NULL is fine. False: foreign, nothing done. Misuse of our own memory is reported. */
bool stook_malloc_free_object(void *object, uint64_t how);
/* The same for a user that says that it asked for @size. */
bool stook_malloc_free_sized(void *object, size_t size, uint64_t how);

/*
 * What @object is: the usable bytes if a live object of ours starts there (or a cached one: that
 * cannot be told), STOOK_NO_OBJECT if not. *@ours: it lies in one of our ranges.
 */
size_t stook_malloc_usable(const void *object, bool *ours);

/* malloc_resize.c: as stook_malloc_usable, with its *@error, after all that a realloc looks for. */
size_t stook_malloc_resizable(void *object, int *error);
/*
 * Another size for a live object, in place where that wastes little. NULL: nothing done, and
 * *@error is ENOMEM; EINVAL: misuse of our own memory, which was reported; EFAULT: it is not in our
 * memory. Shrinking never fails. Size 0 counts as 1.
 */
void *stook_malloc_resize(void *object, size_t size, int *error);

/* ---- large.c: objects above the largest class: each is a span of its own, at its start ---- */
/*
 * A live large object is a span of kind LARGE. What ends its life changes the kind by one
 * compare-and-swap, so of two frees at once only one succeeds.
 */
/* Const after the start: what is watched about large objects (cache/cache_watch.h). */
extern struct stook_large_options {
        bool watched;           /* each call is shown to the watch */
        bool exact;             /* sizes are not rounded: what lies behind an object is checked */
        bool guarded;           /* spans have guards */
} stook_large_options STOOK_HIDDEN;

/* Atomic, relaxed: live large objects, for statistics alone. */
extern uint64_t stook_large_count STOOK_HIDDEN;

/*
 * @align: a power of two. @how: ZERO, NOLOCK, ERRNO. NULL: no memory, over a limit, or too large.
 */
void *stook_large_alloc(size_t align, size_t size, uint64_t how);
/*
 * Ends the life of the object that begins at @object. False: none does, or another call ended it.
 */
bool stook_large_free(void *object, uint64_t how);
/*
 * @size: above half of the span's bytes, or above STOOK_CLASS_MAX. NULL: no memory, nothing
 * changed.
 */
void *stook_large_resize(struct stook_span *span, size_t size);
/* It counts as its heap's no more, though its span may serve on. */
void stook_large_leave_heap(struct stook_span *span);
/* The bytes that a new object of @size gets, but for the rest of its last page. */
size_t stook_large_rounded(size_t size);
/* Is it worth while to split a span of @bytes for an object of @size? */
bool stook_large_is_worth_shrinking(size_t bytes, size_t size);

/* The steps of an allocation and a free, for the watch. */
/* A span, charged to the group of this thread, that is no object yet. NULL: no memory. */
struct stook_span *stook_large_take(size_t align, size_t size, uint64_t how);
/* It is an object of @size from here on. */
void stook_large_begin(struct stook_span *span, size_t size);
/* False: another call ended its life. */
bool stook_large_end(struct stook_span *span);
/* After the end: uncharges what was an object, and gives its span to the pages. */
void stook_large_give(struct stook_span *span, uint64_t how);

/* ---- malloc_miss.c: with errno, for what the assembly of the drop-in left over ---- */
void *stook_malloc_miss(size_t size);
void *stook_calloc_miss(size_t bytes);

#endif
