/*
 * Purpose: storage for descriptors, sheaves, barns and caches, see meta.h.
 * A few ranges with an atomic bump in each. The first is a variable of the library: what a small
 * program needs is there without a system call, a mapping or page tables of its own. Then comes
 * address space: 32 GiB where nothing binds, else from 2 MiB, doubling. Memory is put behind it in
 * steps. A step keeps content, so that two threads may do it at once.
 * Invariants:
 *  I1 bytes below `bump` have one owner for ever; bytes below `enabled` can be touched. bump is
 *     above enabled only while a thread is in stook_meta_bump.
 *  I2 a descriptor that was ever handed out is in the block list: blocks are pushed, never removed.
 * Concurrency: M1: `enabled` is raised (release) after the pages are writable, and read (acquire)
 *  before they are touched.
 */
#include "base/tagged_stack.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/source.h"
#include "pages/span.h"

#define RANGE_FREE    ((size_t)32 << 30)        /* of address space, where nothing binds */
#define RANGE_LIMITED ((size_t)2 << 20)         /* the first of doubling ones, where limits bind */
#define STEP           ((size_t)64 << 10)

/* At least one whole page of 64 KiB, the largest there are, wherever it begins. */
static char first[2 * STEP] STOOK_MOSTLY_UNUSED;

struct stook_meta_range stook_meta_ranges[STOOK_META_RANGES];
/* The one that begins at stook_ranges_beside(), if there is that. */
#define BESIDE (&stook_meta_ranges[1])
static uint32_t newest;                         /* atomic: index of the range to look at first */
static struct stook_tagged_stack spans;         /* free descriptors, linked through span->link */

/*
 * The descriptors that were freed last. What was freed in random order is cold when it is wanted
 * again, and each leads to the next only when it has come. So a free descriptor also leads to one
 * that was freed some time before it, which is fetched while those in between are taken. All of it
 * is a hint: an address of a descriptor, whatever became of that one. 3 back is 1.06 of the time of
 * 7 back, 11 back no less.
 */
#define FREED_LAST 8
static struct {
        struct stook_span *last[FREED_LAST];    /* atomic, a ring */
        uint32_t at;                            /* atomic: of the oldest */
} freed STOOK_ALIGNED(STOOK_CACHELINE);

struct stook_link *stook_span_blocks;

