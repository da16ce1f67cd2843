/*
 * Purpose: reads a trace of `stook record` for `stook replay`: trace_read.h does the work. Objects
 * of all processes of the trace are replayed on one heap.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_read.h"
#include "cli/trace/trace_read.h"

struct numbers {
        uint32_t *cache;                /* of the list, by the trace's; 0: not seen, else + 1 */
        size_t    room;
};

/* False: no memory. */
static bool cache_number(struct numbers *numbers, struct replay_list *list,
                         const struct trace *trace, uint32_t cache, uint32_t *number)
{
        const struct trace_cache *of = cache == TRACE_NO_CACHE ? NULL : trace_cache(trace, cache);

        *number = REPLAY_LARGE;
        if (!of || !of->object_bytes || of->object_bytes > STOOK_OBJECT_MAX)
                return true;
        if (cache >= numbers->room) {
                size_t room = ((size_t)cache + 1) * 2;
                uint32_t *grown = reallocarray(numbers->cache, room, sizeof *grown);

                if (!grown)
                        return false;
                memset(grown + numbers->room, 0, (room - numbers->room) * sizeof *grown);
                numbers->cache = grown;
                numbers->room = room;
        }
        if (!numbers->cache[cache]) {
                *number = replay_list_cache(list, of->name, of->object_bytes);
                if (*number == REPLAY_LARGE)
                        return false;
                numbers->cache[cache] = *number + 1;
        }
        *number = numbers->cache[cache] - 1;
        return true;
}

static bool add(struct numbers *numbers, struct replay_list *list, const struct trace *trace,
                const struct trace_event *t)
{
        static const enum replay_kind kinds[] = { [TRACE_ALLOC] = REPLAY_ALLOC,
                                                  [TRACE_FREE] = REPLAY_FREE,
                                                  [TRACE_RESIZE] = REPLAY_RESIZE };
        struct replay_event event = { .at_ns = t->at_ns, .bytes = t->bytes,
                                      .object = (uint32_t)t->object, .kind = kinds[t->kind] };

        /* Only large objects change their size: trace_format.h. */
        if (t->kind == TRACE_RESIZE && t->cache != TRACE_NO_CACHE &&
            trace_cache(trace, t->cache)->object_bytes)
                return true;
        if (t->object == TRACE_NO_OBJECT) {
                list->frees_before++;
                return true;
        }
        list->frees_implied += t->implied;
        list->frees_by_rcu += t->by_rcu;
        return t->object < UINT32_MAX &&
               cache_number(numbers, list, trace, t->cache, &event.cache) &&
               replay_list_add(list, event, t->cpu);
}

bool replay_read_trace(struct replay_list *list, const char *path, char *message, size_t bytes)
{
        struct trace *trace = trace_open(path, message, bytes);
        struct numbers numbers = { 0 };
        struct trace_event event;
        bool fine = true;
        int got = -1;

        if (!trace)
                return false;
        while (fine && (got = trace_next(trace, &event)) > 0)
                fine = add(&numbers, list, trace, &event);
        if (!fine)
                snprintf(message, bytes, "%s: no memory, or too many caches or CPUs", path);
        else if (got < 0)
                snprintf(message, bytes, "%s", trace_message(trace));
        list->cut_bytes = trace_is_cut(trace);
        list->damage = *trace_damage(trace);
        trace_close(trace);
        free(numbers.cache);
        return fine && !got;
}
