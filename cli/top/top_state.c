/*
 * Purpose: the looks that `stook top` takes, and what it keeps from one to the next; see top.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cli/top/top.h"

/* A look at all slabs may take this share of the time. */
#define WHOLE_SHARE 50

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int look_whole(struct top_state *s, bool at_once)
{
        uint64_t begun = now_ns();
        struct heap h;
        int error;

        if (!at_once && s->have_whole && begun - s->whole.at_ns < s->whole_cost_ns * WHOLE_SHARE)
                return 0;
        error = heap_read(&h, &s->target->memory, s->library, HEAP_OBJECTS);
        if (error) {
                memcpy(s->now.error, h.error, sizeof s->now.error);
                return error;
        }
        if (s->have_whole)
                heap_free(&s->whole);
        s->whole = h;
        s->have_whole = true;
        s->whole_cost_ns = now_ns() - begun;
        return 0;
}

/* What the last look counted is what the next one is compared with. */
static bool note_before(struct top_state *s)
{
        baseline_free(&s->before);
        return !s->have_now || baseline_add(&s->before, &s->now);
}

int top_look(struct top_state *s, bool whole)
{
        struct heap h;
        int error = library_read(&s->target->memory, s->library);

        if (!error && !s->library->readable)
                error = -ESRCH;
        if (error) {
                snprintf(s->now.error, sizeof s->now.error, "the process is gone");
                return error;
        }
        error = heap_read(&h, &s->target->memory, s->library, HEAP_COUNTS);
        if (!error && !note_before(s)) {
                heap_free(&h);
                snprintf(h.error, sizeof h.error, "no memory");
                error = -ENOMEM;
        }
        if (error) {
                memcpy(s->now.error, h.error, sizeof s->now.error);
                return error;
        }
        if (s->have_now) {
                s->seconds = (double)(h.at_ns - s->now.at_ns) / 1e9;
                heap_free(&s->now);
        }
        s->now = h;
        s->have_now = true;
        return look_whole(s, whole);
}

void top_reset(struct top_state *s)
{
        baseline_free(&s->zero);
        if (s->have_now)
                baseline_add(&s->zero, &s->now);
}

void top_free(struct top_state *s)
{
        if (s->have_now)
                heap_free(&s->now);
        if (s->have_whole)
                heap_free(&s->whole);
        baseline_free(&s->before);
        baseline_free(&s->zero);
}
