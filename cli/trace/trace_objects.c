/*
 * Purpose: see trace_objects.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/trace/trace_objects.h"

#define PLACES_FIRST 1024               /* a power of two */

static size_t place_of(const struct trace_objects *o, uint32_t process, uint64_t address)
{
        uint64_t hash = (address ^ (uint64_t)process << 48) * UINT64_C(0x9e3779b97f4a7c15);

        return (size_t)(hash >> 20) & (o->places - 1);
}

static bool is(const struct trace_object *object, uint32_t process, uint64_t address)
{
        return object->address == address && object->process == process;
}

struct trace_object *trace_objects_find(struct trace_objects *o, uint32_t process, uint64_t address)
{
        if (!o->places)
                return NULL;
        for (size_t i = place_of(o, process, address); o->table[i].used;
             i = (i + 1) & (o->places - 1))
                if (is(&o->table[i], process, address))
                        return &o->table[i];
        return NULL;
}

static void put(struct trace_objects *o, const struct trace_object *object)
{
        size_t i = place_of(o, object->process, object->address);

        while (o->table[i].used)
                i = (i + 1) & (o->places - 1);
        o->table[i] = *object;
        o->table[i].used = true;
        o->count++;
}

static bool grow(struct trace_objects *o)
{
        struct trace_object *before = o->table;
        size_t places = o->places;

        o->table = calloc(places ? 2 * places : PLACES_FIRST, sizeof *o->table);
        if (!o->table) {
                o->table = before;
                return false;
        }
        o->places = places ? 2 * places : PLACES_FIRST;
        o->count = 0;
        for (size_t i = 0; i < places; i++)
                if (before[i].used)
                        put(o, &before[i]);
        free(before);
        return true;
}

/* ---- numbers ---- */

static bool give_number(struct trace_objects *o, uint64_t number)
{
        size_t i = o->frees;

        if (o->frees == o->frees_room) {
                size_t room = o->frees_room ? 2 * o->frees_room : PLACES_FIRST;
                uint64_t *more = realloc(o->free, room * sizeof *more);

                if (!more)
                        return false;
                o->free = more;
                o->frees_room = room;
        }
        for (; i && o->free[(i - 1) / 2] > number; i = (i - 1) / 2)
                o->free[i] = o->free[(i - 1) / 2];
        o->free[i] = number;
        o->frees++;
        return true;
}

static uint64_t take_number(struct trace_objects *o)
{
        uint64_t number, last;
        size_t i = 0, child;

        if (!o->frees)
                return o->next++;
        number = o->free[0];
        last = o->free[--o->frees];
        for (; (child = 2 * i + 1) < o->frees; i = child) {
                if (child + 1 < o->frees && o->free[child + 1] < o->free[child])
                        child++;
                if (o->free[child] >= last)
                        break;
                o->free[i] = o->free[child];
        }
        o->free[i] = last;
        return number;
}

/* ---- objects ---- */

bool trace_objects_add(struct trace_objects *o, const struct trace_object *object, uint64_t *number)
{
        struct trace_object new = *object;

        if (2 * (o->count + 1) > o->places && !grow(o))
                return false;
        new.number = *number = take_number(o);
        put(o, &new);
        return true;
}

/* What follows without a gap may have been put there because this place was taken. */
static void take_out(struct trace_objects *o, size_t hole)
{
        size_t mask = o->places - 1;

        for (size_t i = (hole + 1) & mask; o->table[i].used; i = (i + 1) & mask) {
                size_t wanted = place_of(o, o->table[i].process, o->table[i].address);

                if (((i - wanted) & mask) < ((i - hole) & mask))
                        continue;
                o->table[hole] = o->table[i];
                hole = i;
        }
        o->table[hole].used = false;
        o->count--;
}

void trace_objects_move(struct trace_objects *o, struct trace_object *object, uint64_t address)
{
        struct trace_object moved = *object;

        moved.address = address;
        take_out(o, (size_t)(object - o->table));
        put(o, &moved);
}

bool trace_objects_remove(struct trace_objects *o, struct trace_object *object)
{
        uint64_t number = object->number;

        take_out(o, (size_t)(object - o->table));
        return give_number(o, number);
}

void trace_objects_release(struct trace_objects *o)
{
        free(o->table);
        free(o->free);
        memset(o, 0, sizeof *o);
}
