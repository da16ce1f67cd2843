/*
 * bench/resident/resident_walk.c - pages, and what they are there for
 *
 * How: every span, sheaf and descriptor of the library enters its pages into a hash table, and
 * every object that is out of its slab adds its bytes to its pages. Then the mappings of the
 * process are walked (/proc/self/maps), and each page that is present (/proc/self/pagemap) is
 * counted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "barn/sheaf.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/source.h"
#include "pages/span.h"
#include "slot/slot.h"
#include "slot/slot_regions.h"
#include "resident.h"

/* The cause of a slab's page is known when its objects were added. */
#define SLAB STOOK_RESIDENT_slab_free

struct page {
        uintptr_t address;              /* 0: unused */
        uint32_t  out, sheaf;           /* bytes of objects out of their slab, and in sheaves */
        uint16_t  cache;
        uint8_t   cause;
};

struct area {
        uintptr_t start, end;
        uint8_t   cause;
};

struct walk {
        struct stook_resident *to;
        struct page *page;              /* hash table */
        size_t    mask, pages;
        size_t    page_bytes;
        struct area area[8];            /* coarse ones; looked up when a page is not in the table */
        unsigned  areas;
        struct stook_cache *cache;      /* being walked */
        uintptr_t descriptor[2];        /* lowest and highest: the first and the newest metadata */
        char     *text;                 /* of /proc/self/maps */
        uint64_t *present;              /* a piece of /proc/self/pagemap */
};

#define TEXT_BYTES ((size_t)4 << 20)
#define PRESENT    ((size_t)8192)       /* entries */

/* ---- the table ---- */

