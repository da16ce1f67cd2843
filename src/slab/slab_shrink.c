/*
 * Purpose: which free memory a cache keeps: slabs that are reserved before they are needed, empty
 * slabs, pages inside of partial slabs. A shrink gives back all empty slabs but for reserved ones,
 * and sorts the partial lists, so that fills take from the fullest slabs first.
 * Place: called by cache (destroy, reserve), limit (shrink) and special, and by barn for caches
 * that are idle or only free; calls slab_birth, pages, os (the purge).
 *
 * Pages: a slab that has one live object keeps all its pages otherwise: 32 KiB for one object of
 * 256 bytes. The objects of a page that are all free are taken like any others, the page's content
 * is dropped, and they are freed again. Meanwhile they are this thread's, so no lock is held over
 * the system call. Slabs that were looked at go to the list's tail: the next call goes on with
 * others.
 *
 * Invariants:
 *  H1 A slab is released under the lock of its node's list, and counts in `going` from there on,
 *     until `slabs` does not have it any more. So of two threads that may release the last one
 *     beyond the reserved, the second one finds that none is left.
 *  G1 A page is dropped only while all objects that touch it are in this thread's hands.
 *  G2 The mark of a constructed object is cleared before a page of it is dropped: its constructor
 *     will run again. So no mark stands for an object of which a page is gone, in the child of a
 *     fork either.
 *  G3 Type-stable slabs are left alone: a reader may look at a free object. So are those of a cache
 *     with a destructor, which would have to run here.
 *     So are those that keep their first object back: what lies between their objects is checked.
 *  G4 Empty slabs are left alone: their pages go back as a span (stook_slabs_give_kept, or when
 *     they are surplus), and the page layer decides what is purged. It would take a span that was
 *     purged here for one with content, purge it once more, and not learn that it was missed.
 * Concurrency: takes the lock of each node, also while it sorts or counts; a walk for an idle cache
 *  only tries it. Reserve and shrink are not for handlers. M1: the release of what is taken off
 *  `going` after `slabs` (slab_birth.c) pairs with the acquire of `going`: a slab that is gone from
 *  the first is gone from the second. While slabs are reserved other threads may take from them:
 *  the objects were there when the last slab was listed.
 * Failure: -ENOMEM of a reserve: slabs that could be had are kept. A page that the system refuses
 *  to drop stays as it is.
 */
#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/constants.h"
#include "slab/slab_inside.h"

/* Slabs with at most so many free objects are sorted, the others stay behind. As the kernel's. */
#define SHRINK_RANKS 32
/*
 * Listed slabs that stook_slabs_give_kept looks at in one hold of the lock. More are not needed:
 * empty slabs are kept only in short lists.
 */
#define LOOKS 64
/* Slabs of fewer pages are empty soon enough. Arbitrary. */
#define PAGES_LEAST 8
/*
 * Slabs of more parts, which have tiny objects, are left alone: whole pages of those are seldom
 * free. 256 bytes of stack.
 */
#define PARTS_MOST  32

/* ---- empty slabs ---- */

static void sort(struct stook_slabs_node *node)
{
        struct stook_list rank[SHRINK_RANKS];

        for (int i = 0; i < SHRINK_RANKS; i++)
                stook_list_init(&rank[i]);
        stook_list_for_each_safe(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);
                uint32_t free = stook_slab_free_listed(slab);

                if (free - 1 < SHRINK_RANKS) {
                        stook_list_remove(e);
                        stook_list_add_head(&rank[free - 1], e);
                }
        }
        for (int i = SHRINK_RANKS - 1; i >= 0; i--)
                stook_list_for_each_safe(e, &rank[i])
                        stook_list_add_head(&node->list, e);
}

uint32_t stook_slabs_beyond_reserved(const struct stook_slabs *slabs,
                                     const struct stook_slabs_node *node)
{
        uint64_t stay = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED), count;

        if (stay)
                stay += __atomic_load_n(&node->going, __ATOMIC_ACQUIRE);        /* M1 */
        count = __atomic_load_n(&node->slabs, __ATOMIC_RELAXED);
        return count > stay ? (uint32_t)(count - stay) : 0;
}

/* Held: of the first @looks slabs on the list, releases the empty ones that are not needed. */
static void retire_surplus(struct stook_slab_hold *hold, unsigned looks)
{
        bool (*may_go)(struct stook_slab *slab) = hold->slabs->is_special
                                                          ? hold->slabs->special->may_go : NULL;
        uint32_t surplus = stook_slabs_beyond_reserved(hold->slabs, hold->node);        /* H1 */

        stook_list_for_each_safe(e, &hold->node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (!surplus || !looks--)
                        break;
                if ((!may_go || may_go(slab)) && stook_slab_retire(slab)) {
                        stook_slab_bury(hold, slab);
                        surplus--;
                }
        }
}

