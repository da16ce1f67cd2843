/*
 * Purpose: calls that take each way through the slow calls of allocation and free, and a small
 * heap for them. Tests that interrupt them at every instruction share it.
 *
 * Two caches have objects of 4 KiB, one of them without sheaves, so that sheaves (4 objects) and
 * slabs (16) are soon full or empty. Two more are without sheaves: one has slabs with many parts
 * (16 bytes), one has slabs with four objects (16 KiB).
 * Each object is stamped and kept in one table for each cache, with room for a handler to put and
 * take in the middle of a call. An object that is about to be freed leaves the table first.
 */
#ifndef STOOK_TEST_SLOW_PATHS_H
#define STOOK_TEST_SLOW_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/stook.h>

#define HELD_MAX 256

struct hands {
        const char *name;
        unsigned words;                 /* of an object */
        struct stook_cache *cache;
        unsigned count;
        uint64_t *held[HELD_MAX];
};

#define HANDS 4
extern struct hands sheaved, bare, parted, fours;
extern struct hands *const hands_all[HANDS];

struct slow_path {
        const char *name;
        void (*prepare)(void);
        void (*call)(void); /* the call under test; also under what `prepare` has set up to fail */
        bool  fails;                    /* NULL is the right answer */
};
extern const struct slow_path slow_paths[], slow_paths_slabs[];
extern const unsigned slow_path_count, slow_path_slabs_count;

/* False: no memory. */
bool slow_paths_start(void);
/* Everything back, nothing cached, all hooks off: what each case begins with. */
void slow_paths_clean(void);
/* The free pages that a path had put out of reach; they stay so from case to case. */
void slow_paths_give_pages(void);
/* What a path had made to fail works again. */
void slow_paths_hooks_off(void);
/* Faults noticed by now, each printed once with @where. */
extern unsigned slow_path_faults;
extern const char *slow_path_where;
extern unsigned slow_path_at;
void slow_path_fault(const char *what);

/* Allocates and keeps; gives one back. False: none to be had, or none held. */
bool take_one(struct hands *h);
bool give_one(struct hands *h);
bool take_one_nolock(struct hands *h);
bool give_one_nolock(struct hands *h);
void take(struct hands *h, unsigned n);
void give(struct hands *h, unsigned n);
/* Into the table: false: @o is NULL. Out of it, the last one: NULL: there is none. */
bool keep(struct hands *h, uint64_t *o);
uint64_t *let_go(struct hands *h);
/* A walk through all sizes of malloc, balanced. */
void use_malloc(void);
/* All stamps as they were; no object in the table twice. */
void check_hands(struct hands *h);
/*
 * The invariants of the whole heap, and that it counts as live what is held and nothing else.
 * Quiescent.
 */
void check_heap(void);
/* Objects that the heap counts as live, but no table holds. Quiescent. */
size_t objects_lost(void);

#endif
