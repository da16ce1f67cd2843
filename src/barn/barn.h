/*
 * Purpose: a node's store of whole sheaves of one cache, and the way to and from the slabs a sheaf at a time.
 * Place: called by slot (misses, drains); calls slab (fill, drain).
 * Invariants:
 *  I1 the full stack holds sheaves with size == capacity, the empty stack with size 0.
 *  I2 counts are checked racily: a small overshoot of a limit (one for each thread inside) is legal.
 *  I3 the bytes of objects in all barns of a node stay near STOOK_BARN_NODE_BYTES: see barn_budget.
 * Concurrency: two lock-free stacks; no lock, so a preempted or interrupted thread never blocks another.
 */
#ifndef STOOK_BARN_H
#define STOOK_BARN_H

#include "barn/sheaf.h"
#include "base/tagged_stack.h"
#include "slab/slab.h"

/* Default limits of a barn, whole sheaves (the kernel's MAX_FULL_SHEAVES, MAX_EMPTY_SHEAVES). */
#define STOOK_BARN_FULL  10
#define STOOK_BARN_EMPTY 10
#define STOOK_BARN_LIMIT_MAX 4096               /* far below what the stacks can count */
/* What barns of a node keep: one cache, all caches. Lowered by stook_barn_set_budget. */
#define STOOK_BARN_CACHE_BYTES ((size_t)512 << 10)
#define STOOK_BARN_NODE_BYTES  ((size_t)4 << 20)
/* What a slot keeps: main and spare of one cache (arbitrary); and what all caches together may grow it by. */
#define STOOK_SLOT_CACHE_BYTES ((size_t)64 << 10)
#define STOOK_SLOT_GROWN_BYTES ((size_t)512 << 10)

/* barn_growth.c: capacity by the rate of misses. Atomic, relaxed; hints but for `at_least`, which a tuner changes. */
struct stook_barn_growth {
        uint32_t at_least;              /* capacity to which it shrinks; STOOK_BARN_FIXED: it does not change by itself */
        uint32_t flushed;               /* sheaves flushed because there was no room, and not refilled since */
        uint32_t swings;                /* of them were refilled since the last growth */
        uint32_t grown_bytes;           /* what its growth took from the budget of all caches */
};
#define STOOK_BARN_FIXED UINT32_MAX

struct stook_barn {
        struct stook_tagged_stack full STOOK_ALIGNED(STOOK_CACHELINE);
        uint32_t traded;                /* atomic, hints: full sheaves were asked for since each of these last passed */
#define STOOK_BARN_LENT   1u            /* the lending hand (barn_budget.c) */
#define STOOK_BARN_RESTED 2u            /* a look for what is idle (barn_idle.c) */
        uint32_t low;                   /* atomic, a hint: fewest full sheaves since that look */
        struct stook_tagged_stack empty STOOK_ALIGNED(STOOK_CACHELINE);
        /* barn_idle.c; atomic, relaxed, hints: when it was last looked at; whether kept slabs were given back since. */
        uint32_t seen_ms, seen_growths, bare;
};

/*
 * The barns of one cache. Const after init, but for the stacks and visits; and for capacity and limits, which are
 * atomic: a sheaf keeps the capacity it was made with, so sheaves of several are about after a change. Those of
 * another one than the cache's are full or not like all, but are not kept when they are empty.
 */
struct stook_barns {
        struct stook_slabs *below;
        struct stook_counters *counters;
        uint32_t cache_index;
        uint32_t line_index;            /* for slots: the line where the cache's sheaves are */
        uint32_t capacity;              /* atomic; objects of a sheaf that is made now; 0: no sheaves */
        uint32_t full_limit, empty_limit; /* atomic */
        uint32_t full_wanted;           /* full_limit before it was lowered to STOOK_BARN_CACHE_BYTES; who changes capacity */
        struct stook_barn_growth growth;
        struct stook_barn *node;        /* [stook_os_node_count()]; kept when the cache's index is used again */
        struct stook_remote *remote;    /* the slot layer's (slot_remote.c), for who comes by the barns; kept likewise */
        struct stook_barns *next;       /* all barns there ever were; const once listed */
        uint32_t visits;                /* atomic M1: others' calls in here (see stook_barns_close) | closed */
};

STOOK_INLINE unsigned stook_barns_capacity(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->capacity, __ATOMIC_RELAXED);
}

/* What a sheaf keeps from its slabs when it is full. */
STOOK_INLINE uint64_t stook_barn_bytes(const struct stook_barns *barns, const struct stook_sheaf *sheaf)
{
        return (uint64_t)stook_sheaf_capacity(sheaf) * barns->below->slot_size;
}

/* Return: 0; -ENOMEM. Limits are sheaves; full_limit is lowered to STOOK_BARN_CACHE_BYTES. */
int stook_barns_init(struct stook_barns *barns, struct stook_slabs *below, struct stook_counters *counters,
                     unsigned capacity, unsigned full_limit, unsigned empty_limit);

/* ---- barn_growth.c: other capacities and limits for barns that live ---- */

