/*
 * Purpose: look at all slabs of a source: who is out, is everything as it should be.
 * Place: called by cache (destroy, misuse) and inspect (validation). Full slabs are on no list, so the walks go
 * over all descriptors there are.
 * Concurrency: quiescent, but for stook_slab_object_valid.
 * Checks:
 *  C1 a word's counts: in use <= handed out <= objects.
 *  C2 a list has as many objects as the word says, each the start of one that was handed out.
 *  C3 a slab with free objects is listed or pending (CLAIM); a full one is neither; nobody has it detached.
 *  C4 the words that say LISTED are those of the slabs on the list, and as many as `partial`.
 */
#include <string.h>

#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_order.h"
#include "slab/slab_partial.h"

bool stook_slab_object_valid(struct stook_slabs *slabs, const void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        struct stook_slab *slab;
        uint32_t index;
        bool interior;

        if (!stook_entry_cache(entry) || stook_entry_cache(entry) != slabs->cache_index)
                return false;
        slab = stook_slab_of(stook_entry_span(entry));
        index = stook_slabs_index(slabs, stook_entry_offset(entry, (uintptr_t)object), &interior);
        return !interior && stook_slab_was_out(slab, index, stook_word_fresh(stook_slab_word(slab)));
}

/* ---- all slabs of a source ---- */

struct visit {
        struct stook_slabs *slabs;
        void (*slab)(struct visit *visit, struct stook_slab *slab);
        size_t objects;                 /* objects_out */
        void (*each)(void *object, void *slab, void *data);
        void  *data;
        int    faults;                  /* validate */
        uint32_t listed;                /* on this node, by words */
        unsigned node;
};

static void visit_span(struct stook_span *span, void *data)
{
        struct visit *visit = data;

        if (span->kind == STOOK_SPAN_SLAB && stook_slab_of(span)->slabs == visit->slabs)
                visit->slab(visit, stook_slab_of(span));
}

static void visit_all(struct visit *visit)
{
        if (stook_slabs_count(visit->slabs))
                stook_meta_span_for_each(visit_span, visit);
}

static void add_inuse(struct visit *visit, struct stook_slab *slab)
{
        visit->objects += stook_word_inuse(stook_slab_word(slab));
}

size_t stook_slabs_objects_out(struct stook_slabs *slabs)
{
        struct visit visit = { .slabs = slabs, .slab = add_inuse };

        visit_all(&visit);
        return visit.objects;
}

/* ---- objects that are out ---- */

/* Objects looked at together: the list is walked once for each window, which costs 256 bytes of stack. */
#define WINDOW 2048

static void mark_free(const struct stook_slab *slab, uint64_t word, uint32_t from, uint8_t *is_free)
{
        const struct stook_slabs *slabs = slab->slabs;
        uint32_t listed = stook_word_fresh(word) - stook_word_inuse(word);
        uint64_t place = stook_word_head(word);

        for (uint32_t i = 0; i < listed && place < STOOK_PLACE_NONE; i++) {
                uint32_t index = (uint32_t)(place << STOOK_PLACE_SHIFT) / slabs->slot_size;

                if (index >= slab->objects)
                        return;
                if (index - from < WINDOW)
                        is_free[(index - from) / 8] |= (uint8_t)(1u << (index - from) % 8);
                place = stook_link_read(slab->base + (place << STOOK_PLACE_SHIFT), slabs->link_offset, slab->key);
        }
}

static void name_out(struct visit *visit, struct stook_slab *slab)
{
        uint64_t word = stook_slab_word(slab);
        uint8_t is_free[WINDOW / 8];

        for (uint32_t from = 0; from < slab->objects; from += WINDOW) {
                memset(is_free, 0, sizeof(is_free));
                mark_free(slab, word, from, is_free);
                for (uint32_t i = from; i < slab->objects && i < from + WINDOW; i++)
                        if (stook_slab_was_out(slab, i, stook_word_fresh(word)) &&
                            !(is_free[(i - from) / 8] >> (i - from) % 8 & 1))
                                visit->each(slab->base + (size_t)i * slab->slabs->slot_size, slab->base, visit->data);
        }
}

