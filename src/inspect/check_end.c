/*
 * Purpose: at exit, a check of all objects of caches with red zones or poison, and of large objects
 * that have them. Until then damage is found when its object is freed, is allocated or leaves the
 * quarantine. This check finds damage to objects that no call touches again.
 * A child that has this memory as it stands makes the check (process/child.c), so other threads
 * may go on: an object in the hands of one is in no state that is checked (debug_object.c). Reports
 * speak of the program, and do not end it; its exit status stays.
 * Place: a destructor.
 * Failure: no child, no check.
 */
#include "cache/cache.h"
#include "debug/debug_modes.h"
#include "debug/fail.h"
#include "gate/gate.h"
#include "inspect/linked.h"
#include "malloc/large_debug.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"

#define HAS_BYTES_TO_CHECK (STOOK_DEBUG_Z | STOOK_DEBUG_P)

static bool has_bytes_to_check(const struct stook_cache *cache)
{
        return stook_cache_debug(cache)->flags & HAS_BYTES_TO_CHECK;
}

static bool is_any_to_check(void)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                if (has_bytes_to_check(cache))
                        return true;
        return stook_large_debug & HAS_BYTES_TO_CHECK;
}

/* In the child. */
static int check_all(void)
{
        struct stook_cache *cache = NULL;
        int faults = 0;

        while ((cache = stook_registry_next(cache)))
                if (has_bytes_to_check(cache))
                        faults += stook_debug_validate(stook_cache_debug(cache));
        if (stook_large_debug & HAS_BYTES_TO_CHECK)
                faults += stook_large_debug_validate();
        return faults;
}

__attribute__((constructor)) static void begin(void)
{
        if (stook_debug_is_asked() || stook_fail_is_asked())
                stook_os_keep_stderr();         /* the program may close it before its end */
}

__attribute__((destructor)) void stook_check_end(void)
{
        uint32_t program, thread;
        int pid, pipe, faults;

        if (!stook_gate_is_open() || !is_any_to_check())
                return;
        program = stook_process_id();
        thread = stook_process_thread_id();
        pid = stook_process_copy(&pipe);
        if (!pid) {
                stook_report_speak_for(program, thread);
                faults = check_all();
                stook_process_copy_end(pipe, &faults, sizeof(faults));
        }
        if (pid > 0)
                stook_process_copy_answer(pid, pipe, &faults, sizeof(faults));
}
