/*
 * bench/none/none_miss.c - allocation and free of the older kind: what the fast paths leave
 *
 * Purpose, in the kernel's words: a CPU's slab is "frozen", here DETACHED: others' frees collect in it and list it
 * nowhere. An allocation that finds the CPU's list empty takes what has collected in its slab, else the CPU's next
 * partial slab, else slabs of the node's list, else a new slab, whose list is built whole. A free to a slab that was
 * full freezes it and keeps it for this CPU; where there are too many of them, all go to the node's list.
 *
 * Place: none_fast.c calls it; it calls the library's slab layer.
 * Concurrency: a CPU's slow paths exclude each other by a trylock. Whoever does not get it, or is moved to another
 *  CPU meanwhile, serves one object from the node instead. To change the CPU's slab, its holder first lets no pop
 *  and no push get anywhere (none_slot.h I1); the two stores that do so are sections on that slot.
 */
#include <stdio.h>
#include <stdlib.h>

#include "none_slot.h"
#include "cache/cache.h"

#define NODE 0                          /* the only one that this front end knows */
#define TRIES 4

static struct stook_slabs *slabs_of(const struct none_cache *cache)
{
        return &cache->cache->slabs;
}

static struct stook_slabs_node *node_of(const struct none_cache *cache)
{
        return &slabs_of(cache)->node[NODE];
}

_Noreturn void none_misuse(const void *object)
{
        fprintf(stderr, "bench/none: %p is no object of the cache, or free already\n", object);
        abort();
}

/* ---- a CPU's slow paths ---- */

/* This thread's slot, locked. NULL: in somebody's hands, or there is no slot for it. */
static struct none_slot *hold(const struct none_cache *cache)
{
        struct none_slot *slot;
        uint32_t index;

        if (!stook_self->ready || *stook_slot_index(stook_self) >= stook_self->ready)
                if (!stook_slot_enrol())
                        return NULL;
        index = *stook_slot_index(stook_self);
        slot = (struct none_slot *)(cache->slots + ((uintptr_t)index << STOOK_SLOT_SHIFT));
        return __atomic_exchange_n(&slot->lock, 1, __ATOMIC_ACQUIRE) ? NULL : slot;
}

static void unhold(struct none_slot *slot)
{
        __atomic_store_n(&slot->lock, 0, __ATOMIC_RELEASE);
}

/* Held: no fast path gets anywhere on the slot any more; what it had is the caller's. False: on another CPU now. */
static bool quiesce(const struct none_cache *cache, struct none_slot *slot, struct stook_span **span, uint64_t *first)
{
        uint64_t was;

        if (!none_section_exchange(cache, slot, (uint64_t *)&slot->span, 0, &was))
                return false;
        *span = (struct stook_span *)was;
        while (!none_section_exchange(cache, slot, &slot->first, STOOK_PLACE_NONE, first))
                if (slot != (struct none_slot *)(cache->slots + ((uintptr_t)*stook_slot_index(stook_self) << STOOK_SLOT_SHIFT))) {
                        __atomic_store_n(&slot->span, *span, __ATOMIC_RELEASE);
                        return false;
                }
        return true;
}

/* Held and quiet: the CPU allocates from @slab's list that begins at @first. Pushes are let in last: I1. */
static void install(struct none_slot *slot, struct stook_slab *slab, uint64_t first)
{
        slot->base = slab->base;
        slot->key = slab->key;
        __atomic_store_n(&slot->first, first, __ATOMIC_RELEASE);
        __atomic_store_n(&slot->span, stook_slab_span(slab), __ATOMIC_RELEASE);
}

/* ---- slabs ---- */

