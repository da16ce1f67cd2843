/*
 * Purpose: a CPU's sheaves. The contract of each operation stands here once; slot_rseq.c implements it with
 * restartable sequences, slot_locked.c with a trylock for each slot.
 * Place: called by cache; misses call barn.
 *
 * Layout: a slot's region is 1 << STOOK_SLOT_SHIFT bytes of address space: one 64-byte line for each cache, at
 * cache_index << STOOK_LINE_SHIFT (line 0, of no cache, is the slot's own: the trylock word of the locked
 * backend; so is STOOK_STOCK_LINE: slot_stock.h). Slots 0..rseq_slots-1 belong to the rseq backend (index: mm_cid or cpu_id, read inside the
 * section), the locked backend has slots of its own behind them.
 *
 * Invariants:
 *  I1 a slot's lines are filled {main = zero-capacity sheaf, spare NULL} before `ready` passes the slot, and
 *     for a new cache in all ready slots before the cache is published: nothing untouched is dereferenced.
 *  I2 main is never NULL. spare is NULL or a sheaf with capacity > 0.
 *  I3 the pair {main, spare} changes only by one 16-byte compare-and-swap, on both backends: it can be
 *     emptied from outside (slot_drain.c) and a fork never finds it torn.
 *  I4 the index proves nothing by itself (an unregistered thread reads mm_cid 0): stook_self->ready does.
 *
 * Pseudo-code, S = slot of the index read inside the section, L = line of the cache, each one critical
 * section with the commit marked *:
 *   pop          m = L.main; w = m.word; if size(w) == 0: miss;  o = m.objects[size-1];  * m.word = w + 0xffff
 *   push(o)      m = L.main; w = m.word; if size(w) == m.capacity: miss; if m.objects[size-1] == o: double;
 *                m.objects[size] = o;                                                    * m.word = w + 1
 *   pop_n(n)     k = min(n, size); if k == 0: leave; copy, top object first               * m.word = w + k * 0xffff
 *   push_n(n)    k = min(n, capacity - size); if k == 0: leave; copy to objects[size..]   * m.word = w + k
 *   peek         o = m.objects[size-1]: a hint, read racily; pop_if proves it
 *   pop_if(o)    as pop, but a miss if the top object is not o
 *   exchange     if L.{main} != expected.main, or size(main.word) != `size`: miss;
 *                                                                        * compare-and-swap L.{main, spare}
 *   rcu_push(o)  r = L.rcu_free; if r == NULL: miss; w = r.word; if size(w) + 1 >= r.capacity: last;
 *                r.objects[size] = o;                                                    * r.word = w + 1
 *   rcu_fill(o)  r = L.rcu_free; if r == NULL or size(r.word) + 1 != r.capacity: miss;
 *                r.objects[size] = o;                                 * compare-and-swap L.rcu_free from r to NULL
 *                and outside, as sole owner, r.word++: no attached rcu sheaf is ever full
 * A section that is aborted (preempted, migrated, a signal) reports a miss: whoever misses goes to slot_miss.c,
 * which tries again, boundedly.
 *
 * The argument for exchange: the section guarantees that no other thread is between its loads and its commit
 * on this slot; the locked compare-and-swap orders it against a drainer on another CPU. Reads of the pair
 * outside may be torn or of another slot: the compare-and-swap then fails, or succeeds validly. Main's size is
 * looked at inside, so a main that gained or lost an object meanwhile is never exchanged for another.
 */
#ifndef STOOK_SLOT_H
#define STOOK_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "barn/barn.h"
#include "base/pair.h"
#include "base/thread.h"

/*
 * What sections find their way by, the same in every thread: in bytes from the thread's line, the area of which the
 * kernel writes the slot index at its fixed place (stook_area_v1: 0 where the index is another field, and before the
 * start), and the index wherever it is; and slot 0. Sections that use these need no pointer of the thread, and no test
 * of it: a thread that has not enrolled stores its rseq_cs into an area that is not registered, or not at work, and is
 * sent away by `ready`. Set at start; and, always the same, by every thread that enrols: relaxed.
 */
extern struct stook_sections {
        intptr_t  area;
        uintptr_t index;
        char     *slots;
} stook_sections __attribute__((visibility("hidden")));

#ifndef STOOK_NEVER_UNLOADED
#define STOOK_NEVER_UNLOADED 1          /* the library is linked -z nodelete */
#endif
#define STOOK_SECTION_SELF stook_self
#define STOOK_SECTION_AREA stook_sections.area
#include <stook/section.h>

