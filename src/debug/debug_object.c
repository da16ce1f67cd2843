/*
 * Purpose: an object of a debugged cache on its way: made, allocated, freed, resized. Each step
 * checks what the last one left, and changes the state (debug_modes.h).
 * Place: called by watch; what is right and wrong is in debug_check.c.
 */
#include <string.h>

#include "debug/debug_inside.h"
#include "process/checker.h"
#include "os/os.h"
#include "process/process.h"
#include "stack/stack.h"

/*
 * ---- what a memory checker (Valgrind or ASan, process/checker.h) is told ----
 * Where there is a checker, all caches without another mode have mode V. So the checker finds a use
 * after free, an overrun and a leak, as with its own malloc.
 *
 * Closed bytes are those that the checker reports an access to: the red zones, what the user did
 * not ask for, and a free object. The words of other layers and the tail are open, because the
 * library reads and writes them at any time. An object of a type-stable cache stays open for ever:
 * readers look at it when it is free. An object is closed while it has no user, and opened by the
 * thread that hands it out.
 */

static bool tells(const struct stook_debug *debug)
{
        return STOOK_UNLIKELY(debug->flags & STOOK_DEBUG_V);
}

static void close_between(const void *object, ptrdiff_t from, ptrdiff_t to)
{
        stook_checker_close((const char *)object + from, (size_t)(to - from));
}

void stook_debug_open(const struct stook_debug *debug, void *object)
{
        if (stook_checker_is_on())
                stook_checker_open((char *)object + debug->tail, debug->slabs->stride);
}

void stook_debug_close(const struct stook_debug *debug, void *object)
{
        if (!tells(debug))
                return;
        close_between(object, debug->tail + (ptrdiff_t)STOOK_TAIL_BYTES, 0);
        if (debug->closes)
                close_between(object, 0, (ptrdiff_t)debug->words);
        close_between(object, (ptrdiff_t)debug->words_end, (ptrdiff_t)debug->zone_end);
}

void stook_debug_close_large(const struct stook_debug *debug, void *object)
{
        if (tells(debug))
                close_between(object, 0, debug->tail);
}

/* Bytes that are open. The checkers want one at least, so malloc(0) has one. */
static size_t usable(size_t requested)
{
        return requested ? requested : 1;
}

static size_t usable_now(const struct stook_debug *debug, const void *object)
{
        return usable(stook_debug_bytes(debug, object));
}

void stook_debug_tell_alloc(const struct stook_debug *debug, void *object)
{
        if (tells(debug) && debug->closes)
                stook_checker_begin(object, usable_now(debug, object), debug->ctor);
}

void stook_debug_tell_resize(const struct stook_debug *debug, void *object, size_t to)
{
        if (tells(debug) && debug->closes)
                stook_checker_resize(object, usable_now(debug, object), usable(to));
}

void stook_debug_tell_free(const struct stook_debug *debug, void *object)
{
        if (tells(debug) && debug->closes)
                stook_checker_end(object, usable_now(debug, object));
}

/* ---- the life of an object ---- */

enum { ALLOCATED, FREED };

#define IN_ITS_SLAB "it is free in its slab already, or was never handed out"

static void track(const struct stook_debug *debug, void *object, int what)
{
        if (debug->flags & STOOK_CACHE_STORE_USER)
                stook_tail(debug, object)->tracks[what] = (struct stook_report_track){
                        .thread = stook_process_thread_id(),
                        .stack = stook_stack_here(0),
                        .at_ms = stook_os_clock_ms(),
                };
}

static STOOK_COLD void tell_trace(const struct stook_debug *debug, const char *what,
                                  const void *object, size_t bytes)
{
        char text[192];
        size_t n = stook_report_format(text, sizeof(text), "stook: %s %s %p, %u bytes, thread %u\n",
                                       what, debug->name, object, (uint64_t)bytes,
                                       (uint64_t)stook_process_thread_id());

        stook_os_write(text, n);
}

