/*
 * Purpose: a CPU's sheaves: what happens when the hot path misses, and how a thread gets to the hot
 * path at all. The operations themselves, and the layout of a slot, are in section/section.h.
 * Place: called by malloc, cache, prefill, rcu, group, home, direct and evacuate, and by inspect,
 * watch and life; calls section, and barn for whole sheaves.
 */
#ifndef STOOK_SLOT_H
#define STOOK_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "barn/barn.h"
#include "section/section.h"

/* The slot layer's part of a cache. Const after init but for config. */
struct stook_front {
        /*
         * Public layout v1, first in struct stook_cache: the line in slot 0 at which inlined calls
         * look. If it is line 0, where there is nothing for ever, the front is closed: the cache
         * is accounted, and not watched (account/account.h).
         */
        uintptr_t line;
        uint32_t offset;                /* in each slot, of the line that has the cache's sheaves */
        /*
         * Atomic: generation; installs of sheaves made under an older one miss. Odd: no installs at
         * all
         */
        uint32_t config;
        struct stook_barns *barns;
};

/* Slot 0 is aligned to its size. So this takes one instruction, on a register that is in use. */
STOOK_INLINE bool stook_front_is_closed(const struct stook_front *front)
{
        return !(front->line & (((uintptr_t)1 << STOOK_SLOT_SHIFT) - 1));
}

/* What a look for idle sheaves notes on a line: main, and its count of pops. */
STOOK_INLINE void stook_line_note(struct stook_line *line, uintptr_t main, uint64_t pops,
                                  uint32_t now_ms)
{
        __atomic_store_n(&line->idle_main, main, __ATOMIC_RELAXED);
        __atomic_store_n(&line->idle_pops, pops, __ATOMIC_RELAXED);
        __atomic_store_n(&line->idle_since_ms, now_ms, __ATOMIC_RELAXED);
}

/* Is that still so? Then nothing was taken from the slot's sheaves since. */
STOOK_INLINE bool stook_line_is_unchanged(const struct stook_line *line, uintptr_t main,
                                          uint64_t pops)
{
        return __atomic_load_n(&line->idle_main, __ATOMIC_RELAXED) == main &&
               __atomic_load_n(&line->idle_pops, __ATOMIC_RELAXED) == pops;
}

/*
 * The backend for this thread now. Enrols the thread, if it is not enrolled and can be: then rseq;
 * else locked. The answer holds for this step only: the next one asks again.
 */
const struct stook_section_ops *stook_slot_ops(void);

/* ---- slot_enrol.c: a thread's way to the hot path ---- */
/*
 * Proves this thread's registration, makes its current slot ready, fills stook_self. False: this
 * thread stays locked.
 */
bool stook_slot_enrol(void);
/*
 * For a thread that cannot enrol, and has memory whose end should be noticed: counts it, once, as
 * one that has enrolled. The first thread is not counted: the one that started the library, or that
 * forked. No system call: a sandbox may not allow one by now.
 */
void stook_slot_count_locked(void);
/* This thread is the first one. At start, and in a forked child. */
void stook_slot_note_first(void);
/*
 * Each thread that enrols, but for the first one, calls @end with its stook_thread_v1 when it ends,
 * if there is a key for that (os/thread_end.c). The first one does so, too, where rseq areas are
 * ours. At start.
 */
void stook_slot_set_end(void (*end)(void *));

/*
 * <stook/layout.h>'s stook_area_v1, which is const to callers only; where the program sees it, for
 * a program may have a copy of it in itself.
 */
extern intptr_t stook_slot_area __asm__("stook_area_v1") __attribute__((visibility("default")));
/* Sets this and stook_sections, if this thread is registered, and stook_direct. At start. */
void stook_slot_note_area(void);

/* What the drop-in's direct sections, a layer above (direct/direct.h), are told. */
struct stook_direct_duties {
        /* @area: of the thread that starts the library; NULL: direct sections are off. */
        void (*start)(const char *area);
        void (*slots_ready)(void);
        /* A thread without a registration runs: the C library does not register every thread. */
        void (*unregistered)(void);
};
extern const struct stook_direct_duties stook_direct_duties;

/* ---- slot_regions.c ---- */
/* Chooses the backend (STOOK_SLOTS), reserves the regions. False: no memory. */
bool stook_slots_start(void);
/* Fills the line of a new cache in all ready slots. False: no memory. */
bool stook_slots_add_cache(unsigned cache_index);
/*
 * All slots of both backends, for evacuations, statistics, fork: for slot < stook_slots_bound(),
 * the line of one, or NULL if that slot is not ready. stook_slots_ready() is how many are.
 */
