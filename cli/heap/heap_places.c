/*
 * Purpose: where the sheaves of a heap are: in slots, in barns; see heap.h.
 * A slot's lines are read one after the other, so a sheaf that moves meanwhile may be found twice
 * or nowhere. It is said to be where it was seen last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"

static void place(struct heap *h, struct heap_cache *c, uint64_t address, enum heap_place where,
                  unsigned slot_or_node)
{
        struct heap_sheaf *s = address ? heap_sheaf_at(h, address) : NULL;

        if (!address || address == (uint64_t)(uintptr_t)h->library->root.sheaf_zero)
                return;
        if (!s || s->cache != c->cache.index) {
                heap_note(h, where == HEAP_BARN ? "V1: a barn has what is no sheaf of its cache"
                                                : "V1: a slot has what is no sheaf of its cache",
                          address, c->cache.index);
                return;
        }
        if (s->place != HEAP_ELSEWHERE)
                heap_note(h, "V1: a sheaf is in two places", address, c->cache.index);
        s->place = (uint8_t)where;
        s->slot_or_node = (uint16_t)slot_or_node;
}

/* ---- slots ---- */

static bool is_ready(const struct stook_slots_filled *filled, const struct stook_regions *r,
                     unsigned slot)
{
        unsigned locked = slot - r->rseq_slots;

        if (slot < r->rseq_slots)
                return slot < filled->ready;
        return locked < STOOK_LOCKED_SLOTS_MAX && (filled->locked[locked / 64] >> locked % 64 & 1);
}

static void place_slot(struct heap *h, const struct stook_line *lines, uint32_t bound,
                       unsigned slot)
{
        for (size_t i = 0; i < h->cache_count; i++) {
                struct heap_cache *c = &h->caches[i];
                const struct stook_line *line = lines + (c->cache.front.offset >> STOOK_LINE_SHIFT);

                if (c->cache.front.offset >> STOOK_LINE_SHIFT >= bound)
                        continue;
                place(h, c, line->pair.lo, HEAP_MAIN, slot);
                place(h, c, line->pair.hi, HEAP_SPARE, slot);
                place(h, c, (uint64_t)(uintptr_t)line->rcu_free, HEAP_RCU, slot);
        }
}

static void add_precharges(struct heap *h, const struct stook_line *line)
{
        const struct stook_precharge_line *precharges = (const void *)line;

        for (unsigned i = 0; i < STOOK_PRECHARGE_WORDS; i++) {
                uint64_t word = precharges->word[i];

                h->precharged[(uint16_t)(word >> 32)] += word & STOOK_PRECHARGE_MAX;
        }
}

static int read_slots(struct heap *h, const struct stook_regions *r)
{
        struct stook_slots_filled filled;
        struct stook_line *lines;
        int error = heap_copy(h, h->library->root.filled, &filled, sizeof filled);

        if (error)
                return error;
        if (filled.lines > STOOK_CACHES_MAX)
                return -EBADMSG;
        h->precharged = calloc(UINT16_MAX + 1, sizeof *h->precharged);
        lines = malloc((size_t)(filled.lines + 1) * sizeof *lines);
        if (!h->precharged || !lines)
                error = -ENOMEM;
        for (unsigned slot = 0; slot < h->slots && !error; slot++) {
                if (!is_ready(&filled, r, slot))
                        continue;
                h->slots_ready++;
                error = heap_copy(h, r->base + ((size_t)slot << STOOK_SLOT_SHIFT), lines,
                                  (size_t)filled.lines * sizeof *lines);
                if (error)
                        break;
                place_slot(h, lines, filled.lines, slot);
                if (filled.lines > STOOK_PRECHARGE_LINE)
                        add_precharges(h, lines + STOOK_PRECHARGE_LINE);
        }
        free(lines);
        return error;
}

