/*
 * Purpose: stook_describe: what a program's own handler of faults says of an address.
 * Place: API; reads the map, caches and guarded samples, and changes nothing.
 * Concurrency: relaxed reads, any thread, any instruction.
 */
#include <errno.h>

#include <stook/sampling.h>
#include "cache/cache.h"
#include "cache/object_id.h"
#include "inspect/inspect.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "report/report.h"
#include "sample/sample.h"
#include "stack/stack.h"

static void put_place(struct stook_text *to, uintptr_t at, uintptr_t object, size_t bytes,
                      const char *what)
{
        bool before = at < object, behind = at >= object + bytes;

        stook_text_number(to, before ? object - at : behind ? at - object - bytes : at - object,
                          10);
        stook_text_words(to, before ? " bytes before " : behind ? " bytes behind "
                                                                : " bytes from the start of ");
        stook_text_words(to, what);
        stook_text_words(to, " of ");
        stook_text_number(to, bytes, 10);
        stook_text_words(to, " bytes at ");
        stook_text_pointer(to, (const void *)object);
}

static void put_track(struct stook_text *to, const char *did,
                      const struct stook_report_track *track)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL];
        unsigned count = stook_stack_frames(track->stack, frames, STOOK_ARRAY_SIZE(frames));

        stook_text_words(to, did);
        stook_text_number(to, track->thread, 10);
        stook_text_words(to, ":\n");
        stook_report_put_addresses(to, track->stack, frames, count);
}

static void put_sample(struct stook_text *to, uintptr_t at, const struct stook_report_about *about)
{
        put_place(to, at, (uintptr_t)about->object, about->object_bytes,
                  about->freed ? "a freed object" : "an object");
        stook_text_words(to, "\n");
        put_track(to, "  allocated by thread ", about->allocated);
        if (about->freed)
                put_track(to, "  freed by thread ", about->freed);
}

/* Whether it is in use is not said: that takes a walk. False: it lies in no memory of the heap. */
static bool put_other(struct stook_text *to, uintptr_t at)
{
        uint64_t entry = stook_pagemap_get(at);
        const struct stook_span *span = stook_entry_span(entry);
        unsigned index = stook_entry_cache(entry);

        if (index) {
                const struct stook_cache *cache = stook_cache_at(index);
                uint32_t offset = stook_entry_offset(entry, at);

                offset %= (uint32_t)cache->slabs.stride;
                put_place(to, at, at - offset, cache->object_size, "an object");
                stook_text_words(to, " of cache ");
                stook_text_plain(to, stook_cache_name(cache));
        } else if (span && stook_span_kind_of(span) == STOOK_SPAN_LARGE) {
                put_place(to, at, span->start + span->use.lead, stook_sample_usable(span),
                          "a large object");
        } else if (stook_pagemap_ours(at)) {
                stook_text_words(to, "free memory of the heap");
        } else {
                return false;
        }
        stook_text_words(to, "\n");
        return true;
}

STOOK_API int stook_describe(const void *pointer, char *text, size_t bytes)
{
        struct stook_text to = { .buffer = text, .room = bytes - 1 };
        struct stook_report_about about = { 0 };

        if (!text || !bytes)
                return -EINVAL;
        if (stook_guarded_describe((uintptr_t)pointer, &about))
                put_sample(&to, (uintptr_t)pointer, &about);
        else
                put_other(&to, (uintptr_t)pointer);
        text[to.bytes] = '\0';
        return (int)to.bytes;
}
