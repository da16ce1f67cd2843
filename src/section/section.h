/*
 * Purpose: the operations on a CPU's sheaves, each of which is one critical section. Their contract
 * stands here once. section_rseq.c implements it with restartable sequences, section_locked.c with
 * a trylock for each slot.
 * Place: called by slot, and by the layers above that push and pop themselves. It calls no layer
 * below: of barn it has the sheaf's layout only.
 *
 * Layout: a slot is 1 << STOOK_SLOT_SHIFT bytes of address space, one 64-byte line for each cache.
 * A cache's line is at cache_index << STOOK_LINE_SHIFT. Two lines belong to no cache: line 0 is the
 * slot's head, and STOOK_PRECHARGE_LINE has the bytes charged in advance. Slots 0 to rseq_slots-1
 * are those of restartable sequences; their index is mm_cid or cpu_id, read inside the section. The
 * slots of the locked backend follow them, so the two backends never meet on a line.
 *
 * Invariants:
 *  I1 a slot's lines are filled with {main = the zero-capacity sheaf, no spare} before `ready`
 *     passes the slot. A new cache's line is filled in all ready slots before the cache is
 *     published. So a section dereferences nothing that is not filled.
 *  I2 main is never NULL. The spare is NULL or a sheaf with a capacity above 0.
 *  I3 the pair {main, spare} changes only by one 16-byte compare-and-swap, on both backends. So
 *     another CPU can empty it (evacuate/), and a fork never finds it torn.
 *  I4 the index proves nothing by itself: an unregistered thread reads mm_cid 0. The proof is
 *     stook_self->ready; in a direct section of the drop-in, the bound of all threads
 *     (direct/direct.c).
 *  I5 the bytes in a precharge are charged to its group. The thread that changes the word has the
 *     difference in its hands.
 *  I6 no section changes a precharge that is FROZEN: it belongs to an evacuation. A section that
 *     had loaded the word before may still commit, and the word is not frozen then. So the
 *     evacuation looks again after its barrier (group/precharge.c).
 *
 * Pseudo-code: S is the slot of the index read inside the section, L the line of the cache in S, P
 * the precharge of the group in S. Each operation is one critical section; * marks the commit.
 *   pop          m = L.main; w = m.word; if size(w) == 0, or w is marked: miss;
 *                o = m.objects[size-1];                                  * m.word = w + 0xffff
 *   push(o)      m = L.main; w = m.word; if size(w) == m.capacity: miss;
 *                if m.objects[size-1] == o: double; m.objects[size] = o; * m.word = w + 1
 *   pop_n(n)     k = min(n, size, pops to the mark); if k == 0: leave;
 *                copy, top object first                                  * m.word = w + k * 0xffff
 *   push_n(n)    k = min(n, capacity - size); if k == 0: leave;
 *                copy to objects[size..]                                 * m.word = w + k
 *   pop_if(o)    as pop, but a miss if the top object is not o, and a mark is passed
 *   rearm(m, from, to)
 *                if L.main != m, or m.word != from: miss;                * m.word = to
 *   exchange     if *config != generation: miss; if size(expected.main) != `size`: miss;
 *                                 * compare-and-swap L.{main, spare} from expected to desired
 *   swap         m = L.main; s = L.spare; if s == NULL: miss; if m.capacity == 0: miss (I2);
 *                for a pop: if size(m) != 0: miss; if size(s) == 0: miss;
 *                for a push of o: if size(m) < m.capacity: miss; if o is m's top: miss;
 *                                 if size(s) == s.capacity: miss;
 *                                    * compare-and-swap L.{main, spare} from {m, s} to {s, m}
 *                (only the drop-in's malloc and free on x86-64: dropin/hot_x86_64.h)
 *   rcu_push(o)  r = L.rcu_free; if r == NULL: miss; w = r.word;
 *                if size(w) + 1 >= r.capacity: last;
 *                r.objects[size] = o;                                    * r.word = w + 1
 *   rcu_fill(o)  r = L.rcu_free; if r == NULL or size(r.word) + 1 != r.capacity: miss;
 *                r.objects[size] = o;               * compare-and-swap L.rcu_free from r to NULL
 *                and outside, as sole owner, r.word++: no attached rcu sheaf is ever full
 *   precharge_add(id, delta)
 *                w = P; if w is not id's, or w + delta leaves 0..STOOK_PRECHARGE_MAX: miss;
 *                                                                        * P = w + delta
 *   precharge_set(from, to)
 *                if P != from: miss;                                     * P = to
 * Four operations are plain loads, and what they return is a hint. (The locked backend's peek is a
 * critical section.)
 *   look         L.{main, spare}
 *   own          S
 *   peek         m = L.main; m.objects[size-1]; pop_if proves it
 *   precharge_look
 *                P
 *
 * A section that is aborted (by a preemption, a migration, a signal) reports a miss. The caller's
 * descent then tries again, boundedly: slot/slot_get.c and slot/slot_put.c for pop and push,
 * slot/slot_bulk.c for pop_n and push_n, rcu/rcu_free.c for rcu_push and rcu_fill. After a
 * precharge_add the group's counters are charged instead (group/group_charge.c).
 *
 * The argument for swap, which compares no generation: docs/CONCURRENCY.md.
 *
 * The argument for exchange: the section guarantees that no other thread is between its loads and
 * its commit on this slot. The locked compare-and-swap orders the exchange against an evacuation on
 * another CPU. A pair that was read outside may be torn, or of another slot: the compare-and-swap
 * then fails, or succeeds validly. Main's size is looked at inside, so a main that gained or lost
 * an object meanwhile is never exchanged for another.
 */
