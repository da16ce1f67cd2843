/*
 * Purpose: large objects: spans straight from the pages, grown in place, moved by the page
 * tables.
 * Place: the one part of malloc that skips caches, slots, barns and slabs.
 * Concurrency: the object's owner alone resizes it; a free races with nothing but another, faulty,
 * free (malloc.h).
 * Failure: no memory leaves everything as it was.
 */
#include <string.h>
#include "base/byte.h"
#include "base/probe.h"
#include "base/thread.h"
#include "cache/cache_watch.h"
#include "group/group.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/purge.h"
#include "home/home.h"
#include "process/checker.h"
#include "slot/slot_trip.h"
#include "stat/counter.h"

/*
 * A growing object gets an eighth more than asked for: it will grow again. The same share that
 * classes waste at most; pages of it that were never touched cost none. One that has to move
 * gets a quarter, so that it moves seldom. Above 32 MiB the pages themselves keep room behind
 * what they move (pages/own_mapping.c), and exact sizes do.
 */
#define GROWTH_SHARE 8
#define MOVED_SHARE  4
/*
 * An object that shrinks by less than this share of its span, and by fewer bytes than this, keeps
 * the span: less is not worth splitting it. What growth got ahead stays below both, or the next,
 * larger size would give it back.
 */
#define SHRINK_SHARE 5
#define SHRINK_BYTES ((size_t)1 << 20)

/*
 * New objects below 32 MiB get a size of 32 to a doubling. What is freed then fits what is asked
 * for next more often, and fewer different pages become the first of an object. At most a 32nd is
 * wasted; of pages that were never touched it costs nothing. Measured with 64 objects of 64 KiB to
 * 2 MiB, replaced at random, ns a replacement: exact 957, 32 to a doubling 567.
 */
#define SIZES_LOG 5

/* No process has so much address space: caches are not asked to spare memory for it. */
#define SIZE_HOPELESS ((size_t)1 << 48)

struct stook_large_options stook_large_options;
uint64_t stook_large_count;

size_t stook_large_rounded(size_t size)
{
        size_t step;

        if (size <= STOOK_CLASS_MAX || size > STOOK_SPAN_OWN_MAPPING || stook_large_options.exact)
                return size;
        step = (size_t)1 << (63 - (unsigned)__builtin_clzl(size) - SIZES_LOG);
        return (size + step - 1) & ~(step - 1);
}

static void large_set_kind(struct stook_span *span, enum stook_span_kind kind)
{
        /* Release, for lookups of a pointer that its owner passed on: they acquire the kind. */
        __atomic_store_n(&span->kind, (uint8_t)kind, __ATOMIC_RELEASE);
}

static bool large_charge(struct stook_span *span, uint16_t group, unsigned how)
{
        if (STOOK_UNLIKELY(group != 0) && !stook_group_charge(group, span->bytes, how))
                return false;
        span->use.group = group;
        return true;
}

static void large_uncharge(struct stook_span *span, size_t bytes)
{
        if (STOOK_UNLIKELY(span->use.group != 0))
                stook_group_uncharge(span->use.group, bytes);
}

void stook_large_leave_heap(struct stook_span *span)
{
        if (STOOK_UNLIKELY(span->use.heap != NULL))
                stook_heap_duties.left(span);
}

/* A span of at least @size bytes. NULL: no memory, or no room for a rounded size. */
static struct stook_span *large_take(size_t align, size_t size, uint64_t how)
{
        unsigned node = stook_os_node_home(stook_home_to_use());
        size_t rounded = stook_large_rounded(size);
        struct stook_span *span;

        if (STOOK_UNLIKELY(stook_large_options.guarded || (how & STOOK_HOW_GUARDED)))
                return stook_watch_duties.take_guarded(node, size, align);
        span = stook_span_take(node, rounded, align);

        return STOOK_LIKELY(span != NULL) || rounded == size ? span
                : stook_span_take(node, size, align);
}

