/*
 * Purpose: objects out of slabs into an array.
 * Place: called by barn (refills) and cache (bulk, nodes); calls pages by way of slab_birth.
 *
 * Order of sources: slabs of the node's list, several detached in one lock hold and emptied outside it; without
 * the lock what is on pending instead; the lists of other nodes that have more than they keep, if the caller does not
 * insist on one (or memory would stay on them that nobody uses again); new slabs; whatever other nodes have.
 *
 * Invariants:
 *  F1 an object is written to the array before the compare-and-swap that takes it, but counted after: what a
 *     failed one wrote is overwritten.
 *  F2 fresh objects are addresses, computed: no free list is built and no object touched, but by a constructor.
 *  F3 a slab whose list is corrupt is taken nothing from, ever again; the fill goes on with others.
 * Failure: fewer objects than asked, at the array's start.
 */
#include <string.h>

#include "base/thread.h"
#include "os/os.h"
#include "report/report.h"
#include "slab/slab_order.h"
#include "slab/slab_partial.h"

struct fill {
        struct stook_slabs *slabs;
        void   **objects;
        size_t   n, got;
        bool     down;                  /* the first object goes to objects[n-1], the next below it */
        bool     try;
};

/* Where the next object goes; @step further are the places of those after it. */
static void **next_place(const struct fill *f, ptrdiff_t *step)
{
        *step = f->down ? -1 : 1;
        return f->objects + (f->down ? f->n - 1 - f->got : f->got);
}

/* ---- objects of the free list ---- */

/*
 * The first @count objects of the list that begins at @place; @next: what follows them.
 * Return: NULL, or the object whose link is none.
 */
static void *walk(const struct fill *f, const struct stook_slab *slab, uint32_t *next, size_t count, bool whole)
{
        uint32_t link_offset = f->slabs->link_offset;
        uint32_t limit = (slab->objects * f->slabs->slot_size) >> STOOK_PLACE_SHIFT;
        char *base = slab->base, *object = base;
        uint64_t key = slab->key, place = *next;
        ptrdiff_t step;
        void **to = next_place(f, &step);

        for (size_t i = 0; i < count; i++, to += step) {
                if (STOOK_UNLIKELY(place >= limit))
                        return object;
                object = base + (place << STOOK_PLACE_SHIFT);
                *to = object;
                place = stook_link_read(object, link_offset, key);
        }
        if (STOOK_UNLIKELY(whole ? place != STOOK_PLACE_NONE : place >= limit))
                return object;
        *next = (uint32_t)place;
        return NULL;
}

static void clear_links(const struct fill *f, size_t count)
{
        ptrdiff_t step;
        void **to = next_place(f, &step);

        for (size_t i = 0; i < count; i++, to += step)
                stook_link_clear(*to, f->slabs->link_offset);
}

/* ---- fresh objects ---- */

typedef uint64_t two_words __attribute__((vector_size(16), aligned(8), may_alias));

/* out[i] = first + i * step. The work of a bulk allocation: two pointers a store. */
static void write_addresses(void **out, uintptr_t first, intptr_t step, size_t n)
{
        two_words a = { first, first + (uintptr_t)step }, by = { 2 * (uintptr_t)step, 2 * (uintptr_t)step };
        two_words b = a + by;

        by += by;
        for (; n >= 4; n -= 4, out += 4, a += by, b += by) {
                *(two_words *)out = a;
                *(two_words *)(out + 2) = b;
        }
        for (size_t i = 0; i < n; i++)
                out[i] = (void *)(a[0] + i * (uintptr_t)step);
}

/* The same in random order: the permutation from where the slab began in it, once round. */
static void write_sequence(const struct stook_slab *slab, uint32_t from, void **to, ptrdiff_t step, uint32_t n)
{
        const struct stook_slabs *slabs = slab->slabs;
        bool whole = slab->objects == slabs->objects;           /* see slab_order.h */
        const uint16_t *sequence = slabs->sequence;
        uint32_t objects = slab->objects, at = slab->start + from;
        size_t slot = slabs->slot_size;
        char *base = slab->base;

        for (; n; n--, at++, to += step) {
                if (at >= objects)
                        at -= objects;
                *to = base + (whole ? sequence[at] : at) * slot;
        }
}

/* Objects @from.. of the slab's order, which are the caller's already. */
static void emit_fresh(const struct fill *f, const struct stook_slab *slab, uint32_t from, uint32_t count)
{
        struct stook_slabs *slabs = f->slabs;
        uintptr_t slot = slabs->slot_size;
        ptrdiff_t step;
        void **to = next_place(f, &step);

        if (STOOK_LIKELY(!slabs->sequence)) {
                uintptr_t first = (uintptr_t)slab->base + from * slot;

                if (f->down)
                        write_addresses(to - (count - 1), first + (count - 1) * slot, -(intptr_t)slot, count);
                else
                        write_addresses(to, first, (intptr_t)slot, count);
        } else {
                write_sequence(slab, from, to, step, count);
        }
        if (slabs->ctor)
                for (uint32_t i = 0; i < count; i++)
                        slabs->ctor(to[(ptrdiff_t)i * step], slabs->ctor_data);
}

/* ---- one slab ---- */

static STOOK_COLD void condemn(struct stook_slabs *slabs, struct stook_slab *slab, const void *object)
{
        stook_slab_condemn(slab);
        stook_report_fault(STOOK_FAULT_CORRUPT, object, slabs->name, slab->base,
                           (size_t)((const char *)object - slab->base), "the link in a free object was overwritten");
}

