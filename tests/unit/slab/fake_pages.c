#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <cmocka.h>

#include "base/lock.h"
#include "fake_pages.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "report/report_inside.h"
#include "slab/slab_state.h"

/* No slab here is of a heap. */
const struct stook_heap_duties stook_heap_duties;
struct stook_range stook_range;
char  *fake_arena;
long   fake_fail_from;
size_t fake_take_max;

static uint64_t entries[FAKE_PAGES];
static struct stook_span descriptors[FAKE_PAGES];
static uint8_t used[FAKE_PAGES];
static size_t  taken;
static uint32_t busy;

/* Handlers call the layer, too: they are kept out while its word is held. */
static void enter(sigset_t *old)
{
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, old);
        while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
                ;
}

static void leave(const sigset_t *old)
{
        __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
        pthread_sigmask(SIG_SETMASK, old, NULL);
}

static struct stook_span *find(size_t pages)
{
        for (size_t at = 0; at + pages <= FAKE_PAGES; at++) {
                size_t n = 0;

                while (n < pages && !used[at + n])
                        n++;
                if (n == pages) {
                        memset(used + at, 1, pages);
                        return &descriptors[at];
                }
                at += n;
        }
        return NULL;
}

struct stook_span *stook_span_take(unsigned node, size_t bytes, size_t align)
{
        struct stook_span *span = NULL;
        sigset_t old;

