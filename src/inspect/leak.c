/*
 * Purpose: objects that are allocated and that nothing in the program leads to any more: at exit
 * (STOOK_LEAKS=1), or when the program asks. STOOK_SUPPRESS=FUNCTION[,...] leaves out those that
 * were allocated below these functions.
 * A child that has this memory as it stands searches it (process/child.c), so other threads may
 * go on, and marks can be written into the objects. Looked at are objects of caches that keep
 * tracks (debug mode U), and large objects of malloc's. The search is in leak_mark.c, the report in
 * leak_tell.c. A program may have closed stderr at its exit, so a copy is kept from the start.
 * Place: API, and a destructor.
 * Failure: a negative error number, and a line on stderr where no program asked.
 */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "cache/cache.h"
#include "debug/debug_inside.h"
#include "gate/gate.h"
#include "inspect/leak.h"
#include "inspect/inspect.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"
#include "watch/watch.h"
#include <stook/debug.h>

#define SUPPRESS_BYTES 1024

static bool at_exit;                    /* both written before main */
static char suppress[SUPPRESS_BYTES] STOOK_MOSTLY_UNUSED;

const char *stook_leak_suppressions(void)
{
        return *suppress ? suppress : NULL;
}

struct collect {
        const struct stook_cache *cache;
        struct stook_leaks *leaks;
};

static void collect_object(void *object, void *slab, void *data)
{
        struct collect *collect = data;
        const struct stook_debug_tail *tail = stook_leak_tail(collect->cache, object);
        uint32_t state = stook_debug_state(stook_cache_debug(collect->cache), object);

        (void)slab;
        if (stook_leak_is_lost(collect->cache, object) && !collect->cache->slabs.of_heap)
                stook_leaks_add(collect->leaks, tail->tracks[0].stack, tail->requested);
        collect->leaks->live += state != STOOK_STATE_FREE && state != STOOK_STATE_QUARANTINED;
}

static void collect_all(const struct stook_leak *leak, struct stook_leaks *leaks)
{
        struct collect collect = { .leaks = leaks };
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache))) {
                collect.cache = cache;
                if (stook_cache_debug(cache)->flags & STOOK_CACHE_STORE_USER)
                        stook_slabs_for_each_out(&cache->slabs, collect_object, &collect);
        }
        for (size_t i = 0; i < leak->larges; i++) {
                leaks->live++;
                if (!leak->large[i].reached)
                        stook_leaks_add(leaks, leak->large[i].stack, leak->large[i].bytes);
        }
}

/* In the child. Returns objects that are lost. */
static int64_t search(uintptr_t stack, uint32_t pid)
{
        struct stook_leak leak = { .stack = stack };
        struct stook_leaks leaks;

        stook_os_restore_stderr();
        if (!stook_leaks_start(&leaks) || !stook_leak_mark(&leak))
                return -EIO;
        collect_all(&leak, &leaks);
        return (int64_t)stook_leaks_tell(&leaks, pid);
}

static bool is_any_tracked(void)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                if (stook_cache_debug(cache)->flags & STOOK_CACHE_STORE_USER)
                        return true;
        return false;
}

/* Its own frame has what the caller had in registers. */
static STOOK_NOINLINE int64_t check(void)
{
        uint32_t parent = stook_process_id();
        int64_t answer;
        int pid, pipe;

        __builtin_unwind_init();
        pid = stook_process_copy(&pipe);
        if (pid < 0)
                return -EAGAIN;
        if (!pid) {
                answer = search(stook_lock_stack_pointer(), parent);
                stook_process_copy_end(pipe, &answer, sizeof(answer));
        }
        return stook_process_copy_answer(pid, pipe, &answer, sizeof(answer)) ? answer : -EIO;
}

STOOK_API int stook_leak_check(void)
{
        bool tracked;

        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        if (!stook_registry_lock(STOOK_REFUSED("stook_leak_check")))
                return -EDEADLK;
        tracked = is_any_tracked();
        stook_registry_unlock();
        return tracked ? check() : -ENODATA;
}

/* The environment may be another one at exit. */
__attribute__((constructor)) static void read_variables(void)
{
        const char *value = stook_os_env("STOOK_LEAKS");
        const char *functions = stook_os_env("STOOK_SUPPRESS");

        at_exit = value && !strcmp(value, "1") && stook_self_is_programs();
        if (value && strcmp(value, "1") && strcmp(value, "0"))
                stook_os_env_refuse("STOOK_LEAKS", value, "0 or 1");
        if (at_exit)
                stook_os_keep_stderr();
        if (functions && strlen(functions) < sizeof(suppress))
                strcpy(suppress, functions);
        else if (functions)
                stook_os_env_refuse("STOOK_SUPPRESS", functions, "at most 1023 bytes");
}

__attribute__((destructor)) void stook_leak_end(void)
{
        static const char failed[] =
                "stook: leak: the search failed; it needs /proc and memory for a process\n";
        static const char untracked[] =
                "stook: leak: nothing was searched; that needs mode U of STOOK_DEBUG\n";
        long found;

        if (!at_exit || !stook_gate_is_open())
                return;
        found = stook_leak_check();
        if (found == -ENODATA)
                stook_os_write(untracked, sizeof(untracked) - 1);
        else if (found < 0)
                stook_os_write(failed, sizeof(failed) - 1);
}
