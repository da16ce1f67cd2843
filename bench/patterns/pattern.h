/*
 * bench/patterns/pattern.h - what a pattern of allocation is made of
 *
 * Purpose: a pattern says what each of its workers allocates and frees; patterns.cc runs the
 * workers, takes the time and the memory. The patterns are those by which allocators are commonly
 * judged, written anew from what they are known to do.
 * Place: included by the files of this folder, which bench/patterns.py runs and tests/preload
 * checks.
 * Invariants:
 *  I1 each object carries a stamp made of its address and size from make() to drop(). drop() tests
 *     it and wipes it: an object handed out twice, lost bytes, and a second drop are noticed.
 *  I2 with whole=1 all bytes behind the 16 of the head carry a value, too, and are tested. The
 *     second word of the head is the pattern's own (a link, say); objects below 16 bytes have none.
 *  I3 tables lie in mapped memory, resident from the start: what peaks is the allocator's.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <algorithm>
#include <pthread.h>

#include "../harness/harness.h"

namespace patterns {

struct worker;

struct pattern {
        const char *name;
        const char *threads;            /* the numbers of threads that bench/patterns.py runs */
        size_t entries;                 /* of the workers' tables, all together */
        void (*begin)(worker &);        /* or nullptr; not in the time */
        void (*work)(worker &);         /* repeated; counts into worker.ops */
        void (*end)(worker &);          /* or nullptr: drops what is in the table */
        const char *what;
};

struct pattern_list {
        const pattern *first;
        size_t count;
};

/* One for each file. */
pattern_list shape_patterns(), large_patterns(), program_patterns(), handed_patterns();

/* What the workers of one pattern share. */
struct team {
        unsigned threads;
        size_t percent;                 /* of the usual amount of work and of live objects */
        uint64_t seed;
        pthread_barrier_t barrier;
        const pattern *of;
        unsigned repeats;
        void meet() { pthread_barrier_wait(&barrier); }
};

struct worker {
        unsigned me = 0;
        team *all = nullptr;
        bench::rng random{1};
        char **table = nullptr;         /* this worker's own; all NULL at the start */
        size_t entries = 0;
        uint64_t ops = 0;               /* objects allocated, or resized */

        /* This worker's part of an amount that all workers do together; at least 1. */
        size_t share(size_t amount) const
        {
                return std::max<size_t>(amount * all->percent / 100 / all->threads, 1);
        }
        size_t any_entry() { return random.below((uint32_t)entries); }
};

/* Whether objects are written and tested in full; set before the first object is made. */
extern bool whole;

[[noreturn]] void fail(const char *what, const void *object);

static constexpr size_t head_bytes = 16;

inline uint64_t stamp_of(const char *object, size_t size)
{
        uint64_t mixed = ((uint64_t)(uintptr_t)object + (size << 40)) * 0x9e3779b97f4a7c15u;
        return (mixed & 0xffffffff00000000u) | (uint32_t)size;
}

inline char fill_of(const char *object)
{
        return (char)((uintptr_t)object >> 4 | 1);
}

inline void put_stamp(char *object, size_t size)
{
        *(uint64_t *)(void *)object = stamp_of(object, size);
        if (__builtin_expect(whole, 0) && size > head_bytes)
                memset(object + head_bytes, fill_of(object), size - head_bytes);
}

/* Whether the bytes from the head up to `size` hold the value. */
inline bool filled(const char *object, char value, size_t size)
{
        for (size_t i = head_bytes; i < size; i++)
                if (object[i] != value)
                        return false;
        return true;
}

/* The size in the stamp, if the stamp is this address's. */
inline bool stamp_holds(const char *object, size_t &size)
{
        uint64_t stamp = *(const uint64_t *)(const void *)object;
        size = (uint32_t)stamp;
        return stamp == stamp_of(object, size) &&
               (!__builtin_expect(whole, 0) || filled(object, fill_of(object), size));
}

inline size_t tested(const char *object)
{
        size_t size;
        if (__builtin_expect(!stamp_holds(object, size), 0))
                fail("an object does not hold what was written", object);
        return size;
}

inline char *stamped(void *at, size_t size)
{
        char *object = (char *)at;
        bench::keep(object);
        if (__builtin_expect(!object, 0))
                fail("no memory", object);
        put_stamp(object, size);
        return object;
}

/* An object of at least 8 bytes. */
inline char *make(size_t size)
{
        return stamped(malloc(size), size);
}

/* NULL is let pass. */
inline void drop(char *object)
{
        if (object) {
                tested(object);
                *(uint64_t *)(void *)object = 0;
                bench::keep(object);
        }
        free(object);
}

/* The object resized; what it held is tested against the old size. */
inline char *resize(char *object, size_t size)
{
        uint64_t stamp = *(uint64_t *)(void *)object;
        size_t old = tested(object);
        char value = fill_of(object);
        char *grown = (char *)realloc(object, size);
        bench::keep(grown);
        if (__builtin_expect(!grown || *(uint64_t *)(void *)grown != stamp, 0) ||
            (whole && !filled(grown, value, std::min(old, size))))
                fail("realloc lost what was written", grown);
        put_stamp(grown, size);
        return grown;
}

/* The pattern's own word of an object of at least 16 bytes. */
inline char *&link_of(char *object)
{
        return ((char **)(void *)object)[1];
}

/* Drops a list chained by link_of; returns its length. */
inline size_t drop_list(char *first)
{
        size_t length = 0;
        for (char *next; first; first = next, length++) {
                next = link_of(first);
                drop(first);
        }
        return length;
}

/* Puts a new object in the place of the one that is there, if any. */
inline void replace(worker &w, size_t entry, size_t size)
{
        drop(w.table[entry]);
        w.table[entry] = make(size);
        w.ops++;
}

inline void drop_table(worker &w)
{
        for (size_t i = 0; i < w.entries; i++) {
                drop(w.table[i]);
                w.table[i] = nullptr;
        }
}

/* A thread that must start. */
inline pthread_t started(void *(*function)(void *), void *argument)
{
        pthread_t thread;
        if (pthread_create(&thread, nullptr, function, argument) != 0)
                fail("no thread", argument);
        return thread;
}

} // namespace patterns

#endif
