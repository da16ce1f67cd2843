/*
 * Purpose: mark every live object that the program can still reach. A word that could be an address
 * within an object counts as a pointer to it: the search is conservative, so it misses a leak
 * sooner than it invents one.
 *
 * Roots are the words of all writable memory that is not the library's, and of small read-only
 * mappings of files (pointers that the loader protected): data segments, stacks of threads, thread
 * storage, what the program mapped itself. Of this thread's stack only the part in use counts.
 * Roots, too, are objects that waiting readers may look at, those of caches without tracks, and
 * those of heaps: a heap owns its objects, which end with it.
 * Registers of other threads are not seen: what only they hold counts as lost.
 *
 * Place: called by leak.c in a child that has this memory to itself (process/child.c). So marks
 * are written into the objects' tails, and nothing is locked.
 * Invariants:
 *  I1 an object is on the work list at most once: marking takes its state LIVE away.
 */
#include <string.h>

#include "cache/cache.h"
#include "debug/debug_inside.h"
#include "inspect/leak.h"
#include "watch/watch.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"

#define STATE_REACHED 0x52454143u       /* in this child only */
#define PIECE         ((size_t)64 << 10)
/* The loader's read-only data is smaller; larger files hold no pointers. Arbitrary. */
#define READ_ONLY_MOST ((size_t)1 << 20)

/* ---- objects ---- */

static bool has_tracks(const struct stook_cache *cache)
{
        return stook_cache_debug(cache)->flags & STOOK_CACHE_STORE_USER;
}

struct stook_debug_tail *stook_leak_tail(const struct stook_cache *cache, const void *object)
{
        return stook_tail(stook_cache_debug(cache), object);
}

bool stook_leak_is_lost(const struct stook_cache *cache, const void *object)
{
        return stook_debug_state(stook_cache_debug(cache), object) == STOOK_STATE_LIVE;
}

/* The link of the work list is the time in the track of the free, which a live object has not. */
static void push(struct stook_leak *leak, struct stook_debug_tail *tail, void *object)
{
        tail->state = STATE_REACHED;
        tail->tracks[1].at_ms = (uintptr_t)leak->work;
        leak->work = object;
}

static struct stook_leak_large *large_at(const struct stook_leak *leak, uintptr_t address)
{
        size_t low = 0, high = leak->larges;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (leak->large[middle].start + leak->large[middle].bytes <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == leak->larges || leak->large[low].start > address)
                return NULL;
        return &leak->large[low];
}

/* A word of the program's. */
static void follow(struct stook_leak *leak, uintptr_t word)
{
        uint64_t entry = stook_pagemap_get(word);
        unsigned index = stook_entry_cache(entry);
        struct stook_leak_large *large;
        struct stook_cache *cache;
        uint32_t number;
        bool interior;
        char *object;

        if (!index) {
                large = stook_pagemap_ours(word) ? large_at(leak, word) : NULL;
                if (large)
                        large->reached = true;
                return;
        }
        cache = stook_cache_at(index);
        if (!has_tracks(cache))
                return;
        number = stook_slabs_index(&cache->slabs, stook_entry_offset(entry, word), &interior);
        object = (char *)stook_entry_span(entry)->start + (size_t)number * cache->slabs.stride;
        if (number < cache->slabs.objects && stook_leak_is_lost(cache, object))
                push(leak, stook_leak_tail(cache, object), object);
}

static void follow_all(struct stook_leak *leak, const void *words, size_t bytes)
{
        const uintptr_t *word = words;

        for (size_t i = 0; i < bytes / sizeof(*word); i++)
                follow(leak, word[i]);
}

/* ---- roots: memory of the program's ---- */

static bool is_meta(uintptr_t address)
{
        for (unsigned i = 0; i < STOOK_META_RANGES; i++)
                if (address - stook_meta_ranges[i].base < stook_meta_ranges[i].size)
                        return true;
        return false;
}

static void follow_piece(struct stook_leak *leak, uintptr_t start, size_t bytes)
{
        size_t page = stook_os_page_bytes();

        if (stook_process_read_memory(leak->piece, (const void *)start, bytes)) {
                follow_all(leak, leak->piece, bytes);
                return;
        }
        /* Not all of it is there: page by page. */
        for (; bytes; start += page, bytes -= page < bytes ? page : bytes)
                if (stook_process_read_memory(leak->piece, (const void *)start,
                                         page < bytes ? page : bytes))
                        follow_all(leak, leak->piece, page < bytes ? page : bytes);
}

