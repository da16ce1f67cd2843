/*
 * Purpose: from a caller's wishes to a live cache: checks arguments, chooses the geometry, composes
 * the layers.
 * Place: API; calls slab, barn and slot to make their parts.
 * Invariants:
 *  I1 a cache is published after its line is filled in every ready slot and its parts are complete.
 * Concurrency: registry mutex.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "os/os.h"
#include "report/report.h"
#include "home/home.h"

#define FLAGS_HERE \
        (STOOK_HWCACHE_ALIGN | STOOK_MERGE | STOOK_DEBUG_FLAGS | FLAGS_ALONE)
/* Of caches that are not merged. */
#define FLAGS_ALONE \
        (STOOK_NO_SHEAVES | STOOK_RANDOM_ORDER | STOOK_RCU | STOOK_ACCOUNT | \
         STOOK_TYPESAFE_BY_RCU | STOOK_HUGE_PAGES)

/* Bytes up to which natural alignment grows with the size: what malloc promises too. */
#define NATURAL_ALIGN_MAX 16

bool stook_caches_reclaim;
struct stook_cache_options stook_cache_options = { .capacity = -1, .merge = -1 };

unsigned stook_cache_default_capacity(size_t stride)
{
        unsigned capacity;

        if (stride < 256)
                return stook_sheaf_round_capacity(64);
        if (stride < 1024)
                return stook_sheaf_round_capacity(26);
        if (stride < 4096)
                return 12;
        /* From 16 KiB on, bytes are the limit, not objects. One object is always worth a sheaf. */
        capacity = stook_sheaf_round_capacity(4);
        while (capacity > 1 && 2 * capacity * stride > STOOK_SLOT_CACHE_BYTES)
                capacity /= 2;
        return capacity;
}

