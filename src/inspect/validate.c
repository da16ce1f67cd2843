/*
 * Purpose: checks of the heap: of one quiescent cache from its slots down to its slabs; of the
 * whole while the program's threads work; and at exit, of the bytes of objects that no call touches
 * again.
 * Place: API, a constructor and a destructor; reads all layers.
 * Checks of a cache, beyond those of the slabs alone (validate_slabs.c):
 *  V1 a slot's main is a sheaf of the cache (or the zero-capacity one), its spare another one or
 *     NULL; neither is over capacity.
 *  V2 each object in a sheaf that a slot or barn has is an object of the cache that was handed out
 *     by its slab.
 *  V3 no more objects are in sheaves than are out of slabs.
 *  V4 full stacks hold full sheaves, empty stacks empty ones, and their counts are right.
 *  V5 remote-free sheaves hold some objects, not as many as fit, all of their node.
 *  V6 the barn of a node that has memory holds objects of that node alone.
 *  V7 no object is in sheaves twice: it was freed twice, and two users will get it. (Without memory
 *     for a list of them this is not looked at.)
 * A report names the object, its slab and its offset there, if it is one.
 *
 * The whole heap: a forked child has it as it was at one moment, and no other thread: the checks of
 * one cache that is still, those of large objects and those of the pages hold there. fork takes
 * every lock first (life/fork.c), so nothing that a lock guards is half done in the child. Objects
 * that other threads had in their hands count as in use. The parent's threads go on meanwhile. The
 * answer comes through a pipe, because another thread of the program may wait for all children.
 *
 * At exit: caches with red zones or poison, and large objects that have them. Until then damage is
 * found when its object is freed, is allocated or leaves the quarantine. A child that has this
 * memory as it stands makes the check (process/child.c), so other threads may go on: an object in
 * the hands of one is in no state that is checked (debug_object.c). Reports speak of the program,
 * and do not end it; its exit status stays.
 * Failure: no child, or it ended before it answered: nothing was found out.
 */
#include <errno.h>

#include "base/tagged_stack.h"
#include "cache/cache.h"
#include "debug/debug_modes.h"
#include "gate/gate.h"
#include "inspect/inspect.h"
#include "inspect/validate.h"
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"
#include "home/home.h"
#include "watch/watch.h"
#include <stook/debug.h>

/* ---- objects that are in an array more than once ---- */

static void sink(const void **object, size_t at, size_t count)
{
        const void *moved = object[at];

        for (size_t child; (child = 2 * at + 1) < count; at = child) {
                if (child + 1 < count && object[child + 1] > object[child])
                        child++;
                if (object[child] <= moved)
                        break;
                object[at] = object[child];
        }
        object[at] = moved;
}

/* Heapsort: no memory, no recursion. (J. W. J. Williams, "Algorithm 232: Heapsort", 1964.) */
static void sort(const void **object, size_t count)
{
        for (size_t i = count / 2; i > 0; i--)
                sink(object, i - 1, count);
        for (size_t i = count; i > 1; i--) {
                const void *last = object[i - 1];

                object[i - 1] = object[0];
                object[0] = last;
                sink(object, 0, i - 1);
        }
}

/* Sorts the array; calls @each once for each object that is there more than once. */
static void same_objects(const void **object, size_t count,
                         void (*each)(const void *object, void *data), void *data)
{
        sort(object, count);
        for (size_t i = 1; i < count; i++)
                if (object[i] == object[i - 1] && (i == 1 || object[i - 2] != object[i]))
                        each(object[i], data);
}

/* ---- one cache ---- */

struct check {
        struct stook_cache *cache;
        int    faults;
        size_t objects;                 /* in sheaves seen */
        /* V7: the second walk only copies what sheaves have. NULL: the first walk. */
        const void **list;
        size_t listed, room;
};

static void fault(struct check *check, const void *object, const char *detail)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        const void *slab = NULL;
        size_t offset = 0;

        check->faults++;
        if (stook_entry_cache(entry)) {
                slab = (const void *)stook_entry_span(entry)->start;
                offset = stook_entry_offset(entry, (uintptr_t)object);
        }
        stook_report_found(STOOK_FAULT_CORRUPT, object, stook_cache_name(check->cache), slab,
                           offset, detail);
}

static void list_sheaf(struct check *check, const struct stook_sheaf *sheaf)
{
        for (unsigned i = 0; i < stook_sheaf_size(sheaf) && check->listed < check->room; i++)
                check->list[check->listed++] = sheaf->objects[i];
}