/* One line for each slot and cache. */
struct stook_line {
        struct stook_pair pair;         /* lo: main, hi: spare; I3 */
        struct stook_sheaf *rcu_free;   /* atomic; NULL, or a sheaf open for frees by RCU; slot_rcu.h */
        uint32_t busy;                  /* atomic; line 0 of a locked slot: its trylock word */
        uint32_t stuck;                 /* under `drain`; line 0 of a locked slot: its holder was waited for in vain */
        /* slot_idle.c; atomic, relaxed, hints: main and its count of pops as first seen. Line 0: growths, where the look is. */
        uint64_t seen[2];
        uint32_t idle_ms;               /* slot_idle.c; atomic, relaxed: when `seen` was. Line 0: when the next look is due */
        uint32_t idle_calls;            /* slot_idle.c, line 0; atomic, relaxed: steps so far */
        uint32_t reserved[2];
};
_Static_assert(sizeof(struct stook_line) == 1 << STOOK_LINE_SHIFT, "layout v1");
#define STOOK_LINE_RCU 16               /* of rcu_free, for sections in assembly */
_Static_assert(offsetof(struct stook_line, rcu_free) == STOOK_LINE_RCU, "sections");

STOOK_INLINE void stook_line_note(struct stook_line *line, uintptr_t main, uint64_t pops, uint32_t now_ms)
{
        __atomic_store_n(&line->seen[0], main, __ATOMIC_RELAXED);
        __atomic_store_n(&line->seen[1], pops, __ATOMIC_RELAXED);
        __atomic_store_n(&line->idle_ms, now_ms, __ATOMIC_RELAXED);
}

/* The slot layer's part of a cache. Const after init but for config. */
struct stook_front {
        uintptr_t line;                 /* the cache's line in slot 0: the public layout v1, first in struct stook_cache */
        uint32_t offset;                /* of the line in each slot */
        uint32_t config;                /* atomic: generation; installs of sheaves made under an older one miss. Odd: no installs at all */
        struct stook_barns *below;
        struct stook_remote *remote;    /* slot_remote.c; NULL on one node. Kept when the cache's index is used again */
};

/* Stocks are here, and no cache: the first line behind those of malloc's classes. To the hot paths it is an empty cache's. */
#define STOOK_STOCK_LINE 49

/* Objects one section copies at most: about 100 ns, to end between two signals of a fast timer. */
#define STOOK_SLOT_BATCH 128

#define STOOK_RCU_LAST ((void *)1)

/* ---- one table for each backend ---- */
struct stook_slot_ops {
        const char *name;
        unsigned abort_limit;           /* refusals by aborts or a busy slot until the layer below is asked */
        void  *(*pop)(uint32_t offset);
        enum stook_push (*push)(uint32_t offset, void *object);
        /* Objects taken, put: up to n, and up to STOOK_SLOT_BATCH. */
        size_t (*pop_n)(uint32_t offset, size_t n, void **objects);
        size_t (*push_n)(uint32_t offset, size_t n, void *const *objects);
        void  *(*peek)(uint32_t offset);
        void  *(*pop_if)(uint32_t offset, void *expected);
        /* The current slot's pair, racily. */
        struct stook_pair (*look)(uint32_t offset);
        /* The current slot's line 0, racily. NULL: none. */
        struct stook_line *(*own)(void);
        /* @object: it was put. NULL: a miss. STOOK_RCU_LAST: only one place is left; nothing was done. */
        void  *(*rcu_push)(uint32_t offset, void *object);
        /* The sheaf, off the slot, full with @object in its last place; the caller is in transit (slot_rcu.h). NULL: a miss. */
        struct stook_sheaf *(*rcu_fill)(uint32_t offset, void *object);
        /* See exchange above. @size: what main's size must be. @config: NULL, or the word that must equal @generation. */
        bool   (*exchange)(uint32_t offset, struct stook_pair expected, struct stook_pair desired, unsigned size,
                           const uint32_t *config, uint32_t generation);
        /* Stocks, see slot_stock.h: add, set, and the current slot's word, racily. */
        bool   (*stock_add)(uint32_t offset, uint64_t tag, int64_t delta);
        bool   (*stock_set)(uint32_t offset, uint64_t expected, uint64_t desired);
        uint64_t (*stock_look)(uint32_t offset);
};
extern const struct stook_slot_ops stook_slot_rseq, stook_slot_locked;

/* The backend for this thread now: rseq if it is, or can be, enrolled; else locked. */
const struct stook_slot_ops *stook_slot_ops(void);

/* ---- slot_enrol.c: a thread's way to the hot path ---- */
/* Proves this thread's registration, makes its current slot ready, fills stook_self. False: this thread stays locked. */
bool stook_slot_enrol(void);

/*
 * <stook/layout.h>'s stook_area_v1, which is const to callers only; where the program sees it, for a program may
 * have a copy of it in itself.
 */
extern intptr_t stook_slot_area __asm__("stook_area_v1") __attribute__((visibility("default")));
/* Sets this and stook_sections, if this thread is registered. */
void stook_slot_note_area(void);