/* Sheaves of other nodes' objects: a word for each slot and node. */
static int read_remote(struct heap *h, struct heap_cache *c)
{
        struct stook_remote *remote = c->cache.barns.remote;
        size_t words = (size_t)h->slots * h->nodes;
        uintptr_t *word = malloc(words * sizeof *word);
        int error = word ? 0 : -ENOMEM;

        if (!error)
                error = heap_copy(h, remote->word, word, words * sizeof *word);
        for (size_t i = 0; i < words && !error; i++)
                place(h, c, word[i] & ~(uint64_t)STOOK_LOOK_AT_ALL, HEAP_REMOTE,
                      (unsigned)(i / h->nodes));
        free(word);
        for (unsigned n = 0; n < h->nodes && !error; n++) {
                struct stook_remote_counts sent;

                error = heap_copy(h, &remote->sent[n], &sent, sizeof sent);
                if (error)
                        break;
                c->node[n].objects_sent_home = sent.objects;
                c->node[n].sheaves_sent_home = sent.sheaves;
        }
        return error;
}

/* ---- barns ---- */

/* The links may be popped meanwhile: the walk ends where the stack's count says, or goes astray. */
static void place_stack(struct heap *h, struct heap_cache *c, uint64_t link, unsigned count,
                        unsigned node)
{
        for (; link && count; count--) {
                uint64_t at = link - STOOK_SHEAF_LINK;
                struct stook_link next;

                if (!heap_sheaf_at(h, at) || memory_read(h->memory, link, &next, sizeof next))
                        return;
                place(h, c, at, HEAP_BARN, node);
                link = (uint64_t)(uintptr_t)next.next;
        }
}

static int read_nodes(struct heap *h, struct heap_cache *c)
{
        for (unsigned n = 0; n < h->nodes; n++) {
                struct stook_slabs_node slabs;
                struct stook_barn barn;
                int error = heap_copy(h, c->cache.slabs.node + n, &slabs, sizeof slabs);

                if (!error)
                        error = heap_copy(h, c->cache.barns.node + n, &barn, sizeof barn);
                if (error)
                        return error;
                c->node[n].slabs = slabs.slabs;
                c->node[n].partial = slabs.partial;
                c->node[n].barn_full = barn.full.head.hi & 0xffff;
                c->node[n].barn_empty = barn.empty.head.hi & 0xffff;
                c->stats.slabs += slabs.slabs;
                place_stack(h, c, barn.full.head.lo, (unsigned)c->node[n].barn_full, n);
                place_stack(h, c, barn.empty.head.lo, (unsigned)c->node[n].barn_empty, n);
        }
        return 0;
}

/* ---- both ---- */

static void count_objects(struct heap *h)
{
        for (size_t i = 0; i < h->sheaf_count; i++) {
                const struct heap_sheaf *s = &h->sheaves[i];
                struct heap_cache *c = heap_cache_of(h, s->cache);

                if (!c)
                        continue;
                if (s->place == HEAP_BARN)
                        c->barn_objects += s->size;
                else if (s->place == HEAP_ELSEWHERE)
                        c->other_objects += s->size;
                else if (s->slot_or_node < h->slots)
                        c->slot_objects[s->slot_or_node] += s->size;
        }
}

int heap_read_places(struct heap *h)
{
        struct stook_regions r;
        int error = heap_copy(h, h->library->root.regions, &r, sizeof r);

        if (error)
                return error;
        if (r.rseq_slots > STOOK_CACHES_MAX || r.locked_slots > STOOK_LOCKED_SLOTS_MAX)
                return -EBADMSG;
        h->slots = r.rseq_slots + r.locked_slots;
        h->locked = !r.rseq_slots;
        h->by_cpu = r.rseq_slots && r.index_offset != STOOK_RSEQ_MM_CID;
        for (size_t i = 0; i < h->cache_count && !error; i++) {
                struct heap_cache *c = &h->caches[i];

                c->node = calloc(h->nodes, sizeof *c->node);
                c->slot_objects = calloc(h->slots + 1, sizeof *c->slot_objects);
                error = c->node && c->slot_objects ? read_nodes(h, c) : -ENOMEM;
                if (!error && c->cache.barns.remote)
                        error = read_remote(h, c);
        }
        if (!error)
                error = read_slots(h, &r);
        if (!error)
                count_objects(h);
        return error;
}
