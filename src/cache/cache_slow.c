/*
 * Purpose: see cache_slow.h.
 * An accounted cache comes here with every object. So its two sections, the precharge's and the
 * sheaf's, stand first in the two calls for closed fronts. What misses there is done again by a
 * call at the very end, and no more values are alive than there are registers: nothing is saved on
 * the way.
 * Failure: an allocation that fails changes nothing. A free never fails; misuse is reported.
 */
#include "cache/cache_slow.h"

#include "cache/cache_account.h"
#include "cache/cache_limit.h"
#include "cache/cache_memory.h"
#include "cache/cache_watch.h"
#include "os/os.h"
#include "slot/slot_hot.h"
#include "home/home.h"
#include "group/precharge.h"

#define STOOK_SLOW_HOT __attribute__((aligned(STOOK_CACHELINE)))

/* Where the cache's sheaves are in slot 0, for sections: of an accounted cache not front.line. */
static uintptr_t line_of(const struct stook_cache *cache)
{
        return (uintptr_t)stook_sections.slots + cache->front.offset;
}

/* The node that @how names. */
static STOOK_NOINLINE unsigned node_of(uint64_t how)
{
        int named = stook_how_node(how);

        return named < 0 ? stook_os_node_home(stook_slot_node()) : (unsigned)named;
}

/* Many that slot and barn did not have; all or none. */
static size_t alloc_from_slabs(struct stook_cache *cache, size_t n, void **objects)
{
        size_t got = stook_slab_fill(&cache->slabs, stook_slot_node(), n, objects,
                                     STOOK_FILL_ASCENDING);

        if (STOOK_LIKELY(got == n)) {
                stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, n);
                return n;
        }
        /* These objects are not counted as allocated yet, because no user had them. */
        stook_slab_drain(&cache->slabs, got, objects);
        return 0;
}

static size_t alloc_of_node(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        unsigned node = node_of(how);
        size_t got = 0;

        while (got < n && (objects[got] = stook_home_get(&cache->front, node,
                                                                how & STOOK_HOW_THISNODE)))
                got++;
        return got;
}

/*
 * What the hot sections do not have: the one way of allocations into the layers below. Returns how
 * many there were. A slot that is asked for one object gets a sheaf. It is not asked for many: it
 * has given all of its own. Inlined, with @n known, for the depth of the stack. *@how then says if
 * objects were asked back: a word of its own would make a frame of the deepest path larger.
 */
STOOK_INLINE size_t alloc_below(struct stook_cache *cache, size_t n, void **objects, uint64_t *how)
{
        size_t got = 0;

        do {
                stook_slow_begin(*how);
                if (STOOK_UNLIKELY(*how & STOOK_HOW_NODE))
                        got += alloc_of_node(cache, n - got, objects + got, *how);
                else if (n > 1)
                        got = alloc_from_slabs(cache, n, objects);
                else
                        got = (objects[0] = stook_slot_get(&cache->front)) != NULL;
                stook_slow_end(*how);
                if (STOOK_UNLIKELY(got < n) && cache->slabs.run_asks)
                        got += stook_alloc_with_memory(cache, n - got, objects + got, *how);
        } while (STOOK_UNLIKELY(got < n) && stook_reclaim(cache, n - got, *how) &&
                 (*how |= STOOK_HOW_ASKED));
        return got;
}

/*
 * An object that is charged to no group yet. Inlined, for the depth of the stack. The straight line
 * is the usual miss; what is left over goes the same way once more, with all that may help.
 */
STOOK_INLINE void *alloc_uncharged(struct stook_cache *cache, uint64_t *how)
{
        void *object = NULL;

        if (STOOK_LIKELY(!(*how & (STOOK_HOW_NODE | STOOK_HOW_NOLOCK)))) {
                stook_gate_check();
                object = stook_slot_get(&cache->front);
        }
        if (STOOK_UNLIKELY(!object))
                alloc_below(cache, 1, &object, how);    /* none: NULL */
        return object;
}

