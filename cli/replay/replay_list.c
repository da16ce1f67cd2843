/*
 * Purpose: see replay_list.h.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_list.h"

/* Room for one more of @bytes each. False: no memory, and all is as it was. */
static bool grow(void **array, size_t count, size_t *room, size_t bytes)
{
        size_t wanted = *room ? *room * 2 : 64;
        void *grown;

        if (count < *room)
                return true;
        grown = reallocarray(*array, wanted, bytes);
        if (!grown)
                return false;
        *array = grown;
        *room = wanted;
        return true;
}

uint32_t replay_list_cache(struct replay_list *list, const char *name, uint64_t object_bytes)
{
        struct replay_cache *cache;

        for (size_t i = 0; i < list->cache_count; i++) {
                cache = &list->caches[i];
                if (cache->object_bytes == object_bytes &&
                    !strncmp(cache->name, *name ? name : "?", sizeof cache->name - 1))
                        return (uint32_t)i;
        }
        if (list->cache_count == REPLAY_CACHES ||
            !grow((void **)&list->caches, list->cache_count, &list->cache_room, sizeof *cache))
                return REPLAY_LARGE;
        cache = &list->caches[list->cache_count];
        memset(cache, 0, sizeof *cache);
        snprintf(cache->name, sizeof cache->name, "%s", *name ? name : "?");
        cache->object_bytes = object_bytes;
        cache->capacity = -1;
        return (uint32_t)list->cache_count++;
}

/* False: as replay_list_add. */
static bool cpu_index(struct replay_list *list, uint32_t cpu, uint16_t *index)
{
        size_t room = list->cpu_room;

        for (uint32_t i = 0; i < list->cpu_count; i++)
                if (list->cpus[i] == cpu) {
                        *index = (uint16_t)i;
                        return true;
                }
        if (list->cpu_count == REPLAY_CPUS ||
            !grow((void **)&list->cpus, list->cpu_count, &room, sizeof *list->cpus))
                return false;
        list->cpu_room = (uint32_t)room;
        list->cpus[list->cpu_count] = cpu;
        *index = (uint16_t)list->cpu_count++;
        return true;
}

bool replay_list_add(struct replay_list *list, struct replay_event event, uint32_t cpu)
{
        if (!cpu_index(list, cpu, &event.cpu) ||
            !grow((void **)&list->events, list->count, &list->room, sizeof event))
                return false;
        if (event.cache != REPLAY_LARGE && event.bytes > list->caches[event.cache].object_bytes)
                event.bytes = list->caches[event.cache].object_bytes;
        /* Clocks of several CPUs may differ by a little. */
        if (list->count && event.at_ns < list->events[list->count - 1].at_ns)
                event.at_ns = list->events[list->count - 1].at_ns;
        if (event.object >= list->objects)
                list->objects = (uint64_t)event.object + 1;
        list->events[list->count++] = event;
        return true;
}

static bool is_named(const char *name, const char *patterns)
{
        char *copy = strdup(patterns), *rest = copy, *pattern;
        bool found = false;

        while (copy && !found && (pattern = strsep(&rest, ",")))
                found = !fnmatch(pattern, name, 0);
        free(copy);
        return found;
}

void replay_list_keep(struct replay_list *list, const char *names)
{
        size_t kept = 0, caches = 0;
        uint32_t *number = calloc(list->cache_count + 1, sizeof *number);

        if (!number)
                return;
        for (size_t i = 0; i < list->cache_count; i++) {
                number[i] = REPLAY_LARGE;
                if (!is_named(list->caches[i].name, names))
                        continue;
                number[i] = (uint32_t)caches;
                list->caches[caches++] = list->caches[i];
        }
        for (size_t i = 0; i < list->count; i++) {
                struct replay_event e = list->events[i];

                if (e.cache == REPLAY_LARGE || number[e.cache] == REPLAY_LARGE)
                        continue;
                e.cache = number[e.cache];
                list->events[kept++] = e;
        }
        list->filtered = list->count - kept;
        list->count = kept;
        list->cache_count = caches;
        free(number);
}

void replay_list_release(struct replay_list *list)
{
        free(list->events);
        free(list->caches);
        free(list->cpus);
        memset(list, 0, sizeof *list);
}
