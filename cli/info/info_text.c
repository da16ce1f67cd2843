/*
 * Purpose: `stook info` as text: slabinfo's columns, totals, and each cache at length; see info.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"
#include "policy/constants.h"

static const char *const headings[] = {
        "name", "objects", "objsize", "stride", "space", "slabs/part/barn", "o/s", "pages",
        "cached", "%fr", "%ef", "flg",
};
#define COLUMNS (sizeof headings / sizeof headings[0])

static unsigned percent(uint64_t part, uint64_t all)
{
        double share = all ? 100.0 * (double)part / (double)all : 0;

        return share > 100 ? 100 : (unsigned)(share + 0.5);
}

static struct heap_node sum_of_nodes(const struct heap *h, const struct heap_cache *c)
{
        struct heap_node sum = { 0 };

        for (unsigned i = 0; i < h->nodes; i++) {
                sum.partial += c->node[i].partial;
                sum.barn_full += c->node[i].barn_full;
                sum.barn_empty += c->node[i].barn_empty;
        }
        return sum;
}

static void print_row(const struct heap *h, const struct heap_cache *c, struct table *t)
{
        const struct stook_cache_stats *s = &c->stats;
        struct heap_node nodes = sum_of_nodes(h, c);
        uint64_t bytes = info_space_bytes(c);
        char letters[16];

        table_row(t);
        table_cell(t, "%.40s", c->name);
        table_count(t, s->objects_live);
        table_count(t, s->object_size);
        table_count(t, s->stride);
        table_bytes(t, bytes);
        table_cell(t, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, s->slabs, nodes.partial,
                   nodes.barn_full);
        table_count(t, s->objects_per_slab);
        table_count(t, s->slab_bytes / h->library->root.page_bytes);
        table_count(t, s->objects_cached);
        table_cell(t, "%u", percent(nodes.partial, s->slabs));
        table_cell(t, "%u", percent(s->objects_live * s->object_size, bytes));
        table_cell(t, "%s", info_flags(c, letters));
}

static void print_table(const struct heap *h, const struct heap_cache **caches, size_t n,
                        FILE *out)
{
        struct table t;

        table_init(&t, COLUMNS);
        table_row(&t);
        for (size_t i = 0; i < COLUMNS; i++)
                table_cell(&t, "%s", headings[i]);
        for (size_t i = 0; i < n; i++)
                print_row(h, caches[i], &t);
        table_print(&t, out);
}

/* ---- fragmentation ---- */

static const char *const share_headings[] = {
        "slabs with objects out", "slabs", "none", "to 25%", "to 50%", "to 75%", "below 100%",
        "all", "pinned", "pinned bytes", "free pages",
};
#define SHARE_COLUMNS (sizeof share_headings / sizeof share_headings[0])

static void print_shares(const struct heap_cache **caches, size_t n, FILE *out)
{
        struct table t;

        table_init(&t, SHARE_COLUMNS);
        table_row(&t);
        for (size_t i = 0; i < SHARE_COLUMNS; i++)
                table_cell(&t, "%s", share_headings[i]);
        for (size_t i = 0; i < n; i++) {
                const struct heap_cache *c = caches[i];

                if (!c->slabs_seen)
                        continue;
                table_row(&t);
                table_cell(&t, "%.40s", c->name);
                table_count(&t, c->slabs_seen);
                for (unsigned s = 0; s < HEAP_SHARES; s++)
                        table_count(&t, c->shares[s]);
                table_count(&t, c->pinned_slabs);
                table_bytes(&t, c->pinned_bytes);
                table_count(&t, c->free_pages);
        }
        fputc('\n', out);
        if (t.rows > 1)
                table_print(&t, out);
        else
                fputs("  no slabs\n", out), free(t.cells);
}

/* ---- totals ---- */

static void print_bytes(FILE *out, const char *what, uint64_t bytes)
{
        char text[32];

        fputs(what, out);
        say(out, " %s", bytes_text(bytes, text, sizeof text));
}

/* What a process's memory is for, the largest first. */
static void print_resident(const struct heap_resident *r, FILE *out)
{
        struct {
                const char *what;
                uint64_t    bytes;
        } cause[] = {
                { "live objects in slabs", r->live }, { "large objects", r->large },
                { "objects in sheaves", r->cached }, { "free objects in slabs", r->free_objects },
                { "free pages with content", r->dirty },
                { "padding of huge pages", r->padding }, { "own data", r->own },
        };
        const size_t causes = sizeof cause / sizeof cause[0];
        uint64_t all = 0;
        char text[32];

        for (size_t i = 0; i < causes; i++)
                all += cause[i].bytes;
        print_bytes(out, "\nresident memory of the heap", all);
        say(out, ", by what has it:\n");
        for (size_t i = 0; i < causes; i++) {
                size_t most = i;

                for (size_t k = i + 1; k < causes; k++)
                        if (cause[k].bytes > cause[most].bytes)
                                most = k;
                if (!cause[most].bytes)
                        break;
                say(out, "  %-24s %10s  %5.1f %%\n", cause[most].what,
                    bytes_text(cause[most].bytes, text, sizeof text),
                    100.0 * (double)cause[most].bytes / (double)all);
                cause[most] = cause[i];
        }
}

