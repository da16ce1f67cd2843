/*
 * Purpose: objects from an array back into their slabs.
 * Place: called by barn (flushes) and cache (bulk, nodes).
 *
 * Objects are grouped by slab in a small table, each group a chain linked through the objects, pushed by one
 * compare-and-swap: at the end, or when another slab needs its place in the table. The table is searched by a
 * hash of the descriptor's address; a sheaf's objects seldom come from more slabs than it has places.
 *
 * Invariants:
 *  D1 an object is linked only if the pagemap, the slab's geometry and the count of objects handed out say
 *     that it is an object of this source, and its link does not tell that it is free already.
 *  D2 claims are gathered and settled together, after the pushes: one lock hold for them.
 * Failure: none. What is no object is reported and left out.
 */
#include "os/os.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_order.h"
#include "slab/slab_partial.h"

#define GROUPS 16                       /* power of two; 512 bytes of stack */
#define PROBES 4

struct group {
        struct stook_slab *slab;        /* NULL: free */
        uint64_t key;
        void    *last;                  /* the first one that came; its link is written by the push */
        uint32_t first;                 /* place of the last one that came */
        uint16_t count;
        uint16_t fresh;                 /* objects handed out when the group was made: at least those we have */
};

struct drain {
        struct stook_slabs *slabs;
        struct stook_link *claimed, *claimed_last;      /* of one node */
        struct stook_slabs_node *claimed_node;
        struct group group[GROUPS];
};

/* ---- misuse ---- */

static STOOK_COLD void refuse(const struct stook_slabs *slabs, enum stook_fault fault, const void *object,
                              const struct stook_slab *slab, const char *detail)
{
        stook_report_fault(fault, object, slabs->name, slab ? slab->base : NULL,
                           slab ? (size_t)((const char *)object - slab->base) : 0, detail);
}

/* The pagemap says that @object is in no slab of ours. */
static STOOK_COLD void refuse_stranger(const struct stook_slabs *slabs, const void *object, uint64_t entry)
{
        if (stook_entry_cache(entry))
                refuse(slabs, STOOK_FAULT_WRONG_CACHE, object, stook_slab_of(stook_entry_span(entry)), NULL);
        else if (stook_pagemap_ours((uintptr_t)object))
                refuse(slabs, STOOK_FAULT_NOT_LIVE, object, NULL, NULL);
        else
                refuse(slabs, STOOK_FAULT_FOREIGN, object, NULL, NULL);
}

/*
 * @object's link decodes: it is free already, or its user wrote just that. Told apart by looking for it in the
 * slab's list and in the chain we are making. The list may be changing: links of objects that leave it are cleared
 * or overwritten, so the walk ends; an object that is not free was in no list since the walk began.
 */
static STOOK_COLD bool is_free(const struct stook_slabs *slabs, const struct stook_slab *slab, uint32_t place,
                               uint32_t from, uint32_t bound)
{
        uint32_t limit = (slab->objects * slabs->slot_size) >> STOOK_PLACE_SHIFT;
        uint64_t at = from;

        for (uint32_t i = 0; i < bound && at < limit; i++) {
                if (at == place)
                        return true;
                at = stook_link_read(slab->base + (at << STOOK_PLACE_SHIFT), slabs->link_offset, slab->key);
        }
        return false;
}

static STOOK_COLD bool is_double(const struct stook_slabs *slabs, const struct group *g, uint32_t place)
{
        return is_free(slabs, g->slab, place, g->first, g->count) ||
               is_free(slabs, g->slab, place, stook_word_head(stook_slab_word(g->slab)), g->slab->objects);
}

/* ---- pushes ---- */

static void settle_claims(struct drain *d)
{
        if (!d->claimed)
                return;
        stook_slab_settle_all(d->slabs, d->claimed_node, d->claimed, d->claimed_last);
        d->claimed = d->claimed_last = NULL;
}

static void gather_claim(struct drain *d, struct stook_slab *slab)
{
        struct stook_span *span = stook_slab_span(slab);
        struct stook_slabs_node *node = &d->slabs->node[span->node];

        if (d->claimed_node != node)
                settle_claims(d);
        d->claimed_node = node;
        span->link.next = d->claimed;
        if (!d->claimed)
                d->claimed_last = &span->link;
        d->claimed = &span->link;
}