static struct page *page_of(struct walk *w, uintptr_t address, bool make)
{
        uintptr_t start = address & ~(uintptr_t)(w->page_bytes - 1);
        size_t i = (size_t)((start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & w->mask;

        for (; w->page[i].address; i = (i + 1) & w->mask)
                if (w->page[i].address == start)
                        return &w->page[i];
        if (!make || w->pages * 2 > w->mask)
                return NULL;
        w->pages++;
        w->page[i].address = start;
        return &w->page[i];
}

static void mark(struct walk *w, uintptr_t from, size_t bytes, unsigned cause)
{
        uintptr_t first = from & ~(uintptr_t)(w->page_bytes - 1);

        for (uintptr_t at = first; at < from + bytes; at += w->page_bytes) {
                struct page *page = page_of(w, at, true);

                if (page)
                        page->cause = (uint8_t)cause;
        }
}

static void *map(size_t bytes)
{
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

        return at == MAP_FAILED ? NULL : at;
}

static void add_area(struct walk *w, const void *start, size_t bytes, unsigned cause)
{
        struct area *area = &w->area[w->areas++];

        area->start = (uintptr_t)start;
        area->end = (uintptr_t)start + bytes;
        area->cause = (uint8_t)cause;
}

/* ---- spans and metadata ---- */

static bool has_memory(const struct stook_span *span)
{
        enum stook_span_kind kind = stook_span_kind_of(span);
        bool is_free = kind == STOOK_SPAN_FREE || kind == STOOK_SPAN_MOVING;

        return span->state != STOOK_SPAN_RESERVED || !is_free;
}

static void count_span(struct stook_span *span, void *data)
{
        *(size_t *)data += 1 + (has_memory(span) ? span->bytes / stook_os_page_bytes() : 0);
}

static void mark_span(struct stook_span *span, void *data)
{
        struct walk *w = data;
        unsigned cause = STOOK_RESIDENT_span_other;

        mark(w, (uintptr_t)span, 1, STOOK_RESIDENT_descriptor);
        if (!w->descriptor[0] || (uintptr_t)span < w->descriptor[0])
                w->descriptor[0] = (uintptr_t)span;
        if ((uintptr_t)span > w->descriptor[1])
                w->descriptor[1] = (uintptr_t)span;
        if (!has_memory(span))
                return;
        if (span->kind == STOOK_SPAN_SLAB)
                cause = SLAB;
        else if (span->kind == STOOK_SPAN_LARGE)
                cause = STOOK_RESIDENT_large;
        else if (stook_span_kind_of(span) == STOOK_SPAN_FREE)
                cause = span->state == STOOK_SPAN_DIRTY ? STOOK_RESIDENT_span_dirty
                                                        : STOOK_RESIDENT_span_clean;
        mark(w, span->start, span->bytes, cause);
}

/* ---- objects ---- */

static struct stook_resident_cache *figures_of(struct walk *w, unsigned index)
{
        struct stook_resident *to = w->to;
        unsigned i = index < STOOK_RESIDENT_CACHES - 1 ? index : STOOK_RESIDENT_CACHES - 1;

        if (i >= to->caches)
                to->caches = i + 1;
        to->cache[i].name = i == index ? stook_cache_name(stook_cache_at(index)) : NULL;
        return &to->cache[i];
}

/* Adds an object's bytes to its pages, to one of the two sums. */
static void add_object(struct walk *w, const void *object, bool in_sheaf)
{
        size_t bytes = w->cache->slabs.stride;

        for (uintptr_t at = (uintptr_t)object, end = at + bytes, next; at < end; at = next) {
                struct page *page = page_of(w, at, false);

                next = (at & ~(uintptr_t)(w->page_bytes - 1)) + w->page_bytes;
                if (next > end)
                        next = end;
                if (!page)
                        continue;
                if (in_sheaf)
                        page->sheaf += (uint32_t)(next - at);
                else
                        page->out += (uint32_t)(next - at);
                page->cache = (uint16_t)w->cache->index;
        }
}

static void add_out(void *object, void *slab, void *data)
{
        struct walk *w = data;
        struct stook_resident_cache *figures = figures_of(w, w->cache->index);

        (void)slab;
        add_object(w, object, false);
        figures->objects_live++;
        figures->live_bytes += w->cache->slabs.stride;
}

static void add_sheaf(struct stook_sheaf *sheaf, void *data)
{
        struct walk *w = data;
        struct stook_resident_cache *figures = figures_of(w, w->cache->index);
        unsigned size = stook_sheaf_size(sheaf);

        mark(w, (uintptr_t)sheaf, sizeof(*sheaf) + sheaf->capacity * sizeof(void *),
             STOOK_RESIDENT_sheaf);
        for (unsigned i = 0; i < size && i < sheaf->capacity; i++)
                add_object(w, sheaf->objects[i], true);
        figures->objects_sheaf += size;
        figures->sheaf_bytes += (size_t)size * w->cache->slabs.stride;
}

static void add_cache(struct walk *w, unsigned index)
{
        struct stook_resident_cache *figures;

        w->cache = stook_cache_at(index);
        if (w->cache->state != STOOK_CACHE_LIVE && w->cache->state != STOOK_CACHE_DYING)
                return;
        stook_slabs_for_each_out(&w->cache->slabs, add_out, w);
        stook_sheaf_for_each(index, add_sheaf, w);
        figures = figures_of(w, index);
        /* What is in sheaves is out of its slab, too. */
        if (figures->objects_sheaf < figures->objects_live)
                figures->objects_live -= figures->objects_sheaf;
        else
                figures->objects_live = 0;
        figures->live_bytes = figures->objects_live * w->cache->slabs.stride;
}

/* ---- mappings ---- */

struct mapping {
        uintptr_t start, end;
        bool      readable, writable;
        const char *name;               /* "": anonymous */
        uint8_t   cause;
};

static bool ends_with(const char *text, const char *end)
{
        size_t a = strlen(text), b = strlen(end);

        return a >= b && !strcmp(text + a - b, end);
}

static bool is_libc(const char *name)
{
        return strstr(name, "/libc.so") || strstr(name, "/libc-") || strstr(name, "/ld-") ||
               strstr(name, "/ld.so");
}

/* Of a page that no table knows. @before: the mapping below, which an anonymous one may go on. */
static unsigned cause_of(const struct mapping *m, const struct mapping *before)
{
        if (!*m->name && before->end == m->start && *before->name == '/')
                return before->cause == STOOK_RESIDENT_code ? STOOK_RESIDENT_data : before->cause;
        if (strstr(m->name, "/libstook"))
                return m->writable ? STOOK_RESIDENT_data : STOOK_RESIDENT_code;
        if (is_libc(m->name))
                return m->writable ? STOOK_RESIDENT_libc_data : STOOK_RESIDENT_libc_code;
        if (*m->name == '/')
                return STOOK_RESIDENT_other_files;
        return ends_with(m->name, "[stack]") ? STOOK_RESIDENT_stack : STOOK_RESIDENT_other;
}

static void count_page(struct walk *w, uintptr_t address, unsigned otherwise)
{
        struct stook_resident *to = w->to;
        struct page *page = page_of(w, address, false);
        unsigned cause = page ? page->cause : otherwise;

        for (unsigned i = 0; !page && i < w->areas; i++)
                if (address >= w->area[i].start && address < w->area[i].end) {
                        cause = w->area[i].cause;
                        break;
                }
        if (cause == STOOK_RESIDENT_OWN)
                return;
        if (page && cause == SLAB) {
                unsigned index = stook_entry_cache(stook_pagemap_get(address));
                size_t live = page->out > page->sheaf ? page->out - page->sheaf : 0;

                if (live)
                        cause = STOOK_RESIDENT_slab_live;
                else if (page->sheaf)
                        cause = STOOK_RESIDENT_slab_sheaf;
                if (live) {
                        to->live_bytes += live;
                        to->sheaf_bytes += page->sheaf;
                        to->free_bytes += w->page_bytes - live - page->sheaf;
                }
                figures_of(w, index)->pages[cause - STOOK_RESIDENT_slab_live] += w->page_bytes;
        }
        to->bytes[cause] += w->page_bytes;
        to->total += w->page_bytes;
}

static void count_mapping(struct walk *w, int pagemap, const struct mapping *m)
{
        size_t n = (m->end - m->start) / w->page_bytes;
        off_t first = (off_t)(m->start / w->page_bytes * sizeof(uint64_t));

        for (size_t done = 0; m->readable && done < n;) {
                size_t ask = n - done < PRESENT ? n - done : PRESENT;
                ssize_t got = pread(pagemap, w->present, ask * sizeof(uint64_t),
                                    first + (off_t)(done * sizeof(uint64_t)));

                if (got <= 0)
                        return;
                for (size_t i = 0; i < (size_t)got / sizeof(uint64_t); i++)
                        if (w->present[i] >> 63)
                                count_page(w, m->start + (done + i) * w->page_bytes, m->cause);
                done += (size_t)got / sizeof(uint64_t);
        }
}

/* An anonymous mapping with metadata in it: what no table knows there is metadata, too. */
static bool holds_metadata(const struct walk *w, const struct mapping *m)
{
        return (w->descriptor[0] >= m->start && w->descriptor[0] < m->end) ||
               (w->descriptor[1] >= m->start && w->descriptor[1] < m->end);
}

static size_t read_all(const char *path, char *text, size_t room)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t have = 0;
        ssize_t n;

        while (fd >= 0 && have < room - 1 && (n = read(fd, text + have, room - 1 - have)) > 0)
                have += (size_t)n;
        if (fd >= 0)
                close(fd);
        text[have] = 0;
        return have;
}

static bool count_mappings(struct walk *w)
{
        struct mapping before = { .name = "" };
        int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

        if (pagemap < 0 || !read_all("/proc/self/maps", w->text, TEXT_BYTES))
                return false;
        for (char *line = w->text, *next; *line; line = next) {
                char *end = strchr(line, '\n'), *at, *rights;
                struct mapping m;

                next = end ? end + 1 : line + strlen(line);
                if (end)
                        *end = 0;
                m.start = strtoul(line, &at, 16);
                m.end = strtoul(at + 1, &at, 16);
                rights = at + 1;
                m.readable = rights[0] == 'r';
                m.writable = rights[1] == 'w';
                at = strpbrk(rights, "/[");
                m.name = at ? at : "";
                m.cause = (uint8_t)cause_of(&m, &before);
                if (m.cause == STOOK_RESIDENT_other && holds_metadata(w, &m))
                        m.cause = STOOK_RESIDENT_meta;
                count_mapping(w, pagemap, &m);
                before = m;
        }
        close(pagemap);
        return true;
}

/* ---- all of it ---- */

static void find_areas(struct walk *w)
{
        struct stook_range_record *r = stook_range_of(stook_range.base);
        size_t caches = STOOK_CACHES_MAX * sizeof(struct stook_cache);
        size_t seldom = stook_caches_bound() * sizeof(struct stook_seldom);
        size_t slots = (size_t)stook_slots_bound() << STOOK_SLOT_SHIFT;

        /* Below the table lies what few caches use. */
        seldom = (seldom + w->page_bytes - 1) & ~(w->page_bytes - 1);
        add_area(w, (char *)stook_caches - seldom, seldom + caches, STOOK_RESIDENT_caches);
        add_area(w, stook_regions.base, slots, STOOK_RESIDENT_slots);
        if (r)
                add_area(w, r->entries, (r->size >> STOOK_MAP_SHIFT) * sizeof(*r->entries),
                         STOOK_RESIDENT_map);
}

bool stook_resident_take(struct stook_resident *to)
{
        struct walk w = { .to = to, .page_bytes = stook_os_page_bytes() };
        size_t pages = 4096, table;
        char *rss;
        bool done;

        if (!stook_gate_is_open())
                return false;
        memset(to, 0, sizeof(*to));
        stook_meta_span_for_each(count_span, &pages);
        pages += stook_meta_bytes() / w.page_bytes;
        for (w.mask = 1; w.mask < pages * 2;)
                w.mask = w.mask * 2 + 1;
        table = (w.mask + 1) * sizeof(*w.page);
        w.page = map(table);
        w.text = map(TEXT_BYTES);
        w.present = map(PRESENT * sizeof(*w.present));
        if (!w.page || !w.text || !w.present)
                return false;
        add_area(&w, w.page, table, STOOK_RESIDENT_OWN);
        add_area(&w, w.text, TEXT_BYTES, STOOK_RESIDENT_OWN);
        add_area(&w, w.present, PRESENT * sizeof(*w.present), STOOK_RESIDENT_OWN);
        find_areas(&w);
        stook_meta_span_for_each(mark_span, &w);
        for (unsigned i = 1; i < stook_caches_bound(); i++)
                add_cache(&w, i);
        done = count_mappings(&w);
        munmap(w.page, table);
        munmap(w.present, PRESENT * sizeof(*w.present));
        read_all("/proc/self/smaps_rollup", w.text, TEXT_BYTES);
        rss = strstr(w.text, "\nRss:");
        to->rss = rss ? strtoul(rss + 5, NULL, 10) * 1024 : 0;
        munmap(w.text, TEXT_BYTES);
        return done;
}
