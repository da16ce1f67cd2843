/*
 * Purpose: a node's store of whole sheaves of one cache, and the way to and from the slabs.
 * Place: called by slot, home, evacuate, rcu, prefill, limit and cache, and by life, inspect, walk
 *  and watch for settings, figures and visits; calls slab. Other layers include this header and
 *  barn/sheaf.h only. barn_inside.h is for the files of this folder.
 *
 * There are two verbs. stook_barn_get_full, _empty and _room give a sheaf: the barn's own or, if
 * it has none, one that is filled from the slabs. stook_barn_put takes a sheaf: into the barn or,
 * if the barn has no room, its objects go into the slabs. So a miss of a barn is answered in the
 * barn. Beside them: offer (a put that may be refused), flush (drain, then a step), discard (flush,
 * delete), evict (one of the barn's: drain, delete), retire (drain, keep empty or delete).
 *
 * Invariants:
 *  I1 the full stack holds sheaves with size == capacity, the empty stack sheaves with size 0.
 *  I2 limits are compared without a lock. Each thread that is inside may pass a limit by one sheaf.
 *  I3 the bytes of objects in all barns of a node stay near STOOK_BARN_NODE_BYTES: barn_room.c.
 * Concurrency: two lock-free stacks and no lock. A thread that is preempted or interrupted never
 *  blocks another one.
 */
#ifndef STOOK_BARN_H
#define STOOK_BARN_H

#include "barn/sheaf.h"
#include "base/tagged_stack.h"
#include "policy/constants.h"
#include "slab/slab.h"

#define STOOK_BARN_LIMIT_MAX 4096               /* sheaves: far below what the stacks can count */

/* What changes in one step, so that growth never undoes what a tuner set (barn_room.c I5). */
struct stook_barn_room {
        uint16_t capacity, full_limit;
        uint32_t setting;               /* how often a tuner, or a new cache, set the others */
} STOOK_ALIGNED(8);

/* The cache's counters of gets and puts as they were at the last decision. */
struct stook_barn_seen {
        uint32_t gets, refilled, flushed;
};

/*
 * barn_room.c. Atomic, relaxed; hints, except `at_least` and `room_grows`, which a tuner changes.
 */
struct stook_barn_growth {
        struct stook_barn_seen seen;
        uint32_t at_least;              /* capacity to which it shrinks, or STOOK_BARN_FIXED */
        uint32_t burst_bytes;           /* most from readers at once, or of a wide swing; 0: none */
        uint16_t began_at;              /* capacity as it was set: growth above it is booked */
        uint8_t  used;                  /* a slot's tick found its sheaves in use */
        uint8_t  room_grows;            /* full_limit changes by itself; a tuner clears it */
};
#define STOOK_BARN_FIXED UINT16_MAX     /* capacity does not change by itself */

/* One cache line: a miss changes both stacks, as a rule, and a program has many caches. */
struct stook_barn {
        struct stook_tagged_stack full STOOK_ALIGNED(STOOK_CACHELINE);
        struct stook_tagged_stack empty;
        uint64_t returned;              /* atomic, a hint: bytes from readers since the last get */
        /*
         * Atomic, a hint: puts of full sheaves since the last ask, refused ones too. No longer
         * counted above the bound (stook_barns_are_unasked, barn.c's put_below).
         */
        uint32_t unasked;
        uint32_t low;                   /* atomic, a hint: fewest full sheaves since a reap */
        uint32_t asked;                 /* atomic, a hint: 1: a full sheaf, since the last reap */
        /* barn_room.c; atomic, relaxed, hints: the last reap; kept slabs were given back since. */
        uint32_t seen_ms, seen_takes, slabs_given;
};
_Static_assert(sizeof(struct stook_barn) == STOOK_CACHELINE, "a barn is a cache line");

/*
 * The barns of one cache. Const after init, except the stacks and `visits`, and except capacity and
 * limits, which are atomic. A sheaf keeps the capacity that it was made with, so after a change
 * sheaves of several capacities exist. A sheaf is full at its own capacity. A put drains and
 * deletes a sheaf that is smaller than the cache's capacity, also a full one. A larger one is kept
 * while it is full, and is deleted once it is empty.
 */
