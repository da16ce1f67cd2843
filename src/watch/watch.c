/*
 * Purpose: see watch.h. Each function makes the call through the slow calls, and shows the object
 * to everything that watches the cache: after it was allocated, before it is freed.
 * Failure: as the call itself. A debug mode may find the object at fault. Then it is isolated, and
 * never comes back: an allocation takes another one, a free ends there.
 */
#include "watch/watch.h"

#include "account/account.h"
#include "limit/cache_limit.h"
#include "debug/debug_modes.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "process/checker.h"
#include "profile/profile.h"
#include "record/record.h"
#include "slot/slot_hot.h"
#include "stack/stack.h"

/* ---- what a cache is watched by ---- */

/* Of all caches without debug modes; nothing is written to it. */
struct stook_debug stook_cache_no_debug;

uint32_t stook_watch_wanted(const char *name, uint64_t own, uint64_t *debug)
{
        bool fails, hardened;

        if (own & STOOK_CACHE_STORE_USER)
                stook_stack_start();
        *debug = own | stook_debug_wanted(name);
        if (!(*debug & ~(uint64_t)STOOK_CACHE_STORE_USER) && stook_checker_is_on())
                *debug |= STOOK_DEBUG_CHECKED;
        fails = (*debug & STOOK_CACHE_MAY_FAIL) || stook_fail_wants(name);
        hardened = !*debug && stook_is_hardened(STOOK_HARDEN_OBJECTS);
        return stook_cache_options.watch | (*debug ? STOOK_WATCH_DEBUG : 0) |
               (fails ? STOOK_WATCH_FAIL : 0) | (hardened ? STOOK_WATCH_HARDEN : 0);
}

bool stook_watch_is_asked(void)
{
        return stook_cache_options.watch || stook_debug_is_asked() || stook_fail_is_asked() ||
               stook_checker_is_on() || stook_is_hardened(STOOK_HARDEN_OBJECTS);
}

bool stook_watch_make(struct stook_cache *cache, uint64_t modes, uint32_t hidden,
                      struct stook_slabs_args *args)
{
        struct stook_seldom *seldom = stook_cache_seldom(cache);

        if (!seldom->debug)             /* the next cache of the index keeps it */
                seldom->debug = stook_meta_bump(sizeof(*seldom->debug), 0);
        if (!seldom->debug)
                return false;
        if (modes & STOOK_CACHE_QUARANTINE)
                stook_quarantine_start(stook_debug_quarantine_bytes());
        args->tail_bytes = stook_debug_init(seldom->debug, &(struct stook_debug_args){
                .flags = modes,
                .name = args->name,
                .slabs = &cache->slabs,
                .object_bytes = cache->object_size,
                .words = stook_account_offset(cache->object_size),
                .words_end = args->object_size,
                .hidden = hidden,
                .align = cache->align,
                .accounted = stook_cache_is_accounted(cache),
                .stable = cache->flags & STOOK_CACHE_TYPESAFE_BY_RCU,
                .ctor = args->ctor,
                .ctor_data = args->ctor_data,
                .dtor = args->dtor,
        });
        args->keep_first = true;
        args->ctor = stook_debug_make;
        args->ctor_data = seldom->debug;
        args->dtor = args->dtor ? stook_debug_unmake : NULL;
        return true;
}

/* ---- recordings and profiles, neither of which changes what a call does ---- */

static struct stook_record_cache described(const struct stook_cache *cache)
{
        return (struct stook_record_cache){
                .index = cache->index, .object_bytes = (uint32_t)stook_slow_bytes(cache),
                .stride = (uint32_t)cache->slabs.stride, .born = cache->born,
                .name = stook_cache_name(cache),
        };
}

/* After an allocation. @bytes: as wanted. */
static void observe_alloc(const struct stook_cache *cache, const void *object, size_t bytes)
{
        struct stook_record_cache said;

        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_alloc(object, bytes);
        if (cache->watch & STOOK_WATCH_RECORD) {
                said = described(cache);
                stook_record_alloc(&said, object, bytes);
        }
}

/* Before a free. */
static void observe_free(const struct stook_cache *cache, const void *object)
{
        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (cache->watch & STOOK_WATCH_RECORD)
                stook_record_free(object, false);
}

/*
 * Before a free by RCU. An object that will wait in a sheaf of mixed caches is freed by a bulk call
 * later, and is seen there.
 */
