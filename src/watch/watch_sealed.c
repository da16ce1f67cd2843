/*
 * Purpose: the short way of malloc and free where a class's objects have seals (harden/seal.h), and
 * nothing but hardening watches them. It is what stook_watch_alloc and stook_watch_free do there,
 * with the sheaf as its front: one look at the object, one at its seal, a pop or a push. Whatever
 * is not the common case, or at fault, goes the usual way, which looks at it from the start again
 * and reports it.
 * Place: called by watch_malloc.c and watch.c. Slots are reached by their inlined sections alone.
 * Invariants:
 *  I1 all that is written about an object is made of its key, which is computed once.
 *  I2 what a free leaves, an allocation expects: two words that are filled, or, with
 *     STOOK_HARDEN_CHECK_FREE, nothing but zeros before the seal; and a seal that says so.
 * Concurrency: any thread, any instruction. The table of classes is const after the start. Of two
 *  frees at once one succeeds (harden/seal.h I1).
 */
#include "watch/watch.h"

#include "pages/pagemap.h"
#include "slot/slot_hot.h"

/* What waits of each class for STOOK_HARDEN's `random` alone: a 16th of this. Arbitrary. */
#define DELAY_BYTES ((size_t)8 << 10)

struct stook_sealed stook_sealed_classes[STOOK_CLASSES] STOOK_MOSTLY_UNUSED;
uint64_t stook_sealed_most;
uint32_t stook_sealed_first = 1u << 31;

static uint16_t caches[STOOK_CLASSES];   /* of each class, by index */
static bool delays;                     /* freed objects wait (harden/delay.c) */

void stook_watch_sealed_start(struct stook_cache *cache, unsigned class, bool wait)
{
        struct stook_sealed *sealed = &stook_sealed_classes[class];

        cache->sealed = (uint8_t)class;
        caches[class] = (uint16_t)cache->index;
        sealed->line = stook_slots_first_line(cache->front.offset >> STOOK_LINE_SHIFT);
        sealed->at = (uint32_t)stook_seal_at(cache);
        delays = wait;
        if (wait)
                sealed->delay = stook_delay_add(stook_is_hardened(STOOK_HARDEN_QUARANTINE)
                                                        ? stook_harden_quarantine_bytes
                                                        : DELAY_BYTES, cache->object_size);
}

void stook_watch_sealed_ready(void)
{
        bool all = delays && STOOK_ALONE_IS_CHEAPER && &__libc_single_threaded &&
                   !stook_is_hardened(STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC);

        for (unsigned class = 0; class < STOOK_CLASSES; class++)
                all = all && stook_sealed_classes[class].at &&
                      caches[class] == caches[0] + 2 * class;
        if (!all)
                return;
        stook_sealed_most = STOOK_CLASS_TABLE_MAX - STOOK_SEAL_BYTES;
        stook_sealed_first = 8 * (uint32_t)caches[0];
}

static void leave_delay(void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));

        stook_free_plain(stook_cache_at(index), object, 0);
}

void stook_watch_give_delayed(void)
{
        if (delays)
                stook_delay_flush(leave_delay);
}

/* ---- allocations ---- */

/* It is reported, and no object any more. */
STOOK_COLD void *stook_watch_refuse(void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));

        stook_watch_harden_alloc(stook_cache_at(index), object, 0, STOOK_BY_MALLOC);
        return NULL;
}

/* What lies free is zero, and stays so until the user writes. */
static STOOK_NOINLINE void *alloc_checked(void *object, size_t at, size_t asked, unsigned by)
{
        uint64_t key = stook_seal_key(object);

        if (STOOK_UNLIKELY(!stook_seal_reads_zero(object, at) ||
                           !stook_seal_is_free(stook_seal_untie(key, stook_seal_load(object, at)))))
                return stook_watch_refuse(object);
        stook_seal_write(key, object, at, asked, by);
        return object;
}

