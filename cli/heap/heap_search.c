/*
 * Purpose: the words that lead into a heap from outside; see heap_search.h.
 */
#include "cli/heap/heap_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"

#define PIECE_WORDS    ((size_t)32 << 10)
/* The loader's read-only data is smaller; larger files hold no pointers. Arbitrary. */
#define READ_ONLY_MOST ((uint64_t)1 << 20)
#define RED_ZONE       128              /* below the stack pointer, of the ABI of x86-64 */

struct search {
        struct heap     *h;
        heap_each_words *each;
        void            *data;
        struct memory_pages *touched;   /* NULL: not to be told */
        struct { uint64_t start, end; } metadata[STOOK_META_RANGES];
        int              error;
};

/* ---- pieces ---- */

static void read_piece(struct heap *h, struct heap_words *words, uint64_t *buffer, uint64_t bytes,
                       heap_each_words *each, void *data)
{
        uint64_t page = h->library->root.page_bytes;

        words->word = buffer;
        words->count = bytes / sizeof *buffer;
        if (!memory_read(h->memory, words->address, buffer, bytes)) {
                each(words, data);
                return;
        }
        /* Not all of it is there. */
        for (uint64_t end = words->address + bytes, n; words->address < end; words->address += n) {
                n = page - words->address % page;
                n = n < end - words->address ? n : end - words->address;
                words->count = n / sizeof *buffer;
                if (!memory_read(h->memory, words->address, buffer, n))
                        each(words, data);
        }
}

static void each_piece(struct heap *h, struct heap_words *words, uint64_t start, uint64_t end,
                       struct memory_pages *touched, heap_each_words *each, void *data)
{
        static uint64_t buffer[PIECE_WORDS];

        start = (start + 7) & ~UINT64_C(7);
        end &= ~UINT64_C(7);
        for (uint64_t n; start < end; start += n) {
                n = end - start < sizeof buffer ? end - start : sizeof buffer;
                words->address = start;
                if (!touched || memory_pages_touched(touched, start, n))
                        read_piece(h, words, buffer, n, each, data);
        }
}

void heap_each_of(struct heap *h, uint64_t start, uint64_t bytes, heap_each_words *each, void *data)
{
        struct heap_words words = { 0 };

        each_piece(h, &words, start, start + bytes, NULL, each, data);
}

/* ---- what is not the library's ---- */

/* The end of what the library has at @address; 0: it has nothing there. */
static uint64_t ours_until(const struct search *s, uint64_t address)
{
        const struct heap_span *span = heap_span_at(s->h, address);

        for (unsigned i = 0; i < STOOK_META_RANGES; i++)
                if (address >= s->metadata[i].start && address < s->metadata[i].end)
                        return s->metadata[i].end;
        return span ? span->start + span->bytes : 0;
}

/* Where the library's next memory begins behind @address, at most @end. */
static uint64_t ours_from(const struct search *s, uint64_t address, uint64_t end)
{
        size_t low = 0, high = s->h->span_count;

        for (unsigned i = 0; i < STOOK_META_RANGES; i++)
                if (s->metadata[i].start > address && s->metadata[i].start < end)
                        end = s->metadata[i].start;
        while (low < high) {
                size_t middle = (low + high) / 2;

                if (s->h->spans[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < s->h->span_count && s->h->spans[low].start < end ? s->h->spans[low].start
                                                                      : end;
}

/* The thread whose stack this is; NULL: none. */
static const struct memory_thread *thread_of(const struct memory *m,
                                             const struct memory_range *range)
{
        const struct memory_thread *found = NULL;

        for (size_t i = 0; i < m->thread_count; i++) {
                const struct memory_thread *t = &m->threads[i];

                if (t->stack >= range->start && t->stack < range->end &&
                    (!found || t->stack < found->stack))
                        found = t;
        }
        return found;
}

static bool is_root(const struct memory_range *range)
{
        bool is_small_file = range->path[0] == '/' && range->end - range->start <= READ_ONLY_MOST;

        return range->readable && (range->writable || is_small_file);
}

static bool add_range(const struct memory_range *range, void *data)
{
        struct search *s = data;
        const struct memory_thread *thread = thread_of(s->h->memory, range);
        struct heap_words words = { .range = range, .thread = thread ? thread->id : 0 };
        uint64_t at = range->start, until;

        if (!is_root(range))
                return true;
        if (thread && thread->stack - range->start > RED_ZONE)
                at = thread->stack - RED_ZONE;
        while (at < range->end) {
                until = ours_until(s, at);
                if (!until) {
                        until = ours_from(s, at, range->end);
                        /* Pages of a file that nobody wrote are there, too. */
                        each_piece(s->h, &words, at, until,
                                   range->path[0] == '/' ? NULL : s->touched, s->each, s->data);
                }
                at = until;
        }
        return true;
}

static int read_metadata(struct search *s)
{
        struct stook_meta_range range[STOOK_META_RANGES];
        int error = heap_copy(s->h, s->h->library->root.meta, range, sizeof range);

        for (unsigned i = 0; i < STOOK_META_RANGES && !error; i++)
                if (range[i].state) {
                        s->metadata[i].start = range[i].base;
                        s->metadata[i].end = range[i].base + range[i].size;
                }
        return error;
}

int heap_each_root(struct heap *h, heap_each_words *each, void *data)
{
        struct search s = { .h = h, .each = each, .data = data };
        int error = read_metadata(&s);

        if (error)
                return error;
        h->memory->find_threads(h->memory);
        for (size_t i = 0; i < h->memory->thread_count; i++) {
                const struct memory_thread *t = &h->memory->threads[i];
                struct heap_words words = { .word = t->registers, .count = t->count,
                                            .thread = t->id };

                each(&words, data);
        }
        s.touched = memory_pages_open(h->memory);
        error = memory_each_range(h->memory, add_range, &s);
        if (s.touched)
                memory_pages_close(s.touched);
        return error;
}
