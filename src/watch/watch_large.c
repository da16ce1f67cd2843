/*
 * Purpose: large objects that are watched. STOOK_DEBUG knows them by the name "malloc-large". Their
 * debug modes are what debug/debug_modes.h says of an object of a cache, on a span:
 *
 *      what was asked for | red zone | tail                    to the end of the span
 *
 * Before it, and behind its span, mode Z has a page without access (harden/guard.c). A free large
 * object has no state, for its span is closed, and given back later. In the quarantine it is a span
 * of kind LARGE still.
 * With Z=guard all objects of classes with Z are such, and the tail is at the beginning:
 *
 *      tail | red zone | what was asked for, to its alignment  to the end of the span
 *
 * So a read or a write behind the object, or after its free, stops at the instruction. It waits for
 * nothing in the quarantine: its pages are closed at once.
 *
 * Of a large object with debug modes a struct stook_debug is made anew at each call, from its span:
 * where its tail is, and how many bytes were asked for.
 * Place: called by malloc through stook_watch_duties, and by watch_malloc.c.
 * Concurrency: what options ask for is const after the start. An object is its caller's.
 */
#include "watch/watch.h"

#include <errno.h>
#include <string.h>

#include "group/group.h"
#include "process/checker.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "profile/profile.h"
#include "report/report.h"
#include "record/record.h"

/* All const after the start. */
uint64_t stook_large_debug;
bool stook_large_guards;

/* ---- start ---- */

void stook_watch_large_start(void)
{
        uint64_t flags = stook_debug_wanted(STOOK_DEBUG_LARGE);

        /* O: each of these would make an object need more pages. */
        if (flags & STOOK_DEBUG_O)
                flags = 0;
        if (!(flags & ~(uint64_t)STOOK_CACHE_STORE_USER) && stook_checker_is_on())
                flags |= STOOK_DEBUG_CHECKED;
        stook_large_guards = stook_debug_guards() && (flags & STOOK_CACHE_RED_ZONE);
        if (stook_large_guards)
                flags &= ~(uint64_t)STOOK_CACHE_QUARANTINE;
        if (flags & STOOK_CACHE_QUARANTINE)
                stook_quarantine_start(stook_debug_quarantine_bytes());
        stook_large_debug = flags;
        stook_large_options.guarded = stook_is_hardened(STOOK_HARDEN_GUARD) ||
                                      (flags & STOOK_CACHE_RED_ZONE);
        stook_large_options.exact = flags || stook_large_options.guarded;
        stook_large_options.watched = stook_malloc_is_watched || stook_large_options.guarded ||
                                      stook_is_hardened(STOOK_HARDEN_CANARY);
}

/* ---- recordings and profiles ---- */

static void observe_alloc(const void *object, size_t bytes)
{
        static const struct stook_record_cache large = { .name = "large" };

        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_alloc(object, bytes);
        if (stook_cache_options.watch & STOOK_WATCH_RECORD)
                stook_record_alloc(&large, object, bytes);
}

static void observe_free(const void *object)
{
        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (stook_cache_options.watch & STOOK_WATCH_RECORD)
                stook_record_free(object, false);
}

/* To a profile a resize is a free, and an allocation by the call that resizes. */
static void *resize_observed(struct stook_span *span, size_t size)
{
        void *before = (void *)span->start, *object;
        struct stook_record_buffer *b = NULL;

        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_free(before);
        if (stook_cache_options.watch & STOOK_WATCH_RECORD)
                b = stook_record_resize_begin();
        object = stook_heap_duties.resize(span, size);
        stook_record_resize_end(b, before, object, size);
        if (object && (stook_cache_options.watch & STOOK_WATCH_PROFILE))
                stook_profile_alloc(object, size);
        return object;
}

/* ---- debug modes ---- */

static void *object_of(const struct stook_span *span)
{
        return (void *)(span->start + span->use.lead);
}

static struct stook_debug debug_of(const struct stook_span *span)
{
        struct stook_debug debug;

        stook_debug_init_large(&debug, stook_large_debug, object_of(span), 0, span->bytes,
                               span->use.lead);
        return debug;
}