static void trace(const struct stook_debug *debug, const char *what, const void *object,
                  size_t bytes)
{
        if (STOOK_UNLIKELY(debug->flags & STOOK_CACHE_TRACE))
                tell_trace(debug, what, object, bytes);
}

static uint64_t group_word(const struct stook_debug *debug, const void *object)
{
        return debug->accounted ? *(const uint64_t *)((uintptr_t)object + debug->words) : 0;
}

/* C: of caches with a constructor whose objects are charged to no group. */
static bool checks_content(const struct stook_debug *debug)
{
        return (debug->flags & STOOK_DEBUG_C) && debug->ctor && !debug->accounted;
}

static void clear_tail(const struct stook_debug *debug, void *object)
{
        memset(stook_tail(debug, object), 0, stook_tail_bytes(debug->flags));
}

/* ---- made, allocated ---- */

void stook_debug_make(void *object, void *data)
{
        const struct stook_debug *debug = data;

        stook_debug_open(debug, object);
        clear_tail(debug, object);
        stook_debug_fill_zones(debug, object, debug->object_bytes, STOOK_BYTE_FREE);
        stook_debug_poison(debug, object);
        if (debug->ctor)
                debug->ctor(object, debug->ctor_data);
        if (checks_content(debug))
                stook_tail(debug, object)->word = stook_debug_content(debug, object);
        stook_debug_close(debug, object);
        stook_debug_set_state(debug, object, STOOK_STATE_FREE);
}

void stook_debug_unmake(void *object, void *data)
{
        const struct stook_debug *debug = data;

        stook_debug_open(debug, object);
        debug->dtor(object, debug->ctor_data);
        stook_debug_close(debug, object);
}

/* An object that is at fault. It stays out of its slab for ever. */
static STOOK_COLD bool isolate(const struct stook_debug *debug, void *object,
                               struct stook_wrong *wrong, const char *detail)
{
        if (!stook_debug_is_state(stook_debug_state(debug, object))) {
                wrong->lost = true;
                clear_tail(debug, object);
                stook_debug_set_bytes(debug, object, debug->object_bytes);
        }
        stook_debug_set_state(debug, object, STOOK_STATE_ISOLATED);
        stook_debug_report(debug, wrong->fault, object, wrong, detail, false);
        return false;
}

/* What is known of an object's last life is that of the life before it, from now on. */
static void begin_life(const struct stook_debug *debug, void *object)
{
        struct stook_report_track *tracks = stook_tail(debug, object)->tracks;

        if (!(debug->flags & STOOK_CACHE_STORE_USER))
                return;
        tracks[2] = tracks[ALLOCATED];
        tracks[3] = tracks[FREED];
        /* A fault that is found when the object is freed is not the work of its user before. */
        tracks[FREED].thread = 0;
        track(debug, object, ALLOCATED);
}

static void hand_out(const struct stook_debug *debug, void *object, size_t bytes)
{
        if (!checks_content(debug))
                stook_tail(debug, object)->word = group_word(debug, object);
        stook_tail(debug, object)->made_by = 0;
        stook_debug_set_bytes(debug, object, bytes);
        stook_debug_fill_zones(debug, object, bytes, STOOK_BYTE_LIVE);
        begin_life(debug, object);
        stook_debug_tell_alloc(debug, object);
        stook_debug_set_state(debug, object, STOOK_STATE_LIVE);
        trace(debug, "alloc", object, bytes);
}

bool stook_debug_alloc(const struct stook_debug *debug, void *object, size_t bytes)
{
        struct stook_wrong wrong = { .fault = STOOK_FAULT_CORRUPT };

        if (STOOK_UNLIKELY(!stook_debug_free_is_whole(debug, object, &wrong)))
                return isolate(debug, object, &wrong, "found when the object was to be allocated");
        if (STOOK_UNLIKELY(stook_debug_state(debug, object) != STOOK_STATE_FREE))
                return isolate(debug, object, &wrong, STOOK_OVERWRITTEN);
        /* Until it is LIVE: what a fork leaves behind of it in a child is not checked. */
        stook_debug_set_state(debug, object, STOOK_STATE_ISOLATED);
        hand_out(debug, object, bytes);
        return true;
}