void stook_slabs_for_each_out(struct stook_slabs *slabs, void (*each)(void *object, void *slab, void *data), void *data)
{
        struct visit visit = { .slabs = slabs, .slab = name_out, .each = each, .data = data };

        visit_all(&visit);
}

/* ---- validation ---- */

static void fault(struct visit *visit, const struct stook_slab *slab, const void *object, const char *detail)
{
        visit->faults++;
        stook_report_found(STOOK_FAULT_CORRUPT, object, visit->slabs->name, slab ? slab->base : NULL,
                           slab && object ? (size_t)((const char *)object - slab->base) : 0, detail);
}

static void check_list(struct visit *visit, struct stook_slab *slab, uint64_t word)
{
        const struct stook_slabs *slabs = slab->slabs;
        uint32_t listed = stook_word_fresh(word) - stook_word_inuse(word);
        uint64_t place = stook_word_head(word);

        for (uint32_t i = 0; i < listed; i++) {
                char *object = slab->base + (place << STOOK_PLACE_SHIFT);
                uint32_t index;
                bool interior;

                if (place >= STOOK_PLACE_NONE) {
                        fault(visit, slab, slab->base, "C2: a link was overwritten, or the list is short");
                        return;
                }
                index = stook_slabs_index(slabs, (uint32_t)place << STOOK_PLACE_SHIFT, &interior);
                if (interior || !stook_slab_was_out(slab, index, stook_word_fresh(word))) {
                        fault(visit, slab, object, "C2: the list leads to what is no object");
                        return;
                }
                place = stook_link_read(object, slabs->link_offset, slab->key);
        }
        if (place != STOOK_PLACE_NONE)
                fault(visit, slab, slab->base, "C2: the list is too long");
}

static void check_slab(struct visit *visit, struct stook_slab *slab)
{
        uint64_t word = stook_slab_word(slab), flags = word & STOOK_SLAB_FLAGS;
        uint32_t inuse = stook_word_inuse(word), fresh = stook_word_fresh(word);

        if (flags & STOOK_SLAB_CORRUPT)
                return;                 /* reported when it was noticed */
        if (inuse > fresh || fresh > slab->objects) {
                fault(visit, slab, slab->base, "C1: counts");
                return;
        }
        if (flags & ~(STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM))
                fault(visit, slab, slab->base, "C3: detached or releasing, in nobody's hands");
        else if (inuse == slab->objects ? flags & STOOK_SLAB_LISTED : !flags)
                fault(visit, slab, slab->base, "C3: free objects and no list, or the other way round");
        check_list(visit, slab, word);
}

static void count_listed(struct visit *visit, struct stook_slab *slab)
{
        if (stook_slab_span(slab)->node == visit->node && (stook_slab_word(slab) & STOOK_SLAB_LISTED))
                visit->listed++;
}

static void check_node(struct visit *visit, struct stook_slabs_node *node)
{
        uint32_t on_list = 0;

        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_of(stook_container_of(e, struct stook_span, list));

                if (on_list++ > visit->listed || e->next->prev != e)
                        break;
                if (slab->slabs != visit->slabs || !(stook_slab_word(slab) & STOOK_SLAB_LISTED))
                        fault(visit, slab, slab->base, "C4: on the list, but does not know");
        }
        if (on_list != visit->listed || on_list != node->partial)
                fault(visit, NULL, NULL, "C4: the list and its count differ");
}

int stook_slabs_validate(struct stook_slabs *slabs)
{
        struct visit visit = { .slabs = slabs, .slab = check_slab };

        visit_all(&visit);
        visit.slab = count_listed;
        for (visit.node = 0; visit.node < stook_os_node_count(); visit.node++) {
                visit.listed = 0;
                visit_all(&visit);
                check_node(&visit, &slabs->node[visit.node]);
        }
        return visit.faults;
}