unsigned stook_slots_bound(void);
unsigned stook_slots_ready(void);
struct stook_line *stook_slots_line(unsigned slot, unsigned cache_index);
/* A slot itself. NULL: it is not ready. */
struct stook_slot_head *stook_slots_head(unsigned slot);
/* Where the line of a cache is in slot 0, ready or not: what sections reckon from. */
uintptr_t stook_slots_first_line(unsigned cache_index);
const char *stook_slots_index_name(void);
const char *stook_slots_backend_name(void);
unsigned stook_slots_count(void);       /* slots the backend in use may ever have */
/* fork child: trylock words of the locked backend are free again; this thread must enrol anew. */
void stook_slots_fork_child(void);
/* Objects in the slots of a cache, racily. */
size_t stook_slot_objects(struct stook_front *front);

/* ---- several nodes: what home, a layer above, does for this one ---- */

/* Who looks for sheaves that are idle. */
enum stook_home_look {
        STOOK_LOOK_OF_SLOT = 1,         /* the slot's own tick */
        STOOK_LOOK_OF_ROUND = 2,        /* a round over all slots */
        STOOK_LOOK_AT_ALL = 3,          /* no look: all of them are due */
};

struct stook_home_duties {
        void *(*get_by_policy)(struct stook_front *front);
        void (*dispose)(struct stook_front *front, int or_here, struct stook_sheaf *sheaf);
        unsigned (*reap)(struct stook_barns *barns, size_t slot, enum stook_home_look look,
                         unsigned work);
        size_t (*objects)(struct stook_front *front);
};
extern const struct stook_home_duties stook_home_duties;

/* Const after start: there are several nodes. */
extern bool stook_slots_by_node STOOK_HIDDEN;
/*
 * Const after start: each allocation that names no node asks the task's policy. Then no thread
 * enrols.
 */
extern bool stook_slots_strict STOOK_HIDDEN;

/* slot_regions.c */
unsigned stook_slot_node_of_several(void);

/*
 * The node of the CPU that this thread is on now; a hint, for it may move on. May be one without
 * memory. A CPU is on one node for ever. A slot is not: its index, the concurrency id, may be that
 * of a thread on another node next. (With STOOK_TOPOLOGY a CPU's node is its number modulo the
 * nodes; on the locked backend that of the slot.)
 */
STOOK_INLINE unsigned stook_slot_node(void)
{
        return STOOK_LIKELY(!stook_slots_by_node) ? 0 : stook_slot_node_of_several();
}

/*
 * Takes any sheaf from its sole owner, a caller that needs it no more. Its objects were freed on
 * node @or_here (-1: this thread's). Where all have one home, the sheaf goes to that home's barn as
 * it is. Otherwise its objects are divided by their homes. Where a barn has no room, objects go
 * into their slabs.
 */
STOOK_INLINE void stook_slot_dispose(struct stook_front *front, int or_here,
                                     struct stook_sheaf *sheaf)
{
        if (STOOK_UNLIKELY(stook_slots_by_node))
                stook_home_duties.dispose(front, or_here, sheaf);
        else
                stook_barn_put(front->barns, 0, sheaf);
}

/*
 * ---- slot_get.c, slot_put.c: the miss of one object. It is complete: what slot and barn do not
 * have, or do not take, is the slabs'. After the gate's check. ----
 */
/* NULL: no memory. @in_place: a sample is the object itself, and never STOOK_SLOT_SAMPLE. */
void  *stook_slot_get(struct stook_front *front, bool in_place);
/* This call is a sample (slot_trip.h): it gets its object in another way. */
#define STOOK_SLOT_SAMPLE ((void *)2)
/* The same from whatever node, though the task's policy may say otherwise (STOOK_STRICT_NUMA). */
void  *stook_slot_get_any(struct stook_front *front, bool in_place);
/* Never fails. A double free noticed is reported by @on_double and the object left alone. */
void   stook_slot_put(struct stook_front *front, void *object,
                      void (*on_double)(struct stook_front *, void *));

/* ---- slot_bulk.c: many; the rest is the caller's business: it has an array for the slabs ---- */
/* As many as the slot and its barn have, up to n: swap, get, no refill. */
size_t stook_slot_alloc_bulk(struct stook_front *front, size_t n, void **objects);
/* As many as the slot and its barn take, up to n. */
size_t stook_slot_free_bulk(struct stook_front *front, size_t n, void **objects);

/* ---- the spare, for prefilled sheaves ---- */
/* The slot's spare, with any number of objects in it. NULL: none, or not to be had now. */
struct stook_sheaf *stook_slot_take_spare(struct stook_front *front);
/*
 * A sheaf with any number of objects becomes the spare. False: there is one, or the sheaf is not of
 * the cache's capacity.
 */
bool stook_slot_give_spare(struct stook_front *front, struct stook_sheaf *sheaf);

/* ---- slot_tick.c ---- */
/*
 * A bounded step of giving back what idle caches keep: in barns, and in the slot this thread is on.
 * Next to nothing where no step is due. No lock held; may be called at any instruction, and does
 * nothing on top of a lock's holder.
 */
void   stook_slot_reap_idle(void);
/*
 * Flushes the sheaves of all caches in the slot that this thread is on, idle or not. As many steps
 * as there are caches; called likewise.
 */
void   stook_slot_give_own(void);

#endif
