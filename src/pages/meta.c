/*
 * Purpose: storage for descriptors, sheaves, barns and caches, see meta.h.
 * A few regions of address space, each larger than the last, with an atomic bump in each. Memory is put behind
 * them in steps, content kept, so that two threads may do it at once.
 * Invariants:
 *  I1 bytes below `bump` belong to somebody for ever; bytes below `enabled` can be touched; bump may be above
 *     enabled only while somebody is in stook_meta_bump.
 *  I2 a descriptor that was ever handed out is in the block list: blocks are pushed, never removed.
 * Concurrency: M1: `enabled` is raised (release) after the pages are writable, read (acquire) before touching.
 */
#include <string.h>
#include "base/tagged_stack.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/range.h"
#include "pages/span.h"

#define REGIONS        24
#define REGION_FREE    ((size_t)32 << 30)       /* of address space, where nothing binds */
#define REGION_LIMITED ((size_t)2 << 20)        /* the first of doubling ones, where limits bind */
#define STEP           ((size_t)64 << 10)
#define SPAN_BLOCK     31                       /* descriptors made at once: with the word on them 4 KiB */

struct region {
        uintptr_t base, size;                   /* written before `state` is 2 (release) */
        uintptr_t bump;                         /* atomic: I1 */
        uintptr_t enabled;                      /* M1 */
        uint32_t  state;                        /* 0 free, 1 being made, 2 usable */
};

static struct region regions[REGIONS];
static uint32_t newest;                         /* atomic: index of the region to look at first */
static struct stook_tagged_stack spans;         /* free descriptors, linked through span->link */

struct span_block {
        struct stook_link link;
        struct stook_span span[SPAN_BLOCK];
};
_Static_assert(sizeof(struct span_block) == 4096, "a block is a page where pages are small, and wastes none where they are not");
static struct stook_link *span_blocks;          /* atomic: pushed only */

static bool region_make(struct region *r, size_t size)
{
        uint32_t none = 0;

        if (!__atomic_compare_exchange_n(&r->state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
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


static bool reach(struct region *r, uintptr_t end)
{
        uintptr_t have = __atomic_load_n(&r->enabled, __ATOMIC_ACQUIRE), want;

        if (STOOK_LIKELY(end <= have))
                return true;
        want = (end + STEP - 1) & ~(STEP - 1);
        if (want > r->size)
                want = r->size;
        if (!stook_os_enable((void *)(r->base + have), want - have))
                return false;
        while (have < want)
                if (__atomic_compare_exchange_n(&r->enabled, &have, want, true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
                        break;
        return true;
}

bool stook_meta_start(void)
{
        struct region *r = &regions[0];

        return region_make(r, stook_ranges_limited() ? REGION_LIMITED : REGION_FREE) && reach(r, STEP);
}

/* 0: this region is used up, or there is no memory for it. */
static uintptr_t region_bump(struct region *r, size_t bytes, size_t align)
{
        uintptr_t at = __atomic_load_n(&r->bump, __ATOMIC_RELAXED), start;

        do {
                start = (at + align - 1) & ~(uintptr_t)(align - 1);
                if (start + bytes > r->size || !reach(r, start + bytes))
                        return 0;
        } while (!__atomic_compare_exchange_n(&r->bump, &at, start + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return r->base + start;
}

void *stook_meta_bump(size_t bytes, size_t align)
{
        size_t page = stook_os_page_bytes();

        bytes = bytes >= page ? (bytes + page - 1) & ~(page - 1) : (bytes + 63) & ~(size_t)63;
        if (align < 64)
                align = 64;
        if (bytes >= page && align < page)
                align = page;
        for (uint32_t i = __atomic_load_n(&newest, __ATOMIC_RELAXED);; i++) {
                struct region *r = &regions[i];
                size_t size = stook_ranges_limited() ? REGION_LIMITED << i : REGION_FREE;
                uintptr_t got;

                if (i == REGIONS)
                        return NULL;
                if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != 2) {
                        if (size < bytes * 2)
                                size = (bytes * 2 + STEP - 1) & ~(STEP - 1);
                        if (!region_make(r, size)) {
                                if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == 1)
                                        continue;       /* somebody is making it; not to be waited for */
                                return NULL;
                        }
                }
                got = region_bump(r, bytes, align);
                if (got)
                        return (void *)got;
                if (r->bump + bytes + align <= r->size)
                        return NULL;            /* room, but no memory behind it */
                if (bytes < STEP) {             /* used up for small things: look at the next one first */
                        uint32_t was = i;

                        __atomic_compare_exchange_n(&newest, &was, i + 1 < REGIONS ? i + 1 : i, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
                }
        }
}

struct stook_span *stook_meta_span_new(void)
{
        struct stook_link *link = stook_tagged_stack_pop(&spans);
        struct stook_span *span;

        if (!link) {
                struct span_block *block = stook_meta_bump(sizeof(*block), _Alignof(struct span_block));
                struct stook_link *old;

                if (!block)
                        return NULL;
                for (unsigned i = 1; i < SPAN_BLOCK; i++)
                        stook_tagged_stack_push(&spans, &block->span[i].link);
                old = __atomic_load_n(&span_blocks, __ATOMIC_RELAXED);
                do {
                        block->link.next = old;
                } while (!__atomic_compare_exchange_n(&span_blocks, &old, &block->link, true, __ATOMIC_RELEASE,
                                                      __ATOMIC_RELAXED));
                return &block->span[0];
        }
        span = stook_container_of(link, struct stook_span, link);
        /* Descriptors are mostly wanted in a row; the next one's lines come while this one's span is cut. Stale: harmless. */
        __builtin_prefetch(__atomic_load_n(&link->next, __ATOMIC_RELAXED), 1);
        span->start = span->bytes = 0;
        span->state = span->node = span->own_mapping = 0;
        span->age_ms = 0;
        span->reserved = span->committed = 0;
        span->list.next = span->list.prev = NULL;
        memset(span->user, 0, sizeof(span->user));
        return span;
}

void stook_meta_span_free(struct stook_span *span)
{
        __atomic_store_n(&span->kind, STOOK_SPAN_UNUSED, __ATOMIC_RELAXED);
        stook_tagged_stack_push(&spans, &span->link);
}

void stook_meta_span_for_each(void (*each)(struct stook_span *span, void *data), void *data)
{
        for (struct stook_link *l = __atomic_load_n(&span_blocks, __ATOMIC_ACQUIRE); l; l = l->next) {
                struct span_block *block = stook_container_of(l, struct span_block, link);

                for (uint32_t i = 0; i < SPAN_BLOCK; i++)
                        if (block->span[i].kind != STOOK_SPAN_UNUSED)
                                each(&block->span[i], data);
        }
}

size_t stook_meta_bytes(void)
{
        size_t n = 0;

        for (unsigned i = 0; i < REGIONS; i++)
                n += __atomic_load_n(&regions[i].bump, __ATOMIC_RELAXED);
        return n;
}
