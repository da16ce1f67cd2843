/*
 * Purpose: hardening, which STOOK_HARDEN asks for: what is asked, and which objects have users.
 *   double      a free of an object that has no user is found, wherever the object lies
 *   random      the slabs of every cache hand out objects in random order
 *   guard       a page without access before and behind each large object, and none to a freed one
 *   zero-free   objects are zeroed when they are freed
 *   zero-alloc  objects are zeroed when they are allocated
 *   canary      what is written behind an object of malloc's is found when the object is freed
 *   pairs       an object is freed by the call that belongs to the one that made it
 *   zero-size   what malloc(0) gives can be neither read nor written
 *   check-free  what lies free is looked at when it is handed out: it is zeroed when it is freed
 *   quarantine  freed objects of malloc's wait for a random time: quarantine=BYTES
 * Place: read by life at start; watch does what it asks. Calls pages for the memory of the bits.
 *
 * An object has a user from an allocation until the free, or the free by RCU. One bit for each 8
 * bytes of address space says so: no two objects begin in the same 8. The bits lie far from the
 * objects, so a late write does not reach them, and they are the same in a sheaf, a barn and a
 * slab. So a free needs no search.
 * Invariants:
 *  I1 a bit is changed by one atomic instruction, by the allocation that has just got the object or
 *     by the free that ends its life. Of two frees at once one finds the bit.
 *  I2 where there is no memory for bits there are none for ever, and every call is believed.
 * Concurrency: any thread, any instruction; no lock. `stook_hardened` is const after the start.
 */
#ifndef STOOK_HARDEN_H
#define STOOK_HARDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

enum stook_harden {
        STOOK_HARDEN_DOUBLE     = 1,
        STOOK_HARDEN_RANDOM     = 2,
        STOOK_HARDEN_GUARD      = 4,
        STOOK_HARDEN_ZERO_FREE  = 8,
        STOOK_HARDEN_ZERO_ALLOC = 16,
        STOOK_HARDEN_CANARY     = 32,
        STOOK_HARDEN_PAIRS      = 64,
        STOOK_HARDEN_ZERO_SIZE  = 128,
        STOOK_HARDEN_CHECK_FREE = 256,
        STOOK_HARDEN_QUARANTINE = 512,
};
/* The terms that malloc's objects have seals for (harden/seal.h). */
#define STOOK_HARDEN_SEALS (STOOK_HARDEN_DOUBLE | STOOK_HARDEN_CANARY | STOOK_HARDEN_PAIRS | \
                            STOOK_HARDEN_ZERO_SIZE | STOOK_HARDEN_CHECK_FREE | \
                            STOOK_HARDEN_QUARANTINE)

extern uint32_t stook_hardened STOOK_HIDDEN;    /* enum stook_harden, or'ed */

STOOK_INLINE bool stook_is_hardened(uint32_t by)
{
        return STOOK_UNLIKELY(stook_hardened & by);
}

/* At start: reads STOOK_HARDEN. */
void stook_harden_read_options(void);
/*
 * enum stook_harden, or'ed; -1: the text names something else. *@quarantine: the bytes that it
 * names; as it was where it names none.
 */
int stook_harden_parse(const char *text, uint64_t *quarantine);
/* Const after the start: bytes of the quarantine. */
extern uint64_t stook_harden_quarantine_bytes STOOK_HIDDEN;

/* An allocation has got the object. False: it has a user already. */
bool stook_harden_user_begins(const void *object);
/* A free. False: the object has no user. */
bool stook_harden_user_ends(const void *object);
bool stook_harden_has_user(const void *object);

/* ---- guard.c ---- */
struct stook_span;
/* What a span has guards for. */
enum stook_guarded_by {
        STOOK_GUARDED_HARDEN = 1, STOOK_GUARDED_SAMPLE, STOOK_GUARDED_DEBUG, STOOK_GUARDED_END
};
/*
 * As stook_span_take: no page before the span, and none behind it, may be read or written. Such a
 * span is neither resized nor moved. stook_span_give_guarded takes any span.
 */
struct stook_span *stook_span_take_guarded(unsigned node, size_t bytes, size_t align);
void stook_span_give_guarded(struct stook_span *span);
/* The span without access that @address lies in, and that was an object; NULL: none. */
const struct stook_span *stook_guard_closed_at(uintptr_t address);
/* All such spans are given to the pages: a trim. */
void stook_guards_open_all(void);
/* Atomic, relaxed: spans between two guards, for statistics alone. */
extern uint64_t stook_guarded_count STOOK_HIDDEN;
/* Pages that should be guards and are none. */
uint64_t stook_guards_refused(void);

#endif