/* The pages may be of a slab that was closed to the program (process/checker.h). */
static void open_pages(const struct stook_span *span)
{
        if (stook_checker_is_on())
                stook_checker_open((void *)span->start, span->bytes);
}

/*
 * Hardening: of the bytes behind what was asked for, in an object's last page, this many are a
 * canary.
 */
#define CANARY_MOST 64

static void write_canary(struct stook_span *span, size_t size)
{
        uint8_t *at = (uint8_t *)span->start + size;

        if (span->bytes - size > UINT16_MAX || !stook_is_hardened(STOOK_HARDEN_CANARY) ||
            stook_large_debug)
                return;
        span->use.slack = (uint16_t)(span->bytes - size);
        memset(at, (uint8_t)stook_seal_canary(stook_seal_key(at)),
               span->use.slack < CANARY_MOST ? span->use.slack : CANARY_MOST);
}

static bool canary_is_whole(const struct stook_span *span)
{
        const uint8_t *at = (uint8_t *)span->start + span->bytes - span->use.slack;
        uint8_t expected = (uint8_t)stook_seal_canary(stook_seal_key(at));

        for (uint32_t i = 0; i < span->use.slack && i < CANARY_MOST; i++)
                if (STOOK_UNLIKELY(at[i] != expected))
                        return false;
        return true;
}

static struct stook_report_about about_canary(const struct stook_span *span, const char *detail)
{
        return (struct stook_report_about){
                .fault = STOOK_FAULT_OVERRUN, .object = object_of(span),
                .object_bytes = span->bytes - span->use.slack, .cache_name = STOOK_DEBUG_LARGE,
                .slab = object_of(span), .detail = detail,
        };
}

static void check_canary(const struct stook_span *span)
{
        struct stook_report_about about;

        if (STOOK_LIKELY(canary_is_whole(span)))
                return;
        about = about_canary(span, "bytes behind the object were written, found when it was freed");
        stook_report_about(&about);
}

static void find_canary(struct stook_span *span, void *data)
{
        struct stook_report_about about;
        int *faults = data;

        if (stook_span_kind_of(span) != STOOK_SPAN_LARGE || canary_is_whole(span))
                return;
        about = about_canary(span, "bytes behind the object were written, found by a check of all "
                                   "objects");
        ++*faults;
        stook_report_about_found(&about);
}

int stook_large_canaries_validate(void)
{
        int faults = 0;

        if (stook_is_hardened(STOOK_HARDEN_CANARY) && !stook_large_debug)
                stook_meta_span_for_each(find_canary, &faults);
        return faults;
}

/*
 * The object of @size is to end where @span does, as far as @align lets it. Where it cannot, it
 * begins where the span does: that of an aligned call for more than a class has.
 */
static void lead(struct stook_span *span, size_t align, size_t size, uint64_t how)
{
        size_t step = align > 16 ? align : 16, before;

        before = span->bytes - ((size + !size + step - 1) & ~(step - 1));
        if (!stook_large_guards || !span->use.guarded || align > stook_os_page_bytes() ||
            (align == 1 && (how & STOOK_HOW_ALIGNED)) || before > UINT16_MAX)
                return;
        span->use.guarded = STOOK_GUARDED_DEBUG;
        span->use.lead = (uint16_t)before;
        stook_pagemap_set(span->start + before, (uint64_t)(uintptr_t)span);
}

/* A span, all of which is open (process/checker.h), becomes an object. */
static STOOK_NOINLINE void debug_alloc(struct stook_span *span, size_t requested, uint64_t how)
{
        struct stook_debug debug;

        stook_debug_init_large(&debug, stook_large_debug, NULL, requested, span->bytes,
                               span->use.lead);
        stook_debug_alloc_large(&debug, object_of(span), debug.object_bytes);
        if (stook_checker_is_on() && (how & STOOK_HOW_ZERO))
                stook_checker_open(object_of(span), requested);         /* it was zeroed */
}

/* Hardening: what was an object. The content of a mapping goes with its pages, if it can. */
static void wipe(struct stook_span *span)
{
        open_pages(span);
        if (span->own_mapping)
                span->use.wiped = 1;
        else
                memset((void *)span->start, 0, span->bytes);
}