/* Frozen: all of the slab's list, or NONE. It stays frozen. */
static uint64_t take_list(struct stook_slab *slab)
{
        uint64_t w = stook_slab_word(slab);

        do {
                if (stook_word_head(w) == STOOK_PLACE_NONE)
                        return STOOK_PLACE_NONE;
        } while (!stook_slab_cas(slab, &w, stook_word(STOOK_PLACE_NONE, stook_word_fresh(w), stook_word_fresh(w),
                                                      w & STOOK_SLAB_FLAGS)));
        return stook_word_head(w);
}

/* Frozen, and the CPU is done with it. False: objects came back meanwhile, it is frozen still. */
static bool thaw_full(struct stook_slab *slab)
{
        uint64_t w = stook_slab_word(slab);

        while (stook_word_head(w) == STOOK_PLACE_NONE)
                if (stook_slab_cas(slab, &w, w & ~STOOK_SLAB_DETACHED))
                        return true;
        return false;
}

/* A new slab, frozen, all of its objects in a list that is the caller's. NULL: no memory. */
static struct stook_slab *birth(const struct none_cache *cache, uint64_t *first)
{
        struct stook_slab *slab = stook_slab_birth(slabs_of(cache), NODE);

        if (!slab)
                return NULL;
        *first = none_build_list(cache, slab);
        __atomic_store_n(&slab->word, stook_word(STOOK_PLACE_NONE, slab->objects, slab->objects, STOOK_SLAB_DETACHED),
                         __ATOMIC_RELEASE);
        return slab;
}

/* ---- the CPU's partial slabs ---- */

static void add_partial(struct none_slot *slot, struct stook_slab *slab)
{
        struct stook_link *link = &stook_slab_span(slab)->link;

        link->next = slot->partial;
        slot->partial = link;
        slot->partials++;
}

static struct stook_slab *pop_partial(struct none_slot *slot)
{
        struct stook_link *link = slot->partial;

        if (!link)
                return NULL;
        slot->partial = link->next;
        slot->partials--;
        return stook_slab_of(stook_container_of(link, struct stook_span, link));
}

static void to_node(const struct none_cache *cache, struct stook_slab *slab)
{
        stook_slab_put_back(slabs_of(cache), node_of(cache), &slab, 1, false, false);
}

static void drop_partials(const struct none_cache *cache, struct none_slot *slot)
{
        struct stook_slab *slab;

        while ((slab = pop_partial(slot)))
                to_node(cache, slab);
}

/* Slabs of the node's list: the first is the answer, the others are kept for later. */
static struct stook_slab *from_node(const struct none_cache *cache, struct none_slot *slot)
{
        struct stook_slabs *slabs = slabs_of(cache);
        struct stook_slab *batch[STOOK_SLAB_BATCH];
        size_t want = 1 + (size_t)slabs->objects * (cache->partials_max / 2);
        int n = stook_slab_detach_some(slabs, node_of(cache), slot ? want : 1, batch, false, NULL);

        for (int i = 1; i < n; i++)
                add_partial(slot, batch[i]);
        return n > 0 ? batch[0] : NULL;
}

/* ---- allocation ---- */

/* A frozen slab and a list of its objects; @active is the slab that the CPU had. NULL: no memory. */
static struct stook_slab *next_slab(const struct none_cache *cache, struct none_slot *slot, struct stook_slab *active,
                                    uint64_t *first)
{
        struct stook_slab *slab = active;

        if (!slab)
                slab = pop_partial(slot);
        while (slab) {
                *first = take_list(slab);
                if (*first != STOOK_PLACE_NONE)
                        return slab;
                if (thaw_full(slab))
                        slab = pop_partial(slot);
        }
        slab = from_node(cache, slot);
        if (slab) {
                *first = take_list(slab);       /* what is on the node's list has free objects */
                return slab;
        }
        return birth(cache, first);
}