static void print_totals(const struct heap *h, FILE *out)
{
        const struct heap_pages *p = &h->pages;
        uint64_t live = 0, cached = 0, pinned = 0, pages = 0, huge = memory_huge_bytes(h->memory);

        for (size_t i = 0; i < h->cache_count; i++) {
                const struct heap_cache *c = &h->caches[i];

                live += c->stats.objects_live * c->stats.stride;
                cached += c->stats.objects_cached * c->stats.stride;
                pinned += c->pinned_bytes;
                pages += c->free_pages;
        }
        print_bytes(out, "\nslabs", p->space_bytes);
        print_bytes(out, ": live objects", live);
        print_bytes(out, ", cached objects", cached);
        print_bytes(out, "\nlarge objects", p->large_bytes);
        say(out, " in %" PRIu64, p->large_objects);
        print_bytes(out, "; free pages with content", p->free_dirty_bytes);
        print_bytes(out, ", without", p->free_clean_bytes);
        print_bytes(out, "; own data", p->metadata_bytes);
        if (huge)
                print_bytes(out, "\nhuge pages of the process", huge);
        if (h->huge_dear == STOOK_HUGE_DEAR)
                say(out, "\nno huge pages are asked for: their faults are dear");
        print_bytes(out, "\ncould go back to the system: free pages", p->free_dirty_bytes);
        print_bytes(out, ", free pages in slabs", pages * h->library->root.page_bytes);
        print_bytes(out, ", slabs that only sheaves keep", pinned);
        say(out, "\nslots: %u ready, one for each %s; nodes: %u; %s\n", h->slots_ready,
            h->locked ? "hash of a thread (locked backend)" :
            h->by_cpu ? "CPU" : "concurrency id", h->nodes,
            h->maintainer && h->maintainer == h->memory->pid ? "has a maintenance thread"
                                                             : "no maintenance thread");
        if (h->resident.known)
                print_resident(&h->resident, out);
        if (h->changed)
                say(out, "(%u caches changed meanwhile and are left out)\n", h->changed);
        /* In a process that runs, what is read in the midst of a change looks so, too. */
        if (h->oddity_count && !h->memory->write)
                say(out, "(%zu thing%s made no sense: `stook check` says more)\n", h->oddity_count,
                    plural(h->oddity_count));
}

/* Those that are not the default. */
static void print_options(const struct heap *h, FILE *out)
{
        for (unsigned i = 0; i < STOOK_OPTIONS; i++) {
                const char *source = info_option_source(&h->options[i]);

                if (source)
                        say(out, "option %s=%s (%s)\n", h->options[i].name, h->options[i].value,
                            source);
        }
}

static void print_groups(const struct heap *h, FILE *out)
{
        for (size_t i = 0; i < h->group_count; i++) {
                const struct heap_group *g = &h->groups[i];
                char text[32];

                say(out, "group %s (%u", g->name, g->id);
                if (g->parent)
                        say(out, ", in %u", g->parent);
                say(out, "%s%s):", g->of_process ? ", the process's" : "",
                    g->ending ? ", ending" : "");
                print_bytes(out, "", g->usage_bytes);
                say(out, " of %s", g->limit_bytes == UINT64_MAX ? "no limit" :
                    bytes_text(g->limit_bytes, text, sizeof text));
                print_bytes(out, ", at most", g->peak_bytes);
                say(out, "; %" PRIu64 " time%s at the limit, %" PRIu64 " refusal%s\n",
                    g->limit_events, plural(g->limit_events), g->refusals, plural(g->refusals));
        }
}

static void print_heaps(const struct heap *h, FILE *out)
{
        for (size_t i = 0; i < h->heap_count; i++) {
                const struct heap_heap *p = &h->heaps[i];
                char text[32];

                say(out, "heap %s (%#" PRIx64, p->name, p->address);
                if (p->group)
                        say(out, ", charged to group %u", p->group);
                say(out, "%s):", p->ending ? ", ending" : "");
                print_bytes(out, "", p->bytes);
                say(out, " of %s", p->limit_bytes == UINT64_MAX ? "no limit" :
                    bytes_text(p->limit_bytes, text, sizeof text));
                print_bytes(out, ", at most", p->peak_bytes);
                say(out, "; %" PRIu64 " object%s in %u cache%s", p->objects_live,
                    plural(p->objects_live), p->caches, plural(p->caches));
                print_bytes(out, ", large objects", p->large_bytes);
                say(out, "; %" PRIu64 " refusal%s\n", p->refusals, plural(p->refusals));
        }
}

/* ---- at length ---- */

