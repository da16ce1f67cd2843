/*
 * Purpose: do what `stook tune` asked for; see request.h.
 */
#include <errno.h>

#include "cache/cache.h"
#include "life/request.h"
#include "process/process.h"

static int tune(const struct stook_request *request)
{
        struct stook_tuning tuning = {
                .tuning_size = sizeof(tuning),
                .sheaf_capacity = request->sheaf_capacity,
                .barn_full = request->barn_full,
                .barn_empty = request->barn_empty,
        };

        if (request->sum != stook_request_sum(request))
                return -EILSEQ;
        return stook_cache_tune_at(request->cache_index, request->born, &tuning);
}

void stook_request_answer(struct stook_request *request)
{
        struct stook_request asked;

        if (STOOK_LIKELY(__atomic_load_n(&request->state, __ATOMIC_ACQUIRE) !=
                         STOOK_REQUEST_ASKED))
                return;
        asked = *request;
        if (asked.process != stook_process_id())
                return;
        __atomic_store_n(&request->answer, tune(&asked), __ATOMIC_RELAXED);
        __atomic_store_n(&request->answered, asked.ticket, __ATOMIC_RELAXED);
        __atomic_store_n(&request->state, STOOK_REQUEST_ANSWERED, __ATOMIC_RELEASE);
}