static void observe_free_rcu(const struct stook_cache *cache, const void *object)
{
        if (stook_barns_capacity(&cache->barns) <= 1 && !cache->rcu.own)
                return;
        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (cache->watch & STOOK_WATCH_RECORD)
                stook_record_free(object, true);
}

/* ---- allocations ---- */

/* How the slow calls are called: this file zeroes objects itself, and only it needs their sizes. */
static uint64_t inner(uint64_t how)
{
        how = stook_how_without_size(how);
        return how & ~(uint64_t)(STOOK_HOW_ZERO | STOOK_HOW_READERS);
}

/* The bytes that the caller asked for. */
static size_t bytes_of(const struct stook_cache *cache, uint64_t how)
{
        return stook_how_has_size(how) ? stook_how_size(how) : stook_watch_bytes(cache);
}

static bool is_debugged(const struct stook_cache *cache)
{
        return stook_cache_debug(cache)->flags;
}

/* False: the object is isolated. No group is charged for it. */
static bool show_allocated(struct stook_cache *cache, void *object, size_t bytes, unsigned by)
{
        bool good = true;

        if (stook_cache_is_hardened(cache))
                good = stook_watch_harden_alloc(cache, object, bytes, by);
        else if (is_debugged(cache))
                good = stook_debug_alloc(stook_cache_debug(cache), object, bytes);
        if (stook_malloc_pairs && (stook_cache_debug(cache)->flags & STOOK_CACHE_CHECK))
                stook_debug_made(stook_cache_debug(cache), object, by);
        if (good)
                return true;
        if (stook_cache_is_accounted(cache))
                stook_account_uncharge(cache, 1, &object);
        return false;
}

/* Hardening zeroes all that a user may use, whatever was asked for. */
static void zero(const struct stook_cache *cache, void *object, size_t bytes, bool asked)
{
        if (stook_cache_hardened_by(cache, STOOK_HARDEN_ZERO_ALLOC))
                memset(object, 0, stook_cache_is_sealed(cache) ? bytes : stook_watch_bytes(cache));
        else if (asked)
                memset(object, 0, bytes);
}

bool stook_watch_fails(const struct stook_cache *cache, size_t bytes)
{
        return STOOK_UNLIKELY(cache->watch & STOOK_WATCH_FAIL) &&
               stook_fail_strikes(stook_cache_name(cache), bytes);
}

/* As if there were no memory. */
static STOOK_COLD void *fail_on_purpose(uint64_t how)
{
        return stook_slow_answer(how, NULL, 0);
}

/* An object that was counted, if there is a limit. */
static void *alloc_counted(struct stook_cache *cache, uint64_t how)
{
        size_t bytes = bytes_of(cache, how);
        void *object;

        if (stook_watch_fails(cache, bytes))
                return fail_on_purpose(how);
        do {
                object = stook_cache_is_accounted(cache)
                                 ? stook_account_alloc(cache, inner(how))
                                 : stook_alloc_plain(cache, inner(how));
                if (STOOK_UNLIKELY(!object))
                        return NULL;
        } while (STOOK_UNLIKELY(!show_allocated(cache, object, bytes, stook_how_by(how))));
        zero(cache, object, bytes, how & STOOK_HOW_ZERO);
        observe_alloc(cache, object, bytes);
        return object;
}

static STOOK_NOINLINE void *alloc_limited(struct stook_cache *cache, uint64_t how)
{
        void *object;

        if (!stook_limit_take(cache, 1, how))
                return fail_on_purpose(how);
        object = alloc_counted(cache, how);
        if (!object)
                stook_limit_give(cache, 1);
        return object;
}

void *stook_watch_alloc(struct stook_cache *cache, uint64_t how)
{
        return STOOK_UNLIKELY(stook_cache_is_limited(cache)) ? alloc_limited(cache, how)
                                                             : alloc_counted(cache, how);
}

bool stook_watch_alloc_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        uint64_t each = how;
        size_t got = 0;

        if (stook_cache_is_limited(cache) && !stook_limit_take(cache, n, how))
                return false;

        if (how & STOOK_HOW_THISNODE)           /* all of one node: the one in use now */
                each = stook_how_with_node(how, (int)stook_os_node_home(stook_slot_node()));
        while (got < n && (objects[got] = alloc_counted(cache, each)))
                got++;
        if (got == n)
                return true;
        stook_watch_free_bulk(cache, got, objects, how & STOOK_HOW_NOLOCK);
        if (stook_cache_is_limited(cache))
                stook_limit_give(cache, n - got);
        return false;
}

