/*
 * bench/none/none_miss.c - allocation and free of the older kind: what the fast paths leave
 *
 * Purpose: a CPU's slab is frozen, as the kernel calls it: others' frees collect in it and list it
 * nowhere. An allocation that finds the CPU's list empty takes what has collected in its slab, else
 * the CPU's next partial slab, else slabs of the node's list, else a new slab, whose list is built
 * whole. A free to a slab that was full freezes it and keeps it for this CPU; where there are too
 * many of them, all go to the node's list.
 *
 * Place: none_fast.c calls it; it calls none_slab.c.
 * Concurrency: a CPU's slow calls exclude each other by a trylock. A thread that does not get it,
 *  or moves to another CPU meanwhile, serves one object from the node instead. To change the CPU's
 *  slab, its holder first lets no pop and no push get anywhere (none_slot.h I1); the two stores
 *  that do so are sections on that slot.
 */
#include <stdio.h>
#include <stdlib.h>

#include "none_slot.h"
#include "slot/slot.h"

#define TRIES 4

_Noreturn void none_misuse(const void *object)
{
        fprintf(stderr, "bench/none: %p is no object of the cache, or free already\n", object);
        abort();
}

/* ---- a CPU's slow calls ---- */

/* This thread's slot, locked. NULL: another thread holds it, or there is no slot for it. */
static struct none_slot *hold(const struct none_cache *cache)
{
        struct none_slot *slot;
        uint32_t index;

        if (!stook_self->ready || *stook_section_index(stook_self) >= stook_self->ready)
                if (!stook_slot_enrol())
                        return NULL;
        index = *stook_section_index(stook_self);
        slot = (struct none_slot *)(cache->slots + ((uintptr_t)index << STOOK_SLOT_SHIFT));
        return __atomic_exchange_n(&slot->lock, 1, __ATOMIC_ACQUIRE) ? NULL : slot;
}

static void unhold(struct none_slot *slot)
{
        __atomic_store_n(&slot->lock, 0, __ATOMIC_RELEASE);
}

/*
 * Held: no fast path gets anywhere on the slot any more; what it had is the caller's. False: on
 * another CPU now.
 */
static bool quiesce(const struct none_cache *cache, struct none_slot *slot,
                    struct stook_span **span, uint64_t *first)
{
        uint64_t was;

        if (!none_section_exchange(cache, slot, (uint64_t *)&slot->span, 0, &was))
                return false;
        *span = (struct stook_span *)was;
        while (!none_section_exchange(cache, slot, &slot->first, NONE_PLACE_NONE, first))
                if (slot !=
                    (struct none_slot *)(cache->slots + ((uintptr_t)*stook_section_index(stook_self)
                                                         << STOOK_SLOT_SHIFT))) {
                        __atomic_store_n(&slot->span, *span, __ATOMIC_RELEASE);
                        return false;
                }
        return true;
}

/*
 * Held and quiet: the CPU allocates from @slab's list that begins at @first. Pushes are let in
 * last: I1.
 */
static void install(struct none_slot *slot, struct none_slab *slab, uint64_t first)
{
        slot->base = none_slab_base(slab);
        slot->key = slab->key;
        __atomic_store_n(&slot->first, first, __ATOMIC_RELEASE);
        __atomic_store_n(&slot->span, none_slab_span(slab), __ATOMIC_RELEASE);
}

/* ---- the CPU's partial slabs ---- */

static void add_partial(struct none_slot *slot, struct none_slab *slab)
{
        struct stook_link *link = &none_slab_span(slab)->link;

        link->next = slot->partial;
        slot->partial = link;
        slot->partials++;
}

static struct none_slab *pop_partial(struct none_slot *slot)
{
        struct stook_link *link = slot->partial;

        if (!link)
                return NULL;
        slot->partial = link->next;
        slot->partials--;
        return none_slab_of(stook_container_of(link, struct stook_span, link));
}

static void drop_partials(struct none_slot *slot)
{
        struct none_slab *slab;

        while ((slab = pop_partial(slot)))
                none_slab_to_node(slab);
}

/* Slabs of the node's list: the first is the answer, the others are kept for later. */
static struct none_slab *from_node(struct none_cache *cache, struct none_slot *slot)
{
        struct none_slab *batch[NONE_BATCH];
        size_t want = 1 + (size_t)cache->slabs.objects * (cache->partials_max / 2);
        int n = none_slabs_from_node(&cache->slabs, slot ? want : 1, batch);

