/*
 * What cmocka's tests of one slot begin and end with. The slot is fixture.h.
 */
#ifndef UNIT_SLOT_CHECKS_H
#define UNIT_SLOT_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "unit/slot/fixture.h"

#define CAPACITY 8
#define OBJECTS  400
#define SOME     3                      /* objects of a sheaf that is neither full nor empty */

/* A bare slot, a barn of @limit full and empty sheaves, no hooks. */
static inline void begin(unsigned limit)
{
        assert_true(slot_begin(OBJECTS, CAPACITY, limit));
        ops = stook_slot_ops();
}

static inline void check_nothing_lost(void)
{
        const char *missing = slot_missing();

        if (missing)
                fail_msg("%s", missing);
}

/* An object that a user has. */
static inline void *users(void)
{
        void *object;

        assert_int_equal(stook_slab_fill(&slabs, 0, 1, &object, 0), 1);
        return object;
}

/* A test may be preempted inside a section: a miss is repeated. */
static inline enum stook_push push(void *object)
{
        enum stook_push answer = STOOK_PUSH_MISS;

        for (int i = 0; i < 100 && answer == STOOK_PUSH_MISS; i++)
                answer = ops->push(front.offset, object);
        return answer;
}

/* cmocka's: of a test. */
static inline int start(void **state)
{
        (void)state;
        begin(3);
        return 0;
}

/* Of the group. With UNPROTECTED in the environment see slot_unprotect. */
static inline int start_slots(void **state)
{
        (void)state;
        if (!slot_stay() || !slot_start(0))
                return -1;
#ifndef STOOK_SECTION_V1
        if (getenv("UNPROTECTED")) {
                puts("no sections on this machine, so there is nothing to leave unprotected");
                exit(77);
        }
#endif
        return getenv("UNPROTECTED") && !slot_unprotect() ? -1 : 0;
}

#endif