/* Takes what is wanted from a detached slab. True: free objects are left, so it is detached still. */
static bool take(struct fill *f, struct stook_slab *slab)
{
        uint64_t word = stook_slab_word(slab);
        uint32_t listed, fresh, head;
        bool left;

        do {
                size_t want = f->n - f->got;
                uint32_t on_list = stook_word_fresh(word) - stook_word_inuse(word);
                uint32_t unused = slab->objects - stook_word_fresh(word);
                void *bad;

                listed = on_list < want ? on_list : (uint32_t)want;
                head = stook_word_head(word);
                if (listed) {
                        bad = walk(f, slab, &head, listed, listed == on_list);
                        if (STOOK_UNLIKELY(bad)) {
                                condemn(f->slabs, slab, bad);
                                return false;
                        }
                }
                want -= listed;
                fresh = unused < want ? unused : (uint32_t)want;
        } while (!stook_slab_take(slab, &word, head, listed, fresh, &left));
        /* `word` is what it was before. The slab is touched on: its objects are ours, so it lives. */
        if (listed) {
                clear_links(f, listed);
                f->got += listed;
        }
        if (fresh) {
                emit_fresh(f, slab, stook_word_fresh(word), fresh);
                f->got += fresh;
        }
        return left;
}

/* ---- sources ---- */

/* The lock is not to be had: what is on pending, all of which is ours until it is pushed back. */
static void fill_from_pending(struct fill *f, struct stook_slabs_node *node)
{
        struct stook_link *link, *next, *first = NULL, *last = NULL;

        stook_lock_forbid_waits();              /* slab_partial.c P4 */
        link = stook_pending_stack_take_all(&node->pending);
        for (; link; link = next) {
                struct stook_slab *slab = stook_slab_of(stook_container_of(link, struct stook_span, link));

                next = link->next;
                if (f->got < f->n) {
                        enum stook_adopt answer = stook_slab_adopt(slab, stook_self);

                        if (answer == STOOK_ADOPT_NOTHING)
                                continue;
                        if (answer == STOOK_ADOPTED && (!take(f, slab) || !stook_slab_postpone(slab)))
                                continue;
                }
                link->next = first;
                first = link;
                if (!last)
                        last = link;
        }
        if (first)
                stook_slab_pend(f->slabs, node, first, last);
        stook_lock_allow_waits();
}

static void fill_from_list(struct fill *f, struct stook_slabs_node *node)
{
        struct stook_slab *batch[STOOK_SLAB_BATCH];

        while (f->got < f->n && !stook_slabs_node_idle(node)) {
                struct stook_slab_fresh fresh = { 0 };
                int n = stook_slab_detach_some(f->slabs, node, f->n - f->got, batch, f->try, &fresh);
                size_t left = 0;

                if (fresh.count) {
                        emit_fresh(f, fresh.slab, fresh.from, fresh.count);
                        f->got += fresh.count;
                        continue;
                }

                if (n < 0)
                        fill_from_pending(f, node);
                if (n <= 0)
                        return;
                for (int i = 0; i < n; i++)
                        if (f->got == f->n || take(f, batch[i]))
                                batch[left++] = batch[i];
                if (left)
                        stook_slab_put_back(f->slabs, node, batch, left, false, f->try);
        }
}

static void fill_from_births(struct fill *f, unsigned node)
{
        while (f->got < f->n) {
                struct stook_slab *slab = stook_slab_birth(f->slabs, node);

                if (!slab)
                        return;
                if (take(f, slab))
                        stook_slab_put_back(f->slabs, &f->slabs->node[stook_slab_span(slab)->node], &slab, 1, true, f->try);
        }
}

/* ---- other nodes ---- */

uint32_t stook_slab_defrag_ratio = 1000;

/* As the kernel's remote_node_defrag_ratio: nearly always. */
static bool gate_is_open(void)
{
        uint32_t ratio = __atomic_load_n(&stook_slab_defrag_ratio, __ATOMIC_RELAXED);

        return ratio && (stook_os_random() & 1023) <= ratio;
}

/* Next higher nodes first, so that not all fill from the lowest. Locks are only tried: many nodes would wait for one. */
static void fill_from_others(struct fill *f, unsigned node, uint32_t more_than)
{
        unsigned nodes = stook_os_node_count();
        bool try = f->try;

        f->try = true;
        for (unsigned i = 1; i < nodes && f->got < f->n; i++) {
                struct stook_slabs_node *other = &f->slabs->node[(node + i) % nodes];

                if (__atomic_load_n(&other->partial, __ATOMIC_RELAXED) > more_than)
                        fill_from_list(f, other);
        }
        f->try = try;
}

/* The node has no memory left: whatever there is. */
static void fill_from_anywhere(struct fill *f, unsigned node)
{
        unsigned nodes = stook_os_node_count();

        fill_from_others(f, node, 0);
        for (unsigned i = 1; i < nodes && f->got < f->n; i++)
                if (stook_os_node_has_memory((node + i) % nodes))
                        fill_from_births(f, (node + i) % nodes);
}

size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects, unsigned flags)
{
        struct fill f = { .slabs = slabs, .objects = objects, .n = n, .down = flags & STOOK_FILL_FOR_SHEAF,
                          .try = flags & STOOK_FILL_NOLOCK };

        node = stook_os_node_home(node);
        fill_from_list(&f, &slabs->node[node]);
        if (stook_os_node_count() > 1 && !(flags & STOOK_FILL_THISNODE) && f.got < n && gate_is_open())
                fill_from_others(&f, node, slabs->min_partial);
        fill_from_births(&f, node);
        if (STOOK_UNLIKELY(f.got < n) && stook_os_node_count() > 1 && !(flags & STOOK_FILL_THISNODE))
                fill_from_anywhere(&f, node);
        if (f.down && f.got < n)
                memmove(objects, objects + (n - f.got), f.got * sizeof(*objects));
        return f.got;
}
