/*
 * Purpose: a cache's statistics, whose sums hold: what is alive, in sheaves and in slabs is what
 * went in less what came out.
 */
#ifndef UNIT_CACHE_STATS_SUMS_H
#define UNIT_CACHE_STATS_SUMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/stook.h>

static inline struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_int_equal(s.objects_live,
                         s.alloc_fastpath + s.alloc_slowpath - s.free_fastpath - s.free_slowpath);
        assert_int_equal(s.objects_cached,
                         s.sheaf_refill + s.free_fastpath - s.alloc_fastpath - s.sheaf_flush);
        assert_int_equal(s.sheaves, s.sheaf_alloc - s.sheaf_free);
        assert_int_equal(s.slabs, s.alloc_slab - s.free_slab);
        return s;
}

#endif
