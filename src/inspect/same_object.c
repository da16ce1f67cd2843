/*
 * Purpose: find an object that is in two places of an array.
 * Place: called by validate.c, for objects in sheaves: such a one was freed twice, and two users
 * will get it.
 */
#include "inspect/same_object.h"

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

void stook_same_objects(const void **object, size_t count,
                        void (*each)(const void *object, void *data), void *data)
{
        sort(object, count);
        for (size_t i = 1; i < count; i++)
                if (object[i] == object[i - 1] && (i == 1 || object[i - 2] != object[i]))
                        each(object[i], data);
}
