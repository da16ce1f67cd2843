/*
 * One slot of one cache, for tests of what happens to its sheaves. Real barns stand over a fake
 * slab layer, and the thread stays on one CPU. At the end of a test every object and sheaf is
 * accounted for.
 */
#ifndef STOOK_TEST_ONE_SLOT_H
#define STOOK_TEST_ONE_SLOT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "barn/barn_inside.h"
#include "fake_slab.h"
#include "slot/slot_hot.h"

#define CAPACITY 8
#define SOME     3
#define ZERO     ((struct stook_sheaf *)&stook_sheaf_zero)

extern struct stook_slabs    slabs;
extern struct stook_counters counters;
extern struct stook_barns    barns;
extern struct stook_front    front;
extern const struct stook_section_ops *ops;

struct stook_sheaf *main_now(void);
struct stook_sheaf *spare_now(void);
/* For calls that notice double frees: there are none. */
void     on_double(struct stook_front *f, void *object);
uint64_t counted(enum stook_counter which);
unsigned fulls(void);                   /* sheaves in the barn */
unsigned empties(void);
struct stook_sheaf *sheaf_of(unsigned size);
/* The slot's pair; what was there is flushed and deleted. */
void     set(struct stook_sheaf *main, struct stook_sheaf *spare);
/* A bare slot, a barn of @limit full and empty sheaves, no hooks. */
void     begin(unsigned limit);
void     check_nothing_lost(void);
void    *users(void);                   /* an object that a user has */

/* cmocka's: of a test, begin(3); of the group. */
int      start(void **state);
int      start_slots(void **state);

#endif