static unsigned charge_terms(uint64_t how)
{
        return how & (STOOK_HOW_NOLOCK | STOOK_HOW_NOWAIT) ? STOOK_CHARGE_QUIET : 0;
}

/* *@how names a group, or 0. */
STOOK_INLINE void *alloc_charged(struct stook_cache *cache, uint64_t *how)
{
        void *object;

        if (stook_how_group(*how) && !(*how & STOOK_HOW_CHARGED) &&
            !stook_group_charge(stook_how_group(*how), cache->slabs.stride, charge_terms(*how)))
                return NULL;
        object = alloc_uncharged(cache, how);
        if (object)
                stook_account_mark(cache, object, stook_how_group(*how));
        else if (stook_how_group(*how))
                stook_group_uncharge(stook_how_group(*how), cache->slabs.stride);
        return object;
}

/* From a destroyed cache. What was charged for it is given back. */
static STOOK_COLD void *alloc_nothing(struct stook_cache *cache, uint64_t how)
{
        if (how & STOOK_HOW_CHARGED)
                stook_group_uncharge(stook_how_group(how), cache->slabs.stride);
        return stook_slow_answer(how, NULL, 0);
}

/* A charge and an uncharge may look for locks, too, on a slot that is new to this thread. */
static STOOK_NOINLINE void *alloc_accounted(struct stook_cache *cache, uint64_t how)
{
        void *object;

        if (STOOK_UNLIKELY(stook_cache_is_destroyed(cache)))
                return alloc_nothing(cache, how);
        if (!(how & STOOK_HOW_GROUP))
                how = stook_how_with_group(how, stook_group_current());
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_raise(0);
        object = alloc_charged(cache, &how);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_lower();
        return stook_slow_answer(how, object, stook_slow_bytes(cache));
}

void *stook_alloc_plain(struct stook_cache *cache, uint64_t how)
{
        void *object;

        if (STOOK_UNLIKELY(stook_cache_is_destroyed(cache)))
                return alloc_nothing(cache, how);
        object = alloc_uncharged(cache, &how);
        return stook_slow_answer(how, object, stook_slow_bytes(cache));
}

/*
 * A word that names a group, and no node, is the tag of the group's precharged bytes as well: the
 * section ignores the lower bits of a tag. So one register holds both.
 */
_Static_assert(STOOK_HOW_LAST < 1 << STOOK_PRECHARGE_BITS && STOOK_HOW_GROUP_SHIFT == 32, "tag");

/* @how names a group, and no node, and may wait: the common case of an accounted cache. */
STOOK_INLINE void *alloc_of_group(struct stook_cache *cache, uint64_t how)
{
        void *object;

        if (STOOK_UNLIKELY(
                    !stook_section_precharge_add_v1(stook_precharge_word(stook_how_group(how)), how,
                                                    -(int64_t)cache->slabs.stride)))
                return alloc_accounted(cache, how);
        object = stook_section_pop_v1(line_of(cache));
        if (STOOK_UNLIKELY(!object))
                return alloc_accounted(cache, how | STOOK_HOW_CHARGED);
        stook_account_mark(cache, object, stook_how_group(how));
        return STOOK_UNLIKELY(how & STOOK_HOW_ZERO)
                ? memset(object, 0, stook_slow_bytes(cache)) : object;
}

/* From an accounted cache, by any call. */
static STOOK_NOINLINE void *alloc_by_group(struct stook_cache *cache, uint64_t how)
{
        uint64_t named;
        uint16_t group;

        if (STOOK_UNLIKELY(how & STOOK_HOW_NODE) && !stook_slots_by_node)
                how = stook_how_without_node(how);
        named = how & STOOK_HOW_GROUP ? how : stook_how_with_group(how, stook_self->group);
        group = stook_how_group(named);
        if (!group || group == STOOK_GROUP_NONE ||
            (how & (STOOK_HOW_NOLOCK | STOOK_HOW_NODE)))
                return alloc_accounted(cache, how);
        __asm__("" : "+r"(named));              /* or the group is kept in a register beside it */
        return alloc_of_group(cache, named);
}

