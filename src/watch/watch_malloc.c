/*
 * Purpose: malloc where classes are watched, and what is asked for of watched objects at start.
 * The cache of a watched class is not at the index of its class, but at any other. No cache is ever
 * made at that index, so the hot paths find its line empty, and every malloc comes here. The page
 * of an object names its cache, so frees find it. To malloc's hot paths such an object is none of
 * a class: realloc and usable sizes go the long way, which knows watched caches.
 * The bytes asked for go along with the call: the watch wants those, not the bytes of the class.
 * Before the start it is not known which classes are watched. All count as watched, so the first
 * malloc comes here, and here the library starts.
 * Concurrency: the table of classes is const after the start.
 */
#include "watch/watch.h"

#include <errno.h>
#include <string.h>

#include "os/os.h"
#include "slot/slot_hot.h"

#define EMPTY_ALIGN 64                  /* of malloc(0), which may be memalign(64, 0) */

/* All const after the start. */
static struct stook_cache *empty;       /* of malloc(0); NULL: that is an ordinary object */
/* NULL: not watched. */
static struct stook_cache *watched_class[STOOK_CLASSES] STOOK_MOSTLY_UNUSED;

/* ---- start ---- */

/* Pages of an object that nobody may touch. */
static int close_run(void *memory, size_t bytes, void *data)
{
        (void)data;
        return stook_os_close(memory, bytes) ? 0 : -ENOMEM;
}

static void open_run(void *memory, size_t bytes, void *data)
{
        (void)data;
        stook_os_open(memory, bytes);
}

/* Seals, and the cache of malloc(0). */
static void start_hardened(void)
{
        stook_malloc_pairs = stook_is_hardened(STOOK_HARDEN_PAIRS) ||
                             (stook_large_debug & STOOK_CACHE_CHECK);

        if (stook_is_hardened(STOOK_HARDEN_SEALS)) {
                stook_seal_start();
                stook_malloc_seal_bytes = STOOK_SEAL_BYTES;
        }
        if (stook_is_hardened(STOOK_HARDEN_ZERO_SIZE))
                empty = stook_cache_create_at(&(struct stook_class_args){
                        .name = "malloc-0", .size = EMPTY_ALIGN, .align = EMPTY_ALIGN,
                        .full_limit = 1,
                        .watch = STOOK_WATCH_HARDEN | STOOK_WATCH_EMPTY,
                        .memory = { .in = close_run, .out = open_run },
                });
}

/* Where nothing but seals watches it, there is a short way. */
static struct stook_cache *start_class(unsigned class)
{
        struct stook_cache *cache = stook_class_create(class, STOOK_CLASS_WATCHED);

        if (cache && cache->watch == (STOOK_WATCH_HARDEN | STOOK_WATCH_SEAL))
                stook_watch_sealed_start(cache, class, stook_is_hardened(STOOK_HARDEN_QUARANTINE |
                                                                         STOOK_HARDEN_RANDOM));
        return cache;
}

void stook_watch_start(void)
{
        if (stook_is_hardened(STOOK_HARDEN_RANDOM))
                stook_cache_options.flags |= STOOK_CACHE_RANDOM_ORDER;
        stook_malloc_is_watched = stook_watch_is_asked();
        stook_watch_large_start();
        start_hardened();
        for (unsigned class = 0; stook_malloc_is_watched && class < STOOK_CLASSES; class++)
                watched_class[class] = start_class(class);
        stook_watch_sealed_ready();
}

/* ---- classes ---- */

static void *of_group(size_t size, uint16_t group, uint64_t how)
{
        if (size > STOOK_CLASS_MAX - STOOK_ACCOUNT_BYTES ||
            !stook_charged_class_for(size)->watch)
                how = stook_how_without_size(how);
        return stook_malloc_charged(size, group, how);
}

static void *empty_object(uint64_t how)
{
        return stook_alloc_slow(empty, stook_how_with_size(how, 0) & ~(uint64_t)STOOK_HOW_ZERO);
}

/* @bytes, with the seal, are a multiple of what an aligned call asks for: malloc_miss.c. */
static size_t align_of(size_t bytes, uint64_t how)
{
        size_t page = stook_os_page_bytes();

        if (!(how & STOOK_HOW_ALIGNED))
                return 16;
        return (bytes & -bytes) < page ? bytes & -bytes : page;
}

void *stook_watch_malloc_seen(size_t size, uint16_t group, uint64_t how)
{
        struct stook_cache *cache;

        if (STOOK_UNLIKELY(!stook_slow_start(how)))
                return stook_slow_answer(how, NULL, 0);
        if (!stook_how_has_size(how))
                how = stook_how_with_size(how, size);
        if (group)
                return of_group(size, group, how);
        if (empty && !stook_how_size(how) && size <= EMPTY_ALIGN)
                return empty_object(how);
        if (size > STOOK_CLASS_MAX - stook_malloc_seal_bytes)
                return stook_large_alloc(1, size, how);
        cache = watched_class[stook_class_for(size + stook_malloc_seal_bytes)];
        if (STOOK_UNLIKELY(stook_large_guards) && cache &&
            (stook_cache_debug(cache)->flags & STOOK_CACHE_RED_ZONE))
                return stook_large_alloc(align_of(size + stook_malloc_seal_bytes, how), size, how);
        if (cache)
                return stook_alloc_slow(cache, how);
        return stook_malloc_class_object(stook_class_for(size + stook_malloc_seal_bytes),
                                         stook_how_without_size(how));
}

void *stook_watch_copy(void *object, size_t size, size_t bytes, uint64_t how)
{
        void *other = stook_heap_duties.beside(object, size, false);

        if (STOOK_UNLIKELY(!other))
                return NULL;
        memcpy(other, object, size < bytes ? size : bytes);
        stook_malloc_free_object(object, how);
        return other;
}

/*
 * The bytes of the object's stride decide where it stays, as malloc_resize.c has it, but it may use
 * only what was asked for. Shrinking never fails but with EINVAL.
 */
void *stook_watch_resize(struct stook_cache *cache, void *object, size_t size, size_t usable,
                         int *error)
{
        size_t bytes = stook_watch_bytes(cache);
        void *other = NULL;
        unsigned by = STOOK_BY_MALLOC;

        if (stook_cache_is_sealed(cache)) {
                by = stook_seal_made_by(stook_seal_says(object, stook_seal_at(cache)));
                stook_watch_compare(NULL, object, by, STOOK_BY_MALLOC);
        } else {
                by = stook_watch_compare_debugged(cache, object, STOOK_BY_MALLOC);
        }
        if (size > bytes || (size <= bytes / 2 && bytes > 16)) {
                other = stook_watch_copy(object, size, usable, by << STOOK_HOW_BY_SHIFT);
                if (other || size > bytes)
                        return other;
        }
        if (stook_cache_is_sealed(cache) ? stook_watch_harden_resize(cache, object, size)
            : !stook_cache_debug(cache)->flags ||
            stook_debug_resize(stook_cache_debug(cache), object, size))
                return object;
        *error = EINVAL;
        return NULL;
}
