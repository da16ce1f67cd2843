/*
 * Purpose: freed objects wait here before they are free. So a write or a free that comes late meets
 * an object that has no new user, and is found when the object leaves. First in, first out, up to
 * so many bytes of all caches together.
 * Place: called by cache, which says what leaves; calls pages for memory.
 * Invariants:
 *  I1 an object is in at most one place of the ring. What takes it out does so by an exchange or a
 *     compare-and-swap of the place, and has it alone.
 *  I2 an object that a put makes leave has a cache that is not destroyed before it is in its slab.
 *     Else a destroy that had looked through the ring would find one object out, or give the cache
 *     up while that object's slab is being changed.
 * Concurrency: any thread, any instruction. No step waits: a put exchanges its object for what was
 *  in the place. Where the cache of that is being destroyed, its own object leaves at once. A
 *  thread that vanishes in between (a fork's child, a jump) loses the object that it has in hands.
 *  The two counts only choose places: an object whose place was passed over leaves when the ring
 *  has come round.
 * Failure: without memory for the ring objects leave at once.
 */
#ifndef STOOK_QUARANTINE_H
#define STOOK_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for @limit bytes, once. Called when a cache that uses it is made; registry mutex, or
 * at start.
 */
void stook_quarantine_start(uint64_t limit);

/* How objects leave. */
struct stook_leaving {
        /*
         * Before a put takes @object out: its cache, *@cache, is not destroyed before `end`. False:
         * it may be under way, and the destroy takes the object out. @object may have left by now,
         * and its memory may be another cache's: then the put does not find it in its place.
         */
        bool   (*begin)(const void *object, void **cache);
        /* @object has left. @how: of the free that makes it leave. Return: its bytes. */
        size_t (*leave)(void *object, uint64_t how);
        void   (*end)(void *cache);
};

/*
 * Puts @object of @bytes there. To make room, objects leave: those that have waited longest, or
 * @object itself if there is no room for it.
 */
void stook_quarantine_put(void *object, size_t bytes, uint64_t how,
                          const struct stook_leaving *by);

/*
 * All objects leave for which @is returns true; @data is its second argument. They are of a cache
 * that only the caller destroys, and that refuses `begin`.
 */
void stook_quarantine_flush(bool (*is)(const void *object, const void *data), const void *data,
                            const struct stook_leaving *by);

/* Bytes that wait there now. */
uint64_t stook_quarantine_bytes(void);

#endif
