/*
 * Purpose: calls that take each slow path of allocation and free, and a small heap to make them on; shared by the tests
 * that interrupt them at every instruction.
 *
 * Two caches of 4 KiB objects, one of them without sheaves, so that sheaves (4 objects) and slabs (16) are soon full
 * or empty. Whatever is allocated is stamped and kept in one table for each cache, with room for a handler to put and
 * take in the middle of a call: what is about to be freed leaves the table first.
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
        struct stook_cache *cache;
        unsigned count;
        uint64_t *held[HELD_MAX];
};

extern struct hands sheaved, bare;      /* the two caches */

struct slow_path {
        const char *name;
        void (*prepare)(void);
        void (*call)(void);             /* the call under test; also under what `prepare` has set up to fail */
        bool  fails;                    /* NULL is the right answer */
};
extern const struct slow_path slow_paths[];
extern const unsigned slow_path_count;

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
/* A walk through all sizes of malloc, balanced. */
void use_malloc(void);
/* All stamps as they were; no object in the table twice. */
void check_hands(struct hands *h);
/* The invariants of the whole heap, and that it counts as live what is held and nothing else. Quiescent. */
void check_heap(void);
/* Objects that the heap counts as live, but nobody holds. Quiescent. */
size_t objects_lost(void);

#endif
