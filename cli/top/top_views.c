/*
 * Purpose: the tables of `stook top`; see top.h.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"
#include "cli/top/top.h"

/* ---- cells ---- */

struct filling {
        struct top_row *row;
        unsigned column;
};

static void text_cell(struct filling *f, const char *text)
{
        char plain[256];

        snprintf(f->row->cell[f->column++], TOP_CELL, "%.46s",
                 plain_text(text, plain, sizeof plain));
}

static void number_cell(struct filling *f, double value, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static void number_cell(struct filling *f, double value, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(f->row->cell[f->column], TOP_CELL, format, args);
        va_end(args);
        f->row->key[f->column++] = value;
}

static void count_cell(struct filling *f, uint64_t count)
{
        number_cell(f, (double)count, "%" PRIu64, count);
}

static void bytes_cell(struct filling *f, uint64_t bytes)
{
        char text[32];

        number_cell(f, (double)bytes, "%s", bytes_text(bytes, text, sizeof text));
}

/* A number a second, short: 812, 1.2k, 45.0M. */
static const char *rate_text(double rate, char *out, size_t size)
{
        if (rate < 1000)
                snprintf(out, size, "%.0f", rate);
        else if (rate < 1e6)
                snprintf(out, size, "%.1fk", rate / 1e3);
        else
                snprintf(out, size, "%.2fM", rate / 1e6);
        return out;
}

static void rate_cell(struct filling *f, double rate)
{
        char text[32];

        number_cell(f, rate, "%s", rate_text(rate, text, sizeof text));
}

static void percent_cell(struct filling *f, double share)
{
        number_cell(f, share, "%.0f", share * 100);
}

/* ---- counters of a cache: rates, or totals since the reset ---- */

#define COUNTER(n, name) ((n)[STOOK_STAT_##name])

static void differences(const struct top_state *s, const struct heap_cache *c,
                        const struct top_choice *choice, double n[STOOK_STAT_COUNT])
{
        const uint64_t *now = &c->stats.alloc_fastpath;
        const struct baseline *base = choice->totals ? &s->zero : &s->before;
        const struct baseline_cache *was = baseline_of(base, &s->now, c);
        double by = choice->totals || s->seconds <= 0 ? 1 : s->seconds;

        for (unsigned i = 0; i < STOOK_STAT_COUNT; i++) {
                uint64_t before = was ? was->n[i] : 0;

                n[i] = now[i] > before ? (double)(now[i] - before) / by : 0;
                if (!choice->totals && s->seconds <= 0)
                        n[i] = 0;
        }
}

static double allocations(const double n[STOOK_STAT_COUNT])
{
        return COUNTER(n, alloc_fastpath) + COUNTER(n, alloc_slowpath);
}

static double frees(const double n[STOOK_STAT_COUNT])
{
        return COUNTER(n, free_fastpath) + COUNTER(n, free_slowpath) +
               COUNTER(n, free_rcu_sheaf);
}

static void counter_cell(struct filling *f, const struct top_choice *choice, double value)
{
        if (choice->totals)
                number_cell(f, value, "%.0f", value);
        else
                rate_cell(f, value);
}

/* ---- views ---- */

static const char *const cache_rates[] = {
        "CACHE", "SIZE", "LIVE", "BYTES", "CACHED", "SLABS", "SPACE", "ALLOC/s", "FREE/s", "SHEAF%",
        "REFILL/s", "FLUSH/s", "SLAB/s",
};
static const char *const cache_totals[] = {
        "CACHE", "SIZE", "LIVE", "BYTES", "CACHED", "SLABS", "SPACE", "ALLOCS", "FREES", "SHEAF%",
        "REFILLED", "FLUSHED", "SLABS MADE",
};
static const char *const slot_titles[] = {
        "SLOT", "OBJECTS", "BYTES", "CACHES",
};
static const char *const node_titles[] = {
        "NODE AND CACHE", "SLABS", "PARTIAL", "BARN FULL", "BARN EMPTY", "IN BARNS", "CAME HOME",
        "SHEAVES HOME",
};
static const char *const group_titles[] = {
        "GROUP", "ID", "PARENT", "USED", "PEAK", "LIMIT", "FULL%", "AT LIMIT", "REFUSED",
};
static const char *const share_titles[] = {
        "SLABS WITH OBJECTS OUT", "SLABS", "NONE", "TO 25%", "TO 50%", "TO 75%", "<100%", "ALL",
        "PINNED", "PINNED BYTES", "FREE PAGES",
};

#define TITLES(array) (*columns = sizeof array / sizeof array[0], array)

const char *const *top_titles(enum top_view view, bool totals, unsigned *columns)
{
        switch (view) {
        case TOP_SLOTS:
                return TITLES(slot_titles);
        case TOP_NODES:
                return TITLES(node_titles);
        case TOP_GROUPS:
                return TITLES(group_titles);
        case TOP_SHARES:
                return TITLES(share_titles);
        default:
                return totals ? TITLES(cache_totals) : TITLES(cache_rates);
        }
}

static void fill_cache(const struct top_state *s, const struct top_choice *choice,
                       const struct heap_cache *c, struct filling *f)
{
        const struct stook_cache_stats *t = &c->stats;
        double n[STOOK_STAT_COUNT], allocated;

        differences(s, c, choice, n);
        allocated = allocations(n);
        text_cell(f, c->name);
        count_cell(f, t->object_size);
        count_cell(f, t->objects_live);
        bytes_cell(f, t->objects_live * t->stride);
        count_cell(f, t->objects_cached);
        count_cell(f, t->slabs);
        bytes_cell(f, info_space_bytes(c));
        counter_cell(f, choice, allocated);
        counter_cell(f, choice, frees(n));
        /* What was not filled from the slabs for it. */
        if (allocated > 0)
                percent_cell(f, COUNTER(n, sheaf_refill) < COUNTER(n, alloc_fastpath)
                             ? (COUNTER(n, alloc_fastpath) - COUNTER(n, sheaf_refill)) / allocated
                             : 0);
        else
                number_cell(f, -1, "-");
        counter_cell(f, choice, COUNTER(n, sheaf_refill));
        counter_cell(f, choice, COUNTER(n, sheaf_flush));
        counter_cell(f, choice, COUNTER(n, alloc_slab));
}

static void fill_shares(const struct heap_cache *c, struct filling *f)
{
        text_cell(f, c->name);
        count_cell(f, c->slabs_seen);
        for (unsigned i = 0; i < HEAP_SHARES; i++)
                count_cell(f, c->shares[i]);
        count_cell(f, c->pinned_slabs);
        bytes_cell(f, c->pinned_bytes);
        count_cell(f, c->free_pages);
}

static void fill_slot(const struct heap *h, unsigned slot, struct filling *f)
{
        uint64_t objects = 0, bytes = 0, caches = 0;
        char name[32];

        for (size_t i = 0; i < h->cache_count; i++) {
                uint64_t n = h->caches[i].slot_objects[slot];

                objects += n;
                bytes += n * h->caches[i].stats.stride;
                caches += n > 0;
        }
        snprintf(name, sizeof name, "%s %u", h->locked ? "locked" : h->by_cpu ? "CPU" : "slot",
                 slot);
        text_cell(f, name);
        count_cell(f, objects);
        bytes_cell(f, bytes);
        count_cell(f, caches);
}

static void fill_node(const struct heap_cache *c, unsigned node, struct filling *f)
{
        const struct heap_node *n = &c->node[node];
        char name[128];

        snprintf(name, sizeof name, "%u %s", node, c->name);
        text_cell(f, name);
        count_cell(f, n->slabs);
        count_cell(f, n->partial);
        count_cell(f, n->barn_full);
        count_cell(f, n->barn_empty);
        count_cell(f, c->barn_objects);
        count_cell(f, n->objects_sent_home);
        count_cell(f, n->sheaves_sent_home);
}

static void fill_group(const struct heap_group *g, struct filling *f)
{
        text_cell(f, g->name);
        count_cell(f, g->id);
        number_cell(f, g->parent, g->parent ? "%u" : "-", g->parent);
        bytes_cell(f, g->usage_bytes);
        bytes_cell(f, g->peak_bytes);
        if (g->limit_bytes == UINT64_MAX) {
                number_cell(f, 1e30, "none");
                number_cell(f, -1, "-");
        } else {
                bytes_cell(f, g->limit_bytes);
                percent_cell(f, !g->limit_bytes ? 1 :
                             (double)g->usage_bytes / (double)g->limit_bytes);
        }
        count_cell(f, g->limit_events);
        count_cell(f, g->refusals);
}

/* ---- which rows ---- */

static bool is_named(const char *name, const char *part)
{
        return !*part || strstr(name, part) || !fnmatch(part, name, 0);
}

static bool is_wanted(const struct heap_cache *c, const struct top_choice *choice)
{
        return (choice->all || c->stats.alloc_slab ||
                !(c->cache.flags & STOOK_CACHE_OF_MALLOC)) && is_named(c->name, choice->name);
}

static void add_caches(const struct top_state *s, const struct top_choice *choice,
                       struct top_table *t)
{
        const struct heap *h = choice->view == TOP_SHARES ? &s->whole : &s->now;

        for (size_t i = 0; i < h->cache_count; i++) {
                const struct heap_cache *c = &h->caches[i];
                struct filling f = { &t->rows[t->count], 0 };

                if (!is_wanted(c, choice) || (choice->view == TOP_SHARES && !c->slabs_seen))
                        continue;
                if (choice->view == TOP_SHARES)
                        fill_shares(c, &f);
                else
                        fill_cache(s, choice, c, &f);
                t->count++;
        }
}

static void add_nodes(const struct heap *h, const struct top_choice *choice, struct top_table *t)
{
        for (size_t i = 0; i < h->cache_count; i++)
                for (unsigned n = 0; n < h->nodes && is_wanted(&h->caches[i], choice); n++) {
                        struct filling f = { &t->rows[t->count++], 0 };

                        fill_node(&h->caches[i], n, &f);
                }
}

static void add_slots(const struct heap *h, struct top_table *t)
{
        for (unsigned slot = 0; slot < h->slots; slot++) {
                struct filling f = { &t->rows[t->count], 0 };

                fill_slot(h, slot, &f);
                t->count += f.row->key[1] > 0;          /* slots without objects are left out */
        }
}

static size_t rows_most(const struct top_state *s, enum top_view view)
{
        const struct heap *h = &s->now;

        switch (view) {
        case TOP_SLOTS:
                return h->slots;
        case TOP_NODES:
                return h->cache_count * h->nodes;
        case TOP_GROUPS:
                return h->group_count;
        case TOP_SHARES:
                return s->whole.cache_count;
        default:
                return h->cache_count;
        }
}

/* ---- order ---- */

static unsigned sort_column;
static bool sort_up;

static int compare(const void *a, const void *b)
{
        const struct top_row *x = a, *y = b;
        int order;

        if (!sort_column)
                order = strverscmp(x->cell[0], y->cell[0]);
        else
                order = x->key[sort_column] > y->key[sort_column] ? -1 :
                        x->key[sort_column] < y->key[sort_column];
        if (sort_up)
                order = -order;
        return order ? order : strverscmp(x->cell[0], y->cell[0]);
}

bool top_make_table(const struct top_state *s, const struct top_choice *choice,
                    struct top_table *t)
{
        t->titles = top_titles(choice->view, choice->totals, &t->columns);
        t->count = 0;
        t->rows = calloc(rows_most(s, choice->view) + 1, sizeof *t->rows);
        if (!t->rows)
                return false;
        if (choice->view == TOP_SLOTS) {
                add_slots(&s->now, t);
        } else if (choice->view == TOP_NODES) {
                add_nodes(&s->now, choice, t);
        } else if (choice->view == TOP_GROUPS) {
                for (size_t i = 0; i < s->now.group_count; i++) {
                        struct filling f = { &t->rows[t->count], 0 };

                        if (is_named(s->now.groups[i].name, choice->name)) {
                                fill_group(&s->now.groups[i], &f);
                                t->count++;
                        }
                }
        } else {
                add_caches(s, choice, t);
        }
        sort_column = choice->sort[choice->view];
        sort_up = choice->up;
        qsort(t->rows, t->count, sizeof *t->rows, compare);
        return true;
}

/* ---- lines above ---- */

static void memory_line(const struct top_state *s, char *out, size_t size)
{
        uint64_t live = 0, cached = 0, slabs = 0;
        char a[32], b[32], c[32], d[32], e[32], f[32];
        const struct heap_pages *p = &s->whole.pages;

        for (size_t i = 0; i < s->now.cache_count; i++) {
                const struct heap_cache *k = &s->now.caches[i];

                live += k->stats.objects_live * k->stats.stride;
                cached += k->stats.objects_cached * k->stats.stride;
                slabs += info_space_bytes(k);
        }
        snprintf(out, size, "live %s, cached %s, in slabs of %s; large %s; free pages %s dirty, "
                 "%s clean", bytes_text(live, a, sizeof a), bytes_text(cached, b, sizeof b),
                 bytes_text(slabs, c, sizeof c), bytes_text(p->large_bytes, d, sizeof d),
                 bytes_text(p->free_dirty_bytes, e, sizeof e),
                 bytes_text(p->free_clean_bytes, f, sizeof f));
}

static void rate_line(const struct top_state *s, const struct top_choice *choice, char *out,
                      size_t size)
{
        double all = 0, freed = 0, refilled = 0, flushed = 0, n[STOOK_STAT_COUNT];
        char a[32], b[32], c[32], d[32], own[32];
        const char *per = choice->totals ? "" : "/s";

        for (size_t i = 0; i < s->now.cache_count; i++) {
                differences(s, &s->now.caches[i], choice, n);
                all += allocations(n);
                freed += frees(n);
                refilled += COUNTER(n, sheaf_refill);
                flushed += COUNTER(n, sheaf_flush);
        }
        snprintf(out, size, "allocs %s%s, frees %s%s, refilled %s%s, flushed %s%s; slots %u, "
                 "nodes %u, groups %zu; own data %s", rate_text(all, a, sizeof a), per,
                 rate_text(freed, b, sizeof b), per, rate_text(refilled, c, sizeof c), per,
                 rate_text(flushed, d, sizeof d), per, s->now.slots_ready, s->now.nodes,
                 s->now.group_count,
                 bytes_text(s->now.pages.metadata_bytes, own, sizeof own));
}

void top_make_line(const struct top_state *s, const struct top_choice *choice, unsigned line,
                   char *out, size_t size)
{
        char name[512];

        if (line == 0)
                plain_text(target_name(s->target, s->library, name, sizeof name), out, size);
        else if (line == 1)
                memory_line(s, out, size);
        else
                rate_line(s, choice, out, size);
}
