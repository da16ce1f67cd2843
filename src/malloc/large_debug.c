/*
 * Purpose: see large_debug.h. Of each object a struct stook_debug is made anew, from its span:
 * where its tail is, and how many bytes were asked for.
 */
#include "malloc/large_debug.h"

#include "debug/quarantine.h"
#include "pages/meta.h"
#include "process/checker.h"

uint64_t stook_large_debug;

void stook_large_debug_start(void)
{
        uint64_t flags = stook_debug_wanted(STOOK_DEBUG_LARGE);

        /* O: each of these would make an object need more pages. */
        if (flags & STOOK_DEBUG_O)
                flags = 0;
        if (!flags && stook_checker_is_on())
                flags = STOOK_DEBUG_CHECKED;
        if (flags & STOOK_DEBUG_Q)
                stook_quarantine_start(stook_debug_quarantine_bytes());
        stook_large_debug = flags;
}

static void *object_of(const struct stook_span *span)
{
        return (void *)span->start;
}

static struct stook_debug debug_of(const struct stook_span *span)
{
        struct stook_debug debug;

        stook_debug_init_large(&debug, stook_large_debug, object_of(span), 0, span->bytes);
        return debug;
}

void stook_large_debug_alloc(struct stook_span *span, size_t requested)
{
        struct stook_debug debug;

        stook_debug_init_large(&debug, stook_large_debug, NULL, requested, span->bytes);
        stook_debug_alloc_large(&debug, object_of(span), debug.object_bytes);
}

enum stook_debug_freed stook_large_debug_free(struct stook_span *span,
                                              struct stook_debug_free how)
{
        struct stook_debug debug = debug_of(span);

        return stook_debug_free(&debug, object_of(span), how);
}

bool stook_large_debug_leave(struct stook_span *span)
{
        struct stook_debug debug = debug_of(span);

        return stook_debug_leave(&debug, object_of(span));
}

bool stook_large_debug_resize(struct stook_span *span, size_t requested)
{
        struct stook_debug debug = debug_of(span);

        return stook_debug_resize(&debug, object_of(span), requested);
}

static void validate(struct stook_span *span, void *data)
{
        struct stook_debug debug;
        int *faults = data;

        if (stook_span_kind_of(span) != STOOK_SPAN_LARGE)
                return;
        debug = debug_of(span);
        *faults += stook_debug_validate_large(&debug, object_of(span));
}

int stook_large_debug_validate(void)
{
        int faults = 0;

        if (stook_large_debug)
                stook_meta_span_for_each(validate, &faults);
        return faults;
}

size_t stook_large_usable(const struct stook_span *span)
{
        struct stook_debug debug;

        if (STOOK_LIKELY(!stook_large_debug))
                return span->bytes;
        debug = debug_of(span);
        return stook_debug_requested(&debug, object_of(span));
}

uint32_t stook_large_stack(const struct stook_span *span)
{
        struct stook_report_about about = { 0 };
        struct stook_debug debug;

        if (!(stook_large_debug & STOOK_DEBUG_U))
                return 0;
        debug = debug_of(span);
        stook_debug_describe(&debug, object_of(span), &about);
        return about.allocated ? about.allocated->stack : 0;
}