/* Held: brings the CPU a list and takes its first object. NULL: on another CPU now, or no memory. */
static void *refill(const struct none_cache *cache, struct none_slot *slot)
{
        struct stook_span *span;
        struct stook_slab *slab;
        uint64_t first;

        if (!quiesce(cache, slot, &span, &first))
                return NULL;
        slab = span ? stook_slab_of(span) : NULL;
        if (first == STOOK_PLACE_NONE)
                slab = next_slab(cache, slot, slab, &first);
        if (!slab)
                return NULL;
        install(slot, slab, none_next_of(cache, slab, first));
        return none_object_at(slab, first);
}

/* One object, the rest of its slab to the node: what whoever cannot have the slot does. */
static void *from_any_slab(const struct none_cache *cache)
{
        struct stook_slab *slab = from_node(cache, NULL);
        uint64_t first, w;
        bool left;

        if (!slab) {
                slab = birth(cache, &first);
                if (!slab)
                        return NULL;
                __atomic_store_n(&slab->word, stook_word((uint32_t)first, 0, slab->objects, STOOK_SLAB_DETACHED),
                                 __ATOMIC_RELEASE);
        }
        w = stook_slab_word(slab);
        do {
                first = stook_word_head(w);
        } while (!stook_slab_take(slab, &w, (uint32_t)none_next_of(cache, slab, first), 1, 0, &left));
        if (left)
                to_node(cache, slab);
        return none_object_at(slab, first);
}

void *none_alloc_miss(const struct none_cache *cache, void *(*pop)(const struct none_cache *cache))
{
        for (unsigned tries = 0; tries < TRIES; tries++) {
                struct none_slot *slot = hold(cache);
                void *object;

                if (!slot)
                        continue;
                object = pop(cache);    /* an interrupted section, not an empty list, as a rule */
                if (!object)
                        object = refill(cache, slot);
                unhold(slot);
                if (object)
                        return object;
        }
        return from_any_slab(cache);
}

/* ---- free ---- */

/* The caller's push made a full slab a partial one, or emptied one on the list: it is the caller's to see to. */
static void settle(const struct none_cache *cache, struct stook_slab *slab)
{
        struct stook_link *link = &stook_slab_span(slab)->link;
        struct none_slot *slot;

        switch (stook_slab_adopt(slab, stook_self)) {
        case STOOK_ADOPT_LISTED:
                stook_slab_settle_all(slabs_of(cache), node_of(cache), link, link);
                return;
        case STOOK_ADOPT_NOTHING:
                return;
        case STOOK_ADOPTED:
                break;
        }
        slot = hold(cache);
        if (!slot) {
                to_node(cache, slab);
                return;
        }
        if (slot->partials >= cache->partials_max)
                drop_partials(cache, slot);
        add_partial(slot, slab);
        unhold(slot);
}

void none_free_miss(const struct none_cache *cache, struct stook_span *span, uint64_t place, void *object)
{
        struct stook_slab *slab = stook_slab_of(span);
        bool surplus = __atomic_load_n(&node_of(cache)->partial, __ATOMIC_RELAXED) > slabs_of(cache)->min_partial;

        switch (stook_slab_push(slab, (uint32_t)place, object, 1, (uint32_t)cache->link_offset, surplus)) {
        case STOOK_PUSHED:
                break;
        case STOOK_PUSHED_CLAIMED:
                stook_lock_forbid_waits();      /* slab_partial.c P4 */
                settle(cache, slab);
                stook_lock_allow_waits();
                break;
        default:
                none_misuse(object);
        }
}

/* ---- the end of a cache ---- */

void none_slot_empty(const struct none_cache *cache, struct none_slot *slot)
{
        struct stook_slab *slab = slot->span ? stook_slab_of(slot->span) : NULL;

        while (slot->first != STOOK_PLACE_NONE) {
                uint64_t place = slot->first;

                slot->first = none_next_of(cache, slab, place);
                none_free_miss(cache, slot->span, place, none_object_at(slab, place));
        }
        if (slab && !thaw_full(slab))
                to_node(cache, slab);
        slot->span = NULL;
        drop_partials(cache, slot);
}