void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned n_node)
{
        struct stook_slabs_node *node = &slabs->node[n_node];
        struct stook_slab_hold hold;

        if (stook_slabs_only_shrink(slabs) || stook_slabs_node_idle(node) ||
            !stook_slab_hold(&hold, slabs, node, true))
                return;
        retire_surplus(&hold, LOOKS);
        stook_slab_unhold(&hold);
}

size_t stook_slabs_shrink(struct stook_slabs *slabs)
{
        if (slabs->is_special)
                slabs->special->shrink(slabs);
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                struct stook_slabs_node *node = &slabs->node[i];
                struct stook_slab_hold hold;

                if (!stook_slab_hold_long(&hold, slabs, node))
                        continue;
                retire_surplus(&hold, UINT32_MAX);
                sort(node);
                stook_slab_unhold(&hold);
        }
        stook_pages_purge_excess();
        return stook_slabs_count(slabs);
}

/* ---- reserved slabs ---- */

/*
 * Free objects of listed slabs. 0 if the lock cannot be had: then more slabs are made than needed.
 */
static size_t count_free(struct stook_slabs *slabs, struct stook_slabs_node *node)
{
        struct stook_slab_hold hold;
        size_t n = 0;

        if (!stook_slab_hold_long(&hold, slabs, node))
                return 0;
        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                n += stook_slab_free_listed(slab);
        }
        stook_slab_unhold(&hold);
        return n;
}

int stook_slabs_reserve(struct stook_slabs *slabs, unsigned n_node, size_t n)
{
        size_t each = slabs->objects - slabs->kept_first, want = (n + each - 1) / each, has = 0;

        if (want > UINT32_MAX)
                return -ENOMEM;
        __atomic_store_n(&slabs->reserved, (uint32_t)want, __ATOMIC_RELAXED);
        if (n)
                has = count_free(slabs, &slabs->node[n_node]);
        while (has < n) {
                struct stook_slab *born[STOOK_SLAB_BIRTHS];
                unsigned count = stook_slab_births(slabs, n_node, n - has, true, born);

                if (!count)
                        return -ENOMEM;
                if (slabs->run_slabs)                   /* the others are listed already */
                        has += (slabs->run_slabs - count) * each;
                for (unsigned i = 0; i < count; i++) {
                        has += born[i]->objects - slabs->kept_first;
                        stook_slab_publish(slabs, born[i], false, false);
                }
        }
        return 0;
}

/* ---- pages inside of slabs ---- */

/* Objects taken from one slab, and the pages that they lie on alone. */
struct gift {
        struct stook_slab *slab;
        uint64_t taken[PARTS_MOST];
        uint64_t pages[STOOK_SLAB_MAP_PAGES_MAX / 64];
};

/* Those of objects @first to @last that lie in part @p, which has at least one of them. */
static uint64_t bits_between(size_t first, size_t last, unsigned p)
{
        size_t begin = (size_t)p * STOOK_PART_OBJECTS, end = begin + STOOK_PART_OBJECTS - 1;
        uint64_t bits = ~UINT64_C(0);

        if (first > begin)
                bits <<= first - begin;
        if (last < end)
                bits &= ~UINT64_C(0) >> (end - last);
        return bits;
}

/* Held: objects @first to @last are free, in listed parts. Bits of those are only set meanwhile. */
static bool is_free(const struct stook_slab *slab, size_t first, size_t last)
{
        for (unsigned p = (unsigned)(first / STOOK_PART_OBJECTS); p <= last / STOOK_PART_OBJECTS;
             p++)
                if (!(slab->listed >> p & 1) ||
                    (bits_between(first, last, p) & ~stook_part_bits(slab, p)))
                        return false;
        return true;
}

/* Held: finds the free pages of @gift->slab, and their objects. False: there are none. */
static bool find_pages(struct gift *gift)
{
        const struct stook_slab *slab = gift->slab;
        size_t page = stook_os_page_bytes(), stride = slab->slabs->stride;
        size_t pages = stook_slab_span(slab)->bytes / page;
        bool any = false;

        memset(gift->taken, 0, sizeof(gift->taken));
        memset(gift->pages, 0, sizeof(gift->pages));
        for (size_t i = 0; i < pages; i++) {
                size_t first = i * page / stride, last = ((i + 1) * page - 1) / stride;

                if (first >= slab->objects)
                        break;
                if (last >= slab->objects)
                        last = slab->objects - 1;
                if (!is_free(slab, first, last))
                        continue;
                for (unsigned p = (unsigned)(first / STOOK_PART_OBJECTS);
                     p <= last / STOOK_PART_OBJECTS; p++)
                        gift->taken[p] |= bits_between(first, last, p);
                gift->pages[i / 64] |= UINT64_C(1) << i % 64;
                any = true;
        }
        return any;
}

