/*
 * Purpose: check a quiescent cache from its slots down to its slabs.
 * Place: API; reads all layers.
 * Checks, beyond what the slab layer checks of itself:
 *  V1 a slot's main is a sheaf of the cache (or the zero-capacity one), its spare another one or
 *     NULL; neither is over capacity.
 *  V2 each object in a sheaf that a slot or barn has is an object of the cache that was handed out
 *     by its slab.
 *  V3 no more objects are in sheaves than are out of slabs.
 *  V4 full stacks hold full sheaves, empty stacks empty ones, and their counts are right.
 *  V5 remote-free sheaves hold some objects, not as many as fit, all of their node.
 *  V6 the barn of a node that has memory holds objects of that node alone.
 *  V7 no object is in sheaves twice. (Without memory for a list of them this is not looked at.)
 * A report names the object, its slab and its offset there, if it is one.
 */
#include <errno.h>

#include "base/tagged_stack.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "inspect/same_object.h"
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "report/report.h"
#include "home/home.h"
#include <stook/debug.h>

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
                stook_same_objects(check->list, check->listed, is_twice, check);
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