void stook_debug_alloc_large(const struct stook_debug *debug, void *object, size_t bytes)
{
        clear_tail(debug, object);
        stook_debug_close_large(debug, object);
        hand_out(debug, object, bytes);
}

/* ---- freed ---- */

static const char *double_free_detail(uint32_t state)
{
        switch (state) {
        case STOOK_STATE_QUARANTINED:
                return "it is in the quarantine";
        case STOOK_STATE_WAITING:
                return "it was freed by RCU and waits for readers";
        case STOOK_STATE_ISOLATED:
                return "it was isolated by an earlier report";
        default:
                return "it is free already";
        }
}

/* A free of an object that is not live, but in @state. It is reported. */
static STOOK_COLD void refuse(const struct stook_debug *debug, void *object, uint32_t state)
{
        struct stook_wrong wrong;

        if (stook_debug_is_state(state)) {
                stook_debug_report(debug, STOOK_FAULT_DOUBLE_FREE, object, NULL,
                                   double_free_detail(state), false);
                return;
        }
        stook_debug_look_around(debug, object, &wrong);
        isolate(debug, object, &wrong, STOOK_OVERWRITTEN);
}

/*
 * I1: from @from to ISOLATED, which it is until the caller knows better: a second free meanwhile is
 * refused. False: refused, and reported.
 */
static bool begin_free(const struct stook_debug *debug, void *object, uint32_t from)
{
        uint32_t state = from;

        /* What is in its slab may have no state yet. */
        if (STOOK_UNLIKELY(debug->slabs && !stook_slab_object_out(debug->slabs, object))) {
                stook_debug_report(debug, STOOK_FAULT_DOUBLE_FREE, object, NULL,
                                   IN_ITS_SLAB, false);
                return false;
        }
        if (STOOK_LIKELY(__atomic_compare_exchange_n(&stook_tail(debug, object)->state, &state,
                                                     STOOK_STATE_ISOLATED, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_RELAXED)))
                return true;
        refuse(debug, object, state);
        return false;
}

static STOOK_COLD bool refuse_size(const struct stook_debug *debug, void *object, size_t bytes)
{
        char detail[96];

        stook_report_format(detail, sizeof(detail), "freed with %u bytes, allocated with %u",
                            (uint64_t)bytes, (uint64_t)stook_debug_bytes(debug, object));
        stook_debug_report(debug, STOOK_FAULT_WRONG_SIZE, object, NULL, detail, false);
        return false;
}

static STOOK_COLD bool refuse_content(const struct stook_debug *debug, void *object)
{
        stook_debug_report(debug, STOOK_FAULT_CORRUPT, object, NULL,
                           "freed in a state that its constructor did not make", false);
        return false;
}

/* A free begun as above: is the object as it should be? If not, it stays isolated. */
static bool is_good(const struct stook_debug *debug, void *object, struct stook_debug_free how)
{
        struct stook_wrong wrong;

        if (STOOK_UNLIKELY(!stook_debug_live_is_whole(debug, object, how.waited, &wrong)))
                return isolate(debug, object, &wrong, "found when the object was freed");
        if (how.has_size && (debug->flags & STOOK_CACHE_CHECK) &&
            STOOK_UNLIKELY(how.bytes != stook_debug_bytes(debug, object)))
                return refuse_size(debug, object, how.bytes);
        if (checks_content(debug) && how.ends &&
            STOOK_UNLIKELY(stook_tail(debug, object)->word != stook_debug_content(debug, object)))
                return refuse_content(debug, object);
        return true;
}

enum stook_debug_freed stook_debug_free(const struct stook_debug *debug, void *object,
                                        struct stook_debug_free how)
{
        bool waits = debug->flags & STOOK_CACHE_QUARANTINE;

