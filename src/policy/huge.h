/*
 * Purpose: when huge pages are asked for: the process is large, and the memory that requests of
 * this kind got was written. Large objects are often touched in part, so pages that are kept for
 * them, or that come in huge ones, may be pages too many. Where objects are written as a whole,
 * they are worth it.
 * Place: pages/advice.c asks, and tells what was got; own_mapping.c and span.c tell what is given
 *  back, policy/dirty.c asks for what was found.
 * How: when a node grows, a few pages of what an earlier growth of this kind got are looked at.
 *  Pages that are all zero count as not written; some words of each are compared. Slabs are one
 *  kind, requests of a huge page or more the other. A large object is written by the time its
 *  thread asks for the next one. One that another thread got a short time ago may be in the middle
 *  of it: it says nothing if it is not written. A large object that is given, and had no content
 *  when it was taken, is looked at as well. Slabs fill slowly, so theirs is looked at when some
 *  megabytes were got after it.
 * Concurrency: any thread, without the node's lock; all is relaxed. What is known is a hint, and so
 *  are thread and time of what is told: where two threads tell at once, they may be the other's. A
 *  user's threads may write or protect the words at the same time, so the system compares them.
 */
#ifndef STOOK_POLICY_HUGE_H
#define STOOK_POLICY_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "policy/constants.h"

#define STOOK_SLABS_MOST          (128 * STOOK_KIB)     /* a smaller span is a slab, as a rule */
#define STOOK_DENSITY_LARGE_LEAST (2 * STOOK_MIB)

/*
 * NONE: objects of 128 KiB to 2 MiB get no huge pages. One that is written in part, or dies before
 * what lies beside it, would leave padding there.
 */
enum stook_density_kind {
        STOOK_DENSITY_SMALL,
        STOOK_DENSITY_LARGE,
        STOOK_DENSITY_KINDS,
        STOOK_DENSITY_NONE = STOOK_DENSITY_KINDS,
};
enum stook_density_found { STOOK_DENSITY_UNKNOWN, STOOK_DENSE, STOOK_SPARSE, STOOK_DENSITY_FOUND };

struct stook_density {
        uint64_t told;                  /* atomic: the memory of this kind that tells: where */
        /* Atomic: bytes of this kind that were got after it; of large ones gives, once in vain. */
        size_t since;
        uint32_t found;                 /* atomic: enum stook_density_found */
        uint32_t teller;                /* atomic: the thread that got it: a part of its address */
        uint32_t told_ms;               /* atomic: when */
};

static inline enum stook_density_kind stook_density_kind_of(size_t bytes)
{
        return bytes < STOOK_SLABS_MOST            ? STOOK_DENSITY_SMALL
               : bytes < STOOK_DENSITY_LARGE_LEAST ? STOOK_DENSITY_NONE
                                                   : STOOK_DENSITY_LARGE;
}

static inline enum stook_density_found stook_density_found(const struct stook_density *density)
{
        return __atomic_load_n(&density->found, __ATOMIC_RELAXED);
}

/* Memory that was just got, and will tell. */
void stook_density_tell(struct stook_density *density, uintptr_t start, size_t bytes);
/* As that, but what was told stays: this is a part of it, or counts as got after it. */
void stook_density_tell_more(struct stook_density *density, uintptr_t start, size_t bytes);
/*
 * Looks at what is told, once, if @after bytes were got after it. With 0 it does not matter whether
 * any were; then what another thread may still be writing says nothing.
 */
void stook_density_look(struct stook_density *density, size_t after);
/* This memory loses its content: it tells nothing. */
void stook_density_forget(struct stook_density *density, uintptr_t start, size_t bytes);
/* Looks at this memory, which is committed. */
void stook_density_look_at(struct stook_density *density, uintptr_t start, size_t bytes);
/* These committed pages were written, with few exceptions. */
bool stook_density_is_dense(uintptr_t start, size_t bytes);

/* ---- the decision ---- */

extern uint32_t stook_huge_asked STOOK_HIDDEN;  /* atomic, relaxed: 1: huge pages were asked for */

STOOK_INLINE bool stook_huge_any(void)
{
        return __atomic_load_n(&stook_huge_asked, __ATOMIC_RELAXED);
}

struct stook_ledger;

/* A request of @bytes has the node grow. True: what it gets is worth huge pages. It looks first. */
bool stook_huge_pays(struct stook_ledger *ledger, size_t bytes);
/* Whole huge pages were taken again. True: they are worth it. It looks first. */
bool stook_huge_pays_again(struct stook_ledger *ledger, enum stook_density_kind kind);
/* The process is large, or on its way back, for what was purged to be asked for again. */
bool stook_huge_regrows(const struct stook_ledger *ledger, enum stook_density_kind kind);
/* The process is large enough for huge pages of this kind. */
bool stook_huge_is_large(const struct stook_ledger *ledger, enum stook_density_kind kind);
/* This memory was got, huge or not, and is to tell. */
void stook_huge_tell(struct stook_ledger *ledger, enum stook_density_kind kind, uintptr_t start,
                     size_t bytes, bool huge);
/* The same of what the node grew by; the first @need of it are for a request of @request bytes. */
void stook_huge_tell_grown(struct stook_ledger *ledger, size_t need, size_t request,
                           uintptr_t start, size_t bytes, bool huge);

#endif
