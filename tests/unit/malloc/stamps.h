/*
 * Purpose: objects that say whose they are. Every object carries a stamp at both ends that only its
 * holder knows; an object handed out twice, or touched by the allocator while held, has the wrong
 * one. Shared by the tests with threads, handlers and forks. No libc call that allocates, so
 * handlers may use it.
 */
#ifndef STAMPS_H
#define STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/malloc.h>

#define STAMPS_HELD 128

struct stamps {
        uint64_t random, faults, failures;
        struct { uint64_t *object; size_t size; uint64_t stamp; } held[STAMPS_HELD];
};

static inline uint64_t stamps_random(struct stamps *s)
{
        s->random += 0x9e3779b97f4a7c15u;               /* splitmix64 */
        uint64_t z = s->random;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static inline void stamps_put(struct stamps *s, unsigned i)
{
        uint64_t *object = s->held[i].object;
        size_t    last = s->held[i].size / 8 - 1;

        s->held[i].stamp = stamps_random(s) | 1;
        object[0] = object[last] = s->held[i].stamp;
}

static inline void stamps_drop(struct stamps *s, unsigned i)
{
        uint64_t *object = s->held[i].object;

        if (!object)
                return;
        s->held[i].object = NULL;
        if (object[0] != s->held[i].stamp || object[s->held[i].size / 8 - 1] != s->held[i].stamp)
                s->faults++;
        object[0] = object[s->held[i].size / 8 - 1] = 0;
        stook_free(object);
}

/*
 * One step: give an object back, or take another, or resize one. Mostly small, sometimes up to
 * 1 MiB.
 */
static inline void stamps_step(struct stamps *s)
{
        unsigned i = (unsigned)(stamps_random(s) % STAMPS_HELD);
        unsigned kind = (unsigned)(stamps_random(s) % 64);
        size_t   size = 8 + stamps_random(s) % (kind ? kind < 8 ? 20000 : 1200 : 1 << 20) / 8 * 8;

        if (s->held[i].object && kind % 16 == 5) {
                uint64_t *other = stook_realloc(s->held[i].object, size);

                if (!other) {
                        s->failures++;
                        return;
                }
                if (other[0] != s->held[i].stamp)
                        s->faults++;
                s->held[i].object = other;
                s->held[i].size = size;
                stamps_put(s, i);
                return;
        }
        stamps_drop(s, i);
        if (kind & 1) {
                uint64_t *object = kind % 8 == 3 ? stook_calloc(1, size) : stook_malloc(size);

                if (!object) {
                        s->failures++;
                        return;
                }
                if (kind % 8 == 3 && (object[0] || object[size / 8 - 1]))
                        s->faults++;
                s->held[i].object = object;
                s->held[i].size = size;
                stamps_put(s, i);
        }
}

static inline void stamps_end(struct stamps *s)
{
        for (unsigned i = 0; i < STAMPS_HELD; i++)
                stamps_drop(s, i);
}

#endif