/* NULL: the usual way has to be gone. @size: 1 to STOOK_CLASS_MAX less a seal. */
STOOK_INLINE void *alloc_sealed(size_t size, uint64_t how)
{
        const struct stook_sealed *class = &stook_sealed_classes[stook_class_for(size +
                                                                                 STOOK_SEAL_BYTES)];
        size_t asked = stook_how_has_size(how) ? stook_how_size(how) : size, at = class->at;
        uint64_t key, says;
        void *object;

        if (STOOK_UNLIKELY(!at))
                return NULL;
        object = stook_section_pop_guessed_v1(class->line);
        if (STOOK_UNLIKELY(!object))
                return NULL;
        if (STOOK_UNLIKELY(stook_hardened & STOOK_HARDEN_CHECK_FREE))
                return alloc_checked(object, at, asked, stook_how_by(how));
        key = stook_seal_key(object);
        says = stook_seal_untie(key, stook_seal_load(object, at));
        if (STOOK_UNLIKELY(!stook_seal_is_free(says) ||
                           !stook_seal_is_filled(key, object, stook_seal_bytes(says))))
                return stook_watch_refuse(object);
        stook_seal_unfill(object, stook_seal_bytes(says));
        stook_seal_write(key, object, at, asked, stook_how_by(how));
        if (STOOK_UNLIKELY((how & STOOK_HOW_ZERO) || (stook_hardened & STOOK_HARDEN_ZERO_ALLOC)))
                return memset(object, 0, asked);
        return object;
}

void *stook_watch_malloc(size_t size, uint16_t group, uint64_t how)
{
        void *object = NULL;

        if (STOOK_LIKELY(!group && !(how & STOOK_HOW_NOLOCK) &&
                         size - 1 < STOOK_CLASS_MAX - STOOK_SEAL_BYTES))
                object = alloc_sealed(size, how);
        return STOOK_LIKELY(object != NULL) ? object : stook_watch_malloc_seen(size, group, how);
}

/* ---- frees ---- */

/*
 * @object has been looked at, and is nobody's. A function of its own, as the ones before it: none
 * of them saves many registers.
 */
static STOOK_NOINLINE void goes(struct stook_cache *cache, const struct stook_sealed *class,
                                void *object, uint64_t key)
{
        if (delays)
                object = stook_delay_swap(class->delay, object, key,
                                          *stook_section_index(stook_self));
        if (object && STOOK_UNLIKELY(stook_section_push_guessed_v1(class->line, object) !=
                                     STOOK_PUSH_DONE))
                stook_free_plain(cache, object, 0);
}

void stook_watch_gone(void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
        struct stook_cache *cache = stook_cache_at(index);

        goes(cache, &stook_sealed_classes[cache->sealed], object, stook_seal_key(object));
}

/* No more than a user and the canary wrote. */
static STOOK_NOINLINE void wipe(struct stook_cache *cache, const struct stook_sealed *class,
                                void *object, uint64_t key, size_t bytes)
{
        memset(object, 0, bytes + STOOK_SEAL_BYTES < class->at ? bytes + STOOK_SEAL_BYTES
                                                              : class->at);
        if (!stook_is_hardened(STOOK_HARDEN_CHECK_FREE))
                stook_seal_fill(key, object, bytes);
        goes(cache, class, object, key);
}

/* Does the call say what the seal says? */
STOOK_INLINE bool fits(uint64_t how, uint64_t says)
{
        return STOOK_LIKELY(!(how & ~(STOOK_HOW_SIZES | STOOK_HOW_BY))) &&
               stook_seal_is_by(says, stook_how_by(how)) &&
               (STOOK_LIKELY(!stook_how_has_size(how)) ||
                STOOK_LIKELY(stook_how_size(how) == stook_seal_bytes(says)));
}

void stook_watch_free(struct stook_cache *cache, void *object, uint64_t how)
{
        const struct stook_sealed *class = &stook_sealed_classes[cache->sealed];
        uint64_t key, seal, says;

        if (STOOK_UNLIKELY(cache->watch != (STOOK_WATCH_HARDEN | STOOK_WATCH_SEAL))) {
                stook_watch_free_seen(cache, object, how);
                return;
        }
        key = stook_seal_key(object);
        seal = stook_seal_load(object, class->at);
        says = stook_seal_untie(key, seal);
        if (STOOK_UNLIKELY(!fits(how, says) || !stook_seal_end(key, object, class->at, seal))) {
                stook_watch_free_seen(cache, object, how);
                return;
        }
        if (STOOK_UNLIKELY(stook_hardened & STOOK_HARDEN_ZERO_FREE)) {
                wipe(cache, class, object, key, stook_seal_bytes(says));
                return;
        }
        stook_seal_fill(key, object, stook_seal_bytes(says));
        goes(cache, class, object, key);
}