/*
 * @object was found at fault, and the call must not fail. Another object takes its place. If there
 * is none, @object is made anew.
 */
static STOOK_COLD void *make_do(struct stook_cache *cache, void *object)
{
        void *other = alloc_counted(cache, 0);

        if (other)
                return other;
        if (stook_cache_is_accounted(cache))
                stook_account_charge(cache, 1, &object, stook_group_now(), STOOK_CHARGE_FORCE);
        if (is_debugged(cache)) {
                stook_debug_make(object, stook_cache_debug(cache));
                stook_debug_alloc(stook_cache_debug(cache), object, stook_slow_bytes(cache));
        }
        observe_alloc(cache, object, stook_slow_bytes(cache));
        return object;
}

void *stook_watch_lent(struct stook_cache *cache, void *object)
{
        if (STOOK_UNLIKELY(!show_allocated(cache, object, stook_watch_bytes(cache),
                                           STOOK_BY_MALLOC)))
                return make_do(cache, object);
        zero(cache, object, 0, false);
        observe_alloc(cache, object, stook_slow_bytes(cache));
        return object;
}

/* ---- what leaves the quarantine ---- */

/* The cache that the pages of @object are of; NULL: it is large. */
static struct stook_cache *cache_of(const void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));

        return index ? stook_cache_at(index) : NULL;
}

/* A visit of the barns keeps a destroy out (barn.h). */
static bool begin_leaving(const void *object, void **visited)
{
        struct stook_cache *cache = cache_of(object);

        *visited = cache;
        if (!cache)
                return true;
        if (!stook_barns_visit_begin(&cache->barns))
                return false;
        if (cache_of(object) == cache)
                return true;
        stook_barns_visit_end(&cache->barns);
        return false;
}

static void end_leaving(void *visited)
{
        if (visited)
                stook_barns_visit_end(&((struct stook_cache *)visited)->barns);
}

static void free_seen(struct stook_cache *cache, void *object, uint64_t how)
{
        if (stook_cache_is_accounted(cache))
                stook_account_free(cache, object, how);
        else
                stook_free_plain(cache, object, how);
}

static size_t leave(void *object, uint64_t how)
{
        struct stook_cache *cache = cache_of(object);

        if (!cache)
                return stook_watch_large_leave(object, how);
        if (stook_debug_leave(stook_cache_debug(cache), object))
                free_seen(cache, object, how);
        return cache->slabs.stride;
}

static const struct stook_leaving leaving = {
        .begin = begin_leaving, .leave = leave, .end = end_leaving,
};

/* ---- frees ---- */

void stook_watch_quarantine(void *object, size_t bytes, uint64_t how)
{
        stook_quarantine_put(object, bytes, how & STOOK_HOW_NOLOCK, &leaving);
}

static enum stook_debug_freed show_freed(struct stook_cache *cache, void *object, uint64_t how)
{
        struct stook_debug_free as = {
                .has_size = stook_how_has_size(how), .bytes = stook_how_size(how),
                .waited = how & STOOK_HOW_READERS,
        };

        if (stook_cache_is_hardened(cache))
                return stook_watch_harden_free(cache, object, how) ? STOOK_DEBUG_GOES
                                                                   : STOOK_DEBUG_KEPT;
        if (!(how & STOOK_HOW_READERS))
                stook_watch_compare_debugged(cache, object, stook_how_by(how));
        return is_debugged(cache) ? stook_debug_free(stook_cache_debug(cache), object, as)
                                  : STOOK_DEBUG_GOES;
}

static void free_counted(struct stook_cache *cache, void *object, uint64_t how)
{
        enum stook_debug_freed freed = show_freed(cache, object, how);

        if (freed == STOOK_DEBUG_KEPT)
                return;
        observe_free(cache, object);
        if (freed == STOOK_DEBUG_GOES) {
                free_seen(cache, object, inner(how));
                return;
        }
        /* A program under a checker has the limits that it has without. */
        if ((stook_cache_debug(cache)->flags & STOOK_DEBUG_V) && stook_cache_is_accounted(cache))
                stook_account_uncharge(cache, 1, &object);
        stook_watch_quarantine(object, cache->slabs.stride, how);
}

void stook_watch_free_seen(struct stook_cache *cache, void *object, uint64_t how)
{
        free_counted(cache, object, how);
        /* What waited for readers is no caller's since then. */
        if (stook_cache_is_limited(cache) && !(how & STOOK_HOW_READERS))
                stook_limit_give(cache, 1);
}

