/*
 * Purpose: from a plan to a live cache: composes the layers.
 * Place: called by create, for the program's caches, and by malloc, for its classes; calls slab,
 *  barn and slot to make their parts.
 * Invariants:
 *  I1 a cache is published after its line is filled in every ready slot and its parts are complete.
 * Concurrency: registry mutex.
 */
#include <errno.h>
#include <string.h>

#include "cache/cache_watch.h"
#include "home/home.h"

struct stook_heap *stook_cache_heaps[STOOK_CACHES_MAX] STOOK_MOSTLY_UNUSED;

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

static bool has_no_sheaves(const struct stook_cache_plan *plan)
{
        return (plan->flags & STOOK_CACHE_NO_SHEAVES) || stook_cache_options.tiny ||
               (plan->watch & STOOK_WATCH_DEBUG);
}

static unsigned capacity_of(const struct stook_cache_plan *plan, size_t stride)
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
 * -EAGAIN; -ENOMEM.
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
static size_t place_words(const struct stook_cache_plan *plan, uint32_t *hidden_offset)
{
        size_t bytes = plan->size;

        if (plan->flags & STOOK_CACHE_ACCOUNT)
                bytes = stook_account_offset(plan->size) + STOOK_ACCOUNT_BYTES;
        if (plan->flags & STOOK_CACHE_RCU) {
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

uint32_t stook_malloc_seal_bytes;
bool stook_malloc_pairs;

static int make_slabs(struct stook_cache *cache, const struct stook_cache_plan *plan,
                      uint32_t *hidden_offset)
{
        struct stook_slabs_args args = {
                .name = put_name(cache, plan->name),
                .cache_index = cache->index,
                .object_size = place_words(plan, hidden_offset),
                .align = plan->align,
                .slab_objects = plan->slab_objects,
                .random_order = cache->flags & STOOK_CACHE_RANDOM_ORDER,
                .keep_none = stook_cache_options.tiny,
                .give_later = plan->flags & STOOK_CACHE_TYPESAFE_BY_RCU ? give_later : NULL,
                .ctor = plan->ctor,
                .ctor_data = plan->ctor_data,
                .dtor = plan->dtor,
                .of_heap = plan->heap,
                .counters = &cache->counters,
        };

        if (STOOK_UNLIKELY(plan->watch & STOOK_WATCH_SEAL)) {
                args.ctor = stook_watch_duties.make_seal;
                args.ctor_data = (void *)(plan->size - stook_malloc_seal_bytes);
        }
        cache->debug_modes = (uint32_t)plan->debug;
        if (STOOK_UNLIKELY(plan->debug) &&
            !stook_watch_duties.make(cache, plan->debug, *hidden_offset, &args))
                return -ENOMEM;
        return stook_special_init(&cache->slabs, &args, plan->flags & STOOK_CACHE_HUGE_PAGES,
                                  &plan->memory);
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
static void set_fields(struct stook_cache *cache, const struct stook_cache_plan *plan)
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
        if (plan->heap || stook_cache_heaps[cache->index])
                stook_cache_heaps[cache->index] = plan->heap;
}

static void set_limit(struct stook_cache *cache, const struct stook_limit *limit)
{
        if (limit->most || limit->reclaim)
                stook_cache_seldom(cache)->limit = *limit;
        if (limit->reclaim)
                __atomic_store_n(&stook_caches_reclaim, true, __ATOMIC_RELAXED);
}

/* The layers' parts, from the slabs upwards. Return: 0; -ERANGE; -EAGAIN; -ENOMEM. */
static int make_parts(struct stook_cache *cache, const struct stook_cache_plan *plan)
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
        cache->front.barns = &cache->barns;
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
static bool let_grow(struct stook_cache *cache, const struct stook_cache_plan *plan)
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

int stook_cache_make(unsigned index, const struct stook_cache_plan *plan,
                     struct stook_cache **made)
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

struct stook_cache *stook_cache_create_at(const struct stook_class_args *args)
{
        struct stook_cache_plan plan = {
                .name = args->name, .size = args->size, .align = args->align,
                .capacity = (int)args->capacity, .flags = args->flags | STOOK_CACHE_OF_MALLOC,
                .full_limit = args->full_limit, .empty_limit = STOOK_BARN_SHEAVES, .grows = true,
                .watch = args->watch, .debug = args->debug, .memory = args->memory,
        };
        struct stook_cache *cache;

        if (!args->index)
                stook_registry_wait();
        else if (!stook_registry_try())
                return NULL;
        cache = stook_cache_alive_at(args->index);
        if (!cache && stook_cache_make(args->index, &plan, &cache))
                cache = NULL;
        stook_registry_unlock();
        return cache;
}

STOOK_API size_t stook_cache_object_size(const struct stook_cache *cache)
{
        return cache ? __atomic_load_n(&cache->object_size, __ATOMIC_RELAXED) : 0;
}