#ifndef STOOK_SECTION_CONTRACT_H
#define STOOK_SECTION_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "barn/sheaf.h"
#include "base/pair.h"
#include "base/thread.h"

/* What an uncharge with a push behind it (section_precharge.h) found. */
enum stook_uncharged {
        STOOK_UNCHARGED_PUSHED,
        STOOK_UNCHARGED,                /* but the push missed, or found a double free */
        STOOK_STILL_CHARGED,            /* nothing changed */
};

/*
 * How sections find their way; the same in every thread.
 *   area   bytes from the thread record to the kernel's area, where the kernel writes the index at
 *          its fixed place (stook_area_v1). 0 before the start, and where the index is another
 *          field.
 *   index  bytes from the thread record to the slot index, whichever field that is.
 *   slots  slot 0.
 * Sections that use `area` (those with _v1 in their names) need no pointer of the thread, and no
 * test of one. A thread that has not enrolled stores its rseq_cs there into an area that is not
 * registered, or not in use, and its `ready` sends it away. The other sections load
 * stook_self->rseq, and miss where it is NULL. Set at start, and again by every thread that enrols,
 * with the same values: relaxed.
 */
extern struct stook_sections {
        intptr_t  area;
        uintptr_t index;
        char     *slots;
} stook_sections __attribute__((visibility("hidden")));

#ifndef STOOK_NEVER_UNLOADED
#define STOOK_NEVER_UNLOADED 1          /* the library is linked -z nodelete */
#endif
#define STOOK_SECTION_RECORD stook_thread
#define STOOK_SECTION_AREA   stook_sections.area
#include <stook/section.h>

#ifndef STOOK_SECTION_V1                /* section_none.h */
enum stook_push {
        STOOK_PUSH_MISS,
        STOOK_PUSH_DONE,
        STOOK_PUSH_DOUBLE
};
#endif

/* ---- lines ---- */

/* A cache's line in a slot. */
struct stook_line {
        struct stook_pair pair;         /* lo: main, hi: spare; I3 */
        struct stook_sheaf *rcu_free;   /* atomic; NULL, or a sheaf open for frees by RCU */
        /* Atomic, relaxed, a hint: objects that refills of the cache brought here (barn/barn.h). */
        uint32_t brought;
        /*
         * What the last look for idle sheaves saw (slot/slot_tick.c): main, its count of pops, and
         * when that was. Atomic, relaxed, hints.
         */
        uint32_t idle_since_ms;
        uintptr_t idle_main;
        uint64_t idle_pops;
        /*
         * A hint, on x86-64: main's top object. The first section of the drop-in's malloc and new,
         * stook_cache_alloc, and the pop of accounted caches compare it with the real one
         * (dropin/hot_x86_64.S, section_x86_64.h). These, the pushes beside them, and the drop-in's
         * other pops store it before their commit. Other operations leave it as it is.
         */
        uintptr_t guess;
        uint64_t unused;
};
_Static_assert(sizeof(struct stook_line) == 1 << STOOK_LINE_SHIFT, "layout v1");
#define STOOK_LINE_RCU   16             /* of rcu_free, for sections in assembly */
#define STOOK_LINE_GUESS 48             /* of guess */
_Static_assert(offsetof(struct stook_line, rcu_free) == STOOK_LINE_RCU &&
               offsetof(struct stook_line, guess) == STOOK_LINE_GUESS, "sections");