/* After stook_large_end. */
static void give(struct stook_span *span, uint64_t how)
{
        check_canary(span);
        if (stook_is_hardened(STOOK_HARDEN_ZERO_FREE))
                wipe(span);
        stook_large_give(span, how);
}

/* A free. Where no live object begins, it is reported, and does nothing else. */
static STOOK_NOINLINE void debug_free(struct stook_span *span, uint64_t how,
                                      struct stook_debug_free as)
{
        struct stook_debug debug = debug_of(span);
        enum stook_debug_freed freed = stook_debug_free(&debug, object_of(span), as);

        if (freed == STOOK_DEBUG_KEPT)
                return;
        observe_free(object_of(span));
        if (freed == STOOK_DEBUG_GOES) {
                if (stook_large_end(span))
                        give(span, how);
                return;
        }
        /* As watch.c: a program under a checker has the limits that it has without. */
        if ((stook_large_debug & STOOK_DEBUG_V) && span->use.group) {
                stook_group_uncharge(span->use.group, span->bytes);
                span->use.group = 0;
        }
        stook_large_leave_heap(span);
        stook_watch_quarantine(object_of(span), span->bytes, how);
}

size_t stook_watch_large_leave(void *object, uint64_t how)
{
        struct stook_span *span = stook_span_large_at((uintptr_t)object);
        struct stook_debug debug = debug_of(span);
        size_t bytes = span->bytes;

        if (stook_debug_leave(&debug, object) && stook_large_end(span))
                give(span, how);
        return bytes;
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

size_t stook_watch_large_usable(const struct stook_span *span)
{
        struct stook_debug debug;

        if (STOOK_LIKELY(!stook_large_debug))
                return span->bytes - span->use.slack;
        debug = debug_of(span);
        return stook_debug_requested(&debug, object_of(span));
}

uint32_t stook_large_stack(const struct stook_span *span)
{
        struct stook_report_about about = { 0 };
        struct stook_debug debug;

        if (!(stook_large_debug & STOOK_CACHE_STORE_USER))
                return 0;
        debug = debug_of(span);
        stook_debug_describe(&debug, (void *)span->start, &about);
        return about.allocated ? about.allocated->stack : 0;
}

void stook_watch_large_describe(const struct stook_span *span, struct stook_report_about *about)
{
        struct stook_debug debug;

        if (!stook_large_debug)
                return;
        debug = debug_of(span);
        stook_debug_describe(&debug, (void *)span->start, about);
}

void stook_watch_describe_freed(const void *pointer, struct stook_report_about *about)
{
        const struct stook_span *span = stook_guard_closed_at((uintptr_t)pointer);

        if (!stook_large_debug || !span || !stook_os_enable((void *)span->start, span->bytes))
                return;
        if (pointer == object_of(span))
                about->fault = STOOK_FAULT_DOUBLE_FREE;
        about->cache_name = STOOK_DEBUG_LARGE;
        stook_watch_large_describe(span, about);
}

/* ---- the calls ---- */

/* More than there can be. With F a report: it is a negative number, mostly. */
static STOOK_COLD void *refuse_size(size_t size)
{
        char detail[96];

        if (!(stook_large_debug & STOOK_CACHE_CHECK))
                return NULL;
        stook_report_format(detail, sizeof(detail), "%u bytes were asked for, or -%u",
                            (uint64_t)size, (uint64_t)(0 - size));
        stook_report_event(&(struct stook_report_about){
                .fault = STOOK_FAULT_WRONG_SIZE, .detail = detail,
        });
        return NULL;
}

/* As stook_watch_compare. A heap's objects have no entry point: any call frees them. */
static void compare_large(const struct stook_span *span, unsigned is)
{
        if (STOOK_LIKELY(!__atomic_load_n(&span->use.heap, __ATOMIC_RELAXED)))
                stook_watch_compare(NULL, object_of(span), span->use.made_by, is);
}

void *stook_watch_large_alloc(size_t align, size_t size, uint64_t how)
{
        size_t room = stook_debug_large_room(stook_large_debug);
        size_t requested = stook_how_has_size(how) ? stook_how_size(how) : size, most;
        bool whole = stook_is_hardened(STOOK_HARDEN_ZERO_ALLOC);
        struct stook_span *span;

        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return refuse_size(size);
        if (STOOK_UNLIKELY(align > PTRDIFF_MAX) || stook_fail_strikes_large(size))
                return NULL;
        span = stook_large_take(align, size + room, how);
        if (!span)
                return NULL;
        open_pages(span);
        lead(span, align, requested, how);
        most = span->bytes - span->use.lead;
        if (((how & STOOK_HOW_ZERO) || whole) && !stook_span_is_zero(span))
                memset(object_of(span), 0, whole || size > most ? most : size);
        if (!(how & STOOK_HOW_ZERO))
                stook_span_will_be_written(span);
        if (stook_large_debug)
                debug_alloc(span, requested, how);
        write_canary(span, requested);
        span->use.made_by = (uint8_t)stook_how_by(how);
        stook_large_begin(span, size);
        observe_alloc(object_of(span), size);
        return object_of(span);
}

bool stook_watch_large_free(struct stook_span *span, uint64_t how)
{
        compare_large(span, stook_how_by(how));
        if (stook_large_debug) {
                debug_free(span, how, (struct stook_debug_free){ 0 });
                return true;
        }
        if (!stook_large_end(span))
                return false;
        observe_free(object_of(span));
        give(span, how);
        return true;
}

bool stook_watch_large_free_sized(struct stook_span *span, size_t size, uint64_t how)
{
        char detail[96];

        if (stook_large_debug) {
                compare_large(span, stook_how_by(how));
                debug_free(span, 0, (struct stook_debug_free){ .has_size = true, .bytes = size });
                return true;
        }
        if (STOOK_LIKELY(!stook_malloc_pairs || !stook_is_hardened(STOOK_HARDEN_CANARY) ||
                         size == span->bytes - span->use.slack))
                return false;
        stook_report_format(detail, sizeof(detail), "freed with %u bytes, allocated with %u",
                            (uint64_t)size, (uint64_t)(span->bytes - span->use.slack));
        stook_report_about(&(struct stook_report_about){
                .fault = STOOK_FAULT_WRONG_SIZE, .object = object_of(span), .detail = detail,
                .cache_name = STOOK_DEBUG_LARGE, .slab = object_of(span),
        });
        return true;
}

/* An object that stays where it is. NULL: a debug mode found it at fault. */
static void *stays(struct stook_span *span, size_t size)
{
        struct stook_debug debug;

        if (!stook_large_debug) {
                check_canary(span);
                write_canary(span, size);
                return object_of(span);
        }
        debug = debug_of(span);
        return stook_debug_resize(&debug, object_of(span), size) ? object_of(span) : NULL;
}

/*
 * With these an object's end is not moved, nor are its bytes left behind. In debug modes the bytes
 * behind an object are its red zone and tail.
 */
static bool is_replaced(void)
{
        return stook_large_debug ||
               stook_is_hardened(STOOK_HARDEN_GUARD | STOOK_HARDEN_CANARY |
                                 STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC);
}

/* Shrinking never fails but for an object at fault. */
void *stook_watch_large_resize(struct stook_span *span, size_t size, size_t usable)
{
        uint64_t how = (uint64_t)span->use.made_by << STOOK_HOW_BY_SHIFT;
        void *other;

        compare_large(span, STOOK_BY_MALLOC);
        if (size <= STOOK_CLASS_MAX && size <= usable / 2) {
                other = stook_watch_copy(object_of(span), size, usable, how);
                return other ? other : stays(span, size);
        }
        if (!is_replaced()) {
                if (size > span->bytes && size <= PTRDIFF_MAX && stook_fail_strikes_large(size))
                        return NULL;
                return resize_observed(span, size);
        }
        if (size <= usable && !span->use.lead && !stook_large_is_worth_shrinking(usable, size))
                return stays(span, size);
        other = stook_heap_duties.beside(object_of(span), size, true);
        if (!other)
                return size <= usable ? stays(span, size) : NULL;
        memcpy(other, object_of(span), size < usable ? size : usable);
        stook_large_free(object_of(span), how);
        return other;
}