static size_t natural_align(size_t size, uint64_t flags)
{
        size_t align = size & -size;

        if (align < sizeof(void *))
                align = sizeof(void *);
        if (align > NATURAL_ALIGN_MAX)
                align = NATURAL_ALIGN_MAX;
        if (flags & STOOK_HWCACHE_ALIGN) {
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
        return wanted <= STOOK_BARN_LIMIT_MAX || wanted == UINT_MAX;
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
        if ((args->on_low && args->low >= args->limit) || (args->memory_out && !args->memory_in))
                return -EINVAL;
        if ((args->flags & ~FLAGS_HERE) ||
            ((args->dtor || args->memory_in) && (args->flags & STOOK_TYPESAFE_BY_RCU)))
                return -ENOTSUP;
        return size > STOOK_OBJECT_MAX ? -E2BIG : 0;
}

/* args: 0 means the default, UINT_MAX none */
static unsigned barn_limit(unsigned wanted, unsigned by_default)
{
        return wanted == UINT_MAX ? 0 : wanted ? wanted : by_default;
}

struct plan {
        const char *name;
        size_t   size, align;
        uint64_t flags;
        int      capacity;              /* -1: by size, @at_least as a minimum */
        unsigned at_least;
        uint32_t slab_objects;
        unsigned full_limit, empty_limit;
        bool     grows;                 /* capacity and limits may change by themselves */
        uint32_t watch;                 /* enum stook_watch */
        uint64_t debug;                 /* STOOK_DEBUG_* */
        void   (*ctor)(void *object, void *ctor_data);
        void    *ctor_data;
        void   (*dtor)(void *object, void *ctor_data);
        struct stook_slabs_memory memory;
        struct stook_limit limit;
        const struct stook_rcu *rcu;
};

static bool has_no_sheaves(const struct plan *plan)
{
        return (plan->flags & STOOK_NO_SHEAVES) || stook_cache_options.tiny ||
               (plan->watch & STOOK_WATCH_DEBUG);
}

static unsigned capacity_of(const struct plan *plan, size_t stride)
{
        unsigned capacity;

        if (has_no_sheaves(plan))
                return 0;
        if (stook_cache_options.capacity >= 0)
                return (unsigned)stook_cache_options.capacity;
        if (plan->capacity >= 0)
                return (unsigned)plan->capacity;
        capacity = stook_cache_default_capacity(stride);
        return plan->at_least > capacity ? stook_sheaf_round_capacity(plan->at_least) : capacity;
}

static enum stook_edge edge_of(const struct stook_cache *cache)
{
        if (cache->watch)
                return STOOK_EDGE_WATCH;
        return stook_cache_is_accounted(cache) ? STOOK_EDGE_ACCOUNT : STOOK_EDGE_NONE;
}

/*
 * Where the cache's sheaves are: at the line of its index, or, if it is accounted or watched, at
 * the line of a second index. And where inlined calls look (see account/account.h). Return: 0;
 * -ENFILE; -ENOMEM.
 */
static int choose_line(struct stook_cache *cache)
{
        struct stook_cache *second = NULL;
        unsigned index = cache->index;
        int error;

        if (stook_cache_is_accounted(cache) || stook_watch_wants_line(cache->watch)) {
                error = stook_registry_take(0, &second);
                if (error)
                        return error;
                index = second->index;
                cache->second_index = (uint16_t)index;
        }
        if (!stook_slots_add_cache(cache->index) || !stook_slots_add_cache(index))
                return -ENOMEM;
        cache->front.line = stook_slots_first_line(edge_of(cache) == STOOK_EDGE_ACCOUNT ? 0
                                                                                 : cache->index);
        cache->front.offset = index << STOOK_LINE_SHIFT;
        cache->barns.line_index = index;
        return 0;
}

/*
 * Words of this library behind an object: the group's (account/account.h), then the hidden one of
 * frees by RCU. Returns where they end.
 */
static size_t place_words(const struct plan *plan, uint32_t *hidden_offset)
{
        size_t bytes = plan->size;

        if (plan->flags & STOOK_ACCOUNT)
                bytes = stook_account_offset(plan->size) + STOOK_ACCOUNT_BYTES;
        if (plan->flags & STOOK_RCU) {
                *hidden_offset = (uint32_t)stook_account_offset(bytes);
                bytes = *hidden_offset + sizeof(struct stook_link);
        }
        return bytes;
}

/* The cache's own copy. */
static const char *put_name(struct stook_cache *cache, const char *name)
{
        bool is_short = strlen(name) < sizeof(cache->short_name);
        char *to = is_short ? cache->short_name : stook_cache_seldom(cache)->name;

        /* Not by strcpy: no other call of a start touches that part of libc's file. */
        for (size_t i = 0; (to[i] = name[i]); i++)
                ;
        return to;
}

/* Of a type-stable cache: an empty slab's span waits for readers. */
static void give_later(struct stook_slabs *slabs, struct stook_span *span)
{
        stook_rcu_give_span(&stook_container_of(slabs, struct stook_cache, slabs)->rcu, span);
}

static int make_slabs(struct stook_cache *cache, const struct plan *plan, uint32_t *hidden_offset)
{
        struct stook_slabs_args args = {
                .name = put_name(cache, plan->name),
                .cache_index = cache->index,
                .object_size = place_words(plan, hidden_offset),
                .align = plan->align,
                .slab_objects = plan->slab_objects,
                .random_order = cache->flags & STOOK_RANDOM_ORDER,
                .keep_none = stook_cache_options.tiny,
                .give_later = plan->flags & STOOK_TYPESAFE_BY_RCU ? give_later : NULL,
                .ctor = plan->ctor,
                .ctor_data = plan->ctor_data,
                .dtor = plan->dtor,
                .runs = (plan->flags & STOOK_HUGE_PAGES) || plan->memory.in,
                .huge = plan->flags & STOOK_HUGE_PAGES,
                .memory = plan->memory,
                .counters = &cache->counters,
        };

        cache->debug_modes = (uint32_t)plan->debug;
        if (STOOK_UNLIKELY(plan->debug) &&
            !stook_watch_duties.make(cache, plan->debug, *hidden_offset, &args))
                return -ENOMEM;
        return stook_slabs_init(&cache->slabs, &args);
}

/* What the index's last cache counted, and was limited to. */
static void forget(struct stook_cache *cache)
{
        struct stook_seldom *seldom = stook_cache_seldom(cache);

        memset(cache->counters.near, 0, sizeof(cache->counters.near));
        memset(seldom->counters, 0, sizeof(seldom->counters));
        memset(&seldom->limit, 0, sizeof(seldom->limit));
}

/* The fields that follow from the plan alone, of an index that was just taken. */
static void set_fields(struct stook_cache *cache, const struct plan *plan)
{
        /*
         * From here on the idle reaper of any slot may visit the cache. The barns of an index that
         * was used before are closed since that cache was destroyed.
         */
        if (!cache->barns.node)
                stook_barns_close(&cache->barns);
        else
                forget(cache);
        cache->flags = plan->flags | stook_cache_options.flags;
        cache->object_size = (uint32_t)plan->size;
        cache->align = (uint32_t)plan->align;
        cache->references = 1;
        cache->second_index = 0;
        cache->watch = (uint8_t)plan->watch;
        cache->ctor = plan->ctor;
}

static void set_limit(struct stook_cache *cache, const struct stook_limit *limit)
{
        if (limit->most || limit->reclaim)
                stook_cache_seldom(cache)->limit = *limit;
        if (limit->reclaim)
                __atomic_store_n(&stook_caches_reclaim, true, __ATOMIC_RELAXED);
}

/* The layers' parts, from the slabs upwards. Return: 0; -EINVAL; -ENFILE; -ENOMEM. */
static int make_parts(struct stook_cache *cache, const struct plan *plan)
{
        uint32_t hidden_offset = 0;
        int error = make_slabs(cache, plan, &hidden_offset);

        if (error)
                return error;
        cache->account_word = (uint16_t)(stook_account_offset(plan->size) / STOOK_ACCOUNT_BYTES);
        cache->charge = stook_cache_is_accounted(cache) ? cache->slabs.stride : 0;
        error = stook_barns_init(&cache->barns, &cache->slabs,
                                 capacity_of(plan, cache->slabs.stride), plan->full_limit,
                                 plan->empty_limit);
        if (error)
                return error;
        set_limit(cache, &plan->limit);
        cache->front.below = &cache->barns;
        if (!stook_home_add_cache(&cache->front))
                return -ENOMEM;
        error = choose_line(cache);
        if (error)
                return error;
        if (!stook_rcu_cache_init(&cache->rcu, &cache->front, plan->rcu, hidden_offset,
                                  stook_cache_is_accounted(cache)))
                return -ENOMEM;
        cache->rcu.watched = plan->watch & (STOOK_WATCH_DEBUG | STOOK_WATCH_HARDEN);
        return 0;
}

/* True: the cache has sheaves, or will have them once it grows. */
static bool let_grow(struct stook_cache *cache, const struct plan *plan)
{
        unsigned capacity = stook_barns_capacity(&cache->barns);
        bool grows = plan->grows && stook_cache_options.capacity < 0 && !has_no_sheaves(plan);

        if (grows)
                stook_barns_let_grow(&cache->barns);
        else if (plan->grows && capacity)
                stook_barns_let_room_grow(&cache->barns);
        return capacity || grows;
}

/* I1: all parts are made. From here on other threads may find the cache. */
static void publish(struct stook_cache *cache, bool sheaves)
{
        cache->edge = (uint8_t)edge_of(cache);
        cache->magic = cache->slabs.magic;
        cache->starts = stook_slabs_starts(&cache->slabs);
        stook_shapes[cache->index] = (struct stook_shape){ cache->magic, cache->starts };
        __atomic_store_n(&cache->front.config, stook_cache_next_generation(cache, sheaves),
                         __ATOMIC_RELEASE);
        stook_barns_open(&cache->barns);
        stook_registry_publish(cache);
}

/* Registry mutex held. @index 0: any. Return: 0; -EINVAL; -ENFILE; -ENOMEM. */
static int make(unsigned index, const struct plan *plan, struct stook_cache **made)
{
        struct stook_cache *cache;
        int error = stook_registry_take(index, &cache);

        if (error)
                return error;
        set_fields(cache, plan);
        error = make_parts(cache, plan);
        if (error) {
                if (cache->second_index)
                        stook_registry_give(stook_cache_at(cache->second_index));
                stook_registry_give(cache);
                return error;
        }
        publish(cache, let_grow(cache, plan));
        *made = cache;
        return 0;
}

/* ---- merging ---- */

/* Nothing but its geometry, which is made of size and alignment, tells it from others. */
static bool is_plain(const struct plan *plan)
{
        return !plan->ctor && !plan->memory.in && !plan->limit.reclaim && !plan->at_least &&
               !plan->watch &&
               !(plan->flags & FLAGS_ALONE) && !plan->rcu && plan->full_limit == STOOK_BARN_FULL &&
               plan->empty_limit == STOOK_BARN_EMPTY;
}

static bool may_merge(const struct plan *plan)
{
        bool asked = plan->flags & STOOK_MERGE;

        return (stook_cache_options.merge < 0 ? asked : stook_cache_options.merge) &&
               is_plain(plan);
}

/* A living cache of the same geometry that has this flag. */
static struct stook_cache *same_geometry(const struct plan *plan, uint64_t flag)
{
        size_t stride = (plan->size + plan->align - 1) & ~(plan->align - 1);
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                if ((cache->flags & flag) && cache->slabs.stride == stride &&
                    cache->align % plan->align == 0)
                        return cache;
        return NULL;
}

/*
 * No index is left. A plain cache then shares one, as if both had asked for it. Not where hardening
 * is on, for there a cache keeps its objects apart from those of others; and not where STOOK_MERGE
 * says that none is shared.
 */
static struct stook_cache *last_resort(const struct plan *plan)
{
        if (!(plan->flags & STOOK_CACHE_PLAIN) || !stook_cache_options.merge ||
            stook_cache_options.alone)
                return NULL;
        return same_geometry(plan, STOOK_CACHE_PLAIN);
}

/* One more user of @cache. 0; -ENOMEM. */
static int share(struct stook_cache *cache, const struct plan *plan)
{
        if (!stook_registry_add_alias(cache, plan->name))
                return -ENOMEM;
        cache->references++;
        if (cache->object_size < plan->size)
                __atomic_store_n(&cache->object_size, (uint32_t)plan->size, __ATOMIC_RELAXED);
        return 0;
}

/* Registry mutex held. */
static int share_or_make(const struct plan *plan, struct stook_cache **result)
{
        struct stook_cache *cache = NULL;
        int error = 0;

        if (plan->flags & STOOK_MERGE)
                cache = same_geometry(plan, STOOK_MERGE);
        if (!cache) {
                error = make(0, plan, result);
                if (error != -ENFILE)
                        return error;
                cache = last_resort(plan);
        }
        if (cache)
                error = share(cache, plan);
        *result = cache;
        return error;
}

/* The arguments are good. */
static void make_plan(struct plan *plan, const char *name, size_t size,
                      const struct stook_cache_args *args)
{
        *plan = (struct plan){
                .name = name,
                .size = size,
                .align = natural_align(size, args->flags),
                .flags = args->flags,
                .capacity = -1,
                .at_least = args->sheaf_capacity,
                .slab_objects = STOOK_SLAB_OBJECTS_MANY,
                .full_limit = barn_limit(args->barn_full, STOOK_BARN_FULL),
                .empty_limit = barn_limit(args->barn_empty, STOOK_BARN_EMPTY),
                .grows = !args->barn_full && !args->barn_empty,
                .ctor = args->ctor,
                .ctor_data = args->ctor_data,
                .dtor = args->dtor,
                .memory = {
                        .in = args->memory_in, .out = args->memory_out, .data = args->memory_data,
                },
                .limit = {
                        .most = args->limit, .low = args->low, .on_low = args->on_low,
                        .reclaim = args->reclaim, .data = args->limit_data,
                },
                .rcu = args->rcu,
        };
        if (args->align > plan->align)
                plan->align = args->align;
        plan->watch = stook_watch_duties.wanted(name, plan->flags & STOOK_DEBUG_FLAGS,
                                                &plan->debug) |
                      (args->limit ? STOOK_WATCH_LIMIT : 0);
        /* From here on the flag says that the cache is shared, by its flags or by the option. */
        if (may_merge(plan))
                plan->flags |= STOOK_MERGE;
        else
                plan->flags &= ~STOOK_MERGE;
        if (is_plain(plan))
                plan->flags |= STOOK_CACHE_PLAIN;
}

STOOK_API struct stook_cache *stook_cache_create(const char *name, size_t size,
                                                 const struct stook_cache_args *or_null)
{
        struct stook_cache_args args;
        struct stook_cache *cache = NULL;
        struct plan plan;
        int error = read_args(&args, or_null) ? check(name, size, &args) : -EINVAL;

        if (!error && !stook_gate_open())
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

struct stook_cache *stook_cache_create_at(const struct stook_class_args *args)
{
        struct plan plan = {
                .name = args->name, .size = args->size, .align = args->align,
                .capacity = (int)args->capacity, .flags = args->flags | STOOK_CACHE_OF_MALLOC,
                .full_limit = args->full_limit, .empty_limit = STOOK_BARN_EMPTY, .grows = true,
                .watch = args->watch, .debug = args->debug,
        };
        struct stook_cache *cache = NULL;

        if (!args->index)
                stook_registry_wait();
        else if (!stook_registry_try())
                return NULL;
        if (args->index && stook_cache_at(args->index)->state == STOOK_CACHE_LIVE)
                cache = stook_cache_at(args->index);
        else if (make(args->index, &plan, &cache))
                cache = NULL;
        stook_registry_unlock();
        return cache;
}

STOOK_API size_t stook_cache_object_size(const struct stook_cache *cache)
{
        return cache ? __atomic_load_n(&cache->object_size, __ATOMIC_RELAXED) : 0;
}