void stook_watch_free_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        for (size_t i = 0; i < n; i++)
                stook_watch_free(cache, objects[i], how);
}

static bool show_waiting(struct stook_cache *cache, void *object)
{
        if (stook_cache_is_hardened(cache))
                return stook_watch_harden_wait(cache, object);
        return !is_debugged(cache) || stook_debug_wait(stook_cache_debug(cache), object);
}

int stook_watch_free_rcu(struct stook_cache *cache, void *object, bool nolock)
{
        size_t bytes = stook_cache_is_sealed(cache) ? stook_watch_usable(cache, object) : 0;
        int error;

        if (!show_waiting(cache, object))
                return -EINVAL;
        observe_free_rcu(cache, object);
        error = stook_rcu_free(&cache->rcu, object, nolock);
        if (!error && stook_cache_is_limited(cache))
                stook_limit_give(cache, 1);
        if (STOOK_UNLIKELY(error) && is_debugged(cache))
                stook_debug_wait_undo(stook_cache_debug(cache), object);
        else if (STOOK_UNLIKELY(error) && stook_cache_is_sealed(cache))
                stook_seal_write(stook_seal_key(object), object, stook_seal_at(cache), bytes,
                                 STOOK_BY_MALLOC);
        else if (STOOK_UNLIKELY(error) && stook_cache_is_hardened(cache))
                stook_watch_harden_alloc(cache, object, bytes, STOOK_BY_MALLOC);
        return error;
}

/* Only hardening comes here: caches with debug modes have no sheaves. */
void stook_watch_left(struct stook_cache *cache, size_t n, void *const *objects)
{
        for (size_t i = 0; i < n && stook_cache_is_hardened(cache); i++)
                stook_watch_harden_free(cache, objects[i], STOOK_HOW_READERS);
}

/* ---- sizes ---- */

size_t stook_watch_usable(const struct stook_cache *cache, const void *object)
{
        if (stook_cache_is_sealed(cache)) {
                uint64_t says = stook_seal_says(object, stook_seal_at(cache));

                return stook_seal_is_live(says) ? stook_seal_bytes(says) : STOOK_NO_OBJECT;
        }
        if (stook_cache_is_hardened(cache) && stook_is_hardened(STOOK_HARDEN_DOUBLE) &&
            !stook_harden_has_user(object))
                return STOOK_NO_OBJECT;
        if (!is_debugged(cache))
                return stook_watch_bytes(cache);
        return stook_debug_requested(stook_cache_debug(cache), object);
}

/* ---- the end of a cache ---- */

static bool is_of(const void *object, const void *cache)
{
        return cache_of(object) == cache;
}

void stook_watch_end(struct stook_cache *cache)
{
        if (!is_debugged(cache))
                return;
        if (stook_cache_debug(cache)->flags & STOOK_CACHE_QUARANTINE)
                stook_quarantine_flush(is_of, cache, &leaving);
        stook_debug_end(stook_cache_debug(cache));
        stook_debug_close_slabs(stook_cache_debug(cache));
}

void stook_watch_describe(const struct stook_cache *cache, const void *pointer,
                          struct stook_report_about *about)
{
        if (!cache)
                stook_watch_describe_freed(pointer, about);
        else if (is_debugged(cache))
                stook_debug_describe(stook_cache_debug(cache), pointer, about);
}

const struct stook_edge_calls stook_watch_edge = {
        stook_watch_alloc, stook_watch_free, stook_watch_alloc_bulk, stook_watch_free_bulk,
};

const struct stook_watch_duties stook_watch_duties = {
        .wanted = stook_watch_wanted,
        .make = stook_watch_make,
        .end = stook_watch_end,
        .free_rcu = stook_watch_free_rcu,
        .left = stook_watch_left,
        .fails = stook_watch_fails,
        .lent = stook_watch_lent,
        .usable = stook_watch_usable,
        .describe = stook_watch_describe,
        .where = stook_watch_where,
        .make_seal = stook_seal_make,
        .malloc = stook_watch_malloc,
        .resize = stook_watch_resize,
        .large_alloc = stook_watch_large_alloc,
        .large_free = stook_watch_large_free,
        .large_free_sized = stook_watch_large_free_sized,
        .large_resize = stook_watch_large_resize,
        .large_usable = stook_watch_large_usable,
        .take_guarded = stook_span_take_guarded,
        .give_guarded = stook_span_give_guarded,
};
