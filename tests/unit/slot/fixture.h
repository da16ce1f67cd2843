/*
 * One slot of one cache: the real sections and barns over a fake slab layer (fake_slab.h). All
 * tests of what happens to a slot's sheaves stand on it: unit/section, unit/slot, unit/evacuate,
 * race/slot_every_instruction, race/slot_storm. This part asserts nothing, for programs without
 * cmocka; checks.h has the rest.
 */
#ifndef UNIT_SLOT_FIXTURE_H
#define UNIT_SLOT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "barn/barn_inside.h"
#include "slot/slot_hot.h"
#include "unit/slot/fake_slab.h"

#define INDEX 3                         /* the cache's */
#define ZERO  ((struct stook_sheaf *)&stook_sheaf_zero)

extern struct stook_slabs    slabs;
extern struct stook_counters counters;
extern struct stook_barns    barns;
extern struct stook_front    front;
extern const struct stook_section_ops *ops;     /* the backend of the thread that started */

/*
 * Once: the slots, with the cache's lines, and this thread's way to them. @index: the field of the
 * kernel's area that is the slot index; 0: the best there is. False: not possible here.
 */
bool slot_start(uint32_t index);
/*
 * From now on sections run on a made-up area, on a slot of the locked backend. No kernel protects
 * them, and one thread needs no protection. So an emulator can test their instructions.
 */
bool slot_unprotect(void);
/* This thread stays on its CPU, so on one slot. */
bool slot_stay(void);
/*
 * All objects are in the slabs, all counts are 0. A barn keeps @limit full sheaves, and as many
 * empty ones. False: no memory, or sheaves are left from before.
 */
bool slot_begin(size_t objects, unsigned capacity, unsigned limit);
/*
 * Quiescent: puts an end to what hooks do, and empties slots and barn. Then each object must be in
 * the slabs, and each sheaf gone. What sheaves counted must agree. NULL: so it is; else a text that
 * says what is not.
 */
const char *slot_missing(void);

/* A new sheaf with objects of the slabs. Without memory the process ends. */
struct stook_sheaf *sheaf_of(unsigned size);
/* The slot's pair is that now; what was there is flushed and deleted. */
void   set(struct stook_sheaf *main, struct stook_sheaf *spare);
/* For calls that notice double frees: counts them. slot_missing complains of one. */
void   on_double(struct stook_front *f, void *object);
extern unsigned doubles;                /* atomic */

static inline struct stook_sheaf *main_now(void)
{
        return (struct stook_sheaf *)ops->look(front.offset).lo;
}

static inline struct stook_sheaf *spare_now(void)
{
        return (struct stook_sheaf *)ops->look(front.offset).hi;
}

static inline uint64_t counted(enum stook_counter which)
{
        return stook_counted(&counters, which);
}

/* Sheaves in the barn. */
static inline unsigned fulls(void)
{
        return stook_tagged_stack_count_racy(&barns.node[0].full);
}

static inline unsigned empties(void)
{
        return stook_tagged_stack_count_racy(&barns.node[0].empty);
}

#endif
