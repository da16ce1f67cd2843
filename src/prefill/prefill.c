/*
 * Purpose: prefilled sheaves. The library lends a whole sheaf, and the user takes objects from it
 * by plain loads and stores.
 * Place: API; calls slot for its spare, then barn.
 *
 * Where a lent sheaf comes from: the slot's spare (prefill_fast), else the barn, a full one first,
 * else new memory (prefill_slow). It is filled to its capacity, not just to what was asked for: the
 * next time there is nothing to do. If more is asked for than a sheaf holds, the sheaf is made to
 * measure (prefill_oversize). So it is if all objects are to be of one node, and there are several:
 * sheaves that lie ready may have objects of any node.
 * Where a returned sheaf goes: it becomes the spare, as it is (return_fast); else it is filled up
 * and goes to the barn, or is flushed. A sheaf made to measure is flushed and deleted
 * (return_slow).
 *
 * Unlike the kernel's, the counters count what succeeded. What is taken from a lent sheaf counts as
 * taken from a sheaf (alloc_fastpath). So all sums hold, and sheaves on loan are prefills less
 * returns.
 *
 * Invariants:
 *  I1 a lent sheaf is marked (barn/sheaf.h), and only the user has it.
 * Concurrency: any thread, any instruction; a lent sheaf has one holder.
 * Failure: prefill NULL with errno ENOMEM or EINVAL, nothing lost; return never fails.
 */
#include <errno.h>
#include <string.h>
#include <stook/sheaf.h>

#include "account/account.h"
#include "limit/cache_limit.h"
#include "cache/cache_slow.h"
#include "cache/cache_watch.h"
#include "os/os.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slot/slot_trip.h"

#define NODE stook_slot_node()

static bool arguments_good(const struct stook_cache *cache, unsigned flags, size_t n)
{
        return n <= STOOK_SHEAF_CAPACITY_MAX && stook_flags_good(cache, flags);
}

/* All objects of the sheaf are to be of the node that this thread runs on. */
static bool is_one_node(unsigned flags)
{
        return STOOK_UNLIKELY(flags & STOOK_ALLOC_THISNODE) && stook_slots_by_node;
}

static bool is_all_of_node(const struct stook_sheaf *sheaf, unsigned node)
{
        for (unsigned i = 0; i < stook_sheaf_size(sheaf); i++)
                if (stook_address_node((uintptr_t)sheaf->objects[i]) != node)
                        return false;
        return true;
}

static unsigned loan_terms(const struct stook_cache *cache, unsigned flags)
{
        unsigned terms = stook_cache_is_accounted(cache) || cache->watch ? STOOK_LOAN_LIBRARY : 0;

        return flags & STOOK_ALLOC_ZERO ? terms | STOOK_LOAN_LIBRARY | STOOK_LOAN_ZERO : terms;
}

/* The slot's spare, if it can hold @n. */
static struct stook_sheaf *spare_for(struct stook_cache *cache, size_t n)
{
        struct stook_sheaf *sheaf = stook_slot_take_spare(&cache->front);

        if (sheaf && stook_sheaf_capacity(sheaf) < n) {
                stook_slot_dispose(&cache->front, -1, sheaf);
                sheaf = NULL;
        }
        return sheaf;
}

/* There is no memory for more objects: takes those of other sheaves, of the slot and the barn. */
static STOOK_NOINLINE void gather(struct stook_cache *cache, struct stook_sheaf *into)
{
        unsigned size = stook_sheaf_size(into);

        while (size < stook_sheaf_capacity(into)) {
                struct stook_sheaf *from = stook_slot_take_spare(&cache->front);
                unsigned room = stook_sheaf_capacity(into) - size, has, moved;

                if (!from)
                        from = stook_barn_get_full(&cache->barns, NODE, STOOK_FROM_BARN, NULL);
                if (!from)
                        break;
                has = stook_sheaf_size(from);
                moved = has < room ? has : room;
                memcpy(into->objects + size, from->objects + has - moved, moved * sizeof(void *));
                stook_sheaf_set_size(from, has - moved);
                stook_sheaf_set_size(into, size += moved);
                stook_slot_dispose(&cache->front, -1, from);
        }
}

/* From the slabs; and from other sheaves, if @n objects are more than that gave. */
static void fill(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n, unsigned flags)
{
        stook_barn_fill(&cache->barns, NODE, sheaf);
        if (stook_sheaf_size(sheaf) < n)
                gather(cache, sheaf);
        stook_fill_with_memory(cache, sheaf, n, NODE, flags);
}

