/*
 * Purpose: begins and ends what observes the heap from inside: STOOK_RECORD.
 * Place: begun at start, before the first cache is made; ended by the library's destructor. What a
 * process does after that, and what it does before _exit, exec or a kill that buffers still have,
 * is not recorded.
 */
#include "cache/cache_observe.h"
#include "life/observe.h"
#include "os/os.h"
#include "record/record.h"

void stook_observe_start(void)
{
        const char *path = stook_os_env("STOOK_RECORD");

        if (path && stook_record_start(path))
                stook_cache_options.watch |= STOOK_WATCH_RECORD;
}

__attribute__((destructor)) static void end(void)
{
        stook_record_end();
}