/* [start, end) without pages of ours: neighbours may be one mapping to the system. */
static void follow_mapping(struct stook_leak *leak, uintptr_t start, uintptr_t end)
{
        size_t page = stook_os_page_bytes();

        while (start < end) {
                uintptr_t to = start;

                while (to < end && to - start < PIECE && !stook_pagemap_ours(to) && !is_meta(to))
                        to += page - to % page;
                if (to > end)
                        to = end;
                if (to > start)
                        follow_piece(leak, start, to - start);
                else
                        to = start + page;
                start = to;
        }
}

/* "START-END rw-p OFFSET DEVICE INODE PATH" */
static bool follow_line(const char *line, void *data)
{
        struct stook_leak *leak = data;
        uintptr_t start, end;
        const char *c = stook_text_read(line, &start);

        if (*c != '-')
                return false;
        c = stook_text_read(c + 1, &end);
        if (*c != ' ' || c[1] != 'r')
                return false;
        if (c[2] != 'w' && (end - start > READ_ONLY_MOST || !strchr(c, '/')))
                return false;
        if (leak->stack >= start && leak->stack < end)
                start = leak->stack & ~(sizeof(uintptr_t) - 1);
        follow_mapping(leak, start, end);
        return false;
}

/* ---- roots: objects ---- */

struct roots {
        struct stook_leak *leak;
        const struct stook_cache *cache;
};

static void follow_root(void *object, void *slab, void *data)
{
        struct roots *roots = data;

        (void)slab;
        if (has_tracks(roots->cache) && !roots->cache->slabs.of_heap &&
            stook_debug_state(stook_cache_debug(roots->cache), object) != STOOK_STATE_WAITING)
                return;
        follow_all(roots->leak, object, roots->cache->slabs.object_size);
}

static void follow_objects(struct stook_leak *leak)
{
        struct roots roots = { .leak = leak };
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache))) {
                roots.cache = cache;
                stook_slabs_for_each_out(&cache->slabs, follow_root, &roots);
        }
}

/* ---- large objects ---- */

/* A large object in the quarantine is not live. */
static bool is_live_large(const struct stook_span *span)
{
        return span->kind == STOOK_SPAN_LARGE && stook_watch_large_usable(span) != STOOK_NO_OBJECT;
}

static void count_large(struct stook_span *span, void *data)
{
        struct stook_leak *leak = data;

        leak->larges += is_live_large(span);
}

static void note_large(struct stook_span *span, void *data)
{
        struct stook_leak *leak = data;
        size_t at = leak->larges;

        if (!is_live_large(span))
                return;
        /* Sorted as they come: spans mostly come by address. */
        for (; at && leak->large[at - 1].start > span->start; at--)
                leak->large[at] = leak->large[at - 1];
        leak->large[at] = (struct stook_leak_large){
                .start = span->start + span->use.lead, .bytes = stook_watch_large_usable(span),
                .stack = stook_large_stack(span), .reached = span->use.heap,
        };
        leak->larges++;
}

static bool find_larges(struct stook_leak *leak)
{
        stook_meta_span_for_each(count_large, leak);
        leak->large = stook_meta_bump((leak->larges + 1) * sizeof(*leak->large), 0);
        leak->larges = 0;
        if (leak->large)
                stook_meta_span_for_each(note_large, leak);
        return leak->large;
}

/* True: there was one. */
static bool follow_a_large(struct stook_leak *leak)
{
        for (size_t i = 0; i < leak->larges; i++) {
                struct stook_leak_large *large = &leak->large[i];

                if (!large->reached || large->scanned)
                        continue;
                large->scanned = true;
                for (size_t done = 0; done < large->bytes; done += PIECE)
                        follow_piece(leak, large->start + done,
                                     large->bytes - done < PIECE ? large->bytes - done : PIECE);
                return true;
        }
        return false;
}

/* ---- all ---- */

static void follow_work(struct stook_leak *leak)
{
        while (leak->work) {
                void *object = leak->work;
                unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
                const struct stook_cache *cache = stook_cache_at(index);
                struct stook_debug_tail *tail = stook_leak_tail(cache, object);

                leak->work = (void *)(uintptr_t)tail->tracks[1].at_ms;
                follow_all(leak, object, stook_cache_debug(cache)->object_bytes);
        }
}

bool stook_leak_mark(struct stook_leak *leak)
{
        leak->piece = stook_meta_bump(PIECE, 0);
        if (!leak->piece || !find_larges(leak) ||
            !stook_process_read_memory(leak->piece, leak, sizeof(*leak)) ||
            !stook_file_each_line("/proc/self/maps", follow_line, leak))
                return false;
        follow_objects(leak);
        do
                follow_work(leak);
        while (follow_a_large(leak));
        return true;
}