/* A sheaf for @n objects of one node, with as many as that node's slabs have. NULL: no memory. */
static STOOK_NOINLINE struct stook_sheaf *make_of_node(struct stook_cache *cache, size_t n,
                                                       unsigned flags)
{
        unsigned home = stook_os_node_home(NODE);
        struct stook_sheaf *sheaf = stook_sheaf_new(cache->index, (unsigned)n, home,
                                                    &cache->counters);
        size_t got;

        if (!sheaf)
                return NULL;
        got = stook_slab_fill(&cache->slabs, home, n, sheaf->objects,
                              STOOK_FILL_FOR_SHEAF | STOOK_FILL_THISNODE);
        stook_sheaf_set_size(sheaf, (unsigned)got);
        stook_count(&cache->counters, STOOK_STAT_sheaf_refill, got);
        stook_fill_with_memory(cache, sheaf, n, home, flags);
        return sheaf;
}

/* No sheaf has no room: for 0 objects there is room for one. */
static struct stook_sheaf *find_room(struct stook_cache *cache, size_t n, unsigned flags)
{
        if (!n)
                n = 1;
        if (is_one_node(flags))
                return make_of_node(cache, n, flags);
        return stook_barn_get_room(&cache->barns, NODE, (unsigned)n);
}

static struct stook_sheaf *borrow(struct stook_cache *cache, size_t n, unsigned flags)
{
        struct stook_barns *barns = &cache->barns;
        bool measured = n > stook_barns_capacity(barns) || is_one_node(flags);
        enum stook_counter how = STOOK_STAT_sheaf_prefill_fast;
        struct stook_sheaf *sheaf = measured ? NULL : spare_for(cache, n);

        if (!sheaf) {
                if (STOOK_UNLIKELY(stook_cache_is_destroyed(cache)))
                        return NULL;
                how = measured ? STOOK_STAT_sheaf_prefill_oversize : STOOK_STAT_sheaf_prefill_slow;
                sheaf = find_room(cache, n, flags);
        }
        if (!sheaf)
                return NULL;
        if (stook_sheaf_size(sheaf) < n && !is_one_node(flags))
                fill(cache, sheaf, n, flags);
        if (stook_sheaf_size(sheaf) < n) {
                stook_barn_discard(barns, sheaf);
                return NULL;
        }
        stook_count(&cache->counters, how, 1);
        stook_sheaf_arm(&cache->front, sheaf);
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
                stook_barn_discard(barns, sheaf);
                return;
        }
        stook_barn_fill_for_put(barns, NODE, sheaf);
        stook_slot_dispose(&cache->front, -1, sheaf);
}

/* Does a lent sheaf have what is wanted, perhaps after it was filled? *@replace: another might. */
static bool suffices(struct stook_cache *cache, struct stook_sheaf *sheaf, unsigned flags, size_t n,
                     bool *replace)
{
        if (is_one_node(flags)) {
                *replace = true;
                return stook_sheaf_size(sheaf) >= n &&
                       is_all_of_node(sheaf, stook_os_node_home(NODE));
        }
        *replace = stook_sheaf_capacity(sheaf) < n;
        if (stook_sheaf_size(sheaf) < n && !*replace)
                fill(cache, sheaf, n, flags);
        return stook_sheaf_size(sheaf) >= n;
}

/*
 * From here on *@at has @n objects for the caller. It had a lent sheaf, or NULL, for which there is
 * a new one. Return: 0; -ENOMEM, and nothing has changed.
 */
static int lend(struct stook_cache *cache, unsigned flags, struct stook_sheaf **at, size_t n)
{
        struct stook_sheaf *had = *at, *other;
        bool replace = true;

        if (had && suffices(cache, had, flags, n, &replace)) {
                stook_sheaf_lend(had, loan_terms(cache, flags));
                return 0;
        }
        other = replace ? borrow(cache, n, flags) : NULL;
        if (!other)
                return -ENOMEM;
        if (had) {
                stook_sheaf_take_back(had);
                give_back(cache, had);
        }
        *at = other;
        return 0;
}

/* Lent objects beyond @n go back to their slabs. */
static void trim_to(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n)
{
        size_t surplus = stook_sheaf_size(sheaf) - n;

        if (!surplus)
                return;
        stook_sheaf_set_size(sheaf, (unsigned)n);
        stook_count(&cache->counters, STOOK_STAT_sheaf_flush, surplus);
        stook_slab_drain(&cache->slabs, surplus, sheaf->objects + n);
}

/* As lend, of a cache with a limit: lent objects count, so there are no more than was asked for. */
static STOOK_NOINLINE int lend_limited(struct stook_cache *cache, unsigned flags,
                                       struct stook_sheaf **at, size_t n)
{
        size_t had = *at ? stook_sheaf_size(*at) : 0, wanted = n > had ? n : had;
        int error = -ENOMEM;

        if (!stook_limit_take(cache, wanted - had, flags))
                return error;
        stook_slow_begin(flags);
        error = lend(cache, flags, at, n);
        if (error)
                wanted = had;
        else if (stook_sheaf_size(*at) < wanted)        /* another sheaf, all of one node */
                wanted = stook_sheaf_size(*at);
        if (*at)
                trim_to(cache, *at, wanted);
        stook_slow_end(flags);
        stook_limit_give(cache, (n > had ? n : had) - wanted);
        return error;
}

