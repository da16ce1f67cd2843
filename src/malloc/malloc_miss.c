/*
 * Purpose: objects of any size, allocated, freed and recognised: which class, or a span.
 * Place: where the hot path (malloc_hot.h) leaves off. Every call of malloc that misses comes here
 *  and says how (cache/cache_slow.h). Calls cache (its slow calls, misuse), large.c.
 *
 * The hot paths know nothing of groups (group/group.h). Threads in a group are served by the same
 * classes once more, from accounted caches. The last 8 bytes of an object's stride name the group.
 * Once there is a group, the table that the hot paths look classes up in points to a line where no
 * cache is. So every malloc misses and enters this file, which looks for the group. Frees need no
 * such thing: the page of an object names its cache, and an accounted cache sends them to the slow
 * call (account/account.h).
 * Concurrency: any thread, any instruction. M1: the release that stores a class's cache pairs with
 *  the acquire of a thread that makes the first group, too, and finds it there.
 * Failure: NULL; misuse is reported, after which, if reports do not abort, nothing was done.
 */
#include <errno.h>

#include "cache/cache_watch.h"
#include "cache/object_id.h"
#include "group/group.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "slot/slot_hot.h"
#include "slot/slot_trip.h"

/* Before the start it is not known which classes are watched. The watch starts the library. */
bool stook_malloc_is_watched = true;
bool stook_malloc_has_guarded;

/* NULL: no memory, or another thread holds the registry: making a cache does not wait for it. */
static STOOK_NOINLINE struct stook_cache *make_class(unsigned class, uint64_t how)
{
        struct stook_cache *cache;

        stook_slow_begin(how);
        cache = stook_class_first(class);
        stook_slow_end(how);
        return cache;
}

void *stook_malloc_class_object(unsigned class, uint64_t how)
{
        struct stook_cache *cache;

        if (STOOK_UNLIKELY(!stook_slow_start(how)))
                return stook_slow_answer(how, NULL, 0);
        cache = stook_class_at(class);
        if (STOOK_UNLIKELY(!cache))
                cache = make_class(class, how);
        return STOOK_LIKELY(cache != NULL) ? stook_alloc_plain(cache, how)
                                           : stook_large_alloc(1, stook_class_bytes[class], how);
}

/* ---- threads in a group ---- */

/* Const once stook_groups_exist; two threads may each make the first group, so set only once. */
static struct stook_cache *charged_class[STOOK_CLASSES] STOOK_MOSTLY_UNUSED;

/* If another thread was faster, the cache that this one made is not used. False: no memory. */
static bool has_charged(unsigned class)
{
        struct stook_cache *none = NULL, *made;

        if (__atomic_load_n(&charged_class[class], __ATOMIC_ACQUIRE))                   /* M1 */
                return true;
        made = stook_class_create(class, STOOK_CLASS_CHARGED);
        if (!made)
                return __atomic_load_n(&charged_class[class], __ATOMIC_ACQUIRE) != NULL;
        __atomic_compare_exchange_n(&charged_class[class], &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);                                  /* M1 */
        return true;
}

int stook_malloc_charge(void)
{
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_group_create, for the first group,")))
                return -EDEADLK;
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                if (!has_charged(class))
                        return -ENOMEM;
        }
        /* Any order will do: a class that is still found there is one of malloc's. */
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_class_line); i++)
                __atomic_store_n(&stook_class_line[i], stook_slots_first_line(STOOK_PRECHARGE_LINE),
                                 __ATOMIC_RELAXED);
        return 0;
}

struct stook_cache *stook_charged_class_for(size_t size)
{
        return charged_class[stook_class_for(size + STOOK_ACCOUNT_BYTES)];
}

void *stook_malloc_charged(size_t size, uint16_t group, uint64_t how)
{
        if (STOOK_UNLIKELY(size > STOOK_CLASS_MAX - STOOK_ACCOUNT_BYTES))
                return stook_large_alloc(1, size, how);
        return stook_alloc_slow(stook_charged_class_for(size), stook_how_with_group(how, group));
}

/* ---- any size ---- */

/* What this thread's allocations are charged to; 0: no group. */
static uint16_t charged_to(void)
{
        return STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED))
                ? stook_group_now() : 0;
}

/*
 * Zeroed objects above this are spans. A span knows whether it reads as zeros already: then it is
 * not touched, and costs no memory until it is used. Classes above begin without sheaves, so as a
 * rule a span of its own costs no more than an object of a slab.
 */
#define ZEROED_CLASS_MAX ((size_t)32 << 10)

/* All calls are at the end, and nothing is saved: for the depth of the stack. */
void *stook_malloc_slow(size_t size, uint64_t how)
{
        uint16_t group;

        if (STOOK_UNLIKELY(size > (how & STOOK_HOW_ZERO ? ZEROED_CLASS_MAX : STOOK_CLASS_MAX)))
                return stook_large_alloc(1, size, how);
        group = charged_to();
        if (STOOK_UNLIKELY(stook_malloc_is_watched))
                return stook_watch_duties.malloc(size, group, how);
        if (STOOK_UNLIKELY(group != 0))         /* a sample of these is in place */
                return stook_malloc_charged(size, group, stook_how_without_size(how));
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED)) &&
            !stook_how_has_size(how))
                how = stook_how_with_size(how, size);
        return stook_malloc_class_object(stook_class_for(size), how);
}

