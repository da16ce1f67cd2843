/*
 * Purpose: what `stook tune` asks of a running process: one request at a time, in a block of the
 * root (life/root.h) that the command writes from outside.
 * Place: maintain_thread.c looks at it between its rounds; nothing else does. A process without
 * that thread (STOOK_MAINTENANCE=1, stook_maintenance_thread) answers no request.
 *
 * How: the command finds `state` NONE or ANSWERED, writes the block with its ticket, writes ASKED
 * into `state`, and waits for ANSWERED with its ticket in `answered`. No lock reaches from outside.
 * So a second command may write over the first one's request. `sum` is over the whole request, and
 * one that does not add up is refused. A command that finds another ticket says so.
 * Invariants:
 *  I1 a request is done once at most, by the process that `process` names: a child of fork finds
 *     its parent's block, and leaves it.
 *  I2 a request names its cache by index and `born`, so that it never meets the next cache of an
 *     index.
 * Concurrency: `state` is atomic; M1: the command's store of ASKED comes after the block, for the
 *  system copies in order; the acquire of ASKED pairs with it. The release of ANSWERED comes after
 *  the answer.
 */
#ifndef STOOK_REQUEST_H
#define STOOK_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

enum stook_request_state { STOOK_REQUEST_NONE, STOOK_REQUEST_ASKED, STOOK_REQUEST_ANSWERED };

struct stook_request {
        uint64_t ticket;                /* the command's, any number */
        uint64_t born;                  /* of the cache; I2 */
        uint32_t process;               /* I1 */
        uint32_t cache_index;
        /* As in struct stook_tuning: -1: as it is. */
        int32_t  sheaf_capacity, barn_full, barn_empty;
        uint32_t sum;                   /* stook_request_sum() */
        /* From here on the process writes. */
        uint64_t answered;              /* the ticket; M1 */
        int32_t  answer;                /* stook_cache_tune's, or -ENOENT, -EILSEQ; M1 */
        uint32_t state;                 /* atomic: enum stook_request_state */
};

/* Over all that the command writes before `sum`. */
STOOK_INLINE uint32_t stook_request_sum(const struct stook_request *request)
{
        const unsigned char *byte = (const unsigned char *)request;
        uint32_t sum = 2166136261u;

        for (size_t i = 0; i < offsetof(struct stook_request, sum); i++)
                sum = (sum ^ byte[i]) * 16777619u;
        return sum;
}

/* Does what was asked, if anything was. By the maintenance thread; takes the registry mutex. */
void stook_request_answer(struct stook_request *request);

#endif
