/*
 * bench/none/none_slab.c - slabs of the older kind: birth, free, the node's list
 *
 * Purpose: what is behind the CPUs' slabs (none_slab.h has the word and the invariants). A new
 * slab's list is built whole, upwards or in the cache's random order from a random start, as in the
 * kernel.
 * Place: called by none_miss.c and none_bulk.c; calls the library's page layer.
 */
#include "none_slab.h"
#include "os/os.h"
#include "pages/pagemap.h"

/* ---- birth and end ---- */

/* The list of all objects; the first one's place. */
static uint64_t build_list(const struct none_slab *slab)
{
        const struct none_slabs *slabs = slab->slabs;
        const uint16_t *sequence = slabs->sequence;
        uint32_t n = slabs->objects, at = sequence ? (uint32_t)(stook_os_random() % n) : 0;
        uint64_t stride = slabs->stride, link_offset = slabs->link_offset, key = slab->key;
        char *base = none_slab_base(slab), *next;
        char *object = base + (sequence ? sequence[at] : 0) * stride;
        uint64_t first = none_place_of(slab, object);

        for (uint32_t i = 1; i < n; i++, object = next) {
                if (++at == n)
                        at = 0;
                next = base + (sequence ? sequence[at] : at) * stride;
                none_link_write(object, link_offset, key,
                                (uint64_t)(next - base) >> NONE_PLACE_SHIFT);
        }
        none_link_write(object, link_offset, key, NONE_PLACE_NONE);
        return first;
}

struct none_slab *none_slab_birth(struct none_slabs *slabs, uint64_t *first)
{
        struct stook_span *span = stook_span_take(NONE_NODE, slabs->slab_bytes, 0);
        struct none_slab *slab;

        if (STOOK_UNLIKELY(!span))
                return NULL;
        /* Its kind stays TAKEN, so the library takes it for none of its own slabs. */
        slab = none_slab_of(span);
        slab->key = stook_os_random();
        slab->slabs = slabs;
        __atomic_store_n(&slab->word, none_word(NONE_PLACE_NONE, slabs->objects, slabs->objects,
                                                NONE_FROZEN), __ATOMIC_RELAXED);
        *first = build_list(slab);
        stook_pagemap_set_slab(span, slabs->index);
        __atomic_fetch_add(&slabs->slabs, 1, __ATOMIC_RELAXED);
        return slab;
}

static void release(struct none_slab *slab)
{
        struct stook_span *span = none_slab_span(slab);

        __atomic_fetch_sub(&slab->slabs->slabs, 1, __ATOMIC_RELAXED);
        stook_pagemap_clear_slab(span);
        stook_span_give(span);
}

/* ---- the node's list ---- */

/* The lock refuses after about a millisecond; here nothing can be done without it. */
static void lock(struct none_slabs *slabs)
{
        while (!stook_lock_take(&slabs->lock))
                ;
}

static void unlock(struct none_slabs *slabs)
{
        stook_lock_drop(&slabs->lock);
}

static bool has_surplus(struct none_slabs *slabs)
{
        return __atomic_load_n(&slabs->partial, __ATOMIC_RELAXED) > slabs->min_partial;
}

/* Read racily: hence atomic. */
static void count_partial(struct none_slabs *slabs, int by)
{
        __atomic_store_n(&slabs->partial, slabs->partial + (uint32_t)by, __ATOMIC_RELAXED);
}

static void enlist(struct none_slabs *slabs, struct none_slab *slab)
{
        stook_list_add_tail(&slabs->list, &none_slab_span(slab)->list);
        count_partial(slabs, 1);
}

static void unlist(struct none_slabs *slabs, struct none_slab *slab)
{
        stook_list_remove(&none_slab_span(slab)->list);
        count_partial(slabs, -1);
}

void none_slab_to_node(struct none_slab *slab)
{
        struct none_slabs *slabs = slab->slabs;
        uint64_t w;

        lock(slabs);
        w = none_slab_word(slab);
        do {
                if (!none_word_inuse(w) && slabs->partial >= slabs->min_partial) {
                        unlock(slabs);
                        release(slab);  /* frozen and nothing of it out: the caller's alone */
                        return;
                }
        } while (!none_slab_cas(slab, &w, w ^ (NONE_FROZEN | NONE_LISTED)));
        enlist(slabs, slab);
        unlock(slabs);
}