struct stook_barns {
        struct stook_slabs *slabs;
        uint32_t cache_index;
        uint32_t line_index;            /* for slots: the line with the cache's sheaves */
        union {
                struct stook_barn_room room;            /* atomic; each of its parts, too: */
                struct {
                        uint16_t capacity;      /* objects of a new sheaf; 0: no sheaves */
                        uint16_t full_limit;    /* sheaves */
                };
        };
        uint16_t empty_limit;           /* atomic; sheaves */
        uint16_t full_wanted;           /* atomic; full_limit before STOOK_BARN_CACHE_BYTES */
        struct stook_barn_growth growth;
        uint32_t visits;                /* atomic M3: other callers' visits | closed */
        struct stook_barn *node;        /* [stook_os_node_count()]; the next cache keeps it */
        /* home's (home/home_remote.c); NULL on one node. Kept likewise. */
        struct stook_remote *remote;
        struct stook_barns *next;       /* all barns there ever were; const once listed */
};

STOOK_INLINE unsigned stook_barns_capacity(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->capacity, __ATOMIC_RELAXED);
}

STOOK_INLINE bool stook_barns_are_short(const struct stook_barns *barns)
{
        return stook_barns_capacity(barns) < STOOK_BARN_SHORT;
}

/*
 * Return: 0; -ENOMEM. Limits are sheaves, STOOK_BARN_LIMIT_MAX at most; full_limit is lowered to
 * STOOK_BARN_CACHE_BYTES. Capacity is objects; 0: no sheaves.
 */
int stook_barns_init(struct stook_barns *barns, struct stook_slabs *slabs, unsigned capacity,
                     unsigned full_limit, unsigned empty_limit);
/* The barns of all caches, through next; NULL: none yet. */
struct stook_barns *stook_barns_first(void);

/* ---- barn.c: the two verbs. Any thread, any instruction; no lock held. ---- */

/* Where a sheaf may come from. The barn is asked first. */
#define STOOK_FROM_BARN    1u           /* what the barn keeps */
#define STOOK_FROM_BELOW   2u           /* objects: the slabs; an empty sheaf: new memory */
#define STOOK_FROM_IF_ROOM 4u           /* new memory only if the barn has room for a full sheaf */
#define STOOK_FROM_SMALL   8u           /* new memory as small as the objects that go into it */
#define STOOK_FROM_ANY     (STOOK_FROM_BARN | STOOK_FROM_BELOW)

/*
 * A sheaf for the caller, which owns it from then on and ends that by stook_barn_put.
 * NULL: there is none to be had, and no object moved; *@brought may have grown, which is a hint.
 * Counts barn_get or barn_get_fail for objects asked of the barn, sheaf_refill for objects from the
 * slabs.
 *
 * @brought: NULL: a refill fills a whole sheaf. Else a word of the caller's slot, atomic, relaxed:
 * objects that refills of the cache brought to the slot, 0 at first. The next refill brings as many
 * as all refills before it together, and changes the word. The sheaf has the cache's capacity, so
 * that later frees find room in it. STOOK_FROM_SMALL, and short sheaves: it has room for what goes
 * in.
 */
struct stook_sheaf *stook_barn_get_full(struct stook_barns *barns, unsigned node, unsigned from,
                                        uint32_t *brought);
struct stook_sheaf *stook_barn_get_empty(struct stook_barns *barns, unsigned node, unsigned from);
/* With room for @objects, 0 to STOOK_SHEAF_CAPACITY_MAX: a full one first. */
struct stook_sheaf *stook_barn_get_room(struct stook_barns *barns, unsigned node,
                                        unsigned objects);

/*
 * Takes any sheaf of the cache from its owner. A full or an empty one is kept if there is room, and
 * if it is not smaller than the cache's sheaves are now. Otherwise its objects go into the slabs,
 * and the sheaf is kept empty or deleted. Counts barn_put,
 * barn_put_fail, sheaf_flush.
 */