/*
 * In as few instructions as can be, and no branch in it is taken as a rule. There are no bytes for
 * group 0 and STOOK_GROUP_NONE in any precharge, so both miss. Aligned, as is stook_free_closed:
 * how the two lie in lines of code decides a tenth of a pair.
 */
STOOK_SLOW_HOT void *stook_alloc_closed(struct stook_cache *cache)
{
        uint64_t group = stook_self->group, tag = group << 32;
        void *object;

        __asm__("" : "+r"(tag));                /* or the group is kept in a register beside it */
        object = stook_section_charge_pop_v1(&cache->front.offset,
                                             stook_precharge_word((uint16_t)group), tag,
                                             &cache->charge);
        if (STOOK_UNLIKELY((uintptr_t)object <= (uintptr_t)STOOK_CHARGED_ONLY))
                return alloc_accounted(cache, STOOK_HOW_ERRNO |
                                              (object ? tag | STOOK_HOW_GROUP | STOOK_HOW_CHARGED
                                                      : 0));
        *stook_account_word(cache, object) = stook_account_tag(object) | tag >> 32;
        return object;
}

/* From a cache that is neither watched nor accounted. */
STOOK_INLINE void *alloc_straight(struct stook_cache *cache, uint64_t how)
{
        if (STOOK_UNLIKELY(how & STOOK_HOW_NODE) && !stook_slots_by_node)
                how = stook_how_without_node(how);
        return stook_alloc_plain(cache, how);
}

void *stook_alloc_slow(struct stook_cache *cache, uint64_t how)
{
        if (STOOK_LIKELY(!cache->charge))
                return alloc_straight(cache, how);
        return cache->charge < 0 ? stook_watch_duties.alloc(cache, how)
                                 : alloc_by_group(cache, how);
}

STOOK_COLD void *stook_alloc_shown(struct stook_cache *cache, uint64_t how)
{
        return stook_cache_is_accounted(cache) ? alloc_by_group(cache, how)
                                               : alloc_straight(cache, how);
}

/* ---- frees ---- */

/*
 * What the hot sections do not take: the one way of frees into the layers below. As above, a slot
 * that is given one object gets a sheaf with room, and many go to the slabs.
 */
STOOK_INLINE void free_below(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        stook_slow_begin(how);
        if (n > 1) {
                stook_count(&cache->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(&cache->slabs, n, objects);
        } else {
                stook_slot_put(&cache->front, objects[0], stook_cache_free_double);
        }
        stook_slow_end(how);
}

/* An object that is charged to no group any more. The usual call ends by the slot's. */
static STOOK_NOINLINE void free_plain(struct stook_cache *cache, void *object, uint64_t how)
{
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK)) {
                free_below(cache, 1, &object, how);
                return;
        }
        stook_gate_check();
        stook_slot_put(&cache->front, object, stook_cache_free_double);
}

/*
 * The group of @how is to be uncharged, if it is not 0. An object whose word still names a group
 * was overwritten: that is reported.
 */
static STOOK_NOINLINE void free_accounted(struct stook_cache *cache, void *object, uint64_t how)
{
        if (STOOK_UNLIKELY(*stook_account_word(cache, object) != stook_account_tag(object)))
                stook_account_unmark(cache, object);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_raise(0);
        if (stook_how_group(how))
                stook_group_uncharge(stook_how_group(how), cache->slabs.stride);
        free_plain(cache, object, how);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_lower();
}

/*
 * To an accounted cache. The word behind the object says which group was charged. Inlined, with
 * @how known for the commonest call: a value more would need a register that has to be saved.
 */
