/*
 * Proves that every header compiles as C++, and that no struct shares its name with a function:
 * then a struct is named without `struct`.
 */
#include <cstdint>
#include <stook/stook.h>
#include <stook/inline.h>
#include <stook/layout.h>
#include <stook/version.h>

int main()
{
        stook_mode            mode{};
        stook_cache_args      args{};
        stook_tuning          tuning{};
        stook_cache_stats     stats{};
        stook_cache_node_stats node{};
        stook_group_stats     group{};
        stook_report          report{};
        stook_rcu             rcu{};

        mode.mode_size = sizeof(mode);
        args.args_size = sizeof(args);
        stats.stats_size = sizeof(stats);
        node.stats_size = sizeof(node);
        tuning.tuning_size = sizeof(tuning);
        tuning.sheaf_capacity = tuning.barn_full = tuning.barn_empty = 0;
        (void)group;
        (void)report;
        (void)rcu;

        stook_cache *cache = stook_cache_create("c++", 64, &args);

        if (!cache || stook_get_mode(&mode) || stook_cache_get_stats(cache, &stats) ||
            stook_cache_get_node_stats(cache, 0, &node) || stook_cache_tune(cache, &tuning))
                return 1;
        stook_cache_free_inline(cache, stook_cache_alloc_inline(cache));
        return stook_cache_destroy(cache) != 0;
}
