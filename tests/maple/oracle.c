#include <stdlib.h>
#include <string.h>
#include "oracle.h"

size_t oracle_at(const struct oracle *o, uint64_t key)
{
        size_t from = 0, to = o->n;

        while (from < to) {
                size_t mid = from + (to - from) / 2;

                if (o->ranges[mid].last < key)
                        from = mid + 1;
                else
                        to = mid;
        }
        return from;
}

static void insert_at(struct oracle *o, size_t i, struct oracle_range range)
{
        if (o->n == o->room) {
                o->room = o->room ? 2 * o->room : 64;
                o->ranges = realloc(o->ranges, o->room * sizeof(*o->ranges));
                if (!o->ranges)
                        abort();
        }
        memmove(o->ranges + i + 1, o->ranges + i, (o->n++ - i) * sizeof(*o->ranges));
        o->ranges[i] = range;
}

void oracle_store(struct oracle *o, uint64_t first, uint64_t last, void *entry)
{
        size_t i = oracle_at(o, first), end;

        if (i < o->n && o->ranges[i].first < first) {
                struct oracle_range left = o->ranges[i];

                left.last = first - 1;
                o->ranges[i].first = first;
                insert_at(o, i++, left);
        }
        for (end = i; end < o->n && o->ranges[end].last <= last; end++)
                ;
        if (end > i)
                memmove(o->ranges + i, o->ranges + end, (o->n - end) * sizeof(*o->ranges));
        o->n -= end - i;
        if (i < o->n && o->ranges[i].first <= last)
                o->ranges[i].first = last + 1;
        if (entry)
                insert_at(o, i, (struct oracle_range){ first, last, entry });
}

struct oracle_range oracle_range_of(const struct oracle *o, uint64_t key)
{
        size_t i = oracle_at(o, key);

        if (i < o->n && o->ranges[i].first <= key)
                return o->ranges[i];
        return (struct oracle_range){ i ? o->ranges[i - 1].last + 1 : 0,
                                      i < o->n ? o->ranges[i].first - 1 : UINT64_MAX, NULL };
}

void *oracle_load(const struct oracle *o, uint64_t key)
{
        return oracle_range_of(o, key).entry;
}

bool oracle_free(const struct oracle *o, uint64_t first, uint64_t last)
{
        struct oracle_range r = oracle_range_of(o, first);

        return !r.entry && r.last >= last;
}

bool oracle_lowest(const struct oracle *o, uint64_t min, uint64_t max, uint64_t size,
                   uint64_t *first)
{
        for (uint64_t key = min;;) {
                struct oracle_range r = oracle_range_of(o, key);
                uint64_t last = r.last < max ? r.last : max;

                if (!r.entry && last - key >= size - 1) {
                        *first = key;
                        return true;
                }
                if (r.last >= max)
                        return false;
                key = r.last + 1;
        }
}

bool oracle_highest(const struct oracle *o, uint64_t min, uint64_t max, uint64_t size,
                    uint64_t *first)
{
        for (uint64_t key = max;;) {
                struct oracle_range r = oracle_range_of(o, key);
                uint64_t lowest = r.first > min ? r.first : min;

                if (!r.entry && key - lowest >= size - 1) {
                        *first = key - (size - 1);
                        return true;
                }
                if (r.first <= min)
                        return false;
                key = r.first - 1;
        }
}

void oracle_clear(struct oracle *o)
{
        free(o->ranges);
        *o = (struct oracle){ 0, 0, NULL };
}