/* The arguments are good. */
static int lend_slow(struct stook_cache *cache, unsigned flags, struct stook_sheaf **at, size_t n)
{
        int error;

        if (STOOK_UNLIKELY(stook_cache_is_limited(cache)))
                return lend_limited(cache, flags, at, n);
        stook_slow_begin(flags);
        error = lend(cache, flags, at, n);
        stook_slow_end(flags);
        return error;
}

/* On purpose? */
static bool fails(const struct stook_cache *cache, size_t n)
{
        return STOOK_UNLIKELY(cache->watch) &&
               stook_watch_duties.fails(cache, n * stook_slow_bytes(cache));
}

STOOK_API struct stook_sheaf *stook_sheaf_prefill(struct stook_cache *cache, unsigned flags,
                                                  size_t n)
{
        struct stook_sheaf *sheaf = NULL;
        int error = -EINVAL;

        if (arguments_good(cache, flags, n))
                error = fails(cache, n)
                        ? -ENOMEM : lend_slow(cache, flags, &sheaf, n);
        if (error)
                errno = -error;
        return sheaf;
}

/* On purpose? What is in the sheaf already was promised: only the objects that lack may fail. */
static bool refill_fails(const struct stook_cache *cache, const struct stook_sheaf *sheaf, size_t n)
{
        size_t has = stook_sheaf_size(sheaf);

        return n > has && fails(cache, n - has);
}

STOOK_API int stook_sheaf_refill(struct stook_cache *cache, unsigned flags, struct stook_sheaf **at,
                                 size_t n)
{
        if (!at || !*at || !arguments_good(cache, flags, n) ||
            (*at)->cache_index != cache->index || !stook_sheaf_is_lent(*at))
                return -EINVAL;
        if (refill_fails(cache, *at, n))
                return -ENOMEM;
        return lend_slow(cache, flags, at, n);
}

STOOK_API size_t stook_sheaf_available(const struct stook_sheaf *sheaf)
{
        return sheaf ? stook_sheaf_size(sheaf) : 0;
}

/* What the terms of the loan ask for. The call cannot fail, so a charge passes limits. */
static STOOK_NOINLINE void *meet_terms(struct stook_cache *cache, struct stook_sheaf *sheaf,
                                       void *object)
{
        /* A search for leaks shall not find it there. */
        sheaf->objects[stook_sheaf_size(sheaf)] = NULL;
        if (stook_cache_is_accounted(cache))
                stook_account_charge(cache, 1, &object, stook_group_now(), STOOK_CHARGE_FORCE);
        if (STOOK_UNLIKELY(cache->watch))
                object = stook_watch_duties.lent(cache, object);
        if (stook_sheaf_loan_terms(sheaf) & STOOK_LOAN_ZERO)
                memset(object, 0, stook_slow_bytes(cache));
        return object;
}

STOOK_API void *stook_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        uint64_t word = __atomic_load_n(&sheaf->word, __ATOMIC_RELAXED);
        unsigned size = (unsigned)(word & 0xffff);
        void *object;

        if (STOOK_UNLIKELY(!size))
                return NULL;
        while (STOOK_UNLIKELY(stook_word_is_marked(word))) {
                if (stook_sheaf_trip(&cache->front, sheaf))
                        stook_sample_duties.in_place(&cache->front);
                word = sheaf->word;
        }
        object = sheaf->objects[size - 1];
        __atomic_store_n(&sheaf->word, word + STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(stook_sheaf_loan_terms(sheaf) & STOOK_LOAN_LIBRARY))
                return meet_terms(cache, sheaf, object);
        return object;
}

static STOOK_COLD void return_misuse(const struct stook_cache *or_null,
                                     const struct stook_sheaf *sheaf)
{
        const char *called = or_null ? stook_cache_name(or_null) : NULL;
        unsigned index = sheaf->cache_index;
        char detail[112];

        if (index && (!or_null || index != or_null->index)) {
                stook_report_format(detail, sizeof(detail), "a prefilled sheaf of cache %s",
                                    stook_cache_name(stook_cache_at(index)));
                stook_report_fault(STOOK_FAULT_WRONG_CACHE, sheaf, called, NULL, 0, detail);
        } else {
                stook_report_fault(STOOK_FAULT_DOUBLE_FREE, sheaf, called, NULL, 0,
                                   "a prefilled sheaf that was returned before");
        }
}

STOOK_API void stook_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        if (!sheaf)
                return;
        if (STOOK_UNLIKELY(!cache || sheaf->cache_index != cache->index ||
                           !stook_sheaf_take_back(sheaf))) {
                return_misuse(cache, sheaf);
                return;
        }
        stook_slow_begin(0);
        if (STOOK_UNLIKELY(stook_cache_is_limited(cache)))
                stook_limit_give(cache, stook_sheaf_size(sheaf));
        give_back(cache, sheaf);
}
