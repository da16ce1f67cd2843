/*
 * Purpose: from a program's wishes to a cache: checks arguments, chooses size and alignment, shares
 * a living cache of the same geometry, or has one made.
 * Place: API; calls cache.
 * Concurrency: registry mutex.
 * Failure: NULL with errno, nothing changed.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "os/os.h"
#include "report/report.h"

#define FLAGS_HERE \
        (STOOK_CACHE_HWCACHE_ALIGN | STOOK_CACHE_MERGE | STOOK_DEBUG_FLAGS | FLAGS_ALONE)
/* Of caches that are not merged. */
#define FLAGS_ALONE \
        (STOOK_CACHE_NO_SHEAVES | STOOK_CACHE_RANDOM_ORDER | STOOK_CACHE_RCU | \
         STOOK_CACHE_ACCOUNT | STOOK_CACHE_TYPESAFE_BY_RCU | STOOK_CACHE_HUGE_PAGES)

/* Bytes up to which natural alignment grows with the size: what malloc promises too. */
#define NATURAL_ALIGN_MAX 16

/* ---- wishes ---- */

static size_t natural_align(size_t size, uint64_t flags)
{
        size_t align = size & -size;

        if (align < sizeof(void *))
                align = sizeof(void *);
        if (align > NATURAL_ALIGN_MAX)
                align = NATURAL_ALIGN_MAX;
        if (flags & STOOK_CACHE_HWCACHE_ALIGN) {
                size_t line = STOOK_CACHELINE;

                /* Objects that fit twice into a line need not have one each. */
                while (line / 2 >= size && line / 2 >= align)
                        line /= 2;
                align = line;
        }
        return align;
}

static bool barn_limit_good(unsigned wanted)
{
        return wanted <= STOOK_BARN_LIMIT_MAX || wanted == STOOK_NONE;
}

/* What the caller knows of the arguments; the rest is 0. False: a size of no release. */
static bool read_args(struct stook_cache_args *args, const struct stook_cache_args *or_null)
{
        const size_t first = offsetof(struct stook_cache_args, dtor);

        memset(args, 0, sizeof(*args));
        if (!or_null)
                return true;
        if (or_null->args_size != first &&
            !stook_report_size_is(or_null->args_size, sizeof(*args), "args_size"))
                return false;
        memcpy(args, or_null, or_null->args_size);
        return true;
}

static int check(const char *name, size_t size, const struct stook_cache_args *args)
{
        if (!name || !*name || strnlen(name, STOOK_NAME_BYTES) == STOOK_NAME_BYTES)
                return -EINVAL;
        if (!size || args->sheaf_capacity > STOOK_SHEAF_CAPACITY_MAX)
                return -EINVAL;
        if (!barn_limit_good(args->barn_full) || !barn_limit_good(args->barn_empty))
                return -EINVAL;
        if ((args->align & (args->align - 1)) || args->align > stook_os_page_bytes())
                return -EINVAL;
        if ((args->rcu && !stook_rcu_is_usable(args->rcu)) || (args->dtor && !args->ctor))
                return -EINVAL;
        if ((args->on_low && args->low_objects >= args->limit_objects) ||
            (args->memory_out && !args->memory_in))
                return -EINVAL;
        if (args->flags & ~FLAGS_HERE)
                return -EINVAL;
        if ((args->dtor || args->memory_in) && (args->flags & STOOK_CACHE_TYPESAFE_BY_RCU))
                return -ENOTSUP;
        return size > STOOK_OBJECT_MAX ? -ERANGE : 0;
}

static unsigned barn_limit(unsigned wanted, unsigned by_default)
{
        return wanted == STOOK_NONE ? 0 : wanted ? wanted : by_default;
}

/* ---- merging ---- */

/* Nothing but its geometry, which is made of size and alignment, tells it from others. */
static bool is_plain(const struct stook_cache_plan *plan)
{
        return !plan->ctor && !plan->memory.in && !plan->limit.reclaim && !plan->at_least &&
               !plan->watch && !(plan->flags & FLAGS_ALONE) && !plan->rcu &&
               plan->full_limit == STOOK_BARN_SHEAVES && plan->empty_limit == STOOK_BARN_SHEAVES;
}