static void print_flags(const struct heap_cache *c, FILE *out)
{
        static const struct { uint64_t flag; const char *name; } names[] = {
                { STOOK_CACHE_HWCACHE_ALIGN, "HWCACHE_ALIGN" },
                { STOOK_CACHE_TYPESAFE_BY_RCU, "TYPESAFE_BY_RCU" }, { STOOK_CACHE_RCU, "RCU" },
                { STOOK_CACHE_ACCOUNT, "ACCOUNT" }, { STOOK_CACHE_MERGE, "MERGE" },
                { STOOK_CACHE_NO_SHEAVES, "NO_SHEAVES" },
                { STOOK_CACHE_RANDOM_ORDER, "RANDOM_ORDER" },
                { STOOK_CACHE_HUGE_PAGES, "HUGE_PAGES" },
                { STOOK_CACHE_OF_MALLOC, "malloc's or a heap's" },
        };

        fputs("  flags:", out);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (c->cache.flags & names[i].flag)
                        say(out, " %s", names[i].name);
        fputc('\n', out);
}

static void print_nodes(const struct heap *h, const struct heap_cache *c, FILE *out)
{
        for (unsigned i = 0; i < h->nodes; i++) {
                const struct heap_node *n = &c->node[i];

                say(out, "  node %u: slabs %" PRIu64 ", partial %" PRIu64
                    ", barn: full sheaves %" PRIu64 ", empty %" PRIu64, i, n->slabs,
                    n->partial, n->barn_full, n->barn_empty);
                if (h->nodes > 1)
                        say(out, "; objects that came home %" PRIu64 " in %" PRIu64 " sheaves",
                            n->objects_sent_home, n->sheaves_sent_home);
                fputc('\n', out);
        }
}

/* As the kernel's files have it: total, then what each CPU has. */
static void print_slots(const struct heap *h, const struct heap_cache *c, FILE *out)
{
        uint64_t total = 0;

        for (unsigned i = 0; i < h->slots; i++)
                total += c->slot_objects[i];
        say(out, "  objects in slots: %" PRIu64, total);
        for (unsigned i = 0; i < h->slots; i++)
                if (c->slot_objects[i])
                        say(out, " S%u=%u", i, c->slot_objects[i]);
        say(out, "; in barns: %" PRIu64 "; in other sheaves: %" PRIu64 "\n", c->barn_objects,
            c->other_objects);
}

static void print_details(const struct heap *h, const struct heap_cache *c, FILE *out)
{
        const struct stook_cache *k = &c->cache;
        const struct stook_cache_stats *s = &c->stats;
        char letters[16];

        say(out, "\n%s\n", c->name);
        say(out, "  object_size %u, align %u, stride %u, objects_per_slab %u, slab_bytes %u\n",
            k->object_size, k->align, k->slabs.stride, k->slabs.objects, k->slabs.slab_bytes);
        say(out, "  aliases %u", c->alias_count);
        for (unsigned i = 0; i < c->alias_count; i++)
                say(out, " %s", c->aliases[i]);
        say(out, "; users %u\n", k->references);
        if (info_ctor(c))
                say(out, "  ctor %#" PRIx64 "\n", info_ctor(c));
        if (k->debug_modes)
                say(out, "  debug %s\n", info_debug(c, letters));
        print_flags(c, out);
        say(out, "  sheaf_capacity %u, barn_full %u, barn_empty %u, min_partial %u, "
            "reserved slabs %u\n", k->barns.capacity, k->barns.full_limit,
            k->barns.empty_limit, k->slabs.min_partial, k->slabs.reserved);
        say(out, "  objects %" PRIu64 " live, %" PRIu64 " in %" PRIu64 " %s, %" PRIu64
            " slab%s; at most %" PRIu64 " object%s, %" PRIu64 " slab%s\n", s->objects_live,
            s->objects_cached, s->sheaves, s->sheaves == 1 ? "sheaf" : "sheaves", s->slabs,
            plural(s->slabs), s->objects_peak, plural(s->objects_peak), s->slabs_peak,
            plural(s->slabs_peak));
        print_slots(h, c, out);
        print_nodes(h, c, out);
#define PRINT(counter) say(out, "  %-22s %" PRIu64 "\n", #counter, s->counter);
        STOOK_COUNTERS(PRINT)
#undef PRINT
}

void info_text(const struct heap *h, const struct info_view *view, FILE *out)
{
        const struct heap_cache **caches;
        size_t n = info_choose(h, view, &caches);

        if (n == SIZE_MAX)
                return;
        if (n)
                print_table(h, caches, n, out);
        else
                fputs(view->name ? "  no cache of that name\n" : "  no caches in use\n", out);
        if (n && view->shares)
                print_shares(caches, n, out);
        for (size_t i = 0; i < n && (view->details || view->by_slot); i++) {
                if (view->details) {
                        print_details(h, caches[i], out);
                        continue;
                }
                if (!caches[i]->stats.objects_cached)
                        continue;
                say(out, "%s\n", caches[i]->name);
                print_slots(h, caches[i], out);
        }
        if (h->detail >= HEAP_SLABS)
                print_totals(h, out);
        print_options(h, out);
        print_groups(h, out);
        print_heaps(h, out);
        free(caches);
}