STOOK_NOINLINE void *stook_malloc_miss(size_t size)
{
        return stook_malloc_slow(size, STOOK_HOW_ERRNO);
}

STOOK_NOINLINE void *stook_calloc_miss(size_t bytes)
{
        return stook_malloc_slow(bytes, STOOK_HOW_ERRNO | STOOK_HOW_ZERO);
}

void *stook_malloc_object(size_t size)
{
        return stook_malloc_slow(size, 0);
}

/*
 * Aligned objects, without classes of their own. A slab starts at a page, so the objects of a class
 * are aligned to every power of two, up to the page size, that the bytes of the class are a
 * multiple of. The size is rounded up to a multiple of the alignment; the class of such a size is
 * one again (size_class.c I1), or the next one is. Alignments above the page size get a span.
 */
#define ALIGN_MORE ((size_t)(STOOK_CLASS_PAGE_AND_MORE & -STOOK_CLASS_PAGE_AND_MORE))

/*
 * A multiple of @align whose class is one, too. The next one above a class that is no multiple is
 * of the next class, 4,608 bytes: it is one of every alignment that has a multiple in the former.
 */
size_t stook_malloc_round_up(size_t size, size_t align)
{
        size_t rounded = (size + align - 1) & -align;

        if (STOOK_UNLIKELY(align > ALIGN_MORE) && rounded > STOOK_CLASS_ALIGNED_MAX &&
            rounded <= STOOK_CLASS_PAGE_AND_MORE)
                return (STOOK_CLASS_PAGE_AND_MORE + align) & -align;
        return rounded;
}

/* It is the stride that is aligned. That of a charged object has a word more. */
static void *aligned_charged(size_t align, size_t size, uint64_t how)
{
        size_t stride = stook_malloc_round_up(size + STOOK_ACCOUNT_BYTES, align);

        if (stride <= STOOK_CLASS_MAX)
                return stook_malloc_slow(stride - STOOK_ACCOUNT_BYTES, how);
        return stook_large_alloc(1, size, how);
}

void *stook_malloc_aligned(size_t align, size_t size, uint64_t how)
{
        size_t rounded, seal = stook_malloc_seal_bytes;

        if (STOOK_UNLIKELY(stook_malloc_is_watched || stook_sampling.session))
                how = (size <= STOOK_CLASS_MAX ? stook_how_with_size(how, size) : how) |
                      (align > 16 ? STOOK_HOW_ALIGNED : 0);
        if (align <= 16)
                return stook_malloc_slow(size, how);
        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return stook_slow_answer(how, NULL, 0);
        if (align > stook_os_page_bytes())
                return stook_large_alloc(align, size ? size : 1, how);
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED)) &&
            stook_group_now())
                return aligned_charged(align, size, how);
        rounded = size ? stook_malloc_round_up(size + seal, align) : align;
        /* Large objects start at pages. */
        return stook_malloc_slow(rounded <= STOOK_CLASS_MAX ? rounded - seal : size, how);
}

/* ---- frees, and what an object is ---- */

bool stook_malloc_free_object(void *object, uint64_t how)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t entry;
        unsigned index;

        if (!object)
                return true;
        entry = stook_pagemap_get(addr);
        index = stook_entry_cache(entry);
        if (STOOK_LIKELY(index && stook_object_starts(index, stook_entry_offset(entry, addr)))) {
                stook_free_slow(stook_cache_at(index), object, how);
                return true;
        }
        if (!index && entry && stook_large_free(object, how))
                return true;
        if (!stook_pagemap_ours(addr))
                return false;
        stook_cache_free_misuse(NULL, object);
        return true;
}

bool stook_malloc_free_sized(void *object, size_t size, uint64_t how)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
        struct stook_span *span;

        if (STOOK_LIKELY(index != 0)) {
                if (stook_cache_at(index)->watch && size <= STOOK_CLASS_MAX)
                        how = stook_how_with_size(how, size);
        } else if (STOOK_UNLIKELY(stook_large_options.watched)) {
                span = stook_span_large_at((uintptr_t)object);
                if (span && stook_watch_duties.large_free_sized(span, size, how))
                        return true;
        }
        return stook_malloc_free_object(object, how);
}

size_t stook_malloc_usable(const void *object, bool *ours)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t  entry = stook_pagemap_get(addr);
        unsigned  index = stook_entry_cache(entry);

        *ours = true;
        if (index && !stook_object_starts(index, stook_entry_offset(entry, addr)))
                return STOOK_NO_OBJECT;
        if (index)
                return STOOK_UNLIKELY(stook_cache_at(index)->watch)
                        ? stook_watch_duties.usable(stook_cache_at(index), object)
                        : stook_cache_at(index)->object_size;

        struct stook_span *span = entry ? stook_span_large_at(addr) : NULL;

        if (span)
                return STOOK_UNLIKELY(stook_large_options.watched)
                        ? stook_watch_duties.large_usable(span)
                        : span->bytes - span->use.lead - span->use.slack;
        *ours = stook_pagemap_ours(addr);
        return STOOK_NO_OBJECT;
}
