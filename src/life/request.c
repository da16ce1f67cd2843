/*
 * Purpose: does what processes outside ask of this one (root.h): `stook tune` and `stook profile`.
 * Place: called by the maintenance thread, and by slow calls at which *stook_gate_heap says ASKED.
 *
 * A slow call answers if it is an ordinary one: in no handler, on top of no lock, inside no call of
 * an RCU implementation. A first session loads the C library's unwinder, by the loader. So the call
 * is none that the loader makes while its lists change, either. Others leave the request to the
 * next call. What answers has all signals blocked: no handler jumps out of it. The registry it only
 * tries to have: another thread may hold it that waits for what this one's caller holds.
 * Concurrency: `emptying` is atomic. M1: the release of ASKED, after it was set, pairs with the
 *  acquire of the slow call that takes ASKED away. So slots are emptied once more after each
 *  session that began.
 */
#include <errno.h>
#include <link.h>

#include "base/thread.h"
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "life/life.h"
#include "life/root.h"
#include "os/os.h"
#include "process/process.h"
#include "sample/sample_terms.h"
#include <stook/sampling.h>

#define INSIDE (STOOK_INSIDE_WAIT | STOOK_INSIDE_RCU | STOOK_INSIDE_ASK)

static uint32_t emptying;               /* the process whose slots are to be emptied; 0: none */

/* ---- what is asked ---- */

/* @asked: a number of a request. Return: that of a struct stook_tuning. */
static unsigned setting(int32_t asked)
{
        return asked < 0 ? 0 : asked ? (unsigned)asked : STOOK_NONE;
}

static int tune(const struct stook_request *asked)
{
        struct stook_tuning tuning = {
                .tuning_size = sizeof(tuning),
                .sheaf_capacity = setting(asked->sheaf_capacity),
                .barn_full = setting(asked->barn_full),
                .barn_empty = setting(asked->barn_empty),
        };

        return stook_cache_tune_at(asked->cache_index, asked->born, &tuning);
}

static int sample(const struct stook_request *asked)
{
        struct stook_sample_terms terms = {
                .interval = asked->interval, .most = asked->most, .guard = asked->guard,
                .lifetimes = asked->lifetimes,
        };
        int error = stook_sampling_start_by(&terms);

        if (!error)
                __atomic_store_n(&emptying, stook_process_id(), __ATOMIC_RELAXED);
        return error;
}

static int answer_to(const struct stook_request *asked)
{
        if (asked->sum != stook_request_sum(asked))
                return -EILSEQ;
        switch (asked->action) {
        case STOOK_REQUEST_TUNE:
                return tune(asked);
        case STOOK_REQUEST_SAMPLE:
                return sample(asked);
        case STOOK_REQUEST_STOP:
                return stook_sampling_stop();
        default:
                return -EINVAL;
        }
}

static bool is_asked(void)
{
        return __atomic_load_n(&stook_root.request.state, __ATOMIC_ACQUIRE) ==
               STOOK_REQUEST_ASKED && stook_root.request.process == stook_process_id();
}

/* R1. *@asked: what is to be done. */
static bool take(struct stook_request *asked)
{
        uint32_t state = STOOK_REQUEST_ASKED;

        if (!is_asked())
                return false;
        *asked = stook_root.request;
        return __atomic_compare_exchange_n(&stook_root.request.state, &state, STOOK_REQUEST_TAKEN,
                                           false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void tell(const struct stook_request *asked, int answer)
{
        struct stook_request *request = &stook_root.request;

        __atomic_store_n(&request->answer, answer, __ATOMIC_RELAXED);
        __atomic_store_n(&request->answered, asked->ticket, __ATOMIC_RELAXED);
        __atomic_store_n(&request->state, STOOK_REQUEST_ANSWERED, __ATOMIC_RELEASE);
}

/* A child of fork finds its parent's number, and leaves it. */
static bool is_to_empty(void)
{
        uint32_t process = __atomic_load_n(&emptying, __ATOMIC_RELAXED);

        return process && process == stook_process_id();
}

/* What *stook_gate_heap is while nothing is asked. */
static uint32_t at_rest(void)
{
        return stook_fork_is_marked() ? STOOK_HEAP_WHOLE : STOOK_HEAP_ALONE;
}

/* *stook_gate_heap goes from @before to @after. */
static bool is_told(uint32_t before, uint32_t after)
{
        return __atomic_compare_exchange_n(stook_gate_heap, &before, after, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);         /* M1 */
}

/* ---- the maintenance thread ---- */

void stook_request_answer(void)
{
        struct stook_request asked;
        bool taken;
        int answer = 0;

        is_told(STOOK_HEAP_ASKED, at_rest());
        taken = take(&asked);
        if (taken)
                answer = answer_to(&asked);

        if (is_to_empty()) {
                __atomic_store_n(&emptying, 0, __ATOMIC_RELAXED);
                stook_registry_wait();
                stook_sampling_empty_slots();
                stook_registry_unlock();
        }
        if (taken)
                tell(&asked, answer);
}

/* ---- slow calls ---- */

/* Of the loader: what its lists are like. A C library may have none. */
extern struct r_debug _r_debug __attribute__((weak));

static bool is_ordinary(void)
{
        return !stook_self->locks_held && !stook_self_is_inside(INSIDE) &&
               !stook_evacuate_is_mine() && !stook_os_may_be_in_handler() &&
               (!&_r_debug || *(volatile int *)&_r_debug.r_state == RT_CONSISTENT);
}

/* With the registry mutex. */
static void answer_in_call(void)
{
        struct stook_request asked;
        bool taken = stook_root.request.action != STOOK_REQUEST_TUNE && take(&asked);
        int answer = taken ? answer_to(&asked) : 0;

        if (is_to_empty()) {
                __atomic_store_n(&emptying, 0, __ATOMIC_RELAXED);
                stook_sampling_empty_slots();
        }
        if (taken)
                tell(&asked, answer);
}

void stook_request_answer_in_call(void)
{
        uint64_t before;

        if (!is_ordinary())
                return;
        before = stook_process_handlers_block();
        if (stook_registry_try_alone()) {
                if (is_told(STOOK_HEAP_ASKED, at_rest()))
                        answer_in_call();
                stook_registry_unlock();
        }
        stook_process_handlers_allow(before);
}

void stook_request_empty_slots(void)
{
        __atomic_store_n(&emptying, stook_process_id(), __ATOMIC_RELAXED);
        is_told(at_rest(), STOOK_HEAP_ASKED);
}