static void check_sheaf(struct check *check, const struct stook_sheaf *sheaf)
{
        struct stook_cache *cache = check->cache;
        unsigned size = stook_sheaf_size(sheaf);

        if (check->list) {
                list_sheaf(check, sheaf);
                return;
        }
        if (sheaf->cache_index != cache->index) {
                fault(check, sheaf, "V1: a sheaf of another cache");
                return;
        }
        if (size > sheaf->capacity) {
                fault(check, sheaf, "V1: a sheaf over its capacity");
                return;
        }
        check->objects += size;
        for (unsigned i = 0; i < size; i++) {
                const void *object = sheaf->objects[i];
                uint64_t entry = stook_pagemap_get((uintptr_t)object);
                bool interior = false;

                if (stook_entry_cache(entry) == cache->index)
                        stook_slabs_index(&cache->slabs,
                                          stook_entry_offset(entry, (uintptr_t)object), &interior);
                if (stook_entry_cache(entry) != cache->index || interior ||
                    !stook_slab_object_out(&cache->slabs, object))
                        fault(check, object, "V2: no object of the cache in a sheaf");
        }
}

/* V5: a slot's sheaf of objects that go home to @node. */
static void check_remote(struct check *check, unsigned slot, unsigned node)
{
        const struct stook_sheaf *sheaf = stook_home_sheaf(&check->cache->front, slot, node);

        if (!sheaf)
                return;
        check_sheaf(check, sheaf);
        if (!stook_sheaf_size(sheaf) || stook_sheaf_full(sheaf))
                fault(check, sheaf, "V5: a remote-free sheaf that is empty or full");
        for (unsigned i = 0; i < stook_sheaf_size(sheaf); i++)
                if (stook_address_node((uintptr_t)sheaf->objects[i]) != node)
                        fault(check, sheaf->objects[i],
                              "V5: an object among those of another node");
}

static void check_slots(struct check *check)
{
        unsigned slots = stook_slots_bound();

        for (unsigned i = 0; i < slots; i++) {
                struct stook_line *line = stook_slots_line(i, check->cache->front.offset >>
                                                                      STOOK_LINE_SHIFT);
                const struct stook_sheaf *main, *spare;

                for (unsigned node = 0; node < stook_os_node_count(); node++)
                        check_remote(check, i, node);
                if (!line)
                        continue;
                main = (const struct stook_sheaf *)line->pair.lo;
                spare = (const struct stook_sheaf *)line->pair.hi;
                if (!main)
                        fault(check, line, "V1: a slot without main");
                else if (main != &stook_sheaf_zero)
                        check_sheaf(check, main);
                if (spare == &stook_sheaf_zero || (spare && spare == main))
                        fault(check, line, "V1: a spare that cannot be one");
                else if (spare)
                        check_sheaf(check, spare);
        }
}

static void check_homes(struct check *check, const struct stook_sheaf *sheaf, unsigned node)
{
        for (unsigned i = 0; stook_os_node_has_memory(node) && i < stook_sheaf_size(sheaf); i++) {
                const void *object = sheaf->objects[i];

                if (stook_address_node((uintptr_t)object) != node)
                        fault(check, object, "V6: an object in the barn of another node");
        }
}

static void check_stack(struct check *check, struct stook_tagged_stack *stack, bool full,
                        unsigned node)
{
        unsigned count = 0, says = stook_tagged_stack_count_racy(stack);

        for (struct stook_link *link = (struct stook_link *)stack->head.lo; link && count <= says;
             link = link->next) {
                const struct stook_sheaf *sheaf = stook_container_of(link, struct stook_sheaf,
                                                                     owned.link);

                count++;
                check_sheaf(check, sheaf);
                check_homes(check, sheaf, node);
                if (full ? !stook_sheaf_full(sheaf) : stook_sheaf_size(sheaf) != 0)
                        fault(check, sheaf,
                              full ? "V4: not full in the full stack"
                                   : "V4: not empty in the empty stack");
        }
        if (count != says)
                fault(check, stack, "V4: a barn's count is wrong");
}

static void check_sheaves(struct check *check)
{
        check_slots(check);
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                check_stack(check, &check->cache->barns.node[node].full, true, node);
                check_stack(check, &check->cache->barns.node[node].empty, false, node);
        }
}