/* ---- slot_regions.c ---- */
/* Chooses the backend (STOOK_SLOTS), reserves the regions. False: no memory. */
bool stook_slots_start(void);
/* Fills the line of a new cache in all ready slots. False: no memory. */
bool stook_slots_add_cache(unsigned cache_index);
/*
 * All slots of both backends, for drains, statistics, fork: for slot < stook_slots_bound(), the line of one, or
 * NULL if that slot is not ready. stook_slots_ready() is how many are.
 */
unsigned stook_slots_bound(void);
unsigned stook_slots_ready(void);
struct stook_line *stook_slots_line(unsigned slot, unsigned cache_index);
/* Where the line of a cache is in slot 0, ready or not: what sections reckon from. */
uintptr_t stook_slots_first_line(unsigned cache_index);
const char *stook_slots_index_name(void);
const char *stook_slots_backend_name(void);
unsigned stook_slots_count(void);       /* slots the backend in use may ever have */
/* fork child: trylock words of the locked backend are free again; this thread must enrol anew. */
void stook_slots_fork_child(void);
/* Later, when all below is whole: into the slabs with what a drain of a thread that is gone had detached. */
void stook_slot_drain_fork_mend(void);

/* ---- slot_miss.c: what happens when the hot path misses. Object-level, complete: falls through to the slabs. ---- */
void  *stook_slot_alloc_miss(struct stook_front *front);                /* NULL: no memory */
/* The same from whatever node, though the task's policy may say otherwise (STOOK_STRICT_NUMA). */
void  *stook_slot_alloc_any(struct stook_front *front);
/* Brings objects to this slot, if it has none. False: there are none to be had. */
bool   stook_slot_refill(struct stook_front *front);
/* Never fails. A double free noticed is reported by @on_double and the object left alone. */
void   stook_slot_free_miss(struct stook_front *front, void *object, void (*on_double)(struct stook_front *, void *));
/* As many as the slot and its barn have, up to n: swap, trade, no refill. */
size_t stook_slot_alloc_bulk(struct stook_front *front, size_t n, void **objects);
/* As many as the slot and its barn take, up to n. */
size_t stook_slot_free_bulk(struct stook_front *front, size_t n, void **objects);

/* ---- slot_lend.c: for prefilled sheaves ---- */
/* The slot's spare, with any number of objects in it. NULL: none, or not to be had now. */
struct stook_sheaf *stook_slot_take_spare(struct stook_front *front);
/* A sheaf with any number of objects becomes the spare. False: there is one, or the sheaf is not of the cache's capacity. */
bool stook_slot_give_spare(struct stook_front *front, struct stook_sheaf *sheaf);

/* ---- slot_idle.c ---- */
/*
 * A bounded step of giving back what idle caches keep: in barns, and in the slot this thread is on. Next to nothing
 * where no step is due. No lock held; may be called at any instruction, and does nothing on top of a lock's holder.
 */
void   stook_slot_rest(void);

/*
 * A round of the same over all slots, from outside: those from which nothing was taken for @after_ms, and those on
 * which no thread can run any more (their CPU went, or left the process's affinity). Waits; not for handlers.
 * Return: caches of which something was given back.
 */
unsigned stook_slots_rest(uint32_t after_ms);

/* ---- slot_drain.c ---- */
/* What a look at idle slots goes by. */
struct stook_cpus;
struct stook_slot_look {
        uint32_t now_ms, after_ms;
        const struct stook_cpus *allowed;
        bool   (*gone)(unsigned slot, const struct stook_cpus *allowed); /* no thread can run there any more */
};
/* Empties the slots of a cache that are idle. The caller is within a visit of its barns. True: there were some. */
bool stook_slot_drain_idle(struct stook_barns *barns, const struct stook_slot_look *look);
/*
 * Empties all slots of a cache, from one thread at a time. False: not all (membarrier refused, a holder that never
 * came back); what may still be used is left alone.
 */
bool stook_slot_drain(struct stook_front *front);
/* Objects and sheaves in the slots of a cache, racily. */
size_t stook_slot_objects(struct stook_front *front);

/*
 * Test hooks: each number makes the named step refuse every n-th time; 0: never. miss_pop and miss_push: the
 * retry in the miss path; abort_storm: every section of the miss path; lend_fail: slot_lend.c's exchanges. @landing is called when a sheaf has
 * been got and is about to be installed: the test changes the slot there, as a migration would.
 */
extern struct stook_slot_hooks {
        uint32_t miss_pop, miss_push, exchange_fail, trade_fail, refill_fail, abort_storm, lend_fail;
        void   (*landing)(struct stook_front *front);
        uint32_t no_barrier;            /* drains leave the barrier out: for the proof that a test would notice */
        uint32_t locked_slot;           /* locked backend: all threads use slot n - 1; 0: each its own */
} stook_slot_hooks;

#endif
