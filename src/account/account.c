/*
 * Purpose: see account.h.
 * An accounted cache comes here with every object. So its two sections, the precharge's and the
 * sheaf's, stand first in the two calls for closed fronts. What misses there is done again by a
 * call at the very end, and no more values are alive than there are registers: nothing is saved on
 * the way.
 * Failure: an allocation that fails changes nothing. A free never fails; misuse is reported.
 */
#include "account/account.h"

#include "group/precharge.h"
#include "report/report.h"
#include "slot/slot_hot.h"
#include "slot/slot.h"

#define STOOK_SLOW_HOT __attribute__((aligned(STOOK_CACHELINE)))

/* ---- the word behind an object ---- */

static STOOK_COLD void report_overwritten(const struct stook_cache *cache, const void *object)
{
        stook_report_fault(STOOK_FAULT_CORRUPT, object, stook_cache_name(cache), NULL, 0,
                           "the group behind the object was overwritten; its charge is lost");
}

uint16_t stook_account_unmark(const struct stook_cache *cache, const void *object)
{
        uint64_t id = *stook_account_word(cache, object) ^ stook_account_tag(object);

        if (STOOK_UNLIKELY(id > UINT16_MAX)) {
                report_overwritten(cache, object);
                id = 0;
        }
        stook_account_mark(cache, object, 0);
        return (uint16_t)id;
}

bool stook_account_charge(struct stook_cache *cache, size_t n, void *const *objects, uint16_t id,
                          unsigned how)
{
        if (id && !stook_group_charge(id, n * cache->slabs.stride, how))
                return false;
        for (size_t i = 0; i < n; i++)
                stook_account_mark(cache, objects[i], id);
        return true;
}

void stook_account_uncharge(struct stook_cache *cache, size_t n, void *const *objects)
{
        uint16_t charged = 0;
        size_t run = 0;

        /* Objects of one group lie together as a rule: one uncharge for each run. */
        for (size_t i = 0; i < n; i++) {
                uint16_t id = stook_account_unmark(cache, objects[i]);

                if (id != charged && run) {
                        if (charged)
                                stook_group_uncharge(charged, run * cache->slabs.stride);
                        run = 0;
                }
                charged = id;
                run++;
        }
        if (run && charged)
                stook_group_uncharge(charged, run * cache->slabs.stride);
}

/* ---- allocations ---- */

/* Where the cache's sheaves are in slot 0, for sections: of an accounted cache not front.line. */
static uintptr_t line_of(const struct stook_cache *cache)
{
        return (uintptr_t)stook_sections.slots + cache->front.offset;
}

static unsigned charge_terms(uint64_t how)
{
        return how & (STOOK_HOW_NOLOCK | STOOK_HOW_NOWAIT) ? STOOK_CHARGE_QUIET : 0;
}

/* @how names a group, or 0. */
static void *alloc_charged(struct stook_cache *cache, uint64_t how)
{
        uint16_t group = stook_how_group(how);
        void *object;

        if (group && !(how & STOOK_HOW_CHARGED) &&
            !stook_group_charge(group, cache->slabs.stride, charge_terms(how)))
                return stook_slow_answer(how, NULL, 0);
        object = stook_alloc_plain(cache, how);
        if (object)
                stook_account_mark(cache, object, group);
        else if (group)
                stook_group_uncharge(group, cache->slabs.stride);
        return object;
}

/* A charge and an uncharge may look for locks, too, on a slot that is new to this thread. */
static STOOK_NOINLINE void *alloc_accounted(struct stook_cache *cache, uint64_t how)
{
        void *object;

        if (!(how & STOOK_HOW_GROUP))
                how = stook_how_with_group(how, stook_group_now());
        if (STOOK_LIKELY(!(how & STOOK_HOW_NOLOCK)))
                return alloc_charged(cache, how);
        stook_lock_raise(0);
        object = alloc_charged(cache, how);
        stook_lock_lower();
        return object;
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

STOOK_NOINLINE void *stook_account_alloc(struct stook_cache *cache, uint64_t how)
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
 * group 0 and STOOK_GROUP_NONE in any precharge, so both miss. Aligned, as is the call that frees:
 * how the two lie in lines of code decides a tenth of a pair.
 */
STOOK_SLOW_HOT void *stook_account_alloc_closed(struct stook_cache *cache)
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

static void *refuse(void)
{
        errno = EINVAL;
        return NULL;
}

STOOK_API void *stook_cache_alloc_group(struct stook_cache *cache, unsigned flags,
                                        struct stook_group *group)
{
        uint64_t how = STOOK_HOW_ERRNO | flags;

        if (!stook_flags_good(cache, flags) || !stook_cache_is_accounted(cache))
                return refuse();
        if (flags & STOOK_ALLOC_THISNODE)
                how = stook_how_with_node(how, -1);
        return stook_alloc_slow(cache, stook_how_with_group(how, group ? group->id : 0));
}

/* ---- frees ---- */

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
        stook_free_plain(cache, object, how);
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

STOOK_SLOW_HOT void stook_account_free_closed(struct stook_cache *cache, void *object)
{
        free_by_word(cache, object, 0);
}

STOOK_NOINLINE void stook_account_free(struct stook_cache *cache, void *object, uint64_t how)
{
        free_by_word(cache, object, how);
}

/* ---- many ---- */

static bool alloc_all(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (!stook_alloc_bulk_plain(cache, n, objects, how))
                return false;
        if (stook_account_charge(cache, n, objects, stook_group_now(), charge_terms(how)))
                return true;
        stook_free_bulk_plain(cache, n, objects, how);
        return false;
}

static bool alloc_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        bool all;

        if (STOOK_LIKELY(!(how & STOOK_HOW_NOLOCK)))
                return alloc_all(cache, n, objects, how);
        stook_lock_raise(0);
        all = alloc_all(cache, n, objects, how);
        stook_lock_lower();
        return all;
}

static void free_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        stook_account_uncharge(cache, n, objects);
        stook_free_bulk_plain(cache, n, objects, how);
}

const struct stook_edge_calls stook_account_edge = {
        stook_account_alloc, stook_account_free, alloc_bulk, free_bulk,
};

const struct stook_account_duties stook_account_duties = {
        stook_account_alloc_closed, stook_account_free_closed,
};
