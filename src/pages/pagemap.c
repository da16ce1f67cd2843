/*
 * Purpose: the pagemap beyond its fast case, see pagemap.h.
 */
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/source.h"
#include "pages/span.h"

_Static_assert(STOOK_SLAB_MAP_PAGES_MAX - 1 == STOOK_ENTRY_PAGE_MASK, "page number of an entry");
_Static_assert(_Alignof(struct stook_span) == 128,
               "the page number lies in the low bits of the descriptor's address");

static uint64_t *entry_of(uintptr_t addr)
{
        uintptr_t off = addr - stook_range.base;
        struct stook_range_record *r;

        if (STOOK_LIKELY(off < __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)))
                return &stook_range.entries[off >> STOOK_MAP_SHIFT];
        r = stook_range_of(addr);
        if (!r || addr - r->base >= __atomic_load_n(&r->bytes, __ATOMIC_ACQUIRE))
                return NULL;
        return &r->entries[(addr - r->base) >> STOOK_MAP_SHIFT];
}

uint64_t stook_pagemap_lookup_piece(uintptr_t addr)
{
        uint64_t *e = entry_of(addr);

        return e ? __atomic_load_n(e, __ATOMIC_RELAXED) : 0;
}

unsigned stook_address_node_of_piece(uintptr_t addr)
{
        struct stook_range_record *r = stook_range_of(addr);

        return r ? r->node : 0;
}

bool stook_pagemap_ours(uintptr_t addr)
{
        return stook_range_of(addr) != NULL;
}

void stook_pagemap_set(uintptr_t addr, uint64_t entry)
{
        uint64_t *e = entry_of(addr);

        if (e)
                __atomic_store_n(e, entry, __ATOMIC_RELEASE);
}

void stook_pagemap_prepare(uintptr_t start, size_t bytes)
{
        uintptr_t page = stook_os_page_bytes(), from, to;
        uint64_t *first = entry_of(start), *last = entry_of(start + bytes - STOOK_MAP_PAGE);

        if (!first || !last)
                return;
        from = (uintptr_t)first & ~(page - 1);
        to = (uintptr_t)(last + 1);
        stook_os_advise((void *)from, (to - from + page - 1) & ~(page - 1), STOOK_OS_POPULATE);
}

void stook_pagemap_set_slab(struct stook_span *span, unsigned cache_index)
{
        uint64_t *e = entry_of(span->start);
        uint64_t entry = stook_entry_of_slab(cache_index, span, span->start);

        for (size_t i = 0; i < span->bytes >> STOOK_MAP_SHIFT; i++)
                __atomic_store_n(&e[i], entry, __ATOMIC_RELEASE);
}

void stook_pagemap_clear_slab(struct stook_span *span)
{
        uint64_t *e = entry_of(span->start);

        for (size_t i = 0; i < span->bytes >> STOOK_MAP_SHIFT; i++)
                __atomic_store_n(&e[i], 0, __ATOMIC_RELEASE);
}