        for (int i = 1; i < n; i++)
                add_partial(slot, batch[i]);
        return n > 0 ? batch[0] : NULL;
}

/* ---- allocation ---- */

/*
 * A frozen slab and a list of its objects; @active is the slab that the CPU had. NULL: no memory.
 */
static struct none_slab *next_slab(struct none_cache *cache, struct none_slot *slot,
                                   struct none_slab *active, uint64_t *first)
{
        struct none_slab *slab = active;

        if (!slab)
                slab = pop_partial(slot);
        while (slab) {
                *first = none_slab_take_list(slab);
                if (*first != NONE_PLACE_NONE)
                        return slab;
                if (none_slab_thaw_full(slab))
                        slab = pop_partial(slot);
        }
        slab = from_node(cache, slot);
        if (slab) {
                *first = none_slab_take_list(slab);     /* listed slabs have free objects */
                return slab;
        }
        return none_slab_birth(&cache->slabs, first);
}

/*
 * Held: brings the CPU a list and takes its first object. NULL: on another CPU now, or no memory.
 */
static void *refill(struct none_cache *cache, struct none_slot *slot)
{
        struct stook_span *span;
        struct none_slab *slab;
        uint64_t first;

        if (!quiesce(cache, slot, &span, &first))
                return NULL;
        slab = span ? none_slab_of(span) : NULL;
        if (first == NONE_PLACE_NONE)
                slab = next_slab(cache, slot, slab, &first);
        if (!slab)
                return NULL;
        install(slot, slab, none_next_of(slab, first));
        return none_object_at(slab, first);
}

/* One object, the rest of its slab to the node: what is left when the slot cannot be had. */
static void *from_any_slab(struct none_cache *cache)
{
        struct none_slab *slab = from_node(cache, NULL);
        uint64_t first, next, w, flags;
        uint32_t inuse;

        if (!slab) {
                slab = none_slab_birth(&cache->slabs, &first);
                if (!slab)
                        return NULL;
                w = none_word(first, 0, cache->slabs.objects, NONE_FROZEN);
                __atomic_store_n(&slab->word, w, __ATOMIC_RELEASE);
        }
        w = none_slab_word(slab);
        do {
                first = none_word_head(w);
                inuse = none_word_inuse(w) + 1;
                flags = inuse < none_word_objects(w) ? NONE_FROZEN : 0;
                next = none_next_of(slab, first);
        } while (!none_slab_cas(slab, &w, none_word(next, inuse, none_word_objects(w), flags)));
        if (flags)
                none_slab_to_node(slab);
        return none_object_at(slab, first);
}

void *none_alloc_miss(struct none_cache *cache, void *(*pop)(const struct none_cache *cache))
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

/* The caller's push made a full slab a partial one and froze it. */
static void keep(struct none_cache *cache, struct none_slab *slab)
{
        struct none_slot *slot = hold(cache);

        if (!slot) {
                none_slab_to_node(slab);
                return;
        }
        if (slot->partials >= cache->partials_max)
                drop_partials(slot);
        add_partial(slot, slab);
        unhold(slot);
}

void none_free_miss(struct none_cache *cache, struct stook_span *span, uint64_t place,
                    void *object)
{
        struct none_slab *slab = none_slab_of(span);

        switch (none_slab_free(slab, place, object, 1)) {
        case NONE_FREED:
                break;
        case NONE_FREED_FROZEN:
                keep(cache, slab);
                break;
        case NONE_FREE_TOO_MANY:
                none_misuse(object);
        }
}

/* ---- the end of a cache ---- */

void none_slot_empty(struct none_cache *cache, struct none_slot *slot)
{
        struct none_slab *slab = slot->span ? none_slab_of(slot->span) : NULL;

        while (slot->first != NONE_PLACE_NONE) {
                uint64_t place = slot->first;

                if (place > NONE_PLACE_NONE)
                        none_misuse(none_slab_base(slab));
                slot->first = none_next_of(slab, place);
                none_free_miss(cache, slot->span, place, none_object_at(slab, place));
        }
        if (slab && !none_slab_thaw_full(slab))
                none_slab_to_node(slab);
        slot->span = NULL;
        drop_partials(slot);
}