/* True: caches spared memory for a request that failed. */
static bool large_reclaim(size_t size, uint64_t how)
{
        return size < SIZE_HOPELESS && stook_slow_reclaim(NULL, 0, how);
}

static void large_give_span(struct stook_span *span)
{
        if (STOOK_UNLIKELY(span->use.guarded))
                stook_watch_duties.give_guarded(span);
        else
                stook_span_give(span);
}

/*
 * The end of an enrolled thread gives back what lies free (life/last_thread.c). A thread that has
 * large objects alone comes to no other call that enrols it. On the locked backend it is counted
 * all the same: what lies free may be hundreds of MiB.
 */
static void large_enrol(void)
{
        if (STOOK_UNLIKELY(!stook_self->rseq) && !stook_slot_enrol())
                stook_slot_count_locked();
}

/* Near the limit of the group the exact size is tried, which one with guards has already. */
struct stook_span *stook_large_take(size_t align, size_t size, uint64_t how)
{
        struct stook_span *span = large_take(align, size, how);
        uint16_t group;

        if (STOOK_UNLIKELY(!span) && large_reclaim(size, how))
                span = large_take(align, size, how);
        if (STOOK_UNLIKELY(!span))
                return NULL;
        group = how & STOOK_HOW_GROUP ? stook_how_group(how) : stook_group_now();
        if (STOOK_UNLIKELY(!large_charge(span, group, STOOK_CHARGE_TRY)) &&
            ((!span->use.guarded && !stook_span_resize(span, size)) ||
             !large_charge(span, group, 0))) {
                large_give_span(span);
                return NULL;
        }
        large_enrol();
        return span;
}

void stook_large_begin(struct stook_span *span, size_t size)
{
        (void)size;                     /* where there are no probes */
        large_set_kind(span, STOOK_SPAN_LARGE);
        __atomic_fetch_add(&stook_large_count, 1, __ATOMIC_RELAXED);
        STOOK_PROBE2(large_alloc, (void *)span->start, size);
        stook_pages_pay();
        stook_stats_page_tick();
}

static void large_sample(struct stook_span *span, size_t size)
{
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED)))
                stook_sample_duties.large(span, size);
}

static void large_end_sample(struct stook_span *span)
{
        if (STOOK_UNLIKELY(span->use.sample != NULL))
                stook_sample_duties.end(span);
}

/* To a sampler growth is a free and an allocation. */
static void large_sample_again(struct stook_span *span, size_t size)
{
        large_end_sample(span);
        large_sample(span, size);
}

static void *large_alloc(size_t align, size_t size, uint64_t how)
{
        struct stook_span *span;

        if (STOOK_UNLIKELY(stook_large_options.watched))
                return stook_watch_duties.large_alloc(align, size, how);
        span = stook_large_take(align, size, how);
        if (STOOK_UNLIKELY(!span))
                return NULL;
        if (!(how & STOOK_HOW_ZERO))
                stook_span_will_be_written(span);
        else if (!stook_span_is_zero(span))
                memset((void *)span->start, 0, size);
        stook_large_begin(span, size);
        large_sample(span, size);
        return (void *)span->start;
}

void *stook_large_alloc(size_t align, size_t size, uint64_t how)
{
        void *object = NULL;

        if (STOOK_LIKELY((size | align) <= PTRDIFF_MAX || stook_large_options.watched) &&
            stook_slow_start(how)) {
                stook_slow_begin(how);
                object = large_alloc(align, size, how);
                stook_slow_end(how);
        }
        return stook_slow_answer(how & ~(uint64_t)STOOK_HOW_ZERO, object, 0);
}

bool stook_large_end(struct stook_span *span)
{
        bool ended = stook_byte_cas(&span->kind, STOOK_SPAN_LARGE, STOOK_SPAN_TAKEN);

        __atomic_fetch_sub(&stook_large_count, ended, __ATOMIC_RELAXED);
        return ended;
}

