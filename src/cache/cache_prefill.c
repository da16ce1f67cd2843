/*
 * Purpose: prefilled sheaves: whole sheaves lent to users, who then take objects from them with nothing in the way.
 * Place: API; calls slot for its spare, then barn, then slab through it.
 *
 * Where a sheaf comes from: the slot's spare (prefill_fast), else the barn, a full one first, else new memory
 * (prefill_slow). It is filled to its capacity, not just to what was asked for: the next time there is nothing to
 * do. More than a sheaf holds: one is made to measure (prefill_oversize). Where it goes: back to be the spare, as
 * it is (return_fast); else filled up and to the barn, or flushed; made to measure it is flushed and deleted (return_slow).
 *
 * Unlike the kernel's, the counters count what succeeded, and what is taken from a lent sheaf counts as taken from a
 * sheaf (alloc_fastpath), so that all sums hold and sheaves on loan are prefills less returns.
 *
 * Invariants:
 *  I1 a lent sheaf is marked (barn/sheaf.h) and in nobody's hands but the user's.
 * Concurrency: any thread, any instruction; a lent sheaf has one holder.
 * Failure: prefill NULL with errno ENOMEM or EINVAL, nothing lost; return never fails.
 */
#include <errno.h>
#include <string.h>
#include <stook/sheaf.h>

#include "cache/cache_account.h"
#include "life/life.h"
#include "report/report.h"
#include "slot/slot_node.h"

#define NODE stook_slot_node()

static bool arguments_good(const struct stook_cache *cache, size_t n, unsigned flags)
{
        return cache && n <= STOOK_SHEAF_CAPACITY_MAX && !(flags & ~(STOOK_ZERO | STOOK_NOWAIT)) &&
               !((flags & STOOK_ZERO) && cache->slabs.ctor);
}

static unsigned loan_terms(const struct stook_cache *cache, unsigned flags)
{
        unsigned terms = cache->flags & STOOK_ACCOUNT ? STOOK_LOAN_LIBRARY : 0;

        return flags & STOOK_ZERO ? terms | STOOK_LOAN_LIBRARY | STOOK_LOAN_ZERO : terms;
}

/* The slot's spare, or one of the barn's, if it can hold @n. *@how: what to count. */
static struct stook_sheaf *at_hand(struct stook_cache *cache, size_t n, enum stook_counter *how)
{
        struct stook_sheaf *sheaf = stook_slot_take_spare(&cache->front);

        *how = STOOK_STAT_sheaf_prefill_fast;
        if (!sheaf) {
                *how = STOOK_STAT_sheaf_prefill_slow;
                sheaf = stook_barn_get_full_or_empty(&cache->barns, NODE);
        }
        if (sheaf && stook_sheaf_capacity(sheaf) < n) {
                stook_barn_dispose(&cache->barns, NODE, sheaf);
                sheaf = NULL;
        }
        return sheaf;
}

/* No memory for more objects: what other sheaves of the slot and the barn have. */
static STOOK_NOINLINE void gather(struct stook_cache *cache, struct stook_sheaf *into)
{
        struct stook_barns *barns = &cache->barns;
        unsigned size = stook_sheaf_size(into);

        while (size < stook_sheaf_capacity(into)) {
                struct stook_sheaf *from = stook_slot_take_spare(&cache->front);
                unsigned room = stook_sheaf_capacity(into) - size, has, moved;

                if (!from)
                        from = stook_barn_get_full(barns, NODE);
                if (!from)
                        break;
                has = stook_sheaf_size(from);
                moved = has < room ? has : room;
                memcpy(into->objects + size, from->objects + has - moved, moved * sizeof(void *));
                stook_sheaf_set_size(from, has - moved);
                stook_sheaf_set_size(into, size += moved);
                stook_barn_dispose(barns, NODE, from);
        }
}

static struct stook_sheaf *borrow(struct stook_cache *cache, size_t n, unsigned flags)
{
        struct stook_barns *barns = &cache->barns;
        enum stook_counter how = STOOK_STAT_sheaf_prefill_oversize;
        unsigned usual = stook_barns_capacity(barns), capacity = n > usual ? (unsigned)n : usual;
        struct stook_sheaf *sheaf = NULL;

        if (n <= usual)
                sheaf = at_hand(cache, n, &how);
        if (!sheaf)
                sheaf = stook_sheaf_new(cache->index, capacity, NODE, &cache->counters);
        if (!sheaf)
                return NULL;
        if (stook_sheaf_size(sheaf) < n)
                stook_barn_fill(barns, NODE, sheaf);
        if (stook_sheaf_size(sheaf) < n)
                gather(cache, sheaf);
        if (stook_sheaf_size(sheaf) < n) {
                stook_barn_flush(barns, sheaf);
                stook_sheaf_delete(sheaf, &cache->counters);
                return NULL;
        }
        stook_count(&cache->counters, how, 1);
        stook_sheaf_lend(sheaf, loan_terms(cache, flags));
        return sheaf;
}