STOOK_INLINE void free_by_word(struct stook_cache *cache, void *object, uint64_t how)
{
        uint64_t *word = stook_account_word(cache, object);
        uint64_t group = *word ^ stook_account_tag(object), tag = group << 32;
        enum stook_uncharged answer;

        if (STOOK_UNLIKELY(group - 1 >= UINT16_MAX)) {  /* none, or it was overwritten */
                free_accounted(cache, object, how);
                return;
        }
        *word = stook_account_tag(object);
        __asm__("" : "+r"(tag));                /* as above */
        answer = stook_section_uncharge_push_v1(&cache->front.offset,
                                                stook_precharge_word((uint16_t)group), tag,
                                                &cache->charge, object);
        if (STOOK_UNLIKELY(answer != STOOK_UNCHARGED_PUSHED))
                free_accounted(cache, object,
                               answer == STOOK_UNCHARGED ? how : how | STOOK_HOW_GROUP | tag);
}

STOOK_SLOW_HOT void stook_free_closed(struct stook_cache *cache, void *object)
{
        free_by_word(cache, object, 0);
}

static STOOK_NOINLINE void free_by_call(struct stook_cache *cache, void *object, uint64_t how)
{
        free_by_word(cache, object, how);
}

void stook_free_slow(struct stook_cache *cache, void *object, uint64_t how)
{
        if (STOOK_LIKELY(!cache->charge))
                free_plain(cache, object, how);
        else if (cache->charge < 0)
                stook_watch_duties.free(cache, object, how);
        else
                free_by_call(cache, object, how);
}

STOOK_COLD void stook_free_shown(struct stook_cache *cache, void *object, uint64_t how)
{
        if (stook_cache_is_accounted(cache))
                free_accounted(cache, object,
                               stook_how_with_group(how, stook_account_unmark(cache, object)));
        else
                free_plain(cache, object, how);
}

/* ---- many ---- */

/* Objects that are charged to no group any more. */
static void free_all(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        size_t pushed;

        if (STOOK_UNLIKELY(stook_slots_by_node))
                n = stook_home_sort(&cache->front, n, objects);
        pushed = stook_slot_free_bulk(&cache->front, n, objects);
        if (pushed < n)
                free_below(cache, n - pushed, objects + pushed, how);
}

/* All or none, charged to no group yet. */
static bool alloc_all(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        size_t got = 0;

        if (STOOK_UNLIKELY(how & STOOK_HOW_THISNODE) && stook_slots_by_node)
                how = stook_how_with_node(how, -1);
        else
                got = stook_slot_alloc_bulk(&cache->front, n, objects);
        if (got == n)
                return true;
        if (STOOK_UNLIKELY(stook_cache_is_destroyed(cache)))
                return false;
        got += alloc_below(cache, n - got, objects + got, &how);
        if (got < n)
                free_all(cache, got, objects, how);
        return got == n;
}

static bool alloc_all_charged(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (!alloc_all(cache, n, objects, how))
                return false;
        if (!stook_cache_is_accounted(cache) ||
            stook_account_charge(cache, n, objects, stook_group_current(), charge_terms(how)))
                return true;
        free_all(cache, n, objects, how);
        return false;
}

bool stook_alloc_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        bool all;

        if (STOOK_UNLIKELY(cache->watch))
                return stook_watch_duties.alloc_bulk(cache, n, objects, how);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_raise(0);
        all = alloc_all_charged(cache, n, objects, how);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_lower();
        if (!all)
                return false;
        if (how & STOOK_HOW_ZERO)
                for (size_t i = 0; i < n; i++)
                        memset(objects[i], 0, stook_slow_bytes(cache));
        return true;
}

void stook_free_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (STOOK_UNLIKELY(cache->watch)) {
                stook_watch_duties.free_bulk(cache, n, objects, how);
                return;
        }
        if (stook_cache_is_accounted(cache))
                stook_account_uncharge(cache, n, objects);
        free_all(cache, n, objects, how);
}
