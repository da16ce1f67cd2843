/*
 * Purpose: what the misuses of debugged caches share: a cache `victim` of objects of 24 bytes, with
 * the modes of the test.
 */
#ifndef STOOK_DEATH_DEBUG_H
#define STOOK_DEATH_DEBUG_H

#include <stook/debug.h>

#define FZPQ (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | \
              STOOK_CACHE_QUARANTINE)

void misuse(void);

static struct stook_cache *victim(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };

        return stook_cache_create("victim", 24, &args);
}

#endif
