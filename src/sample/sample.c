/*
 * Purpose: see sample.h: what a sample gets, and the end of its life.
 * Samples lie in metadata, type-stable, on a tagged stack while they are free.
 */
#include "base/chance.h"
#include "base/tagged_stack.h"
#include "cache/cache_slow.h"
#include "harden/harden.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/span.h"
#include "process/process.h"
#include "profile/profile.h"
#include "report/report.h"
#include "sample/sample.h"
#include "sample/sample_inside.h"
#include "stack/stack.h"

/* What is known of a sample that is alive. */
struct stook_sample {
        struct stook_profile_life life; /* first: readers outside take a sample for it */
        struct stook_link link;         /* while it is free */
};

static struct stook_tagged_stack idle;

static struct stook_sample *sample_new(void)
{
        struct stook_link *link = stook_tagged_stack_pop(&idle);

        return link ? stook_container_of(link, struct stook_sample, link)
                    : stook_meta_bump(sizeof(struct stook_sample), sizeof(void *));
}

static void sample_delete(struct stook_sample *sample)
{
        stook_tagged_stack_push(&idle, &sample->link);
}

/* ---- lives ---- */

static STOOK_NOINLINE bool begin(struct stook_profile_life *life, double weight, size_t bytes)
{
        *life = (struct stook_profile_life){
                .weight = weight,
                .bytes = bytes ? bytes : 1,
                .born = stook_os_clock_ns(),
                .stack = stook_stack_deep(1),
                .thread = stook_profile_thread_now(),
        };
        return stook_profile_begin(life);
}

static STOOK_NOINLINE void end(const struct stook_profile_life *life)
{
        stook_profile_end(life, stook_profile_has_lifetimes() ? stook_stack_deep(1) : 0,
                          stook_profile_thread_now(), stook_os_clock_ns());
}

/* Only the allocation is counted. */
static STOOK_NOINLINE void count_in_place(double weight, size_t bytes)
{
        struct stook_profile_life life;

        __atomic_fetch_add(&stook_sample_counts.in_place, 1, __ATOMIC_RELAXED);
        if (begin(&life, weight, bytes))
                stook_profile_end(&life, 0, life.thread, life.born);
}

/* ---- spans ---- */

/* False: no memory. */
static bool follow(struct stook_span *span, double weight, size_t bytes)
{
        struct stook_sample *sample = sample_new();

        if (!sample || !begin(&sample->life, weight, bytes)) {
                if (sample)
                        sample_delete(sample);
                return false;
        }
        span->use.sample = sample;                                              /* I1 */
        return true;
}

static void stook_sample_end(struct stook_span *span)
{
        struct stook_sample *sample = span->use.sample;

        if (STOOK_UNLIKELY(span->use.guarded == STOOK_GUARDED_SAMPLE))
                stook_guarded_end(span);
        span->use.sample = NULL;                                                /* I1 */
        end(&sample->life);
        sample_delete(sample);
}

/* Spans whose objects the debug modes look at are not for samples. */
static struct stook_span *take_span(size_t bytes, uint64_t how)
{
        return stook_large_options.watched ? NULL : stook_large_take(1, bytes, how);
}

/* ---- the duties ---- */

static STOOK_NOINLINE void stook_sample_in_place(struct stook_front *front)
{
        const struct stook_slabs *slabs = front->barns->slabs;
        double weight;

        if (stook_sample_keep(slabs->stride, &weight))
                count_in_place(weight, stook_cache_at(slabs->cache_index)->object_size);
}

/* The row of them is cut at samples: what lies between two has as many as a sheaf would count. */
static STOOK_NOINLINE void stook_sample_from_slabs(struct stook_front *front, size_t n)
{
        double each = (double)__atomic_load_n(&stook_sampling.interval, __ATOMIC_RELAXED) /
                      front->barns->slabs->stride;
        double at = stook_chance_exponential(stook_os_random()) * each;

        while (at < (double)n) {
                n -= (size_t)at + 1;
                stook_sample_in_place(front);
                at = stook_chance_exponential(stook_os_random()) * each;
        }
}

/* What any object of the class is aligned to, if that may be asked for. */
static size_t align_of(const struct stook_cache *cache, uint64_t how)
{
        size_t bytes = cache->object_size, page = stook_os_page_bytes();

        if (!(how & STOOK_HOW_ALIGNED))
                return 16;
        return (bytes & -bytes) < page ? bytes & -bytes : page;
}

/* NULL: no memory, and the sample is in place. */
static void *take_cell(const struct stook_cache *cache, uint64_t how, double weight)
{
        size_t bytes = stook_how_size(how);
        struct stook_guarded *guarded = stook_guarded_claim(bytes);
        struct stook_span *span;

        span = take_span(cache->object_size, guarded ? how | STOOK_HOW_GUARDED : how);
        if (span)
                span->use.slack = (uint16_t)(span->bytes - cache->object_size);
        if (!span || !follow(span, weight, bytes)) {
                if (guarded)
                        stook_guarded_drop(guarded);
        } else if (guarded) {
                stook_guarded_begin(guarded, span, bytes, align_of(cache, how),
                                    &span->use.sample->life);
        }
        if (!span) {
                count_in_place(weight, bytes);
                return NULL;
        }
        stook_large_begin(span, bytes);
        return stook_slow_answer(how, (void *)(span->start + span->use.lead),
                                 stook_sample_usable(span));
}

static STOOK_NOINLINE void *stook_sample_take(struct stook_cache *cache, uint64_t how)
{
        void *object = NULL;
        double weight;

        if (stook_sample_keep(cache->slabs.stride, &weight))
                object = take_cell(cache, how, weight);
        if (object)
                return object;
        stook_slot_pass(&cache->front);
        object = stook_slot_get_any(&cache->front, true);
        return object ? stook_slow_answer(how, object, stook_slow_bytes(cache)) : NULL;
}

static STOOK_NOINLINE void stook_sample_describe(const void *pointer,
                                                 struct stook_report_about *about)
{
        enum stook_fault fault = about->fault;

        if (!stook_guarded_describe((uintptr_t)pointer, about))
                return;
        if (pointer == about->object && about->freed)
                fault = STOOK_FAULT_DOUBLE_FREE;
        about->object = pointer;
        about->fault = fault;
}

/* One coin for each: they are few, and each of them costs a span. */
static STOOK_NOINLINE void stook_sample_large(struct stook_span *span, size_t size)
{
        double interval = (double)__atomic_load_n(&stook_sampling.interval, __ATOMIC_RELAXED);
        double weight;

        if (stook_chance_uniform(stook_os_random()) > stook_chance_share((double)size / interval) ||
            !stook_sample_keep(size, &weight))
                return;
        follow(span, weight, size);
}

const struct stook_sample_duties stook_sample_duties = {
        .in_place = stook_sample_in_place,
        .from_slabs = stook_sample_from_slabs,
        .take = stook_sample_take,
        .large = stook_sample_large,
        .end = stook_sample_end,
        .describe = stook_sample_describe,
};
