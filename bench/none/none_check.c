/*
 * bench/none/none_check.c - is everything as it should be, at the end of a cache
 *
 * Purpose: a rival whose lists were damaged, or that lost objects, would have run a race of another
 * length. So each run ends with a look at every slab: the spans that the pagemap says are the
 * cache's.
 * Checks:
 *  K1 no object is out.
 *  K2 a slab's list has as many objects as its word says: starts of objects, none of them twice,
 *     and NONE at its end.
 *  K3 every slab is listed; none is full, or in the hands of a CPU.
 *  K4 the node's list has those slabs, as many as its count says, and as many as were made and not
 *     given back.
 * Concurrency: quiescent, no CPU has anything.
 */
#include <stdio.h>
#include <string.h>

#include "none_slab.h"
#include "pages/meta.h"
#include "pages/pagemap.h"

/* Told in full; of the others only the number is. */
#define TOLD 8

struct check {
        struct none_slabs *slabs;
        unsigned faults;
        uint32_t live;
        uint8_t seen[(NONE_PLACE_NONE + 1) / 8];        /* a bit for each place of a slab */
};

static void fault(struct check *check, const struct none_slab *slab, const char *what)
{
        const void *base = slab ? none_slab_base(slab) : NULL;

        if (check->faults++ < TOLD)
                fprintf(stderr, "bench/none: slab %p: %s\n", base, what);
}

static void check_list(struct check *check, const struct none_slab *slab, uint64_t word)
{
        uint32_t objects = none_word_objects(word), listed = objects - none_word_inuse(word);
        uint32_t stride = check->slabs->stride;
        uint64_t place = none_word_head(word);

        memset(check->seen, 0, sizeof(check->seen));
        for (uint32_t i = 0; i < listed; i++) {
                uint64_t offset = place << NONE_PLACE_SHIFT;

                if (place >= NONE_PLACE_NONE || offset % stride || offset / stride >= objects) {
                        fault(check, slab, "K2: a link was overwritten, or the list is short");
                        return;
                }
                if (check->seen[place / 8] >> place % 8 & 1) {
                        fault(check, slab, "K2: an object is on the list twice");
                        return;
                }
                check->seen[place / 8] |= (uint8_t)(1u << place % 8);
                place = none_next_of(slab, place);
        }
        if (place != NONE_PLACE_NONE)
                fault(check, slab, "K2: the list is too long");
}

static void check_span(struct stook_span *span, void *data)
{
        struct check *check = data;
        struct none_slab *slab = none_slab_of(span);
        uint64_t entry, word;

        if (span->kind != STOOK_SPAN_TAKEN)
                return;
        entry = stook_pagemap_get(span->start);
        if (stook_entry_cache(entry) != check->slabs->index || stook_entry_span(entry) != span)
                return;
        check->live++;
        word = none_slab_word(slab);
        if (none_word_objects(word) != check->slabs->objects || slab->slabs != check->slabs) {
                fault(check, slab, "K1: its descriptor was overwritten");
                return;
        }
        if (none_word_inuse(word))
                fault(check, slab, "K1: objects are missing");
        if ((word & NONE_FLAGS) != NONE_LISTED)
                fault(check, slab, "K3: not listed");
        check_list(check, slab, word);
}

static void check_node(struct check *check)
{
        struct none_slabs *slabs = check->slabs;
        uint32_t on_list = 0;

        stook_list_for_each(e, &slabs->list) {
                struct none_slab *slab = none_slab_on_list(e);

                if (on_list++ > check->live || e->next->prev != e)
                        break;
                if (slab->slabs != slabs || !(none_slab_word(slab) & NONE_LISTED))
                        fault(check, slab, "K4: on the list, but does not know");
        }
        if (on_list != check->live || on_list != slabs->partial || on_list != slabs->slabs)
                fault(check, NULL, "K4: the list and the counts differ");
}

unsigned none_slabs_validate(struct none_slabs *slabs)
{
        struct check check = { .slabs = slabs };

        stook_meta_span_for_each(check_span, &check);
        check_node(&check);
        if (check.faults > TOLD)
                fprintf(stderr, "bench/none: %u faults in all\n", check.faults);
        return check.faults;
}