static bool meta_range_make(struct stook_meta_range *r, size_t size)
{
        uint32_t none = 0;

        if (!__atomic_compare_exchange_n(&r->state, &none, 1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
                return none == 2;
        for (; size >= STEP * 4; size /= 2) {
                void *base = stook_os_reserve(size, stook_os_page_bytes());

                if (!base)
                        continue;
                stook_os_advise(base, size, STOOK_OS_NOHUGEPAGE);
                r->base = (uintptr_t)base;
                r->size = size;
                __atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
                return true;
        }
        __atomic_store_n(&r->state, 0, __ATOMIC_RELEASE);
        return false;
}

static bool reach(struct stook_meta_range *r, uintptr_t end)
{
        uintptr_t have = __atomic_load_n(&r->enabled, __ATOMIC_ACQUIRE), want;

        if (STOOK_LIKELY(end <= have))
                return true;
        want = (end + STEP - 1) & ~(STEP - 1);
        if (want > r->size)
                want = r->size;
        stook_ranges_grown(want);
        if (!stook_os_enable((void *)(r->base + have), want - have))
                return false;
        while (have < want)
                if (__atomic_compare_exchange_n(&r->enabled, &have, want, true, __ATOMIC_RELEASE,
                                                __ATOMIC_ACQUIRE))
                        break;
        return true;
}

void stook_meta_start(void)
{
        struct stook_meta_range *r = &stook_meta_ranges[0];
        uintptr_t page = stook_os_page_bytes(), end = ((uintptr_t)first + sizeof(first)) & -page;

        r->base = ((uintptr_t)first + page - 1) & -page;
        r->size = r->enabled = end - r->base;
        __atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
        if (!stook_ranges_beside())
                return;
        BESIDE->base = stook_ranges_beside();
        BESIDE->size = STOOK_RANGES_BESIDE;
        __atomic_store_n(&BESIDE->state, 2, __ATOMIC_RELEASE);
}

void *stook_meta_last_page(void)
{
        struct stook_meta_range *r = &stook_meta_ranges[0];

        r->size = r->enabled -= stook_os_page_bytes();
        return (void *)(r->base + r->size);
}

void *stook_meta_reserve(size_t bytes, size_t align)
{
        struct stook_meta_range *r = BESIDE;
        size_t page = stook_os_page_bytes();
        void *at;

        bytes = (bytes + page - 1) & ~(page - 1);
        /* The end of the range, as long as most of it stays. */
        if (stook_ranges_beside() && bytes + align < r->size - STOOK_RANGES_BESIDE / 2) {
                r->size -= bytes + ((r->base + r->size - bytes) & (align - 1));
                return (void *)(r->base + r->size);
        }
        at = stook_os_reserve(bytes, align);
        if (at)
                stook_os_advise(at, bytes, STOOK_OS_NOHUGEPAGE);
        return at;
}

/*
 * 0: this range is used up, or there is no memory for it. Not inlined, for the depth of the stack.
 */
static STOOK_NOINLINE uintptr_t meta_range_bump(struct stook_meta_range *r, size_t bytes,
                                                size_t align)
{
        uintptr_t at, start = 0;

        stook_space_begin();
        at = __atomic_load_n(&r->bump, __ATOMIC_ACQUIRE);
        do {
                start = ((r->base + at + align - 1) & ~(uintptr_t)(align - 1)) - r->base;
                if (start + bytes > __atomic_load_n(&r->size, __ATOMIC_RELAXED) ||
                    !reach(r, start + bytes)) {
                        stook_space_end();
                        return 0;
                }
        } while (!__atomic_compare_exchange_n(&r->bump, &at, start + bytes, true, __ATOMIC_ACQUIRE,
                                              __ATOMIC_ACQUIRE));
        stook_space_end();
        return r->base + start;
}

void stook_meta_give_back(void)
{
        struct stook_meta_range *r = BESIDE;
        uintptr_t at = __atomic_load_n(&r->bump, __ATOMIC_RELAXED), size = r->size, keep;

        if (!stook_ranges_beside())
                return;
        while (!__atomic_compare_exchange_n(&r->bump, &at, size, true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED))
                ;
        keep = __atomic_load_n(&stook_space_reaching, __ATOMIC_SEQ_CST)    /* space_limit.c M1 */
                       ? size : __atomic_load_n(&r->enabled, __ATOMIC_ACQUIRE);
        if (keep < size) {
                __atomic_store_n(&r->size, keep, __ATOMIC_RELAXED);
                stook_os_unreserve((char *)r->base + keep, size - keep);
        }
        __atomic_store_n(&r->bump, at, __ATOMIC_RELEASE);
}

void *stook_meta_bump(size_t bytes, size_t align)
{
        size_t page = stook_os_page_bytes();

        if (align < 64)
                align = 64;
        bytes = (bytes + 63) & ~(size_t)63;
        if (align >= page)
                bytes = (bytes + page - 1) & ~(page - 1);
        for (uint32_t i = __atomic_load_n(&newest, __ATOMIC_RELAXED);; i++) {
                struct stook_meta_range *r = &stook_meta_ranges[i];
                size_t size = stook_ranges_limited() ? RANGE_LIMITED / 2 << i : RANGE_FREE;
                uintptr_t got;

                if (i == STOOK_META_RANGES)
                        return NULL;
                if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != 2) {
                        if (size < bytes * 2)
                                size = (bytes * 2 + STEP - 1) & ~(STEP - 1);
                        if (!meta_range_make(r, size)) {
                                if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == 1)
                                        continue; /* another thread makes it: no wait */
                                return NULL;
                        }
                }
                got = meta_range_bump(r, bytes, align);
                if (got)
                        return (void *)got;
                if (__atomic_load_n(&r->bump, __ATOMIC_RELAXED) + bytes + align <=
                    __atomic_load_n(&r->size, __ATOMIC_RELAXED))
                        return NULL;            /* room, but no memory behind it */
                /* Used up for small things: look at the next one first. */
                if (bytes < STEP) {
                        uint32_t was = i, next = i + 1 < STOOK_META_RANGES ? i + 1 : i;

                        __atomic_compare_exchange_n(&newest, &was, next, false, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED);
                }
        }
}

