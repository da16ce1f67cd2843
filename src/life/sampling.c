/*
 * Purpose: <stook/sampling.h>, and STOOK_SAMPLE, which starts a session with the process, or by a
 * signal.
 * Place: begun at start, before the first cache is made, so that no sheaf is without a countdown;
 *  later by calls of the program, by its signal, and by `stook profile --start` (request.c). Those
 *  empty all slots: sheaves that are installed again get a countdown.
 * Concurrency: the start has one thread. Slots are emptied with the registry mutex. The signal's
 *  handler runs at any instruction; it leaves the slots to the next ordinary slow call.
 * Failure: as the header says; at start it is said on standard error.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <stook/sampling.h>
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "life/life.h"
#include "life/root.h"
#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "sample/sample.h"
#include "stack/stack.h"

/* Of STOOK_SAMPLE; const after start. */
static struct stook_sample_terms terms;
static bool asked;

void stook_sampling_begin(void)
{
        const char *value = stook_os_env("STOOK_SAMPLE");

        terms = stook_sample_terms_usual();
        if (!value || !strcmp(value, "off"))
                return;
        if (!stook_sample_read_terms(value, &terms)) {
                stook_os_env_refuse("STOOK_SAMPLE", value,
                                    "on, off, or " STOOK_SAMPLE_TERMS "[,signal=NUMBER]"
                                    "[,file=FILE]");
                return;
        }
        asked = terms.off || stook_sample_start(&terms);
        if (!asked)
                stook_os_env_tell("STOOK_SAMPLE", sizeof("STOOK_SAMPLE") - 1,
                                  ": there is no memory for it", "");
}

/* Starts a session; or ends it, and writes its profile. */
static void on_signal(int number)
{
        int before = errno;

        (void)number;
        if (!__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED)) {
                if (stook_sample_start(&terms))
                        stook_request_empty_slots();
        } else {
                stook_sample_stop();
                if (terms.file)
                        stook_observe_write_next(terms.file);
        }
        errno = before;
}

/* What may allocate. Samples of earlier allocations have no stack. */
__attribute__((constructor)) static void begin(void)
{
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;

        if (!asked)
                return;
        if (terms.file)
                stook_os_keep_stderr();
        stook_stack_start();
        if (terms.guard)
                stook_guard_hits_report();
        if (terms.signal && !sigaction(terms.signal, NULL, &before) &&
            before.sa_handler == SIG_DFL)
                sigaction(terms.signal, &action, NULL);
}

__attribute__((destructor)) static void end(void)
{
        if (asked && terms.file && stook_profile_interval())
                stook_observe_write(terms.file);
}

/* ---- the calls ---- */

int stook_sampling_start_by(const struct stook_sample_terms *by)
{
        if (!by->interval || by->interval > STOOK_SAMPLE_INTERVAL_MOST ||
            by->most > STOOK_SAMPLE_MOST_MOST || by->guard > STOOK_SAMPLE_MOST_MOST)
                return -EINVAL;
        if (!stook_stack_start() || !stook_sample_start(by))
                return -ENOMEM;
        if (by->guard)
                stook_guard_hits_report();
        return 0;
}

void stook_sampling_empty_slots(void)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                stook_evacuate_cache(&cache->front);
}

STOOK_API int stook_sampling_start(const struct stook_sampling_args *args)
{
        static const struct stook_sampling_args none = { .args_size = sizeof none };
        struct stook_sample_terms wanted = stook_sample_terms_usual();
        int error;

        args = args ? args : &none;
        if (args->args_size != sizeof *args || args->flags & ~(uint64_t)STOOK_SAMPLING_LIFETIMES)
                return -EINVAL;
        if (args->interval)
                wanted.interval = args->interval;
        if (args->most)
                wanted.most = args->most;
        wanted.guard = args->guard;
        wanted.lifetimes = args->flags & STOOK_SAMPLING_LIFETIMES;
        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        error = stook_sampling_start_by(&wanted);
        if (error)
                return error;
        if (stook_registry_lock(STOOK_REFUSED("stook_sampling_start"))) {
                stook_sampling_empty_slots();
                stook_registry_unlock();
                return 0;
        }
        stook_sample_stop();
        return -EDEADLK;
}

STOOK_API int stook_sampling_stop(void)
{
        if (!__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED))
                return -ENOTSUP;
        stook_sample_stop();
        return 0;
}

STOOK_API int stook_sampling_get_stats(struct stook_sampling_stats *stats)
{
        const struct stook_sample_counts *counts = &stook_sample_counts;

        if (!stats || stats->stats_size != sizeof *stats)
                return -EINVAL;
        stats->interval = 0;
        if (__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED))
                stats->interval = __atomic_load_n(&stook_sampling.interval, __ATOMIC_RELAXED);
        stats->marks = __atomic_load_n(&counts->marks, __ATOMIC_RELAXED);
        stats->kept = __atomic_load_n(&counts->kept, __ATOMIC_RELAXED);
        stats->in_place = __atomic_load_n(&counts->in_place, __ATOMIC_RELAXED);
        stats->guarded = __atomic_load_n(&counts->guarded, __ATOMIC_RELAXED);
        stats->share = (double)__atomic_load_n(&counts->share, __ATOMIC_RELAXED) / 0x1p32;
        return 0;
}
