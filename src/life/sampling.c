/*
 * Purpose: <stook/sampling.h>, and STOOK_SAMPLE, which starts a session with the process.
 * Place: begun at start, before the first cache is made, so that no sheaf is without a countdown;
 *  by calls of the program later, which empty all slots: sheaves that are installed again get one.
 * Concurrency: the start has one thread. Calls that start hold the registry mutex.
 * Failure: as the header says; at start it is said on standard error.
 */
#include <errno.h>
#include <string.h>

#include <stook/sampling.h>
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "life/life.h"
#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "sample/sample.h"
#include "stack/stack.h"

#define MOST_MOST 1000000

/* Behind the variable's name. Kept for the writer at the end; const after start. */
static const char *file;
static bool asked;

/* ---- STOOK_SAMPLE=on[,interval=BYTES][,most=NUMBER][,lifetimes][,file=FILE] ---- */

/* *@text is moved behind @name if it begins with that. */
static bool skip(const char **text, const char *name)
{
        size_t n = strlen(name);

        if (strncmp(*text, name, n))
                return false;
        *text += n;
        return true;
}

/* False: something else than there may be. The file comes last: it may have commas. */
static bool read_terms(const char *text, struct stook_sample_terms *terms)
{
        if (!skip(&text, "on"))
                return false;
        while (skip(&text, ",")) {
                if (skip(&text, "interval=")) {
                        terms->interval = stook_observe_number(&text);
                        if (!terms->interval || terms->interval > STOOK_SAMPLE_INTERVAL_MOST)
                                return false;
                } else if (skip(&text, "most=")) {
                        terms->most = stook_observe_number(&text);
                        if (!terms->most || terms->most > MOST_MOST)
                                return false;
                } else if (skip(&text, "lifetimes")) {
                        terms->lifetimes = true;
                } else if (skip(&text, "file=") && *text) {
                        file = text;
                        return true;
                } else {
                        return false;
                }
        }
        return !*text;
}

void stook_sampling_begin(void)
{
        struct stook_sample_terms terms = { STOOK_SAMPLE_INTERVAL, STOOK_SAMPLE_MOST, false };
        const char *value = stook_os_env("STOOK_SAMPLE");

        if (!value || !strcmp(value, "off"))
                return;
        if (!read_terms(value, &terms)) {
                file = NULL;
                stook_os_env_refuse("STOOK_SAMPLE", value,
                                    "on[,interval=BYTES][,most=NUMBER][,lifetimes][,file=FILE], "
                                    "or off");
                return;
        }
        asked = stook_sample_start(&terms);
        if (!asked)
                stook_os_env_tell("STOOK_SAMPLE", sizeof("STOOK_SAMPLE") - 1,
                                  ": there is no memory for it", "");
}

/* What may allocate. Samples of earlier allocations have no stack. */
__attribute__((constructor)) static void begin(void)
{
        if (!asked)
                return;
        if (file)
                stook_os_keep_stderr();
        stook_stack_start();
}

__attribute__((destructor)) static void end(void)
{
        if (asked && file)
                stook_observe_write(file);
}

/* ---- the calls ---- */

/* Sheaves on slots that have no countdown leave. False: the registry is not to be had. */
static bool empty_slots(void)
{
        struct stook_cache *cache = NULL;

        if (!stook_registry_lock(STOOK_REFUSED("stook_sampling_start")))
                return false;
        while ((cache = stook_registry_next(cache)))
                stook_evacuate_cache(&cache->front);
        stook_registry_unlock();
        return true;
}

STOOK_API int stook_sampling_start(const struct stook_sampling_args *args)
{
        static const struct stook_sampling_args none = { .args_size = sizeof none };
        struct stook_sample_terms terms;

        args = args ? args : &none;
        if (args->args_size != sizeof *args || args->interval > STOOK_SAMPLE_INTERVAL_MOST ||
            args->most > MOST_MOST || args->flags & ~(uint64_t)STOOK_SAMPLING_LIFETIMES)
                return -EINVAL;
        terms.interval = args->interval ? args->interval : STOOK_SAMPLE_INTERVAL;
        terms.most = args->most ? args->most : STOOK_SAMPLE_MOST;
        terms.lifetimes = args->flags & STOOK_SAMPLING_LIFETIMES;
        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        if (!stook_stack_start() || !stook_sample_start(&terms))
                return -ENOMEM;
        if (empty_slots())
                return 0;
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
        stats->share = (double)__atomic_load_n(&counts->share, __ATOMIC_RELAXED) / 0x1p32;
        return 0;
}