/* Held: the objects are this thread's from here on. */
static void take(struct stook_slab_hold *hold, struct gift *gift)
{
        uint64_t used_up = 0;

        for (unsigned p = 0; p < gift->slab->part_count; p++)
                if (gift->taken[p] && !stook_part_take_exactly(gift->slab, p, gift->taken[p]))
                        used_up |= UINT64_C(1) << p;
        if (used_up)
                stook_slab_remove(hold, gift->slab, used_up);
}

/* G2. No other thread looks at the marks of objects that are this thread's. */
static void unmark(const struct gift *gift)
{
        uint64_t *marks = stook_slab_made(gift->slab);

        for (unsigned p = 0; marks && p < gift->slab->part_count; p++)
                if (gift->taken[p])
                        __atomic_fetch_and(&marks[p], ~gift->taken[p], __ATOMIC_RELAXED);
}

/* G1. Neighbours in one call. */
static void drop(const struct gift *gift)
{
        size_t page = stook_os_page_bytes(), from = 0;
        char *base = stook_slab_base(gift->slab);

        for (size_t i = 0; i <= STOOK_SLAB_MAP_PAGES_MAX; i++) {
                if (i < STOOK_SLAB_MAP_PAGES_MAX && (gift->pages[i / 64] >> i % 64 & 1))
                        continue;
                if (i > from)
                        stook_os_purge(base + from * page, (i - from) * page);
                from = i + 1;
        }
}

void stook_slab_put_back(struct stook_slabs *slabs, struct stook_slab *slab, const uint64_t *taken)
{
        uint64_t claims = 0;

        stook_lock_forbid_waits();                                      /* slab_partial.c P4 */
        /* After the last free the slab may be gone: nothing of it is read then (S2). */
        for (unsigned p = 0, parts = slab->part_count; p < parts; p++) {
                uint64_t mask = taken ? taken[p] : stook_part_objects(slab, p);
                unsigned first;

                if (!mask)
                        continue;
                first = (unsigned)__builtin_ctzll(mask);
                if (stook_part_free(slabs, slab, p, &mask,
                                    stook_slab_object(slab, slabs->stride, p, first)) ==
                    STOOK_FREED_CLAIMED)
                        claims |= UINT64_C(1) << p;
        }
        if (claims)
                stook_slab_settle_parts(slabs, slab, claims, false);
        stook_lock_allow_waits();
}

/*
 * Held: the next slab at the list's head that has free pages which were not given yet. *@looks:
 * slabs still to be looked at.
 */
static bool next_gift(struct stook_slab_hold *hold, struct gift *gift, unsigned *looks)
{
        while (*looks && !stook_list_empty(&hold->node->list)) {
                struct stook_slab *slab = stook_slab_turn(hold);
                size_t free = stook_slab_free_listed(slab);

                --*looks;
                if (slab->part_count > PARTS_MOST ||
                    free * 8 < slab->objects * STOOK_SLAB_FREE_OF_8 ||
                    free == slab->objects ||                                            /* G4 */
                    free <= slab->given_free + slab->objects / STOOK_SLAB_MORE_PART)
                        continue;
                slab->given_free = (uint16_t)free;
                gift->slab = slab;
                if (find_pages(gift))
                        return true;
        }
        return false;
}

void stook_slabs_give_pages(struct stook_slabs *slabs, unsigned n_node, unsigned looks)
{
        struct stook_slabs_node *node = &slabs->node[n_node];
        struct gift gift;

        if (stook_slabs_only_shrink(slabs) || slabs->kept_first ||              /* G3 */
            slabs->slab_bytes < PAGES_LEAST * stook_os_page_bytes())
                return;
        if (looks > __atomic_load_n(&node->partial, __ATOMIC_RELAXED))
                looks = __atomic_load_n(&node->partial, __ATOMIC_RELAXED);
        while (looks && !stook_lock_may_not_wait()) {
                struct stook_slab_hold hold;
                bool found;

                if (!stook_slab_hold(&hold, slabs, node, true))
                        return;
                found = next_gift(&hold, &gift, &looks);
                if (found)
                        take(&hold, &gift);
                stook_slab_unhold(&hold);
                if (!found)
                        return;
                unmark(&gift);
                drop(&gift);
                stook_slab_put_back(slabs, gift.slab, gift.taken);
        }
}
