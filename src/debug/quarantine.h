/*
 * Purpose: freed objects wait here before they are free. So a write or a free that comes late meets
 * an object that has no new user, and is found when the object leaves. First in, first out, up to
 * so many bytes of all caches together.
 * Place: called by cache, which says what leaves; calls pages for memory.
 * Invariants:
 *  I1 an object is in at most one place of the ring. What takes it out does so by an exchange or a
 *     compare-and-swap of the place, and has it alone.
 * Concurrency: any thread, any instruction. No step waits: a put exchanges its object for what was
 *  in the place. A thread that vanishes in between (a fork's child, a jump) loses the object that
 *  it has in hands. The two counts only choose places: an object whose place was passed over leaves
 *  when the ring has come round.
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

/*
 * Puts @object of @bytes there. To make room, objects leave: those that have waited longest, or
 * @object itself if there is no room for it at all. @leave is called for each of them, with @how,
 * and returns the bytes of the object.
 */
void stook_quarantine_put(void *object, size_t bytes, uint64_t how,
                          size_t (*leave)(void *object, uint64_t how));

/* All objects leave for which @is returns true; @data is its second argument. */
void stook_quarantine_flush(bool (*is)(const void *object, const void *data), const void *data,
                            size_t (*leave)(void *object, uint64_t how));

/* Bytes that wait there now. */
uint64_t stook_quarantine_bytes(void);

#endif
