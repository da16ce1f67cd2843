/*
 * Purpose: pages inside of partial slabs, given back to the system. A slab that has one live object
 * keeps all its pages otherwise: 32 KiB for one object of 256 bytes.
 * Place: called by barn, for caches that are idle or only free; calls os (the purge).
 *
 * The objects of a page that are all free are taken like any others, the page's content is dropped,
 * and they are freed again. Meanwhile they are this thread's, so no lock is held over the system
 * call. Slabs that were looked at go to the list's tail: the next call goes on with others.
 *
 * Invariants:
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
 * Failure: none. A page that the system refuses to drop stays as it is.
 */
#include <string.h>

#include "base/thread.h"
#include "os/os.h"
#include "policy/constants.h"
#include "slab/slab_inside.h"

/* Slabs of fewer pages are empty soon enough. Arbitrary. */
#define PAGES_LEAST 4
/*
 * Slabs of more parts, which have tiny objects, are left alone: whole pages of those are seldom
 * free. 256 bytes of stack.
 */
#define PARTS_MOST  32
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

static void give_again(struct stook_slabs *slabs, struct gift *gift)
{
        struct stook_slab *slab = gift->slab;
        const char *base = stook_slab_base(slab), *object;
        uint64_t claims = 0;

        /* After the last free the slab may be gone: nothing of it is read then (S2). */
        for (unsigned p = 0, parts = slab->part_count; p < parts; p++) {
                uint64_t mask = gift->taken[p];

                if (!mask)
                        continue;
                object = base + (p * STOOK_PART_OBJECTS + (unsigned)__builtin_ctzll(mask)) *
                                        (size_t)slabs->stride;
                if (stook_part_free(slabs, slab, p, &mask, object) == STOOK_FREED_CLAIMED)
                        claims |= UINT64_C(1) << p;
        }
        if (claims)
                stook_slab_settle_parts(slabs, slab, claims, false);
}

/*
 * Held: the next slab at the list's head that has free pages which were not given yet. *@looks:
 * slabs still to be looked at.
 */
static bool next_gift(struct stook_slab_hold *hold, struct gift *gift, unsigned *looks)
{
        while (*looks && !stook_list_empty(&hold->node->list)) {
                struct stook_list *e = hold->node->list.next;
                struct stook_slab *slab = stook_slab_listed_at(e);
                size_t free = stook_slab_free_listed(slab);

                --*looks;
                stook_list_remove(e);
                stook_list_add_tail(&hold->node->list, e);
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
                stook_lock_forbid_waits();                              /* slab_partial.c P4 */
                give_again(slabs, &gift);
                stook_lock_allow_waits();
        }
}