/* What sheaves made from here on hold, and how many are kept; STOOK_BARN_LIMIT_MAX at most. One thread at a time. */
void stook_barns_set(struct stook_barns *barns, unsigned capacity, unsigned full_limit, unsigned empty_limit);
/* From here on capacity grows by itself, and shrinks to what it is now. */
void stook_barns_let_grow(struct stook_barns *barns);
/* For barn_refill.c: a sheaf was flushed for lack of room; was filled. What swings grows. */
void stook_barns_flushed(struct stook_barns *barns);
void stook_barns_refilled(struct stook_barns *barns);
/* For barn_idle.c: nobody asked for a full sheaf for a while. What has grown shrinks. */
void stook_barns_shrink(struct stook_barns *barns);

/* ---- barn.c: trades of whole sheaves; no call down ---- */

/* Gives an empty sheaf (NULL: none to give), gets a full one. NULL: none there, the empty one was not taken. Counts barn_get(_fail). */
struct stook_sheaf *stook_barn_trade_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty);
/* Gives a full sheaf, gets an empty one. NULL: barn full or no empty one; the full one was not taken. Counts barn_put(_fail). */
struct stook_sheaf *stook_barn_trade_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full);
/* One way. False: at its limit; the sheaf was not taken. */
bool stook_barn_put_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full);
bool stook_barn_put_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty);
struct stook_sheaf *stook_barn_get_empty(struct stook_barns *barns, unsigned node);
struct stook_sheaf *stook_barn_get_full(struct stook_barns *barns, unsigned node);
/* A full sheaf, else an empty one, else NULL. Counts barn_get for a full one, else barn_get_fail. */
struct stook_sheaf *stook_barn_get_full_or_empty(struct stook_barns *barns, unsigned node);
/* Room for a full sheaf, seen racily: a hint before one is filled. */
bool stook_barn_has_room(struct stook_barns *barns, unsigned node);
/* The barns of all caches, through next; NULL: none yet. */
struct stook_barns *stook_barns_first(void);

/* ---- barn_refill.c: through the slab layer ---- */

/* A full sheaf from the slabs (in @empty, or a new one). NULL: no memory; nothing lost: what was got went back, @empty is still the caller's. Counts sheaf_refill. */
struct stook_sheaf *stook_barn_refill(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty, unsigned flags);
/* Up to its capacity into a sheaf from the slabs, or as many as they have: its size tells. Counts sheaf_refill. */
void stook_barn_fill(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/* All objects of a sheaf into their slabs; it is empty then. Counts sheaf_flush. */
void stook_barn_flush(struct stook_barns *barns, struct stook_sheaf *sheaf);
/* Takes any sheaf from who has no use for it: full or empty to the barn if there is room, else flushed and deleted. */
void stook_barn_dispose(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/* Flushes and deletes one full sheaf of a barn. False: there was none. */
bool stook_barn_evict(struct stook_barns *barns, unsigned node);
/* Flushes and deletes everything in all barns of the cache. */
void stook_barn_empty_all(struct stook_barns *barns);

/* ---- barn_budget.c: bytes, over all caches ---- */

/*
 * Room for one more full sheaf on @node? Taken when true; given back by stook_barn_unbook. A barn that is
 * refused makes a note of it, and its next flush takes a sheaf from a barn that lies idle (stook_barn_lend).
 */
bool stook_barn_book(unsigned node, uint64_t bytes);
void stook_barn_unbook(unsigned node, uint64_t bytes);
/* Where room was refused: flushes one full sheaf of a cache that has not traded for a whole round. */
void stook_barn_lend(struct stook_barns *barns, unsigned node);
uint64_t stook_barn_booked_bytes(unsigned node);

/*
 * Keeps lenders of other caches out, so that nothing of this cache is in their hands. False: one is inside and
 * does not leave for a second; nothing changed. Used around destroy and validation, and while a cache is not alive.
 */
bool stook_barns_close(struct stook_barns *barns);
void stook_barns_open(struct stook_barns *barns);
/* fork child: visitors that are gone have left. */
void stook_barns_fork_child(struct stook_barns *barns);

/* Others' calls: false: closed, and the caller must turn away. Each visit that was true ends by a leave. */
bool stook_barns_visit(struct stook_barns *barns);
void stook_barns_leave(struct stook_barns *barns);

/* ---- barn_idle.c: what caches keep that nobody uses any more ---- */

/* What a look for idle caches goes by. */
struct stook_idle {
        uint32_t now_ms, after_ms;      /* idle: what nobody took between two looks that are after_ms apart, */
        uint32_t growths;               /* or with a growth of the page layer between them */
        unsigned work;                  /* sheaves that may still be flushed in this step */
};

/* Within a visit: flushes full sheaves that nobody needed; where nobody asked for any, gives back slabs kept empty, too. */
void stook_barn_rest(struct stook_barns *barns, unsigned node, struct stook_idle *idle);
/* Objects of the cache went into slabs of any node from outside: what is kept empty is to be looked at again. */
void stook_barns_stir(struct stook_barns *barns);
/* A sheaf that was detached from a slot where its cache is idle: flushed, and kept empty or deleted. */
void stook_barn_retire(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);

/* Bytes all barns of a node may keep at most; at start, from RLIMIT_AS. They keep an eighth of the pages in use, or 1 MiB. */
void stook_barn_set_budget(size_t node_bytes);

#endif