        (void)align;
        bytes = (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
        enter(&old);
        if (fake_fail_from != 1 && (!fake_take_max || bytes <= fake_take_max))
                span = find(bytes / FAKE_PAGE);
        if (fake_fail_from > 1)
                fake_fail_from--;
        if (span) {
                taken++;
                span->start = (uintptr_t)fake_arena + (size_t)(span - descriptors) * FAKE_PAGE;
                span->bytes = bytes;
                span->node = (uint8_t)node;
                __atomic_store_n(&span->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELAXED);
        }
        leave(&old);
        return span;
}

void stook_span_give(struct stook_span *span)
{
        size_t at = (size_t)(span - descriptors);
        sigset_t old;

        assert_true(used[at]);
        assert_int_equal(span->kind, STOOK_SPAN_TAKEN);
        assert_int_equal(stook_pagemap_get(span->start), 0);
        /* The word `parts` of what was a slab leads a late free nowhere (slab_state.h). */
        assert_int_equal(stook_slab_of(span)->parts, 0);
        enter(&old);
        taken--;
        memset(used + at, 0, span->bytes / FAKE_PAGE);
        __atomic_store_n(&span->kind, STOOK_SPAN_FREE, __ATOMIC_RELAXED);
        /* The words are another owner's now. A late access by the old slab finds no slab there. */
        memset(&span->use, 0xee, sizeof(span->use));
        leave(&old);
}

/* One by one, so that refusals hit in the middle. */
unsigned stook_span_take_some(unsigned node, size_t bytes, unsigned n, struct stook_span **spans)
{
        unsigned got = 0;

        while (got < n && (spans[got] = stook_span_take(node, bytes, 0)))
                got++;
        return got;
}

void stook_span_give_chain(struct stook_link *first)
{
        while (first) {
                struct stook_span *span = stook_container_of(first, struct stook_span, link);

                first = first->next;
                stook_span_give(span);
        }
}

/* No cache of these tests has runs: tests/unit/cache/memory.c has them, on the real pages. */
struct stook_link *stook_span_take_run(unsigned node, size_t bytes, size_t piece, bool huge)
{
        (void)node;
        (void)bytes;
        (void)piece;
        (void)huge;
        fail();
        return NULL;
}

bool stook_span_renew_run(struct stook_link *first, size_t bytes)
{
        (void)first;
        (void)bytes;
        fail();
        return false;
}

/* A child of fork, whose parent's other threads may have been inside: only they could have been. */
static void forked(void) { busy = 0; }

size_t fake_spans_taken(void)
{
        return __atomic_load_n(&taken, __ATOMIC_RELAXED);
}

static void set_entries(struct stook_span *span, unsigned cache_index)
{
        size_t at = (span->start - stook_range.base) >> STOOK_MAP_SHIFT;

        for (size_t i = 0; i < span->bytes >> STOOK_MAP_SHIFT; i++)
                __atomic_store_n(&entries[at + i],
                                 cache_index ? stook_entry_of_slab(cache_index, span, span->start)
                                             : 0,
                                 __ATOMIC_RELEASE);
}

void stook_pagemap_set_slab(struct stook_span *span, unsigned cache_index)
{
        set_entries(span, cache_index);
}

void (*fake_unmake)(void);

void stook_pagemap_clear_slab(struct stook_span *span)
{
        set_entries(span, 0);
        if (fake_unmake)
                fake_unmake();
}

uint64_t stook_pagemap_lookup_piece(uintptr_t addr) { (void)addr; return 0; }
void stook_pages_purge_excess(void) { }

bool stook_pagemap_ours(uintptr_t addr) { return addr - stook_range.base < stook_range.bytes; }

unsigned fake_walks;

void stook_meta_span_for_each(void (*each)(struct stook_span *span, void *data), void *data)
{
        fake_walks++;
        for (size_t i = 0; i < FAKE_PAGES; i++)
                each(&descriptors[i], data);
}

void *stook_meta_bump(size_t bytes, size_t align)
{
        static char room[64 << 20] STOOK_ALIGNED(4096); /* handlers come here, too: no malloc */
        static size_t used;
        size_t whole = (bytes + 63) & ~(size_t)63, at;

        assert_in_range(align, 0, 64);
        at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
        return at + whole <= sizeof(room) ? room + at : NULL;
}

/* ---- os ---- */

size_t stook_os_page_bytes(void) { return FAKE_PAGE; }

unsigned stook_os_node_count(void) { return 1; }
unsigned stook_os_node_home(unsigned node) { return node; }
bool stook_os_node_has_memory(unsigned node) { return node == 0; }

void (*fake_pause)(void);

void stook_os_pause(uint64_t ns)
{
        (void)ns;
        if (fake_pause)
                fake_pause();
}

uint64_t stook_os_random(void)
{
        static uint64_t state = 1;
        uint64_t z = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static char written[512];
static unsigned writes;

void stook_report_tell(const struct stook_report_about *about, const char *line, size_t bytes,
                       bool found)
{
        (void)about;
        (void)found;
        stook_os_write(line, bytes);
}

void stook_os_write(const char *text, size_t bytes)
{
        if (bytes >= sizeof(written))
                bytes = sizeof(written) - 1;
        memcpy(written, text, bytes);
        written[bytes] = '\0';
        __atomic_fetch_add(&writes, 1, __ATOMIC_RELAXED);
}

void stook_os_abort(void)
{
        print_error("%s", written);
        abort();
}

const char *fake_report(unsigned *count)
{
        *count = __atomic_exchange_n(&writes, 0, __ATOMIC_RELAXED);
        return written;
}

/* ---- sources ---- */

static void fake_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value;
        nanosleep(&(struct timespec){ 0, (long)ns / 10 }, NULL);
}

static void fake_wake(uint32_t *word) { (void)word; }

void fake_start(void)
{
        static const struct stook_lock_sleep sleep = { fake_wait, fake_wake };

        fake_arena = mmap(NULL, (size_t)FAKE_PAGES * FAKE_PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(fake_arena, MAP_FAILED);
        stook_range.base = (uintptr_t)fake_arena;
        stook_range.bytes = (size_t)FAKE_PAGES * FAKE_PAGE;
        stook_range.entries = entries;
        stook_lock_set_sleep(&sleep);
        pthread_atfork(NULL, NULL, forked);
}

struct stook_slabs *fake_source(unsigned cache_index, size_t size, size_t align, bool random,
                                void (*ctor)(void *, void *), void *ctor_data)
{
        struct {
                struct stook_slabs slabs;
                struct stook_counters counters;
                uint64_t far[STOOK_COUNTERS_FAR_COUNT];
        } *source = stook_meta_bump(sizeof(*source), 64);

        source->counters.far = source->far;
        assert_int_equal(
                stook_slabs_init(&source->slabs,
                                 &(struct stook_slabs_args){ .name = "fake",
                                                             .cache_index = cache_index,
                                                             .object_size = size,
                                                             .align = align,
                                                             .slab_objects = 64,
                                                             .random_order = random,
                                                             .ctor = ctor,
                                                             .ctor_data = ctor_data,
                                                             .counters = &source->counters }),
                0);
        return &source->slabs;
}

void fake_source_end(struct stook_slabs *slabs)
{
        assert_int_equal(stook_slabs_objects_out(slabs), 0);
        assert_int_equal(stook_slabs_shrink(slabs), 0);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        assert_int_equal(stook_counted(slabs->counters, STOOK_STAT_alloc_slab),
                         stook_counted(slabs->counters, STOOK_STAT_free_slab));
}