void stook_barn_put(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/* The same for one with objects that the barn has refused. */
void stook_barn_put_below(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/* A put of a full sheaf that the caller keeps if the barn has no room. False: no room. */
bool stook_barn_offer(struct stook_barns *barns, unsigned node, struct stook_sheaf *full);

/*
 * One object past all sheaves: for a slot that can have no sheaf, after STOOK_SLOT_TRIES, and where
 * no sheaf could be filled. NULL: no memory. Counts alloc_slowpath and free_slowpath.
 */
void *stook_barn_get_object(struct stook_barns *barns, unsigned node);
void stook_barn_put_object(struct stook_barns *barns, void *object);

/* ---- barn_refill.c: a sheaf that the caller owns, and the slabs ---- */

/* Fills a sheaf to its capacity, or as far as the slabs can. Counts sheaf_refill. */
void stook_barn_fill(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/*
 * stook_barn_fill(), if the barn has room for one more full sheaf: before a put of a sheaf that was
 * used in part.
 */
void stook_barn_fill_for_put(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);
/* All objects of a sheaf go into their slabs; then it is empty. Counts sheaf_flush. */
void stook_barn_flush(struct stook_barns *barns, struct stook_sheaf *sheaf);
/* Flushes a sheaf that no barn is to have, and deletes it. */
void stook_barn_discard(struct stook_barns *barns, struct stook_sheaf *sheaf);
/* Flushes and deletes everything in all barns of the cache. */
void stook_barn_empty_all(struct stook_barns *barns);

/* ---- barn_room.c: what caches may keep in barns and sheaves ---- */

/*
 * What sheaves made from here on hold, in objects, and how many sheaves are kept,
 * STOOK_BARN_LIMIT_MAX at most. One thread at a time.
 */
void stook_barns_set(struct stook_barns *barns, unsigned capacity, unsigned full_limit,
                     unsigned empty_limit);
/* The cache is empty and closed: what its growth has booked is for other caches. */
void stook_barns_end(struct stook_barns *barns);
/* From here on capacity grows by itself, and shrinks to what it is now; to 1 if it is 0 now. */
void stook_barns_let_grow(struct stook_barns *barns);
/* The same of the full sheaves that a barn keeps; capacity stays. */
void stook_barns_let_room_grow(struct stook_barns *barns);
/*
 * Slots that have gone to a barn: CPUs that the process has used. (Ready slots may be many more:
 * where CPU numbers are indices, all below the highest.) The slot layer raises it. Atomic, relaxed.
 */
extern uint32_t stook_barn_slots;
/*
 * The cache is at hand in one of many slow calls: if it has gotten and swung much since the last
 * decision, its sheaves or its barns grow.
 */
void stook_barns_decide(struct stook_barns *barns);
/* A slot's tick found that objects were taken from a slot's sheaves. */
void stook_barns_used(struct stook_barns *barns);
/*
 * Readers have left a sheaf with @bytes of objects, which a put follows. @waiting: bytes that other
 * sheaves keep waiting. What swings then gets room for a whole burst.
 */
void stook_barns_returned(struct stook_barns *barns, unsigned node, uint64_t bytes,
                          uint64_t waiting);

/*
 * Bytes that all barns of a node may keep at most; at start, from RLIMIT_AS. Barns keep an eighth
 * of the pages in use, or 1 MiB, if that is less.
 */
void stook_barn_set_budget(size_t node_bytes);
/* Bytes of objects in the barns of a node. */
uint64_t stook_barn_booked_bytes(unsigned node);

/* ---- barn.c: visits ---- */

/*
 * A visit is a call of another cache's thread that takes sheaves of this cache. False: the barns
 * are closed, and the caller turns away. Each visit that was true ends by _end.
 */
bool stook_barns_visit_begin(struct stook_barns *barns);
void stook_barns_visit_end(struct stook_barns *barns);
/*
 * Keeps visits out, so that no visitor has anything of this cache in hands. False: a visitor is
 * inside and does not leave for a second; nothing changed. Used around destroy and validation, and
 * while a cache is not alive.
 */
bool stook_barns_close(struct stook_barns *barns);
void stook_barns_open(struct stook_barns *barns);
/*
 * In a child of fork: visitors that the child does not have count as left. @open: the thread that
 * had closed the barns, if any, is gone, too.
 */
void stook_barns_fork_child(struct stook_barns *barns, bool open);

/* ---- barn_room.c: what caches keep that no thread uses any more ---- */

/* What a visit of the idle reaper goes by. */
struct stook_idle {
        uint32_t now_ms, after_ms;      /* idle: not taken between two visits after_ms apart, */
        uint32_t takes;                 /* or with a take between them, of any memory */
        bool     barns_only;            /* the slot's own sheaves are not looked at */
        unsigned work;                  /* sheaves that this step may still flush */
};

/*
 * Within a visit: flushes full sheaves that no thread needed since the last reap. Where no thread
 * asked for any, slabs that are kept empty are given back, too.
 */
void stook_barn_reap_idle(struct stook_barns *barns, unsigned node, struct stook_idle *idle);
/* Flushes the full sheaves of all caches and nodes, and gives back slabs that are empty then. */
void stook_barns_give_all(void);
/* Objects went into slabs of any node past the barns: the next reap looks at kept slabs again. */
void stook_barns_slabs_changed(struct stook_barns *barns);
/* Takes a sheaf that was detached from an idle slot: flushed, then kept empty or deleted. */
void stook_barn_retire(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf);

#endif
