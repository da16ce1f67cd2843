/*
 * Purpose: see profile.h: which allocations are sampled, and what each stands for.
 * A stripe counts bytes down to its next point. The allocation that reaches it is sampled, and
 * draws the next one. Meanwhile other threads, and handlers, find 0 or less there. Such a call
 * draws a point for itself alone: because points are independent, it is sampled with the right
 * probability, and what it took off the stripe does not matter.
 */
#include "base/chance.h"
#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "stack/stack.h"

struct stook_profile_stripe stook_profile_stripes[STOOK_PROFILE_STRIPES] STOOK_MOSTLY_UNUSED;
static uint64_t interval;               /* const after the start */

/* Bytes to the next point, at least 1. */
static int64_t draw(void)
{
        double bytes = stook_chance_exponential(stook_os_random()) * (double)interval;

        return bytes < 0x1p62 ? (int64_t)bytes + 1 : INT64_C(1) << 62;
}

/* ---- samples ---- */

bool stook_profile_start(uint64_t bytes, bool lifetimes)
{
        if (!stook_profile_table_start(bytes, lifetimes) || !stook_profile_objects_start(bytes))
                return false;
        interval = bytes;
        for (unsigned i = 0; i < STOOK_PROFILE_STRIPES; i++)
                stook_profile_stripes[i].left = draw();
        return true;
}

static void count(const void *object, size_t bytes)
{
        struct stook_profile_life life = {
                .weight = 1 / stook_chance_share((double)bytes / (double)interval),
                .bytes = bytes,
                .born = stook_os_clock_ns(),
                .stack = stook_stack_deep(2),
                .thread = stook_profile_thread_now(),
        };

        if (!stook_profile_begin(&life) || stook_profile_enter(object, &life))
                return;
        stook_profile_count_lost();
        stook_profile_end(&life, 0, life.thread, life.born);
}

STOOK_NOINLINE void stook_profile_sample(struct stook_profile_stripe *stripe, int64_t before,
                                         const void *object, size_t bytes)
{
        bool reached = before > 0;

        if (reached)
                __atomic_store_n(&stripe->left, draw(), __ATOMIC_RELAXED);
        if (reached || draw() <= (int64_t)bytes)
                count(object, bytes);
}