static void freeze(struct none_slab *slab)
{
        uint64_t w = none_slab_word(slab);

        while (!none_slab_cas(slab, &w, w ^ (NONE_LISTED | NONE_FROZEN)))
                ;
}

/*
 * Free objects never grow fewer in a listed slab, so what is read here is a lower bound. Only the
 * slabs at the head are compared: left-overs go to the tail, so the window moves through the list.
 */
int none_slabs_from_node(struct none_slabs *slabs, size_t want, struct none_slab **batch)
{
        uint32_t free_objects[NONE_BATCH];
        int n = 0, take = 0;

        if (!__atomic_load_n(&slabs->partial, __ATOMIC_RELAXED))
                return 0;
        lock(slabs);
        stook_list_for_each(e, &slabs->list) {
                struct none_slab *slab = none_slab_on_list(e);
                uint64_t w = none_slab_word(slab);
                uint32_t free = none_word_objects(w) - none_word_inuse(w);
                int at = n++;

                for (; at > 0 && free_objects[at - 1] > free; at--) {
                        free_objects[at] = free_objects[at - 1];
                        batch[at] = batch[at - 1];
                }
                free_objects[at] = free;
                batch[at] = slab;
                if (n == NONE_BATCH)
                        break;
        }
        for (size_t got = 0; take < n && got < want; take++) {
                got += free_objects[take];
                freeze(batch[take]);
                unlist(slabs, batch[take]);
        }
        unlock(slabs);
        return take;
}

void none_slabs_shrink(struct none_slabs *slabs)
{
        struct stook_list dead;

        stook_list_init(&dead);
        lock(slabs);
        stook_list_for_each_safe(e, &slabs->list) {
                struct none_slab *slab = none_slab_on_list(e);

                if (none_word_inuse(none_slab_word(slab)))
                        continue;
                unlist(slabs, slab);    /* its word changes no more: no object is out */
                stook_list_add_tail(&dead, e);
        }
        unlock(slabs);
        while (!stook_list_empty(&dead)) {
                struct stook_span *span = stook_container_of(dead.next, struct stook_span, list);

                stook_list_remove(&span->list);
                release(none_slab_of(span));
        }
}

/* ---- free ---- */

/* The same with the lock, as the slab is listed, becomes empty and is to go then. */
static STOOK_NOINLINE enum none_free_answer free_last(struct none_slab *slab, uint64_t first,
                                                      void *last, uint32_t count)
{
        struct none_slabs *slabs = slab->slabs;
        uint64_t w, new, key = slab->key, flags;
        uint32_t inuse;
        bool dead;

        lock(slabs);
        w = none_slab_word(slab);
        do {
                inuse = none_word_inuse(w);
                flags = w & NONE_FLAGS;
                if (STOOK_UNLIKELY(inuse < count)) {
                        unlock(slabs);
                        return NONE_FREE_TOO_MANY;
                }
                dead = flags == NONE_LISTED && inuse == count && has_surplus(slabs);
                if (!flags)
                        flags = NONE_FROZEN;
                none_link_write(last, slabs->link_offset, key, none_word_head(w));
                new = none_word(first, inuse - count, none_word_objects(w), flags);
        } while (!none_slab_cas(slab, &w, new));
        if (dead)
                unlist(slabs, slab);
        unlock(slabs);
        if (dead)
                release(slab);
        return w & NONE_FLAGS ? NONE_FREED : NONE_FREED_FROZEN;
}

enum none_free_answer none_slab_free(struct none_slab *slab, uint64_t first, void *last,
                                     uint32_t count)
{
        uint64_t w = none_slab_word(slab), new, key = slab->key, flags;
        uint32_t inuse;

        do {
                inuse = none_word_inuse(w);
                flags = w & NONE_FLAGS;
                if (STOOK_UNLIKELY(inuse < count))
                        return NONE_FREE_TOO_MANY;
                if (flags == NONE_LISTED && inuse == count && has_surplus(slab->slabs))
                        return free_last(slab, first, last, count);
                if (!flags)
                        flags = NONE_FROZEN;
                none_link_write(last, slab->slabs->link_offset, key, none_word_head(w));
                new = none_word(first, inuse - count, none_word_objects(w), flags);
        } while (!none_slab_cas(slab, &w, new));
        return w & NONE_FLAGS ? NONE_FREED : NONE_FREED_FROZEN;
}