static void note_freed(struct stook_span *span)
{
        uint32_t at = __atomic_load_n(&freed.at, __ATOMIC_RELAXED) % FREED_LAST;

        __atomic_store_n(&span->use.ahead, __atomic_load_n(&freed.last[at], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&freed.last[at], span, __ATOMIC_RELAXED);
        __atomic_store_n(&freed.at, at + 1, __ATOMIC_RELAXED);
}

/* Descriptors are mostly wanted in a row: others come while the span of @span is cut. */
static void fetch_more(const struct stook_span *span)
{
        const struct stook_span *ahead = __atomic_load_n(&span->use.ahead, __ATOMIC_RELAXED);

        /* Stale: harmless. */
        __builtin_prefetch(__atomic_load_n(&span->link.next, __ATOMIC_RELAXED), 1);
        if (ahead) {
                __builtin_prefetch(ahead, 1);
                __builtin_prefetch(ahead->slab + STOOK_SPAN_SLAB_BYTES - 1, 1);
        }
}

struct stook_span *stook_meta_span_new(void)
{
        struct stook_link *link = stook_tagged_stack_pop(&spans);
        struct stook_span *span;

        if (!link) {
                struct stook_span_block *block = stook_meta_bump(sizeof(*block),
                                                           _Alignof(struct stook_span_block));
                struct stook_link *old;

                if (!block)
                        return NULL;
                /*
                 * Listed first: a walk must find all that are in use, whatever becomes of this
                 * thread in between.
                 */
                old = __atomic_load_n(&stook_span_blocks, __ATOMIC_RELAXED);
                do {
                        block->link.next = old;
                } while (!__atomic_compare_exchange_n(&stook_span_blocks, &old, &block->link, true,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
                for (unsigned i = 1; i < STOOK_SPAN_BLOCK; i++)
                        stook_tagged_stack_push(&spans, &block->span[i].link);
                return &block->span[0];
        }
        span = stook_container_of(link, struct stook_span, link);
        fetch_more(span);
        span->start = span->bytes = 0;
        span->state = span->own_mapping = 0;
        stook_span_set_node(span, 0);
        stook_span_set_age(span, 0);
        span->list.next = span->list.prev = NULL;
        stook_span_clear(span->slab, sizeof(span->slab));
        return span;
}

void stook_meta_span_free(struct stook_span *span)
{
        __atomic_store_n(&span->kind, STOOK_SPAN_UNUSED, __ATOMIC_RELAXED);
        note_freed(span);
        stook_tagged_stack_push(&spans, &span->link);
}

void stook_meta_span_for_each(void (*each)(struct stook_span *span, void *data), void *data)
{
        for (struct stook_link *l = __atomic_load_n(&stook_span_blocks, __ATOMIC_ACQUIRE); l;
             l = l->next) {
                struct stook_span_block *block = stook_container_of(l, struct stook_span_block,
                                                                    link);

                for (uint32_t i = 0; i < STOOK_SPAN_BLOCK; i++)
                        if (__atomic_load_n(&block->span[i].kind, __ATOMIC_RELAXED) !=
                            STOOK_SPAN_UNUSED)
                                each(&block->span[i], data);
        }
}

size_t stook_meta_bytes(void)
{
        size_t n = 0;

        for (unsigned i = 0; i < STOOK_META_RANGES; i++)
                n += __atomic_load_n(&stook_meta_ranges[i].bump, __ATOMIC_RELAXED);
        return n;
}
