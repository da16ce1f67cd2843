/*
 * Fakes of the layers below src/barn, and one cache's barns on them. Objects are the numbers from 1
 * up; the fake slabs know which of them are out.
 */
#ifndef UNIT_BARN_FIXTURE_H
#define UNIT_BARN_FIXTURE_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "barn/barn_inside.h"
#include "os/os.h"

#define OBJECTS 4096

extern char     out[OBJECTS + 1];       /* [n]: object n is out of its slab */
extern size_t   can_fill;               /* objects that the next fills still give */
extern unsigned fill_flags;             /* what each fill must be called with */
extern unsigned steps;                  /* of the page layer's ageing: one for each refill, flush */
#define MANY_PAGES ((size_t)1 << 30)
extern size_t   pages_taken;            /* bytes with users, of node 0: MANY_PAGES at first */
extern size_t   pages_taken_elsewhere;  /* the same of each other node: 0 at first */
extern unsigned nodes;                  /* 1 at first */
extern unsigned kept_given;             /* calls to give back slabs that are kept empty */
extern void   (*while_draining)(void);  /* each drain calls it, as another thread; or NULL */

struct fake_cache {
        struct stook_slabs slabs;
        struct stook_counters counters;
        uint64_t far[STOOK_COUNTERS_FAR_COUNT];
        struct stook_barns barns;
};

/* Never freed: barns are listed for ever, like the caches that they are part of. */
struct fake_cache *make(unsigned index, unsigned capacity, unsigned full, unsigned empty);
/* The same for objects of any size, with growth on. */
struct fake_cache *make_few(unsigned index, unsigned capacity, uint32_t stride);
/* A sheaf from the barn; into the slabs, out of them. Then the cache is at hand. */
void   get_from_barn(struct fake_cache *c);
void   flush(struct fake_cache *c);
void   refill(struct fake_cache *c);
/* As many swings as make a cache of few objects grow once, if it may. */
void   swing_in_slots(struct fake_cache *c);
void   swing_in_slabs(struct fake_cache *c);

/* A new full sheaf. */
struct stook_sheaf *filled(struct fake_cache *c);
size_t objects_out(void);
int    setup(void **state);
/* Empties the cache's barns. No object is out then, no sheaf is the cache's, nothing is booked. */
void   expect_nothing_left(struct fake_cache *c);

#endif