void stook_large_give(struct stook_span *span, uint64_t how)
{
        STOOK_PROBE2(large_free, (void *)span->start, span->bytes);
        stook_slow_begin(how);
        large_end_sample(span);
        stook_large_leave_heap(span);
        large_uncharge(span, span->bytes);
        large_give_span(span);
        stook_pages_step();
        stook_stats_page_tick();
        stook_slow_end(how);
}

bool stook_large_free(void *object, uint64_t how)
{
        struct stook_span *span = stook_span_large_at((uintptr_t)object);

        if (!span)
                return false;
        if (STOOK_UNLIKELY(stook_large_options.watched))
                return stook_watch_duties.large_free(span, how);
        if (!stook_large_end(span))
                return false;
        stook_large_give(span, how);
        return true;
}

const struct stook_large_duties stook_large_duties = { .free = stook_large_free };

/* @size and a share of it; whole pages that hold @size are no less. */
static size_t large_padded(size_t size, size_t share)
{
        size_t page = stook_os_page_bytes(), more = size / share;

        if (size > STOOK_SPAN_OWN_MAPPING)
                return size;
        if (more >= SHRINK_BYTES)
                more = SHRINK_BYTES - page;
        more = (size + more) & ~(page - 1);
        return more > size ? more : size;
}

/*
 * Return: the object, which may have moved to another span; NULL: no memory, nothing changed.
 * @exact: the object gets no room to grow further.
 */
static void *large_grow(struct stook_span *span, size_t size, bool exact)
{
        struct stook_sample *sample = span->use.sample;
        uint16_t group = span->use.group;
        size_t padded = exact ? size : large_padded(size, GROWTH_SHARE);
        struct stook_span *moved;

        if (stook_span_resize(span, padded) || (padded != size && stook_span_resize(span, size))) {
                large_sample_again(span, size);
                return (void *)span->start;
        }
        padded = exact ? size : large_padded(size, MOVED_SHARE);
        moved = stook_span_move(span, padded);
        if (!moved && padded != size)
                moved = stook_span_move(span, size);
        if (STOOK_UNLIKELY(!moved))
                return NULL;
        moved->use.group = group;
        moved->use.sample = sample;
        large_sample_again(moved, size);
        large_set_kind(moved, STOOK_SPAN_LARGE);
        return (void *)moved->start;
}

bool stook_large_is_worth_shrinking(size_t bytes, size_t size)
{
        return bytes - size > bytes / SHRINK_SHARE || bytes - size >= SHRINK_BYTES;
}

void *stook_large_resize(struct stook_span *span, size_t size)
{
        void  *object = (void *)span->start;
        size_t bytes = span->bytes;

        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return NULL;
        stook_slow_begin(0);

        if (size <= bytes) {
                if (stook_large_is_worth_shrinking(bytes, size))
                        stook_span_resize(span, size);  /* refused: it stays as large as it is */
                large_uncharge(span, bytes - span->bytes);
                return object;
        }

        uint16_t group = span->use.group;

        if (STOOK_LIKELY(!group)) {
                object = large_grow(span, size, false);
                return STOOK_UNLIKELY(!object) && large_reclaim(size, 0)
                        ? large_grow(span, size, true) : object;
        }

        /* The most that it may grow by is charged first. What it did not grow by is uncharged. */
        size_t page = stook_os_page_bytes(), least = (size + page - 1) & ~(page - 1);
        size_t most = large_padded(size, MOVED_SHARE) + page - bytes;
        bool   exact = !stook_group_charge(group, most, STOOK_CHARGE_TRY);

        if (exact) {
                most = least - bytes;
                if (!stook_group_charge(group, most, 0))
                        return NULL;
        }
        object = large_grow(span, size, exact);
        if (STOOK_UNLIKELY(!object) && large_reclaim(size, 0))
                object = large_grow(span, size, exact);
        if (object)
                most -= stook_span_large_at((uintptr_t)object)->bytes - bytes;
        stook_group_uncharge(group, most);
        return object;
}