static void push(struct drain *d, struct group *g)
{
        struct stook_slabs *slabs = d->slabs;
        struct stook_slabs_node *node = &slabs->node[stook_slab_span(g->slab)->node];
        bool surplus = __atomic_load_n(&node->partial, __ATOMIC_RELAXED) > stook_slabs_kept(slabs);

        switch (stook_slab_push(g->slab, g->first, g->last, g->count, slabs->link_offset, surplus)) {
        case STOOK_PUSHED:
        case STOOK_PUSHED_NOWHERE:
                break;
        case STOOK_PUSHED_CLAIMED:
                gather_claim(d, g->slab);
                break;
        case STOOK_PUSH_NOT_LIVE:
                refuse(slabs, STOOK_FAULT_NOT_LIVE, g->last, g->slab, "its slab is empty");
                break;
        case STOOK_PUSH_TOO_MANY:
                refuse(slabs, STOOK_FAULT_DOUBLE_FREE, g->last, g->slab, "more objects freed than are out");
                break;
        }
}

/* ---- grouping ---- */

static void start_group(struct group *g, struct stook_slab *slab)
{
        g->slab = slab;
        g->key = slab->key;
        g->count = 0;
        g->first = STOOK_PLACE_NONE;
        g->fresh = stook_word_fresh(stook_slab_word(slab));
}

/* A group without objects (all were refused) pins no slab, so it is made anew. */
static struct group *find_group(struct drain *d, struct stook_slab *slab)
{
        size_t home = (uintptr_t)slab / sizeof(struct stook_span);

        for (size_t i = 0; i < PROBES; i++) {
                struct group *g = &d->group[(home + i) % GROUPS];

                if (STOOK_LIKELY(g->slab == slab && g->count))
                        return g;
                if (!g->slab || g->slab == slab) {
                        start_group(g, slab);
                        return g;
                }
        }
        if (d->group[home % GROUPS].count)
                push(d, &d->group[home % GROUPS]);
        start_group(&d->group[home % GROUPS], slab);
        return &d->group[home % GROUPS];
}

static void add(struct drain *d, void *object)
{
        struct stook_slabs *slabs = d->slabs;
        uint64_t entry = stook_pagemap_get((uintptr_t)object), link;
        struct group *g;
        uint32_t offset, place, index;
        bool interior;

        if (STOOK_UNLIKELY(stook_entry_cache(entry) != slabs->cache_index)) {
                refuse_stranger(slabs, object, entry);
                return;
        }
        g = find_group(d, stook_slab_of(stook_entry_span(entry)));
        offset = stook_entry_offset(entry, (uintptr_t)object);
        index = stook_slabs_index(slabs, offset, &interior);
        if (STOOK_UNLIKELY(interior)) {
                refuse(slabs, STOOK_FAULT_INTERIOR, object, g->slab, NULL);
                return;
        }
        if (STOOK_UNLIKELY(slabs->sequence ? !stook_slab_was_out(g->slab, index, g->fresh) : index >= g->fresh)) {
                refuse(slabs, STOOK_FAULT_NOT_LIVE, object, g->slab, "never handed out");
                return;
        }
        place = offset >> STOOK_PLACE_SHIFT;
        link = stook_link_read(object, slabs->link_offset, g->key);
        if (STOOK_UNLIKELY(link <= STOOK_PLACE_NONE) && is_double(slabs, g, place)) {
                refuse(slabs, STOOK_FAULT_DOUBLE_FREE, object, g->slab, NULL);
                return;
        }
        stook_link_write(object, slabs->link_offset, g->key, g->first);
        if (!g->count++)
                g->last = object;
        g->first = place;
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void **objects)
{
        struct drain d;

        d.slabs = slabs;
        d.claimed = d.claimed_last = NULL;
        d.claimed_node = NULL;
        for (size_t i = 0; i < GROUPS; i++)
                d.group[i].slab = NULL;
        stook_lock_forbid_waits();              /* slab_partial.c P4; and a free that finds a lock taken has pending */
        for (size_t i = 0; i < n; i++)
                add(&d, objects[i]);
        for (size_t i = 0; i < GROUPS; i++)
                if (d.group[i].slab && d.group[i].count)
                        push(&d, &d.group[i]);
        settle_claims(&d);
        stook_lock_allow_waits();
        stook_pages_relieve();
}