static bool may_merge(const struct stook_cache_plan *plan)
{
        bool asked = plan->flags & STOOK_CACHE_MERGE;

        return (stook_cache_options.merge < 0 ? asked : stook_cache_options.merge) &&
               is_plain(plan);
}

/* A living cache of the same geometry that may be shared. */
static struct stook_cache *same_geometry(const struct stook_cache_plan *plan)
{
        size_t stride = (plan->size + plan->align - 1) & ~(plan->align - 1);
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                if ((cache->flags & STOOK_CACHE_MERGE) && cache->slabs.stride == stride &&
                    cache->align % plan->align == 0)
                        return cache;
        return NULL;
}

/* One more user of @cache. 0; -ENOMEM. */
static int share(struct stook_cache *cache, const struct stook_cache_plan *plan)
{
        if (!stook_registry_add_alias(cache, plan->name))
                return -ENOMEM;
        cache->references++;
        if (cache->object_size < plan->size)
                __atomic_store_n(&cache->object_size, (uint32_t)plan->size, __ATOMIC_RELAXED);
        return 0;
}

/* Registry mutex held. */
static int share_or_make(const struct stook_cache_plan *plan, struct stook_cache **result)
{
        if (plan->flags & STOOK_CACHE_MERGE) {
                *result = same_geometry(plan);
                if (*result)
                        return share(*result, plan);
        }
        return stook_cache_make(0, plan, result);
}

/* ---- the call ---- */

/* The arguments are good. */
static void make_plan(struct stook_cache_plan *plan, const char *name, size_t size,
                      const struct stook_cache_args *args)
{
        *plan = (struct stook_cache_plan){
                .name = name,
                .size = size,
                .align = natural_align(size, args->flags),
                .flags = args->flags,
                .capacity = -1,
                .at_least = args->sheaf_capacity,
                .slab_objects = STOOK_SLAB_OBJECTS_MANY,
                .full_limit = barn_limit(args->barn_full, STOOK_BARN_SHEAVES),
                .empty_limit = barn_limit(args->barn_empty, STOOK_BARN_SHEAVES),
                .grows = !args->barn_full && !args->barn_empty,
                .ctor = args->ctor,
                .ctor_data = args->ctor_data,
                .dtor = args->dtor,
                .memory = {
                        .in = args->memory_in, .out = args->memory_out, .data = args->memory_data,
                },
                .limit = {
                        .most = args->limit_objects, .low = args->low_objects,
                        .on_low = args->on_low,
                        .reclaim = args->reclaim, .data = args->limit_data,
                },
                .rcu = args->rcu,
        };
        if (args->align > plan->align)
                plan->align = args->align;
        plan->watch = stook_watch_duties.wanted(name, plan->flags & STOOK_DEBUG_FLAGS,
                                                &plan->debug) |
                      (args->limit_objects ? STOOK_WATCH_LIMIT : 0);
        /* From here on the flag says that the cache is shared, by its flags or by the option. */
        if (may_merge(plan))
                plan->flags |= STOOK_CACHE_MERGE;
        else
                plan->flags &= ~STOOK_CACHE_MERGE;
}

STOOK_API struct stook_cache *stook_cache_create(const char *name, size_t size,
                                                 const struct stook_cache_args *or_null)
{
        struct stook_cache_args args;
        struct stook_cache *cache = NULL;
        struct stook_cache_plan plan;
        int error = read_args(&args, or_null) ? check(name, size, &args) : -EINVAL;

        if (!error && !stook_gate_start())
                error = -ENOMEM;
        if (error) {
                errno = -error;
                return NULL;
        }
        if (args.rcu)
                stook_rcu_find_default_limit();
        make_plan(&plan, name, size, &args);
        if (!stook_registry_lock(STOOK_REFUSED("stook_cache_create")))
                return (errno = EDEADLK, NULL);
        error = share_or_make(&plan, &cache);
        stook_registry_unlock();
        if (error)
                errno = -error;
        return error ? NULL : cache;
}