        how.ends = true;
        if (!begin_free(debug, object, how.waited ? STOOK_STATE_WAITING : STOOK_STATE_LIVE) ||
            !is_good(debug, object, how))
                return STOOK_DEBUG_KEPT;
        if (!how.waited)
                track(debug, object, FREED);
        trace(debug, "free", object, stook_debug_bytes(debug, object));
        stook_debug_tell_free(debug, object);
        stook_debug_poison(debug, object);
        stook_debug_fill_zones(debug, object, debug->object_bytes, STOOK_BYTE_FREE);
        stook_debug_set_state(debug, object, waits ? STOOK_STATE_QUARANTINED : STOOK_STATE_FREE);
        return waits ? STOOK_DEBUG_QUARANTINED : STOOK_DEBUG_GOES;
}

bool stook_debug_wait(const struct stook_debug *debug, void *object)
{
        if (!begin_free(debug, object, STOOK_STATE_LIVE) ||
            !is_good(debug, object, (struct stook_debug_free){ 0 }))
                return false;
        track(debug, object, FREED);
        stook_debug_set_state(debug, object, STOOK_STATE_WAITING);
        return true;
}

void stook_debug_wait_undo(const struct stook_debug *debug, void *object)
{
        stook_debug_set_state(debug, object, STOOK_STATE_LIVE);
}

bool stook_debug_leave(const struct stook_debug *debug, void *object)
{
        struct stook_wrong wrong = { .fault = STOOK_FAULT_CORRUPT };

        if (STOOK_UNLIKELY(!stook_debug_free_is_whole(debug, object, &wrong)))
                return isolate(debug, object, &wrong, "found when the object left the quarantine");
        if (STOOK_UNLIKELY(stook_debug_state(debug, object) != STOOK_STATE_QUARANTINED))
                return isolate(debug, object, &wrong, STOOK_OVERWRITTEN);
        stook_debug_set_state(debug, object, STOOK_STATE_FREE);
        return true;
}

/* ---- which entry point an object is of ---- */

void stook_debug_made(const struct stook_debug *debug, void *object, unsigned by)
{
        stook_tail(debug, object)->made_by = (uint8_t)by;
}

bool stook_debug_goes(const struct stook_debug *debug, const void *object, unsigned by,
                      unsigned *was)
{
        if (!stook_slab_object_out(debug->slabs, object) ||
            stook_debug_state(debug, object) != STOOK_STATE_LIVE)
                return true;
        *was = stook_tail(debug, object)->made_by;
        return *was == by;
}

void stook_debug_report_mismatch(const struct stook_debug *debug, const void *object,
                                 const char *detail)
{
        stook_debug_report(debug, STOOK_FAULT_MISMATCH, object, NULL, detail, false);
}

/* ---- sizes ---- */

size_t stook_debug_requested(const struct stook_debug *debug, const void *object)
{
        if ((debug->slabs && !stook_slab_object_out(debug->slabs, object)) ||
            stook_debug_state(debug, object) != STOOK_STATE_LIVE)
                return STOOK_NO_OBJECT;
        return stook_debug_bytes(debug, object);
}

bool stook_debug_resize(const struct stook_debug *debug, void *object, size_t bytes)
{
        if (!begin_free(debug, object, STOOK_STATE_LIVE) ||
            !is_good(debug, object, (struct stook_debug_free){ 0 }))
                return false;
        stook_debug_tell_resize(debug, object, bytes);
        stook_debug_set_bytes(debug, object, bytes);
        stook_debug_fill_zones(debug, object, bytes, STOOK_BYTE_LIVE);
        track(debug, object, ALLOCATED);
        stook_debug_set_state(debug, object, STOOK_STATE_LIVE);
        trace(debug, "resize", object, bytes);
        return true;
}

/* ---- the end ---- */

static void release_isolated(void *object, void *slab, bool out, void *data)
{
        const struct stook_debug *debug = data;

        (void)slab;
        if (!out || stook_debug_state(debug, object) != STOOK_STATE_ISOLATED)
                return;
        stook_debug_make(object, data);
        stook_slab_drain(debug->slabs, 1, &object);
}

void stook_debug_end(const struct stook_debug *debug)
{
        stook_slabs_for_each_made(debug->slabs, release_isolated, (void *)(uintptr_t)debug);
}