/* Line 0 of a slot: the slot itself. */
struct stook_slot_head {
        struct stook_pair nothing;      /* {zero-capacity sheaf, none} for ever */
        struct stook_sheaf *rcu_free;   /* as in a line; its objects may be of many caches */
        /*
         * Locked slots only. Written by an evacuation, under its mutex, atomically: it has waited
         * in vain for the holder of this slot.
         */
        uint32_t stuck;
        /* The slot's tick and round (slot/slot_tick.c). Atomic, relaxed, hints. */
        uint16_t tick_calls;            /* ways to a barn so far, modulo 2^16 */
        uint16_t reap_barns_only;       /* of this round: the clock moved for dirty memory */
        uint32_t reap_due_ms;           /* when the next round is due */
        uint32_t used;                  /* it has gone to a barn, and is counted (barn/barn.h) */
        /* stook_fresh_clean(), stook_fresh_dirty() when the last round began */
        uint32_t reap_clean_takes, reap_dirty_takes;
        /* The next cache's struct stook_barns; 0: no round is under way */
        uintptr_t reap_at;
        /* Locked slots only, atomic: the trylock's word; 0 or the holder's stook_self. */
        uint64_t holder;
};
_Static_assert(sizeof(struct stook_slot_head) == sizeof(struct stook_line), "a line");
_Static_assert(offsetof(struct stook_slot_head, rcu_free) == STOOK_LINE_RCU, "sections");

/* A precharge is one word, group id << 32 | bytes. 0: no group's. */
#define STOOK_PRECHARGE_WORDS  4        /* of a slot; a group's is the one at its id modulo that */
#define STOOK_PRECHARGE_BITS   17
#define STOOK_PRECHARGE_MAX    ((1u << STOOK_PRECHARGE_BITS) - 1)       /* bytes */
#define STOOK_PRECHARGE_FROZEN (UINT64_C(1) << 63)      /* I6 */

/*
 * The first line behind those of malloc's classes. To pop and push it is the line of an empty
 * cache.
 */
#define STOOK_PRECHARGE_LINE 73

struct stook_precharge_line {
        struct stook_pair nothing;      /* {zero-capacity sheaf, none} for ever */
        uint64_t unused[2];
        uint64_t word[STOOK_PRECHARGE_WORDS];   /* atomic; I5 */
};
_Static_assert(sizeof(struct stook_precharge_line) == sizeof(struct stook_line), "a line");

/* ---- the operations ---- */

/*
 * Objects that one section copies at most: about 100 ns, to end between two signals of a fast
 * timer.
 */
#define STOOK_SECTION_BATCH 128

#define STOOK_RCU_LAST ((void *)1)

/* One table for each backend. @offset: cache index << STOOK_LINE_SHIFT. */
struct stook_section_ops {
        const char *name;
        /* Refusals, by aborts or a busy slot, after which the caller asks the layer below */
        unsigned abort_limit;
        void  *(*pop)(uint32_t offset);
        enum stook_push (*push)(uint32_t offset, void *object);
        /* Objects taken, or put: up to n, and up to STOOK_SECTION_BATCH. */
        size_t (*pop_n)(uint32_t offset, size_t n, void **objects);
        size_t (*push_n)(uint32_t offset, size_t n, void *const *objects);
        void  *(*peek)(uint32_t offset);
        void  *(*pop_if)(uint32_t offset, void *expected);
        /* True: the word of @main, which was @from, is @to. */
        bool   (*rearm)(uint32_t offset, struct stook_sheaf *main, uint64_t from, uint64_t to);
        /* The current slot's pair, racily. */
        struct stook_pair (*look)(uint32_t offset);
        /* The current slot, racily. NULL: none. */
        struct stook_slot_head *(*own)(void);
        /*
         * @object: it was put. NULL: a miss. STOOK_RCU_LAST: only one place is left; nothing was
         * done.
         */
        void  *(*rcu_push)(uint32_t offset, void *object);
        /*
         * The sheaf, off the slot, full, with @object in its last place. The caller is in transit
         * (RCU's count of such calls). NULL: a miss.
         */
        struct stook_sheaf *(*rcu_fill)(uint32_t offset, void *object);
        /*
         * See exchange above. @size: what main's size must be. @config: NULL, or the word that must
         * equal @generation.
         */
        bool   (*exchange)(uint32_t offset, struct stook_pair expected, struct stook_pair desired,
                           unsigned size, const uint32_t *config, uint32_t generation);
        /* @offset: the word's, from the slot's start. Look: the current slot's word, racily. */
        bool   (*precharge_add)(uint32_t offset, uint64_t tag, int64_t delta);
        bool   (*precharge_set)(uint32_t offset, uint64_t expected, uint64_t desired);
        uint64_t (*precharge_look)(uint32_t offset);
};
extern const struct stook_section_ops stook_section_rseq, stook_section_locked;

/* ---- what the locked backend works on ---- */

/* Set once, at start (slot/slot_regions.c); const afterwards. */
extern struct stook_locked_slots {
        uint32_t count;                 /* a power of two; 0 before the start */
        /* A thread's slot is its CPU's; else a hash of the thread */
        bool     by_cpu;
        /* A slot, its lines filled. NULL: no memory, or no lock to be had. */
        struct stook_slot_head *(*ready)(uint32_t slot);
} stook_locked_slots;

#endif