/* A sheaf that is not lent any more. */
static void give_back(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        struct stook_barns *barns = &cache->barns;

        if (stook_slot_give_spare(&cache->front, sheaf)) {
                stook_count(&cache->counters, STOOK_STAT_sheaf_return_fast, 1);
                return;
        }
        stook_count(&cache->counters, STOOK_STAT_sheaf_return_slow, 1);
        if (stook_sheaf_capacity(sheaf) != stook_barns_capacity(barns)) {
                stook_barn_flush(barns, sheaf);
                stook_sheaf_delete(sheaf, &cache->counters);
                return;
        }
        if (stook_barn_has_room(barns, NODE))
                stook_barn_fill(barns, NODE, sheaf);
        stook_barn_dispose(barns, NODE, sheaf);
}

STOOK_API struct stook_sheaf *stook_sheaf_prefill(struct stook_cache *cache, size_t n, unsigned flags)
{
        struct stook_sheaf *sheaf;

        if (!n || !arguments_good(cache, n, flags)) {
                errno = EINVAL;
                return NULL;
        }
        stook_fork_check();
        sheaf = borrow(cache, n, flags);
        if (!sheaf)
                errno = ENOMEM;
        return sheaf;
}

STOOK_API int stook_sheaf_refill(struct stook_cache *cache, struct stook_sheaf **at, size_t n, unsigned flags)
{
        struct stook_sheaf *sheaf, *larger;

        if (!at || !*at || !arguments_good(cache, n, flags))
                return -EINVAL;
        sheaf = *at;
        if (sheaf->cache_index != cache->index || !stook_sheaf_is_lent(sheaf))
                return -EINVAL;
        stook_fork_check();
        if (stook_sheaf_size(sheaf) < n && stook_sheaf_capacity(sheaf) >= n)
                stook_barn_fill(&cache->barns, NODE, sheaf);
        if (stook_sheaf_size(sheaf) < n && stook_sheaf_capacity(sheaf) >= n)
                gather(cache, sheaf);
        if (stook_sheaf_size(sheaf) >= n) {
                stook_sheaf_lend(sheaf, loan_terms(cache, flags));
                return 0;
        }
        larger = stook_sheaf_capacity(sheaf) < n ? borrow(cache, n, flags) : NULL;
        if (!larger)
                return -ENOMEM;
        stook_sheaf_take_back(sheaf);
        give_back(cache, sheaf);
        *at = larger;
        return 0;
}

STOOK_API size_t stook_sheaf_available(const struct stook_sheaf *sheaf)
{
        return sheaf ? stook_sheaf_size(sheaf) : 0;
}

static STOOK_NOINLINE void look_at(struct stook_cache *cache, const struct stook_sheaf *sheaf, void *object)
{
        if (stook_sheaf_loan_terms(sheaf) & STOOK_LOAN_ZERO)
                memset(object, 0, stook_cache_object_size(cache));
        /* It cannot fail, so limits are passed. */
        if (stook_cache_is_accounted(cache))
                stook_account_charge(cache, 1, &object, stook_group_current(), STOOK_CHARGE_FORCE);
}

STOOK_API void *stook_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        uint64_t word = __atomic_load_n(&sheaf->word, __ATOMIC_RELAXED);
        unsigned size = (unsigned)(word & 0xffff);
        void *object;

        if (STOOK_UNLIKELY(!size))
                return NULL;
        object = sheaf->objects[size - 1];
        __atomic_store_n(&sheaf->word, word + STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(stook_sheaf_loan_terms(sheaf) & STOOK_LOAN_LIBRARY))
                look_at(cache, sheaf, object);
        return object;
}

static STOOK_COLD void return_misuse(const struct stook_cache *or_null, const struct stook_sheaf *sheaf)
{
        const char *called = or_null ? or_null->name : NULL;
        unsigned index = sheaf->cache_index;
        char detail[112];

        if (index && (!or_null || index != or_null->index)) {
                stook_report_format(detail, sizeof(detail), "a prefilled sheaf of cache %s", stook_cache_at(index)->name);
                stook_report_fault(STOOK_FAULT_WRONG_CACHE, sheaf, called, NULL, 0, detail);
        } else {
                stook_report_fault(STOOK_FAULT_DOUBLE_FREE, sheaf, called, NULL, 0, "a prefilled sheaf that was returned before");
        }
}

STOOK_API void stook_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        if (!sheaf)
                return;
        if (STOOK_UNLIKELY(!cache || sheaf->cache_index != cache->index || !stook_sheaf_take_back(sheaf))) {
                return_misuse(cache, sheaf);
                return;
        }
        stook_fork_check();
        give_back(cache, sheaf);
}