static void is_twice(const void *object, void *data)
{
        fault(data, object, "V7: a free object is in sheaves twice");
}

/* All sheaves were found sound, so that the second walk finds what the first one counted. */
static void check_twice(struct check *check)
{
        size_t bytes = stook_os_whole_pages(check->objects * sizeof(void *));
        void *list = check->objects ? stook_os_reserve(bytes, stook_os_page_bytes()) : NULL;

        if (!list)
                return;
        if (stook_os_commit(list, bytes)) {
                check->list = list;
                check->room = check->objects;
                check_sheaves(check);
                same_objects(check->list, check->listed, is_twice, check);
        }
        stook_os_unreserve(list, bytes);
}

STOOK_API int stook_cache_validate(struct stook_cache *cache)
{
        struct check check = { .cache = cache };

        if (!cache)
                return -EINVAL;
        if (!stook_registry_lock(STOOK_REFUSED("stook_cache_validate")))
                return -EDEADLK;
        /*
         * A visitor that did not leave has objects in its hands, and may come back in the midst of
         * the checks.
         */
        if (!stook_barns_close(&cache->barns)) {
                stook_registry_unlock();
                return -EBUSY;
        }
        check.faults = stook_slabs_validate(&cache->slabs);
        if (stook_cache_debug(cache)->flags)
                check.faults += stook_debug_validate(stook_cache_debug(cache));
        check_sheaves(&check);
        if (check.objects > stook_slabs_objects_out(&cache->slabs))
                fault(&check, NULL, "V3: more objects in sheaves than out of slabs");
        if (!check.faults)
                check_twice(&check);
        stook_barns_open(&cache->barns);
        stook_registry_unlock();
        return check.faults;
}

/* ---- the whole heap ---- */

static void fault_of_pages(const char *what, const struct stook_span *span)
{
        stook_report_found(STOOK_FAULT_CORRUPT, span ? (const void *)span->start : NULL, NULL, NULL,
                           0, what);
}

/* In the child. Faults, or -errno. */
static int validate_all(void)
{
        int faults = 0;

        for (unsigned i = 1; i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);
                int found;

                if (__atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) != STOOK_CACHE_LIVE)
                        continue;
                found = stook_cache_validate(cache);
                if (found < 0)
                        return found;
                faults += found;
        }
        return faults + stook_large_debug_validate() + stook_pages_validate(fault_of_pages);
}

STOOK_API int stook_validate_all(void)
{
        int before = errno, answer = 0, error;

        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_validate_all")))
                return -EDEADLK;
        error = stook_process_ask_child(validate_all, &answer);
        errno = before;
        return error ? error : answer;
}

/* ---- at exit ---- */

#define HAS_BYTES_TO_CHECK (STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON)

static bool has_bytes_to_check(const struct stook_cache *cache)
{
        return stook_cache_debug(cache)->flags & HAS_BYTES_TO_CHECK;
}

static bool is_any_to_check(void)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)))
                if (has_bytes_to_check(cache))
                        return true;
        if (stook_malloc_seal_bytes)
                return true;
        return stook_large_debug & HAS_BYTES_TO_CHECK;
}

/* In the child. */
static int check_all(void)
{
        struct stook_cache *cache = NULL;
        int faults = 0;

        while ((cache = stook_registry_next(cache)))
                if (has_bytes_to_check(cache))
                        faults += stook_debug_validate(stook_cache_debug(cache));
                else
                        faults += stook_watch_validate_sealed(cache);
        faults += stook_large_canaries_validate();
        if (stook_large_debug & HAS_BYTES_TO_CHECK)
                faults += stook_large_debug_validate();
        return faults;
}

__attribute__((constructor)) static void begin(void)
{
        if (stook_debug_is_asked() || stook_fail_is_asked())
                stook_os_keep_stderr();         /* the program may close it before its end */
}

__attribute__((destructor)) void stook_check_end(void)
{
        uint32_t program, thread;
        int pid, pipe, faults;

        if (!stook_gate_is_open() || !is_any_to_check())
                return;
        program = stook_process_id();
        thread = stook_process_thread_id();
        pid = stook_process_copy(&pipe);
        if (!pid) {
                stook_report_speak_for(program, thread);
                faults = check_all();
                stook_process_copy_end(pipe, &faults, sizeof(faults));
        }
        if (pid > 0)
                stook_process_copy_answer(pid, pipe, &faults, sizeof(faults));
}
