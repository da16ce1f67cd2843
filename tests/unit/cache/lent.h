/*
 * Purpose: what the tests of prefilled sheaves have in common: caches whose sheaves and barns stay
 * as they are, and objects that are taken and looked at.
 */
#ifndef UNIT_CACHE_LENT_H
#define UNIT_CACHE_LENT_H

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "unit/cache/stats_sums.h"

#define ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })
#define CAPACITY 64                     /* of 64-byte objects */
#define MANY     (CAPACITY * 5)

static inline struct stook_cache *cache_of(const char *name, const struct stook_cache_args *args)
{
        /* Barns of a fixed size: neither they nor sheaves grow by themselves. */
        struct stook_cache *cache = stook_cache_create(
                name, 64, args ? args : ARGS(.barn_full = 10, .barn_empty = 10));

        assert_non_null(cache);
        return cache;
}

static inline void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Takes and frees @n objects one by one: all different, all usable. */
static inline void take(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n,
                        void **objects)
{
        for (size_t i = 0; i < n; i++) {
                objects[i] = stook_sheaf_alloc(cache, sheaf);
                assert_non_null(objects[i]);
                assert_ptr_equal(stook_object_cache(objects[i]), cache);
                memset(objects[i], (int)i | 1, 64);
        }
        for (size_t i = 0; i < n; i++)
                for (size_t byte = 0; byte < 64; byte++)
                        assert_int_equal(((unsigned char *)objects[i])[byte],
                                         (unsigned char)(i | 1));
}

/* Which sheaf is the spare is a matter of the CPU. */
static inline int stay_on_this_cpu(void **state)
{
        cpu_set_t one;

        (void)state;
        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);
        return sched_setaffinity(0, sizeof(one), &one);
}

#endif
